"""The journal of a batch: pieces with the hits of consecutive nodes, in any order.

    begin      the position of the first node among those queried, uint32
    size       the number of nodes, uint32
    counts     the number of hits of each node, uint32[size]
    rows       all hits, node by node: the id, then as float64 the score, its standard error,
               and, with intervals, low and high; 5 words of 32 bits, or 9

A piece may end anywhere, so that a worker returns results every few seconds. The division into
pieces does not affect the output. Opening a journal costs one pass; reading rows takes 12 bytes per
queried node.
"""

from __future__ import annotations

import time
from array import array
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_128_hexdigest

from cocite.cluster import in_order
from cocite.constants import Floats, Ids, Ints
from cocite.options.query import DEFAULT_ORDER, FilterOptions, QueryOptions
from cocite.search.scorer import NO_BETS, Filter, pages_of, site_of
from cocite.search.searcher import Query, Searching
from cocite.storage import Journal

_SECONDS = 3.0
"""Seconds after which a worker ends a piece. A killed process loses at most twice as much work per
worker: an unfinished piece, and one not yet written.
"""
_LEAST, _MOST = 8, 8192
_SHARES = 2


class Piece(NamedTuple):
    """The hits of ``size`` nodes from position ``begin``, and the seconds taken."""

    begin: int
    size: int
    content: bytes
    seconds: float


class PieceRows(NamedTuple):
    """Rows by node position: rows of node i begin at word ``begins[i]``, ``width`` words each."""

    words: Ids
    begins: NDArray[np.uint64]
    counts: Ids
    width: int

    def of(self, places: Ids | slice) -> tuple[Ids, Ids]:
        """Return the nodes' row counts, and their rows, uint32[rows, width]."""
        counts = self.counts[places]
        first = np.repeat(self.begins[places].astype(np.int64), counts) + self.width * ranks(counts)
        return counts, self.words[first[:, None] + np.arange(self.width)]


def words_of(intervals: bool) -> int:
    """Return the row width in 32-bit words."""
    return 9 if intervals else 5


def packed(ids: Ids, numbers: Floats) -> bytes:
    """Encode rows from uint32[h] and float64[h, 2 or 4]."""
    words = np.ascontiguousarray(numbers).view(np.uint32)
    return np.column_stack((ids, words.reshape(ids.size, 2 * numbers.shape[1]))).tobytes()


def ranks(counts: Ids) -> Ints:
    """Return 0, 1, ... for the rows of each node."""
    ends = np.cumsum(counts, dtype=np.int64)
    found: Ints = np.arange(ends[-1] if ends.size else 0)
    return found - np.repeat(ends - counts, counts)


