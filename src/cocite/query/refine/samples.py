"""Refined answers by more samples, for a few candidates: walks replayed from the stored graph.

A sample is a function of its number, so walks of samples that an index does not hold can be made
for some nodes alone. The index's best are the candidates; in rounds, each of which doubles the
samples, the query's walk and theirs are followed until they meet. A candidate is dropped when it is
clearly out: its interval lies below those of k others. Rounds end when k are left, when
all intervals are as narrow as asked for, or at ``MOST_SAMPLES``. Parts of an index that are not
sampled add what they always do.

Scores are those of an index with as many samples, to the bit. Intervals come from bets that are all
alike (``kernels/betting.py``), all of them together holding with the probability asked for, over
all nodes that could have been candidates and all rounds; as in any answer from samples, ``high``
has room for what walks without end may still meet.

Convention: what is not among the index's best max(100, 4 k) is no candidate, and no hit. Of an
index that was refreshed the newest samples are gone on with, so answers are of the newest graph.
Cost: a step of each candidate still in, each step of each sample; some 0.1 ms a sample.
Source: Waudby-Smith, Ramdas 2024, as in ``query/confidence.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cocite.deadline import check
from cocite.engine.probe import follow
from cocite.engine.walk import Mover
from cocite.graph.links import links_of
from cocite.graph.rows import Links
from cocite.index import StoredIndex
from cocite.layouts.drawn.part import UnbuiltPart
from cocite.layouts.reader import Reader, Span, weights_of
from cocite.layouts.stored import StoredPart
from cocite.layouts.walks.meetings import MeetingReader
from cocite.layouts.walks.replay import part_mover
from cocite.means import Means
from cocite.measures import LENGTH, WholeSettings
from cocite.query.confidence import counted_ends
from cocite.query.refine.candidates import CandidateRefiner, Top, shared_confidence
from cocite.query.refine.refiner import Level, Refined
from cocite.query.scores import scores_of
from cocite.query.source import Given

__all__ = ["MOST_SAMPLES", "SampleRefiner"]

MOST_SAMPLES = 4096


@dataclass(frozen=True)
class _Candidates:
    """Who is still in, and what is known of each.

    ``ids`` uint32[h]; ``counts`` uint64[h, 16] for each sampled part, how often a candidate met the
    node after so many steps; ``exact`` float64[h, 3], what the other parts add to the score, in
    grains, and how far the truth may be below and above that.
    """

    ids: NDArray[np.uint32]
    counts: tuple[NDArray[np.uint64], ...]
    exact: NDArray[np.float64]

    def taken(self, rows: NDArray[np.bool_]) -> _Candidates:
        """Some of them."""
        counts = tuple(each[rows] for each in self.counts)
        return replace(self, ids=self.ids[rows], counts=counts, exact=self.exact[rows])


class SampleRefiner(CandidateRefiner):
    """Of indexes with parts that walk."""

    kind = MeetingReader

    def __init__(
        self,
        stored: StoredIndex,
        graph: Given,
        means: Means,
        readers: Sequence[Reader],
        top: Top,
    ) -> None:
        """As for every refiner of candidates."""
        super().__init__(stored, graph, means, readers, top)
        self._walking = [reader for reader in readers if isinstance(reader, MeetingReader)]

    @cached_property
    def movers(self) -> tuple[Mover, ...]:
        """What makes the steps of each part that walks."""
        return tuple(part_mover(r.part, self._links(r.part), self._means) for r in self._walking)

    def _links(self, part: StoredPart) -> Links:
        if isinstance(part, UnbuiltPart):
            return part.links(part.direction)
        memory = self._means.memory
        return links_of(self.graph, part.direction, memory, weighted=part.weighted)

    def _settled(
        self,
        node: int,
        ids: NDArray[np.uint32],
        k: int | None,
        settings: WholeSettings,
        level: Level,
    ) -> Refined:
        """Round after round of samples, until nothing more is to be settled."""
        held = self._stored.freshness.newest
        samples, first = len(held), held.start
        counts = tuple(_counts(reader, node, ids, held) for reader in self._walking)
        for reader, each in zip(self._walking, counts, strict=True):
            lost = np.setdiff1d(held, reader.part.freshness.held).tolist()
            if lost:  # drawn again, so that answers are those of the index when it was whole
                mover = self.movers[self._walking.index(reader)]
                self._follow(mover, reader.part.settings[LENGTH], node, ids, lost, each)
        still = _Candidates(ids, counts, self._exact(node, ids, settings))
        rounds = max(1, math.ceil(math.log2(max(2, MOST_SAMPLES / samples))) + 1)
        tests = rounds * (1 if k is None else self._stored.nodes)
        confidence = shared_confidence(level.confidence, tests)

        def settled() -> Refined:
            if level.above is None:
                return found
            above = shared_confidence(level.above, tests)
            return replace(found, least=self._estimated(still, samples, settings, above).low)

        while True:
            found = self._estimated(still, samples, settings, confidence)
            if found.ids.size == 0 or samples >= MOST_SAMPLES:
                return settled()
            half = float((found.high - found.low).max()) / 2
            least = np.sort(found.low)[-k] if k and k <= found.ids.size else 0.0
            into = found.high >= least
            if half <= level.target or (k is not None and int(into.sum()) <= k):
                return settled()
            still = still.taken(into)
            more = min(2 * samples, MOST_SAMPLES)
            for reader, mover, each in zip(self._walking, self.movers, still.counts, strict=True):
                length = reader.part.settings[LENGTH]
                drawn = range(first + samples, first + more)
                self._follow(mover, length, node, still.ids, drawn, each)
            samples = more

    def _follow(
        self,
        mover: Mover,
        length: int,
        node: int,
        ids: NDArray[np.uint32],
        samples: Iterable[int],
        counts: NDArray[np.uint64],
    ) -> None:
        """Add to ``counts`` what more samples say."""
        nodes = self._stored.in_graph(np.concatenate([np.array([node], np.uint32), ids]))
        for sample in samples:
            check()
            times = follow(mover, length, sample, nodes)[1:]
            met = np.flatnonzero(times < 16)
            counts[met, times[met]] += np.uint64(1)

    def _estimated(
        self, still: _Candidates, samples: int, settings: WholeSettings, confidence: float
    ) -> Refined:
        """Scores from counted meeting times, as an index of so many samples would have them."""
        from cocite.kernels import totals

        best = np.zeros((still.ids.size, 2))
        for reader, each in zip(self._walking, still.counts, strict=True):
            own, weight = reader.part.ask_settings(settings), reader.part.weight
            sums = each @ weights_of(reader.worth(own).values)
            for row in range(still.ids.size):
                grains, variance = totals.estimate(sums[row, 0], sums[row, 1], float(samples))
                best[row, 0] += weight * grains
                best[row, 1] += weight * weight * variance
        scores, errors = map(np.array, scores_of(best))
        low, high = self._held(still, samples, settings, confidence)
        fixed = scores_of(np.column_stack((np.rint(still.exact[:, 0]), np.zeros(still.ids.size))))
        best[:, 0] = np.rint(best[:, 0] + still.exact[:, 0])
        low += np.array(fixed[0]) - still.exact[:, 1]
        high += np.array(fixed[0]) + still.exact[:, 2]
        scores = np.array(scores_of(best)[0])
        low = np.minimum(scores, np.maximum(0.0, low))
        return Refined(still.ids, scores, errors, low, np.maximum(high, scores))

    def _held(
        self, still: _Candidates, samples: int, settings: WholeSettings, confidence: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The intervals of what the walks add up to: the mean over the samples of all parts, each
        value times the part's weight and the number of parts.
        """
        parts = len(self._walking)
        values, most, counts, spans = [], [], [], []
        for reader, met in zip(self._walking, still.counts, strict=True):
            own, weight = reader.part.ask_settings(settings), parts * reader.part.weight
            span = reader.span(own)
            found = reader.worth(own)
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


def _counts(
    reader: MeetingReader, node: int, ids: NDArray[np.uint32], newest: range
) -> NDArray[np.uint64]:
    """uint64[ids, 16]: how often each candidate met the node after so many steps, in the newest
    samples that are there.
    """
    found = np.zeros((ids.size, 16), np.uint64)
    there = reader.part.freshness.held >= newest.start
    for row, times in enumerate(reader.times_with(node, ids)[there].T):
        found[row] = np.bincount(times[times < 16], minlength=16)
    return found
