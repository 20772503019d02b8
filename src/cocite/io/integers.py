"""Fast path of ingest: store integer links from text as a graph, in memory.

    read -> sort by (destination, source) -> drop duplicates -> write

A text is *plain* if every row links two integers below 2**32, as ``str`` writes them. Blank
lines and comments are allowed. Other texts, and links that exceed the memory limit, go through
DuckDB (``io/tables.py``). Both paths write the same bytes.

A link is stored as the key destination * 2**32 + source. Nodes are renumbered last, in the order of
their integers. Reading takes 1 to 2 ns per byte (``kernels/integers.py``), sorting 25 ns per link.
Memory is 16 bytes per link (24 if undirected), and 9 per integer up to the largest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.cluster.threads import in_order
from cocite.errors import CociteError
from cocite.graph.name_files import VALUES
from cocite.io.readers import Found, ReadOptions, Source, reader_of
from cocite.io.readers.contract import Progress, each_with_progress
from cocite.io.readers.sources import LOOK
from cocite.io.readers.text import READER, Cleaner
from cocite.io.storing import counted, graph_facts, write_links
from cocite.resources import READERS_MEMORY, Resources
from cocite.storage import Entry, write_array

_PIECE, _MAX_LINE = 1 << 21, 1 << 21
BUFFER = 10 * _PIECE
"""Bytes per thread: queued chunks, and the links of one chunk."""
_ROWS = 1 << 19
"""Links per write."""
_LINK_BYTES, _ID_BYTES = 8, 9
"""Bytes per link (once as read, once as sorted), and per integer up to the largest."""
_HALF, _LOW = np.uint64(32), np.uint64(2**32 - 1)
_MOST_LINKS = 1 << 32
_SPARSE = 16
"""Maximum ratio of the largest integer, less a million, to the number of links."""

_Keys = NDArray[np.uint64]


def store_integers(
    directory: Path,
    sources: Sequence[Source],
    options: ReadOptions,
    resources: Resources,
    progress: Progress,
) -> tuple[dict[str, Any], dict[str, Entry], list[Found]] | None:
    """Write the links of ``sources`` into ``directory``; return the manifest's facts, the files and
    a report on each text. Write nothing and return None if a text is invalid, too large or not
    plain.
    """
    if options.weight or options.normalize_urls or options.count_duplicates or options.sides:
        return None
    if not all(not s.is_pipe and reader_of(s, options, 2) is READER for s in sources):
        return None
    try:
        pieces, bound, found = _read_all(sources, options, resources, progress)
    except (_ForTables, CociteError):
        return None
    progress("numbering the names", 0, 0)
    named = np.zeros(bound, bool)
    for piece in pieces:
        named[piece >> _HALF] = named[piece & _LOW] = True
    progress("sorting the links", 0, 0)
    keys = _sorted(pieces, options.undirected)
    return *_write(keys, named, directory, options, progress), found


# -- reading -----------------------------------------------------------------------------


class _ForTables(Exception):
    """Raised if a text requires the general path."""


class _Read(NamedTuple):
    """A chunk's links and counts, and the number of rows still to skip."""

    keys: _Keys
    skip: int
    blank: int
    comments: int
    largest: int