class PieceRecord:
    """A journal of pieces, whose rows have ``width`` words; a context manager."""

    def __init__(self, path: Path, nodes: int, width: int) -> None:
        self._journal, self._nodes, self._width = Journal(path), nodes, width
        self._runs: list[tuple[int, int]] = []

    def __enter__(self) -> Self:
        self._journal.__enter__()
        if self._journal.sizes:
            words = np.memmap(self._journal.path, np.uint32, "r")
            for begin in self._journal.begins:
                first, size = words[begin // 4 : begin // 4 + 2].tolist()
                self._runs.append((first, size))
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._journal.__exit__(kind, error, trace)

    @property
    def folder(self) -> Path:
        """Return the journal's directory."""
        return self._journal.path.parent

    def add(self, piece: Piece) -> None:
        """Store a piece; raises :class:`~cocite.errors.ResourceError` if the disk is full."""
        self._journal.append(piece.content)
        self._runs.append((piece.begin, piece.size))

    @property
    def done(self) -> int:
        """Return the number of nodes whose hits are stored."""
        return sum(size for _, size in self._runs)

    @property
    def missing(self) -> list[range]:
        """Return the ranges of nodes that no piece covers, ascending."""
        found, at = [], 0
        for begin, size in sorted(self._runs):
            if begin > at:
                found.append(range(at, begin))
            at = begin + size
        return [*found, range(at, self._nodes)] if at < self._nodes else found

    def rows(self) -> PieceRows:
        """Return all rows, by node position."""
        stored = sum(self._journal.sizes)
        words = np.memmap(self._journal.path, np.uint32, "r") if stored else np.empty(0, np.uint32)
        starts = [begin // 4 for begin in self._journal.begins]
        return rows_in(words, zip(starts, self._runs, strict=True), self._nodes, self._width)


def rows_in(
    words: Ids, pieces: Iterable[tuple[int, tuple[int, int]]], nodes: int, width: int
) -> PieceRows:
    """Locate the rows of pieces; a piece is (first word, (first node, size))."""
    begins, counts = np.zeros(nodes, np.uint64), np.zeros(nodes, np.uint32)
    for start, (begin, size) in pieces:
        counts[begin : begin + size] = found = words[start + 2 : start + 2 + size]
        rows = np.cumsum(found, dtype=np.uint64) - found
        begins[begin : begin + size] = rows * np.uint64(width) + np.uint64(start + 2 + size)
    return PieceRows(words, begins, counts, width)


def rows_of(pieces: Sequence[Piece], nodes: int, width: int) -> PieceRows:
    """Return the rows of pieces in memory."""
    words = np.frombuffer(b"".join(piece.content for piece in pieces), np.uint32)
    starts = np.cumsum([0] + [len(piece.content) // 4 for piece in pieces]).tolist()
    runs = [piece[:2] for piece in pieces]
    return rows_in(words, zip(starts, runs, strict=False), nodes, width)


def piece_of(run: range, answer: Callable[[int], BatchHits], stopped: Event) -> Piece:
    """Query the nodes of ``run`` until the time limit, and return the piece."""
    began = at = time.monotonic()
    counts, rows = array("I"), []
    for place in run:
        if stopped.is_set():
            raise KeyboardInterrupt
        found = answer(place)
        counts.append(found.ids.size)
        rows.append(packed(found.ids, found.numbers))
        at = time.monotonic()
        if at - began >= _SECONDS:
            break
    head = np.array([run.start, len(counts)], np.uint32).tobytes()
    return Piece(run.start, len(counts), head + counts.tobytes() + b"".join(rows), at - began)


def answered(
    todo: Iterable[range], work: Callable[[range], Piece], threads: int
) -> Generator[Piece]:
    """Compute and yield the pieces of all runs, split so that the last ones are short."""
    waiting = deque(todo)

    def runs() -> Iterator[range]:
        while waiting:
            run = waiting.popleft()
            left = len(run) + sum(map(len, waiting))
            size = min(_MOST, max(_LEAST, left // (_SHARES * threads)))
            if len(run) > size:
                waiting.appendleft(run[size:])
            yield run[:size]

    while waiting:
        found = in_order([lambda run: (work(run), run)] * threads, runs())
        with closing(found):  # type: ignore[type-var]
            for piece, run in found:
                if piece.size < len(run):
                    waiting.appendleft(run[piece.size :])
                yield piece


# -- the query for every node ---------------------------------------------------------


class BatchHits(NamedTuple):
    """A node's hits: ``ids`` uint32[hits]; ``numbers`` float64[hits, 2], scores and standard
    errors, or with intervals float64[hits, 4], which adds the ends.
    """

    ids: Ids
    numbers: Floats


class Question:
    """A query repeated for many nodes; raises :class:`~cocite.errors.UsageError`."""

    def __init__(
        self,
        index: Searching,
        k: int,
        options: QueryOptions | None = None,
        intervals: bool | None = None,
    ) -> None:
        options = QueryOptions.of(options, {})
        self.index = index = index.now
        asked = Query.checked(k, options).k
        self.k = max(1, min(asked, len(index.nodes) - 1))
        self._settings = index.stored.ask_settings(options.settings)
        self._filter = Filter.checked(index.nodes, (), replace(options, exclude_same_site=False))
        level = index.level(self._settings, options, options.min_confidence)
        # Only listed hits need intervals: certain ranks are not computed.
        query = Query.checked(self.k, options, level)
        self._query = replace(query, looked=slice(0, self.k))
        if level and index.refiner:  # raises now if the measure has no refiner
            index.refiner.check(self._settings)
        certified = level is not None or not index.scorer.sampled
        self.intervals = certified if intervals is None else intervals
        """Whether interval ends are reported."""
        self._levels = [options.confidence] * self.intervals
        if options.min_confidence is not None:
            self._levels.append(options.min_confidence)
        self.refined = level is not None
        self.facts = self._facts(asked)
        self._pages_of = lru_cache(1)(partial(pages_of, index.nodes))

    def _facts(self, k: int) -> dict[str, object]:
        """Return everything that answers depend on, except the index."""
        options, level = self._query.options, self._query.level
        facts: dict[str, object] = {"k": k, "settings": self._settings.to_json()}
        facts |= {name: getattr(options, name) for name in FilterOptions.declared()}
        if options.only is not None:
            facts["only"] = xxh3_128_hexdigest(self._filter.only[-1].data)
        if level is not None:
            facts["target_error"] = level.target
        if self.intervals or level is not None:
            facts["intervals"] = options.confidence
        if self._levels:
            facts["interval"] = options.interval
        if options.order != DEFAULT_ORDER:
            # Compute ranks once, before the threads start.
            ranks = np.ascontiguousarray(self.index.ranks.all(options.ranks))
            digest = xxh3_128_hexdigest(ranks.data)
            facts["order"] = [options.order, self._query.candidates, digest]
        return facts

    def check_sites(self, nodes: Ids) -> None:
        """Check that every node has a site, if pages of the same site are excluded."""
        if self._query.options.exclude_same_site:
            for node in nodes.tolist():
                site_of(self.index.nodes.stored.name(node))

    def each(self, nodes: Ids) -> Iterator[BatchHits]:
        """Yield the hits of each node."""
        query = self._query
        exact = not self.index.scorer.sampled and len(self._levels) < 2
        plain = (exact or not self._levels) and not self.refined and self._filter.empty
        plain = plain and query.options.order == DEFAULT_ORDER and self.index.nodes.sides is None
        plain = plain and not query.options.exclude_same_site
        if plain and (alone := self.index.scorer.only(self._settings)) is not None:
            reader, own = alone
            width, how = 4 if self.intervals else 2, (self._filter.floor, NO_BETS, own)
            while nodes.size and (found := reader.at_once(nodes, query.candidates, *how)):
                yield from (BatchHits(h.ids[: self.k], h.rows[: self.k, :width]) for h in found)
                nodes = nodes[len(found) :]
        yield from map(self.answer, nodes.tolist())

    def answer(self, node: int) -> BatchHits:
        """Return the hits of a node."""
        index, options = self.index, self._query.options
        chosen = self._filter.on_side_of(index.nodes, node)
        if options.exclude_same_site:
            site = site_of(index.nodes.stored.name(node))
            chosen = replace(chosen, never=(*chosen.never, *self._pages_of(site)))
        found = index.listed((node,), self._query, chosen, self._settings, self._levels)
        columns = [found.scores, found.errors, *(found.ends[0] if self.intervals else ())]
        ids, numbers = found.ids[: self.k], np.array(columns)[:, : self.k].T
        if options.min_confidence is None:
            return BatchHits(ids, numbers)
        sure = found.ends[-1][0][: self.k] > chosen.min_score
        return BatchHits(ids[sure], numbers[sure])
