"""Names of nodes as they were given: whole numbers, tuples, whatever else names a node in Python.

A stored graph has text names, or whole numbers; either is told as text. Of a graph that was made of
objects in memory the names go out as they came in, by *labels*, which are kept with the object, and
with the indexes that are built from it, and are not stored.

    text        the names themselves
    integers    int(name)
    mapped      any hashable value; its text is str(value), and no two have the same

Cost: nothing for the first two; for the third two dictionaries with an entry a node.

Titles of nodes, shown beside their names; most nodes of a graph may have none.

They are stored as names are, front-coded in blocks of 16 in order of id (``storage/FORMAT.md``), an
empty one for a node without a title, which takes two bytes. A graph without titles has no such
files. They say nothing of what is related: the digest of a graph leaves them out.

Cost: a lookup decodes one block; a search reads all, some 3 million a second.

Writing names: integers as they are, text front-coded in blocks, with hashes for the way back.

``graph/names.py`` says what lies where, and reads it.

Cost: a pass over the names, and a sort of their hashes.

The same names in two graphs: where each node of one has gone in the other.

Names are numbered in their order, so that one new page moves the ids of all behind it. Integers are
looked up among the sorted values. Texts are joined by their hashes, which both sides hold sorted,
and every match is then compared as text. If one side has integers and the other texts, the names
are looked up one by one.

Cost: a microsecond a name for text, in pieces; less for integers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
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

        wanted, found = NameQuery(text), [np.empty(0, np.uint32)]
        for low in range(0, self._count, _PIECE):
            titles = self.of(np.arange(low, min(low + _PIECE, self._count)))
            if wanted.within("\n".join(titles)):
                places = (i for i, title in enumerate(titles, low) if wanted.within(title))
                found.append(np.fromiter(places, np.uint32))
        return np.concatenate(found)

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


# -- labeled ----------------------------------------------------------------------------


def text_of(label: object) -> str:
    """The text that a label is stored as: ``str`` of it, with NumPy's scalars as Python's."""
    if isinstance(label, str):
        return str(label)
    if isinstance(label, tuple):
        inner = [repr(part) if isinstance(part, str) else text_of(part) for part in label]
        return f"({', '.join(inner)}{',' * (len(inner) == 1)})"
    return str(label.item() if isinstance(label, np.generic) else label)


class NodeLabels:
    """What the names of a graph were: ``labels`` by their text, or whole numbers for None."""

    def __init__(self, labels: Mapping[str, Hashable] | None) -> None:
        self._labels = labels
        self._texts = {} if labels is None else {label: text for text, label in labels.items()}

    def of(self, text: str) -> Any:
        """The label of a stored name; of one that came later, as that of a draft, itself."""
        if self._labels is not None:
            return self._labels.get(text, text)
        return int(text) if text.isdecimal() else text

    def text(self, label: object) -> str:
        """The stored name that a label may have; a text is one already."""
        if self._labels is None or isinstance(label, str):
            return text_of(label)
        try:
            return self._texts.get(label, text_of(label))
        except TypeError:  # not hashable
            return text_of(label)

    def has(self, value: object) -> bool:
        """Whether a tuple is one label, and not several."""
        try:
            return value in self._texts
        except TypeError:
            return False


INTEGERS = NodeLabels(None)
"""Of names that were whole numbers."""


def names_of(store: Store) -> Names:
    """The names that a store holds, by its labels if it has any."""
    names = open_names(store)
    if isinstance(store.labels, NodeLabels):
        names = LabeledNames(names, store.labels)
    names.titles = partial(open_titles, store, len(names))
    return names


class LabeledNames(Names):
    """Stored names, told by their labels. What is looked for by text is found by the text."""

    def __init__(self, names: Names, labels: NodeLabels) -> None:
        super().__init__(len(names))
        self._stored, self.labels, self.sides = names, labels, names.sides

    @property
    def stored(self) -> Names:
        """The names as text, as they are stored."""
        return self._stored

    @property
    def note(self) -> str:
        """What is to be said of a name that is not there."""
        return self._stored.note

    @note.setter
    def note(self, note: str) -> None:
        self._stored.note = note

    def names(self, ids: NDArray[Any]) -> list[Any]:
        """The labels of ``ids``, in their order."""
        return list(map(self.labels.of, self._stored.names(ids)))

    def find(self, name: object) -> int | None:
        """The id of a label, or of a stored name; None if no node has it."""
        return self._stored.find(self.labels.text(name))

    def found(self, names: Sequence[object] | NDArray[Any]) -> NDArray[np.int64]:
        """The ids of many labels, or stored names; -1 for those that no node has."""
        whole = isinstance(names, np.ndarray) and self.labels is INTEGERS
        return self._stored.found(names if whole else list(map(self.labels.text, names)))

    def see_that_none_is(self, name: str) -> None:
        """See that no stored name is so."""
        self._stored.see_that_none_is(name)

    def damaged(self) -> Damaged:
        """What is to be said of stored names that cannot be as they are."""
        return self._stored.damaged()

    def __contains__(self, name: object) -> bool:
        return self.find(name) is not None

    def id(self, name: object) -> int:
        """The id of a label; raises :class:`UnknownNode` with the nearest stored names."""
        found = self.find(name)
        if found is None:
            raise self.unknown(name, self.labels.text(name))
        return found

    def is_one(self, value: object) -> bool:
        """Whether a tuple names one node."""
        return self.labels.has(value)

    def containing(self, text: str, *, plain: bool = False) -> NDArray[np.uint32]:
        """The ids of all stored names that contain ``text``."""
        return self._stored.containing(text, plain=plain)

    def with_prefix(self, prefix: str) -> NDArray[np.uint32]:
        """The ids of all stored names that begin with ``prefix``, ascending."""
        return self._stored.with_prefix(prefix)

    def evict(self) -> None:
        """Give back the memory of the files."""
        self._stored.evict()

    def _first_with_prefix(self, prefix: str, limit: int, but: str | None = None) -> NDArray[Any]:
        return self._stored._first_with_prefix(prefix, limit, but)

    def similar(self, name: str, limit: int) -> list[str]:
        """Stored names that are spelt most like one."""
        return self._stored.similar(name, limit)


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
    ids = np.full(len(old), NOWHERE, np.uint32)
    if isinstance(old, IntegerNames) and isinstance(new, IntegerNames):
        if not len(old) or not len(new):
            return ids
        mine, other = old.values(), new.values()
        places = np.minimum(np.searchsorted(other, mine), other.size - 1)
        found = np.flatnonzero(other[places] == mine)
        ids[found] = places[found]
        return ids
    if isinstance(old, TextNames) and isinstance(new, TextNames):
        return _by_hash(old, new, ids)
    for low in range(0, len(new), _PIECE):
        for node, name in enumerate(new.names(np.arange(low, min(low + _PIECE, len(new)))), low):
            was = old.find(name)
            if was is not None:
                ids[was] = node
    return ids


def _by_hash(old: TextNames, new: TextNames, ids: Ids) -> Ids:
    """Fill ``ids`` from all pairs of equal hashes whose names are equal, too."""
    (hashes, mine), (others, theirs) = old.by_hash(), new.by_hash()
    low, high = (np.searchsorted(others, hashes, side) for side in ("left", "right"))
    counts = high - low
    firsts = np.repeat(low - np.cumsum(counts) + counts, counts)
    before = np.repeat(mine, counts)
    after = theirs[firsts + np.arange(firsts.size)]
    order = np.argsort(after, kind="stable")
    before, after = before[order], after[order]
    for begin in range(0, after.size, _PIECE):
        here, there = before[begin : begin + _PIECE], after[begin : begin + _PIECE]
        pairs = zip(old.names(here), new.names(there), strict=True)
        same = np.fromiter((a == b for a, b in pairs), bool, here.size)
        ids[here[same]] = there[same]
    return ids
