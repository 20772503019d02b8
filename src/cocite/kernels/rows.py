"""Rows of the nodes nearest to each node: computed by a push, and compared.

``push`` computes rows by personalized PageRank along links in both directions. With p(u, v) the
fraction of walks from u that end at v, a row contains the ``keep`` largest positive values of

    value(u, v) = log(p(u, v) * volume / degree(v))         volume: the sum of all degrees

A walk with an odd number of steps counts ``odd`` instead of 1, so each node has two residuals.
Nodes whose residuals add up to at least eps * degree are pushed, first in, first out; eps falls in
stages, until ``keep`` nodes have p(v) / degree(v) >= eps, which bounds the error of that ratio.

A value is quantized to code = round(255 sqrt(value / top)), which represents the integer code**2.
Rows are compared by the weighted Jaccard index of these integers, family by family:

    score(u, v) = sum over families f of  weight_f * sum of minima / sum of maxima

Integer sums do not depend on their order, so scores of pairs and of lists are bit-identical. Ties
go to nodes with the smaller hash. The rows of family f follow those of family f - 1, and so do its
columns. Ids and offsets are checked during use, because files are opened unverified.

A push costs 4 ns per link read; a list 0.3 to 1.2 ns per holder of each entry. Source: Andersen,
Chung, Lang 2006 for the push; Levy, Goldberg 2014 for pointwise mutual information in rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.constants import GRAINS
from cocite.kernels._kernel import helper, kernel
from cocite.kernels._types import *
from cocite.kernels.links import sort_ids
from cocite.kernels.totals import enter, offer, sort

DAMAGED = -1
_ZERO64, _ONE64 = np.uint64(0), np.uint64(1)
_HALF, _LOWER = np.uint64(32), np.uint64(0xFFFFFFFF)
_RUN = np.uint64(16)
"""Holders to process at a time."""
_REACHED = 1e-300
"""Residual of pushed nodes. If it were 0, they would count as new again."""


# -- making rows -------------------------------------------------------------------------


@helper
def _by_id(values: Any, nodes: Any, size: Any, keys: Any, ids: Any, out: Any, used: Any) -> None:
    for i in range(size):
        keys[i] = np.uint64(nodes[i]) << _HALF | np.uint64(i)
    sort_ids(keys[:size])
    for i in range(size):
        ids[used + i] = np.uint32(keys[i] >> _HALF)
        out[used + i] = values[keys[i] & _LOWER]


@helper
def _push_stage(
    links: Any, restart: Any, odd: Any, eps: Any, state: Any, queue: Any, found: Any, count: Any
) -> Any:
    """Push nodes with residuals >= ``eps`` times degree; return the number of nodes reached."""
    offsets, neighbors, weights = links
    size = np.uint64(queue.size)
    head = tail = waiting = _ZERO64
    for i in range(count):
        node = found[i]
        if state[node, 0] + state[node, 1] >= eps * state[node, 3]:
            queue[tail] = node
            tail += _ONE64
            waiting += _ONE64
    tail = _ZERO64 if tail == size else tail
    count = np.uint64(count)
    while waiting > _ZERO64:
        node = queue[head]
        head = _ZERO64 if head + _ONE64 == size else head + _ONE64
        waiting -= _ONE64
        even, uneven = state[node, 0], state[node, 1]
        state[node, 2] += restart * (even + odd * uneven)
        share = (1.0 - restart) / state[node, 3]
        even, uneven = share * uneven, share * even
        state[node, 0], state[node, 1] = _REACHED, 0.0
        for link in range(offsets[node], offsets[np.uint64(node) + _ONE64]):
            other = neighbors[link]
            weight = np.float64(weights[link]) if weights.size > 0 else 1.0
            here, there = state[other, 0], state[other, 1]
            before, least = here + there, eps * state[other, 3]
            found[count] = other  # no branch: it would be unpredictable
            count += _ONE64 if before == 0.0 else _ZERO64
            here, there = here + even * weight, there + uneven * weight
            state[other, 0], state[other, 1] = here, there
            if (before < least) & (here + there >= least):
                queue[tail] = other
                tail = _ZERO64 if tail + _ONE64 == size else tail + _ONE64
                waiting += _ONE64
    return np.int64(count)


@helper
def _enough(state: Any, found: Any, count: Any, keep: Any, eps: Any) -> Any:
    for i in range(count):
        node = found[i]
        keep -= 1 if state[node, 2] >= eps * state[node, 3] else 0
    return keep <= 0


@kernel
def push(
    links: tuple[U64s, U32s, F32s],
    stages: F64s,
    numbers: tuple[F64, F64, F64],
    first: I64,
    room: tuple[OutF64s2, OutU32s, OutU32s, OutF64s, OutU32s, OutU64s],
    out: tuple[OutU64s, OutU32s, OutF32s],
) -> I64:
    """Compute the rows of nodes ``first``, ``first + 1``, ...; return their number of entries.

    ``links`` is (offsets, neighbors, weights), with empty weights if all are equal. ``stages`` are
    the thresholds, ``numbers`` is (volume, restart probability, odd). ``room`` is (state
    float64[nodes, 4]: residuals of walks with an even and with an odd number of steps, and settled
    values, all 0, and degrees; queue and found uint32[nodes + 1]; best float64[keep], kept
    uint32[keep], keys uint64[keep]). ``out`` is (counts uint64[rows], ids, values), with space for
    ``keep`` entries per row. The row of a node without links is empty.
    """
    state, queue, found, best, kept, keys = room
    counts, nodes, values = out
    volume, restart, odd = numbers
    keep, used = best.size, 0
    for row in range(counts.size):
        if state[first + row, 3] == 0.0:
            counts[row] = np.uint64(0)
            continue
        state[first + row, 0] = 1.0
        found[0] = np.uint32(first + row)
        count = 1
        for stage in range(stages.size):
            eps = stages[stage]
            count = _push_stage(links, restart, odd, eps, state, queue, found, count)
            if _enough(state, found, count, keep, eps):
                break
        size = 0
        for i in range(count):
            node = found[i]
            ratio = state[node, 2] / state[node, 3] * volume
            state[node, 0] = state[node, 1] = state[node, 2] = 0.0
            if ratio > 1.0:
                size = offer(best, kept, size, node, ratio)
        for i in range(size):
            best[i] = np.log(best[i])
        _by_id(best, kept, size, keys, nodes, values, used)
        counts[row] = np.uint64(size)
        used += size
    return used


# -- comparing rows ----------------------------------------------------------------------


@helper
def _ends(offsets: Any, row: Any, size: Any) -> Any:
    """Return where a row begins and ends, or (1, 0) if out of range."""
    begin, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
    return (begin, end) if 0 <= begin <= end <= size else (1, 0)


@helper
def _lists(rows: Any, columns: Any, families: Any, node: Any, nodes: Any) -> Any:
    """Find the columns of a node's entries. Returns uint64[entries, 4] (begin, end, code of the
    entry, bit shift of its family), the number of their holders, or DAMAGED, and the range of
    holders.
    """
    offsets, ids, codes = rows
    starts, holders, _ = columns
    size, used, many, first, last = 0, 0, 0, nodes, 0
    for family in range(families):
        begin, end = _ends(offsets, family * nodes + node, ids.size)
        size += max(end - begin, 0)
    lists, width = np.empty((size, 4), np.uint64), np.int64(starts.size - 1) // families
    for family in range(families):
        begin, end = _ends(offsets, family * nodes + node, ids.size)
        if begin > end:
            return lists, DAMAGED, 0, 0
        for at in range(begin, end):
            if ids[at] >= width:
                return lists, DAMAGED, 0, 0
            low, high = _ends(starts, family * width + np.int64(ids[at]), holders.size)
            if low > high or high - low > nodes:
                return lists, DAMAGED, 0, 0
            if low < high:
                lists[used, 0], lists[used, 1] = np.uint64(low), np.uint64(high)
                lists[used, 2], lists[used, 3] = np.uint64(codes[at]), np.uint64(family) * _HALF
                used += 1
                many += high - low
                first = min(first, np.int64(holders[low]))
                last = max(last, np.int64(holders[high - 1]))
    return lists[:used], many, first, last


@helper
def _add(columns: Any, lists: Any, first: Any, last: Any, common: Any) -> Any:
    """Add what holders share with a row; return whether all are in the range ``first`` to ``last``.
    Runs have a fixed size, so that the compiler unrolls them.
    """
    _, holders, held = columns
    for at in range(lists.shape[0]):
        place, high, code, shift = lists[at, 0], lists[at, 1], lists[at, 2], lists[at, 3]
        while place < high:
            most = np.uint32(holders[place] - first)
            if place + _RUN <= high:
                for i in range(_RUN):
                    most = max(most, np.uint32(holders[place + i] - first))
            if most > last - first:
                return False
            if place + _RUN <= high:
                for i in range(_RUN):
                    term = min(code, np.uint64(held[place + i]))
                    common[holders[place + i]] += term * term << shift
                place += _RUN
            else:
                term = min(code, np.uint64(held[place]))
                common[holders[place]] += term * term << shift
                place += _ONE64
    return True


@helper
def _add_new(columns: Any, lists: Any, last: Any, common: Any, used: Any) -> Any:
    """Like ``_add``, but list nodes with a new sum in ``used``; return their number or DAMAGED."""
    _, holders, held = columns
    count = _ZERO64
    for at in range(lists.shape[0]):
        code, shift = lists[at, 2], lists[at, 3]
        for place in range(lists[at, 0], lists[at, 1]):
            holder, term = np.uint64(holders[place]), min(code, np.uint64(held[place]))
            if holder > last:
                return np.int64(DAMAGED)
            before = common[holder]
            common[holder] = before + (term * term << shift)
            if before == _ZERO64:
                used[count] = np.uint32(holder)
                count += _ONE64
    return np.int64(count)


@helper
def _share(rows: Any, columns: Any, families: Any, node: Any, common: Any, used: Any) -> Any:
    """Compute what all rows share with those of ``node`` in ``common``, 32 bits per family. Returns
    the number of nodes in ``used``, or DAMAGED. If the columns have more entries than their range
    of ids, as for related pages with nearby ids, new sums are not listed; instead, all sums in the
    range are checked at the end.
    """
    nodes = np.int64(common.size)
    lists, many, first, last = _lists(rows, columns, families, node, nodes)
    if many < 0 or last >= nodes:
        return DAMAGED
    if last - first >= many:
        return _add_new(columns, lists, np.uint64(last), common, used)
    if not _add(columns, lists, np.uint32(first), np.uint32(last), common):
        return DAMAGED
    count = 0
    for holder in range(first, last + 1):
        used[count] = np.uint32(holder)
        count += 1 if common[holder] > _ZERO64 else 0
    return count


@helper
def _score(shared: Any, norms: Any, weights: Any, nodes: Any, node: Any, other: Any) -> Any:
    """Return the score of two nodes in grains, from what their rows share."""
    score = 0.0
    for family in range(weights.size):
        common = np.float64(shared >> np.uint64(family) * _HALF & _LOWER)
        if common > 0.0:
            mine, theirs = norms[family * nodes + node], norms[family * nodes + other]
            score += weights[family] * (common / (np.float64(mine) + np.float64(theirs) - common))
    return np.rint(score * GRAINS)


@kernel
def gather(
    rows: tuple[U64s, U32s, U8s],
    columns: tuple[U64s, U32s, U8s],
    counted: tuple[U32s, F64s],
    node: I64,
    room: tuple[OutU64s, OutU32s],
    weight: F64,
    out: tuple[OutF64s2, OutU32s],
    have: I64,
) -> I64:
    """Add ``weight`` times the score of ``node`` with each other node to ``out`` (totals, touched).

    ``rows`` and ``columns`` are (offsets, ids, codes), ``counted`` is (norms uint32[rows], the sum
    of each row; weights float64[families] of one or two families). ``room`` is (common
    uint64[nodes], all 0; used uint32[2 nodes + 1]). Returns the new ``have`` (see
    ``totals.settle_exact``), or DAMAGED.
    """
    common, used = room
    totals, touched = out
    norms, weights = counted
    nodes = np.int64(common.size)
    count = _share(rows, columns, weights.size, node, common, used)
    for i in range(count):
        other = np.int64(used[i])
        shared = common[other]
        common[other] = _ZERO64
        grains = _score(shared, norms, weights, nodes, node, other)
        if other != node and grains != 0.0:
            have = enter(np.uint32(other), weight * grains, 0.0, totals, touched, have)
    return have if count >= 0 else DAMAGED


@helper
def _best(
    common: Any, used: Any, count: Any, norms: Any, weights: Any, node: Any, floor: Any, out: Any
) -> Any:
    """Find the best hits, best first; return their number. Skips low scores without a division."""
    ids, grains = out
    nodes, size, least, both = np.int64(common.size), 0, floor, np.int64(weights.size) - 1
    first, second = weights[0] * GRAINS, weights[both] * np.float64(both) * GRAINS
    mine, mine_too = np.float64(norms[node]), np.float64(norms[both * nodes + node])
    for i in range(count):
        other = np.int64(used[i])
        shared = common[other]
        common[other] = _ZERO64
        here, there = np.float64(shared & _LOWER), np.float64(shared >> _HALF)
        whole = mine + np.float64(norms[other]) - here
        whole_too = mine_too + np.float64(norms[both * nodes + other]) - there
        most = first * here * whole_too + second * there * whole
        if most < (least - 1.0) * whole * whole_too or other == node:
            continue
        score = _score(shared, norms, weights, nodes, node, other)
        if score >= floor:
            size = offer(grains, ids, size, np.uint32(other), score)
            least = grains[0] if size == ids.size else floor
    sort(grains, ids, size)
    return size


@kernel
def answer(
    rows: tuple[U64s, U32s, U8s],
    columns: tuple[U64s, U32s, U8s],
    norms: U32s,
    weights: F64s,
    nodes: U32s,
    floor: F64,
    room: tuple[OutU64s, OutU32s],
    out: tuple[OutU32s, OutU32s2, OutF64s3],
) -> I64:
    """Find the best hits of some ``nodes``, best first; return the number of sums, or DAMAGED.

    Hits have at least ``floor`` grains. ``out`` is (counts uint32[rows], ids uint32[rows, k],
    float64[rows, k, 4]: score, error, low, high); all else is as for ``gather``.
    """
    common, used = room
    counts, ids, hits = out
    touched, grains = 0, np.empty(ids.shape[1])
    for i in range(nodes.size):
        node = np.int64(nodes[i])
        count = _share(rows, columns, weights.size, node, common, used)
        if count < 0:
            return DAMAGED
        touched += count
        best = ids[i], grains
        size = _best(common, used, count, norms, weights, node, floor, best)
        counts[i] = np.uint32(size)
        for j in range(size):
            score = grains[j] / GRAINS
            hits[i, j, 0] = hits[i, j, 2] = hits[i, j, 3] = score
            hits[i, j, 1] = 0.0
    return touched


@kernel
def pair(rows: tuple[U64s, U32s, U8s], norms: U32s, weights: F64s, first: I64, second: I64) -> F64:
    """Return the score of two nodes in grains, equal to that of ``gather``, or DAMAGED."""
    offsets, ids, codes = rows
    nodes, shared = np.int64(norms.size) // weights.size, _ZERO64
    for family in range(weights.size):
        one, other = family * nodes + first, family * nodes + second
        i, end = _ends(offsets, one, ids.size)
        j, last = _ends(offsets, other, ids.size)
        if i > end or j > last:
            return np.float64(DAMAGED)
        common = _ZERO64
        while i < end and j < last:
            if ids[i] == ids[j]:
                least = np.uint64(min(codes[i], codes[j]))
                common += least * least
            step = ids[i] <= ids[j]
            j += 1 if ids[j] <= ids[i] else 0
            i += 1 if step else 0
        shared += common << np.uint64(family) * _HALF
    return _score(shared, norms, weights, nodes, first, second)
