"""Refine the best hits by drawing further samples from the graph.

The best max(100, 4 k) hits of the index are candidates. Each round doubles the number of samples. A
sample is determined by its number, so samples that the index lacks can be drawn for the candidates
alone. A candidate is dropped when its interval lies below the intervals of k others. Rounds end
when k candidates are left, all intervals are narrow enough, or ``MOST_SAMPLES`` are drawn.
Intervals use equal stakes and hold jointly, over all nodes and rounds. A sample takes about 0.1 ms.

Parts without samples are added unchanged. SimRank and XJaccard are computed without samples instead
(``search/refine/linear.py``).
Source: Waudby-Smith, Ramdas 2024, as in ``search/intervals.py``.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS, Bools, Floats, Ids, added
from cocite.deadline import check
from cocite.engine.walk import Mover, follow
from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.graph.links import links_of
from cocite.index import StoredIndex
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import Reader, Span, borrowed, weights_of
from cocite.index.layouts.trees.reader import MeetingReader
from cocite.index.layouts.trees.replay import part_mover
from cocite.measures import DECAY, LENGTH, MEETING_WEIGHT, WholeSettings
from cocite.options import opposite
from cocite.resources import Resources
from cocite.search.hits import scores_of
from cocite.search.intervals import counted_ends
from cocite.search.scorer import ScoreQuery, Scorer
from cocite.search.source import GivenGraph, checked_graph

DEFAULT_TARGET = 0.001


class Level(NamedTuple):
    """How far to refine: the target error, the confidence of intervals, and the confidence with
    which hits must exceed ``min_score``; None if not required.
    """

    target: float
    confidence: float
    above: float | None = None


class Refined(NamedTuple):
    """Hits: ``ids`` uint32[h], ``scores``, standard ``errors``, ``low`` and ``high`` float64[h].

    ``least`` is ``low`` at the confidence :attr:`Level.above`; None if it equals ``low``.
    """

    ids: Ids
    scores: Floats
    errors: Floats
    low: Floats
    high: Floats
    least: Floats | None = None

    def taken(self, places: NDArray[np.intp]) -> Refined:
        """Return the hits at these positions, in this order."""
        columns: Any = (None if each is None else each[places] for each in self)
        return Refined(*columns)


class Refiner(ABC):
    """Refines answers from one index. Thread-safe."""

    certain = False
    """Whether intervals always hold, not just with probability ``confidence``."""

    def __init__(self, stored: StoredIndex, graph: GivenGraph, means: Resources) -> None:
        self._stored, self._given, self._means = stored, graph, means
        self.report: Callable[[int, int, int], None] = lambda sweep, done, total: None
        """Called with (sweep, nodes done, total nodes) while the first query prepares data."""
        self._lock = threading.Lock()

    @cached_property
    def graph(self) -> Graph:
        """Return the index's graph, validated."""
        return checked_graph(self._stored, self._given)

    def ends(self, direction: str) -> tuple[Links, Links]:
        """Return the links in a direction and in the opposite one, without weights."""
        return self._ends[direction], self._ends[opposite(direction)]

    @cached_property
    def _ends(self) -> dict[str, Links]:
        return {way: links_of(self.graph, way, self._means.memory) for way in ("in", "out")}

    def check(self, settings: WholeSettings) -> None:
        """Raise :class:`UsageError` for an unsupported query; by default, all are supported."""
        return

    @abstractmethod
    def top(self, node: int, query: ScoreQuery, level: Level) -> Refined:
        """Return the best k; ties are broken by hash."""

    @abstractmethod
    def pair(self, node: int, other: int, settings: WholeSettings, level: Level) -> Refined:
        """Return the score of ``node`` with ``other``, a different node."""


def most_of(stored: StoredIndex, settings: WholeSettings) -> float:
    """Return the maximum score of different nodes for walk measures: the weighted mean decay."""
    return added(part.weight * decay_of(part, settings) for part in stored.parts)


def decay_of(part: StoredPart, settings: WholeSettings) -> float:
    """Return a part's decay; raises :class:`UsageError` for meeting weights other than the
    default, because they have no linearized form.
    """
    own = part.ask_settings(settings)
    if own[MEETING_WEIGHT] != MEETING_WEIGHT.default:
        raise UsageError(
            f"meeting_weight is {own[MEETING_WEIGHT]!r}, but simrank scores can be refined only "
            f"with the default: pass --meeting-weight {MEETING_WEIGHT.default!r} "
            "(meeting_weight=...), or omit --refine (refine=True) and --target-error "
            "(target_error=...)"
        )
    return own[DECAY]


