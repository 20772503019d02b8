"""Which way an index's answers are refined; and SimRank for an index that keeps some pages only.

A row of SimRank is computed over all nodes of the graph, as paths lead through all of them; hits
are those that are kept. Ids are those of the index outside, and of the graph inside.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cocite.errors import UsageError
from cocite.index import StoredIndex
from cocite.index.layouts.minhash.reader import MatchReader
from cocite.index.layouts.trees.meetings import MeetingReader
from cocite.measures import WholeSettings
from cocite.resources import Resources
from cocite.search.filters import Filter
from cocite.search.refine.candidates import Level, Refined, Refiner, SampleRefiner
from cocite.search.refine.linear import LinearRefiner, NeighborhoodRefiner
from cocite.search.scorer import ScoreQuery, Scorer
from cocite.search.source import GivenGraph


def refiner_for(scorer: Scorer, graph: GivenGraph, means: Resources) -> Refiner | None:
    """What refines the answers of an index; None if no part of it is sampled.

    Raises :class:`UsageError` if parts would be refined in different ways.
    """
    stored, sampled = scorer.stored, scorer.sampled
    if all(part.plan.linearized for part in stored.parts):
        kind = LinearRefiner if stored.wanted is None else SelectedRefiner
        return kind(stored, graph, means)
    if not sampled:
        return None
    if all(isinstance(reader, MeetingReader) for reader in sampled):
        return SampleRefiner(scorer, graph, means)
    if all(isinstance(reader, MatchReader) for reader in sampled):
        return NeighborhoodRefiner(scorer, graph, means)
    raise UsageError(
        f"{stored.measure.name} has no refined answers: measures of walks and xjaccard are refined "
        "in different ways. Build an index of more samples (--samples) instead"
    )


# -- selected ----------------------------------------------------------------------------


class SelectedRefiner(LinearRefiner):
    """Of SimRank, for the pages of ``stored``."""

    def __init__(self, stored: StoredIndex, graph: GivenGraph, means: Resources) -> None:
        super().__init__(stored.of_graph(), graph, means)
        self._outside = stored
        everybody = np.arange(stored.nodes, dtype=np.uint32)
        self._requested = stored.in_graph(everybody)

    def top(self, node: int, query: ScoreQuery, level: Level) -> Refined:
        """The best k that are kept; equal scores by ascending node."""
        chosen = query.chosen
        only = (self._requested, *(self._requested[ids] for ids in chosen.only))
        if chosen.within is not None:
            only = (*only, self._requested[chosen.within.start : chosen.within.stop])
        never = tuple(self._requested[ids] for ids in chosen.never)
        inside = query._replace(chosen=Filter(only, never))
        return self._named(super().top(self._in(node), inside, level))

    def pair(self, node: int, other: int, settings: WholeSettings, level: Level) -> Refined:
        """The score of ``other`` in the row of ``node``, which is another node."""
        return self._named(super().pair(self._in(node), self._in(other), settings, level))

    def _in(self, node: int) -> int:
        return int(self._requested[node])

    def _named(self, found: Refined) -> Refined:
        ids = np.searchsorted(self._requested, found.ids).astype(np.uint32)
        return replace(found, ids=ids)
