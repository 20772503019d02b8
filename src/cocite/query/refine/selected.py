"""Refined answers for SimRank from an index that keeps some pages only: rows of the whole graph.

A row is computed over all nodes of the graph (``certain.py``), as paths lead through all of them;
hits are those that are kept. Ids are those of the index outside, and of the graph inside.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cocite.index import StoredIndex
from cocite.means import Means
from cocite.measures import WholeSettings
from cocite.query.filters import Filter
from cocite.query.refine.certain import LinearRefiner
from cocite.query.refine.refiner import Level, Refined
from cocite.query.source import Given

__all__ = ["SelectedRefiner"]


class SelectedRefiner(LinearRefiner):
    """Of SimRank, for the pages of ``stored``."""

    def __init__(self, stored: StoredIndex, graph: Given, means: Means) -> None:
        super().__init__(stored.of_graph(), graph, means)
        self._outside = stored
        everybody = np.arange(stored.nodes, dtype=np.uint32)
        self._wanted = stored.in_graph(everybody)

    def top(
        self,
        node: int,
        k: int,
        min_score: float,
        chosen: Filter,
        settings: WholeSettings,
        level: Level,
    ) -> Refined:
        """The best k that are kept; equal scores by ascending node."""
        only = (self._wanted, *(self._wanted[ids] for ids in chosen.only))
        if chosen.within is not None:
            only = (*only, self._wanted[chosen.within.start : chosen.within.stop])
        never = tuple(self._wanted[ids] for ids in chosen.never)
        inside = Filter(only, never)
        return self._named(super().top(self._in(node), k, min_score, inside, settings, level))

    def pair(self, node: int, other: int, settings: WholeSettings, level: Level) -> Refined:
        """The score of ``other`` in the row of ``node``, which is another node."""
        return self._named(super().pair(self._in(node), self._in(other), settings, level))

    def _in(self, node: int) -> int:
        return int(self._wanted[node])

    def _named(self, found: Refined) -> Refined:
        ids = np.searchsorted(self._wanted, found.ids).astype(np.uint32)
        return replace(found, ids=ids)
