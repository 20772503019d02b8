"""Lists of related nodes by their ids, for single questions and for batches.

A list takes one of three ways, the first that fits:

* refined answers (``search/refine/``), if the query says so and the measure has them;
* a single kernel call that finds hits, intervals and certain ranks, for a plain query;
* the scorer's best, put in order, and intervals for those that are left.

Orders are by score, by the product of score and PageRank, and by PageRank, of the candidates that
score best; ties keep the order of scores. PageRanks are computed from the graph when they are first
needed, or read from what ``cocite rank -o`` wrote: an array by id (``.npy``), or a table of names.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocite.constants import GRAINS
from cocite.errors import InputError, UsageError
from cocite.index import StoredIndex
from cocite.measures import WholeSettings
from cocite.options.query import DEFAULT_INTERVAL, DEFAULT_ORDER, ORDERS, QueryOptions
from cocite.resources import Resources
from cocite.search.filters import Filter, Ids
from cocite.search.hits import Hit, Hits, scores_of
from cocite.search.intervals import NO_BETS, Ends, Intervals, ListDraws, bets_of, certain_prefix
from cocite.search.scorer import Nodes, ScoreQuery, Scorer

if TYPE_CHECKING:
    from cocite.search.refine.candidates import Level, Refiner
    from cocite.search.source import GivenGraph


_LEAST, _TIMES = 100, 4
RanksLike = str | os.PathLike[str] | NDArray[np.float64] | None


def checked_option(name: str, value: Any) -> Any:
    """Return the value of an option of questions; raise :class:`UsageError` if there is no such."""
    return QueryOptions.declared()[name].checked(value)


@dataclass(frozen=True)
class Query:
    """A checked question for related nodes. Its filter depends on the nodes and is apart.

    Of the best ``candidates`` by score those ``looked`` at are the ``k`` that are shown, and what
    may belong among them. ``level`` says how far to refine; None for not at all.
    """

    k: int
    options: QueryOptions
    candidates: int
    looked: slice
    level: Level | None = None

    @classmethod
    def checked(cls, k: int, options: QueryOptions, level: Level | None = None) -> Query:
        """Raise :class:`UsageError` for a value that is not allowed.

        For an order by PageRank max(100, 4 * (k + offset)) are candidates by default.
        """
        k = checked_option("k", k)
        if not options.min_score < float("inf"):
            raise UsageError(f"min_score is {options.min_score!r}; it is a number, 0 or more")
        end = options.offset + k
        if options.order == DEFAULT_ORDER:
            for name in ("candidates", "ranks"):
                if getattr(options, name) is not None:
                    raise UsageError(
                        f"{name} go with an order by PageRank: choose {' or '.join(ORDERS[1:])}, "
                        f"or leave {name} out"
                    )
            return cls(k, options, end + 1, slice(options.offset, end + 1), level)
        # A candidate that is not shown may have the larger product.
        last = end if options.order == "pagerank" else None
        candidates = options.candidates or max(_LEAST, _TIMES * end)
        return cls(k, options, candidates, slice(options.offset, last), level)

    @property
    def levels(self) -> list[float]:
        """The confidences of the intervals of an answer: its own, then that of the filter."""
        least = self.options.min_confidence
        return [self.options.confidence, *([] if least is None else [least])]


class RankedList(NamedTuple):
    """Nodes in the query's order, with those that may belong before the last that is shown.

    ``ends`` are those of the intervals, for each confidence. How many first ranks are certain is
    ``certain`` if it is known already, else it follows from ``draws``, and without these from the
    ends.
    """

    ids: Ids
    scores: NDArray[np.float64]
    errors: NDArray[np.float64]
    ends: Ends
    certain: int | None = None
    draws: ListDraws | None = None


class Lister:
    """Make lists of related nodes. Safe to share between threads."""

    def __init__(self, scorer: Scorer, intervals: Intervals, ranks: PageRanks) -> None:
        self._scorer, self._intervals, self._ranks = scorer, intervals, ranks

    def hits(
        self,
        nodes: Nodes,
        query: Query,
        chosen: Filter,
        settings: WholeSettings,
        refiner: Refiner | None,
        certain_by_samples: Callable[[ListDraws, float, str], int],
    ) -> Hits:
        """Return the hits that are shown, with the first intervals; without those that may not be
        better by the others. ``certain_by_samples`` finds certain ranks when they are needed.
        """
        found, k = self.listed(nodes, query, chosen, settings, refiner), query.k
        stored, shown = self._scorer.stored, found.ids[:k]
        columns = (each.tolist() for each in (found.scores, found.errors, *found.ends[0]))
        hits = list(map(Hit, stored.names.names(shown), *columns))
        if stored.titles is not None:
            titles = stored.titles.of(shown)
            hits = [hit.titled(title) for hit, title in zip(hits, titles, strict=True)]
        release = None if found.draws is None else found.draws.release

        def certain() -> int:
            return self._certain_ranks(found, query, chosen.floor, certain_by_samples)

        if len(found.ends) == 1:
            return Hits(hits, lambda: min(certain(), len(hits)), release)
        least, _ = found.ends[1]
        clear = [place for place in range(len(hits)) if least[place] > chosen.min_score]
        certainly = lambda: sum(i < certain() for i in clear)  # noqa: E731
        return Hits((hits[i] for i in clear), certainly, release)

    def _certain_ranks(
        self,
        found: RankedList,
        query: Query,
        floor: float,
        by_samples: Callable[[ListDraws, float, str], int],
    ) -> int:
        options, ids, (lows, highs) = query.options, found.ids, found.ends[0]
        if options.order == "pagerank":
            return query.k
        if options.order != DEFAULT_ORDER:
            rank = self._ranks.of(ids, options.ranks)
            count = certain_prefix(lows * rank, highs * rank)
        elif found.certain is not None:
            count = found.certain
        elif found.draws is not None:
            count = by_samples(found.draws, options.confidence, options.interval)
        else:
            count = certain_prefix(lows, highs)
        # The last hit of all has no next one.
        whole = 0 < ids.size <= query.k and count == ids.size - 1
        return count + (whole and round(lows[-1] * GRAINS) >= floor)

    def listed(
        self,
        nodes: Nodes,
        query: Query,
        chosen: Filter,
        settings: WholeSettings,
        refiner: Refiner | None = None,
        *,
        levels: Sequence[float] | None = None,
    ) -> RankedList:
        """Return the list of one node, or of several together.

        ``refiner`` refines it, if the query has a level. ``levels`` are the confidences of
        intervals, by default those of the query.
        """
        options = query.options
        best = ScoreQuery(query.candidates, chosen, settings)
        if query.level and refiner:
            return self._refined(nodes, query, best, refiner)
        levels = query.levels if levels is None else levels
        plain = chosen.empty and len(levels) < 2 and options.min_confidence is None
        first = options.order == DEFAULT_ORDER and not options.offset
        if plain and first and options.interval == DEFAULT_INTERVAL:
            bets = bets_of(options.confidence) if levels else NO_BETS
            found = self._scorer.single_pass(
                nodes[0], query.candidates, chosen.floor, bets, settings
            )
            if found is not None:
                scores, errors, low, high = found.rows.T
                ends = [(low, high)] if levels else []
                return RankedList(found.ids, scores, errors, ends, found.certain)
        if len(nodes) > 1:
            return self._together(nodes, query, best, levels)
        ids, values = self._scorer.top(nodes[0], best)
        if not levels:
            self._scorer.check(values[:, 0])
        places = self._places(query, ids, values[:, 0])
        ids, (scores, errors) = ids[places], scores_of(values[places])
        draws, ends = ListDraws(nodes, ids, settings), []
        if levels:
            ends = self._intervals.of_list(draws, scores, levels, options.interval)
        return RankedList(ids, scores, errors, ends, draws=self._sampled(draws))

    def _sampled(self, draws: ListDraws) -> ListDraws | None:
        return draws if self._scorer.sampled else None

    def _together(
        self, nodes: Nodes, query: Query, best: ScoreQuery, levels: Sequence[float]
    ) -> RankedList:
        intervals, options = self._intervals, query.options
        ids, grains = self._scorer.top_together(nodes, options.aggregate, best)
        places = self._places(query, ids, grains)
        ids, scores = ids[places], grains[places] / GRAINS
        draws = ListDraws(nodes, ids, best.settings)
        if options.aggregate == "min":
            errors, ends = intervals.of_least(draws, levels, options.interval)
            return RankedList(ids, scores, errors, ends)
        errors, ends = intervals.of_mean(draws, scores, levels, options.interval)
        return RankedList(ids, scores, errors, ends, draws=self._sampled(draws))

    def _refined(
        self, nodes: Nodes, query: Query, best: ScoreQuery, refiner: Refiner
    ) -> RankedList:
        if len(nodes) > 1:
            raise UsageError(
                "refined answers are of one node; ask for each of several, or leave refine out"
            )
        assert query.level is not None
        found = refiner.top(nodes[0], best, query.level)
        found = found.taken(self._places(query, found.ids, found.scores))
        low, high = found.low.round(12), found.high.round(12)
        ends = [(low, high)]
        if query.options.min_confidence is not None:
            ends.append((found.low if found.least is None else found.least, high))
        return RankedList(found.ids, found.scores, found.errors, ends)

    def _places(self, query: Query, ids: Ids, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the places of the candidates that are looked at, in the query's order. ``ids``
        come in the order of their scores.
        """
        order = query.options.order
        if order == DEFAULT_ORDER:
            return np.arange(ids.size)[query.looked]
        values = self._ranks.of(ids, query.options.ranks)
        values = values if order == "pagerank" else values * scores
        return np.argsort(-values, kind="stable")[query.looked]


