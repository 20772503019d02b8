"""Kernels for NetworkX graphs: sums along rows, common neighbors of two rows, distances.

Rows are (offsets uint64[nodes + 1], neighbors uint32[links]) in any order. Some kernels have
weights float64[links], empty if all are 1. ``meet`` needs ascending rows without duplicates.

``gather`` and ``turn_rows`` cost one pass over the links, ``meet`` at most the shorter row times
the logarithm of the longer one, and ``reachable`` the links of the nodes reached.
"""

from __future__ import annotations

import numpy as np

from cocite.kernels._kernel import kernel
from cocite.kernels._types import *
from cocite.kernels.links import first_from, row_of

_FAR = 16
"""If the longer row is longer by more than this factor, it is searched instead of merged."""


@kernel
def gather(offsets: U64s, neighbors: U32s, weights: F64s, values: F64s, out: OutF64s) -> None:
    """Set out[i] to the sum of weight times ``values`` (float64[nodes]) over the neighbors of i."""
    weighted = weights.size > 0
    for i in range(out.size):
        total = 0.0
        begin, end = row_of(offsets, i)
        for link in range(begin, end):
            value = values[neighbors[link]]
            total += weights[link] * value if weighted else value
        out[i] = total


@kernel
def turn_rows(
    offsets: U64s, neighbors: U32s, begins: OutU64s, sources: OutU32s, links: OutI64s
) -> None:
    """Write the links by their other end, ascending. Fills ``begins`` (uint64[nodes + 1]),
    ``sources`` (uint32), and ``links`` (int64), the positions of the links in the rows.
    """
    begins[:] = 0
    for link in range(neighbors.size):
        begins[np.int64(neighbors[link]) + 1] += np.uint64(1)
    for i in range(begins.size - 1):
        begins[i + 1] += begins[i]
    cursor = begins[:-1].copy()
    for i in range(offsets.size - 1):
        for link in range(np.int64(offsets[i]), np.int64(offsets[i + 1])):
            node = neighbors[link]
            place = cursor[node]
            sources[place] = i
            links[place] = link
            cursor[node] = place + np.uint64(1)


@kernel
def meet(
    offsets: U64s, neighbors: U32s, a: I64s, b: I64s, worth: F64s, counts: OutI64s2, out: OutF64s
) -> None:
    """Compute what the rows of a[k] and b[k] share, for every k.

    ``counts`` int64[pairs, 2] receives the number of common neighbors, and their number without
    a[k] and b[k]; ``out`` float64[pairs] the sum of ``worth`` (float64[nodes]) over the latter.
    """
    for k in range(a.size):
        u, v = np.uint32(a[k]), np.uint32(b[k])
        (i, i_end), (j, j_end) = row_of(offsets, u), row_of(offsets, v)
        if i_end - i > j_end - j:
            i, i_end, j, j_end = j, j_end, i, i_end
        far = (j_end - j) > _FAR * (i_end - i)
        both, others, total = 0, 0, 0.0
        while i < i_end and j < j_end:
            node = neighbors[i]
            if far:
                j = first_from(neighbors, j, j_end, node)
                if j == j_end:
                    break
            if neighbors[j] < node:
                j += 1
                continue
            if neighbors[j] == node:
                both += 1
                if node != u and node != v:
                    others += 1
                    total += worth[node]
                j += 1
            i += 1
        counts[k, 0], counts[k, 1], out[k] = both, others, total


@kernel
def reachable(
    offsets: U64s, neighbors: U32s, source: I64, distances: OutI32s, queue: OutU32s
) -> I64:
    """Search breadth first from ``source``; list the nodes reached in ``queue`` (uint32[nodes]).
    ``distances`` (int32[nodes]), all -1 before, is set for them. Returns their number.
    """
    queue[0], distances[source] = np.uint32(source), 0
    done, have = 0, 1
    while done < have:
        node = np.int64(queue[done])
        done += 1
        for link in range(np.int64(offsets[node]), np.int64(offsets[node + 1])):
            other = neighbors[link]
            if distances[other] < 0:
                distances[other] = distances[node] + 1
                queue[have] = other
                have += 1
    return have
