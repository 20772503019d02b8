"""What an index says of nodes by their ids: sums of its parts, their errors and intervals.

    score = sum over parts of weight * score of the part         in grains, rounded once
    variance likewise, with weights squared; what is certain of parts adds up, too

Cost: that of the readers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cocite.codes import GRAINS
from cocite.index import StoredIndex
from cocite.layouts.reader import Reader, SampledReader
from cocite.layouts.scratch import borrowed
from cocite.layouts.table import reader_of
from cocite.measures import AskValue, WholeSettings
from cocite.query.confidence import half_width
from cocite.query.filters import Filter
from cocite.query.scores import scores_of

__all__ = ["Answers"]


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

    def _width(self, asked: WholeSettings) -> float:
        return sum(
            reader.part.weight * reader.width(reader.part.ask_settings(asked))
            for reader in self._sampled
        )

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
            own = reader.part.ask_settings(asked)
            slack += reader.part.weight * reader.certified(node, others, own)
        return slack

    def _intervals(
        self,
        node: int,
        others: NDArray[np.uint32],
        scores: list[float],
        errors: list[float],
        asked: WholeSettings,
        confidence: float,
        bound: str,
    ) -> tuple[list[float], list[float]]:
        """The ends of the intervals of some scores."""
        below = self._certified(node, others, asked)
        if self._sampled:
            samples = self._stored.freshness.knowing(node, others)
            half = half_width(errors, samples, self._width(asked), confidence, bound)
            half[others == node] = 0  # a node and itself, in every sample
            below += half[:, None]
        low = np.maximum(0.0, np.array(scores) - below[:, 0])
        high = np.array(scores) + below[:, 1]
        if self._stored.measure.unit:
            high = np.minimum(high, np.maximum(scores, 1.0))
        if len(self._sampled) == len(self.readers):
            high = np.where(others == node, high, np.minimum(self._width(asked), high))
        high = np.maximum(low, high)  # an estimate may be below 0, what it estimates is not
        ends: tuple[list[float], list[float]] = low.round(12).tolist(), high.round(12).tolist()
        self.check(ends[1])  # which nothing that is no number leaves alone
        return ends

    def check(self, values: Iterable[float]) -> None:
        """Raise :class:`Damaged` if some are no numbers: no file that is whole makes such."""
        if not all(map(math.isfinite, values)):
            raise self._stored.damaged()

    def _asked(self, settings: dict[str, AskValue]) -> WholeSettings:
        return self._stored.ask_settings(settings)
