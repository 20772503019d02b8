"""Precision, recall and nDCG of the first k hits, with class labels as the truth.

A hit is *relevant* if it shares a label with the query. With r_i = 1 if hit i is, else 0, and R the
number of relevant nodes among the candidates, the query itself left out:

    precision@k   (r_1 + ... + r_k) / k
    recall@k      (r_1 + ... + r_k) / R
    nDCG@k        sum of r_i / log2(i + 1) over i <= k, divided by its largest possible value, that
                  of min(k, R) relevant hits in front

Convention: a hit that is not there is not relevant, so a list shorter than k pays for it. Queries
without any relevant node (R = 0) say nothing and are left out of all three means.

Source: Järvelin, Kekäläinen 2002, *Cumulated gain-based evaluation of IR techniques*, for nDCG.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["relevance_at"]


def relevance_at(
    relevant: NDArray[np.bool_], total: int, cutoffs: Sequence[int]
) -> NDArray[np.float64]:
    """float64[3, cutoffs]: precision, recall and nDCG at each cutoff; nan if ``total`` is 0.

    Parameters
    ----------
    relevant
        bool[h]: whether each hit is relevant, best first.
    total
        R, how many relevant nodes there are.
    cutoffs
        The values of k, ascending.
    """
    ks = np.asarray(cutoffs, np.int64)
    if total == 0:
        return np.full((3, ks.size), np.nan)
    deepest = int(ks.max())
    found = np.zeros(deepest)
    found[: min(deepest, relevant.size)] = relevant[:deepest]
    discount = 1 / np.log2(np.arange(deepest) + 2.0)
    hits, gain, best = np.cumsum(found), np.cumsum(found * discount), np.cumsum(discount)
    ideal = best[np.minimum(ks, total) - 1]
    return np.stack([hits[ks - 1] / ks, hits[ks - 1] / total, gain[ks - 1] / ideal])
