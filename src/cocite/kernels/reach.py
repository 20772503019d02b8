"""Neighbourhoods of single nodes: who is reached in at most k links, and how many two nodes share.

A breadth-first search from v marks each node it reaches with its distance plus 1; 0 is for those
not reached. A node at the distances d from u and e from v is in the neighbourhoods of both from
k = max(d, e) on, so one pass over what v reaches counts what they share for every k.

Cost: the links of what is reached in less than ``length`` steps, some 2 ns each.
Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.3 (Definition 3).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._jit import kernel

__all__ = ["TOO_MANY", "reach"]

TOO_MANY = -1
"""What comes back where more links would have to be read than allowed."""


@kernel
def reach(
    offsets: Any,
    neighbours: Any,
    node: Any,
    other: Any,
    distances: Any,
    found: Any,
    most: Any,
    out: Any,
) -> Any:
    """Count the neighbourhoods of ``node`` (int64) for k = 1, ..., length.

    ``distances`` uint8[nodes] is 0 everywhere and gets the marks; they stay if ``other`` is empty.
    Else ``other`` uint8[nodes] has those of another node, and ``distances`` is set back to 0.
    ``found`` uint32[nodes] is scratch; ``out`` int64[length, 2] gets the size of each
    neighbourhood, and how many of it are also in the other's of the same k. Reads ``most`` links at
    most; returns how many it read, or TOO_MANY.
    """
    found[0] = np.uint32(node)
    distances[node] = 1
    count, first, read = 1, 0, 0
    out[:] = 0
    for step in range(out.shape[0]):
        last = count
        for i in range(first, last):
            at = np.int64(found[i])
            begin, end = np.int64(offsets[at]), np.int64(offsets[at + 1])
            read += end - begin
            if read > most:
                break
            for link in range(begin, end):
                to = neighbours[link]
                if distances[to] == 0:
                    distances[to] = np.uint8(step + 2)
                    found[count] = to
                    count += 1
        if read > most:
            break
        first = last
        out[step, 0] = count
    if other.size > 0:
        for i in range(count):
            at = np.int64(found[i])
            if other[at] != 0:
                ring = max(np.int64(other[at]), np.int64(distances[at])) - 1
                out[max(ring, 1) - 1, 1] += 1
            distances[at] = 0
        for step in range(1, out.shape[0]):
            out[step, 1] += out[step - 1, 1]
    return TOO_MANY if read > most else read