# -- PageRanks ---------------------------------------------------------------------------


_ROWS = 1 << 14
Ranks = NDArray[np.float64]


class PageRanks:
    """PageRanks by node id. Safe to share between threads."""

    def __init__(self, stored: StoredIndex, resources: Resources, graph: GivenGraph) -> None:
        self._stored, self._resources, self._graph = stored, resources, graph
        self._cache: dict[str, Ranks] = {}
        self._lock = threading.Lock()

    def of(self, ids: Ids, ranks: RanksLike = None) -> Ranks:
        """Return float64[h], the ranks of some nodes.

        An index that keeps only some pages has other ids than the graph.
        """
        found: Ranks = self.all(ranks)[self._stored.in_graph(ids)]
        return found

    def all(self, ranks: RanksLike = None) -> Ranks:
        """Return float64[nodes of the graph]: those given, or those of the graph."""
        if ranks is not None and not isinstance(ranks, str | os.PathLike):
            return _checked(ranks, self._stored.graph_nodes, "ranks")
        key = "" if ranks is None else str(Path(ranks).absolute())
        with self._lock:  # computed once, however many threads need them
            if key not in self._cache:
                self._cache[key] = (
                    self._computed() if ranks is None else _read(Path(ranks), self._stored)
                )
        return self._cache[key]

    def _computed(self) -> Ranks:
        from cocite.ranking import pagerank
        from cocite.search.source import find_graph

        graph = find_graph(self._stored, self._graph)
        graph.check()
        return pagerank(graph, memory=self._resources.memory).values


