"""Reverse Cuthill-McKee: number nodes so that those that link to each other stand near.

A breadth-first search from a node of least degree, taking neighbours by ascending degree; component
after component; reversed at the end. Neighbourhoods are those of Q + Q', both directions.

Cost: O(m log(largest degree)).
Source: Yu et al. 2011, 4.2.1, Algorithm 2; Cuthill, McKee 1969; Chan, George 1980.
"""

from __future__ import annotations

from typing import Any

from cocite.kernels._jit import kernel

__all__ = ["reverse_cuthill_mckee"]


@kernel
def reverse_cuthill_mckee(offsets: Any, neighbours: Any, starts: Any, seen: Any, out: Any) -> None:
    """Fill ``out`` (int64[n]) with the nodes in their new order.

    ``neighbours`` are sorted by ascending degree within a node; ``starts`` are all nodes, by
    ascending degree; ``seen`` is uint8[n] of zeros.
    """
    n = out.size
    taken = 0
    for s in range(n):
        if seen[starts[s]]:
            continue
        seen[starts[s]] = 1
        out[taken] = starts[s]
        head, taken = taken, taken + 1
        while head < taken:
            node = out[head]
            head += 1
            for link in range(offsets[node], offsets[node + 1]):
                other = neighbours[link]
                if not seen[other]:
                    seen[other] = 1
                    out[taken] = other
                    taken += 1
    for i in range(n // 2):
        out[i], out[n - 1 - i] = out[n - 1 - i], out[i]
