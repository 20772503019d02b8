"""What an index says of nodes by their ids: sums of its parts, their errors and intervals.

    score = sum over parts of weight * score of the part         in grains, rounded once
    variance likewise, with weights squared; what is certain of parts adds up, too

Several nodes may be asked together (``together.py``): then values are means over these, sample by
sample.

Cost: that of the readers, times the nodes asked.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cocite.adding import added
from cocite.codes import GRAINS
from cocite.deadline import check
from cocite.index import StoredIndex
from cocite.layouts.reader import Listed, Reader, SampledReader, Span
from cocite.layouts.scratch import QueryScratch, borrowed
from cocite.layouts.table import reader_of
from cocite.means import Means
from cocite.measures import AskValue, WholeSettings
from cocite.measures.evidence import EVIDENCE
from cocite.query.confidence import Draws, around, bets_of, leading_certain
from cocite.query.filters import Filter, floor_of
from cocite.query.scores import scores_of
from cocite.query.source import Given

if TYPE_CHECKING:
    from cocite.query.evidence import Evidence

__all__ = ["Answers", "Asked", "joined"]

Asked = tuple[int, ...]
"""Nodes asked together: the mean over them is what is told."""
_AT_ONCE = 256
"""Hits whose samples are looked at together."""
_KEPT = 1 << 16
"""Values of samples that a thread keeps until its next question."""


class Answers:
    """Answers for all parts of an index together. Safe to share between threads."""

    def __init__(self, stored: StoredIndex, means: Means, graph: Given = None) -> None:
        """``means`` are for what reads the graph again; ``graph`` says where that is."""
        self._stored, self.means, self._graph = stored, means, graph

    @cached_property
    def readers(self) -> tuple[Reader, ...]:
        """What answers for each part."""
        return tuple(map(reader_of, self._stored.parts))

    def reading(self, asked: WholeSettings) -> tuple[Reader, ...]:
        """What answers for each part of a question: with evidence, if that is asked for."""
        if all(reader.part.evidence(asked) == EVIDENCE.default for reader in self.readers):
            return self.readers
        return self._evidence.over(self.readers, asked)

    @cached_property
    def _evidence(self) -> Evidence:
        from cocite.query.evidence import Evidence

        return Evidence(self._stored, self.means, self._graph)

    def top(
        self, node: int, k: int, min_score: float, chosen: Filter, settings: WholeSettings
    ) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
        """The ids of the best k, and float64[h, 2]: their scores in grains, and variances."""
        with borrowed(self._stored.nodes) as scratch:
            self._gather(node, settings, scratch)
            ids, best = chosen.best(scratch, k, min_score)
        for reader in self.reading(settings):
            own = reader.part.ask_settings(settings)
            best[:, 1] += reader.part.weight**2 * reader.variances(node, ids, own)
        return ids, best

    def _at_once(
        self, node: int, k: int, min_score: float, confidence: float, asked: WholeSettings
    ) -> Listed | None:
        """What ``top``, ``_intervals`` by betting and ``_leading`` tell, to the bit, if a reader
        can tell it in one go.
        """
        readers = self.reading(asked)
        if len(readers) != 1:
            return None
        (reader,), floor = readers, floor_of(min_score)
        return reader.at_once(node, k, floor, bets_of(confidence), reader.part.ask_settings(asked))

    def _gather(self, node: int, settings: WholeSettings, scratch: QueryScratch) -> None:
        """Add up the scores of all nodes with ``node``."""
        for reader in self.reading(settings):
            check()
            reader.gather(node, reader.part.ask_settings(settings), scratch)
            if self._scatters:
                scratch.list_once()

    @cached_property
    def _scatters(self) -> bool:
        """Whether totals may come to 0 on the way, and go on."""
        return len(self.readers) > 2 and any(reader.signed for reader in self.readers)

    @cached_property
    def _sampled(self) -> list[SampledReader]:
        return [reader for reader in self.readers if isinstance(reader, SampledReader)]

    def _sampling(self, asked: WholeSettings) -> list[SampledReader]:
        """Those of a question."""
        return [reader for reader in self.reading(asked) if isinstance(reader, SampledReader)]

    def _estimate(
        self, first: int, second: int, asked: WholeSettings
    ) -> tuple[list[float], list[float]]:
        """The score of a pair and its standard error."""
        grains = variance = 0.0
        for reader in self.reading(asked):
            check()
            found, weight = (
                reader.pair(first, second, reader.part.ask_settings(asked)),
                reader.part.weight,
            )
            grains += weight * found.grains
            variance += weight * weight * found.variance
        self.check([grains])
        return scores_of(np.array([[np.rint(grains), variance]]))

    def _draws(self, nodes: Asked, others: NDArray[np.uint32], asked: WholeSettings) -> Draws:
        """What the samples of all parts together say of ``nodes``, in the mean, and others that are
        none of them.
        """
        key = nodes, others.tobytes()
        last = self._looked.__dict__.get("at")
        if last is not None and last[0] is asked and last[1] == key:
            kept: Draws = last[2]
            return kept
        span, found = Span(0.0, 0.0, 0.0), []
        for reader in self._sampling(asked):
            own, weight = reader.part.ask_settings(asked), reader.part.weight
            span, share = span.plus(reader.span(own), weight), weight / len(nodes)
            for node in nodes:
                values, most = reader.values(node, others, own)
                found.append((values, most) if share == 1 else (share * values, share * most))
        freshness = self._stored.freshness
        known = None if freshness.since is None else self._knowing(nodes, others)
        draws = joined(found, span, known, freshness.alike)
        self._looked.at = (asked, key, draws) if draws.values.size <= _KEPT else None
        return draws

    @cached_property
    def _looked(self) -> threading.local:
        """What each thread looked at and listed last: intervals and the order of hits are of the
        same.
        """
        return threading.local()

    def _knowing(self, nodes: Asked, others: NDArray[np.uint32]) -> NDArray[np.int64]:
        """int64[h]: how many samples know all ``nodes`` and each of some others."""
        each = [self._stored.freshness.knowing(node, others) for node in nodes]
        least: NDArray[np.int64] = np.min(each, axis=0)
        return least

    def _apart(
        self, nodes: Asked, others: NDArray[np.uint32], asked: WholeSettings
    ) -> NDArray[np.float64] | float:
        """float64[h]: how far scores are above the means of the samples that all parts have, and
        that know all ``nodes``. Each is estimated from all that a part has and that know the pair,
        which is more where parts have lost different ones, or nodes came at different times.
        """
        lost = len({reader.part.freshness.held.size for reader in self._sampled}) > 1
        if not lost and (len(nodes) == 1 or self._stored.freshness.since is None):
            return 0.0
        shared, found = self._knowing(nodes, others).tolist(), np.zeros(others.size)
        for reader in self._sampling(asked):
            share = reader.part.weight / len(nodes)
            for node in nodes:
                values, _ = reader.values(node, others, reader.part.ask_settings(asked))
                own = reader.part.freshness.knowing(node, others).tolist()
                for row, (mine, all_) in enumerate(zip(own, shared, strict=True)):
                    apart = values[-mine:, row].mean() - values[-all_:, row].mean()
                    found[row] += share * apart
        return found

    def _exact(
        self, reader: Reader, nodes: Asked, others: NDArray[np.uint32], asked: WholeSettings
    ) -> NDArray[np.float64]:
        """float64[h]: what a part without samples adds to some scores."""
        found = np.zeros(others.size)
        for node in nodes:
            with borrowed(self._stored.nodes) as scratch:
                reader.gather(node, reader.part.ask_settings(asked), scratch)
                found += scratch.totals[others, 0] / (GRAINS * len(nodes))
                scratch.totals[scratch.touched[: scratch.have]] = 0.0
        return found

    def _certified(
        self, nodes: Asked, others: NDArray[np.uint32], asked: WholeSettings
    ) -> NDArray[np.float64]:
        """float64[h, 2]: how far scores may be below and above what is computed, for certain."""
        slack = np.zeros((others.size, 2))
        for reader in self.readers:
            if not isinstance(reader, SampledReader):
                own, share = reader.part.ask_settings(asked), reader.part.weight / len(nodes)
                for node in nodes:
                    slack += share * reader.certified(node, others, own)
        return slack

    def _spread(
        self,
        nodes: Asked,
        others: NDArray[np.uint32],
        asked: WholeSettings,
        confidences: Sequence[float],
        bound: str,
    ) -> NDArray[np.float64]:
        """float64[confidences, 2, h]: how far the truth may be below what the samples say, and
        above it; nothing of a node and itself.
        """
        found = np.zeros((len(confidences), 2, others.size))
        if not self._sampled:
            return found
        different = np.flatnonzero(~_are(others, nodes))
        for begin in range(0, different.size, _AT_ONCE):
            check()
            part = different[begin : begin + _AT_ONCE]
            draws = self._draws(nodes, others[part], asked)
            apart = self._apart(nodes, others[part], asked)
            for level, confidence in enumerate(confidences):
                _, below, above = around(draws, confidence, bound)
                found[level][0, part] = np.maximum(0.0, below + apart)
                found[level][1, part] = np.maximum(0.0, above - apart)
        return found

    def _intervals(
        self,
        nodes: Asked,
        others: NDArray[np.uint32],
        scores: list[float],
        asked: WholeSettings,
        confidences: Sequence[float],
        bound: str,
    ) -> list[tuple[list[float], list[float]]]:
        """The ends of the intervals of some scores, for each confidence; whole grains, outwards."""
        room = self._spread(nodes, others, asked, confidences, bound)
        room += self._certified(nodes, others, asked).T
        low, high = self._ends(room, np.array(scores), _are(others, nodes), asked)
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def _ends(
        self,
        room: NDArray[np.float64],
        scores: NDArray[np.float64],
        same: NDArray[np.bool_],
        asked: WholeSettings,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ends of intervals, float64[confidences, h] both, that reach so far below and above
        ``scores``, ``room`` float64[confidences, 2, h]; ``same`` are those of a node and itself.
        """
        room = np.ceil(room * GRAINS)
        middle = np.rint(scores * GRAINS)
        most = np.full(scores.size, np.inf)
        if all(reader.unit for reader in self.readers):
            most = np.maximum(middle, GRAINS)
        if len(self._sampled) == len(self.readers):
            most[~same] = math.ceil(self._most(asked) * GRAINS)
        low = np.maximum(0.0, middle - room[:, 0])
        # An estimate may be below 0, what it estimates is not.
        high = np.maximum(low, np.minimum(middle + room[:, 1], most))
        self.check(high.ravel().tolist())  # which nothing that is no number leaves alone
        return low / GRAINS, high / GRAINS

    def check(self, values: Iterable[float]) -> None:
        """Raise :class:`Damaged` if some are no numbers: no file that is whole makes such."""
        if not all(map(math.isfinite, values)):
            raise self._stored.damaged()

    def _most(self, asked: WholeSettings) -> float:
        """The most that the samples of two different nodes say."""
        return added(
            reader.part.weight * reader.span(reader.part.ask_settings(asked)).most
            for reader in self._sampling(asked)
        )

    def _leading(
        self,
        nodes: Asked,
        ids: NDArray[np.uint32],
        asked: WholeSettings,
        confidence: float,
        bound: str,
    ) -> int:
        """How many of the first of some nodes stand in their order for certain."""
        for begin in range(0, max(1, ids.size - 1), _AT_ONCE):
            check()
            part = ids[begin : begin + _AT_ONCE + 1]
            room = self._certified(nodes, part, asked)
            doubt = room[:-1, 0] + room[1:, 1]
            for reader in self.readers:  # what is not sampled is the same in every sample
                if not isinstance(reader, SampledReader):
                    doubt += np.diff(self._exact(reader, nodes, part, asked))
            draws = self._draws(nodes, part, asked)
            sure = leading_certain(draws, confidence, bound, doubt)
            if sure < part.size - 1:
                return begin + sure
        return max(0, ids.size - 1)

    def _asked(self, settings: dict[str, AskValue]) -> WholeSettings:
        return self._stored.ask_settings(settings)


def joined(
    found: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
    span: Span,
    known: NDArray[np.int64] | None,
    alike: int | None,
) -> Draws:
    """What the samples that all parts have say together, from the values of each and the most that
    these may stand for.
    """
    shared = min(len(values) for values, _ in found)
    values, most = found[0][0][-shared:], found[0][1][-shared:]
    for more, greatest in found[1:]:
        values, most = values + more[-shared:], most + greatest[-shared:]
    return Draws(values, most, span, known, alike)


def _are(others: NDArray[np.uint32], nodes: Asked) -> NDArray[np.bool_]:
    """bool[h]: which of some are nodes that are asked."""
    return others == nodes[0] if len(nodes) == 1 else np.isin(others, nodes)
