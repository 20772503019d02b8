"""Lists of links: rows, sorting, counting, merging, transposing."""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._kernel import helper, kernel
from cocite.kernels._types import *

_ONE32, _ONE64 = np.uint32(1), np.uint64(1)
_SHIFT = np.uint64(32)


@helper
def row_of(offsets: Any, node: Any) -> Any:
    """Return where the row of ``node`` begins and ends, int64."""
    at = np.uint64(node)
    return np.int64(offsets[at]), np.int64(offsets[at + _ONE64])


@helper
def first_from(values: Any, begin: Any, end: Any, least: Any) -> Any:
    """Return where ``values``, ascending from ``begin`` to ``end``, reach ``least``."""
    while begin < end:
        middle = (begin + end) >> 1
        if values[middle] < least:
            begin = middle + 1
        else:
            end = middle
    return begin


@helper
def add_to(sums: Any, used: Any, count: Any, node: Any, value: Any) -> Any:
    """Add to a node's sum, and list the node if the sum was 0; return the new number of nodes."""
    before = sums[node]
    used[count] = node
    sums[node] = before + value
    return count + (1 if before == 0.0 else 0)


_SHORT, _DEPTH = 24, 128
"""Parts of at most _SHORT items are sorted by insertion; _DEPTH is the space for pending parts."""


@helper
def sort_ids(ids: Any) -> None:
    """Sort an array in place with quicksort; Numba's own ``sort`` needs its runtime."""
    waiting = np.empty(_DEPTH, np.int64)
    depth, low, high = 0, 0, ids.size - 1
    while True:
        while high - low >= _SHORT:
            middle = (low + high) >> 1
            if ids[middle] < ids[low]:
                ids[middle], ids[low] = ids[low], ids[middle]
            if ids[high] < ids[low]:
                ids[high], ids[low] = ids[low], ids[high]
            if ids[high] < ids[middle]:
                ids[high], ids[middle] = ids[middle], ids[high]
            pivot, i, j = ids[middle], low, high
            while i <= j:
                while ids[i] < pivot:
                    i += 1
                while pivot < ids[j]:
                    j -= 1
                if i <= j:
                    ids[i], ids[j] = ids[j], ids[i]
                    i += 1
                    j -= 1
            if j - low > high - i:  # the larger part waits: at most log2(size) ranges on the stack
                waiting[depth], waiting[depth + 1] = low, j
                low = i
            else:
                waiting[depth], waiting[depth + 1] = i, high
                high = j
            depth += 2
        for i in range(low + 1, high + 1):
            value, j = ids[i], i - 1
            while j >= low and value < ids[j]:
                ids[j + 1] = ids[j]
                j -= 1
            ids[j + 1] = value
        if depth == 0:
            return
        depth -= 2
        low, high = waiting[depth], waiting[depth + 1]


@kernel(T=("U32", "U64"))
def add_counts(nodes: Ts, counts: OutTs) -> None:
    """Add the occurrences of each v in ``nodes`` (uint32) to ``counts[v]`` (uint32)."""
    for i in range(nodes.size):
        counts[nodes[i]] += _ONE32


@kernel
def sum_runs(starts: I64s, values: F64s, out: OutF64s) -> None:
    """Sum each run of ``values`` (float64) in order; ``starts`` (int64) are where runs begin."""
    for run in range(starts.size):
        end = starts[run + 1] if run + 1 < starts.size else values.size
        total = 0.0
        for i in range(starts[run], end):
            total += values[i]
        out[run] = total


@kernel(T=("F32", "U8"))
def turn(
    offsets: U64s,
    neighbors: U32s,
    weights: Ts,
    row: U64,
    first: U64,
    cursors: OutU64s,
    out: OutU32s,
    out_weights: OutTs,
) -> None:
    """Append the nodes of some rows to the rows of their neighbors.

    ``offsets`` covers these rows, the first of which belongs to node ``row``. ``cursors`` (uint64),
    which advance, are the positions in ``out`` (uint32) of the next entries of nodes ``first``,
    ``first + 1``, ... Any ``weights`` go to ``out_weights``. Nothing is written past the end of
    ``out``, but cursors advance beyond it.
    """
    width = np.uint64(cursors.size)
    weighted = weights.size > 0
    for i in range(offsets.size - 1):
        node = np.uint32(np.uint64(i) + row)
        for link in range(offsets[i], offsets[np.uint64(i) + _ONE64]):
            slot = np.uint64(neighbors[link]) - first
            if slot < width:
                place = cursors[slot]
                cursors[slot] = place + _ONE64
                if place < np.uint64(out.size):
                    out[place] = node
                    if weighted:
                        out_weights[place] = weights[link]


@kernel
def merge(
    ins: tuple[U64s, U32s, F32s],
    outs: tuple[U64s, U32s, F32s],
    merged: tuple[U64s, OutU32s, OutF32s],
) -> Bool:
    """Merge two ascending rows per node; equal entries of the first row come first.

    Each argument is (offsets, neighbors, weights): offsets uint64[rows + 1] of some rows, all
    neighbors uint32, and all weights float32 or an empty array. Returns False if a row is out of
    bounds.
    """
    in_offsets, in_neighbors, in_weights = ins
    out_offsets, out_neighbors, out_weights = outs
    offsets, neighbors, weights = merged
    weighted = weights.size > 0
    for row in range(offsets.size - 1):
        i, a = np.int64(in_offsets[row]), np.int64(in_offsets[row + 1])
        j, b = np.int64(out_offsets[row]), np.int64(out_offsets[row + 1])
        at, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        inside = (0 <= i <= a <= in_neighbors.size) & (0 <= j <= b <= out_neighbors.size)
        if not inside or at + (a - i) + (b - j) != end or end > neighbors.size or at < 0:
            return False
        while at < end:
            if j == b or (i < a and in_neighbors[i] <= out_neighbors[j]):
                neighbors[at] = in_neighbors[i]
                if weighted:
                    weights[at] = in_weights[i]
                i += 1
            else:
                neighbors[at] = out_neighbors[j]
                if weighted:
                    weights[at] = out_weights[j]
                j += 1
            at += 1
    return True


@kernel
def admit(pairs: U64s, links: U8s, left: OutI64s, wanted: I64, out: OutBools) -> I64:
    """Mark in ``out`` (bool) which ``pairs`` (uint64) to hide, until ``wanted`` links are hidden.

    Greedily hides each pair in order if both of its pages keep a link to another page. ``links``
    (uint8) is the number of links per pair, 1 or 2; ``left`` (int64[nodes]), which is updated, is
    the number of remaining links between each page and others. Returns the number of hidden links.
    """
    done = np.int64(0)
    for i in range(pairs.size):
        if done >= wanted:
            break
        low, high = pairs[i] >> _SHIFT, pairs[i] & np.uint64(0xFFFFFFFF)
        count = np.int64(links[i])
        if left[low] > count and left[high] > count:
            left[low] -= count
            left[high] -= count
            out[i] = True
            done += count
    return done
