"""Scores by node id, as weighted sums over an index's parts; and filters on hits.

    score    = sum over parts of weight * score of the part            in grains, rounded once
    variance = sum over parts of weight**2 * variance of the part

Certified bounds are weighted sums, too. For several query nodes, without duplicates, a score is the
mean or the minimum of the scores for each node. In a refreshed index, a score is the mean over the
samples that contain both nodes.

Filters apply to all touched nodes before the best are selected, so the hits are the best k that
pass. In a bipartite graph, only nodes on the query node's side pass. A filter costs one binary
search per touched node; several query nodes take 20 bytes per touched node.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cocite.constants import GRAINS, Bools, Floats, Ids, added
from cocite.deadline import check
from cocite.errors import UsageError
from cocite.graph.names import Names
from cocite.index import StoredIndex
from cocite.index.layouts.reader import QueryScratch, Reader, SampledReader, borrowed, reader_of
from cocite.measures import PartSettings, WholeSettings
from cocite.measures.settings import EVIDENCE
from cocite.options.query import FilterOptions
from cocite.resources import Resources
from cocite.search.hits import scores_of

if TYPE_CHECKING:
    from cocite.search.evidence import Evidence
    from cocite.search.source import GivenGraph


_BLOCK_TIMES, _LEAST_BLOCK = 1 << 23, 1024
"""Maximum meeting times per block of pairs; a block may always have _LEAST_BLOCK pairs."""
Nodes = tuple[int, ...]
"""A query's node ids, without duplicates."""


ROUNDING = 4e-12
"""Bound on the rounding error of sums and scores. Scores are multiples of 1e-12 (*grains*)."""
NO_BETS = math.inf, ROUNDING
"""Wealth and rounding error of bets (:func:`wealth_at`) in queries without intervals."""


def wealth_at(confidence: float) -> float:
    """Return the wealth at which bets on one of two ends reject a mean."""
    return 2 / (1 - confidence)


_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")


@dataclass(frozen=True)
class Filter:
    """Conditions on hits: in all of ``only``, in none of ``never`` (ascending ids), ``within`` a
    side's range of ids if given, and with a score above 0 and of at least ``min_score``.
    """

    only: tuple[Ids, ...] = ()
    never: tuple[Ids, ...] = ()
    within: range | None = None
    min_score: float = 0.0

    @classmethod
    def checked(
        cls, names: Names, nodes: Sequence[int], options: FilterOptions, replaced: int | None = None
    ) -> Filter:
        """Create a filter that excludes ``nodes`` and ``replaced``; raises :class:`UnknownNode`."""
        only: list[Ids] = []
        never: list[Ids] = []
        if options.prefix is not None:
            only.append(names.with_prefix(options.prefix))
        if options.only is not None:
            if isinstance(options.only, str):
                raise UsageError("only is a single string; pass a list of names")
            only.append(np.unique(names.ids(list(options.only))))
        if options.exclude_prefix is not None:
            never.append(names.with_prefix(options.exclude_prefix))
        if options.exclude_same_site:
            sites = (site_of(names.stored.name(node)) for node in nodes)
            never += [ids for site in sites for ids in pages_of(names, site)]
        if len(nodes) > 1:
            never.append(np.unique(np.array(nodes, np.uint32)))
        if replaced is not None:
            never.append(np.array([replaced], np.uint32))
        within = None
        if names.sides is not None and nodes:
            names.sides.check_alike(nodes, names.names(np.array(nodes, np.uint32)))
            within = names.sides.side_of(nodes[0])
        return cls(tuple(only), tuple(never), within, options.min_score)

    def on_side_of(self, names: Names, node: int) -> Filter:
        """Return the filter restricted to the side of ``node`` in a bipartite graph."""
        return self if names.sides is None else replace(self, within=names.sides.side_of(node))

    @property
    def empty(self) -> bool:
        """Return whether all nodes with a score of at least :attr:`floor` pass."""
        return not self.only and not self.never and self.within is None

    @property
    def floor(self) -> float:
        """Return the lowest score of a hit, in grains."""
        return max(1.0, float(np.rint(self.min_score * GRAINS)))

    def passing(self, scores: Floats) -> Bools:
        """Return which scores are high enough for a hit."""
        found: Bools = scores >= max(self.min_score, 1e-12)
        return found

    def best(self, scratch: QueryScratch, k: int) -> tuple[Ids, Floats]:
        """Return the best ``k`` touched nodes that pass: uint32[h], by descending score, then by
        hash; and float64[h, 2], their grains and variances. Clears the scratch.
        """
        from cocite.kernels import totals

        self._apply(scratch)
        floor, most = self.floor, min(k, scratch.have)
        ids, best = np.empty(most, np.uint32), np.empty((most, 2))
        found = int(totals.top(scratch.totals, scratch.touched, scratch.have, floor, ids, best))
        return ids[:found], best[:found]

    def _apply(self, scratch: QueryScratch) -> None:
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


