"""The fast path of ingest: texts of integers to the files of a stored graph, in memory.

    read -> deal out by source -> turn round -> drop duplicates -> write

A text is *plain* if each of its rows is a link of two integers below 2**32, as ``str`` prints them,
beside blank lines and comments. What this path cannot take is left to the tables
(``io/tables.py``), with nothing written: other formats and names, weights, links that do not fit
the memory given, ids far beyond the number of links, and rows in which something is wrong, which
the reader of all texts then tells. What comes of both is the same to the byte.

An id is its own number until the end, so that rows exist for numbers that no node is called, too;
then the nodes are numbered, which keeps every order. Threads read pieces of whole lines side by
side; links come in the order of the text.

Cost: one to two nanoseconds a byte (``kernels/integers.py``), O(links + the largest id); memory of
12 bytes a link and 36 for each number up to the largest id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.cluster.threads import Team, in_order
from cocite.errors import CociteError
from cocite.graph.blocks import DEGREES, OFFSETS, SOURCES, Links, cut_blocks
from cocite.graph.name_files import VALUES
from cocite.io.readers import Found, ReadOptions, Source, reader_of
from cocite.io.readers.contract import Progress, Together
from cocite.io.readers.sources import LOOK
from cocite.io.readers.text import READER, Cleaner, Unpacked
from cocite.io.storing import graph_facts
from cocite.resources import OWN_MEMORY, Resources
from cocite.storage import ArrayWriter, Entry

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
            text = _IntegerText(source, options)
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


class _IntegerText:
    """One text; ``found`` is what is found, and ``size`` how many bytes were read of it."""

    def __init__(self, source: Source, options: ReadOptions) -> None:
        self._source = source
        self._cleaner = Cleaner(source, 2, options)
        self.found = self._cleaner.found
        self.size = 0

    def read(self, workers: Sequence[_Worker], progress: Progress) -> Iterator[_Read]:
        """Its links, piece by piece; raises :class:`_NotPlain`."""
        with self._source.reading() as (stream, raw):
            for read in self._read(Unpacked(stream, raw), workers, progress):
                found = self.found
                found.rows += read.sources.size
                found.blank_lines += read.blank
                found.comments += read.comments
                yield read

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


# -- straight ----------------------------------------------------------------------------


_AT_ONCE, _SLICE, _ROWS = 1 << 21, 8 << 20, 1 << 20
"""Links that are dealt out at a time, bytes of rows that are turned, and entries that are written:
between two of them an interruption is heeded."""
_ALONE = 1 << 22
"""Links that one thread sorts as fast as several: each of them goes through all links."""
_MOST_LINKS = 1 << 32
_SPARSE = 16
"""How much larger than the number of links the ids may be, beside a million."""
_NO_WEIGHTS = np.empty(0, np.float32)

_Pieces = list[tuple[NDArray[np.uint32], NDArray[np.uint32]]]


class FastPath(NamedTuple):
    """The facts that come of links, their files, and what was found in each text."""

    facts: dict[str, Any]
    files: dict[str, Entry]
    found: list[Found]


def store_integers(
    directory: Path,
    sources: Sequence[Source],
    options: ReadOptions,
    resources: Resources,
    progress: Progress,
) -> FastPath | None:
    """Write the links of ``sources`` into ``directory``; None, with nothing written, where they are
    for the tables.
    """
    if not _may(sources, options):
        return None
    room = resources.memory - OWN_MEMORY - resources.threads * BUFFER
    each = 1 + options.undirected

    def fits(rows: int, bound: int) -> bool:
        links = each * rows
        need = max(8 * rows + 4 * links, 8 * links) + 36 * bound
        return need <= room and links < _MOST_LINKS

    pairs = read_integers(sources, options, resources.threads, fits, progress)
    if pairs is None or not pairs.rows or pairs.bound > _SPARSE * pairs.rows + (1 << 20):
        return None
    progress("numbering the names", 0, 0)
    with Team(resources.threads if each * pairs.rows > _ALONE else 1) as team:
        graph = _Sorter(pairs, options, team).run(progress)
    facts, files = graph.write(directory, options, each * pairs.rows, progress)
    return FastPath(facts, files, pairs.found)


def _may(sources: Sequence[Source], options: ReadOptions) -> bool:
    """Whether the inputs are texts, and nothing is asked for that the tables alone do."""
    if options.weight or options.normalize_urls or options.count_duplicates or options.sides:
        return False
    if any(source.is_pipe for source in sources):
        return False
    return all(reader_of(source, options, 2) is READER for source in sources)


class _Sorter:
    """From links as they were read to rows by target. Memory goes as soon as it can."""

    def __init__(self, pairs: Pairs, options: ReadOptions, team: Team) -> None:
        self._pieces, self._bound = pairs.pieces, pairs.bound
        self._links = (1 + options.undirected) * pairs.rows
        self._options, self._team = options, team

    def run(self, progress: Progress) -> _IntegerRows:
        """The distinct links of each id."""
        outs, ins = self._counted()
        named = (outs | ins) != 0
        progress("sorting the links", 0, 0)
        by_source = self._dealt(outs)
        del outs
        by_target = self._turned(by_source, ins)
        del by_source, ins
        return self._distinct(by_target, named)

    def _counted(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """How many links each id has, as a source and as a target."""
        from cocite.kernels.links import add_counts

        counts = [np.zeros(self._bound, np.uint32) for _ in range(2)]

        def work(some: _Pieces, low: int, high: int) -> None:
            for side in range(low, high):
                for piece in some:
                    add_counts(piece[side], counts[side])

        for some in _groups(self._pieces):
            self._team.split(partial(work, some), 2, aligned=1)
        if self._options.undirected:
            counts[0] += counts[1]
            return counts[0], counts[0]
        return counts[0], counts[1]

    def _dealt(self, counts: NDArray[np.uint32]) -> Links:
        """Rows by source, in no order."""
        from cocite.kernels.integers import deal

        offsets = _offsets(counts)
        cursors, out = offsets[:-1].copy(), np.empty(self._links, np.uint32)

        def work(some: _Pieces, low: int, high: int) -> None:
            rows = np.uint64(low), cursors[low:high], out
            for sources, targets in some:
                deal(sources, targets, *rows)
                if self._options.undirected:
                    deal(targets, sources, *rows)

        for some in _groups(self._pieces):
            self._team.split(partial(work, some), self._bound, offsets)
        self._pieces.clear()
        return Links(offsets, out)

    def _turned(self, links: Links, counts: NDArray[np.uint32]) -> Links:
        """Rows by target, sources ascending, as those of ``links`` are gone through in order."""
        from cocite.kernels.links import turn

        offsets = _offsets(counts)
        cursors, out = offsets[:-1].copy(), np.empty(self._links, np.uint32)

        def work(first: int, last: int, low: int, high: int) -> None:
            rows = np.uint64(low), cursors[low:high], out
            begins = links.offsets[first : last + 1]
            turn(begins, links.neighbors, _NO_WEIGHTS, np.uint64(first), *rows, _NO_WEIGHTS)

        for first, last in pairwise((0, *cut_blocks(links, _SLICE), self._bound)):
            self._team.split(partial(work, first, last), self._bound, offsets)
        return Links(offsets, out)

    def _distinct(self, links: Links, named: NDArray[np.bool_]) -> _IntegerRows:
        """The same without duplicates, and without self-loops unless they are kept."""
        from cocite.kernels.integers import distinct

        ends = np.empty(self._bound, np.uint64)
        keep = self._options.keep_self_loops

        def work(low: int, high: int) -> tuple[int, int, int]:
            mine, first = links.offsets[low : high + 1], np.uint64(low)
            loops = int(distinct(mine, links.neighbors, first, keep, ends[low:high]))
            return low, high, loops

        parts, edges, loops = [], 0, 0
        for low, high, dropped in self._team.split(work, self._bound, links.offsets):
            begin, end = int(links.offsets[low]), int(ends[high - 1])
            parts.append(links.neighbors[begin:end])
            ends[low:high] -= np.uint64(begin - edges)
            edges, loops = edges + end - begin, loops + dropped
        return _IntegerRows(parts, ends, named, loops)


class _IntegerRows(NamedTuple):
    """Rows by target: the neighbors in parts, one behind the other; where in them the row of each
    number ends; which numbers are nodes; and how many self-loops were dropped.
    """

    parts: list[NDArray[np.uint32]]
    ends: NDArray[np.uint64]
    named: NDArray[np.bool_]
    loops: int

    def write(
        self, directory: Path, options: ReadOptions, read: int, progress: Progress
    ) -> tuple[dict[str, Any], dict[str, Entry]]:
        """Write the files of the graph; ``read`` links were read. Returns the facts, too."""
        from cocite.kernels.links import add_counts

        values = None if self.named.all() else np.flatnonzero(self.named)
        nodes = self.named.size if values is None else values.size
        edges, written = int(self.ends[-1]), 0
        ids = None if values is None else np.cumsum(self.named, dtype=np.uint32) - np.uint32(1)
        degrees = np.zeros(self.named.size, np.uint32)
        progress("writing the links", 0, read)
        with ArrayWriter(directory / SOURCES, np.uint32) as sources:
            for piece in _cut(self.parts, _ROWS):
                add_counts(piece, degrees)
                sources.write(piece if ids is None else ids[piece])
                written += piece.size
                progress("writing the links", written, read)
        with ArrayWriter(directory / OFFSETS, np.uint64) as offsets:
            offsets.write(np.zeros(1, np.uint64))
            offsets.write(self.ends if values is None else self.ends[values])
        with ArrayWriter(directory / DEGREES, np.uint32) as out:
            out.write(degrees if values is None else degrees[values])
        progress("writing the links", read, read)
        progress("storing the names", 0, 0)
        files = {OFFSETS: offsets.finished, SOURCES: sources.finished, DEGREES: out.finished}
        if values is not None:
            with ArrayWriter(directory / VALUES, np.uint64) as names:
                names.write(values.astype(np.uint64))
            files[VALUES] = names.finished
        kind = "dense" if values is None else "integers"
        return graph_facts(
            nodes, edges, kind, options, read - edges - self.loops, self.loops
        ), files


def _cut(parts: Sequence[NDArray[Any]], size: int) -> Iterator[NDArray[Any]]:
    for part in parts:
        for low in range(0, part.size, size):
            yield part[low : low + size]


def _groups(pieces: _Pieces) -> Iterator[_Pieces]:
    """Pieces, some at a time."""
    some: _Pieces = []
    size = 0
    for piece in pieces:
        some.append(piece)
        size += piece[0].size
        if size >= _AT_ONCE:
            yield some
            some, size = [], 0
    if some:
        yield some


def _offsets(counts: NDArray[np.uint32]) -> NDArray[np.uint64]:
    offsets = np.zeros(counts.size + 1, np.uint64)
    np.cumsum(counts, out=offsets[1:])
    return offsets
