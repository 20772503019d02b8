"""Refine without samples: rows of linearized SimRank, and neighborhoods for XJaccard.

    s(u, v)   = sum over l of c**l sum over w of (Q**l)(u, w) D(w) (Q**l)(v, w)
    J_k(u, v) = |I_k(u) & I_k(v)| / |I_k(u) | I_k(v)|,      k = 1, ..., length

For SimRank, two runs from u along the links (``kernels/linear.py``) omit at most ``bound`` of a
score, and the diagonal D is off by a factor between 1 + low and 1 + high (``engine/diagonal.py``).
Therefore found / (1 + high) <= s(u, v) <= (found + bound) / (1 + low) always holds. Thresholds are
lowered until the bound is small enough or the next run would read too many links. An index built
with ``refine`` stores the diagonal; otherwise the first query computes it. For XJaccard,
neighborhoods are counted exactly, candidate by candidate, up to a limit on links read. Reading a
link takes 2 to 4 ns.
Source: Fogaras, Racz, *Scaling link-based similarity search*, section 2.3.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from cocite.constants import GRAINS, Floats, Ids
from cocite.deadline import check
from cocite.engine.diagonal import Diagonal, diagonal_room, make_diagonal, make_space
from cocite.errors import UsageError
from cocite.graph.blocks import Links
from cocite.index import StoredIndex
from cocite.index.layouts.minhash.reader import MatchReader
from cocite.index.layouts.reader import QueryScratch, borrowed
from cocite.index.layouts.trees.reader import MeetingReader
from cocite.measures import WholeSettings
from cocite.measures.xjaccard import ring_weights
from cocite.progress import showing
from cocite.resources import Resources
from cocite.search.hits import scores_of
from cocite.search.intervals import Draws, around
from cocite.search.refine.candidates import (
    CandidateRefiner,
    Level,
    Refined,
    Refiner,
    SampleRefiner,
    decay_of,
    most_of,
    shared_confidence,
)
from cocite.search.scorer import ScoreQuery, Scorer
from cocite.search.source import GivenGraph

if TYPE_CHECKING:
    from cocite.kernels.linear import RunSpace


_FIRST = 2e-5
"""First threshold, relative to the target; one or two runs usually suffice."""
_LEFT_OUT = 1 / 40
"""Fraction of the target that a backward step may omit."""
_SHARPER = 8.0
_ENTRIES = 1 << 16


class Linear:
    """Computes rows of SimRank scores in one direction. Thread-safe."""

    def __init__(self, rows: Links, columns: Links, diagonal: Diagonal) -> None:
        """Create a solver from in-links ``rows`` and out-links ``columns``, or vice versa."""
        from cocite.kernels.linear import Rows

        self._rows = Rows(rows.offsets, rows.neighbors)
        self._columns = Rows(columns.offsets, columns.neighbors)
        self.nodes, self.diagonal = rows.nodes, diagonal

    def add_row(
        self, node: int, target: float, most_links: int, weight: float, scratch: QueryScratch
    ) -> float:
        """Add the scores of all nodes with ``node``, times ``weight``, to the totals. Return what
        may be missing from a score: at most ``target`` if ``most_links`` links suffice.
        """
        from cocite.kernels import linear

        decay, table = self.diagonal.decay, self.diagonal.table
        threshold, links = target * _FIRST, 0
        with _borrowed(self.nodes) as lent:
            while True:
                check()
                level, bound, read = linear.forward(
                    self._rows, table, node, decay, threshold, lent.space
                )
                if level == linear.OVERFLOW:
                    lent.grow()
                    continue
                links += read
                if bound <= target or links * _SHARPER / 4 > most_links:
                    break
                if linear.in_vain(self._rows, threshold, target):
                    break
                threshold /= max(_SHARPER / 4, min(_SHARPER * 8, (bound / target) ** 2))
            here, size, more, _ = linear.backward(
                self._rows, self._columns, table, level, decay, target * _LEFT_OUT, lent.space
            )
            scratch.have = int(
                linear.deposit(
                    lent.space,
                    here,
                    size,
                    weight * 1e12,
                    node,
                    scratch.totals,
                    scratch.touched,
                    scratch.have,
                )
            )
        return float(bound + more)


class _Lent:
    """A thread's scratch, for graphs of up to ``nodes`` nodes."""

    def __init__(self, nodes: int) -> None:
        self.nodes, self._entries = nodes, _ENTRIES
        self.space: RunSpace = make_space(nodes, _ENTRIES)

    def grow(self) -> None:
        self._entries *= 2
        more = make_space(0, self._entries)
        self.space = self.space._replace(nodes=more.nodes, amounts=more.amounts)


