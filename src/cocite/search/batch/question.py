"""What a batch asks of every node, checked once; and its answers, one by one or many at a time.

What is said of a node is what ``Index.related`` says of it with the same options, to the bit. Where
the index is a single part of trees, and nothing is asked for that is of each node by itself, many
nodes are answered together (``kernels/trees_batch.py``), or one after another by a kernel each
(``kernels/trees.py``), whichever is quicker: the former where trees have long runs of
neighbors, the latter where there is little to share. Else, and with evidence, each by itself.

A filter of names is the same for all nodes and is made once. The pages of a node's own site are
looked up for one site after another, as pages of a site have ids next to each other.

Which of two ways to the same answers takes less: found by trying both.

The first runs go one way and the other by turns: runs become longer until they take their time, and
what either way takes is told by the longest of them. Then all go the way that takes less a node.
Now and then one of usual length goes the other way, as what is asked for may have become another;
a thirtieth of the time goes there. Answers are the same to the bit either way: clocks decide of
time alone.
"""

from __future__ import annotations

import time
from dataclasses import replace
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_128_hexdigest

from cocite.index.layouts.trees.reader import TreeReader
from cocite.options.query import DEFAULT_ORDER, FILTERS, QueryOptions
from cocite.search.batch.output import words_of
from cocite.search.filters import Filter, pages_of, site_of
from cocite.search.hits import scores_of
from cocite.search.intervals import bets_of
from cocite.search.query import Query, check_number
from cocite.search.refine.candidates import Level
from cocite.search.searcher import Searcher, Searching

_TURNS = 10
"""Runs by turns, at least: all that are twice as long as both ways have been gone."""
_AGAIN = 32
"""How much longer it goes on than the other way takes before that is tried again."""
_KEPT = 0.8
"""How much of what was heard before counts beside a run of usual length."""


