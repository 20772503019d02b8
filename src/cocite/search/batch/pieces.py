"""Pieces of a batch: the hits of a run of nodes each, in any order, kept in a journal.

    begin      which run: the place of its first node in the order of work, uint32
    size       how many nodes, uint32
    counts     how many hits each has, uint32[size]
    rows       all of them, node after node (``search/batch/output.py``)

A run may end anywhere, so that a worker that has been at it for long hands over what it has. What
is to be done is what no piece covers. The rows of a node are found by its place, whatever piece it
came in: pieces never change a byte of an output.

Cost: opening reads the journal once; 12 bytes a node asked while rows are read.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cocite.cluster import in_order
from cocite.search.batch.output import packed, rows_of
from cocite.search.batch.question import BatchHits
from cocite.storage import Journal

_SECONDS = 3.0
"""How long a worker is at a piece, but for its last slice: what is lost at most by a kill is this
and what waits for its turn, as long again.
"""
_SLICE_SECONDS = 0.25
"""How long a slice takes, about, whose nodes are answered together."""
_LEAST, _MOST = 8, 8192
_SHARES = 2
Ids = NDArray[np.uint32]


class Piece(NamedTuple):
    """The hits of ``size`` nodes from the place ``begin`` on; ``slices`` are how many nodes were
    answered in which time, in seconds by the clock, one after another.
    """

    begin: int
    size: int
    content: bytes
    slices: list[tuple[int, float]]


class PieceRows(NamedTuple):
    """Rows by the places of nodes: those of the i-th begin at the word ``begins[i]``, each of so
    many words, ``width``.
    """

    words: Ids
    begins: NDArray[np.uint64]
    counts: Ids
    width: int

    def of(self, places: Ids | slice) -> tuple[Ids, Ids]:
        """How many rows some nodes have, and the rows, uint32[rows, width]."""
        counts = self.counts[places]
        return counts, rows_of(self.words, self.begins[places], counts, self.width)


class PieceRecord:
    """``with Kept(path, nodes, width) as kept: kept.add(piece)``: the pieces in a journal, whose
    rows have ``width`` words.
    """

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._journal.__exit__(kind, error, trace)

    @property
    def folder(self) -> Path:
        """The directory that it is in."""
        return self._journal.path.parent

    def add(self, piece: Piece) -> None:
        """Keep one more; raises :class:`~cocite.errors.ResourceError` if the disk is full."""
        self._journal.append(piece.content)
        self._runs.append((piece.begin, piece.size))

    @property
    def done(self) -> int:
        """Of how many nodes the hits are kept."""
        return sum(size for _, size in self._runs)

    @property
    def missing(self) -> list[range]:
        """The runs of places that no piece covers, ascending."""
        found, at = [], 0
        for begin, size in sorted(self._runs):
            if begin > at:
                found.append(range(at, begin))
            at = begin + size
        return [*found, range(at, self._nodes)] if at < self._nodes else found

    def rows(self, order: Ids) -> PieceRows:
        """All rows, by the numbers of nodes; the i-th place is that of the node ``order[i]``."""
        there = sum(self._journal.sizes)
        words = np.memmap(self._journal.path, np.uint32, "r") if there else np.empty(0, np.uint32)
        starts = [begin // 4 for begin in self._journal.begins]
        return rows_in(words, list(zip(starts, self._runs, strict=True)), order, self._width)


def rows_in(
    words: Ids, pieces: Iterable[tuple[int, tuple[int, int]]], order: Ids, width: int
) -> PieceRows:
    """The rows of pieces, each given by its first word, its first place and its size."""
    begins, counts = np.zeros(order.size, np.uint64), np.zeros(order.size, np.uint32)
    for start, (begin, size) in pieces:
        who = order[begin : begin + size]
        first = start + 2
        found = words[first : first + size]
        counts[who] = found
        ends = np.cumsum(found, dtype=np.uint64) * np.uint64(width)
        begins[who] = ends - found * np.uint64(width) + np.uint64(first + size)
    return PieceRows(words, begins, counts, width)


def piece_of(
    run: range,
    answer: Callable[[range], BatchHits],
    most: int,
    stopped: Event,
) -> Piece:
    """The hits of the first nodes of a run: all, or as many as are answered in some seconds.

    ``answer`` is asked for ``most`` nodes at once at most: for one first, then for twice as many
    each time while that is soon done.
    """
    began = at = time.monotonic()
    size, step = 0, 1
    counts, rows, slices = [], [], []
    while size < len(run) and (size == 0 or at - began < _SECONDS):
        if stopped.is_set():
            raise KeyboardInterrupt
        part = run[size : size + step]
        found = answer(part)
        before, at = at, time.monotonic()
        counts.append(found.counts.tobytes())
        rows.append(packed(found.ids, found.numbers))
        slices.append((len(part), at - before))
        size += len(part)
        if at - before < _SLICE_SECONDS / 2:
            step = min(2 * step, most)
    head = np.array([run.start, size], np.uint32).tobytes()
    return Piece(run.start, size, head + b"".join(counts) + b"".join(rows), slices)


def answered(
    todo: Iterable[range], work: Callable[[range], Piece], threads: int
) -> Generator[Piece]:
    """The pieces of all runs, worked on by so many threads.

    Runs are cut so that the last ones are short; what a worker leaves of one comes next.
    """
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