def _read_all(
    sources: Sequence[Source], options: ReadOptions, resources: Resources, progress: Progress
) -> tuple[list[_Keys], int, list[Found]]:
    """Return (chunks of keys, 1 + the largest integer, reports); raises :class:`_ForTables`."""
    workers = [_Worker() for _ in range(resources.threads)]
    room = resources.memory - READERS_MEMORY - resources.threads * BUFFER
    each = 1 + options.undirected
    pieces: list[_Keys] = []
    found: list[Found] = []
    rows, bound = 0, 0
    packed = any(source.packed for source in sources)
    whole = 0 if packed else sum(source.nbytes for source in sources)
    for source, report in each_with_progress(progress, sources):
        cleaner = Cleaner(source, 2, options)
        text = cleaner.found
        with source.reading() as (stream, raw):
            for read in _read(cleaner, source, (stream, raw), workers, report):
                text.rows += read.keys.size
                text.blank_lines += read.blank
                text.comments += read.comments
                pieces.append(read.keys)
                rows, bound = rows + read.keys.size, max(bound, read.largest + 1)
                # The first chunk's density predicts the number of links.
                most, whole = max(rows, rows * whole // max(raw.tell(), 1)), 0
                need = _LINK_BYTES * (1 + each) * most + _ID_BYTES * bound
                if need > room or each * most >= _MOST_LINKS:
                    raise _ForTables
        found.append(text)
    if not rows or bound > _SPARSE * rows + (1 << 20):
        raise _ForTables
    return pieces, bound, found


class _Worker:
    """Parses chunks, one at a time, into a thread's own arrays."""

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
        state = np.zeros(k.STATE, np.int64)
        state[k.SKIP] = skip
        sources, targets = self._room
        rows = k.read_pairs(np.frombuffer(piece, np.uint8), rules, sources, targets, state)
        if rows < 0:
            raise _ForTables
        counts = (int(state[at]) for at in (k.SKIP, k.BLANK, k.COMMENTS, k.LARGEST))
        return _Read(targets[:rows].astype(np.uint64) << _HALF | sources[:rows], *counts)


def _read(
    cleaner: Cleaner,
    source: Source,
    opened: tuple[IO[bytes], BinaryIO],
    workers: Sequence[_Worker],
    progress: Progress,
) -> Iterator[_Read]:
    """Yield the links of one text, chunk by chunk; raises :class:`_ForTables`."""
    stream = opened[0]
    head = stream.read(_PIECE)
    while len(head) <= LOOK and (more := stream.read(_PIECE)):
        head += more
    head = head.removeprefix(b"\xef\xbb\xbf")
    cleaner.decide(head)
    found, rules, skip = cleaner.found, cleaner.rules(), cleaner.to_skip
    # A column name may also be a node name, and a comment may begin with a digit.
    titles = found.first if found.header else ()
    if cleaner.options.comment.isdigit() or any(title.isdigit() for title in titles):
        raise _ForTables
    row = next(iter(cleaner.sampled[found.header :]), [])
    if not all(row[at].strip().isdigit() for at in found.taken if at < len(row)):
        raise _ForTables  # before loading the kernels
    pieces = _pieces(head, source, opened, progress)
    for piece in pieces:  # in order, until the header has been skipped
        read = workers[0](rules, skip, piece)
        yield read
        skip = read.skip
        if not skip:
            break
    yield from in_order([partial(worker, rules, 0) for worker in workers], pieces)


def _pieces(
    head: bytes, source: Source, opened: tuple[IO[bytes], BinaryIO], progress: Progress
) -> Iterator[bytes]:
    """Yield chunks of whole lines."""
    (stream, raw), rest, data = opened, b"", head
    while True:
        # A CR at the end of a chunk may be half of a CRLF.
        ends = data.rfind(b"\n"), data.rfind(b"\r", 0, max(len(data) - 1, 0))
        cut = max(ends) + 1
        if cut or not data:
            yield b"".join((rest, memoryview(data)[:cut]))
            rest = data[cut:]
        else:
            rest += data
        if len(rest) > _MAX_LINE:
            raise _ForTables
        progress("reading " + source.short, raw.tell(), source.nbytes)
        if not data:
            return
        data = stream.read(_PIECE)


# -- writing -----------------------------------------------------------------------------


def _sorted(pieces: list[_Keys], undirected: bool) -> _Keys:
    """Return the sorted keys of all links; clear ``pieces`` meanwhile, to save memory."""
    links = (1 + undirected) * sum(piece.size for piece in pieces)
    keys, at = np.empty(links, np.uint64), 0
    while pieces:
        piece = pieces.pop()
        for each in (piece, piece << _HALF | piece >> _HALF) if undirected else (piece,):
            keys[at : at + each.size] = each
            at += each.size
    keys.sort()
    return keys


def _write(
    keys: _Keys, named: NDArray[np.bool_], directory: Path, options: ReadOptions, progress: Progress
) -> tuple[dict[str, Any], dict[str, Entry]]:
    """Write the graph's files; ``named`` marks the integers that are nodes."""
    dense, nodes = bool(named.all()), int(named.sum())
    ids = np.empty(0, np.uint32) if dense else np.cumsum(named, dtype=np.uint32) - np.uint32(1)

    def pieces() -> Iterator[tuple[_Keys, None]]:
        for low in range(0, keys.size, _ROWS):
            piece = keys[low : low + _ROWS]
            if not dense:
                piece = ids[piece >> _HALF].astype(np.uint64) << _HALF | ids[piece & _LOW]
            yield piece, None

    links = counted(pieces(), "writing the links", keys.size, progress)
    edges, loops, _, files = write_links(directory, links, nodes, options, weighted=False)
    progress("storing the names", 0, 0)
    if not dense:
        values = np.flatnonzero(named).astype(np.uint64)
        files[VALUES] = write_array(directory / VALUES, np.uint64, [values])
    kind = "dense" if dense else "integers"
    return graph_facts(nodes, edges, kind, options, keys.size - edges - loops, loops), files