class Quicker:
    """``way = quicker.way(nodes); begin = perf_counter(); ...; quicker.took(way, nodes, begin)``;
    ways are 0 and 1. Threads may share it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._runs, self._usual, self._spent = 0, 0.0, 0.0
        self._heard, self._longest = [0, 0], [0, 0]
        self._nodes, self._seconds = [0.0, 0.0], [0.0, 0.0]

    def way(self, nodes: int) -> int:
        """The one to go now, for so many nodes."""
        with self._lock:
            self._runs += 1
            if self._runs <= _TURNS or nodes >= 2 * min(self._longest):
                return (self._runs - 1) % 2
            each = [self._seconds[way] / self._nodes[way] for way in (0, 1)]
            best = int(each[1] < each[0])
            if nodes < self._usual / 2 or self._spent < _AGAIN * nodes * each[1 - best]:
                return best
            self._spent = 0.0
            return 1 - best

    def took(self, way: int, nodes: int, begin: float) -> None:
        """Hear that a run of so many nodes, which began at ``begin``, is done."""
        seconds = time.perf_counter() - begin
        with self._lock:
            self._heard[way] += 1
            if self._heard[way] == 1:  # which loads what it needs
                return
            self._longest[way] = max(self._longest[way], nodes)
            kept = _KEPT ** min(1.0, nodes / max(1.0, self._usual))  # short runs tell little
            self._nodes[way] = kept * self._nodes[way] + nodes
            self._seconds[way] = kept * self._seconds[way] + seconds
            self._usual = kept * self._usual + (1 - kept) * nodes
            self._spent += seconds


# -- question ----------------------------------------------------------------------------


_NONE = 2**32 - 1
_OF_ALL = {"min_score", "prefix", "exclude_prefix", "only"}
"""Filters that kernels for many nodes apply; with others, each node is asked by itself."""
Ids = NDArray[np.uint32]
Values = NDArray[np.float64]


class BatchHits(NamedTuple):
    """Hits of some nodes: how many each has, uint32[nodes], and of all of them, node after node,
    the ids, uint32[hits], and float64[hits, 2]: scores and standard errors; or float64[hits, 4],
    with the ends of their intervals.
    """

    counts: Ids
    ids: Ids
    numbers: NDArray[np.float64]


class Question:
    """One question for many nodes of ``index``; options as for ``run.Batch``.

    Raises :class:`~cocite.errors.UsageError`, :class:`~cocite.errors.UnknownNode`.
    """

    def __init__(
        self,
        index: Searching,
        k: int,
        options: QueryOptions | None = None,
        intervals: bool | None = None,
    ) -> None:
        options = QueryOptions.of(options, {})
        check_number("k", k, 1)
        self.index = index = index.now
        self.k = max(1, min(int(k), len(index.nodes) - 1))
        confidence, bound = options.confidence, options.interval
        min_confidence, settings = options.min_confidence, options.settings
        self._query = query = Query.checked(self.k, options)
        # Only hits that are listed need intervals, as no rank is said to be certain.
        query.order = replace(query.order, looked=slice(0, self.k))
        self._queried = index.stored.ask_settings(settings)
        self._exclude_same_site = options.exclude_same_site
        self._filter = Filter.checked(index.nodes, (), replace(options, exclude_same_site=False))
        self._alike = options.changed().keys() & {*FILTERS} <= _OF_ALL
        self.facts = {"k": int(k), "settings": self._queried.to_json()}
        self.facts |= {name: getattr(options, name) for name in FILTERS}
        if options.refined:
            how = options.target_error, confidence, min_confidence
            query.level = Level.of_query(index.stored, self._queried, *how)
            self.facts["target_error"] = query.level.target
            if index.refiner:  # which says so now if there is none
                index.refiner.check(self._queried)
        if options.only is not None:
            self.facts["only"] = xxh3_128_hexdigest(self._filter.only[-1].data)
        if min_confidence is not None:
            self.facts["min_confidence"] = [min_confidence, bound]
        refined = query.level is not None
        self.intervals = refined or not index.sampled if intervals is None else intervals
        """Whether the ends of intervals are said."""
        self.words = words_of(self.intervals)
        """Words a row in the journal."""
        self._levels = [confidence] * self.intervals
        if min_confidence is not None:
            self._levels.append(min_confidence)
        if self.intervals or refined:
            self.facts["intervals"] = [confidence, bound]
        if options.order != DEFAULT_ORDER:
            # Computed now, and once: threads would each do so.
            values = np.ascontiguousarray(index.ranks.all(options.ranks))
            self.facts["order"] = [
                options.order,
                query.order.candidates,
                xxh3_128_hexdigest(values.data),
            ]
        self._quicker = Quicker()
        self._masks: dict[int, NDArray[np.bool_]] = {}
        self._latest: tuple[tuple[str, str], tuple[Ids, ...]] = ("", ""), ()

    def of(self, index: Searcher) -> None:
        """Ask another index from now on: the same without some of its samples."""
        self.index = index

    @property
    def refined(self) -> bool:
        """Whether answers are refined."""
        return self._query.level is not None

    @property
    def together(self) -> TreeReader | None:
        """The reader that answers for many nodes at once, if it can."""
        if self.refined or self.intervals or not self._alike:
            return None
        if self._query.order.by != DEFAULT_ORDER:
            return None
        readers = self.index.scorer.reading(self._queried)
        fresh = self.index.stored.freshness
        if len(readers) != 1 or (fresh.there and fresh.since is not None):
            return None
        (reader,) = readers
        return reader if isinstance(reader, TreeReader) and reader.part.weight == 1 else None

    def check_sites(self, nodes: Ids) -> None:
        """See that every node has a site, if the pages of its own are left out."""
        if self._exclude_same_site:
            names = self.index.nodes
            for node in nodes.tolist():
                site_of(names.stored.name(node))

    def answer(self, nodes: Ids) -> BatchHits:
        """The hits of some nodes: of any number if they are answered together, else of one."""
        reader = self.together
        if reader is None:
            (node,) = nodes.tolist()
            ids, *numbers = self._one(node)
            numbers = numbers if self.intervals else numbers[:2]
            return BatchHits(np.array([ids.size], np.uint32), ids, np.column_stack(numbers))
        allowed = self._allowed(int(nodes[0]))
        way, begin = self._quicker.way(nodes.size), time.perf_counter()
        found = self._one_by_one(reader, nodes) if way == 1 and allowed.size == 0 else None
        if found is None:
            found = self._together(reader, nodes, allowed)
        self._quicker.took(way, nodes.size, begin)
        return found

    def _one_by_one(self, reader: TreeReader, nodes: Ids) -> BatchHits | None:
        """One kernel a node, if there is one for what is asked."""
        floor, bets = self._filter.floor, bets_of(self._query.confidence)
        settings, told = reader.part.ask_settings(self._queried), []
        for node in nodes.tolist():
            one = reader.at_once(node, self.k, floor, bets, settings)
            if one is None:
                return None
            told.append(one)
        counts = np.array([one.ids.size for one in told], np.uint32)
        ids = np.concatenate([one.ids for one in told])
        return BatchHits(counts, ids, np.concatenate([one.rows[:, :2] for one in told]))

    def _together(self, reader: TreeReader, nodes: Ids, allowed: NDArray[np.bool_]) -> BatchHits:
        """From one node to the next, only what changes."""
        out = np.empty((nodes.size, self.k), np.uint32), np.empty((nodes.size, self.k, 2))
        settings = reader.part.ask_settings(self._queried)
        reader.related_many(nodes, self._filter.floor, allowed, settings, out)
        there = out[0] != _NONE
        counts = there.sum(axis=1).astype(np.uint32)
        return BatchHits(counts, out[0][there], np.column_stack(scores_of(out[1][there])))

    def _one(self, node: int) -> tuple[Ids, Values, Values, Values, Values]:
        """The hits of one node, as ``Index.related`` finds them: ids, scores, errors, and the ends
        of intervals, which are no more than scores where they are not asked for.
        """
        index, chosen = self.index, self._filter.on_side_of(self.index.nodes, node)
        if self._exclude_same_site:
            chosen = replace(chosen, never=chosen.never + self._site(node))
        refiner = index.refiner if self.refined else None
        found = index.lister.listed(
            (node,), self._query, chosen, self._queried, refiner, levels=self._levels
        )
        ids, k = found.ids[: self.k], self.k
        scores, errors = np.array(found.scores[:k]), np.array(found.errors[:k])
        low, high = scores, scores
        if self.intervals:
            low, high = (np.array(ends[:k]) for ends in found.ends[0])
        sure = np.arange(ids.size)
        if self._query.min_confidence is not None:
            sure = np.flatnonzero(np.array(found.ends[-1][0][:k]) > chosen.min_score)
        return ids[sure], scores[sure], errors[sure], low[sure], high[sure]

    def _site(self, node: int) -> tuple[Ids, ...]:
        """The ids of the pages of a node's own site."""
        names = self.index.nodes
        site = site_of(names.stored.name(node))
        if self._latest[0] != site:
            self._latest = site, tuple(pages_of(names, site))
        return self._latest[1]

    def _allowed(self, node: int) -> NDArray[np.bool_]:
        """The filter as bool[nodes], of those of the side of ``node``; empty if there is none."""
        within = self._filter.on_side_of(self.index.nodes, node).within
        begin = 0 if within is None else within.start
        if begin not in self._masks:
            self._masks[begin] = self._mask(within)
        return self._masks[begin]

    def _mask(self, within: range | None) -> NDArray[np.bool_]:
        if not self._filter.only and not self._filter.never and within is None:
            return np.empty(0, bool)
        allowed = np.ones(len(self.index.nodes), bool)
        if within is not None:
            allowed[: within.start] = allowed[within.stop :] = False
        for ids in self._filter.only:
            some = np.zeros(allowed.size, bool)
            some[ids] = True
            allowed &= some
        for ids in self._filter.never:
            allowed[ids] = False
        return allowed
