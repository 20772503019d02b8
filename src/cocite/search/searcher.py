"""Queries by node id on one index: lists, scores of pairs, reasons.

The first applicable method computes a list:

* refinement (``search/refine/``), if requested and supported by the measure;
* for a plain query, one kernel call for hits, intervals and certain ranks;
* the scorer's best hits, which are ordered and then given intervals.

Candidates are the nodes with the best scores. They are ordered by score, by the product of score
and PageRank, or by PageRank; ties keep the order by score. If a query detects a damaged sample
shard, a new searcher without the shard answers this query and all later ones.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS, Bools, Floats, Ids, Ints
from cocite.errors import UsageError
from cocite.graph.names import Names
from cocite.index import StoredIndex
from cocite.index.layouts.part import DamagedShard
from cocite.measures import WholeSettings
from cocite.options.query import DEFAULT_INTERVAL, DEFAULT_ORDER, ORDERS, QueryOptions, ScoreOptions
from cocite.resources import Resources
from cocite.search.hits import Hit, Hits, Score, scores_of
from cocite.search.scorer import NO_BETS, ROUNDING, Filter, Nodes, ScoreQuery, Scorer, wealth_at

if TYPE_CHECKING:
    from cocite.search.explainer import Explainer
    from cocite.search.intervals import Ends, Intervals, ListDraws
    from cocite.search.refine.candidates import Level, Refiner
    from cocite.search.source import GivenGraph, PageRanks
    from cocite.search.unseen import UnseenNodes


_LEAST, _TIMES = 100, 4
_log = logging.getLogger("cocite")
_Answer = TypeVar("_Answer")


def checked_option(name: str, value: Any) -> Any:
    """Check a query option and return its value; raises :class:`UsageError`."""
    return QueryOptions.declared()[name].checked(value)


@dataclass(frozen=True)
class Query:
    """A checked query for related nodes, without the filter, which depends on the query nodes.

    The best ``candidates`` by score are ordered; those at ``looked`` get intervals: the ``k`` hits,
    and nodes that may rank among them. ``level`` says how far to refine; None means not at all.
    """

    k: int
    options: QueryOptions
    candidates: int
    looked: slice
    level: Level | None = None

    @classmethod
    def checked(cls, k: int, options: QueryOptions, level: Level | None = None) -> Query:
        """Create a query, by default with max(100, 4 * (k + offset)) candidates for orders by
        PageRank; raises :class:`UsageError`.
        """
        k = checked_option("k", k)
        if not options.min_score < float("inf"):
            raise UsageError(f"min_score is {options.min_score!r}; it must be a number, 0 or more")
        if options.total and (options.refined or options.min_confidence is not None):
            raise UsageError(
                "total counts hits by their stored scores: omit total, or omit refine, "
                "target_error and min_confidence"
            )
        end = options.offset + k
        if options.order == DEFAULT_ORDER:
            for name in ("candidates", "ranks"):
                if getattr(options, name) is not None:
                    raise UsageError(
                        f"{name} applies only to orders by PageRank: choose "
                        f"{' or '.join(ORDERS[1:])}, or omit {name}"
                    )
            return cls(k, options, end + 1, slice(options.offset, end + 1), level)
        # A candidate that is not shown may have a larger product.
        last = end if options.order == "pagerank" else None
        candidates = options.candidates or max(_LEAST, _TIMES * end)
        return cls(k, options, candidates, slice(options.offset, last), level)

    @property
    def further(self) -> int:
        """Return how many nodes to examine, starting at the first one shown."""
        one_more = self.options.order != "pagerank"
        return min(self.k + one_more, self.candidates - self.options.offset)

    @property
    def levels(self) -> list[float]:
        """Return the confidences of the intervals: for display, then for ``min_confidence``."""
        least = self.options.min_confidence
        return [self.options.confidence, *([] if least is None else [least])]


class RankedList(NamedTuple):
    """Nodes in the query's order, including those that may rank before the last one shown.

    ``ends`` are interval ends, for each confidence. ``certain`` is the number of certain ranks, or
    None if ``draws`` or the ends determine the number.
    """

    ids: Ids
    scores: Floats
    errors: Floats
    ends: Ends
    certain: int | None = None
    draws: ListDraws | None = None


class Searcher:
    """Answers queries on one index. Thread-safe."""

    def __init__(
        self,
        stored: StoredIndex,
        means: Resources,
        given: GivenGraph = None,
        *,
        whole: Searcher | None = None,
        scorer: Scorer | None = None,
    ) -> None:
        """Create a searcher; ``given`` locates the graphs. With ``scorer`` and ``whole``, it serves
        a single query on ``whole``'s index.
        """
        self.stored, self.means, self.given = stored, means, given
        self.scorer = Scorer(stored, means, given) if scorer is None else scorer
        self._whole = whole
        self._successor: Searcher | None = None
        self._lock = threading.Lock()
        if stored.lost and whole is None:
            _log.warning(stored.loss)

    def over(self, scorer: Scorer) -> Searcher:
        """Return a searcher that uses ``scorer`` for one query."""
        return Searcher(scorer.stored, self.means, self.given, whole=self, scorer=scorer)

    # -- names ---------------------------------------------------------------------------

    @cached_property
    def nodes(self) -> Names:
        """Return the node names, with in-degrees from the graph."""
        found = copy(self.stored.names)
        found.in_links = self._in_links
        return found

    def _in_links(self, ids: Ids) -> Ints:
        from cocite.search.source import in_links_of

        return in_links_of(self.stored, self.given, ids)

    def ids_of(self, node: object) -> Nodes:
        """Return the ids of a name or a list of names, without duplicates; raises
        :class:`UnknownNode`, and :class:`UsageError` for an empty list.
        """
        if not isinstance(node, list | tuple) or self.nodes.is_one(node):
            return (self.nodes.id(node),)
        if not node:
            raise UsageError("no node is given: pass one node, or several to query them together")
        return tuple(dict.fromkeys(self.nodes.ids(list(node)).tolist()))

    def pair_of(self, a: object, b: object) -> tuple[int, int]:
        """Return the ids of two names; raises :class:`UsageError` for nodes of different sides."""
        pair = self.nodes.id(a), self.nodes.id(b)
        if self.nodes.sides is not None:
            self.nodes.sides.check_alike(pair, (a, b))
        return pair

    # -- contents ------------------------------------------------------------------------

    @property
    def refiner(self) -> Refiner | None:
        """Return the refiner; None for exact scores. Raises :class:`UsageError` if unsupported."""
        if self._whole is not None and all(part.plan.linearized for part in self.stored.parts):
            return self._whole.refiner  # needs no samples, so all queries share the refiner
        with self._lock:  # computed once for all threads: the diagonal may take seconds
            return self._refiner

    @cached_property
    def _refiner(self) -> Refiner | None:
        from cocite.search.refine.linear import refiner_for

        return refiner_for(self.scorer, self.given, self.means)

    @property
    def ranks(self) -> PageRanks:
        """Return the PageRanks."""
        if self._whole is not None:
            return self._whole.ranks
        with self._lock:
            return self._ranks

    @cached_property
    def _ranks(self) -> PageRanks:
        from cocite.search.source import PageRanks

        return PageRanks(self.stored, self.means, self.given)

    @cached_property
    def intervals(self) -> Intervals:
        """Return the intervals; a list from a single kernel call does not load them."""
        from cocite.search.intervals import Intervals

        return Intervals(self.scorer)

    @cached_property
    def explainer(self) -> Explainer:
        """Return the explainer."""
        from cocite.search.explainer import Explainer

        return Explainer(self.scorer, self.means, self.given)

    @cached_property
    def unseen(self) -> UnseenNodes:
        """Return the factory of indexes with one added node."""
        from cocite.search.unseen import UnseenNodes

        return UnseenNodes(self.stored, self.means, self.given)

    # -- damage --------------------------------------------------------------------------

    @property
    def now(self) -> Searcher:
        """Return the current searcher, without shards that queries found damaged."""
        return self if self._successor is None else self._successor.now

    def leave_out_files(self, files: Iterable[str], fault: str) -> None:
        """Exclude shards from now on, unless already excluded."""
        for file in files:
            now = self.now
            if file not in {lost.file for lost in now.stored.lost}:
                now.leave_out(DamagedShard(fault, file))

    def leave_out(self, found: DamagedShard) -> None:
        """Exclude a shard from now on; raises :class:`~cocite.errors.Damaged` if none is left."""
        with self._lock:
            if self._successor is None:
                less = self.stored.without(found.file, str(found))
                self._successor = Searcher(less, self.means, self.given)

    def attempt(self, question: Callable[[Searcher], _Answer]) -> _Answer:
        """Query the current searcher; if it detects a damaged shard, query again without it."""
        while True:
            searcher = self.now
            try:
                return question(searcher)
            except DamagedShard as found:
                searcher.leave_out(found)

    # -- pairs ---------------------------------------------------------------------------

    def score(
        self,
        pair: tuple[int, int],
        settings: WholeSettings,
        level: Level | None,
        options: ScoreOptions,
    ) -> Score:
        """Return a pair's score, refined if ``level`` and a refiner exist."""
        if level and self.refiner and pair[0] != pair[1]:
            _, scores, errors, low, high, _ = self.refiner.pair(*pair, settings, level)
            return Score(*np.concatenate((scores, errors, low.round(12), high.round(12))).tolist())
        return self.intervals.of_pair(pair, settings, options.confidence, options.interval)

    def level(
        self, settings: WholeSettings, options: ScoreOptions, above: float | None = None
    ) -> Level | None:
        """Return how far to refine; None for not at all. Raises :class:`UsageError`."""
        if not options.refined:
            return None
        from cocite.search.evidence import refuse_evidence
        from cocite.search.refine.candidates import DEFAULT_TARGET, Level

        if self.stored.drafted:
            raise UsageError("refined answers need a page of the graph, not a draft: omit refine")
        refuse_evidence(self.stored.parts, settings)
        if options.interval != DEFAULT_INTERVAL and self.refiner:
            raise UsageError(
                f"refined answers compute their own intervals, so {options.interval} has no "
                "effect: omit --interval (interval=...)"
            )
        target = DEFAULT_TARGET if options.target_error is None else options.target_error
        return Level(target, options.confidence, above)

    # -- lists ---------------------------------------------------------------------------

    def hits(self, nodes: Nodes, query: Query, chosen: Filter, settings: WholeSettings) -> Hits:
        """Return the hits with intervals, after filtering by ``min_confidence``."""
        found, k = self.listed(nodes, query, chosen, settings), query.k
        stored, shown = self.stored, found.ids[:k]
        columns = (each.tolist() for each in (found.scores, found.errors, *found.ends[0]))
        hits = list(map(Hit, stored.names.names(shown), *columns))
        if stored.titles is not None:
            titles = stored.titles.of(shown)
            hits = [hit.titled(title) for hit, title in zip(hits, titles, strict=True)]
        release = None if found.draws is None else found.draws.release
        complete = found.ids.size < query.further
        total = self._total(nodes, query, chosen, settings) if query.options.total else None

        def certain() -> int:
            return self._certain_ranks(found, query, chosen.floor)

        if len(found.ends) == 1:
            return Hits(hits, lambda: min(certain(), len(hits)), release, complete, total)
        least, _ = found.ends[1]
        clear = [place for place in range(len(hits)) if least[place] > chosen.min_score]
        certainly = lambda: sum(i < certain() for i in clear)  # noqa: E731
        return Hits((hits[i] for i in clear), certainly, release, complete)

    def _total(self, nodes: Nodes, query: Query, chosen: Filter, settings: WholeSettings) -> int:
        """Count the hits for unlimited k; in orders by PageRank, only among the candidates."""
        every, options = self.stored.nodes, query.options
        count = self.scorer.count(nodes, options.aggregate, ScoreQuery(every, chosen, settings))
        return count if options.order == DEFAULT_ORDER else min(count, query.candidates)

    def _certain_ranks(self, found: RankedList, query: Query, floor: float) -> int:
        options, ids, (lows, highs) = query.options, found.ids, found.ends[0]
        if options.order == "pagerank":
            return query.k
        if options.order != DEFAULT_ORDER:
            rank = self.ranks.of(ids, options.ranks)
            count = _certain_prefix(lows * rank, highs * rank)
        elif found.certain is not None:
            count = found.certain
        elif (draws := found.draws) is not None:
            how = options.confidence, options.interval
            count = self.attempt(lambda now: now.intervals.certain_ranks(draws, *how))
        else:
            count = _certain_prefix(lows, highs)
        # The last hit of a complete list has no next one.
        whole = 0 < ids.size <= query.k and count == ids.size - 1
        return count + (whole and round(lows[-1] * GRAINS) >= floor)

    def listed(
        self,
        nodes: Nodes,
        query: Query,
        chosen: Filter,
        settings: WholeSettings,
        levels: Sequence[float] | None = None,
    ) -> RankedList:
        """Return the list for one or more nodes, refined if requested and supported.

        ``levels`` are the confidences of the intervals, by default the query's.
        """
        options, scorer = query.options, self.scorer
        best = ScoreQuery(query.candidates, chosen, settings)
        if query.level and (refiner := self.refiner):
            return self._refined(nodes, query, best, refiner)
        levels = query.levels if levels is None else levels
        plain = chosen.empty and len(levels) < 2 and options.min_confidence is None
        first = options.order == DEFAULT_ORDER and not options.offset
        plain = plain and first and options.interval == DEFAULT_INTERVAL
        if plain and (alone := scorer.only(settings)) is not None:
            reader, own = alone
            bets = (wealth_at(options.confidence), ROUNDING) if levels else NO_BETS
            best_of = np.array(nodes, np.uint32), query.candidates, chosen.floor
            if lists := reader.at_once(*best_of, bets, own):
                (found,) = lists
                scores, errors, low, high = found.rows.T
                ends = [(low, high)] if levels else []
                return RankedList(found.ids, scores, errors, ends, found.certain)
        if len(nodes) > 1:
            return self._together(nodes, query, best, levels)
        from cocite.search.intervals import ListDraws

        ids, values = scorer.top(nodes[0], best)
        if not levels:
            scorer.check(values[:, 0])
        places = self._places(query, ids, values[:, 0])
        ids, (scores, errors) = ids[places], scores_of(values[places])
        draws, ends = ListDraws(nodes, ids, settings), []
        if levels:
            ends = self.intervals.of_list(draws, scores, levels, options.interval)
        return RankedList(ids, scores, errors, ends, draws=draws if self.scorer.sampled else None)

    def _together(
        self, nodes: Nodes, query: Query, best: ScoreQuery, levels: Sequence[float]
    ) -> RankedList:
        from cocite.search.intervals import ListDraws

        intervals, options = self.intervals, query.options
        ids, grains = self.scorer.top_together(nodes, options.aggregate, best)
        places = self._places(query, ids, grains)
        ids, scores = ids[places], grains[places] / GRAINS
        draws = ListDraws(nodes, ids, best.settings)
        if options.aggregate == "min":
            errors, ends = intervals.of_least(draws, levels, options.interval)
            return RankedList(ids, scores, errors, ends)
        errors, ends = intervals.of_mean(draws, scores, levels, options.interval)
        return RankedList(ids, scores, errors, ends, draws=draws if self.scorer.sampled else None)

    def _refined(
        self, nodes: Nodes, query: Query, best: ScoreQuery, refiner: Refiner
    ) -> RankedList:
        if len(nodes) > 1:
            raise UsageError(
                "a refined answer is for one node; query each node separately, or omit refine"
            )
        assert query.level is not None
        found = refiner.top(nodes[0], best, query.level)
        found = found.taken(self._places(query, found.ids, found.scores))
        low, high = found.low.round(12), found.high.round(12)
        ends = [(low, high)]
        if query.options.min_confidence is not None:
            ends.append((found.low if found.least is None else found.least, high))
        return RankedList(found.ids, found.scores, found.errors, ends)

    def _places(self, query: Query, ids: Ids, scores: Floats) -> NDArray[np.intp]:
        """Return where the candidates are in ``ids`` (best score first), in the query's order."""
        order = query.options.order
        if order == DEFAULT_ORDER:
            return np.arange(ids.size)[query.looked]
        values = self.ranks.of(ids, query.options.ranks)
        values = values if order == "pagerank" else values * scores
        return np.argsort(-values, kind="stable")[query.looked]


def _certain_prefix(lows: Floats, highs: Floats) -> int:
    """Return how many leading intervals lie above all later ones; the last one never counts."""
    if lows.size < 2:
        return 0
    behind = np.maximum.accumulate(highs[:0:-1])[::-1]
    sure: Bools = lows[:-1] > behind
    return int(sure.argmin()) if not sure.all() else sure.size


class Searching(Protocol):
    """The interface that batches require of an index or a searcher."""

    @property
    def now(self) -> Searcher:
        """Return the current searcher."""
