"""A whole answer from fingerprint trees: the best hits, their intervals, how many are certain.

One call does what takes some forty otherwise, and all comes out the same to the bit. It gives the
interpreter's lock away once: threads of a server that hand it over forty times an answer do little
else. What is done is ``gather`` (``trees_lookup.py``), ``settle`` and ``top`` (``totals.py``),
``meeting_times``, and bets on what samples say (``betting.py``); between them stands what
``query/answers.py`` and ``query/confidence.py`` do with arrays: that is what to read.

Two things are cheaper here. Squares are not added up for every node that is touched, but for the
hits alone, from their meeting times, which intervals need anyway: half as much memory is changed.
And a sum becomes a score only if it may be among the best k: grains are rounded, so one that is a
grain below the last of these cannot.

Cost: that of the kernels, two thirds of it for ``gather``; 17 bytes a sample and hit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.codes import GRAINS, NEVER, NOWHERE, ONE
from cocite.kernels._jit import helper, kernel, prefetch_at, word_at
from cocite.kernels.betting import ordered_ends
from cocite.kernels.totals import estimate
from cocite.kernels.trees_lookup import AT_ONCE, SOUND, fetch_places, label_at, meeting_times

__all__ = ["answer"]

_FEW = 4
"""Hits whose order is looked at first; then twice as many at a time."""
_DECIMALS = 1e12
_ZERO32, _ONE32, _THREE32 = np.uint32(0), np.uint32(1), np.uint32(3)
_ZERO64, _ONE64 = np.uint64(0), np.uint64(1)


@helper
def _add(member: Any, value: Any, sums: Any, used: Any, count: Any) -> Any:
    before = sums[member]
    used[count] = member
    sums[member] = before + value
    return count + (_ONE64 if before == _ZERO64 else _ZERO64)


@kernel
def _gather(table: Any, node: Any, weights: Any, sums: Any, used: Any) -> Any:
    """As ``trees_lookup.gather``, without squares: ``sums`` uint64[nodes]."""
    nodes, samples = np.uint32(sums.size), table.shape[0]
    count, value = _ZERO64, _ZERO64
    fetch_places(table, 0, min(AT_ONCE, samples), node)
    for begin in range(0, samples, AT_ONCE):
        stop = min(begin + AT_ONCE, samples)
        for sample in range(begin, stop):
            place = word_at(table[sample, 0], np.uint64(node))
            if place != NOWHERE:
                prefetch_at(table[sample, 1], np.uint64(place))
                prefetch_at(table[sample, 2], np.uint64(place >> _THREE32))
        fetch_places(table, stop, min(stop + AT_ONCE, samples), node)
        for sample in range(begin, stop):
            place = word_at(table[sample, 0], np.uint64(node))
            if place == NOWHERE:
                continue
            members, labels = table[sample, 1], table[sample, 2]
            end = np.uint32(table[sample, 3])
            if place >= end or end > nodes or count > np.uint64(nodes):
                return np.int64(-1 - sample)
            largest, at = _ZERO32, place
            while True:
                label = label_at(labels, at)
                if label == _ZERO32:
                    break
                if at == _ZERO32:
                    return np.int64(-1 - sample)
                if label > largest:
                    largest = label
                    value = weights[label, 0]
                at = np.uint32(at - _ONE32)
                member = word_at(members, np.uint64(at))
                if member >= nodes:
                    return np.int64(-1 - sample)
                count = _add(member, value, sums, used, count)
            largest, at = _ZERO32, np.uint32(place + _ONE32)
            while at < end:
                label = label_at(labels, at)
                if label == _ZERO32:
                    break
                if label > largest:
                    largest = label
                    value = weights[label, 0]
                member = word_at(members, np.uint64(at))
                if member >= nodes:
                    return np.int64(-1 - sample)
                count = _add(member, value, sums, used, count)
                at = np.uint32(at + _ONE32)
    return np.int64(count)


@helper
def _worse(grains: Any, ids: Any, first: Any, second: Any) -> Any:
    """Whether the hit at a place comes after another: lower score, or equal and higher id."""
    if grains[first] != grains[second]:
        return grains[first] < grains[second]
    return ids[first] > ids[second]


@helper
def _swap(grains: Any, ids: Any, first: Any, second: Any) -> None:
    grains[first], grains[second] = grains[second], grains[first]
    ids[first], ids[second] = ids[second], ids[first]


@helper
def _sink(grains: Any, ids: Any, size: Any) -> None:
    """Restore the heap, last hit on top, after its top was replaced."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and _worse(grains, ids, child + 1, child):
            child += 1
        if not _worse(grains, ids, child, at):
            return
        _swap(grains, ids, child, at)
        at = child


