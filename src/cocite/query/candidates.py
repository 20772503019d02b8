"""Refined answers for the index's best: they are looked at again, each by itself.

What kinds of this have in common (``resample.py``, ``neighbourhoods.py``): the candidates are the
index's best max(100, 4 k), what is not among them is no hit; parts that are not sampled add what
they always do.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cocite.index import StoredIndex
from cocite.measures import WholeSettings
from cocite.query.filters import Filter
from cocite.query.reader import Reader
from cocite.query.refine import Level, Refined, Refiner
from cocite.query.scratch import borrowed
from cocite.query.source import Given

__all__ = ["CandidateRefiner", "Top", "shared_confidence"]

_FEWEST = 100

Top = Callable[
    [int, int, float, Filter, WholeSettings], tuple[NDArray[np.uint32], NDArray[np.float64]]
]
"""The index's own best: see :meth:`Answers.top`."""


class CandidateRefiner(Refiner):
    """Of indexes with sampled parts of one ``kind`` of reader."""

    kind: ClassVar[type[Reader]]

    def __init__(
        self, stored: StoredIndex, graph: Given, readers: Sequence[Reader], top: Top
    ) -> None:
        """``top`` gives the index's best: ids, and scores that do not matter here."""
        super().__init__(stored, graph)
        self._top = top
        self._others = [reader for reader in readers if not isinstance(reader, self.kind)]

    @abstractmethod
    def _settled(
        self,
        node: int,
        ids: NDArray[np.uint32],
        k: int | None,
        settings: WholeSettings,
        level: Level,
    ) -> Refined:
        """Candidates, those at least that may be among the best ``k``; None for all."""

    def top(
        self,
        node: int,
        k: int,
        min_score: float,
        chosen: Filter,
        settings: WholeSettings,
        level: Level,
    ) -> Refined:
        """The best k of the candidates; equal scores by ascending node."""
        ids, _ = self._top(node, max(_FEWEST, 4 * k), 0.0, chosen, settings)
        found = self._settled(node, ids, k, settings, level)
        order = np.lexsort((found.ids, -found.scores))
        return found.taken(order[found.scores[order] >= max(min_score, 1e-12)][:k])

    def pair(self, node: int, other: int, settings: WholeSettings, level: Level) -> Refined:
        """The score of two nodes, which are no candidates of many."""
        return self._settled(node, np.array([other], np.uint32), None, settings, level)

    def _exact(
        self, node: int, ids: NDArray[np.uint32], settings: WholeSettings
    ) -> NDArray[np.float64]:
        """float64[h, 3]: what parts without samples add to some scores with ``node``, in grains;
        and how far the truth may be below and above that, as scores are.
        """
        found = np.zeros((ids.size, 3))
        with borrowed(self._stored.nodes) as scratch:
            for reader in self._others:
                own = reader.part.ask_settings(settings)
                reader.gather(node, own, scratch)
                found[:, 1:] += reader.part.weight * reader.certified(node, ids, own)
            found[:, 0] = scratch.totals[ids, 0]
            scratch.totals[scratch.touched[: scratch.have]] = 0.0
        return found


def shared_confidence(confidence: float, tests: int) -> float:
    """Of each of some intervals that hold together with a confidence."""
    return min(1 - 1e-15, 1 - (1 - confidence) / max(1, tests))
