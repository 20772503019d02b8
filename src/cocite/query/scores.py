"""From meeting times to scores.

    score  = 1/N * sum over samples of decay**tau         (0 where the walks do not meet)
    stderr = s / sqrt(N),   s**2 = (mean of squares - score**2) * N / (N - 1)

N is the number of samples. Weights are fixed-point numbers, 2**48 to the one, so that sums do not
depend on their order; their rounding is below 2**-49 a sample. A score is rounded to 12 decimals,
and what is rounded is what is sorted and compared. The standard error is
that of the mean over samples; with a single sample there is none (nan). It says nothing of what
cutting walks at ``length`` steps leaves out, at most decay**(length + 1).

Source: 001, section 4 (Definition 4).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError

__all__ = ["GRAINS", "ONE", "Score", "grains_of", "score_of", "scores_of", "weights_of"]

ONE = 1 << 48
"""The fixed-point number that stands for 1; 65,535 samples of it fit 64 bits."""


_ROUNDING = 2.0**-45
"""A variance below this is the rounding of the weights."""
GRAINS = 10**12
"""A score is a whole number of grains, so that equal scores are equal and compare as printed."""


class Score(NamedTuple):
    """An estimated similarity and its standard error."""

    score: float
    stderr: float


def weights_of(decay: float) -> NDArray[np.uint64]:
    """uint64[16, 2]: decay**tau and its square for tau = 0..15, fixed-point."""
    if not 0 < decay < 1:
        raise UsageError(f"decay is {decay!r}; it is a number between 0 and 1, both excluded")
    values = [decay**tau for tau in range(16)]
    # Never 0: a sum of 0 tells the kernel that a node was not met before.
    return np.array([[max(1, round(w * ONE)), round(w * w * ONE)] for w in values], np.uint64)


def grains_of(samples: int) -> float:
    """Grains, 10**-12 of a score, to a fixed-point sum over ``samples`` samples."""
    return GRAINS / (samples * float(ONE))


def scores_of(
    grains: NDArray[np.uint64], squares: NDArray[np.uint64], samples: int
) -> tuple[list[float], list[float]]:
    """Scores and standard errors from scores in grains and sums of squares, uint64[h] each."""
    means = grains / GRAINS
    if samples == 1:
        return means.tolist(), [math.nan] * len(means)
    variances = squares / (samples * float(ONE)) - means * means
    variances[variances < _ROUNDING] = 0.0  # every sample the same
    return means.tolist(), np.sqrt(variances / (samples - 1)).round(12).tolist()


def score_of(total: int, squares: int, samples: int) -> Score:
    """The score of one pair's sums."""
    sums = np.array([[total], [squares]], np.uint64)
    grains = np.rint(sums[0] * grains_of(samples)).astype(np.uint64)
    means, errors = scores_of(grains, sums[1], samples)
    return Score(means[0], errors[0])
