"""Predict a batch's time, memory, rows, bytes and disk space from a sample of its nodes.

The sample consists of evenly spaced runs of nodes (*strata*). Their hits are kept, so no query is
repeated. After an untimed warm-up, sampling takes about two seconds. If all strata finish earlier,
fewer and longer runs follow, because consecutive nodes may share work.

    seconds = nodes * a / threads + rows * w

a is the time per node in the sample, and w the time to write a row, excluding fixed costs. Bytes
are extrapolated from the second half of the sample, because a table that stores each name once
grows more slowly than its rows. The prediction is poor if a few nodes, such as hubs, take most of
the time.
Source: Cochran, *Sampling Techniques*, chapter 8 (systematic sampling).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.constants import Ids
from cocite.errors import Damaged, ResourceError, UsageError
from cocite.graph.names import text_of
from cocite.index.layouts.contract import is_shard
from cocite.index.layouts.reader import NODE_SCRATCH
from cocite.options.query import QueryOptions
from cocite.resources import checked_threads, format_least, resident, short_of
from cocite.results import Document
from cocite.search.batch.pages import Output, OutputPages
from cocite.search.batch.pieces import (
    Piece,
    PieceRecord,
    PieceRows,
    Question,
    answered,
    piece_of,
    rows_of,
    words_of,
)
from cocite.search.searcher import Searcher, Searching
from cocite.storage import Access, evict

_OUT_ROWS = 1 << 16
_MANY = 0.001
"""Fraction of the nodes above which a batch reads nearly the whole index."""

Progress = Callable[[str, int, int], None]


class Work:
    """Queries a batch's nodes, and converts the hits to pages.

    ``nodes`` are the names to query, in this order and without duplicates; by default all, or in a
    bipartite graph those on a ``side`` (default: right). With ``ids``, pages have node ids instead
    of names. ``options`` are query options. If nearly the whole index will be read, its checksums
    are verified first.
    """

    def __init__(
        self,
        index: Searching,
        k: int,
        *,
        nodes: Iterable[object] | None = None,
        side: str | None = None,
        ids: bool = False,
        threads: int | None = None,
        intervals: bool | None = None,
        **options: Any,
    ) -> None:
        self.asked = _chosen(index.now, nodes, side)
        self._many = self.asked.size >= _MANY * len(index.now.nodes)
        if self._many:
            _compare(index.now)
        self.question = Question(index, k, QueryOptions.of(None, options), intervals)
        self.question.check_sites(self.asked)
        self.threads = index.now.means.threads if threads is None else checked_threads(threads)
        self.words = words_of(self.question.intervals)
        self._ids, self._stopped = ids, Event()

    @property
    def index(self) -> Searcher:
        """Return the searcher."""
        return self.question.index

    @property
    def nodes(self) -> int:
        """Return the number of nodes to query."""
        return self.asked.size

    def pieces(self, todo: Iterable[range], first: int = 0) -> Generator[Piece]:
        """Query runs of nodes, counted from ``first``, on all threads; yield the pieces."""
        asked = self.asked[first:]

        def work(run: range) -> Piece:
            found = self.question.each(asked[run.start : run.stop])
            return piece_of(run, lambda _: next(found), self._stopped)

        with closing(answered(todo, work, self.threads)) as found:
            try:
                for piece in found:
                    self.give_back()
                    yield piece
            finally:
                self._stopped.set()
                found.close()
                self._stopped.clear()

    def advise(self) -> None:
        """Advise the operating system to read ahead if most of the index is read and fits."""
        store = self.index.stored.store
        fits = store.nbytes <= self.index.means.memory
        store.advise(Access.AROUND if self._many and fits else Access.SCATTERED)

    def give_back(self, *mapped: NDArray[Any]) -> None:
        """Evict the index and ``mapped`` arrays from memory if the process exceeds its limit."""
        if resident() > self.index.means.total:
            self.index.stored.store.evict()
            evict(*mapped)

    def pages(self, rows: PieceRows, places: Ids | slice, first: int = 0) -> OutputPages:
        """Return pages of the nodes at ``places`` in ``rows``, counted from ``first``."""
        return self._pages(self.asked[first:][places], *rows.of(places))

    @property
    def none(self) -> OutputPages:
        """Return an empty page with the same types."""
        nobody = np.empty(0, np.uint32)
        return self._pages(nobody, nobody, np.empty((0, self.words), np.uint32))

    def _pages(self, nodes: Ids, counts: Ids, found: Ids) -> OutputPages:
        related = found[:, 0]
        numbers = np.ascontiguousarray(found[:, 1:]).view(np.float64).T
        titles = ("score", "stderr", "low", "high")
        return OutputPages(
            self._named(nodes),
            counts,
            self._named(related),
            dict(zip(titles, map(np.ascontiguousarray, numbers), strict=False)),
            nodes,
            related,
            self._titled(nodes),
            self._titled(related),
        )

    def _titled(self, ids: Ids) -> NDArray[Any] | None:
        titles = self.index.stored.titles
        if titles is None:
            return None
        return _each(lambda some: [title or None for title in titles.of(some)], ids)

    def _named(self, ids: Ids) -> Any:
        return ids.astype(np.int64) if self._ids else _each(self.index.nodes.stored.names, ids)

    @property
    def chunk(self) -> int:
        """Return the number of nodes to write at once."""
        return max(1, _OUT_ROWS // self.question.k)


def _each(called: Callable[[Ids], Sequence[str | None]], ids: Ids) -> NDArray[Any]:
    """Return object[n], the names of nodes, each looked up once."""
    different, where = np.unique(ids, return_inverse=True)
    return np.array([*called(different), None], object)[:-1][where]


def _compare(index: Searcher) -> None:
    """Verify all checksums, and exclude damaged shards; raises :class:`Damaged` for other files."""
    store = index.stored.store
    for name in store.manifest.files:
        try:
            store.require(name)
        except Damaged as fault:
            if not is_shard(name):
                raise
            index.leave_out_files([name], str(fault))


def _chosen(index: Searcher, nodes: Iterable[object] | None, side: str | None) -> Ids:
    names, sides = index.nodes, index.nodes.sides
    if side is not None and sides is None:
        raise UsageError(f"{index.stored.store.path} is not bipartite: omit --side (side=...)")
    if nodes is None:
        return np.array(sides.named(side) if sides else range(len(names)), np.uint32)
    if isinstance(nodes, str):
        raise UsageError("nodes is a single string; pass a list of names")
    named = list(nodes)
    if sides is not None and side is not None:
        named = [sides.name(side, text_of(name)) for name in named]
    found = names.ids(named)
    if sides is not None and found.size:
        sides.check_alike(found.tolist(), named)
    _, first = np.unique(found, return_index=True)
    return found[np.sort(first)]


_SECONDS = 2.0
_STRATA, _STRATUM = 160, 6
_LONG, _FEW_LEFT = (24, 128), 10
"""Count and size of the longer strata. They are used if a batch has more than _FEW_LEFT times as
many nodes left as these strata contain.
"""
_FIRST = 6
"""Maximum number of nodes in the untimed warm-up run."""
_PLACES, _ROW = 24, 1400
"""Bytes per node while querying, and per row while writing."""


@dataclass(frozen=True)
class BatchPlan(Document):
    """Predicted cost of a batch of ``nodes`` nodes, from ``sampled`` nodes.

    ``hits`` is the total number of hits, ``seconds`` the remaining time on ``threads`` threads. In
    bytes: ``memory`` is the process's memory, including as much of the ``index`` as fits; ``bytes``
    the output size; and ``disk`` the temporary space.
    """

    nodes: int
    hits: int
    seconds: float
    threads: int
    memory: int
    index: int
    bytes: int
    disk: int
    sampled: int


def strata(missing: Sequence[range], count: int, size: int) -> list[range]:
    """Choose ``count`` evenly spaced runs of ``size`` nodes from the ``missing`` ones."""
    places = np.concatenate([np.empty(0, np.int64), *(np.array(run) for run in missing)])
    if places.size <= count * size:
        return list(missing)
    starts = (np.arange(count) * (places.size - size) / max(1, count - 1)).astype(np.int64)
    found = []
    for start in starts.tolist():
        run = places[start : start + size]
        whole = run[run - run[0] == np.arange(run.size)]
        found.append(range(int(whole[0]), int(whole[-1]) + 1))
    return found


def estimate(work: Work, output: Output, kept: PieceRecord, progress: Progress) -> BatchPlan | None:
    """Predict the cost from a sample, whose hits are added to ``kept``; None if no node is left."""
    runs = strata(kept.missing, _STRATA, _STRATUM)

    def answer(runs: list[range]) -> list[Piece]:
        found, began = [], time.monotonic()
        with closing(work.pieces(runs)) as pieces:
            for piece in pieces:
                kept.add(piece)
                found.append(piece)
                progress("relating", kept.done, work.nodes)
                if time.monotonic() - began > _SECONDS:
                    break
        return found

    # Time may run out, so after the warm-up, query strata in an order that soon covers the range.
    answer([runs[0][:_FIRST]] if runs else [])
    began = time.monotonic()
    pieces = answer(_far_to_near([runs[0][_FIRST:], *runs[1:]] if runs else []))
    left = work.nodes - kept.done
    if not left or not pieces:
        return None
    timed = pieces
    if time.monotonic() - began < _SECONDS and left > _FEW_LEFT * _LONG[0] * _LONG[1]:
        timed = answer(_far_to_near(strata(kept.missing, *_LONG)))
        left = work.nodes - kept.done
    asked = sum(piece.size for piece in pieces)
    relating = left * sum(piece.seconds for piece in timed) / work.threads
    relating /= sum(piece.size for piece in timed)
    rows, row_seconds, size, row_bytes = _written(work, output, pieces, kept.folder)
    hits = int(kept.rows().counts.sum()) + round(rows / asked * left)
    written = size + row_bytes * max(0, hits - rows)
    found = plan_of(work, output, hits, relating + row_seconds * hits, written)
    return replace(found, sampled=asked)


def _far_to_near(runs: list[range]) -> list[range]:
    turns = sorted(range(len(runs)), key=lambda i: f"{i:08b}"[::-1])
    return [runs[i] for i in turns if len(runs[i])]


def plan_of(work: Work, output: Output, hits: int, seconds: float, size: float) -> BatchPlan:
    """Return the plan, including memory and disk."""
    scratch = work.threads * NODE_SCRATCH * len(work.index.nodes)
    chunk = _ROW * min(hits, work.chunk * work.question.k)
    means = work.index.means
    need = _PLACES * work.nodes + max(scratch, output.memory + chunk)
    if need > means.memory:
        raise ResourceError(
            f"relating {work.nodes:,} nodes needs {format_least(need)} of memory; "
            f"{short_of(means.memory)}, use fewer threads with --threads (threads=...), or write "
            ".jsonl"
        )
    # Mapped files are evicted under memory pressure.
    mapped = work.index.stored.store.nbytes + 4 * (work.words * hits + work.nodes)
    memory = replace(means, memory=need + min(mapped, means.memory - need)).total
    return BatchPlan(
        work.nodes,
        hits,
        seconds,
        work.threads,
        memory,
        work.index.stored.store.nbytes,
        round(size),
        4 * (work.words * hits + work.nodes) + round((1 + output.twice) * size),
        work.nodes,
    )


def _written(
    work: Work, output: Output, pieces: list[Piece], folder: Path
) -> tuple[int, float, int, float]:
    """Return the rows of a trial output, seconds per further row, bytes, and bytes per further
    row.
    """
    rows = rows_of(pieces, work.nodes, work.words)
    asked = np.sort(np.concatenate([np.arange(p.begin, p.begin + p.size) for p in pieces]))
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        some = [work.pages(rows, part) for part in (asked[:0], asked[::2], asked)]

        def trial(pages: OutputPages) -> tuple[int, float]:
            began = time.perf_counter()
            return output.trial([pages], Path(scratch)), time.perf_counter() - began

        (_, base), (half, _), (size, seconds) = map(trial, some)
    few, count = (pages.related.size for pages in some[1:])
    each = max(0.0, seconds - base) / max(1, count)
    return count, each, size, max(0, size - half) / max(1, count - few)
