"""What a batch will take, told from its first answers: time, memory, rows, bytes, disk.

The first nodes that are answered are a sample, *strata*: runs at equal distances in the order of
work. Their hits are kept like all others, so that nothing is asked twice. It ends after some two
seconds. One more run goes before, which is not counted: it loads kernels and pages.

    seconds = ((nodes - strata) * b + (nodes / slice) * a) / threads + rows * w

a is what the first node of a slice takes, b each of the others by the clock, where nodes are
answered together (``kernels/trees_batch.py`` begins anew in each slice); else they are the same.
w is what writing the rows of the sample took a row, beside what writing none took. Bytes go on as
from half of the sample to all of it: a table that has each name once grows more slowly than its
rows.

Where few nodes take most of the time, as with hubs, a sample may have none of them, or too many.
Source: Cochran, *Sampling Techniques*, 8 (systematic sampling).

The nodes that are asked for, in the order of work, and how their hits become pages.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.errors import Damaged, UsageError
from cocite.graph.names import text_of
from cocite.index.layouts.contract import is_shard
from cocite.index.layouts.part import DamagedShard
from cocite.options.query import QueryOptions
from cocite.resources import checked_threads, own_memory
from cocite.results import Document
from cocite.search.batch.output import Output, OutputPages
from cocite.search.batch.pieces import (
    Ids,
    Piece,
    PieceRecord,
    PieceRows,
    answered,
    piece_of,
    rows_in,
)
from cocite.search.batch.question import BatchHits, Question
from cocite.search.searcher import Searcher, Searching
from cocite.storage import Access

_SLICE_ROWS, _MOST_TOGETHER, _OUT_ROWS = 1 << 15, 1024, 1 << 17
_MANY = 0.001
"""The share of the nodes from which on a batch reads most pages of an index."""

Progress = Callable[[str, int, int], None]


class Work:
    """Nodes to ask for, in the order of work, and how they become pages.

    ``nodes`` are names, by default all, or those of a ``side`` of a bipartite graph, by default the
    right one; each is asked for once. ``ids`` is whether pages have the
    numbers of nodes instead of names; ``options`` are those of :class:`Question`. Of many nodes the
    index is compared with its checksums first, as nearly all of it will be read.
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
        **options: Any,
    ) -> None:
        self.asked = _chosen(index.now, nodes, side)
        self._many = self.asked.size >= _MANY * len(index.now.nodes)
        if self._many:
            _compare(index.now)
        intervals = options.pop("intervals", None)
        self.question = Question(index, k, QueryOptions.of(None, options), intervals)
        self.question.check_sites(self.asked)
        self.threads = index.now.means.threads if threads is None else checked_threads(threads)
        self._ids, self._stopped = ids, Event()

    @property
    def index(self) -> Searcher:
        """What is asked."""
        return self.question.index

    @property
    def nodes(self) -> int:
        """How many nodes are asked for."""
        return self.asked.size

    def order(self, some: slice = slice(None)) -> Ids:
        """Which of the nodes, or of ``some`` of them, comes when: neighbors in a tree one after
        another.
        """
        reader, nodes = self.question.together, np.arange(self.nodes, dtype=np.uint32)[some]
        if reader is None:
            return nodes
        return nodes[np.argsort(reader.places()[self.asked[nodes]], kind="stable")]

    def pieces(self, order: Ids, todo: Iterable[range]) -> Generator[Piece]:
        """The hits of some runs of places, from all threads."""
        most = 1
        if self.question.together is not None:
            most = max(1, min(_MOST_TOGETHER, _SLICE_ROWS // self.question.k))

        def answer(run: range) -> BatchHits:
            return self.question.answer(self.asked[order[run.start : run.stop]])

        def work(run: range) -> Piece:
            return piece_of(run, answer, most, self._stopped)

        with closing(answered(todo, work, self.threads)) as found:
            try:
                yield from found
            finally:
                self._stopped.set()
                found.close()
                self._stopped.clear()

    def advise(self) -> None:
        """Say how the index is read: of many nodes nearly every page will be, so what stands around
        it is welcome; but where the memory given does not hold them all, it would drive out others.
        """
        store = self.index.stored.store
        fits = store.nbytes <= self.index.means.memory
        store.advise(Access.AROUND if self._many and fits else Access.SCATTERED)

    def pages(self, rows: PieceRows, places: slice, first: int = 0) -> OutputPages:
        """The pages of some nodes, by their numbers among those asked for, of which ``rows`` has
        those from ``first`` on.
        """
        counts, found = rows.of(slice(places.start - first, places.stop - first))
        return self._pages(self.asked[places], counts, found)

    @property
    def none(self) -> OutputPages:
        """No pages, with the types of those that there will be."""
        nobody = np.empty(0, np.uint32)
        return self._pages(nobody, nobody, np.empty((0, self.question.words), np.uint32))

    def pages_of(self, rows: PieceRows, numbers: Ids) -> OutputPages:
        """The same of nodes that are not next to each other."""
        counts, found = rows.of(numbers)
        return self._pages(self.asked[numbers], counts, found)

    def _pages(self, nodes: Ids, counts: Ids, found: Ids) -> OutputPages:
        numbers = np.ascontiguousarray(found[:, 1:]).view(np.float64)
        columns = [np.ascontiguousarray(column) for column in numbers.T]
        related = found[:, 0]
        named = self._named(nodes), counts, self._named(related)
        titles = self._titled(nodes), self._titled(related)
        (scores, errors), ends = columns[:2], columns[2:]
        return OutputPages(*named, scores, errors, nodes, related, *titles, *ends)

    def _titled(self, ids: Ids) -> NDArray[Any] | None:
        """Titles, None for none; None if the graph has none at all."""
        if self.index.stored.titles is None:
            return None
        different, where = np.unique(ids, return_inverse=True)
        found = [title or None for title in self.index.stored.titles.of(different)]
        return np.array([*found, None], object)[:-1][where]

    @property
    def chunk(self) -> int:
        """How many nodes' pages are written at once."""
        return max(1, _OUT_ROWS // self.question.k)

    def _named(self, ids: Ids) -> Any:
        """Names, or the numbers themselves; each name is looked up once."""
        if self._ids:
            return ids.astype(np.int64)
        different, where = np.unique(ids, return_inverse=True)
        return np.array(self.index.nodes.stored.names(different), object)[where]


def _compare(index: Searcher) -> None:
    """Leave out the shards that are damaged, by their checksums; raises :class:`Damaged` for any
    other file.
    """
    store = index.stored.store
    for name in store.manifest.files:
        try:
            store.require(name)
        except Damaged as fault:
            if not is_shard(name):
                raise
            index.leave_out(DamagedShard(str(fault), name))


def _chosen(index: Searcher, nodes: Iterable[object] | None, side: str | None) -> Ids:
    names, sides = index.nodes, index.nodes.sides
    if side is not None and sides is None:
        raise UsageError(f"{index.stored.store.path} is not bipartite: leave side out")
    if nodes is None:
        return np.array(sides.named(side) if sides else range(len(names)), np.uint32)
    if isinstance(nodes, str):
        raise UsageError("nodes is one text; give a list of names")
    named = list(nodes)
    if sides is not None and side is not None:
        named = [sides.name(side, text_of(name)) for name in named]
    found = names.ids(named)
    if sides is not None and found.size:
        sides.check_alike(found.tolist(), named)
    _, first = np.unique(found, return_index=True)
    return found[np.sort(first)]


# -- told --------------------------------------------------------------------------------


_SECONDS = 2.0
_TOGETHER, _SINGLE = (24, 48), (160, 2)
"""How many strata, and of how many nodes, where nodes are answered together, or one by one."""
_SLICE = 512
_LEAST_SLICE = 8
_SCRATCH, _PLACES, _ROW = 44, 24, 160
"""Bytes a node and thread while relating; a node asked; a row that is being written."""


@dataclass(frozen=True)
class BatchPlan(Document):
    """What a batch of so many ``nodes`` will take, all of it.

    ``hits`` in all; ``seconds`` by the clock from now on, on ``threads``; ``memory`` in bytes,
    Python included, beside the pages of the ``index`` (bytes), which the system may keep in memory;
    the ``bytes`` of the output, and of the ``disk`` that is taken meanwhile. ``sampled`` is of how
    many nodes the answers tell it.
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
    """``count`` runs of ``size`` places at equal distances, of those that are ``missing``."""
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


def tell(
    work: Work, output: Output, kept: PieceRecord, order: Ids, progress: Progress
) -> BatchPlan | None:
    """Answer a sample of what is not ``kept``, and keep it; None if nothing is left to tell of."""
    together = work.question.together is not None
    count, size = _TOGETHER if together else _SINGLE
    runs = strata(kept.missing, count, size)

    def answer(runs: list[range]) -> list[Piece]:
        """As many as there is time for."""
        found, began = [], time.monotonic()
        with closing(work.pieces(order, runs)) as pieces:
            for piece in pieces:
                kept.add(piece)
                found.append(piece)
                progress("relating", kept.done, work.nodes)
                if time.monotonic() - began > _SECONDS:
                    break
        return found

    # A piece that is not counted; then the strata from far to near, as time may run out.
    warm = [runs[0][:_LEAST_SLICE]] if runs else []
    rest = [runs[0][_LEAST_SLICE:], *runs[1:]] if runs else []
    answer(warm)
    turns = sorted(range(len(rest)), key=lambda i: f"{i:08b}"[::-1])
    pieces = answer([rest[i] for i in turns if len(rest[i])])
    left = work.nodes - kept.done
    if not left or not pieces:
        return None
    relating = _relating(pieces, left, together) / work.threads
    sample = _written(work, output, order, pieces, kept.folder)
    hits = int(kept.rows(order).counts.sum()) + round(sample.hits * left)
    written = sample.bytes + sample.bytes_a_row * max(0, hits - sample.rows)
    told = plan_of(work, output, hits, relating + sample.seconds_a_row * hits, written)
    return replace(told, sampled=sum(piece.size for piece in pieces))


def plan_of(work: Work, output: Output, hits: int, seconds: float, size: float) -> BatchPlan:
    """What a batch takes beside: memory and disk."""
    scratch = work.threads * _SCRATCH * len(work.index.nodes)
    chunk = _ROW * min(hits, work.chunk * work.question.k)
    memory = own_memory() + _PLACES * work.nodes + max(scratch, output.memory + chunk)
    return BatchPlan(
        work.nodes,
        hits,
        seconds,
        work.threads,
        memory,
        work.index.stored.store.nbytes,
        round(size),
        4 * (work.question.words * hits + work.nodes) + round((1 + output.twice) * size),
        work.nodes,
    )


def _relating(pieces: list[Piece], left: int, together: bool) -> float:
    """Seconds of one thread for the nodes that are left."""
    if not together:
        return left * _mean([seconds / nodes for p in pieces for nodes, seconds in p.slices])
    first = [piece.slices[0][1] for piece in pieces]
    more = [
        (nodes - 1, max(0.0, seconds - piece.slices[0][1]))
        for piece in pieces
        for nodes, seconds in piece.slices
        if nodes >= _LEAST_SLICE
    ]
    anew = _mean(first)
    if not more:
        return left * anew
    each = sum(seconds for _, seconds in more) / sum(nodes for nodes, _ in more)
    return left * (each + anew / _SLICE)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


class _Sample(NamedTuple):
    """Of what was written: hits a node, rows, seconds a row, bytes, and bytes a row more."""

    hits: float
    rows: int
    seconds_a_row: float
    bytes: int
    bytes_a_row: float


def _written(work: Work, output: Output, order: Ids, pieces: list[Piece], folder: Path) -> _Sample:
    """What became of the hits of some pieces."""
    words = np.frombuffer(b"".join(piece.content for piece in pieces), np.uint32)
    starts = np.cumsum([0] + [len(piece.content) // 4 for piece in pieces]).tolist()
    runs = [(start, piece[:2]) for start, piece in zip(starts, pieces, strict=False)]
    rows = rows_in(words, runs, order, work.question.words)
    asked = np.sort(np.concatenate([order[p.begin : p.begin + p.size] for p in pieces]))
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        some = [work.pages_of(rows, part) for part in (asked[:0], asked[::2], asked)]
        (_, base), (half, _), (size, seconds) = (
            output.trial([pages], Path(scratch)) for pages in some
        )
    few, count = (pages.related.size for pages in some[1:])
    return _Sample(
        count / asked.size,
        count,
        max(0.0, seconds - base) / max(1, count),
        size,
        max(0, size - half) / max(1, count - few),
    )
