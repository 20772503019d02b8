"""Sibling Gamma: does a ranking put nodes of a query's own class before those of sibling classes?

Kruskal and Goodman's Gamma compares two partial orders of the same things. A pair is *comparable*
if both orders put one of the two before the other; it is *concordant* (C) if they agree which, and
*discordant* (D) if they do not:

    Gamma = (C - D) / (C + D)            1 if all agree, -1 if all disagree, undefined without pairs

Here the one order is that of the scores of a query u. The other, the *familial* one, puts the nodes
v of u's own class before the nodes w of sibling classes (``labels.py``), and says nothing of two
nodes of one kind, nor of all others, which are left out. So the pairs are those of one node v of
the same class and one node w of a sibling class; tied scores make a pair incomparable. A node that
scores 0, or stands below the part of the list that is looked at, is in no pair: both scores have
to be above a threshold, as in 000, where that is 0; ``least`` raises it.

Two variants are in use, and they differ in three ways:

    micro (001)     Gamma of each query, then the mean over queries that have a comparable pair; in
                    the best 100 of the list; without the query itself
    macro (000)     (C - D) / (C + D) with the pairs of all queries added up; the whole list; with
                    the query itself, which is of its own class and scores highest, 1

The last point alone raises Gamma by about 0.1, says 001. The number of comparable pairs, C + D of
the macro variant, belongs to it: few pairs can be ordered well.

Cost: one pass over a list, after it is sorted.
Source: Goodman, Kruskal 1954; Haveliwala, Gionis, Klein, Indyk 2002; Fogaras, Racz 2004, *A
scalable randomized method to compute link-based similarity rank*, 6, and *Scaling link-based
similarity search*, 5.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.evaluation.labels import SAME, SIBLING

__all__ = ["PairCount", "count_pairs"]


class PairCount(NamedTuple):
    """Comparable pairs in which the ranking agrees with the labels, and those in which not."""

    concordant: int
    discordant: int

    @property
    def gamma(self) -> float:
        """(C - D) / (C + D); nan without pairs."""
        total = self.concordant + self.discordant
        return (self.concordant - self.discordant) / total if total else float("nan")


def count_pairs(
    scores: NDArray[np.float64],
    relation: NDArray[np.int8],
    *,
    with_query: bool = False,
    least: float = 0.0,
) -> PairCount:
    """The pairs of one query's list.

    Parameters
    ----------
    scores
        float64[h], falling or equal.
    relation
        int8[h], the relation of each node to the query: ``labels.SAME``, ``SIBLING`` or ``OTHER``.
    with_query
        Count the query itself as the first of its list, of its own class, above all others.
    least
        If it is above 0, only nodes that score more than this are in pairs.
    """
    related = relation != 0
    if least > 0:
        related &= scores > least
    scores, relation = scores[related], relation[related]
    if scores.size == 0:
        return PairCount(0, 0)
    starts = np.flatnonzero(np.diff(scores, prepend=np.inf))
    same = np.add.reduceat(relation == SAME, starts, dtype=np.int64)
    siblings = np.add.reduceat(relation == SIBLING, starts, dtype=np.int64)
    same_above, siblings_above = np.cumsum(same) - same, np.cumsum(siblings) - siblings
    concordant = int(same_above @ siblings) + (int(siblings.sum()) if with_query else 0)
    return PairCount(concordant, int(siblings_above @ same))