_FEWEST = 100


class CandidateRefiner(Refiner):
    """Refines candidates from an index whose sampled parts have readers of class ``kind``."""

    kind: ClassVar[type[Reader]]

    def __init__(self, scorer: Scorer, graph: GivenGraph, means: Resources) -> None:
        """Create a refiner; ``scorer`` finds candidates."""
        super().__init__(scorer.stored, graph, means)
        self._scorer = scorer
        self._sampled: list[Any] = [r for r in scorer.readers if isinstance(r, self.kind)]
        self._others = [each for each in scorer.readers if not isinstance(each, self.kind)]

    @abstractmethod
    def _settled(
        self, node: int, ids: Ids, k: int | None, settings: WholeSettings, level: Level
    ) -> Refined:
        """Refine the candidates that may be among the best ``k``; None refines all."""

    def top(self, node: int, query: ScoreQuery, level: Level) -> Refined:
        """Return the best k candidates; ties are broken by hash."""
        from cocite.kernels.totals import order

        k, chosen = query.k, query.chosen
        # Any estimate is accepted, because refined scores replace it (see Filter.passing).
        wide = query._replace(k=max(_FEWEST, 4 * k), chosen=replace(chosen, min_score=0.0))
        ids, _ = self._scorer.top(node, wide)
        found = self._settled(node, ids, k, query.settings, level)
        places = order(found.ids, found.scores)
        return found.taken(places[chosen.passing(found.scores[places])][:k])

    def pair(self, node: int, other: int, settings: WholeSettings, level: Level) -> Refined:
        """Return the score of ``node`` with ``other``, a different node."""
        return self._settled(node, np.array([other], np.uint32), None, settings, level)

    def _exact(self, node: int, ids: Ids, settings: WholeSettings) -> Floats:
        """Return float64[h, 3]: contributions of unsampled parts in grains, and how far exact
        contributions may be below and above, as scores.
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
    """Return the confidence that each interval needs for all to hold with ``confidence``."""
    return min(1 - 1e-15, 1 - (1 - confidence) / max(1, tests))


# -- samples -----------------------------------------------------------------------------


MOST_SAMPLES = 4096


@dataclass(frozen=True)
class _Candidates:
    """The remaining candidates.

    ``ids`` are uint32[h]. ``counts`` has an array per sampled part, uint64[h, 16]: how often a
    candidate met the node after each number of steps. ``exact`` float64[h, 3] is as in
    :meth:`CandidateRefiner._exact`.
    """

    ids: Ids
    counts: tuple[NDArray[np.uint64], ...]
    exact: Floats

    def taken(self, rows: Bools) -> _Candidates:
        counts = tuple(each[rows] for each in self.counts)
        return replace(self, ids=self.ids[rows], counts=counts, exact=self.exact[rows])


class SampleRefiner(CandidateRefiner):
    """Refines walk measures, and blends that include them."""

    kind = MeetingReader

    @cached_property
    def movers(self) -> tuple[Mover, ...]:
        """Return a mover per part with walks."""
        found, memory = [], self._means.memory
        for part in (reader.part for reader in self._sampled):
            links = links_of(self.graph, part.direction, memory, weighted=part.weighted)
            found.append(part_mover(part, links, self._means))
        return tuple(found)

    def _settled(
        self, node: int, ids: Ids, k: int | None, settings: WholeSettings, level: Level
    ) -> Refined:
        """Draw rounds of samples until the order is settled or the error is small enough."""
        held = self._stored.freshness.newest
        samples, first = len(held), held.start
        counts = tuple(_counts(reader, node, ids, held) for reader in self._sampled)
        for reader, each in zip(self._sampled, counts, strict=True):
            lost = np.setdiff1d(held, reader.part.freshness.held).tolist()
            if lost:  # draw them again, so that answers equal those of the undamaged index
                mover = self.movers[self._sampled.index(reader)]
                self._follow(mover, reader.part.settings[LENGTH], node, ids, lost, each)
        still = _Candidates(ids, counts, self._exact(node, ids, settings))
        rounds = max(1, math.ceil(math.log2(max(2, MOST_SAMPLES / samples))) + 1)
        tests = rounds * (1 if k is None else self._stored.nodes)
        confidence = shared_confidence(level.confidence, tests)

        while True:
            found = self._estimated(still, samples, settings, confidence)
            if found.ids.size == 0 or samples >= MOST_SAMPLES:
                break
            half = float((found.high - found.low).max()) / 2
            least = np.sort(found.low)[-k] if k and k <= found.ids.size else 0.0
            into = found.high >= least
            if half <= level.target or (k is not None and int(into.sum()) <= k):
                break
            still = still.taken(into)
            more = min(2 * samples, MOST_SAMPLES)
            for reader, mover, each in zip(self._sampled, self.movers, still.counts, strict=True):
                length = reader.part.settings[LENGTH]
                drawn = range(first + samples, first + more)
                self._follow(mover, length, node, still.ids, drawn, each)
            samples = more
        if level.above is None:
            return found
        above = shared_confidence(level.above, tests)
        return found._replace(least=self._estimated(still, samples, settings, above).low)

    def _follow(
        self,
        mover: Mover,
        length: int,
        node: int,
        ids: Ids,
        samples: Iterable[int],
        counts: NDArray[np.uint64],
    ) -> None:
        nodes = self._stored.in_graph(np.concatenate([np.array([node], np.uint32), ids]))
        for sample in samples:
            check()
            times = follow(mover, length, sample, nodes)[1:]
            met = np.flatnonzero(times < 16)
            counts[met, times[met]] += np.uint64(1)

    def _estimated(
        self, still: _Candidates, samples: int, settings: WholeSettings, confidence: float
    ) -> Refined:
        from cocite.kernels import totals

        best = np.zeros((still.ids.size, 2))
        for reader, each in zip(self._sampled, still.counts, strict=True):
            own, weight = reader.part.ask_settings(settings), reader.part.weight
            sums = each @ weights_of(reader.weight(own).values)
            for row in range(still.ids.size):
                grains, variance = totals.estimate(sums[row, 0], sums[row, 1], float(samples))
                best[row, 0] += weight * grains
                best[row, 1] += weight * weight * variance
        _, errors = scores_of(best)
        low, high = self._held(still, samples, settings, confidence)
        fixed = np.rint(still.exact[:, 0]) / GRAINS
        low += fixed - still.exact[:, 1]
        high += fixed + still.exact[:, 2]
        scores = np.rint(best[:, 0] + still.exact[:, 0]) / GRAINS
        low = np.minimum(scores, np.maximum(0.0, low))
        return Refined(still.ids, scores, errors, low, np.maximum(high, scores))

    def _held(
        self, still: _Candidates, samples: int, settings: WholeSettings, confidence: float
    ) -> tuple[Floats, Floats]:
        """Return interval ends for the weighted sum of walk parts. The sum is the mean, over all
        samples of all parts, of value * weight of the part * number of parts.
        """
        parts = len(self._sampled)
        values, most, counts, spans = [], [], [], []
        for reader, met in zip(self._sampled, still.counts, strict=True):
            own, weight = reader.part.ask_settings(settings), parts * reader.part.weight
            span = reader.span(own)
            found = reader.weight(own)
            worth = weight * np.array(found.values)
            values.append(np.append(worth, weight * span.least))
            most.append(np.append(worth, weight * found.beyond))
            counts.append(np.column_stack((met, samples - met.sum(axis=1, dtype=np.int64))))
            spans.append([weight * each for each in span])
        least, beyond, top = np.array(spans).T
        return counted_ends(
            np.concatenate(values),
            np.concatenate(most),
            np.column_stack(counts).astype(np.float64),
            Span(least.min(), beyond.min(), top.max()),
            confidence,
        )


def _counts(reader: MeetingReader, node: int, ids: Ids, newest: range) -> NDArray[np.uint64]:
    """Return uint64[ids, 16]: meetings with the node by step, in the newest available samples."""
    found = np.zeros((ids.size, 16), np.uint64)
    newer = reader.part.freshness.held >= newest.start
    for row, times in enumerate(reader.times_with(node, ids)[newer].T):
        found[row] = np.bincount(times[times < 16], minlength=16)
    return found
