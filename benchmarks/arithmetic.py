"""Ratios, exponents and means of measurements, with intervals.

    ratio      of the medians of two alternating series, with the smallest and the largest ratio
               of a round
    exponent   b of y = a * x**b, by least squares of the logarithms, with a 95% interval by
               Student's t: b +- t(0.975, n - 2) * sqrt(sum of residuals**2 / (n - 2) / S),
               S the sum of (log x - mean)**2
    mean       of independent values, such as one per seed, with a 95% interval by Student's t:
               m +- t(0.975, n - 1) * s / sqrt(n)

An exponent of fewer than three points has no interval and is not reported.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Ratio(NamedTuple):
    """``value`` is that of the medians, ``low`` and ``high`` those of single turns."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{digits(self.value)} ({digits(self.low)}–{digits(self.high)})"


class Exponent(NamedTuple):
    """And its interval of 95 %."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


class Mean(NamedTuple):
    """And its interval of 95 %."""

    value: float
    low: float
    high: float


def digits(value: float) -> str:
    """Two digits that count, without an exponent."""
    if value == 0:
        return "0"
    places = max(0, 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{places}f}"


def ratio(mine: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Mine over theirs, both in the order of turns."""
    turns = [a / b for a, b in zip(mine, theirs, strict=True)]
    return Ratio(statistics.median(mine) / statistics.median(theirs), min(turns), max(turns))


def slower(now: Ratio, before: Ratio, by: float = 1.05) -> bool:
    """Whether a ratio has become worse by more than ``by``, and more than turns differ: all turns
    of now are above the largest that was kept, too.
    """
    return now.value > by * before.value and now.low > before.high


def exponent(x: Sequence[float], y: Sequence[float]) -> Exponent:
    """b of y = a * x**b. Three points or more, all above 0, not all of one x."""
    from scipy.stats import t

    points = [(math.log(a), math.log(b)) for a, b in zip(x, y, strict=True)]
    free = len(points) - 2
    if free < 1:
        raise ValueError(f"{len(points)} points have no interval: three at least")
    mean_x = statistics.fmean(a for a, _ in points)
    mean_y = statistics.fmean(b for _, b in points)
    spread = sum((a - mean_x) ** 2 for a, _ in points)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in points) / spread
    left = sum((b - mean_y - slope * (a - mean_x)) ** 2 for a, b in points)
    apart = float(t.ppf(0.975, free)) * math.sqrt(left / free / spread)
    return Exponent(slope, slope - apart, slope + apart)


def mean(values: Sequence[float]) -> Mean:
    """Of two values or more."""
    from scipy.stats import t

    free = len(values) - 1
    if free < 1:
        raise ValueError(f"{len(values)} values have no interval: two at least")
    middle = statistics.fmean(values)
    apart = float(t.ppf(0.975, free)) * statistics.stdev(values) / math.sqrt(len(values))
    return Mean(middle, middle - apart, middle + apart)
