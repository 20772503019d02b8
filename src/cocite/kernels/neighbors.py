"""Common neighbors: of one pair, and of one node with all others.

The *rows* ``neighbors[offsets[v] : offsets[v + 1]]``, ascending, are the sets to compare; the
*columns* ``members[columns[x] : columns[x + 1]]`` list the nodes whose rows contain x. With
w = log(nodes / |column|), x weighs w**power, 0 if it is in every row. The *norm* of a row is the
weight of all its entries, from ``sums`` float64[nodes, 2] (of w, and of w * w) for powers 1 and 2.

    cosine     common / sqrt(norm(u) * norm(v))
    jaccard    common / (norm(u) + norm(v) - common)
    count      common

Pairs and lists add the same numbers in the same order, so their sums are bit-identical. A pair
costs O(|row| + |row|); one node with all others costs one addition for each node of each column in
its row. Offsets and ids are checked during use, because files are opened unverified.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.constants import GRAINS
from cocite.kernels._kernel import helper, kernel, prefetch
from cocite.kernels._types import *
from cocite.kernels.links import first_from, row_of

DAMAGED = -1
"""Returned if an offset or a node id is out of range."""
FORMS = "cosine", "jaccard", "count"
"""Forms of scores; kernels take positions in this list."""
COSINE, _JACCARD, COUNT, PAGESIM = 0, 1, 2, 3
"""Positions in FORMS, and the number of a form that divides like the cosine
(``kernels/features.py``).
"""


@helper
def _size(offsets: Any, node: Any) -> Any:
    begin, end = row_of(offsets, node)
    return end - begin


@helper
def _valid(begin: Any, end: Any, size: Any) -> Any:
    return 0 <= begin <= end <= size


@helper
def _weight(nodes: Any, members: Any, power: Any) -> Any:
    """Return the weight of a neighbor with ``members`` nodes in its column."""
    if power == 0:
        return 1.0
    weight = np.log(np.float64(nodes) / np.float64(members))
    return weight if power == 1 else weight * weight


@helper
def score(common: Any, first: Any, second: Any, form: Any) -> Any:
    """Return the score in grains from the common weight and both norms; 0 if nothing is common."""
    if common <= 0.0:
        return 0.0
    if form == COUNT:
        return np.rint(common * GRAINS)
    if form == _JACCARD:
        return np.rint(common / (first + second - common) * GRAINS)
    return np.rint(common / np.sqrt(first * second) * GRAINS)


@helper
def _norm(offsets: Any, sums: Any, node: Any, power: Any) -> Any:
    if power == 0:
        return np.float64(_size(offsets, node))
    return sums[node, power - 1]


@kernel
def norms(offsets: U64s, neighbors: U32s, columns: U64s, first: I64, out: OutF64s2) -> Bool:
    """Sum w and w * w over the rows from ``first`` on; return whether the links are valid."""
    nodes = np.int64(columns.size - 1)
    for i in range(out.shape[0]):
        begin, end = row_of(offsets, first + i)
        if not _valid(begin, end, neighbors.size):
            return False
        total = squares = 0.0
        for link in range(begin, end):
            x = np.int64(neighbors[link])
            if x >= nodes:
                return False
            size = _size(columns, x)
            if size < 1:
                return False
            total += _weight(nodes, size, 1)
            squares += _weight(nodes, size, 2)
        out[i, 0], out[i, 1] = total, squares
    return True


@kernel
def pair(
    offsets: U64s,
    neighbors: U32s,
    columns: U64s,
    sums: F64s2,
    first: I64,
    second: I64,
    power: I64,
    form: I64,
) -> F64:
    """Return the score of two nodes (int64) in grains, or DAMAGED; ``sums`` are the norms."""
    nodes = np.int64(columns.size - 1)
    (left, left_end), (right, right_end) = row_of(offsets, first), row_of(offsets, second)
    size = neighbors.size
    if not (_valid(left, left_end, size) and _valid(right, right_end, size)):
        return np.float64(DAMAGED)
    common = 0.0
    while left < left_end and right < right_end:
        x, y = neighbors[left], neighbors[right]
        if x == y:
            node = np.int64(x)
            if node >= nodes:
                return np.float64(DAMAGED)
            members = _size(columns, node)
            if members < 1:
                return np.float64(DAMAGED)
            common += _weight(nodes, members, power)
        left += 1 if x <= y else 0
        right += 1 if y <= x else 0
    mine, theirs = _norm(offsets, sums, first, power), _norm(offsets, sums, second, power)
    return score(common, mine, theirs, form)


@kernel
def shared(offsets: U64s, neighbors: U32s, node: I64, others: U32s, out: OutI64s) -> Bool:
    """Count the distinct neighbors shared by ``node`` and each of ``others`` into ``out`` int64[h].

    Looks up the entries of the shorter row, which may contain duplicates, in the longer one.
    Returns whether the links are valid.
    """
    nodes = np.int64(offsets.size - 1)
    if np.int64(node) >= nodes:
        return False
    mine, mine_end = row_of(offsets, node)
    if not _valid(mine, mine_end, neighbors.size):
        return False
    for i in range(others.size):
        if np.int64(others[i]) >= nodes:
            return False
        short, short_end = row_of(offsets, others[i])
        if not _valid(short, short_end, neighbors.size):
            return False
        long, long_end = mine, mine_end
        if long_end - long < short_end - short:
            short, short_end, long, long_end = long, long_end, short, short_end
        count = 0
        for link in range(short, short_end):
            x = neighbors[link]
            if link > short and neighbors[link - 1] == x:
                continue
            long = first_from(neighbors, long, long_end, x)  # rows ascend
            count += 1 if long < long_end and neighbors[long] == x else 0
        out[i] = count
    return True


@kernel
def gather(
    offsets: U64s,
    neighbors: U32s,
    columns: U64s,
    members: U32s,
    node: I64,
    power: I64,
    values: OutF64s2,
    used: OutU32s,
) -> I64:
    """Sum the weights of neighbors that ``node`` (int64) shares with each node, itself included.

    ``values`` float64[nodes, 2], all 0, receives the sums in its first column; ``used``
    uint32[nodes + 1] lists the nodes with a sum. Returns their number, or DAMAGED.
    """
    nodes, count = np.int64(columns.size - 1), 0
    begin, end = row_of(offsets, node)
    if not _valid(begin, end, neighbors.size):
        return DAMAGED
    for link in range(begin, end):
        x = np.int64(neighbors[link])
        if x >= nodes:
            return DAMAGED
        low, high = row_of(columns, x)
        if not _valid(low, high, members.size) or low == high:
            return DAMAGED
        if link + 1 < end and np.int64(neighbors[link + 1]) < nodes:
            prefetch(members, columns[np.uint64(neighbors[link + 1])])
        worth = _weight(nodes, high - low, power)
        if worth <= 0.0:
            continue
        for place in range(low, high):
            member = np.int64(members[place])
            if member >= nodes:
                return DAMAGED
            before = values[member, 0]
            used[count] = np.uint32(member)  # no branch: it would be unpredictable
            values[member, 0] = before + worth
            count += 1 if before == 0.0 else 0
    return count


@kernel
def normalize(
    values: OutF64s2,
    used: U32s,
    count: I64,
    node: I64,
    offsets: U64s,
    sums: F64s2,
    power: I64,
    form: I64,
) -> None:
    """Turn the common weights of ``used[:count]`` with ``node`` into grains, 0 for ``node``."""
    mine = _norm(offsets, sums, node, power)
    for i in range(count):
        other = np.int64(used[i])
        common = 0.0 if other == node else values[other, 0]
        values[other, 0] = score(common, mine, _norm(offsets, sums, other, power), form)
