"""The nodes related to many, on fingerprint trees: from one node to the next, only what changes.

Let tau(u, u') = t in a sample. Meeting times are an ultrametric: who meets u after step t meets u'
at the same step. Only nodes met *before* t, by u or by u', change their value, and the two:

    v with tau(u', v) < t    w(t) -> w(tau(u', v))        u     none -> w(t)
    v with tau(u, v) < t     w(tau(u, v)) -> w(t)         u'    w(t) -> none

Values are whole numbers, so sums are those of ``trees.gather``, to the bit. Sums begin anew where
moves change more than there is to gather. A node is looked at only if its sum reaches what the k
best of u have now, and the k best looked at before. ``table`` is that of ``kernels/trees.py``, or
packed (``kernels/runs.py``). Cost: two balls a sample, 2 ns a member, and a look at each sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.constants import GRAINS, NOWHERE, ONE
from cocite.kernels._kernel import helper, kernel, word_at
from cocite.kernels._types import *
from cocite.kernels.runs import inner_of, label_of, number_of, rank_of, run_at, size_of, starts_at
from cocite.kernels.totals import estimate, top
from cocite.kernels.trees import label_at

UNMET = 16
"""The meeting time of walks that do not meet: above all labels, and its weight is 0."""

SOUND = _DAMAGED = -1
_PACKED = 6
"""Numbers in a row of a packed sample."""
_ZERO32, _ONE32, _UNMET32 = np.uint32(0), np.uint32(1), np.uint32(UNMET)
_ZERO64, _ONE64, _MINUS64 = np.uint64(0), np.uint64(1), np.uint64(2**64 - 1)
_UNMET64 = np.uint64(UNMET)
_SLACK = 2 * ONE / GRAINS
"""Two grains: means that differ by more have scores that differ."""
_NEWS = 1 / 16
"""How much the last move counts in what a move usually takes."""
_HOPE = 1 / 256
"""By how much that falls when the sums begin anew, so that moving is tried again now and then."""


@helper
def _run_of(row: Any, node: Any) -> Any:
    """The number of the run that a node is in; how many there are if that is damaged."""
    rank = rank_of(row[0], node)
    if rank >= row[3]:
        return row[3]
    run = number_of(row, rank)
    return run if run < row[3] else row[3]


@helper
def _meet_packed(row: Any, first: Any, second: Any) -> Any:
    """tau(first, second) in a sample, 16 if none, 255 if the sample is damaged."""
    low, high = np.uint64(first), np.uint64(second)
    run, last = _run_of(row, low), _run_of(row, high)
    if run >= row[3] or last >= row[3]:
        return np.uint8(255)
    if run == last:
        own = inner_of(run_at(row, run)[1])
        return np.uint8(_UNMET64 if own == _ZERO64 else own)
    if run > last:
        low, high, run, last = high, low, last, run
    largest = _ZERO64
    if starts_at(row[0], low + _ONE64) == _ZERO64:
        largest = inner_of(run_at(row, run)[1])
    while run < last:
        run += _ONE64
        _, rest = run_at(row, run)
        if label_of(rest) == _ZERO64:
            return np.uint8(_UNMET64)
        largest = max(largest, label_of(rest))
        if run < last or starts_at(row[0], high) == _ZERO64:
            largest = max(largest, inner_of(rest))
    return np.uint8(largest)


@helper
def _add_run(
    first: Any, end: Any, label: Any, change: Any, sums: Any, used: Any, count: Any
) -> Any:
    """Change the sums from ``first`` on, before ``end``, whom walks meet at step ``label``; returns
    how many are listed. ``change`` is the weights, what is taken off them, and the sign.
    """
    weights, limit, sign = change
    more = sign * (weights[label, 0] - weights[limit, 0])
    squares = sign * (weights[label, 1] - weights[limit, 1])
    for step in range(end - first):
        node = first + np.uint64(step)
        before = sums[node, 0]
        used[count] = np.uint32(node)
        sums[node, 0] = before + more
        sums[node, 1] += squares
        count += 1 if before == _ZERO64 else 0
    return count


@helper
def _change_right(
    row: Any, node: Any, here: Any, change: Any, sums: Any, used: Any, count: Any
) -> Any:
    """To the right of ``node`` in run ``here``; returns how many are listed, -1 if the sample is
    damaged, and how many those were.
    """
    _, limit, _ = change
    nodes, at, met = np.uint64(sums.shape[0]), here, 0
    first, rest = run_at(row, here)
    end, largest = first + size_of(rest), _ZERO64
    if node + _ONE64 < end:
        largest = inner_of(rest)
        if largest == _ZERO64 or largest >= limit:
            return count, met
        count = _add_run(node + _ONE64, end, largest, change, sums, used, count)
        met = np.int64(end - node) - 1
    while at + _ONE64 < row[3]:
        at += _ONE64
        first, rest = run_at(row, at)
        end, label, inner = first + size_of(rest), label_of(rest), inner_of(rest)
        if label == _ZERO64 or label >= limit:
            break
        if end > nodes or count > np.int64(nodes):
            return np.int64(_DAMAGED), met
        largest = max(largest, label)
        if inner > largest:
            count = _add_run(first, first + _ONE64, largest, change, sums, used, count)
            met, first, largest = met + 1, first + _ONE64, inner
            if inner >= limit:
                break
        count = _add_run(first, end, largest, change, sums, used, count)
        met += np.int64(end - first)
    return count, met


@helper
def _change_left(
    row: Any, node: Any, here: Any, change: Any, sums: Any, used: Any, count: Any
) -> Any:
    """The same to the left: a label joins its place to the one before it."""
    _, limit, _ = change
    nodes, at, met = np.uint64(sums.shape[0]), here, 0
    first, rest = run_at(row, here)
    label, largest = label_of(rest), _ZERO64
    if node > first:
        if count > np.int64(nodes):
            return np.int64(_DAMAGED), met
        largest = inner_of(rest)
        if largest == _ZERO64 or largest >= limit:
            return count, met
        count = _add_run(first, node, largest, change, sums, used, count)
        met = np.int64(node - first)
    while label != _ZERO64 and label < limit:
        if at == _ZERO64:
            return np.int64(_DAMAGED), met
        at -= _ONE64
        first, rest = run_at(row, at)
        end, inner = first + size_of(rest), inner_of(rest)
        if end > nodes or count > np.int64(nodes):
            return np.int64(_DAMAGED), met
        largest = max(largest, label)
        if inner > largest:
            count = _add_run(end - _ONE64, end, largest, change, sums, used, count)
            met, end, largest = met + 1, end - _ONE64, inner
            if inner >= limit:
                break
        count = _add_run(first, end, largest, change, sums, used, count)
        met += np.int64(end - first)
        label = label_of(rest)
    return count, met


@helper
def _change_packed(
    row: Any, node: Any, limit: Any, sign: Any, weights: Any, sums: Any, used: Any, count: Any
) -> Any:
    """Add ``sign`` * (w(tau) - w(limit)) to all whom ``node`` meets before step ``limit``.

    Returns how many are listed, or -1 if the sample is damaged, and how many those were.
    """
    if limit == _ONE32:
        return count, 0
    node, nodes = np.uint64(node), np.uint64(sums.shape[0])
    here = _run_of(row, node)
    if here >= row[3]:
        return np.int64(_DAMAGED), 0
    first, rest = run_at(row, here)
    end = first + size_of(rest)
    if node < first or node >= end or end > nodes or count > np.int64(nodes):
        return np.int64(_DAMAGED), 0
    change = weights, np.uint64(limit), sign
    count, met = _change_right(row, node, here, change, sums, used, count)
    if count == _DAMAGED:
        return count, met
    count, more = _change_left(row, node, here, change, sums, used, count)
    return count, met + more


@helper
def _meet(sample: Any, first: Any, second: Any) -> Any:
    """tau(first, second) in a sample, UNMET if none, 255 if the sample is damaged."""
    if sample.size == _PACKED:
        return _meet_packed(sample, first, second)
    low = word_at(sample[0], np.uint64(first))
    high = word_at(sample[0], np.uint64(second))
    if low == NOWHERE or high == NOWHERE:
        return np.uint8(UNMET)
    if low > high:
        low, high = high, low
    if high >= np.uint32(sample[3]):
        return np.uint8(255)
    largest = _ZERO32
    place = np.uint32(low + _ONE32)
    while place <= high:
        label = label_at(sample[2], place)
        if label == _ZERO32:
            return np.uint8(UNMET)
        largest = max(largest, label)
        place = np.uint32(place + _ONE32)
    return np.uint8(largest)


@helper
def _add(node: Any, value: Any, square: Any, sums: Any, used: Any, count: Any) -> Any:
    """Change one node's sums; returns how many are listed. No branch: none could be foreseen."""
    before = sums[node, 0]
    used[count] = node
    sums[node, 0] = before + value
    sums[node, 1] += square
    return count + (1 if before == _ZERO64 else 0)


