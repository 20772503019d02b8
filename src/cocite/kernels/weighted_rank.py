"""PageRank's kernels for weighted links; ``rank.py`` has the algorithm and all that is the same.

A node's rank is shared among its out-links in proportion to their weights. With W[u] the sum of
the weights of u's out-links (its *strength*, where ``rank.py`` has the out-degree) and
z[u] = y[u] / W[u], a sweep solves row after row of

    y[v] = damping * sum of w(u, v) z[u] over in-neighbours u != v  +  damping * w(v, v) z[v]
           + base[v]

Weights are float32 as stored, sums float64 in the order of the links. Where all weights are 1 every
operation has the operands and the result that it has in ``rank.py``, to the bit.

Cost: 4 bytes more for each link of a sweep.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._jit import helper, kernel
from cocite.kernels.rank import BASE, GONE, MASS, NO_NODE, REACH, SCALE, STRIP

__all__ = [
    "add_weights",
    "collect_weighted",
    "compact_weights",
    "residual_weighted",
    "restore",
    "sweep_weighted",
]

_ONE64 = np.uint64(1)


@kernel
def add_weights(in_offsets: Any, in_sources: Any, in_weights: Any, taken: Any, out: Any) -> None:
    """Add each node's weights of links to rows ``taken`` (uint8) to its ``out`` (float64)."""
    for row in range(taken.size):
        if taken[row]:
            for link in range(in_offsets[row], in_offsets[np.uint64(row) + _ONE64]):
                out[in_sources[link]] += np.float64(in_weights[link])


@kernel
def compact_weights(
    in_offsets: Any,
    in_sources: Any,
    in_weights: Any,
    number: Any,
    first: Any,
    state: Any,
    weights: Any,
    loops: Any,
) -> None:
    """Append the weights of the core's links of some rows, as ``rank.compact`` does the links.

    ``state`` uint64[2] holds rows and links so far; ``weights`` float32; ``loops`` float32[core] is
    the weight of each node's link to itself.
    """
    row, count = state[0], state[1]
    for i in range(in_offsets.size - 1):
        node = np.uint64(i) + np.uint64(first)
        if number[node] == NO_NODE:
            continue
        loops[row] = np.float32(0)
        for link in range(in_offsets[i], in_offsets[np.uint64(i) + _ONE64]):
            source = in_sources[link]
            if source == node:
                loops[row] = in_weights[link]
            elif number[source] != NO_NODE:
                weights[count] = in_weights[link]
                count += _ONE64
        row += _ONE64
    state[0], state[1] = row, count


@kernel
def sweep_weighted(
    rows: Any, links: Any, weights: Any, z: Any, facts: Any, first: Any, damping: Any, sums: Any
) -> None:
    """``rank.sweep`` with the ``weights`` (float32) of the core's links."""
    change, reach, mass = sums[0], sums[1], sums[3]
    for i in range(facts.shape[0]):
        gathered = 0.0
        for link in range(rows[i], rows[np.uint64(i) + _ONE64]):
            gathered += np.float64(weights[link]) * np.float64(z[links[link]])
        row = np.uint64(i) + np.uint64(first)
        new = (damping * gathered + facts[i, BASE]) * facts[i, SCALE]
        change += abs(new - np.float64(z[row])) / facts[i, SCALE]
        mass += new * facts[i, MASS]
        reach += new * facts[i, REACH]
        z[row] = new
        if row & STRIP == STRIP:
            sums[2] += mass
            mass = 0.0
    sums[0], sums[1], sums[3] = change, reach, mass


@helper
def _gather(in_sources: Any, in_weights: Any, begin: Any, end: Any, number: Any, z: Any) -> Any:
    gathered = 0.0
    for link in range(begin, end):
        source = number[in_sources[link]]
        if source != NO_NODE:
            gathered += np.float64(in_weights[link]) * np.float64(z[source])
    return gathered


@kernel
def restore(number: Any, z: Any, strengths: Any, degrees: Any, y: Any) -> None:
    """y of one block's core nodes from their z, and 0 for those that are GONE."""
    for i in range(y.size):
        if number[i] != NO_NODE:
            y[i] = np.float64(z[number[i]]) * strengths[i]
        elif degrees[i] == GONE:
            y[i] = 0.0


@kernel
def collect_weighted(
    in_offsets: Any,
    in_sources: Any,
    in_weights: Any,
    number: Any,
    z: Any,
    degrees: Any,
    damping: Any,
    y: Any,
) -> None:
    """Add to y of one block's dangling nodes what their in-links bring."""
    for i in range(y.size):
        if degrees[i] == np.uint32(0):
            end = in_offsets[np.uint64(i) + _ONE64]
            y[i] += damping * _gather(in_sources, in_weights, in_offsets[i], end, number, z)


@kernel
def residual_weighted(
    in_offsets: Any,
    in_sources: Any,
    in_weights: Any,
    number: Any,
    z: Any,
    degrees: Any,
    rest: Any,
    sums: Any,
) -> None:
    """``rank.residual`` with z = damping * x / strength."""
    total = sums[0]
    for i in range(rest.size):
        if degrees[i] != GONE:
            end = in_offsets[np.uint64(i) + _ONE64]
            total += abs(_gather(in_sources, in_weights, in_offsets[i], end, number, z) + rest[i])
    sums[0] = total
