"""Queries on packed trees: sums over all relatives of a node, and first meetings with others.

As in ``kernels/trees.py``, with runs instead of places. All nodes of a run get the same weight,
which is added at the two ends of the run:

    changes[first] += w,    changes[last + 1] -= w,       and the sum at v is the total up to v

Weights are integers, so sums equal those of the trees exactly. Marks show which blocks of 16 nodes
contain a change; other blocks are summed up only while the total is not 0.

Costs about 3 ns per run (five places on web graphs with large trees), and, per isolated run, 1 ns
for each of about 20 nodes to sum up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.constants import GRAINS, NEVER, ONE
from cocite.kernels._kernel import helper, kernel
from cocite.kernels._types import *
from cocite.kernels.runs import (
    REST,
    bits_at,
    fetch_begin,
    fetch_number,
    fetch_run,
    inner_of,
    label_of,
    number_of,
    rank_of,
    run_at,
    size_of,
    starts_at,
)
from cocite.kernels.totals import consider, sort
from cocite.kernels.trees import limit_of, meeting_weight

SOUND = DAMAGED = -1
AT_ONCE = 64
"""Samples to prefetch at a time."""
BLOCK = 16
"""Nodes to sum up at a time."""
_ZERO64, _ONE64, _ALL = np.uint64(0), np.uint64(1), np.uint64(2**64 - 1)
_BLOCK, _MARK = np.uint64(4), np.uint8(1)
SLACK = 65536.0
"""Bound on the error of a sum as a float."""


@helper
def _change(changes: Any, first: Any, end: Any, value: Any, square: Any, marks: Any) -> None:
    """Add to all sums from ``first`` to ``end``."""
    if changes.ndim == 1:
        changes[first] += value
        changes[end] -= value
    else:
        changes[first, 0] += value
        changes[first, 1] += square
        changes[end, 0] -= value
        changes[end, 1] -= square
        # Changes that cancel out leave a sum of 0 before an end (``kernels/trees_batch.py``).
        marks[end >> _BLOCK] = _MARK
    marks[first >> _BLOCK] = _MARK


@helper
def _walk(
    row: Any, node: Any, here: Any, limit: Any, weights: Any, changes: Any, marks: Any, right: Any
) -> Any:
    """Walk right or left from ``node`` in run ``here``, to the end of its tree or a label >=
    ``limit``; a label joins its place to the previous one. Returns the number of runs read, or
    DAMAGED.
    """
    address, bits, nodes = row[2], row[4], np.uint64(changes.shape[0] - 1)
    size, mask = bits + REST, (_ONE64 << bits) - _ONE64
    first, rest = run_at(row, here)
    end, label, largest = first + size_of(rest), label_of(rest), _ZERO64
    value = square = _ZERO64
    low, high = (node + _ONE64, end) if right else (first, node)
    if inner_of(rest) != _ZERO64 and low < high:
        largest = inner_of(rest)
        if largest >= limit:
            return np.int64(1)
        value, square = meeting_weight(weights, limit, largest)
        _change(changes, low, high, value, square, marks)
    at, stop = here * size, row[3] * size
    while True:
        if right:
            at += size
            if at >= stop:
                break
        else:
            if label == _ZERO64 or label >= limit:
                break
            if at == _ZERO64:
                return np.int64(DAMAGED)
            at -= size
        word = bits_at(address, at)
        first, rest = word & mask, word >> bits
        end = first + size_of(rest)
        if right:
            label = label_of(rest)
            if label == _ZERO64 or label >= limit:
                break
        if end > nodes:
            return np.int64(DAMAGED)
        if label > largest:
            largest = label
            value, square = meeting_weight(weights, limit, label)
        if inner_of(rest) > largest:
            nearest = first if right else end - _ONE64
            _change(changes, nearest, nearest + _ONE64, value, square, marks)
            first, end = (first + _ONE64, end) if right else (first, nearest)
            largest = inner_of(rest)
            if largest >= limit:
                break
            value, square = meeting_weight(weights, limit, largest)
        _change(changes, first, end, value, square, marks)
        if not right:
            label = label_of(rest)
    return np.int64(at // size - here) if right else np.int64(here - at // size)


@helper
def outwards(table: Any, node: Any, weights: Any, changes: Any, marks: Any, carried: Any) -> Any:
    """Like ``trees.outwards``, but on runs; return SOUND, or the index of an invalid sample."""
    nodes, samples, node = np.uint64(changes.shape[0] - 1), table.shape[0], np.uint64(node)
    found = np.empty(AT_ONCE, np.uint64)
    for begin in range(0, samples, AT_ONCE):
        stop = min(begin + AT_ONCE, samples)
        for sample in range(begin, stop):
            fetch_begin(table[sample], node)
        for sample in range(begin, stop):
            row = table[sample]
            rank = rank_of(row[0], node)
            if rank >= row[3]:
                return sample
            found[sample - begin] = rank
            fetch_number(row, rank)
        for sample in range(begin, stop):
            row = table[sample]
            here = number_of(row, found[sample - begin])
            if here >= row[3]:
                return sample
            found[sample - begin] = here
            fetch_run(row, here)
        for sample in range(begin, stop):
            row, here, limit = table[sample], found[sample - begin], limit_of(carried, sample)
            first, rest = run_at(row, here)
            if node < first or node >= first + size_of(rest) or first + size_of(rest) > nodes:
                return sample
            if limit == _ONE64:
                continue
            rights = _walk(row, node, here, limit, weights, changes, marks, True)
            lefts = _walk(row, node, here, limit, weights, changes, marks, False)
            if rights == DAMAGED or lefts == DAMAGED:
                return sample
            if carried is not None:
                carried[1][sample] = rights + lefts
    return SOUND


@kernel
def spread(table: U64s2, node: U32, weights: U64s2, changes: OutU64s2, marks: OutU8s) -> I64:
    """Add the weights of all relatives of ``node`` over the samples of ``table``.

    ``weights`` uint64[16, 2] is the weight of each meeting time, never 0, and its square;
    ``changes`` uint64[nodes + 1, 2] receives both for ``collect``, and ``marks``
    uint8[nodes / 16 + 1] the blocks where runs begin. Returns SOUND, or the index of a sample with
    values out of range.
    """
    return outwards(table, node, weights, changes, marks, None)


@helper
def next_block(block: Any, blocks: Any, marks: Any, eights: Any) -> Any:
    """Return the first marked block from ``block`` on, or ``blocks``."""
    while block < blocks:
        if block & 7 == 0 and eights[block >> 3] == _ZERO64:
            block += 8
        elif marks[block] == np.uint8(0):
            block += 1
        else:
            return block
    return blocks


@kernel
def collect(changes: OutU64s2, marks: OutU8s, eights: U64s, used: OutU32s) -> I64:
    """Turn ``changes`` into sums, and list the nodes with sums in ``used``; return their number.
    Resets ``marks`` and the last row of ``changes``; ``eights`` are the marks as uint64.
    """
    nodes, count = changes.shape[0] - 1, 0
    blocks = (nodes + BLOCK) // BLOCK
    value = square = _ZERO64
    block = next_block(0, blocks, marks, eights)
    while block < blocks:
        marks[block] = np.uint8(0)
        for node in range(block * BLOCK, min((block + 1) * BLOCK, nodes)):
            value += changes[node, 0]
            square += changes[node, 1]
            changes[node, 0], changes[node, 1] = value, square
            used[count] = np.uint32(node)
            count += 1 if value != _ZERO64 else 0
        block += 1
        if value == _ZERO64:
            block = next_block(block, blocks, marks, eights)
    changes[nodes, 0] = changes[nodes, 1] = _ZERO64
    return count


@helper
def _fetch(table: Any, sample: Any, asked: Any, ranks: Any) -> Any:
    """Prefetch run numbers of ``sample``, and the next directory; return if ``sample`` is valid."""
    samples = table.shape[0]
    if sample + 1 < samples:
        for i in range(asked.size):
            fetch_begin(table[sample + 1], asked[i])
    if sample < 0 or sample >= samples:
        return True
    row = table[sample]
    for i in range(asked.size):
        rank = rank_of(row[0], asked[i])
        if rank >= row[3]:
            return False
        ranks[sample & 1, i] = rank
        fetch_number(row, rank)
    return True


@helper
def _turns(row: Any, node: Any, here: Any, last: Any, turns: Any, right: Any) -> Any:
    """Walk right or left from ``node`` in run ``here``, up to run ``last`` or the edge of the tree.
    Each row of ``turns`` uint64[16, 2] is a position where the largest label changes, and the new
    label. A position is twice the number of a run, plus 1 at its second place from the left or,
    walking left, at its last place. Returns the number of rows, and the last run.
    """
    count, largest = 0, _ZERO64
    first, rest = run_at(row, here)
    label = label_of(rest)
    beyond = node + _ONE64 < first + size_of(rest) if right else node > first
    if inner_of(rest) != _ZERO64 and beyond:
        largest = inner_of(rest)
        turns[0, 0], turns[0, 1], count = _ZERO64 if right else _ALL, largest, 1
    at = here
    while at != last:
        if right:
            _, rest = run_at(row, at + _ONE64)
            label = label_of(rest)
        if label == _ZERO64:
            break
        at = at + _ONE64 if right else at - _ONE64
        if not right:
            _, rest = run_at(row, at)
        if label > largest:
            largest = label
            turns[count, 0] = (at << _ONE64) | (_ZERO64 if right else _ONE64)
            turns[count, 1] = largest
            count += 1
        if inner_of(rest) > largest:
            largest = inner_of(rest)
            turns[count, 0] = (at << _ONE64) | (_ONE64 if right else _ZERO64)
            turns[count, 1] = largest
            count += 1
        label = label_of(rest)
    return count, at


@helper
def _report(row: Any, here: Any, run: Any, other: Any, turns: Any, rights: Any, lefts: Any) -> Any:
    """Return tau of a node and ``other``, in ``run``, from the turns on both sides; 0 for never."""
    tau, turn = _ZERO64, 0
    if run > here:
        place = (run << _ONE64) | (_ONE64 - starts_at(row[0], other))
        while turn < rights and turns[0, turn, 0] <= place:
            tau = turns[0, turn, 1]
            turn += 1
    else:
        place = (run << _ONE64) | starts_at(row[0], other + _ONE64)
        while turn < lefts and turns[1, turn, 0] >= place:
            tau = turns[1, turn, 1]
            turn += 1
    return tau


@kernel
def meeting_times(table: U64s2, node: U32, others: U32s, out: OutU8s2) -> I64:
    """Compute tau(node, other) or NEVER in every sample. ``others`` is uint32[h], ``out``
    uint8[samples, h]. Returns SOUND, or the index of a sample with values out of range.
    """
    samples, hits = table.shape[0], others.size
    asked, runs = np.empty(hits + 1, np.uint64), np.empty(hits + 1, np.uint64)
    asked[hits] = node
    for i in range(hits):  # assigning a slice would need Numba's runtime
        asked[i] = others[i]
    ranks, turns = np.empty((2, hits + 1), np.uint64), np.empty((2, 16, 2), np.uint64)
    _fetch(table, -1, asked, ranks)
    if not _fetch(table, 0, asked, ranks):
        return 0
    for sample in range(samples):
        if not _fetch(table, sample + 1, asked, ranks):
            return sample + 1
        row = table[sample]
        first, last = _ALL, _ZERO64
        for i in range(hits + 1):
            run = number_of(row, ranks[sample & 1, i])
            if run >= row[3]:
                return sample
            runs[i] = run
            first, last = min(first, run), max(last, run)
        here = runs[hits]
        own = inner_of(run_at(row, here)[1])
        rights, last = _turns(row, asked[hits], here, last, turns[0], True)
        lefts, first = _turns(row, asked[hits], here, first, turns[1], False)
        for i in range(hits):
            run, tau = runs[i], _ZERO64
            if run == here:
                tau = own
            elif first <= run <= last:
                tau = _report(row, here, run, asked[i], turns, rights, lefts)
            out[sample, i] = NEVER if tau == _ZERO64 else np.uint8(tau)
    return SOUND


@kernel
def best(
    changes: OutU64s,
    marks: OutU8s,
    eights: U64s,
    samples: F64,
    floor: F64,
    ids: OutU32s,
    grains: OutF64s,
) -> tuple[I64, I64]:
    """Find the best sums, best first, like ``settle`` and ``top``, and reset the scratch. Fills
    ``ids`` uint32[k] and ``grains`` float64[k]; returns their number, and the number of nodes
    summed up.
    """
    scale = samples * ONE
    size, least = 0, (floor - 1.0) * (scale / GRAINS)
    # Smaller sums cannot be hits; at least 1, because 0 means no sum.
    low = np.uint64(max(1.0, least - SLACK))
    nodes, total, touched = changes.size - 1, _ZERO64, 0
    blocks = (nodes + BLOCK) // BLOCK
    block = next_block(0, blocks, marks, eights)
    while block < blocks:
        marks[block] = np.uint8(0)
        touched += BLOCK
        for node in range(block * BLOCK, min((block + 1) * BLOCK, nodes)):
            total += changes[node]
            changes[node] = _ZERO64
            if total >= low and np.float64(total) >= least:
                hit = np.uint32(node), np.float64(total)
                size, least = consider(hit, scale, floor, grains, ids, size, least)
                low = np.uint64(max(1.0, least - SLACK))
        block += 1
        if total == _ZERO64:
            block = next_block(block, blocks, marks, eights)
    changes[nodes] = _ZERO64
    sort(grains, ids, size)
    return size, touched
