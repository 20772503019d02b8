"""What an index says of nodes by their ids: sums of its parts, their errors and intervals.

    score = sum over parts of weight * score of the part         in grains, rounded once
    variance likewise, with weights squared; what is certain of parts adds up, too

Several nodes may be asked together (``search/scorer.py``): then values are means over these, sample
by sample.

Cost: that of the readers, times the nodes asked.

Which nodes may be hits: those with a prefix, those of a list, those of other sites; of a
bipartite graph those of the side that is asked.

Filters are applied to everything a query touched, before the best are picked, so that k hits are
the best k that pass. A *site* is what stands between ``scheme://`` and the next slash of a name
that is a URL, whichever the scheme; names that are no URLs have none.

Cost: a binary search for a prefix, and a sorted membership test of the nodes touched.

Several nodes asked together: the mean, or the least, of what each scores with a node.

    mean     score(v) = mean over the nodes a asked of s(a, v): near to all of them on the whole
    least    score(v) = min over a of s(a, v): near to each of them

Scores of pairs are those of ``similarity``; nodes asked are no hits, each counts once.

Intervals come from the same samples. Of means they are those of the values of each sample, averaged
over the nodes: samples say more of a mean than of each of its scores. Of the least they are
made of those of the pairs: the least of their lower ends, and the least of their upper ends. Below
it is wrong only if the lower end of the truly least pair is; above if any upper end is, so these
hold with a failure of 1 / nodes of the one allowed. The standard error is that of the pair that
scores least.

Of an index that was refreshed a pair's score is the mean over the samples that know both. What is
said of a mean over several is said by the samples that know them all.

Cost: a question for each node, and 20 bytes for each node that it touches.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS, added
from cocite.deadline import check
from cocite.errors import UsageError
from cocite.graph.names import Names
from cocite.index import StoredIndex
from cocite.index.layouts.reader import (
    ListedHits,
    QueryScratch,
    Reader,
    SampledReader,
    Span,
    borrowed,
    reader_of,
)
from cocite.measures import AskValue, WholeSettings
from cocite.measures.evidence import EVIDENCE
from cocite.resources import Resources
from cocite.search.hits import scores_of
from cocite.search.intervals import Draws, around, bets_of, errors_of, leading_certain
from cocite.search.source import GivenGraph

if TYPE_CHECKING:
    from cocite.search.evidence import Evidence


_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")
Ids = NDArray[np.uint32]


@dataclass(frozen=True)
class Filter:
    """``only`` and ``never`` are ascending ids, or None for no such condition; ``within`` is the
    range of the ids that may be hits, None for all: the side of a bipartite graph.
    """

    only: tuple[Ids, ...] = ()
    never: tuple[Ids, ...] = ()
    within: range | None = None

    @classmethod
    def checked(
        cls,
        names: Names,
        nodes: Sequence[int],
        *,
        prefix: str | None = None,
        exclude_prefix: str | None = None,
        among: Iterable[object] | None = None,
        other_sites: bool = False,
    ) -> Filter:
        """The filter of a question about ``nodes``; raises :class:`UnknownNode`. Of several, none
        may be a hit.
        """
        only: list[Ids] = []
        never: list[Ids] = []
        if prefix is not None:
            only.append(names.with_prefix(prefix))
        if among is not None:
            if isinstance(among, str):
                raise UsageError("among is one text; give a list of names")
            only.append(np.unique(names.ids(list(among))))
        if exclude_prefix is not None:
            never.append(names.with_prefix(exclude_prefix))
        if other_sites:
            sites = (site_of(names.stored.name(node)) for node in nodes)
            never += [ids for site in sites for ids in pages_of(names, site)]
        if len(nodes) > 1:
            never.append(np.unique(np.array(nodes, np.uint32)))
        within = None
        if names.sides is not None and nodes:
            names.sides.check_alike(nodes, names.names(np.array(nodes, np.uint32)))
            within = names.sides.beside(nodes[0])
        return cls(tuple(only), tuple(never), within)

    def beside(self, names: Names, node: int) -> Filter:
        """The same of the side of a node alone, if there are two."""
        return self if names.sides is None else replace(self, within=names.sides.beside(node))

    @property
    def empty(self) -> bool:
        """Whether all nodes pass."""
        return not self.only and not self.never and self.within is None

    def best(
        self, scratch: QueryScratch, k: int, min_score: float
    ) -> tuple[Ids, NDArray[np.float64]]:
        """The best ``k`` of the nodes touched that pass and score ``min_score`` or more, and above
        0; the scratch is zero again.

        Returns uint32[h] and float64[h, 2], grains and variances: by grains descending, then by id
        ascending.
        """
        from cocite.kernels import totals

        self._apply(scratch)
        floor, most = floor_of(min_score), min(k, scratch.have)
        ids, best = np.empty(most, np.uint32), np.empty((most, 2))
        found = int(totals.top(scratch.totals, scratch.touched, scratch.have, floor, ids, best))
        return ids[:found], best[:found]

    def _apply(self, scratch: QueryScratch) -> None:
        """Forget the nodes touched that do not pass."""
        if self.empty:
            return
        touched = scratch.touched[: scratch.have]
        keep = np.ones(touched.size, bool)
        if self.within is not None:
            keep = (touched >= self.within.start) & (touched < self.within.stop)
        for ids in self.only:
            keep &= _among(touched, ids)
        for ids in self.never:
            keep &= ~_among(touched, ids)
        scratch.totals[touched[~keep]] = 0
        kept = touched[keep]
        scratch.touched[: kept.size] = kept
        scratch.have = kept.size


def floor_of(min_score: float) -> float:
    """The least score of a hit, in grains."""
    return max(1.0, float(np.rint(min_score * GRAINS)))


def _among(nodes: Ids, ids: Ids) -> NDArray[np.bool_]:
    """Which of ``nodes`` are in the ascending ``ids``."""
    if ids.size == 0:
        return np.zeros(nodes.size, bool)
    places = np.minimum(np.searchsorted(ids, nodes), ids.size - 1)
    found: NDArray[np.bool_] = ids[places] == nodes
    return found


def site_of(name: str) -> tuple[str, str]:
    """The scheme of an URL, with ``://``, and its host; raises :class:`UsageError`."""
    match = _URL.match(name)
    if match is None:
        raise UsageError(f"{name!r} is no URL: it has no site that could be left out")
    return name[: match.start(1)], match[1]