@helper
def _change(
    sample: Any, node: Any, limit: Any, sign: Any, weights: Any, sums: Any, used: Any, count: Any
) -> Any:
    """Add ``sign`` * (w(tau) - w(limit)) to all whom ``node`` meets before step ``limit``.

    Returns how many are listed, or _DAMAGED, and how many those were.
    """
    if sample.size == _PACKED:
        return _change_packed(sample, node, limit, sign, weights, sums, used, np.int64(count))
    place = word_at(sample[0], np.uint64(node))
    end = np.uint32(sample[3])
    if limit == _ONE32 or place == NOWHERE:
        return count, 0
    nodes = np.uint32(sums.shape[0])
    if place >= end or end > nodes or count > nodes:
        return _DAMAGED, 0
    value, square = weights[limit, 0], weights[limit, 1]
    largest, at = _ZERO32, place
    while True:
        label = label_at(sample[2], at)
        if label == _ZERO32 or label >= limit:
            break
        if at == _ZERO32:
            return _DAMAGED, 0
        largest = max(largest, label)
        at = np.uint32(at - _ONE32)
        member = word_at(sample[1], np.uint64(at))
        if member >= nodes:
            return _DAMAGED, 0
        more, squares = weights[largest, 0] - value, weights[largest, 1] - square
        count = _add(member, sign * more, sign * squares, sums, used, count)
    begin = at
    largest, at = _ZERO32, np.uint32(place + _ONE32)
    while at < end:
        label = label_at(sample[2], at)
        if label == _ZERO32 or label >= limit:
            break
        largest = max(largest, label)
        member = word_at(sample[1], np.uint64(at))
        if member >= nodes:
            return _DAMAGED, 0
        more, squares = weights[largest, 0] - value, weights[largest, 1] - square
        count = _add(member, sign * more, sign * squares, sums, used, count)
        at = np.uint32(at + _ONE32)
    return count, np.int64(at) - np.int64(begin) - 1


