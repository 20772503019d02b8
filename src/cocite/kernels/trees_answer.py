"""A whole answer from fingerprint trees: the best hits, their intervals, how many are certain.

One call does what takes some forty otherwise, and all comes out the same to the bit. It gives the
interpreter's lock away once: threads of a server that hand it over forty times an answer do little
else. What is done is ``gather`` (``kernels/trees.py``), ``settle`` and ``top``
(``kernels/totals.py``), ``meeting_times``, and what is told of hits (``kernels/listing.py``).

Two things are cheaper here. Squares are not added up for every node that is touched, but for the
hits alone, from their meeting times, which intervals need anyway: half as much memory is changed.
And a sum becomes a score only if it may be among the best k: grains are rounded, so one that is a
grain below the last of these cannot.

Cost: that of the kernels, two thirds of it for ``gather``; 17 bytes a sample and hit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.constants import GRAINS, NOWHERE, ONE, UNFINISHED
from cocite.kernels._kernel import helper, kernel, prefetch_at, word_at
from cocite.kernels._types import *
from cocite.kernels.listing import offer, sort, tell
from cocite.kernels.trees import AT_ONCE, SOUND, fetch_places, label_at, meeting_times

_FEW = 8
"""Samples whose places are asked for together, at least."""
_ZERO32, _ONE32, _THREE32 = np.uint32(0), np.uint32(1), np.uint32(3)
_ZERO64, _ONE64 = np.uint64(0), np.uint64(1)


@helper
def _add(member: Any, value: Any, sums: Any, used: Any, count: Any) -> Any:
    before = sums[member]
    used[count] = member
    sums[member] = before + value
    return count + (_ONE64 if before == _ZERO64 else _ZERO64)


@kernel
def _gather(
    table: U64s2, node: U32, weights: U64s2, sums: OutU64s, used: OutU32s, progress: OutU64s
) -> I64:
    """As ``trees.gather``, without squares: ``sums`` uint64[nodes]. ``progress`` is the last
    of ``answer``'s scratch. Returns SOUND, or the number of a sample that points outside of itself.
    """
    nodes, samples = np.uint32(sums.size), table.shape[0]
    first, count, left = np.int64(progress[0]), progress[1], np.int64(progress[2])
    value = _ZERO64
    step: Any = min(AT_ONCE, max(_FEW, left // np.int64(nodes)))
    fetch_places(table, first, min(first + step, samples), node)
    for begin in range(first, samples, step):
        if left <= 0:
            progress[0], progress[1] = np.uint64(begin), count
            return np.int64(SOUND)
        stop = min(begin + step, samples)
        for sample in range(begin, stop):
            place = word_at(table[sample, 0], np.uint64(node))
            if place != NOWHERE:
                prefetch_at(table[sample, 1], np.uint64(place))
                prefetch_at(table[sample, 2], np.uint64(place >> _THREE32))
        fetch_places(table, stop, min(stop + step, samples), node)
        for sample in range(begin, stop):
            place = word_at(table[sample, 0], np.uint64(node))
            if place == NOWHERE:
                continue
            members, labels = table[sample, 1], table[sample, 2]
            end = np.uint32(table[sample, 3])
            if place >= end or end > nodes or count > np.uint64(nodes):
                return np.int64(sample)
            largest, at = _ZERO32, place
            while True:
                label = label_at(labels, at)
                if label == _ZERO32:
                    break
                if at == _ZERO32:
                    return np.int64(sample)
                if label > largest:
                    largest = label
                    value = weights[label, 0]
                at = np.uint32(at - _ONE32)
                member = word_at(members, np.uint64(at))
                if member >= nodes:
                    return np.int64(sample)
                count = _add(member, value, sums, used, count)
            left += np.int64(at)
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
                    return np.int64(sample)
                count = _add(member, value, sums, used, count)
                at = np.uint32(at + _ONE32)
            left -= np.int64(at)
    progress[0], progress[1] = np.uint64(samples), count
    return np.int64(SOUND)


@kernel
def _best(
    sums: OutU64s, used: U32s, count: I64, samples: F64, floor: F64, ids: OutU32s, grains: OutF64s
) -> I64:
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
        size = offer(grains, ids, size, node, score)
        if size == ids.size:
            least = (grains[0] - 1.0) * grain
    sort(grains, ids, size)
    return size


@kernel
def answer(
    table: U64s2,
    node: U32,
    weights: U64s2,
    worth: F64s2,
    scratch: tuple[OutU64s, OutU32s, OutU64s],
    numbers: F64s,
    ids: OutU32s,
    out: OutF64s2,
) -> tuple[I64, I64, I64]:
    """The best k of ``node``, each with score, standard error and interval.

    ``table`` and ``weights`` are those of ``gather``; ``worth`` float64[2, 256] is by meeting time
    what it is worth, and what it may stand for at most; ``scratch`` is uint64[nodes], zeros before
    and after, uint32[2 nodes + 1], and how far it got, uint64[3]: samples read and nodes touched,
    zeros in the beginning, and how many members may be read at a time, 1 or more, and those of some
    samples to their end. ``numbers`` float64[7]: the least score in grains, the wealth that gives
    up a mean, the least value, the least that it can stand for, the most, the most that a score can
    be, in grains, and what sums of values may be off by. ``ids`` uint32[k] and ``out``
    float64[k, 4] receive the hits: scores, standard errors, ends of intervals.

    Returns how many there are, or -1 - the number of a sample that points outside of itself, or
    UNFINISHED: then it wants to be called again; how many stand in their order for certain; and how
    many nodes were touched.
    """
    (sums, used, progress), samples = scratch, table.shape[0]
    bad = _gather(table, node, weights, sums, used, progress)
    if bad != SOUND:
        return -1 - bad, 0, 0
    count = np.int64(progress[1])
    if np.int64(progress[0]) < samples:
        return UNFINISHED, 0, count
    grains = np.empty(ids.size)
    hits = _best(sums, used, count, np.float64(samples), numbers[0], ids, grains)
    if hits == 0:
        return 0, 0, count
    times = np.empty((samples, hits), np.uint8)
    bad = meeting_times(table, node, ids[:hits], times)
    if bad != SOUND:
        return -1 - bad, 0, 0
    certain = tell(times, weights, worth, numbers, grains, out)
    return hits, certain, count
