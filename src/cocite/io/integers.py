"""The fast path of ingest: texts of integers to the files of a stored graph, in memory.

    read -> deal out by source -> turn round -> drop duplicates -> write

A text is *plain* if each of its rows is a link of two integers below 2**32, as ``str`` prints them,
beside blank lines and comments. All else, and links that do not fit the memory given, is left to
the tables (``io/tables.py``), with nothing written. What comes of both is the same to the byte.

An id is its own number until the end, when the nodes are numbered, which keeps every order. Cost:
one to two nanoseconds a byte (``kernels/integers.py``), O(links + the largest id); memory of 12
bytes a link and 36 for each number up to the largest id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.cluster.threads import Team, in_order
from cocite.errors import CociteError
from cocite.graph.blocks import DEGREES, OFFSETS, SOURCES, Links, cut_blocks
from cocite.graph.name_files import VALUES
from cocite.io.readers import Found, ReadOptions, Source, reader_of
from cocite.io.readers.contract import Progress, Together
from cocite.io.readers.sources import LOOK
from cocite.io.readers.text import READER, Cleaner
from cocite.io.storing import graph_facts
from cocite.resources import OWN_MEMORY, Resources
from cocite.storage import ArrayWriter, Entry

_PIECE, _MAX_LINE = 1 << 21, 1 << 21
BUFFER = 10 * _PIECE
"""Bytes that a thread takes: pieces on their way, and what is read of one."""
_AT_ONCE, _SLICE, _ROWS = 1 << 21, 8 << 20, 1 << 20
"""Links that are dealt out at a time, bytes of rows that are turned, and entries that are written:
between two of them an interruption is heeded."""
_ALONE = 1 << 22
"""Links that one thread sorts as fast as several: each of them goes through all links."""
_MOST_LINKS = 1 << 32
_SPARSE = 16
"""How much larger than the number of links the ids may be, beside a million."""
_NO_WEIGHTS = np.empty(0, np.float32)

_Ids = NDArray[np.uint32]
_Pieces = list[tuple[_Ids, _Ids]]
Fits = Callable[[int, int], bool]
"""Whether so many links, with ids below a bound, can be taken."""


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
    if options.weight or options.normalize_urls or options.count_duplicates or options.sides:
        return None
    if not all(not s.is_pipe and reader_of(s, options, 2) is READER for s in sources):
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
        rows = _Sorter(pairs, options, team).run(progress)
    facts, files = _write(rows, directory, options, each * pairs.rows, progress)
    return FastPath(facts, files, pairs.found)


# -- reading -----------------------------------------------------------------------------


class Pairs(NamedTuple):
    """Links as they were read: sources and targets (uint32) in pieces, the number of links, the
    bound of their ids, and what was found in each text.
    """

    pieces: _Pieces
    rows: int
    bound: int
    found: list[Found]


class _NotPlain(Exception):
    """A text that is for the reader of all texts."""


class _Read(NamedTuple):
    """What a piece holds, and rows that are still to skip."""

    sources: _Ids
    targets: _Ids
    skip: int
    blank: int
    comments: int
    largest: int


def read_integers(
    sources: Sequence[Source], options: ReadOptions, threads: int, fits: Fits, progress: Progress
) -> Pairs | None:
    """The links of plain texts, read by so many threads; None if one is not plain, or they do not
    fit, or something is wrong, which the reader of all texts tells.
    """
    workers = [_Worker() for _ in range(threads)]
    shown = Together(progress, sources)
    pieces: _Pieces = []
    found: list[Found] = []
    rows, bound = 0, 0
    try:
        packed = any(source.packed for source in sources)
        whole = 0 if packed else sum(source.nbytes for source in sources)
        for source in sources:
            cleaner = Cleaner(source, 2, options)
            text = cleaner.found
            with shown.of(source) as told, source.reading() as (stream, raw):
                for read in _read(cleaner, source, (stream, raw), workers, told):
                    text.rows += read.sources.size
                    text.blank_lines += read.blank
                    text.comments += read.comments
                    pieces.append((read.sources, read.targets))
                    rows, bound = rows + read.sources.size, max(bound, read.largest + 1)
                    if not fits(max(rows, rows * whole // max(raw.tell(), 1)), bound):
                        return None
                    whole = 0  # what the first piece tells of the rest is enough
            found.append(text)
    except (_NotPlain, CociteError):
        return None
    return Pairs(pieces, rows, bound, found)


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


def _read(
    cleaner: Cleaner,
    source: Source,
    opened: tuple[IO[bytes], BinaryIO],
    workers: Sequence[_Worker],
    progress: Progress,
) -> Iterator[_Read]:
    """The links of one text, piece by piece; raises :class:`_NotPlain`."""
    stream = opened[0]
    head = stream.read(_PIECE)
    while len(head) <= LOOK and (more := stream.read(_PIECE)):
        head += more
    head = head.removeprefix(b"\xef\xbb\xbf")
    cleaner.decide(head)
    found, rules, skip = cleaner.found, cleaner.rules(), cleaner.to_skip
    # Titles may turn out to be nodes, and a comment may begin as a number does.
    titles = found.first if found.header else ()
    if cleaner.options.comment.isdigit() or any(title.isdigit() for title in titles):
        raise _NotPlain
    row = next(iter(cleaner.sampled[found.header :]), [])
    if not all(row[at].strip().isdigit() for at in found.taken if at < len(row)):
        raise _NotPlain  # of names that are no integers no kernel needs to be loaded
    pieces = _pieces(head, source, opened, progress)
    for piece in pieces:  # titles are above all rows, if there are any
        read = workers[0](rules, skip, piece)
        yield read
        skip = read.skip
        if not skip:
            break
    yield from in_order([partial(worker, rules, 0) for worker in workers], pieces)


def _pieces(
    head: bytes, source: Source, opened: tuple[IO[bytes], BinaryIO], progress: Progress
) -> Iterator[bytes]:
    """Pieces of whole lines."""
    (stream, raw), rest, data = opened, b"", head
    while True:
        # A CR at the very end may be half of a CRLF.
        ends = data.rfind(b"\n"), data.rfind(b"\r", 0, max(len(data) - 1, 0))
        cut = max(ends) + 1
        if cut or not data:
            yield b"".join((rest, memoryview(data)[:cut]))
            rest = data[cut:]
        else:
            rest += data
        if len(rest) > _MAX_LINE:
            raise _NotPlain
        progress("reading " + source.short, raw.tell(), source.nbytes)
        if not data:
            return
        data = stream.read(_PIECE)


# -- sorting -----------------------------------------------------------------------------


class _IntegerRows(NamedTuple):
    """Rows by target: the neighbors in parts, one behind the other; where in them the row of each
    number ends; which numbers are nodes; and how many self-loops were dropped.
    """

    parts: list[_Ids]
    ends: NDArray[np.uint64]
    named: NDArray[np.bool_]
    loops: int


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

    def _counted(self) -> tuple[_Ids, _Ids]:
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


def _write(
    rows: _IntegerRows, directory: Path, options: ReadOptions, read: int, progress: Progress
) -> tuple[dict[str, Any], dict[str, Entry]]:
    """Write the files of the graph; ``read`` links were read. Returns the facts, too."""
    from cocite.kernels.links import add_counts

    named, ends = rows.named, rows.ends
    values = None if named.all() else np.flatnonzero(named)
    ids = None if values is None else np.cumsum(named, dtype=np.uint32) - np.uint32(1)
    degrees = np.zeros(named.size, np.uint32)
    written = 0
    progress("writing the links", 0, read)
    with ArrayWriter(directory / SOURCES, np.uint32) as sources:
        for piece in _cut(rows.parts):
            add_counts(piece, degrees)
            sources.write(piece if ids is None else ids[piece])
            written += piece.size
            progress("writing the links", written, read)
    with ArrayWriter(directory / OFFSETS, np.uint64) as offsets:
        offsets.write(np.zeros(1, np.uint64))
        offsets.write(ends if values is None else ends[values])
    with ArrayWriter(directory / DEGREES, np.uint32) as out:
        out.write(degrees if values is None else degrees[values])
    progress("writing the links", read, read)
    progress("storing the names", 0, 0)
    files = {OFFSETS: offsets.finished, SOURCES: sources.finished, DEGREES: out.finished}
    if values is not None:
        with ArrayWriter(directory / VALUES, np.uint64) as names:
            names.write(values.astype(np.uint64))
        files[VALUES] = names.finished
    kind, nodes = ("dense", named.size) if values is None else ("integers", values.size)
    duplicates = read - written - rows.loops
    return graph_facts(nodes, written, kind, options, duplicates, rows.loops), files


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


def _cut(parts: Sequence[_Ids]) -> Iterator[_Ids]:
    for part in parts:
        yield from (part[low : low + _ROWS] for low in range(0, part.size, _ROWS))
