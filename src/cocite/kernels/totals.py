"""Scores from the sums of samples, confidence intervals by betting, and the best hits of many.

Samples of a part are added up in fixed point (2**48 is 1), so that a sum does not depend on its
order. ``settle`` turns each sum into a score in integer *grains* (10**-12) and its variance, and
adds both to the query's totals with the part's weight:

    grains   += weight * rint(mean * 10**12)
    variance += weight**2 * (mean of squares - mean**2) / (samples - 1)       nan for one sample

A factor for each node may multiply the score; grains are then rounded again. ``settle_exact`` adds
scores of parts without sampling. Both cost O(nodes touched).

``top`` picks the largest totals by a heap, at log k per node that enters it (usually few). Ties are
ordered by the node's hash (``scramble``). ``tell`` serves kernels that return whole answers; its
results are bit-identical to those of ``search/scorer.py`` and ``search/intervals.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS, NEVER, ONE
from cocite.kernels._kernel import helper, kernel, shared
from cocite.kernels._types import *
from cocite.kernels.random import scramble

_TOTALS_ROUNDING = 2.0**-45
"""Smaller variances count as rounding errors of the weights."""
_FEW = 4
"""Number of hits whose order is tested first; each later batch is twice as large."""
_DECIMALS = 1e12
_ZERO64 = np.uint64(0)


@shared
def estimate(total: U64, squares: U64, samples: F64) -> tuple[F64, F64]:
    """Return (grains, variance of the mean) from the fixed-point sums of a node."""
    scale = samples * ONE
    grains = np.rint(np.float64(total) * (GRAINS / scale))
    mean = grains / GRAINS
    if samples == 1.0:
        return grains, np.nan
    variance = np.float64(squares) / scale - mean * mean
    if variance < _TOTALS_ROUNDING:
        return grains, 0.0  # all samples are equal
    return grains, variance / (samples - 1.0)


@helper
def enter(node: Any, value: Any, variance: Any, totals: Any, touched: Any, have: Any) -> Any:
    """Add to the totals of a node; return how many nodes have totals."""
    if totals[node, 0] == 0.0 and totals[node, 1] == 0.0:
        touched[have] = node
        have += 1
    totals[node, 0] += value
    totals[node, 1] += variance
    return have


@kernel
def settle(
    sums: OutU64s2,
    used: U32s,
    factors: F64s,
    samples: F64,
    weight: F64,
    totals: OutF64s2,
    touched: OutU32s,
    have: I64,
) -> I64:
    """Add the estimates of a part to the totals, and reset its sums to 0.

    ``sums`` uint64[nodes, 2] is nonzero for the nodes ``used``; ``factors`` float64[used], or
    empty, multiply the estimates. ``totals`` float64[nodes, 2] (grains, variance) is nonzero for
    the nodes ``touched[:have]``. Returns the new ``have``.
    """
    for i in range(used.size):
        node, factor = used[i], 1.0
        grains, variance = estimate(sums[node, 0], sums[node, 1], samples)
        sums[node, 0] = sums[node, 1] = _ZERO64
        if factors.size > 0:
            factor = factors[i]
            grains = np.rint(grains * factor)
            variance = variance * factor * factor
        if grains != 0.0:
            spread = weight * weight * variance
            have = enter(node, weight * grains, spread, totals, touched, have)
    return have


@kernel
def settle_exact(
    values: OutF64s2,
    used: U32s,
    count: I64,
    weight: F64,
    totals: OutF64s2,
    touched: OutU32s,
    have: I64,
) -> I64:
    """Add a part's scores, which have no variance, to the totals; reset the scores to 0.

    The first column of ``values`` float64[nodes, 2] has the grains of the nodes ``used[:count]``;
    all else is as for ``settle``.
    """
    for i in range(count):
        node = used[i]
        grains = values[node, 0]
        values[node, 0] = values[node, 1] = 0.0
        if grains != 0.0:
            have = enter(node, weight * grains, 0.0, totals, touched, have)
    return have


# -- betting -----------------------------------------------------------------------------

# Bets on independent values y[i] in [0, 1] with mean p cannot win on average. If each stake is
# chosen before its value is seen, the wealth
#
#     K(p) = product over i of (1 + stake[i] * (y[i] - p)),       0 <= stake[i] <= CAP / p,
#
# reaches ``level`` with a probability of at most 1 / level (Ville); if it does, p is rejected. K
# falls when p grows, so bisection finds the end of the rejected means. There are two kinds of
# stakes:
#
# * Sequential (``ordered_ends``): with v the variance of the values so far together with two
#   imagined zeros and two imagined ones, stake[i] = sqrt(AIM / (v[i - 1] * (n - i + 1))); the
#   largest wealth along the way counts. Stakes do not depend on the level, so a higher level never
#   narrows an interval.
# * Equal (``mixed_ends``): a mixture of stakes START * 2**j / sqrt(n) up to STOP, each with SHARE
#   times the weight of the previous one; the final wealth counts. The order of values does not
#   matter, and their means may differ: the interval is for the mean of their means, because a
#   geometric mean is below an arithmetic one. Intervals are a quarter to a half wider.
#
# An end is the last rejected mean, ``level`` includes the rounding of the products, and wealth is
# capped at the floating-point range, so ends are conservative. Costs 12 bisections of 0.5 ns per
# value. Source: Waudby-Smith, Ramdas 2024, *Estimating means of bounded random variables by
# betting*, sections 4.1 and 4.2; stakes that grow as values run out, and the mixture, are our own.


AIM = 3.0
CAP = 0.9
HALVINGS = 12
START, STOP, SHARE = 3.4, 64.0, 0.6
_IMAGINED = 4.0
_ROUNDING = 1 + 1e-9
_MOST = 1e200


@kernel
def moments(values: F64s2, means: OutF64s, spreads: OutF64s) -> None:
    """Compute each column's mean and sum of squared deviations, both float64[hits]. ``values`` is
    float64[samples, hits]; columns do not affect each other.
    """
    samples, hits = values.shape
    means[:] = 0.0
    spreads[:] = 0.0
    for i in range(samples):
        for h in range(hits):
            means[h] += values[i, h]
    for h in range(hits):
        means[h] /= samples
    for i in range(samples):
        for h in range(hits):
            away = values[i, h] - means[h]
            spreads[h] += away * away


@kernel
def _set_stakes(values: F64s2, stakes: OutF64s2) -> None:
    """Compute the stake on each value in sequence; both float64[samples, hits]."""
    samples, hits = values.shape
    total, spread = np.full(hits, 0.5 * _IMAGINED), np.full(hits, 0.25 * _IMAGINED)
    for i in range(samples):
        seen = _IMAGINED + i
        aim, share = AIM * seen / (samples - i), 1.0 / (seen + 1.0)
        for h in range(hits):
            stakes[i, h] = np.sqrt(aim / spread[h])
            total[h] += values[i, h]
            away = values[i, h] - total[h] * share
            spread[h] += away * away


@kernel
def _bet(
    values: F64s2, stakes: F64s2, means: F64s, caps: F64s, wealth: OutF64s, most: OutF64s
) -> None:
    """Set ``most`` to the largest wealth along the way, and ``wealth`` to the final one."""
    samples, hits = values.shape
    for h in range(hits):
        wealth[h] = most[h] = 1.0
    for i in range(samples):
        value, stake = values[i], stakes[i]
        for h in range(hits):
            now = wealth[h] * (1.0 + min(stake[h], caps[h]) * (value[h] - means[h]))
            wealth[h] = now
            most[h] = max(most[h], now)


@kernel
def _scale(values: F64s2, origin: F64, reach: F64, scaled: OutF64s2, means: OutF64s) -> None:
    samples, hits = values.shape
    means[:] = 0.0
    for i in range(samples):
        for h in range(hits):
            value = min(1.0, max(0.0, (values[i, h] - origin) / reach))
            scaled[i, h] = value
            means[h] += value
    for h in range(hits):
        means[h] /= samples


@kernel
def ordered_ends(
    values: F64s2, origin: F64, reach: F64, level: F64, ends: OutF64s, averages: OutF64s
) -> None:
    """Compute the ends up to which means are rejected, from ``origin`` on, by sequential bets.

    ``values`` float64[samples, hits] lie between ``origin`` and ``origin + reach``; ``reach`` may
    be negative. ``ends`` float64[hits] are never beyond ``averages`` float64[hits], the means of
    the values. Columns do not affect each other.
    """
    samples, hits = values.shape
    scaled, stakes = np.empty((samples, hits)), np.empty((samples, hits))
    high, means, caps = np.empty(hits), np.empty(hits), np.empty(hits)
    wealth, most = np.empty(hits), np.empty(hits)
    _scale(values, origin, reach, scaled, high)
    for h in range(hits):
        averages[h] = origin + reach * high[h]
    _set_stakes(scaled, stakes)
    ends[:] = 0.0
    for _ in range(HALVINGS):
        for h in range(hits):
            means[h] = (ends[h] + high[h]) / 2
            caps[h] = CAP / means[h]
        _bet(scaled, stakes, means, caps, wealth, most)
        for h in range(hits):
            if most[h] >= level * _ROUNDING:
                ends[h] = means[h]
            else:
                high[h] = means[h]
    for h in range(hits):
        ends[h] = origin + reach * ends[h]


@kernel
def mixed_ends(
    support: F64s,
    counts: F64s2,
    origin: F64,
    reach: F64,
    level: F64,
    ends: OutF64s,
    averages: OutF64s,
) -> None:
    """Like ``ordered_ends`` with equal stakes, but from counts of values. ``support``
    float64[s] are the distinct values, ``counts`` float64[hits, s] how often each occurs.
    """
    hits, size = counts.shape
    there, often = np.empty(size), np.empty(size)
    for h in range(hits):
        kinds, samples = 0, 0.0
        for s in range(size):
            if counts[h, s] > 0.0:
                there[kinds] = min(1.0, max(0.0, (support[s] - origin) / reach))
                often[kinds] = counts[h, s]
                samples += counts[h, s]
                kinds += 1
        first = START / np.sqrt(samples)
        whole, share, stake = 0.0, 1.0, first
        while stake <= STOP:
            whole += share
            share *= SHARE
            stake *= 2.0
        low, high = 0.0, 0.0
        for s in range(kinds):
            high += there[s] * often[s] / samples
        averages[h] = origin + reach * high
        for _ in range(HALVINGS):
            mean = (low + high) / 2
            wealth, share, stake = 0.0, 1.0 / whole, first
            while stake <= STOP and wealth < _MOST:
                bet, log = min(stake, CAP / mean), np.log(share)
                for s in range(kinds):
                    log += often[s] * np.log(1.0 + bet * (there[s] - mean))
                wealth += np.exp(min(log, 460.0))
                share *= SHARE
                stake *= 2.0
            if wealth >= level * _ROUNDING:
                low = mean
            else:
                high = mean
        ends[h] = origin + reach * low


# -- the best hits ---------------------------------------------------------------------


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
    so a sum a grain too small cannot be one.
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
def _end(values: F64s2, first: F64, last: F64, level: F64, ends: OutF64s, means: OutF64s) -> None:
    """Like ``intervals._bet``; if all values are equal, the end is that value."""
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
        _end(apart, low - high, high - beyond, level, ends, means)
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
    _end(values, low, high, level, lows, means)
    _end(most, high, beyond, level, highs, unused)
    for hit in range(hits):
        below = max(0.0, (means[hit] - lows[hit]) + numbers[6])
        above = max(0.0, (highs[hit] - means[hit]) + numbers[6])
        middle = np.rint(out[hit, 0] * GRAINS)
        least = max(0.0, middle - np.ceil(below * GRAINS))
        out[hit, 2] = least / GRAINS
        out[hit, 3] = max(least, min(middle + np.ceil(above * GRAINS), numbers[5])) / GRAINS
    return np.int64(_certain(values, most, numbers))
