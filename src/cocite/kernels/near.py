"""Nearness of pages by common neighbors, and lists of the nearest pages.

``weigh`` and ``norms`` compute the weight of each page as a neighbor, and the total weight of its
neighbors, for in-links or out-links. A page without a self-loop counts as its own neighbor, with
``own`` times its weight.

``closest`` lists the nearest pages. Common neighbors are added in ascending order, so near(u, v)
and near(v, u) are bit-identical. Values are rounded to float32 before the largest are selected;
ties go to nodes with the smaller hash.

Costs 1 to 3 ns for each member of each neighbor. Source: see ``measures/snn.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._kernel import helper, kernel
from cocite.kernels._types import *
from cocite.kernels.links import add_to, first_from, row_of, sort_ids
from cocite.kernels.totals import offer

_ONE32 = np.float32(1)
_HALF, _LOWER = np.uint64(32), np.uint64(0xFFFFFFFF)
_IN, _OUT = 1, 2


@helper
def _holds(offsets: Any, neighbors: Any, node: Any) -> Any:
    begin, end = row_of(offsets, node)
    at = first_from(neighbors, begin, end, node)
    return at < end and np.int64(neighbors[at]) == node


@kernel
def weigh(
    offsets: U64s,
    members: U32s,
    max_degree: I64,
    own: F64,
    first: I64,
    last: I64,
    worths: OutF64s,
) -> None:
    """Set ``worths`` float64[nodes] to log(nodes / members) for pages ``first`` to ``last`` - 1.

    Pages count among their own ``members`` if ``own`` is not 0. With more than ``max_degree``
    (int64) members, or none, the weight is 0.
    """
    nodes = worths.size
    for x in range(first, last):
        begin, end = row_of(offsets, x)
        size = end - begin + (0 if own == 0.0 or _holds(offsets, members, x) else 1)
        counted = 0 < size <= max_degree
        worths[x] = np.log(np.float64(nodes) / np.float64(size)) if counted else 0.0


@kernel
def norms(
    offsets: U64s,
    neighbors: U32s,
    worths: F64s,
    own: F64,
    first: I64,
    last: I64,
    out: OutF64s,
) -> None:
    """Set ``out`` float64[nodes] to the total weight of the neighbors of pages ``first`` to
    ``last`` - 1. A page without a self-loop adds ``own`` times its own weight.
    """
    for v in range(first, last):
        begin, end = row_of(offsets, v)
        total = 0.0 if own == 0.0 or _holds(offsets, neighbors, v) else own * worths[v]
        for link in range(begin, end):
            total += worths[neighbors[link]]
        out[v] = total


@helper
def _shared(
    rows: Any, columns: Any, worths: Any, node: Any, share: Any, strip: Any, room: Any
) -> Any:
    """Add up the weights of the neighbors that a strip's pages share with ``node``; count pages."""
    offsets, neighbors = rows
    starts, members = columns
    common, used = room[0], room[2]
    first, last = strip
    cut = first > 0 or last < worths.size
    count = 0
    link, end = row_of(offsets, node)
    own = share > 0.0
    while link < end or own:
        x = np.int64(neighbors[link]) if link < end else node
        part = 1.0
        if own and x >= node:
            own = False
            if link < end and x == node:
                link += 1
            else:
                part = share
            x = node
        else:
            link += 1
        worth = part * worths[x]
        if worth <= 0.0:
            continue
        low, high = row_of(starts, x)
        if cut:
            low = first_from(members, low, high, first)
            high = first_from(members, low, high, last)
        alone = share > 0.0 and first <= x < last
        for place in range(low, high):
            member = np.int64(members[place])
            alone = alone and member != x
            count = add_to(common, used, count, np.uint32(member - first), worth)
        if alone:
            own_worth = min(worth, share * worths[x])
            count = add_to(common, used, count, np.uint32(x - first), own_worth)
    return count