def pages_of(names: Names, site: tuple[str, str]) -> list[Ids]:
    """The ids of the pages of a site, by scheme and by what follows the host."""
    scheme, host = site
    schemes = {scheme, "http://", "https://"}
    found = [names.with_prefix(f"{s}{host}{end}") for s in sorted(schemes) for end in "/?#"]
    bare = (names.find(scheme + host) for scheme in sorted(schemes))
    found.append(np.array(sorted(i for i in bare if i is not None), np.uint32))
    return found


# -- answers -----------------------------------------------------------------------------


Asked = tuple[int, ...]
"""Nodes asked together: the mean over them is what is told."""
_AT_ONCE = 256
"""Hits whose samples are looked at together."""
_KEPT = 1 << 16
"""Values of samples that a thread keeps until its next question."""


class Answers:
    """Answers for all parts of an index together. Safe to share between threads."""

    def __init__(self, stored: StoredIndex, means: Resources, graph: GivenGraph = None) -> None:
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
        from cocite.search.evidence import Evidence

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
    ) -> ListedHits | None:
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

    def _separate(
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
            apart = self._separate(nodes, others[part], asked)
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

    def _queried(self, settings: dict[str, AskValue]) -> WholeSettings:
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


# -- together ----------------------------------------------------------------------------


TOGETHER = ("mean", "least")
DEFAULT_TOGETHER = "mean"
Ends = list[tuple[list[float], list[float]]]


def checked_together(together: str) -> None:
    """Raises :class:`UsageError` for a way to ask together that there is not."""
    if together not in TOGETHER:
        raise UsageError(f"together is {together!r}; it is " + " or ".join(TOGETHER))


class Several(Answers):
    """Answers to questions about several different nodes."""

    def best_together(
        self,
        nodes: Asked,
        together: str,
        k: int,
        min_score: float,
        chosen: Filter,
        asked: WholeSettings,
    ) -> tuple[Ids, NDArray[np.float64]]:
        """The ids of the best ``k`` and their scores in grains, float64[h]."""
        found = [self._scored(node, asked) for node in nodes]
        ids: Ids = np.unique(np.concatenate([there for there, _ in found]))
        grains = np.zeros((len(nodes), ids.size))
        for row, (there, scored) in zip(grains, found, strict=True):
            row[np.searchsorted(ids, there)] = scored
        joined = grains.min(axis=0) if together == "least" else np.rint(grains.mean(axis=0))
        with borrowed(self._stored.nodes) as scratch:
            ids, joined = ids[joined != 0], joined[joined != 0]
            scratch.have = ids.size
            scratch.touched[: ids.size] = ids
            scratch.totals[ids, 0] = joined
            ids, best = chosen.best(scratch, k, min_score)
        return ids, best[:, 0]

    def _scored(self, node: int, asked: WholeSettings) -> tuple[Ids, NDArray[np.float64]]:
        """The nodes that ``node`` touches, ascending, and their scores in grains."""
        with borrowed(self._stored.nodes) as scratch:
            scratch.below = True
            self._gather(node, asked, scratch)
            ids = np.unique(scratch.touched[: scratch.have])
            grains = np.rint(scratch.totals[ids, 0])
            scratch.totals[ids] = 0.0
        return ids, grains

    def held_together(
        self,
        nodes: Asked,
        together: str,
        ids: Ids,
        scores: list[float],
        asked: WholeSettings,
        confidences: Sequence[float],
        bound: str,
    ) -> tuple[list[float], Ends]:
        """The standard errors of some hits, and the ends of their intervals for each confidence."""
        if together == "least":
            return self._held_least(nodes, ids, asked, confidences, bound)
        errors = np.zeros(ids.size)
        for begin in range(0, ids.size if self._sampled else 0, _AT_ONCE):
            part = slice(begin, begin + _AT_ONCE)
            errors[part] = errors_of(self._draws(nodes, ids[part], asked))
        return errors.tolist(), self._intervals(nodes, ids, scores, asked, confidences, bound)

    def _held_least(
        self, nodes: Asked, ids: Ids, asked: WholeSettings, confidences: Sequence[float], bound: str
    ) -> tuple[list[float], Ends]:
        pairs = np.array(
            [[self._estimate(node, other, asked) for other in ids.tolist()] for node in nodes]
        ).reshape(len(nodes), ids.size, 2)
        shared = [1 - (1 - confidence) / len(nodes) for confidence in confidences]
        ends = np.array(
            [
                self._intervals((node,), ids, row.tolist(), asked, [*confidences, *shared], bound)
                for node, row in zip(nodes, pairs[:, :, 0], strict=True)
            ]
        )
        low, high = ends[:, : len(shared), 0].min(axis=0), ends[:, len(shared) :, 1].min(axis=0)
        least = pairs[:, :, 0].argmin(axis=0)
        errors = pairs[least, np.arange(ids.size), 1].tolist()
        return errors, list(zip(low.tolist(), high.tolist(), strict=True))

    def shares(
        self, nodes: Asked, other: int, together: str, asked: WholeSettings
    ) -> tuple[float, list[float], list[float]]:
        """The score of a hit, what each of the nodes scores with it, and its share of the score: of
        the least all is the share of the first that scores so.
        """
        grains = [round(self._estimate(node, other, asked)[0][0] * GRAINS) for node in nodes]
        scores = [each / GRAINS for each in grains]
        if together == "least":
            least = grains.index(min(grains))
            return scores[least], scores, [scores[i] * (i == least) for i in range(len(nodes))]
        mean = float(np.rint(np.mean(np.array(grains, float)))) / GRAINS
        return mean, scores, [round(score / len(nodes), 12) for score in scores]
