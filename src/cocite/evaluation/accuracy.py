"""How far estimates are from exact scores, whatever the labels say.

With s the exact score and e the estimate, over the queries v and all nodes w:

    mean error      mean of |e(v, w) - s(v, w)| over w other than v
    largest error   the largest of them
    ave_err         the same mean over all w, v itself included, which nobody gets wrong (003,
                    eq. 13, over rows of the queries in place of all rows)
    precision@k     the share of the first k hits whose exact score is at least the k-th best exact
                    one: ties there count as found; if fewer score above 0, k is their number

Exact scores come row by row from whatever has them: a matrix, a solver (``Rows``).

Cost: a list and an exact row a query.
Source: Yu, Zhang, Lin, Zhang, Le, *A space and time efficient algorithm for SimRank computation*,
6.1.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.evaluation.rankings import Ranker

__all__ = ["Accuracy", "Rows", "accuracy"]

_TIE = 1e-9
"""Exact scores that differ by less are equal: they come out of sums in some order."""

Rows = Callable[[int], NDArray[Any]]
"""The exact scores of a node and all nodes, [nodes]."""


@dataclass(frozen=True)
class Accuracy:
    """``precision`` by k; nan if no query has an exact score above 0."""

    queries: int
    mean_error: float
    largest_error: float
    ave_err: float
    precision: dict[int, float]


def accuracy(
    ranker: Ranker,
    exact: Rows,
    queries: NDArray[np.uint32],
    ks: Sequence[int] = (10, 20),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Accuracy:
    """Compare a ranker's scores with exact ones on some queries."""
    total, largest = 0.0, 0.0
    shares: dict[int, list[float]] = {k: [] for k in ks}
    for done, node in enumerate(queries.tolist(), 1):
        truth = np.array(exact(node), np.float64)
        truth[node] = 0  # a node and itself: left out of all but ave_err, where it adds nothing
        hits, scores = ranker.related(node, ranker.nodes)
        errors = truth.copy()
        errors[hits] -= scores
        errors = np.abs(errors)
        total += float(errors.sum())
        largest = max(largest, float(errors.max()))
        for k in ks:
            share = _found(truth, hits, k)
            if share is not None:
                shares[k].append(share)
        progress(done, queries.size)
    count, nodes = queries.size, ranker.nodes
    return Accuracy(
        queries=count,
        mean_error=total / (count * max(1, nodes - 1)),
        largest_error=largest,
        ave_err=total / (count * nodes),
        precision={k: float(np.mean(v)) if v else float("nan") for k, v in shares.items()},
    )


def _found(truth: NDArray[np.float64], hits: NDArray[np.uint32], k: int) -> float | None:
    """The share of the best k that is among the first k hits; None if nothing is to be found."""
    size = min(k, int(np.count_nonzero(truth > 0)))
    if size == 0:
        return None
    least = np.partition(truth, truth.size - size)[truth.size - size]
    return float(np.count_nonzero(truth[hits[:size]] >= least - _TIE)) / size
