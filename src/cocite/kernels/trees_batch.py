"""Whole answers on fingerprint trees, packed or not, each possibly derived from the previous one.

One call of ``answers`` replaces about forty others, with equal results, and releases the
interpreter lock once. Squares are added up only for hits, from their meeting times, which halves
the memory written. ``carry`` computes only the changes from one node to the next, which saves time
if consecutive nodes meet early, as neighbors on a site do.

Let tau(u, u') = t in a sample. Meeting times are an ultrametric: a node that meets u after step t
meets u' at the same step. So weights change only for nodes that u or u' meets *before* t, and for u
and u':

    v met by u' before t    w(t) -> w(tau(u', v))           u     none -> w(t)
    v met by u before t     w(tau(u, v)) -> w(t)            u'    w(t) -> none,      w(never) = 0

Costs 2 ns per node of changed weight, or 3 per run if packed, and a pass over nodes with a sum.
Source: Fogaras, Racz, *Scaling link-based similarity search*, section 2.1.1; the difference of
two queries is our own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.constants import GRAINS, NEVER, NOWHERE, ONE, UNFINISHED
from cocite.kernels._kernel import helper, kernel
from cocite.kernels._types import *
from cocite.kernels.runs import number_of, rank_of
from cocite.kernels.runs_lookup import BLOCK, SLACK, next_block
from cocite.kernels.runs_lookup import best as packed_best
from cocite.kernels.runs_lookup import meeting_times as packed_times
from cocite.kernels.runs_lookup import outwards as packed_outwards
from cocite.kernels.totals import consider, error_of, sort, tell
from cocite.kernels.trees import best, meeting_times, outwards, position_at

SOUND = -1
TRIED = 4
"""Moves to make before comparing their cost with the savings."""
_PACKED = 6
"""Size of a row of a packed sample."""
_ZERO64 = np.uint64(0)


@helper
def _sum_up(table: Any, node: Any, weights: Any, scratch: Any) -> Any:
    """Add up the next samples; return SOUND, or the index of a sample out of range."""
    sums, used, marks, _, progress = scratch
    if table.shape[1] != _PACKED:
        return outwards(table, node, weights, sums, used, progress, None)
    begin, samples, nodes = np.int64(progress[0]), table.shape[0], sums.size - 1
    some = min(max(1, np.int64(progress[2]) // max(1, nodes)), samples - begin)
    bad = packed_outwards(table[begin : begin + some], node, weights, sums, marks, None)
    progress[0] = np.uint64(begin + some)
    return np.int64(bad if bad == SOUND else begin + bad)


@helper
def _times(table: Any, node: Any, others: Any, times: Any) -> Any:
    if table.shape[1] == _PACKED:
        return packed_times(table, node, others, times)
    return meeting_times(table, node, others, times)


@helper
def _answer(
    table: Any, node: Any, weights: Any, worth: Any, scratch: Any, numbers: Any, ids: Any, out: Any
) -> Any:
    sums, used, marks, eights, progress = scratch
    samples = table.shape[0]
    bad = _sum_up(table, node, weights, scratch)
    if bad != SOUND:
        return bad, 0, 0, 0
    if np.int64(progress[0]) < samples:
        return np.int64(UNFINISHED), 0, 0, 0
    grains, touched = np.empty(ids.size), np.int64(progress[1])
    if table.shape[1] == _PACKED:
        numbered = np.float64(samples), numbers[0]
        hits, touched = packed_best(sums, marks, eights, *numbered, ids, grains)
    else:
        hits = best(sums, used, touched, np.float64(samples), numbers[0], ids, grains)
    if hits == 0:
        return np.int64(SOUND), 0, touched, 0
    times = np.empty((samples, hits), np.uint8)
    bad = _times(table, node, ids[:hits], times)
    if bad != SOUND:
        return bad, 0, 0, 0
    return np.int64(SOUND), hits, touched, tell(times, weights, worth, numbers, grains, out)


@kernel
def answers(
    table: U64s2,
    nodes: U32s,
    weights: U64s2,
    worth: F64s2,
    scratch: tuple[OutU64s, OutU32s, OutU8s, U64s, OutU64s],
    numbers: F64s,
    rows: tuple[OutU32s2, OutF64s3, OutI64s2],
) -> I64:
    """Find the best k hits of some nodes, each with score, standard error and interval.

    ``table`` and ``weights`` are those of ``trees.gather``. ``worth`` float64[2, 256] is the weight
    of each meeting time, and an upper bound on it (walks that have not met may meet later).
    ``scratch`` is sums uint64[nodes], or [nodes + 1] for packed trees, used uint32[2 nodes + 1],
    the marks and eights of packed trees, all zeros before and after, and the ``progress`` of
    ``trees.gather`` with a fourth word, the current row. ``numbers`` float64[7] is (minimum score
    in grains, wealth that rejects a mean, minimum weight, minimum upper bound, maximum weight,
    maximum score in grains, rounding error of sums). ``rows`` has, for each node, ids uint32[k];
    float64[k, 4]: score, standard error, ends of the interval; and int64[3]: number of hits, nodes
    touched, hits with certain ranks.

    Returns SOUND, the index of a sample with values out of range, or UNFINISHED (call again).
    """
    (ids, out, counts), progress = rows, scratch[4]
    while progress[3] < np.uint64(nodes.size):
        row = np.int64(progress[3])
        found, hits, touched, certain = _answer(
            table, nodes[row], weights, worth, scratch, numbers, ids[row], out[row]
        )
        if found != SOUND:
            return found
        counts[row, 0], counts[row, 1], counts[row, 2] = hits, touched, certain
        progress[0] = progress[1] = _ZERO64
        progress[3] += np.uint64(1)
    return np.int64(SOUND)


# -- from one node to the next -----------------------------------------------------------


@helper
def _settle(changes: Any, marks: Any, eights: Any, sums: Any, used: Any, count: Any) -> Any:
    """Add the changes of packed samples to the sums; return how many nodes are listed."""
    nodes = sums.shape[0]
    blocks = (nodes + BLOCK) // BLOCK
    value = square = _ZERO64
    block = next_block(0, blocks, marks, eights)
    while block < blocks:
        marks[block] = np.uint8(0)
        for node in range(block * BLOCK, min((block + 1) * BLOCK, nodes)):
            value += changes[node, 0]
            square += changes[node, 1]
            changes[node, 0] = changes[node, 1] = _ZERO64
            before = sums[node, 0]
            sums[node, 0] = before + value
            sums[node, 1] += square
            used[count] = np.uint32(node)
            count += 1 if before == _ZERO64 and value != _ZERO64 else 0
        block += 1
        if value == _ZERO64 and square == _ZERO64:
            block = next_block(block, blocks, marks, eights)
    changes[nodes, 0] = changes[nodes, 1] = _ZERO64
    return count


@helper
def _move(
    table: Any, old: Any, new: Any, weights: Any, scratch: Any, times: Any, read: Any, count: Any
) -> Any:
    """Turn the sums of ``old`` (NOWHERE if none) into those of ``new``. Returns SOUND, or the
    index of a sample with values out of range, and how many nodes are listed. Additions come before
    subtractions: no sum is 0 in between, so no node is listed twice.
    """
    sums, used, changes, marks, eights = scratch
    if table.shape[1] == _PACKED:
        gained, lost = (times, read[0]), (times, read[1])
        bad = packed_outwards(table, new, weights[0], changes, marks, gained)
        if bad == SOUND and old != NOWHERE:
            bad = packed_outwards(table, old, weights[1], changes, marks, lost)
        if bad != SOUND:
            return np.int64(bad), count
        count = _settle(changes, marks, eights, sums, used, count)
    else:
        progress = np.zeros(3, np.uint64)
        progress[1], progress[2] = np.uint64(count), np.uint64(1 << 62)
        bad = outwards(table, new, weights[0], sums, used, progress, (times, read[0]))
        if bad == SOUND and old != NOWHERE:
            progress[0] = _ZERO64
            bad = outwards(table, old, weights[1], sums, used, progress, (times, read[1]))
        count = np.int64(progress[1])
    if bad == SOUND and old != NOWHERE and sums[new, 0] != _ZERO64:
        used[count] = old
        count += 1
        sums[old, 0], sums[old, 1] = sums[new, 0], sums[new, 1]
        sums[new, 0] = sums[new, 1] = _ZERO64
    return np.int64(bad), count


@helper
def _best(sums: Any, used: Any, count: Any, numbers: Any, ids: Any, grains: Any) -> Any:
    """Do the same as ``trees.best`` without changing the sums; return (hits, nodes with a sum)."""
    samples, floor = numbers
    scale, live = samples * ONE, 0
    size, least = 0, (floor - 1.0) * (scale / GRAINS)
    low = np.uint64(max(1.0, least - SLACK))
    for i in range(count):
        node = used[i]
        total = sums[node, 0]
        used[live] = node
        live += 1 if total != _ZERO64 else 0
        if total >= low and np.float64(total) >= least:
            hit = node, np.float64(total)
            size, least = consider(hit, scale, floor, grains, ids, size, least)
            low = np.uint64(max(1.0, least - SLACK))
    sort(grains, ids, size)
    return size, live


@kernel
def places(table: U64s2, nodes: U32s, out: OutU64s) -> None:
    """Write the nodes' places in the first sample; close nodes are mostly close in all samples."""
    row = table[0]
    for i in range(nodes.size):
        if table.shape[1] == _PACKED:
            rank = rank_of(row[0], np.uint64(nodes[i]))
            out[i] = number_of(row, rank) if rank < row[3] else rank
        else:
            out[i] = np.uint64(position_at(table, 0, nodes[i]))