def _among(nodes: Ids, ids: Ids) -> Bools:
    """Return which of ``nodes`` are in the ascending ``ids``."""
    if ids.size == 0:
        return np.zeros(nodes.size, bool)
    places = np.minimum(np.searchsorted(ids, nodes), ids.size - 1)
    found: Bools = ids[places] == nodes
    return found


def site_of(name: str) -> tuple[str, str]:
    """Return a URL's scheme, including ``://``, and host; raises :class:`UsageError`."""
    match = _URL.match(name)
    if match is None:
        raise UsageError(f"{name!r} is not a URL, so it has no site to exclude")
    return name[: match.start(1)], match[1]


def pages_of(names: Names, site: tuple[str, str]) -> list[Ids]:
    """Return the ids of a site's pages: under its own scheme, http and https, with any path."""
    scheme, host = site
    schemes = {scheme, "http://", "https://"}
    found = [names.with_prefix(f"{s}{host}{end}") for s in sorted(schemes) for end in "/?#"]
    bare = (names.find(scheme + host) for scheme in sorted(schemes))
    found.append(np.array(sorted(i for i in bare if i is not None), np.uint32))
    return found


class ScoreQuery(NamedTuple):
    """A query for the ``k`` best nodes that pass a filter."""

    k: int
    chosen: Filter
    settings: WholeSettings


