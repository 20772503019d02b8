"""Scores as users see them, and how they are made of a part's estimates.

    score  = sum over parts of weight * score of the part
    stderr = sqrt(sum over parts of weight**2 * variance of the part's mean)

Parts are estimated from independent samples, so their variances add. A score is rounded to 12
decimals, and what is rounded is what is sorted and compared. The standard error is that of the mean
over samples: 0 for an exact score, nan where there is a single sample. It says nothing of what a
definition leaves out, such as cutting walks at ``length`` steps, at most decay**(length + 1); the
interval has room for that. Where meetings are rare it is no basis of a z-test either: few samples
decide it, and it is small or 0 just where none of them met. Take the interval.

Source: Fogaras, Racz, *Scaling link-based similarity search*, 4 (Definition 4).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.codes import GRAINS

__all__ = ["Hit", "Score", "scores_of"]


class Score(NamedTuple):
    """A similarity, the standard error of its estimate, and the interval that holds the truth.

    ``stderr`` is 0 if the score is exact, nan with a single sample; ``low`` to ``high`` is the
    interval at the confidence asked for.
    """

    score: float
    stderr: float
    low: float
    high: float


class _Hit(NamedTuple):
    node: Any
    score: float
    stderr: float
    low: float
    high: float


class Hit(_Hit):
    """A related node: its name, and its score as in :class:`Score`.

    Names are text; of an index of links that were in memory they are what they were there.
    ``title`` is that of the page, None if it has none; it is no part of the tuple.
    """

    title: str | None = None

    def titled(self, title: str | None) -> Hit:
        """The same with a title; an empty one is none."""
        hit = Hit(*self)
        hit.title = title or None
        return hit


def scores_of(best: NDArray[np.float64]) -> tuple[list[float], list[float]]:
    """Scores and standard errors from float64[h, 2]: grains, rounded, and variances."""
    errors: list[float] = np.sqrt(best[:, 1]).round(12).tolist()
    return (best[:, 0] / GRAINS).tolist(), errors
