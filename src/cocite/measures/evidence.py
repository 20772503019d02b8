"""Evidence: two pages that share more neighbours are more surely alike.

    score(u, v) = evidence(u, v) * s(u, v)   for u != v,      score(u, u) = 1

    geometric      1 - 2**-n      1/2, 3/4, 7/8, ... for n = 1, 2, 3, ...
    exponential    1 - e**-n      0.63, 0.86, 0.95, ...

with n = |I(u) & I(v)| the different neighbours that both have, in-links or what the direction says;
pages that share none score 0. SimRank gives two pages whose only in-link is the same one more than
two that share a hundred; evidence mends some of that. Weights of links do not matter for it.

It is exact, so a score's standard error and its interval are those of s, times the evidence.

Source: Antonellis, Garcia-Molina, Chang 2008, *Simrank++: query rewriting through link analysis of
the click graph*, 7.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cocite.measures.settings import Setting

__all__ = ["EVIDENCE", "evidence_of"]

EVIDENCE = Setting(
    "evidence",
    "none",
    "multiply scores by how much it tells that two pages share n neighbours, for which the graph "
    "is read: geometric is 1 - 2^-n, exponential is 1 - e^-n; none leaves them as they are",
    choices=("none", "geometric", "exponential"),
    late=True,
)

_MOST = 64
"""Neighbours from which on either form is 1, in 64 bits."""
_FORMS = {
    "geometric": np.array([1.0 - 0.5**n for n in range(_MOST + 1)]),
    "exponential": np.array([-math.expm1(-n) for n in range(_MOST + 1)]),
}


def evidence_of(shared: NDArray[np.int64], form: str) -> NDArray[np.float64]:
    """float64[h], in [0, 1]: by how many neighbours pages share, int64[h], in one of the forms."""
    found: NDArray[np.float64] = _FORMS[form][np.minimum(shared, _MOST)]
    return found