_local = threading.local()


@contextmanager
def _borrowed(nodes: int) -> Iterator[_Lent]:
    """Lend the thread's scratch, all zeros; a failed query discards the scratch."""
    found: _Lent | None = getattr(_local, "lent", None)
    if found is None or found.nodes < nodes:
        found = _Lent(nodes)
    _local.lent = None
    yield found
    _local.lent = found


_MOST_LINKS = 20_000_000
"""Maximum number of links that a query reads, in about 0.1 s."""
_ROUNDING = 1e-11


class LinearRefiner(Refiner):
    """Refines SimRank."""

    certain = True

    def __init__(self, stored: StoredIndex, graph: GivenGraph, means: Resources) -> None:
        super().__init__(stored, graph, means)
        self._built = cache(self._make)

    def linear(self, number: int, decay: float) -> Linear:
        """Return a part's solver for a decay, cached."""
        with self._lock:
            return self._built(number, decay)

    def _make(self, number: int, decay: float) -> Linear:
        part = self._stored.parts[number]
        rows, columns = self.ends(part.direction)
        diagonal = self._stored.diagonal(part)
        if diagonal is None or diagonal.decay != decay:
            threads = diagonal_room(rows, columns, self._means)
            with showing("preparing refined answers"):
                diagonal = make_diagonal(
                    rows, columns, decay, threads=threads, progress=self.report
                )
        return Linear(rows, columns, diagonal)

    def check(self, settings: WholeSettings) -> None:
        """Raise :class:`UsageError` for meeting weights other than the decay."""
        most_of(self._stored, settings)

    def top(self, node: int, query: ScoreQuery, level: Level) -> Refined:
        """Return the best k nodes; ties are broken by hash."""
        with borrowed(self._stored.nodes) as scratch:
            error = self._add_rows(node, query.settings, level.target, scratch)
            ids, best = query.chosen.best(scratch, query.k)
        return self._with_intervals(ids, best[:, 0] / GRAINS, error, query.settings)

    def pair(self, node: int, other: int, settings: WholeSettings, level: Level) -> Refined:
        """Return the score of ``other`` in the row of ``node``, a different node."""
        with borrowed(self._stored.nodes) as scratch:
            error = self._add_rows(node, settings, level.target, scratch)
            score = np.rint(scratch.totals[other, :1]) / GRAINS
            scratch.totals[scratch.touched[: scratch.have]] = 0
        return self._with_intervals(np.array([other], np.uint32), score, error, settings)

    def _add_rows(
        self, node: int, settings: WholeSettings, target: float, scratch: QueryScratch
    ) -> tuple[float, float, float]:
        """Add the rows of all parts; return what may be missing, and the extreme residuals."""
        bound, low, high = 0.0, 0.0, 0.0
        for number, part in enumerate(self._stored.parts):
            linear = self.linear(number, decay_of(part, settings))
            missing = linear.add_row(node, target, _MOST_LINKS, part.weight, scratch)
            bound += part.weight * missing
            low, high = min(low, linear.diagonal.low), max(high, linear.diagonal.high)
        touched = scratch.touched[: scratch.have]
        most = np.rint(most_of(self._stored, settings) * GRAINS)
        scratch.totals[touched, 0] = np.minimum(scratch.totals[touched, 0], most)
        return bound, low, high

    def _with_intervals(
        self, ids: Ids, scores: Floats, error: tuple[float, float, float], settings: WholeSettings
    ) -> Refined:
        bound, least, most = error
        low = np.maximum(0.0, scores / (1 + most) - _ROUNDING)
        high = (scores + bound) / (1 + least) + _ROUNDING
        high = np.maximum(scores, np.minimum(high, most_of(self._stored, settings)))
        return Refined(ids, scores, np.zeros(ids.size), low, high)


