"""How sure a mean over queries is: intervals by drawing the queries again.

Every figure here is a ratio of sums over queries, sum of ``parts`` / sum of ``wholes``; for a mean
the wholes are 1, or 0 for a query that is left out. A *resample* draws as many queries as there
are, with replacement, and takes the ratio of theirs; the interval is that between the quantiles of
the resamples (Efron's percentile interval).

All figures of one set of queries share their resamples, so the interval of a difference of two is
that of the differences: what both owe to the same easy queries cancels.

It tells how the figure would vary with other queries of this kind on this graph. The samples of the
index are the same throughout: how they vary, other seeds tell.

Cost: resamples * queries * figures multiplications, once.
Source: Efron, Tibshirani 1993, *An introduction to the bootstrap*, 13.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError

__all__ = ["Bootstrap", "Interval"]

_CELLS = 1 << 24


class Interval(NamedTuple):
    """A figure, and where it lies with the confidence asked for; nan where it is not defined."""

    value: float
    low: float
    high: float


class Bootstrap:
    """The resamples of one set of queries."""

    def __init__(
        self, queries: int, resamples: int = 1000, confidence: float = 0.95, seed: int = 0
    ) -> None:
        """Raises :class:`UsageError` for a value that is not allowed."""
        if not 0 < confidence < 1:
            raise UsageError(f"confidence is {confidence}; it is between 0 and 1, both excluded")
        if resamples < 1 or queries < 1:
            raise UsageError(f"{resamples} resamples of {queries} queries; both are 1 or more")
        self.confidence = confidence
        self._queries, self._resamples, self._seed = queries, resamples, seed

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64[1 + resamples, figures] from float64[queries, figures]: the sums over all queries
        as they are, then over those of every resample.
        """
        rng = np.random.default_rng(self._seed)
        found = np.empty((1 + self._resamples, values.shape[1]))
        found[0] = values.sum(axis=0)
        step = max(1, _CELLS // self._queries)
        for low in range(0, self._resamples, step):
            count = min(step, self._resamples - low)
            drawn = rng.integers(0, self._queries, (count, self._queries))
            drawn += np.arange(count)[:, None] * self._queries
            times = np.bincount(drawn.ravel(), minlength=count * self._queries)
            found[1 + low : 1 + low + count] = times.reshape(count, -1).astype(float) @ values
        return found

    def ratios(
        self, parts: NDArray[np.float64], wholes: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """float64[1 + resamples, figures] of two arrays float64[queries, figures]."""
        return _ratio(self.sums(parts), self.sums(wholes))

    def interval(self, ratios: NDArray[np.float64]) -> Interval:
        """The interval of one column of :meth:`ratios`, or of a difference of two."""
        value, drawn = float(ratios[0]), ratios[1:]
        drawn = drawn[~np.isnan(drawn)]
        if drawn.size == 0:
            return Interval(value, float("nan"), float("nan"))
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(drawn, [tail, 1 - tail])
        return Interval(value, float(low), float(high))


def _ratio(parts: NDArray[np.float64], wholes: NDArray[np.float64]) -> NDArray[np.float64]:
    found = np.full(parts.shape, np.nan)
    np.divide(parts, wholes, out=found, where=wholes != 0)
    return found
