"""Pieces of a batch: the hits of a run of nodes each, in any order, kept in a journal.

    begin      which run: the number of its first node among those asked for, uint32
    size       how many nodes, uint32
    counts     how many hits each has, uint32[size]
    rows       all of them, node after node: the id, then as float64 the score, its standard error,
               and with intervals low and high; 5 words of 32 bits, or 9

A run may end anywhere, so that a worker that has been at it for long hands over what it has. What
is to be done is what no piece covers: pieces never change a byte of an output.

Cost: opening reads the journal once; 12 bytes a node asked while rows are read.
"""

from __future__ import annotations

import time
from array import array
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cocite.cluster import in_order
from cocite.search.batch.question import BatchHits, Ids
from cocite.storage import Journal

_SECONDS = 3.0
"""Time that a worker spends on a piece, except its last node. A kill loses at most this much work
of each worker, and as much again that waits to be written.
"""
_LEAST, _MOST = 8, 8192
_SHARES = 2


class Piece(NamedTuple):
    """The hits of ``size`` nodes from number ``begin`` on, and the seconds to find them."""

    begin: int
    size: int
    content: bytes
    seconds: float


class PieceRows(NamedTuple):
    """Rows by node number: those of the i-th begin at word ``begins[i]``, ``width`` words each."""

    words: Ids
    begins: NDArray[np.uint64]
    counts: Ids
    width: int

    def of(self, places: Ids | slice) -> tuple[Ids, Ids]:
        """Return the number of rows of some nodes, and the rows, uint32[rows, width]."""
        counts = self.counts[places]
        first = np.repeat(self.begins[places].astype(np.int64), counts) + self.width * ranks(counts)
        return counts, self.words[first[:, None] + np.arange(self.width)]


def words_of(intervals: bool) -> int:
    """Return how many words a row takes."""
    return 9 if intervals else 5


def packed(ids: Ids, numbers: NDArray[np.float64]) -> bytes:
    """Return rows from uint32[h] and float64[h, 2 or 4]."""
    words = np.ascontiguousarray(numbers).view(np.uint32)
    return np.column_stack((ids, words.reshape(ids.size, 2 * numbers.shape[1]))).tobytes()


def ranks(counts: Ids) -> NDArray[np.int64]:
    """Return 0, 1, ... for the rows of each node."""
    ends = np.cumsum(counts, dtype=np.int64)
    found: NDArray[np.int64] = np.arange(ends[-1] if ends.size else 0)
    return found - np.repeat(ends - counts, counts)


class PieceRecord:
    """``with PieceRecord(path, nodes, width) as kept: kept.add(piece)``: a journal of pieces, with
    rows of ``width`` words.
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

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._journal.__exit__(kind, error, trace)

    @property
    def folder(self) -> Path:
        """Return its directory."""
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
        """Return the runs of nodes that no piece covers, ascending."""
        found, at = [], 0
        for begin, size in sorted(self._runs):
            if begin > at:
                found.append(range(at, begin))
            at = begin + size
        return [*found, range(at, self._nodes)] if at < self._nodes else found

    def rows(self) -> PieceRows:
        """Return all rows, by node number."""
        there = sum(self._journal.sizes)
        words = np.memmap(self._journal.path, np.uint32, "r") if there else np.empty(0, np.uint32)
        starts = [begin // 4 for begin in self._journal.begins]
        return rows_in(words, zip(starts, self._runs, strict=True), self._nodes, self._width)


def rows_in(
    words: Ids, pieces: Iterable[tuple[int, tuple[int, int]]], nodes: int, width: int
) -> PieceRows:
    """Return the rows of pieces, each given by its first word, its first node and its size."""
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
    """Return the hits of the first nodes of a run: all, or those found within the time limit."""
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
    """Yield the pieces of all runs, found by so many threads.

    Runs are cut so that the last ones are short; the unfinished rest of a run comes next.
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