class Scorer:
    """Scores nodes by id with an index's readers. Thread-safe."""

    def __init__(
        self,
        stored: StoredIndex,
        resources: Resources,
        graph: GivenGraph = None,
        *,
        readers: tuple[Reader, ...] | None = None,
        evidence: Evidence | None = None,
    ) -> None:
        """Create a scorer; ``readers``, one per part, default to readers of the files."""
        self.stored, self._resources, self._graph = stored, resources, graph
        self._last: tuple[WholeSettings, tuple[Reader, ...]] | None = None
        if readers is not None:
            self.__dict__["readers"] = readers
        if evidence is not None:
            self.__dict__["evidence"] = evidence

    @cached_property
    def readers(self) -> tuple[Reader, ...]:
        """Return a reader per part."""
        return tuple(map(reader_of, self.stored.parts))

    def reading(self, settings: WholeSettings) -> tuple[Reader, ...]:
        """Return a reader per part for a query, with evidence if the settings require it."""
        last = self._last  # a query calls this several times with the same settings object
        if last is not None and last[0] is settings:
            return last[1]
        readers = self.readers
        if any(reader.part.evidence(settings) != EVIDENCE.default for reader in readers):
            readers = self.evidence.over(readers, settings)
        self._last = settings, readers
        return readers

    @cached_property
    def evidence(self) -> Evidence:
        """Return the evidence, loaded on first use."""
        from cocite.search.evidence import Evidence

        return Evidence(self.stored, self._resources, self._graph)

    @cached_property
    def sampled(self) -> list[SampledReader]:
        """Return the readers of sampled parts."""
        return [reader for reader in self.readers if isinstance(reader, SampledReader)]

    def sampling(self, settings: WholeSettings) -> list[SampledReader]:
        """Return the sampled readers for a query."""
        return [reader for reader in self.reading(settings) if isinstance(reader, SampledReader)]

    def over(self, stored: StoredIndex, readers: tuple[Reader, ...]) -> Scorer:
        """Return a scorer for other samples of the index, given their ``readers``."""
        return Scorer(stored, self._resources, self._graph, readers=readers, evidence=self.evidence)

    # -- lists ---------------------------------------------------------------------------

    def only(self, settings: WholeSettings) -> tuple[Reader, PartSettings] | None:
        """Return an index's only reader and its settings; None if the index has several parts."""
        readers = self.reading(settings)
        return (readers[0], readers[0].part.ask_settings(settings)) if len(readers) == 1 else None

    def top(self, node: int, query: ScoreQuery) -> tuple[Ids, Floats]:
        """Return the best k ids, and float64[h, 2]: scores in grains, and variances."""
        ids, best = self._best(node, query)
        for reader in self.reading(query.settings):
            own = reader.part.ask_settings(query.settings)
            best[:, 1] += reader.part.weight**2 * reader.variances(node, ids, own)
        return ids, best

    def _best(self, node: int, query: ScoreQuery) -> tuple[Ids, Floats]:
        with borrowed(self.stored.nodes) as scratch:
            self._gather(node, query.settings, scratch)
            return query.chosen.best(scratch, query.k)

    def count(self, nodes: Nodes, aggregate: str, query: ScoreQuery) -> int:
        """Count the nodes that pass, up to ``query.k``."""
        if len(nodes) > 1:
            return self.top_together(nodes, aggregate, query)[0].size
        return self._best(nodes[0], query)[0].size

    def top_together(self, nodes: Nodes, aggregate: str, query: ScoreQuery) -> tuple[Ids, Floats]:
        """Return the best ``k`` ids for several nodes, and their scores in grains."""
        found = [self._scored(node, query.settings) for node in nodes]
        ids: Ids = np.unique(np.concatenate([touched for touched, _ in found]))
        grains = np.zeros((len(nodes), ids.size))
        for row, (touched, scored) in zip(grains, found, strict=True):
            row[np.searchsorted(ids, touched)] = scored
        combined = grains.min(axis=0) if aggregate == "min" else np.rint(grains.mean(axis=0))
        with borrowed(self.stored.nodes) as scratch:
            ids, combined = ids[combined != 0], combined[combined != 0]
            scratch.have = ids.size
            scratch.touched[: ids.size] = ids
            scratch.totals[ids, 0] = combined
            ids, best = query.chosen.best(scratch, query.k)
        return ids, best[:, 0]

    def _gather(self, node: int, settings: WholeSettings, scratch: QueryScratch) -> None:
        for reader in self.reading(settings):
            check()
            reader.gather(node, reader.part.ask_settings(settings), scratch)
            if len(self.readers) > 2 and any(each.signed for each in self.readers):
                scratch.list_once()  # totals may pass through 0

    def _scored(self, node: int, settings: WholeSettings) -> tuple[Ids, Floats]:
        """Return the nodes touched by ``node``, ascending, and their scores in grains."""
        with borrowed(self.stored.nodes) as scratch:
            scratch.below = True
            self._gather(node, settings, scratch)
            ids = np.unique(scratch.touched[: scratch.have])
            grains = np.rint(scratch.totals[ids, 0])
            scratch.totals[ids] = 0.0
        return ids, grains

    # -- pairs ---------------------------------------------------------------------------

    def pair(self, first: int, second: int, settings: WholeSettings) -> tuple[float, float]:
        """Return a pair's score and standard error."""
        grains = variance = 0.0
        for reader in self.reading(settings):
            check()
            own, weight = reader.part.ask_settings(settings), reader.part.weight
            found = reader.pair(first, second, own)
            grains += weight * found.grains
            variance += weight * weight * found.variance
        self.check([grains])
        scores, errors = scores_of(np.array([[np.rint(grains), variance]]))
        return float(scores[0]), float(errors[0])

    def shares(
        self, nodes: Nodes, other: int, aggregate: str, settings: WholeSettings
    ) -> tuple[float, list[float], list[float]]:
        """Return the combined score of ``other``, and the score and share of each query node.

        With ``min``, the first node with the lowest score gets the entire share.
        """
        grains = [round(self.pair(node, other, settings)[0] * GRAINS) for node in nodes]
        scores = [each / GRAINS for each in grains]
        if aggregate == "min":
            least = grains.index(min(grains))
            return scores[least], scores, [scores[i] * (i == least) for i in range(len(nodes))]
        mean = float(np.rint(np.mean(np.array(grains, float)))) / GRAINS
        return mean, scores, [round(score / len(nodes), 12) for score in scores]

    def pair_blocks(self, pairs: int, settings: WholeSettings, threads: int) -> int:
        """Return the number of blocks for scoring pairs; 0 if scoring one by one is faster."""
        readers = self.reading(settings)
        least = [reader.pairs_from for reader in readers]
        held = {reader.part.freshness.held.size for reader in self.sampled}
        if len(held) > 1 or any(each is None or pairs < each for each in least):
            return 0
        samples = max(reader.part.samples for reader in readers)
        most = max(_LEAST_BLOCK, _BLOCK_TIMES // samples)
        return max(-(-pairs // most), min(threads, pairs // max(filter(None, least))))

    # -- contributions and bounds of parts -----------------------------------------------

    def exact(self, reader: Reader, nodes: Nodes, others: Ids, settings: WholeSettings) -> Floats:
        """Return float64[h]: the contributions of an unsampled part to scores."""
        found = np.zeros(others.size)
        for node in nodes:
            with borrowed(self.stored.nodes) as scratch:
                reader.gather(node, reader.part.ask_settings(settings), scratch)
                found += scratch.totals[others, 0] / (GRAINS * len(nodes))
                scratch.totals[scratch.touched[: scratch.have]] = 0.0
        return found

    def certified(self, nodes: Nodes, others: Ids, settings: WholeSettings) -> Floats:
        """Return float64[h, 2]: how far exact scores may be below and above the computed ones."""
        slack = np.zeros((others.size, 2))
        for reader in self.readers:
            if not isinstance(reader, SampledReader):
                own, share = reader.part.ask_settings(settings), reader.part.weight / len(nodes)
                for node in nodes:
                    slack += share * reader.certified(node, others, own)
        return slack

    def largest(self, settings: WholeSettings) -> float:
        """Return the maximum total of the sampled parts for two different nodes."""
        return added(
            reader.part.weight * reader.span(reader.part.ask_settings(settings)).most
            for reader in self.sampling(settings)
        )

    def check(self, values: Iterable[float]) -> None:
        """Raise :class:`Damaged` if a value is not finite, which means that files are damaged."""
        if not all(map(math.isfinite, values)):
            raise self.stored.damaged()