@helper
def _move(
    table: Any, old: Any, new: Any, weights: Any, state: Any, sums: Any, used: Any, count: Any
) -> Any:
    """Make the sums those of ``new`` where they were those of ``old``, NOWHERE for none.

    All that is added comes before all that is taken away: no sum is 0 in between, so that no node
    is listed twice. ``state`` int64[samples, 2] receives when the two meet, and how many ``new``
    meets at all. Returns how many are listed, or -1 - the number of a damaged sample, and how many
    sums were changed.
    """
    value = square = _ZERO64
    changed = 0
    for sample in range(table.shape[0]):
        time = np.uint8(UNMET)
        if old != NOWHERE:
            time = _meet(table[sample], old, new)
            if time > UNMET:
                return -1 - sample, 0
        value += weights[time, 0]
        square += weights[time, 1]
        limit = np.uint32(time)
        count, met = _change(table[sample], new, limit, _ONE64, weights, sums, used, count)
        if count == _DAMAGED:
            return -1 - sample, 0
        changed += met
        state[sample, 0] = time
        if time == UNMET:
            state[sample, 1] = met
    if old == NOWHERE:
        return count, changed
    if value != _ZERO64:
        count = _add(old, value, square, sums, used, count)
    for sample in range(table.shape[0]):
        limit = np.uint32(state[sample, 0])
        listed, met = _change(table[sample], old, limit, _MINUS64, weights, sums, used, count)
        if listed == _DAMAGED:
            return -1 - sample, 0
        changed += met
    sums[new, 0] -= value
    sums[new, 1] -= square
    return count, changed


@helper
def _clear(sums: Any, used: Any, count: Any) -> None:
    for i in range(count):
        sums[used[i], 0] = sums[used[i], 1] = _ZERO64


@helper
def _known(since: Any, first: Any, second: Any, samples: Any) -> Any:
    """How many of so many samples know two nodes."""
    if since.size == 0:
        return samples
    return samples - np.float64(max(since[first], since[second]))


@helper
def _mean(sums: Any, since: Any, node: Any, new: Any, samples: Any) -> Any:
    return np.float64(sums[node, 0]) / _known(since, node, new, samples)