@kernel
def carry(
    table: U64s2,
    nodes: U32s,
    weights: tuple[U64s3, U64s3],
    floor: F64,
    scratch: tuple[OutU64s2, OutU32s, OutU64s2, OutU8s, U64s],
    rows: tuple[OutU32s2, OutF64s3, OutI64s2],
) -> I64:
    """Do the same as ``answers`` for the first few nodes, while moving costs less than starting
    over.

    ``weights`` is two arrays uint64[17, 16, 2]: the weight of one meeting time minus that of
    another (16 for never), and its square; and the same negated. ``floor`` is the minimum score in
    grains. ``scratch`` is (sums uint64[nodes, 2], used, and the changes, marks and eights of packed
    trees), all zeros before and after. ``rows`` are those of ``answers``, without intervals.

    Returns how many nodes are answered, or -1 minus the index of a sample with values out of range.
    """
    (ids, out, counts), (sums, used, _, _, _) = rows, scratch
    samples, asked = table.shape[0], np.empty(1, np.uint32)
    times, read = np.full((samples, 1), NEVER, np.uint8), np.zeros((2, samples), np.int64)
    anew, grains = np.zeros(samples, np.int64), np.empty(ids.shape[1])
    numbers = np.float64(samples), floor
    count = moved = saved = row = 0
    while row < nodes.size and (row <= TRIED or moved <= saved):
        new = nodes[row]
        old = nodes[row - 1] if row > 0 else NOWHERE
        bad = np.int64(SOUND) if count <= sums.shape[0] else np.int64(0)
        if row > 0 and bad == SOUND:
            asked[0] = new
            bad = _times(table, old, asked, times)
        read[:] = 0
        if bad == SOUND:
            bad, count = _move(table, old, new, weights, scratch, times, read, count)
        if bad != SOUND:
            return -1 - bad
        for sample in range(samples):
            if times[sample, 0] == NEVER:
                anew[sample] = read[0, sample]
            if row > 0:
                moved += read[0, sample] + read[1, sample]
                saved += anew[sample]
        hits, count = _best(sums, used, count, numbers, ids[row], grains)
        for hit in range(hits):
            node = ids[row, hit]
            out[row, hit, 0] = grains[hit] / GRAINS
            out[row, hit, 1] = error_of(sums[node, 0], sums[node, 1], numbers[0])
        counts[row, 0], counts[row, 1] = hits, count
        row += 1
    for i in range(count):
        sums[used[i], 0] = sums[used[i], 1] = _ZERO64
    return row
