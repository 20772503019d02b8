"""Names and titles of nodes: written, told by labels, and matched with those of another graph.

Of a graph that was made of objects in memory the names go out as they came in, by *labels*: whole
numbers as ``int``, any other hashable value by its ``str``, of which no two are the same. Labels
are kept with the object and the indexes that are built from it, and not stored. Titles, shown
beside names, are front-coded as names are, two bytes for a node without one; the digest of a graph
leaves them out, as they say nothing of what is related.

Names are numbered in their order, so that one new page moves the ids of all behind it: where each
has gone is looked up by name, some thousand at a time.

Cost: a lookup of a title decodes one block, a search reads all, some 3 million a second. Writing
takes a pass over the names and a sort of their hashes, matching a microsecond a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cocite.constants import NOWHERE
from cocite.errors import Damaged
from cocite.graph.names import (
    BLOCKS,
    BY_HASH,
    DATA,
    HASHES,
    IntegerNames,
    Names,
    NodeLabels,
    TextNames,
    checked_id,
    name_hash,
    open_names,
)
from cocite.graph.spelling import CODED_BLOCK, coded_texts
from cocite.storage import ArrayWriter, DeclaredFiles, Entry, Store, evict

TITLE_FILES = "titles."
"""All files of the titles begin so; an index holds copies of them."""

TITLES_DATA, TITLES_BLOCKS = "titles.data", "titles.blocks"
_FORMS = {TITLES_DATA: "|u1[bytes]", TITLES_BLOCKS: "<u8[b]"}
_PIECE = 1 << 12


class Titles:
    """The titles of ``len(titles)`` nodes; ``titles[3]`` is that of the node 3, None for none."""

    def __init__(self, store: Store, count: int) -> None:
        self._path, self._count = store.path, count
        self._data, self._blocks = store.array(TITLES_DATA), store.array(TITLES_BLOCKS)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, node: int) -> str | None:
        """The title of one id; raises :class:`~cocite.errors.UsageError` if it is none."""
        return self.of(np.array([checked_id(node, self._count)]))[0] or None

    def __repr__(self) -> str:
        return f"<titles of {self._count:,} nodes>"

    def of(self, ids: NDArray[Any]) -> list[str]:
        """The titles of nodes, in their order, "" for none. A node behind the last one, such as a
        draft, has none.
        """
        there = ids < self._count
        found = coded_texts(self._data, self._blocks, ids[there])
        if found is None:
            raise Damaged(
                f"{self._path}: its titles are damaged; see: cocite verify {self._path}. Copy it "
                "again from where it was whole, or build it again"
            )
        known = iter(found)
        return found if len(found) == ids.size else [next(known) if t else "" for t in there]

    def known(self, ids: NDArray[Any]) -> int:
        """How many of some nodes have a title."""
        pieces = (ids[low : low + _PIECE] for low in range(0, ids.size, _PIECE))
        return sum(sum(map(bool, self.of(piece))) for piece in pieces)

    def containing(self, text: str) -> NDArray[np.uint32]:
        """uint32: the ids of all nodes whose titles contain ``text``, as of names."""
        from cocite.graph.spelling import NameQuery

        return NameQuery(text).among(self.of, self._count, _PIECE)

    def evict(self) -> None:
        """Give back the memory of the files: they are read again when they are needed."""
        evict(self._data, self._blocks)


def open_titles(store: Store, count: int) -> Titles | None:
    """The titles held by a graph or an index of ``count`` nodes; None if it has none."""
    return Titles(store, count) if store.has(TITLES_DATA) else None


def take_title_files(files: DeclaredFiles, count: int) -> None:
    """See that the files of titles are as declared, if there are any; raises :class:`Damaged`."""
    if files.starting(TITLE_FILES):
        files.take(_FORMS, {"b": -(-count // CODED_BLOCK)})


def names_of(store: Store) -> Names:
    """The names that a store holds, by its labels if it has any."""
    names = open_names(store)
    if isinstance(store.labels, NodeLabels):
        names.labels = store.labels
    names.titles = partial(open_titles, store, len(names))
    return names


# -- name files --------------------------------------------------------------------------


TextPiece = tuple[NDArray[np.uint8], NDArray[np.uint64]]
"""Names in UTF-8, one behind the other, and where each ends."""


class HashSorter(Protocol):
    """What sorts the hashes of names."""

    def sort_hashes(self, pieces: Iterator[NDArray[np.uint32]]) -> Iterator[NDArray[np.uint64]]:
        """From hashes in order of id, pieces of hash * 2**32 + id, ascending."""


def write_text_names(
    directory: Path, tables: HashSorter, pieces: Iterable[TextPiece]
) -> dict[str, Entry]:
    """Write text names, given in order of id; ``tables`` sorts their hashes.

    A block's length divides that of every piece but the last. Ids in the order of names, where that
    is another one, are the caller's.
    """
    with (
        ArrayWriter(directory / DATA, np.uint8) as data,
        ArrayWriter(directory / BLOCKS, np.uint64) as blocks,
        ArrayWriter(directory / HASHES, np.uint32) as hashes,
        ArrayWriter(directory / BY_HASH, np.uint32) as by_hash,
    ):
        for keys in tables.sort_hashes(_encode_all(pieces, data, blocks)):
            hashes.write((keys >> np.uint64(32)).astype(np.uint32))
            by_hash.write((keys & np.uint64(0xFFFFFFFF)).astype(np.uint32))
    writers = {DATA: data, BLOCKS: blocks, HASHES: hashes, BY_HASH: by_hash}
    return {name: writer.finished for name, writer in writers.items()}


def joined_names(names: list[str]) -> TextPiece:
    """Names as a piece of text."""
    encoded = [name.encode() for name in names]
    ends = np.cumsum(np.fromiter(map(len, encoded), np.uint64, len(encoded)))
    return np.frombuffer(b"".join(encoded), np.uint8), ends


def _encode_all(
    pieces: Iterable[TextPiece], data: ArrayWriter, blocks: ArrayWriter
) -> Iterator[NDArray[np.uint32]]:
    """Front-code all names into the writers; yields their hashes, piece by piece."""
    base = 0
    for text, ends in pieces:
        base += encode_texts(text, ends, data, blocks, base)
        whole, bounds = text.tobytes(), [0, *ends.tolist()]
        hashes = (name_hash(whole[begin:end]) for begin, end in pairwise(bounds))
        yield np.fromiter(hashes, np.uint32, ends.size)


def encode_texts(
    text: NDArray[np.uint8],
    ends: NDArray[np.uint64],
    data: ArrayWriter,
    blocks: ArrayWriter,
    base: int,
) -> int:
    """Front-code a piece of texts behind ``base`` bytes of others; returns the bytes written."""
    from cocite.kernels.names import BLOCK, encode

    out = np.empty(text.size + 6 * ends.size, np.uint8)
    begins = np.empty(-(-ends.size // BLOCK), np.uint64)
    written = int(encode(text, ends, out, begins))
    data.write(out[:written])
    blocks.write(begins + np.uint64(base))
    return written


def write_titles(directory: Path, pieces: Iterable[list[str]]) -> dict[str, Entry]:
    """Write the titles of all nodes, in order of id, in pieces whose length a block divides."""
    base = 0
    with (
        ArrayWriter(directory / TITLES_DATA, np.uint8) as data,
        ArrayWriter(directory / TITLES_BLOCKS, np.uint64) as blocks,
    ):
        for titles in pieces:
            base += encode_texts(*joined_names(titles), data, blocks, base)
    return {TITLES_DATA: data.finished, TITLES_BLOCKS: blocks.finished}


def write_some_titles(directory: Path, titles: Titles, ids: NDArray[np.uint32]) -> dict[str, Entry]:
    """Write the titles of the nodes ``ids``, ascending, as those of nodes of their own."""
    pieces = (titles.of(ids[low : low + _PIECE]) for low in range(0, ids.size, _PIECE))
    return write_titles(directory, pieces)


# -- matching ----------------------------------------------------------------------------


Ids = NDArray[np.uint32]


def match_names(old: Names, new: Names) -> Ids:
    """uint32[len(old)]: the id that each old node has among the ``new``; NOWHERE for none."""
    old, new = old.stored, new.stored
    for names in (old, new):
        if isinstance(names, TextNames):
            names.by_hash()  # sees that hashes ascend, or else names that are there are not found
    values = None
    if isinstance(old, IntegerNames) and isinstance(new, IntegerNames):
        values = new.values()
    ids = np.full(len(old), NOWHERE, np.uint32)
    for low in range(0, len(new), _PIECE):
        nodes = np.arange(low, min(low + _PIECE, len(new)))
        before = old.found(new.names(nodes) if values is None else values[nodes])
        ids[before[before >= 0]] = nodes[before >= 0]
    return ids
