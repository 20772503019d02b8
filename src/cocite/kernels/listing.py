"""The best hits of many, from a heap, with scores and intervals from meeting times.

``tell`` serves kernels that return whole answers. Its results are bit-identical to those of
``search/scorer.py`` and ``search/intervals.py``; ``kernels/totals.py`` explains the bets. ``top``
picks the largest totals in grains. Ties are ordered by the node's hash (``scramble``).

Costs log k per node that enters the heap (usually few), and 17 bytes per sample per hit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS, NEVER
from cocite.kernels._kernel import helper, kernel
from cocite.kernels._types import *
from cocite.kernels.random import scramble
from cocite.kernels.totals import estimate, ordered_ends

_FEW = 4
"""Number of hits whose order is tested first; each later batch is twice as large."""
_DECIMALS = 1e12
_ZERO64 = np.uint64(0)


def order(ids: NDArray[Any], scores: NDArray[Any]) -> NDArray[np.intp]:
    """Return the order of hits, best first; ties by ascending hash."""
    return np.lexsort((scramble.__wrapped__(ids.astype(np.uint64)), -scores))


@helper
def _worse(grains: Any, ids: Any, first: Any, second: Any) -> Any:
    if grains[first] != grains[second]:
        return grains[first] < grains[second]
    return scramble(np.uint64(ids[first])) > scramble(np.uint64(ids[second]))


@helper
def _swap(grains: Any, ids: Any, first: Any, second: Any) -> None:
    grains[first], grains[second] = grains[second], grains[first]
    ids[first], ids[second] = ids[second], ids[first]


@helper
def _sink(grains: Any, ids: Any, size: Any) -> None:
    """Restore the heap, whose top is the worst hit, after its top was replaced."""
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


@helper
def offer(grains: Any, ids: Any, size: Any, node: Any, score: Any) -> Any:
    """Add a hit to a heap of ``size`` if it is among the best so far; return the new size."""
    if size < ids.size:
        at = size
        ids[at], grains[at] = node, score
        size += 1
        while at > 0 and _worse(grains, ids, at, (at - 1) // 2):
            _swap(grains, ids, at, (at - 1) // 2)
            at = (at - 1) // 2
    elif score > grains[0] or (
        score == grains[0] and scramble(np.uint64(node)) < scramble(np.uint64(ids[0]))
    ):
        ids[0], grains[0] = node, score
        _sink(grains, ids, size)
    return size


@helper
def consider(hit: Any, scale: Any, floor: Any, grains: Any, ids: Any, size: Any, least: Any) -> Any:
    """Offer a ``hit`` (node, sum) if its score, sum / ``scale``, is at least ``floor`` grains.
    Returns the heap's new size, and the smallest sum that can still be a hit: grains are rounded,
    so a sum one grain below the last hit cannot.
    """
    node, total = hit
    score = np.rint(total * (GRAINS / scale))
    if score >= floor:
        size = offer(grains, ids, size, node, score)
        if size == ids.size:
            least = (grains[0] - 1.0) * (scale / GRAINS)
    return size, least


@helper
def sort(grains: Any, ids: Any, size: Any) -> None:
    """Turn a heap into a list, best first."""
    for left in range(size - 1, 0, -1):
        _swap(grains, ids, 0, left)
        _sink(grains, ids, left)


@kernel
def top(
    totals: OutF64s2, touched: U32s, count: I64, floor: F64, nodes: OutU32s, best: OutF64s2
) -> I64:
    """Find the best hits with at least ``floor`` grains, best first; reset the totals to 0. Fills
    ``nodes`` uint32[k] and ``best`` float64[k, 2] (grains, variance); returns their number.
    """
    size, grains = 0, np.empty(nodes.size)
    for i in range(count if nodes.size > 0 else 0):
        node = touched[i]
        score = np.rint(totals[node, 0])
        if score >= floor:
            size = offer(grains, nodes, size, node, score)
    sort(grains, nodes, size)
    for i in range(size):
        best[i, 0], best[i, 1] = grains[i], totals[nodes[i], 1]
    for i in range(count):
        totals[touched[i], 0] = totals[touched[i], 1] = 0.0
    return size


@helper
def error_of(total: Any, squares: Any, samples: Any) -> Any:
    """Return the standard error from a hit's sums."""
    _, variance = estimate(total, squares, samples)
    return np.rint(np.sqrt(variance) * _DECIMALS) / _DECIMALS


@helper
def _error(times: Any, weights: Any, hit: Any) -> Any:
    total, squares = _ZERO64, _ZERO64
    for sample in range(times.shape[0]):
        time = times[sample, hit]
        if time != NEVER:
            total += weights[time, 0]
            squares += weights[time, 1]
    return error_of(total, squares, np.float64(times.shape[0]))


@helper
def _values(times: Any, worth: Any, values: Any) -> None:
    for sample in range(times.shape[0]):
        for hit in range(times.shape[1]):
            values[sample, hit] = worth[times[sample, hit]]


@kernel
def _bet(values: F64s2, first: F64, last: F64, level: F64, ends: OutF64s, means: OutF64s) -> None:
    """Compute ``intervals._bet``; if all values are equal, the end is that value."""
    ends[:] = first
    means[:] = first
    if last != first:
        ordered_ends(values, first, last - first, level, ends, means)


@helper
def _certain(values: Any, most: Any, numbers: Any) -> Any:
    """Count the leading hits with certain ranks, like ``intervals.leading_certain``."""
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


@helper
def tell(times: Any, weights: Any, worth: Any, numbers: Any, grains: Any, out: Any) -> Any:
    """Fill ``out`` from ``times`` uint8[samples, hits] and scores in ``grains``.

    See ``trees_batch.answers`` for the other arguments. Returns the number of leading hits with
    certain ranks. If no wealth rejects a mean, intervals are omitted, and the result is 0.
    """
    samples, hits = times.shape
    for hit in range(hits):
        out[hit, 0] = grains[hit] / GRAINS
        out[hit, 1] = _error(times, weights, hit)
    if np.isinf(numbers[1]):
        return np.int64(0)
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
        middle = np.rint(out[hit, 0] * GRAINS)
        least = max(0.0, middle - np.ceil(below * GRAINS))
        out[hit, 2] = least / GRAINS
        out[hit, 3] = max(least, min(middle + np.ceil(above * GRAINS), numbers[5])) / GRAINS
    return np.int64(_certain(values, most, numbers))