class SelectedRefiner(LinearRefiner):
    """Refines SimRank for an index of selected pages, with rows over the whole graph, because paths
    may leave these pages.
    """

    def __init__(self, stored: StoredIndex, graph: GivenGraph, means: Resources) -> None:
        super().__init__(stored.of_graph(), graph, means)
        everybody = np.arange(stored.nodes, dtype=np.uint32)
        self._requested = stored.in_graph(everybody)

    def top(self, node: int, query: ScoreQuery, level: Level) -> Refined:
        """Return the best k selected pages; ties are broken by hash."""
        chosen = query.chosen
        only = (self._requested, *(self._requested[ids] for ids in chosen.only))
        if chosen.within is not None:
            only = (*only, self._requested[chosen.within.start : chosen.within.stop])
        never = tuple(self._requested[ids] for ids in chosen.never)
        inside = query._replace(chosen=replace(chosen, only=only, never=never, within=None))
        return self._named(super().top(self._in(node), inside, level))

    def pair(self, node: int, other: int, settings: WholeSettings, level: Level) -> Refined:
        """Return the score of ``other`` in the row of ``node``, a different node."""
        return self._named(super().pair(self._in(node), self._in(other), settings, level))

    def _in(self, node: int) -> int:
        return int(self._requested[node])

    def _named(self, found: Refined) -> Refined:
        ids = np.searchsorted(self._requested, found.ids).astype(np.uint32)
        return found._replace(ids=ids)


MOST_LINKS = 100_000_000
"""Maximum number of links that a query reads, in about 0.2 s."""


class NeighborhoodRefiner(CandidateRefiner):
    """Refines XJaccard."""

    kind = MatchReader

    def _settled(
        self, node: int, ids: Ids, k: int | None, settings: WholeSettings, level: Level
    ) -> Refined:
        """Return all candidates, with exact scores until the limit on links is reached."""
        grains = self._exact(node, ids, settings)
        variances, spread = np.zeros(ids.size), np.zeros((2, 2, ids.size))
        tests = self._stored.nodes * len(self._sampled)
        levels = (level.confidence,) if level.above is None else (level.confidence, level.above)
        confidences = [shared_confidence(each, tests) for each in levels]
        for reader in self._sampled:
            own, weight = reader.part.ask_settings(settings), reader.part.weight
            me, *others = self._stored.in_graph(np.append(np.uint32(node), ids)).tolist()
            found = self._coefficients(reader, me, others, most=MOST_LINKS // len(self._sampled))
            scores = found @ np.array(ring_weights(own, reader.length))
            grains[:, 0] += weight * np.rint(np.nan_to_num(scores) * GRAINS)
            left = np.flatnonzero(np.isnan(scores))
            for row in left.tolist():
                check()
                estimate = reader.pair(node, int(ids[row]), own)
                grains[row, 0] += weight * estimate.grains
                variances[row] += weight**2 * estimate.variance
            if left.size:
                freshness = reader.part.freshness
                values, most = reader.values(node, ids[left], own)
                known = freshness.knowing(node, ids[left])
                draws = Draws(values, most, reader.span(own), known, freshness.alike)
                for at, confidence in enumerate(confidences):
                    spread[at][:, left] += weight * np.array(around(draws, confidence)[1:])
        sums = np.column_stack((np.rint(grains[:, 0]), variances))
        scores, errors = scores_of(sums)
        low = scores - spread[:, 0] - grains[:, 1] - _ROUNDING
        low = np.clip(low, 0.0, np.maximum(scores, 0.0))
        high = scores + spread[0, 1] + grains[:, 2] + _ROUNDING
        return Refined(ids, scores, errors, low[0], high, low[len(levels) - 1])

    def _coefficients(self, reader: MatchReader, node: int, ids: list[int], most: int) -> Floats:
        """Return float64[h, length]: the coefficients J_k with each candidate (a node id of the
        graph); NaN once the limit on links is reached.
        """
        from cocite.kernels.push import TOO_MANY, reachable

        links, _ = self.ends(reader.part.direction)
        count = partial(reachable, links.offsets, links.neighbors)
        mine, theirs = (np.zeros(links.nodes, np.uint8) for _ in range(2))
        scratch = np.empty(links.nodes, np.uint32)
        own, other = (np.zeros((reader.length, 2), np.int64) for _ in range(2))
        found = np.full((len(ids), reader.length), np.nan)
        nobody = np.empty(0, np.uint8)
        left = most - count(np.int64(node), nobody, mine, scratch, np.int64(most), own)
        if left > most:
            return found
        for row, candidate in enumerate(ids):
            check()
            read = count(np.int64(candidate), mine, theirs, scratch, np.int64(left), other)
            if read == TOO_MANY:
                break
            left -= read
            common = other[:, 1]
            found[row] = common / (own[:, 0] + other[:, 0] - common)
        return found


# -- choice of a refiner -------------------------------------------------------------------


def refiner_for(scorer: Scorer, graph: GivenGraph, means: Resources) -> Refiner | None:
    """Return the refiner, or None if no part is sampled; raises :class:`UsageError`."""
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
        f"{stored.measure.name} has no refined answers: walk measures and xjaccard are refined "
        "differently. Build an index with more --samples (samples=...) instead"
    )
