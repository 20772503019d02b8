"""Refined answers for SimRank: rows of its linearised form, for each part of an index.

The diagonal they need is in an index built with ``refine``, for the default decay; else, and for
any other decay, it is made when the first question needs it and kept while the index is open.
An index of both directions has the mean of two rows, and the sum of what they may be off by.

An interval holds for certain: what a run left out, the extremes of the diagonal's residuals, and
room for rounding. The error aimed at is that of what runs leave out; it is not reached where that
would read more than twenty million links.

Cost: as ``row.py``; the diagonal as ``engine/diagonal.py``.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cocite.codes import GRAINS
from cocite.engine.diagonal import diagonal_room, make_diagonal
from cocite.index import StoredIndex
from cocite.layouts.scratch import QueryScratch, borrowed
from cocite.means import Means
from cocite.measures import WholeSettings
from cocite.query.filters import Filter
from cocite.query.refine.refiner import Level, Refined, Refiner, decay_of, most_of
from cocite.query.refine.row import Linear
from cocite.query.source import Given

__all__ = ["LinearRefiner"]

_MOST_LINKS = 20_000_000
"""Links that a question may read: some 0.1 s of work."""
_ROUNDING = 1e-11


class LinearRefiner(Refiner):
    """Of SimRank."""

    certain = True

    def __init__(self, stored: StoredIndex, graph: Given, means: Means) -> None:
        super().__init__(stored, graph, means)
        self._made = cache(self._make)

    def linear(self, number: int, decay: float) -> Linear:
        """What answers for a part, by its place among them; made once for each decay."""
        with self._lock:
            return self._made(number, decay)

    def _make(self, number: int, decay: float) -> Linear:
        part = self._stored.parts[number]
        rows, columns = self.ends(part.direction)
        diagonal = self._stored.diagonal(part)
        if diagonal is None or diagonal.decay != decay:
            threads = diagonal_room(rows, columns, self._means)
            diagonal = make_diagonal(rows, columns, decay, threads=threads, progress=self.report)
        return Linear(rows, columns, diagonal)

    def check(self, settings: WholeSettings) -> None:
        """Refuse what is not by decay alone."""
        most_of(self._stored, settings)

    def top(
        self,
        node: int,
        k: int,
        min_score: float,
        chosen: Filter,
        settings: WholeSettings,
        level: Level,
    ) -> Refined:
        """The best k, by what is found; equal scores by ascending node."""
        with borrowed(self._stored.nodes) as scratch:
            error = self._add_rows(node, settings, level.target, scratch)
            ids, best = chosen.best(scratch, k, min_score)
        return self._with_intervals(ids, best[:, 0] / GRAINS, error, settings)

    def pair(self, node: int, other: int, settings: WholeSettings, level: Level) -> Refined:
        """The score of ``other`` in the row of ``node``, which is another node."""
        with borrowed(self._stored.nodes) as scratch:
            error = self._add_rows(node, settings, level.target, scratch)
            score = np.rint(scratch.totals[other, :1]) / GRAINS
            scratch.totals[scratch.touched[: scratch.have]] = 0
        return self._with_intervals(np.array([other], np.uint32), score, error, settings)

    def _add_rows(
        self, node: int, settings: WholeSettings, target: float, scratch: QueryScratch
    ) -> tuple[float, float, float]:
        """Add the rows of all parts, no score above what different nodes can have; returns what
        may be missing, and the residuals' extremes.
        """
        bound, low, high = 0.0, 0.0, 0.0
        for number, part in enumerate(self._stored.parts):
            linear = self.linear(number, decay_of(part, settings))
            row = linear.add_row(node, target, _MOST_LINKS, part.weight, scratch)
            bound += part.weight * row.bound
            low, high = min(low, linear.diagonal.low), max(high, linear.diagonal.high)
        there = scratch.touched[: scratch.have]
        most = np.rint(most_of(self._stored, settings) * GRAINS)
        scratch.totals[there, 0] = np.minimum(scratch.totals[there, 0], most)
        return bound, low, high

    def _with_intervals(
        self,
        ids: NDArray[np.uint32],
        scores: NDArray[np.float64],
        error: tuple[float, float, float],
        settings: WholeSettings,
    ) -> Refined:
        """Intervals from what may be missing and the extremes of the residuals; different nodes
        score the decay at most.
        """
        bound, least, most = error
        low = np.maximum(0.0, scores / (1 + most) - _ROUNDING)
        high = (scores + bound) / (1 + least) + _ROUNDING
        high = np.maximum(scores, np.minimum(high, most_of(self._stored, settings)))
        return Refined(ids, scores, np.zeros(ids.size), low, high)
