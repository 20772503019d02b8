"""Tolerances of estimates that follow from the number of samples.

Bernstein's inequality in the form of 001, Theorem 5's proof: for the mean of N independent values
in a range of width R with variance V,

    Pr(|mean - expectation| > d) <= 2 exp(-N d**2 / (2 V + 2 d R / 3)).

Here a value is decay**tau of two different nodes, so R = decay, and V <= decay * s - s**2 where s
is the expectation, because z**2 <= decay * z. The ``comparisons`` of a test share ``failure``
(union bound), so a correct estimator fails a test for one in 1 / failure seeds.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def bernstein(
    exact: ArrayLike, samples: int, decay: float, comparisons: int, failure: float = 1e-9
) -> NDArray[np.float64]:
    """The largest admissible |estimate - exact|, elementwise."""
    s = np.asarray(exact, float)
    log = np.log(2 * comparisons / failure)
    variance = np.maximum(decay * s - s * s, 0)
    linear = 2 * log * decay / 3
    widest: NDArray[np.float64] = np.sqrt(linear**2 + 8 * samples * log * variance)
    allowed: NDArray[np.float64] = (linear + widest) / (2 * samples)
    return allowed


def chi_square_limit(cells: int) -> float:
    """The limit of chi-square over equally likely cells, exceeded once in 1e9 times.

    Laurent and Massart 2000, lemma 1: Pr(X >= k + 2 sqrt(k x) + 2 x) <= exp(-x).
    """
    k, x = cells - 1, np.log(1e9)
    return float(k + 2 * np.sqrt(k * x) + 2 * x)


def chi_square(counts: ArrayLike) -> float:
    """The chi-square statistic of counts that should be equal."""
    c = np.asarray(counts, float)
    expected = c.sum() / c.size
    return float(((c - expected) ** 2 / expected).sum())
