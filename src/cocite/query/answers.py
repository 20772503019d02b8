"""What an index says of nodes by their ids: sums of its parts, their errors and intervals.

    score = sum over parts of weight * score of the part         in grains, rounded once
    variance likewise, with weights squared; what is certain of parts adds up, too

Cost: that of the readers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cocite.codes import GRAINS
from cocite.index import StoredIndex
from cocite.layouts.reader import Reader, SampledReader, Span
from cocite.layouts.scratch import borrowed
from cocite.layouts.table import reader_of
from cocite.measures import AskValue, WholeSettings
from cocite.query.confidence import Draws, around, leading_certain
from cocite.query.filters import Filter
from cocite.query.scores import scores_of

__all__ = ["Answers"]

_AT_ONCE = 256
"""Hits whose samples are looked at together."""


class Answers:
    """Answers for all parts of an index together. Safe to share between threads."""

    def __init__(self, stored: StoredIndex) -> None:
        self._stored = stored

    @cached_property
    def readers(self) -> tuple[Reader, ...]:
        """What answers for each part."""
        return tuple(map(reader_of, self._stored.parts))

    def top(
        self, node: int, k: int, min_score: float, chosen: Filter, settings: WholeSettings
    ) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
        """The ids of the best k, and float64[h, 2]: their scores in grains, and variances."""
        with borrowed(self._stored.nodes) as scratch:
            for reader in self.readers:
                reader.gather(node, reader.part.ask_settings(settings), scratch)
                if self._scatters:
                    scratch.list_once()
            ids, best = chosen.best(scratch, k, min_score)
        for reader in self.readers:
            own = reader.part.ask_settings(settings)
            best[:, 1] += reader.part.weight**2 * reader.variances(node, ids, own)
        return ids, best

    @cached_property
    def _scatters(self) -> bool:
        """Whether totals may come to 0 on the way, and go on."""
        return len(self.readers) > 2 and any(reader.signed for reader in self.readers)

    @cached_property
    def _sampled(self) -> list[SampledReader]:
        return [reader for reader in self.readers if isinstance(reader, SampledReader)]

    def _estimate(
        self, first: int, second: int, asked: WholeSettings
    ) -> tuple[list[float], list[float]]:
        """The score of a pair and its standard error."""
        grains = variance = 0.0
        for reader in self.readers:
            found, weight = (
                reader.pair(first, second, reader.part.ask_settings(asked)),
                reader.part.weight,
            )
            grains += weight * found.grains
            variance += weight * weight * found.variance
        self.check([grains])
        return scores_of(np.array([[np.rint(grains), variance]]))

    def _draws(self, node: int, others: NDArray[np.uint32], asked: WholeSettings) -> Draws:
        """What the samples of all parts together say of ``node`` and others that are not it."""
        span, found = Span(0.0, 0.0, 0.0), []
        for reader in self._sampled:
            own, weight = reader.part.ask_settings(asked), reader.part.weight
            values, most = reader.values(node, others, own)
            span = span.plus(reader.span(own), weight)
            found.append((values, most) if weight == 1 else (weight * values, weight * most))
        shared = min(len(values) for values, _ in found)
        values, most = found[0][0][-shared:], found[0][1][-shared:]
        for more, greatest in found[1:]:
            values, most = values + more[-shared:], most + greatest[-shared:]
        freshness = self._stored.freshness
        known = None if freshness.since is None else freshness.knowing(node, others)
        return Draws(values, most, span, known, freshness.alike)

    def _apart(
        self, node: int, others: NDArray[np.uint32], asked: WholeSettings
    ) -> NDArray[np.float64] | float:
        """float64[h]: how far scores are above the means of the samples that all parts have, where
        parts have lost different ones: each is estimated from all of its own.
        """
        if len({reader.part.freshness.held.size for reader in self._sampled}) < 2:
            return 0.0
        shared, found = self._stored.freshness.knowing(node, others), np.zeros(others.size)
        for reader in self._sampled:
            values, _ = reader.values(node, others, reader.part.ask_settings(asked))
            own = reader.part.freshness.knowing(node, others)
            for row, (mine, all_) in enumerate(zip(own.tolist(), shared.tolist(), strict=True)):
                apart = values[-mine:, row].mean() - values[-all_:, row].mean()
                found[row] += reader.part.weight * apart
        return found

    def _exact(
        self, reader: Reader, node: int, others: NDArray[np.uint32], asked: WholeSettings
    ) -> NDArray[np.float64]:
        """float64[h]: what a part without samples adds to some scores."""
        with borrowed(self._stored.nodes) as scratch:
            reader.gather(node, reader.part.ask_settings(asked), scratch)
            found: NDArray[np.float64] = scratch.totals[others, 0] / GRAINS
            scratch.totals[scratch.touched[: scratch.have]] = 0.0
        return found

    def _certified(
        self, node: int, others: NDArray[np.uint32], asked: WholeSettings
    ) -> NDArray[np.float64]:
        """float64[h, 2]: how far scores may be below and above what is computed, for certain."""
        slack = np.zeros((others.size, 2))
        for reader in self.readers:
            if not isinstance(reader, SampledReader):
                own = reader.part.ask_settings(asked)
                slack += reader.part.weight * reader.certified(node, others, own)
        return slack

    def _spread(
        self,
        node: int,
        others: NDArray[np.uint32],
        asked: WholeSettings,
        confidences: Sequence[float],
        bound: str,
    ) -> NDArray[np.float64]:
        """float64[confidences, 2, h]: how far the truth may be below the samples' mean, and above
        it; nothing of a node and itself.
        """
        found = np.zeros((len(confidences), 2, others.size))
        if not self._sampled:
            return found
        different = np.flatnonzero(others != node)
        for begin in range(0, different.size, _AT_ONCE):
            part = different[begin : begin + _AT_ONCE]
            draws = self._draws(node, others[part], asked)
            apart = self._apart(node, others[part], asked)
            for level, confidence in enumerate(confidences):
                _, below, above = around(draws, confidence, bound)
                found[level][0, part] = np.maximum(0.0, below + apart)
                found[level][1, part] = np.maximum(0.0, above - apart)
        return found

    def _intervals(
        self,
        node: int,
        others: NDArray[np.uint32],
        scores: list[float],
        asked: WholeSettings,
        confidences: Sequence[float],
        bound: str,
    ) -> list[tuple[list[float], list[float]]]:
        """The ends of the intervals of some scores, for each confidence; whole grains, outwards."""
        room = self._spread(node, others, asked, confidences, bound)
        room = np.ceil((room + self._certified(node, others, asked).T) * GRAINS)
        middle = np.rint(np.array(scores) * GRAINS)
        most = np.full(others.size, np.inf)
        if self._stored.measure.unit:
            most = np.maximum(middle, GRAINS)
        if len(self._sampled) == len(self.readers):
            most[others != node] = math.ceil(self._most(asked) * GRAINS)
        low = np.maximum(0.0, middle - room[:, 0])
        # An estimate may be below 0, what it estimates is not.
        high = np.maximum(low, np.minimum(middle + room[:, 1], most))
        self.check(high.ravel().tolist())  # which nothing that is no number leaves alone
        return list(zip((low / GRAINS).tolist(), (high / GRAINS).tolist(), strict=True))

    def check(self, values: Iterable[float]) -> None:
        """Raise :class:`Damaged` if some are no numbers: no file that is whole makes such."""
        if not all(map(math.isfinite, values)):
            raise self._stored.damaged()

    def _most(self, asked: WholeSettings) -> float:
        """The most that the samples of two different nodes say."""
        return sum(
            reader.part.weight * reader.span(reader.part.ask_settings(asked)).most
            for reader in self._sampled
        )

    def _leading(
        self,
        node: int,
        ids: NDArray[np.uint32],
        asked: WholeSettings,
        confidence: float,
        bound: str,
    ) -> int:
        """How many of the first of some nodes stand in their order for certain."""
        for begin in range(0, max(1, ids.size - 1), _AT_ONCE):
            part = ids[begin : begin + _AT_ONCE + 1]
            room = self._certified(node, part, asked)
            doubt = room[:-1, 0] + room[1:, 1]
            for reader in self.readers:  # what is not sampled is the same in every sample
                if not isinstance(reader, SampledReader):
                    doubt += np.diff(self._exact(reader, node, part, asked))
            draws = self._draws(node, part, asked)
            sure = leading_certain(draws, confidence, bound, doubt)
            if sure < part.size - 1:
                return begin + sure
        return max(0, ids.size - 1)

    def _asked(self, settings: dict[str, AskValue]) -> WholeSettings:
        return self._stored.ask_settings(settings)
