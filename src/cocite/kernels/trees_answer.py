"""A whole answer from fingerprint trees: the best hits, their intervals, how many are certain.

One call does what takes some forty otherwise, by the same kernels on the same numbers, so that all
comes out the same to the bit: ``gather`` (``trees_lookup.py``), ``settle`` and ``top``
(``totals.py``), ``meeting_times``, and bets on what samples say (``betting.py``). Between them
stands what ``query/answers.py`` and ``query/confidence.py`` do with arrays: that is what to read.

A call gives the interpreter's lock away once: threads of a server that hand it over forty times an
answer do little else.

Cost: that of the kernels; 17 bytes a sample and hit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.codes import GRAINS
from cocite.kernels._jit import helper, kernel
from cocite.kernels.betting import ordered_ends
from cocite.kernels.totals import settle, top
from cocite.kernels.trees_lookup import SOUND, gather, meeting_times

__all__ = ["answer"]

_FEW = 4
"""Hits whose order is looked at first; then twice as many at a time."""
_DECIMALS = 1e12


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
    what it is worth, and what it may stand for at most; ``scratch`` is (sums, used, totals,
    touched) of ``layouts/scratch.py``. ``numbers`` float64[7]: the least score in grains, the
    wealth that gives up a mean, the least value, the least that it can stand for, the most, the
    most that a score can be, in grains, and what sums of values may be off by. ``ids`` uint32[k]
    and ``out`` float64[k, 4] receive the hits: scores, standard errors, ends of intervals.

    Returns how many there are, or -1 - the number of a sample that points outside of itself; how
    many stand in their order for certain; and how many nodes were touched.
    """
    sums, used, totals, touched = scratch
    samples = table.shape[0]
    count = gather(table, node, weights, sums.reshape(sums.size), used, 0)
    if count < 0:
        return count, 0, 0
    have = settle(sums, used, count, np.float64(samples), 1.0, totals, touched, 0)
    best = np.empty((ids.size, 2))
    hits = top(totals, touched, have, numbers[0], ids, best)
    if hits == 0:
        return 0, 0, have
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
        score = best[hit, 0] / GRAINS
        middle = np.rint(score * GRAINS)
        least = max(0.0, middle - np.ceil(below * GRAINS))
        out[hit, 0] = score
        out[hit, 1] = np.rint(np.sqrt(best[hit, 1]) * _DECIMALS) / _DECIMALS
        out[hit, 2] = least / GRAINS
        out[hit, 3] = max(least, min(middle + np.ceil(above * GRAINS), numbers[5])) / GRAINS
    return hits, _certain(values, most, numbers), have