@helper
def _reached(ids: Any, sums: Any, who: Any, old: Any, new: Any, samples: Any) -> Any:
    """The least mean that k nodes have now: the best ``ids`` of ``old``, itself for ``new``."""
    allowed, since = who
    least = np.inf
    for i in range(ids.size):
        node = ids[i]
        if node == NOWHERE:
            return 0.0
        if node == new:
            node = old
            if allowed.size and not allowed[node]:
                return 0.0
        least = min(least, _mean(sums, since, node, new, samples))
    return least


@helper
def _raised(heap: Any, size: Any, mean: Any) -> Any:
    """Add a mean to the k largest, the least on top, if it is one; returns how many there are."""
    if size < heap.size:
        at = size
        heap[at] = mean
        while at > 0 and heap[at] < heap[(at - 1) // 2]:
            heap[at], heap[(at - 1) // 2] = heap[(at - 1) // 2], heap[at]
            at = (at - 1) // 2
        return size + 1
    if mean > heap[0]:
        heap[0] = mean
        at = 0
        while True:
            child = 2 * at + 1
            if child >= size:
                break
            if child + 1 < size and heap[child + 1] < heap[child]:
                child += 1
            if heap[child] >= heap[at]:
                break
            heap[at], heap[child] = heap[child], heap[at]
            at = child
    return size


@kernel
def related_many(
    table: U64s2,
    weights: U64s2,
    nodes: U32s,
    floor: F64,
    who: tuple[Bools, U32s],
    scratch: tuple[OutU64s2, OutU32s, OutF64s2, OutU32s],
    ids: OutU32s2,
    best: OutF64s3,
) -> I64:
    """The best k of each of ``nodes``, as ``totals.top`` has them for one.

    ``weights`` uint64[17, 2] are those of ``trees.gather``, and 0 for UNMET; ``nodes`` are
    different uint32, fastest where neighbors in the list are neighbors in trees; ``floor`` is the
    least score in grains. ``who`` is two arrays: ``allowed`` bool[nodes of the graph] says who may
    be a hit, all if it is empty; ``since`` uint32[nodes of the graph] how many samples, the first
    ones, do not know a node, none if it is empty. ``scratch`` is (sums, used, totals, touched) of
    ``index/layouts/reader.py``, all zero before and after. ``ids`` uint32[len(nodes), k] and
    ``best`` float64[len(nodes), k, 2] (grains, variance) receive the hits; ``ids`` is NOWHERE
    behind the last. Returns SOUND, or the number of a sample that points outside of itself.
    """
    allowed, since = who
    sums, used, totals, touched = scratch
    samples = float(table.shape[0])
    lowest = floor * (ONE / GRAINS)
    state = np.zeros((table.shape[0], 2), np.int64)
    heap = np.empty(ids.shape[1], np.float64)
    count, old, usual = 0, NOWHERE, 0.0
    for i in range(nodes.size):
        new = nodes[i]
        if usual <= state[:, 1].sum():
            count, changed = _move(table, old, new, weights, state, sums, used, count)
            usual += _NEWS * (changed - usual) if i > 0 else 0.0
        else:
            _clear(sums, used, count)
            count, changed = _move(table, NOWHERE, new, weights, state, sums, used, 0)
            usual -= _HOPE * usual
        if count < 0:
            return -1 - count
        least = lowest
        if i > 0:
            least = max(least, _reached(ids[i - 1], sums, who, old, new, samples))
        least -= _SLACK
        if count > sums.shape[0]:
            return 0
        live = have = high = 0
        for j in range(count):
            node = used[j]
            total = sums[node, 0]
            if total == _ZERO64:
                continue
            used[live] = node
            live += 1
            known = _known(since, node, new, samples)
            if np.float64(total) < least * known or (allowed.size and not allowed[node]):
                continue
            grains, variance = estimate(total, sums[node, 1], known)
            if grains != 0.0:
                high = _raised(heap, high, np.float64(total) / known)
                if high == heap.size:
                    least = max(least, heap[0] - _SLACK)
                totals[node, 0], totals[node, 1] = grains, variance
                touched[have] = node
                have += 1
        count = live
        found = top(totals, touched, have, floor, ids[i], best[i])
        ids[i, found:] = NOWHERE
        old = new
    _clear(sums, used, count)
    return SOUND