def _checked(values: ArrayLike, nodes: int, name: str) -> Ranks:
    found = np.asarray(values)
    if found.shape != (nodes,) or found.dtype.kind != "f":
        raise InputError(
            f"{name}: found {found.dtype}{list(found.shape)}; it is a number for each of {nodes:,} "
            "nodes, as cocite rank -o writes them"
        )
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise InputError(f"{name}: a rank is a finite number, 0 or more")
    return found.astype(np.float64, copy=False)


def _read(path: Path, stored: StoredIndex) -> Ranks:
    """float64[nodes of the graph]: the ranks in a file, of the nodes of the index at least."""
    from cocite.ranking import WeightsFile

    names, nodes = stored.names, stored.graph_nodes
    if path.suffix == ".npy":
        try:
            return _checked(np.load(path, mmap_mode="r", allow_pickle=False), nodes, str(path))
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error
    found, rows = np.full(nodes, np.nan), WeightsFile(path).items()
    while piece := list(islice(rows, _ROWS)):
        if stored.wanted is not None:  # the others of the graph are no nodes here
            piece = [row for row in piece if row[0] in names]
        ids = names.ids([name for name, _ in piece])
        found[stored.in_graph(ids)] = [weight for _, weight in piece]
    own = stored.in_graph(np.arange(stored.nodes, dtype=np.uint32))
    missing = np.flatnonzero(np.isnan(found[own]))
    if missing.size:
        raise InputError(
            f"{path} has no rank of {missing.size:,} nodes, such as {names.name(int(missing[0]))!r}"
            ". Write it from the graph of the index: cocite rank GRAPH -o FILE"
        )
    return found
