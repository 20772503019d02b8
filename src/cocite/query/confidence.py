"""How far an estimate may be from the truth, and whether the order of two hits is certain.

A score is the mean of N independent samples in a range of width R, with V their variance. With
probability ``confidence`` = 1 - failure the truth is within the half-width of it:

    bernstein    sqrt(2 V log(4 / failure) / N) + 7 R log(4 / failure) / (3 (N - 1))
    theorem5     max(1, R) sqrt(7 log(2 / failure) / (6 N))  the papers' bound, for R <= 1

The first is the empirical Bernstein inequality, both sides at once; it needs no knowledge of the
truth and is narrow where samples agree. The second is uniform over all pairs, graphs and measures,
and wide. Both hold for any N, unlike a multiple of the standard error.

The order of two hits v and w is certain if the half-width of the mean of their differences, sample
by sample, is below it: they share their samples, so the difference often varies less than either.

Source: Maurer, Pontil 2009, theorem 4; Fogaras, Racz, *Scaling link-based similarity search*, 4,
theorems 5 and 6.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocite.errors import UsageError

__all__ = ["BOUNDS", "checked_confidence", "half_width", "leading_certain"]

BOUNDS = ("bernstein", "theorem5")


def checked_confidence(confidence: float, bound: str, name: str = "confidence") -> None:
    """Raises :class:`UsageError` for a level, called ``name``, or a bound that there is not."""
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise UsageError(f"{name} is {confidence!r}; it is a number between 0 and 1, such as 0.95")
    if bound not in BOUNDS:
        raise UsageError(f"bound is {bound!r}; it is " + " or ".join(BOUNDS))


def half_width(
    stderr: ArrayLike,
    samples: ArrayLike,
    width: float,
    confidence: float,
    bound: str = "bernstein",
) -> NDArray[np.float64]:
    """Half-widths of the intervals of scores with these standard errors, elementwise.

    ``samples`` is N, one for all or each its own; ``width`` is R. With a single sample nothing is
    known but the range: R itself.
    """
    errors = np.asarray(stderr, np.float64)
    count = np.broadcast_to(np.asarray(samples, np.float64), errors.shape)
    failure = 1 - confidence
    if bound == "theorem5":
        half = max(1.0, width) * np.sqrt(7 * math.log(2 / failure) / (6 * count))
    else:
        log = math.log(4 / failure)
        rest = 7 * width * log / (3 * np.maximum(count - 1, 1))
        half = np.where(count == 1, width, errors * math.sqrt(2 * log) + rest)
    narrowest: NDArray[np.float64] = np.minimum(half, width)
    return narrowest


def leading_certain(
    values: NDArray[np.float64],
    width: float,
    confidence: float,
    bound: str = "bernstein",
    doubt: ArrayLike = 0.0,
    known: NDArray[np.int64] | None = None,
) -> int:
    """How many of the first hits stand in their order for certain.

    ``values`` float64[hits, samples] are the samples of each hit, best first; ``known`` int64[hits]
    is how many of the last ones say something of it, None for all, and two hits are compared over
    those that they share. Each hit is compared
    with the next; the failure allowed is shared among the comparisons made. The last hit cannot be
    certain: what came behind it is not known here. ``doubt`` (of each step, or of all) is how much
    smaller than its samples say a step may be, beside their error.
    """
    hits, samples = values.shape
    if hits < 2:
        return 0
    level = 1 - (1 - confidence) / (hits - 1)
    # A difference lies in [-R, R]; the papers bound it as they bound a value.
    span = 2 * width if bound == "bernstein" else width
    doubts = np.broadcast_to(np.asarray(doubt, np.float64), hits - 1)
    shared = np.full(hits - 1, samples)
    if known is not None:
        shared = np.minimum(known[:-1], known[1:])
    sure = np.zeros(hits - 1, bool)
    for count in np.unique(shared[shared > 1]).tolist():
        rows = np.flatnonzero(shared == count)
        steps = values[rows, -count:] - values[rows + 1, -count:]
        errors = steps.std(axis=1, ddof=1) / math.sqrt(count)
        half = half_width(errors, count, span, level, bound)
        sure[rows] = steps.mean(axis=1) > half + doubts[rows]
    return int(sure.argmin()) if not sure.all() else hits - 1