@kernel
def _best(sums: Any, used: Any, count: Any, samples: Any, floor: Any, ids: Any, grains: Any) -> Any:
    """The best of some sums, best first, as ``settle`` and ``top`` pick them: ``ids`` uint32[k] and
    ``grains`` float64[k]. Sets the sums back to 0; returns how many there are.
    """
    scale = samples * ONE
    grain, size, least = scale / GRAINS, 0, (floor - 1.0) * (scale / GRAINS)
    for i in range(count):
        node = used[i]
        total = np.float64(sums[node])
        sums[node] = _ZERO64
        if total < least:
            continue
        score = np.rint(total * (GRAINS / scale))
        if score < floor:
            continue
        if size < ids.size:
            at = size
            ids[at], grains[at] = node, score
            size += 1
            while at > 0 and _worse(grains, ids, at, (at - 1) // 2):
                _swap(grains, ids, at, (at - 1) // 2)
                at = (at - 1) // 2
        elif score > grains[0] or (score == grains[0] and node < ids[0]):
            ids[0], grains[0] = node, score
            _sink(grains, ids, size)
        if size == ids.size:
            least = (grains[0] - 1.0) * grain
    for left in range(size - 1, 0, -1):
        _swap(grains, ids, 0, left)
        _sink(grains, ids, left)
    return size


@helper
def _error(times: Any, weights: Any, hit: Any) -> Any:
    """The standard error of a hit."""
    total, squares = _ZERO64, _ZERO64
    for sample in range(times.shape[0]):
        time = times[sample, hit]
        if time != NEVER:
            total += weights[time, 0]
            squares += weights[time, 1]
    _, variance = estimate(total, squares, np.float64(times.shape[0]))
    return np.rint(np.sqrt(variance) * _DECIMALS) / _DECIMALS


@helper
def _values(times: Any, worth: Any, values: Any) -> None:
    """What meeting is worth in every sample."""
    for sample in range(times.shape[0]):
        for hit in range(times.shape[1]):
            values[sample, hit] = worth[times[sample, hit]]


@kernel
def _bet(values: Any, first: Any, last: Any, level: Any, ends: Any, means: Any) -> None:
    """As ``confidence._bet``; where all values are one, that is the end."""
    ends[:] = first
    means[:] = first
    if last != first:
        ordered_ends(values, first, last - first, level, ends, means)


@helper
def _certain(values: Any, most: Any, numbers: Any) -> Any:
    """As ``confidence.leading_certain``: how many of the first stand in their order for certain."""
    samples, hits = values.shape
    level, low, beyond, high = numbers[1], numbers[2], numbers[3], numbers[4]
    begin = 0
    while begin < hits - 1:
        end = min(hits, 2 * begin + _FEW)
        width = end - begin - 1
        apart, ends, means = np.empty((samples, width)), np.empty(width), np.empty(width)
        for sample in range(samples):
            for step in range(width):
                at = begin + step
                apart[sample, step] = values[sample, at] - most[sample, at + 1]
        _bet(apart, low - high, high - beyond, level, ends, means)
        for step in range(width):
            if not means[step] - ((means[step] - ends[step]) + numbers[6]) > 0.0:
                return begin + step
        begin = end - 1
    return begin


@kernel
def answer(
    table: Any, node: Any, weights: Any, worth: Any, scratch: Any, numbers: Any, ids: Any, out: Any
) -> Any:
    """The best k of ``node``, each with score, standard error and interval.

    ``table`` and ``weights`` are those of ``gather``; ``worth`` float64[2, 256] is by meeting time
    what it is worth, and what it may stand for at most; ``scratch`` is uint64[nodes], zeros before
    and after, and uint32[2 nodes + 1]. ``numbers`` float64[7]: the least score in grains, the
    wealth that gives up a mean, the least value, the least that it can stand for, the most, the
    most that a score can be, in grains, and what sums of values may be off by. ``ids`` uint32[k]
    and ``out`` float64[k, 4] receive the hits: scores, standard errors, ends of intervals.

    Returns how many there are, or -1 - the number of a sample that points outside of itself; how
    many stand in their order for certain; and how many nodes were touched.
    """
    (sums, used), samples = scratch, table.shape[0]
    count = _gather(table, node, weights, sums, used)
    if count < 0:
        return count, 0, 0
    grains = np.empty(ids.size)
    hits = _best(sums, used, count, np.float64(samples), numbers[0], ids, grains)
    if hits == 0:
        return 0, 0, count
    times = np.empty((samples, hits), np.uint8)
    bad = meeting_times(table, node, ids[:hits], times)
    if bad != SOUND:
        return -1 - bad, 0, 0
    values, most = np.empty((samples, hits)), np.empty((samples, hits))
    _values(times, worth[0], values)
    _values(times, worth[1], most)
    level, low, beyond, high = numbers[1], numbers[2], numbers[3], numbers[4]
    lows, highs, means, unused = np.empty(hits), np.empty(hits), np.empty(hits), np.empty(hits)
    _bet(values, low, high, level, lows, means)
    _bet(most, high, beyond, level, highs, unused)
    for hit in range(hits):
        below = max(0.0, (means[hit] - lows[hit]) + numbers[6])
        above = max(0.0, (highs[hit] - means[hit]) + numbers[6])
        score = grains[hit] / GRAINS
        middle = np.rint(score * GRAINS)
        least = max(0.0, middle - np.ceil(below * GRAINS))
        out[hit, 0] = score
        out[hit, 1] = _error(times, weights, hit)
        out[hit, 2] = least / GRAINS
        out[hit, 3] = max(least, min(middle + np.ceil(above * GRAINS), numbers[5])) / GRAINS
    return hits, _certain(values, most, numbers), count
