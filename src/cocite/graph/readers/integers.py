"""Texts of integers: their links as arrays, read by a kernel, where nothing is to be cleaned.

A text is *plain* if each of its rows is a link of two integers below 2**32, as ``str`` prints them,
beside blank lines and comments; columns that are not taken may hold anything. Delimiter, header and
columns are decided as for any other text (``text.py``). What is not plain, or not certain to be
read alike, is left to the reader of all texts, which begins anew: it alone says what is wrong with
a row, and names that are no integers are its.

A text is cut into pieces of whole lines that threads read side by side; links come in the order of
the text, whatever the number of threads.

Cost: one to two nanoseconds a byte (``kernels/integers.py``); 8 bytes of memory a link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.errors import CociteError
from cocite.graph.readers.clean import Unpacked
from cocite.graph.readers.options import Progress, ReadOptions
from cocite.graph.readers.reader import Found
from cocite.graph.readers.sources import LOOK, Source, unpack_errors
from cocite.graph.readers.text import Cleaner
from cocite.graph.readers.together import Together
from cocite.runner.threads import in_order

__all__ = ["BUFFER", "Pairs", "read_integers"]

_PIECE, _MAX_LINE = 1 << 21, 1 << 21
BUFFER = 10 * _PIECE
"""Bytes that a thread takes: pieces on their way, and what is read of one."""

_Ids = NDArray[np.uint32]
Fits = Callable[[int, int], bool]
"""Whether so many links, with ids below a bound, can be taken."""


class Pairs(NamedTuple):
    """Links as they were read: sources and targets (uint32) in pieces, the number of links, the
    bound of their ids, and what was found in each text.
    """

    pieces: list[tuple[_Ids, _Ids]]
    rows: int
    bound: int
    found: list[Found]


class _NotPlain(Exception):
    """A text that is for the reader of all texts."""


def read_integers(
    sources: Sequence[Source], options: ReadOptions, threads: int, fits: Fits, progress: Progress
) -> Pairs | None:
    """The links of plain texts, read by so many threads; None if one is not plain, or they do not
    fit, or something is wrong, which the reader of all texts tells.
    """
    workers = [_Worker() for _ in range(threads)]
    told = Together(progress, sources)
    pieces: list[tuple[_Ids, _Ids]] = []
    found: list[Found] = []
    rows, bound = 0, 0
    try:
        whole = 0 if any(source.packed for source in sources) else _size(sources)
        for source in sources:
            text = _Text(source, options)
            with told.of(source) as shown:
                for read in text.read(workers, shown):
                    pieces.append((read.sources, read.targets))
                    rows, bound = rows + read.sources.size, max(bound, read.largest + 1)
                    if not fits(max(rows, rows * whole // text.size), bound):
                        return None
                    whole = 0  # what the first piece tells of the rest is enough
            found.append(text.found)
    except (_NotPlain, CociteError):
        return None
    except unpack_errors():
        return None
    return Pairs(pieces, rows, bound, found)


def _size(sources: Sequence[Source]) -> int:
    return sum(source.nbytes for source in sources)


class _Read(NamedTuple):
    """What a piece holds, and rows that are still to skip."""

    sources: _Ids
    targets: _Ids
    skip: int
    blank: int
    comments: int
    largest: int


class _Worker:
    """Reads pieces, one at a time, into arrays of its own."""

    def __init__(self) -> None:
        from cocite.kernels import integers

        self._k = integers
        self._room = np.empty((2, _PIECE // 4 + 1), np.uint32)

    def __call__(self, rules: NDArray[np.int64], skip: int, piece: bytes) -> _Read:
        k = self._k
        if piece and not piece.endswith(b"\n"):
            piece += b"\n"
        if self._room.shape[1] < len(piece) // 4 + 1:
            self._room = np.empty((2, len(piece) // 4 + 1), np.uint32)
        told = np.zeros(k.TOLD, np.int64)
        told[k.SKIP] = skip
        sources, targets = self._room
        rows = k.read_pairs(np.frombuffer(piece, np.uint8), rules, sources, targets, told)
        if rows < 0:
            raise _NotPlain
        counts = (int(told[at]) for at in (k.SKIP, k.BLANK, k.COMMENTS, k.LARGEST))
        return _Read(sources[:rows].copy(), targets[:rows].copy(), *counts)


class _Text:
    """One text; ``found`` is what is found, and ``size`` how many bytes were read of it."""

    def __init__(self, source: Source, options: ReadOptions) -> None:
        self._source = source
        self._cleaner = Cleaner(source, 2, options)
        self.found = self._cleaner.found
        self.size = 0

    def read(self, workers: Sequence[_Worker], progress: Progress) -> Iterator[_Read]:
        """Its links, piece by piece; raises :class:`_NotPlain`."""
        stream, raw = self._source.open()
        try:
            for read in self._read(Unpacked(stream, raw), workers, progress):
                found = self.found
                found.rows += read.sources.size
                found.blank_lines += read.blank
                found.comments += read.comments
                yield read
        finally:
            stream.close()
            raw.close()

    def _read(
        self, stream: Unpacked, workers: Sequence[_Worker], progress: Progress
    ) -> Iterator[_Read]:
        head = stream.read(_PIECE)
        while len(head) <= LOOK and (more := stream.read(_PIECE)):
            head += more
        head = head.removeprefix(b"\xef\xbb\xbf")
        rules, skip = self._decided(head)
        pieces = self._pieces(head, stream, progress)
        for piece in pieces:  # titles are above all rows, if there are any
            read = workers[0](rules, skip, piece)
            yield read
            skip = read.skip
            if not skip:
                break
        yield from in_order([partial(worker, rules, 0) for worker in workers], pieces)

    def _decided(self, head: bytes) -> tuple[NDArray[np.int64], int]:
        """How the text is read, and how many rows are skipped."""
        cleaner, found = self._cleaner, self.found
        cleaner.decide(head)
        rules = cleaner.rules()
        # Titles may turn out to be nodes, and a comment may begin as a number does.
        titles = found.first if found.header else ()
        if cleaner.options.comment.isdigit() or any(title.isdigit() for title in titles):
            raise _NotPlain
        row = next(iter(cleaner.sampled[found.header :]), [])
        if not all(row[at].strip().isdigit() for at in found.taken if at < len(row)):
            raise _NotPlain  # of names that are no integers no kernel needs to be loaded
        return rules, cleaner.to_skip

    def _pieces(self, head: bytes, stream: Unpacked, progress: Progress) -> Iterator[bytes]:
        """Pieces of whole lines, told as they are handed out."""
        rest, data = b"", head
        while True:
            # A CR at the very end may be half of a CRLF.
            ends = data.rfind(b"\n"), data.rfind(b"\r", 0, max(len(data) - 1, 0))
            cut = max(ends) + 1
            if cut or not data:
                self.size = max(stream.tell(), 1)
                yield b"".join((rest, memoryview(data)[:cut]))
                rest = data[cut:]
            else:
                rest += data
            if len(rest) > _MAX_LINE:
                raise _NotPlain
            progress("reading " + self._source.short, stream.tell(), self._source.nbytes)
            if not data:
                return
            data = stream.read(_PIECE)