@helper
def _add_side(
    rows: Any, columns: Any, weights: Any, node: Any, how: Any, strip: Any, room: Any, have: Any
) -> Any:
    """Add the nearness in one direction, halved if both count; return how many pages are near."""
    share = 0.5 if how[0] == _IN + _OUT else 1.0
    worths, whole = weights
    common, near, used, touched = room[:4]
    first = strip[0]
    count = _shared(rows, columns, worths, node, how[1], strip, room)
    for i in range(count):
        other = np.int64(used[i])
        shared = common[other]
        common[other] = 0.0
        if first + other == node:
            continue
        if near[other] == 0.0:
            touched[have] = np.uint32(other)
            have += 1
        near[other] += share * (shared / (whole[node] + whole[first + other] - shared))
    return have


@helper
def _near_of(
    ins: Any, outs: Any, by_in: Any, by_out: Any, how: Any, node: Any, strip: Any, room: Any
) -> Any:
    """Compute ``near`` for a strip; list the near pages in ``touched``, and return their number."""
    have = 0
    if how[0] & _IN:
        have = _add_side(ins, outs, by_in, node, how, strip, room, have)
    if how[0] & _OUT:
        have = _add_side(outs, ins, by_out, node, how, strip, room, have)
    return have


@helper
def _list_of(
    ins: Any, outs: Any, by_in: Any, by_out: Any, how: Any, node: Any, room: Any, out: Any
) -> Any:
    near, touched, names, best, keys = room[1], room[3], room[4], room[5], room[6]
    pages, width = np.int64(ins[0].size - 1), np.int64(near.size)
    nodes, values, used = out
    size = 0
    for low in range(0, pages, width):
        strip = (low, min(low + width, pages))
        have = _near_of(ins, outs, by_in, by_out, how, node, strip, room)
        for j in range(have):
            other = np.int64(touched[j])
            value = np.float64(np.float32(near[other]))
            near[other] = 0.0
            if value > 0.0:
                size = offer(best, names, size, np.uint32(low + other), value)
    for j in range(size):
        keys[j] = np.uint64(names[j]) << _HALF | np.uint64(j)
    sort_ids(keys[:size])
    own = True
    for j in range(size):
        other = np.uint32(keys[j] >> _HALF)
        if own and other > node:
            nodes[used], values[used] = np.uint32(node), _ONE32
            used += 1
            own = False
        nodes[used] = other
        values[used] = np.float32(best[keys[j] & _LOWER])
        used += 1
    if own:
        nodes[used], values[used] = np.uint32(node), _ONE32
    return size + 1


@kernel
def closest(
    ins: tuple[U64s, U32s],
    outs: tuple[U64s, U32s],
    by_in: tuple[F64s, F64s],
    by_out: tuple[F64s, F64s],
    how: tuple[I64, F64],
    pages: U32s,
    room: tuple[OutF64s, OutF64s, OutU32s, OutU32s, OutU32s, OutF64s, OutU64s],
    out: tuple[OutU64s, OutU32s, OutF32s],
) -> I64:
    """Write the lists of ``pages`` (uint32), in order; return their number of entries.

    ``ins`` and ``outs`` are (offsets, neighbors); ``by_in`` and ``by_out`` are (weights, norms) for
    comparing in-neighbors and out-neighbors; ``how`` is (1, 2 or 3 for in, out or both; factor of a
    page as its own neighbor). ``room`` is (common and near float64[width], both all 0, used and
    touched uint32[width + 1], names uint32[k], best float64[k], keys uint64[k]): pages are
    processed in strips of ``width`` ids. ``out`` is (counts uint64[pages], nodes uint32, values
    float32), with space for k + 1 entries per page.
    """
    counts, nodes, values = out
    used = 0
    for i in range(pages.size):
        page = np.int64(pages[i])
        size = _list_of(ins, outs, by_in, by_out, how, page, room, (nodes, values, used))
        counts[i] = np.uint64(size)
        used += size
    return used
