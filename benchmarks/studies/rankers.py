"""Rankers other than indexes: exact scores, vectors, and blends of other rankers.

All implement the interface of ``cocite/evaluation/rankers.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.evaluation.rankers import Ids, Ranker, Related
from cocite.kernels.totals import order

Row = Callable[[int], NDArray[Any]]


def best_of(row: NDArray[Any], node: int, k: int, candidates: Ids | None = None) -> Related:
    """The best ``k`` of dense scores [nodes], by the contract."""
    ids: NDArray[Any] = np.flatnonzero(row > 0)
    if candidates is not None:
        ids = candidates[row[candidates] > 0]
    ids = ids[ids != node]
    if ids.size > k:
        least = np.partition(row[ids], ids.size - k)[ids.size - k]
        ids = ids[row[ids] >= least]
    scores = row[ids].astype(np.float64)
    best = order(ids, scores)[:k]
    return Related(ids[best].astype(np.uint32), scores[best])


class RowRanker:
    """Dense scores, given row by row: those of an exact solver, or any matrix."""

    def __init__(self, row: Row, nodes: int, candidates: Ids | None = None) -> None:
        """``row(node)`` gives the scores of a node and all nodes, [nodes]."""
        self._row, self._nodes, self._candidates = row, nodes, candidates

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self._nodes

    def related(self, node: int, k: int) -> Related:
        """The best of the node's row."""
        return best_of(self._row(node), node, k, self._candidates)


class VectorRanker(RowRanker):
    """Nearest neighbors among vectors, by cosine; those with a cosine of 0 or less are none."""

    def __init__(self, vectors: NDArray[Any], candidates: Ids | None = None) -> None:
        """``vectors`` [nodes, dimensions]; a row of zeros is near to nothing."""
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
        unit = (vectors / np.where(lengths > 0, lengths, 1)[:, None]).astype(np.float32)
        super().__init__(lambda node: unit @ unit[node], len(vectors), candidates)


class Scale(Enum):
    """How scores of different rankers are made comparable before they are added up."""

    SCORE = "score"
    """As they are."""
    BEST = "best"
    """Divided by the best score of each list."""
    RANK = "rank"
    """1 / (60 + rank): reciprocal rank fusion (Cormack, Clarke, Buettcher 2009)."""


class BlendedRanking:
    """A weighted sum of the scores of other rankers, over all nodes that any of them names."""

    def __init__(
        self,
        rankers: Sequence[Ranker],
        weights: Sequence[float] | None = None,
        scale: Scale = Scale.BEST,
        depth: int | None = None,
    ) -> None:
        """``depth``: how far down each list is read, by default to its end."""
        self._weights = [1.0] * len(rankers) if weights is None else list(weights)
        if not rankers or len(self._weights) != len(rankers):
            raise UsageError(
                f"a blend of {len(rankers)} rankers has {len(self._weights)} weights; it needs one "
                "for each"
            )
        if len({ranker.nodes for ranker in rankers}) != 1:
            raise UsageError("a blend is made of rankers of one graph; these have other nodes")
        self._rankers, self._scale = list(rankers), scale
        self._depth = self.nodes if depth is None else depth

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self._rankers[0].nodes

    def related(self, node: int, k: int) -> Related:
        """The best sums."""
        total = np.zeros(self.nodes)
        for ranker, weight in zip(self._rankers, self._weights, strict=True):
            ids, scores = ranker.related(node, self._depth)
            total[ids] += weight * _scaled(scores, self._scale)
        return best_of(total, node, k)


def _scaled(scores: NDArray[np.float64], scale: Scale) -> NDArray[np.float64]:
    if scores.size == 0 or scale is Scale.SCORE:
        return scores
    found: NDArray[np.float64] = 1 / (60.0 + np.arange(1, scores.size + 1))
    return scores / scores[0] if scale is Scale.BEST else found
