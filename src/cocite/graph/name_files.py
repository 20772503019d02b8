"""Node names and titles on disk, and matching the names of two graphs.

Text names (``storage/FORMAT.md``) are front-coded in blocks of 16, by id. Sorted 32-bit hashes, the
high half of XXH3-64, map names to ids. If ids do not follow the order of names, as with URLs, the
ids in name order are stored for prefix search. Integer names are stored as sorted values; the names
0 to n - 1 need no file. Titles are front-coded like names, with two bytes for a node without a
title; a graph's digest excludes titles.

Names take about 10 to 20 bytes each. A lookup by name costs a binary search and decodes one block.
Writing costs one pass over the names and a sort of their hashes. Matching costs 1 us per name.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import pairwise, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.constants import NOWHERE
from cocite.errors import Damaged
from cocite.graph.names import SCAN_LIMIT, Names, NodeLabels, checked_id, damaged_texts
from cocite.storage import ArrayWriter, DeclaredFiles, Entry, Facts, Store, evict

if TYPE_CHECKING:
    from cocite.graph.sides import Sides

_PIECE = 1 << 12
_RECENT = 64
"""Number of names whose ids are cached."""

NAME_FILES, TITLE_FILES = "names.", "titles."
"""Prefixes of name files and title files. An index holds copies of them."""

NAME_KINDS = "text", "integers", "dense"
DATA, BLOCKS = "names.data", "names.blocks"
HASHES, BY_HASH, BY_NAME = "names.hashes", "names.by_hash", "names.by_name"
VALUES = "names.values"
TITLES_DATA, TITLES_BLOCKS = "titles.data", "titles.blocks"
_TITLE_FORMS = {TITLES_DATA: "|u1[bytes]", TITLES_BLOCKS: "<u8[b]"}
_NAME_FORMS: dict[str, dict[str, str]] = {
    "dense": {},
    "integers": {VALUES: "<u8[n]"},
    "text": {
        DATA: "|u1[bytes]",
        BLOCKS: "<u8[b]",
        HASHES: "<u4[n]",
        BY_HASH: "<u4[n]",
        BY_NAME: "<u4[n]",
    },
}
_INTEGER = re.compile("[0-9]{1,20}")
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_WIDE = re.compile(rb"\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]")
"""Refused characters beyond ASCII, in UTF-8."""
CODED_BLOCK = 16
"""Texts per block. ``kernels/names.py`` repeats the value, to avoid an import here."""


def coded_texts(
    data: NDArray[np.uint8],
    blocks: NDArray[np.uint64],
    ids: NDArray[Any],
    damaged: Callable[[], Damaged],
) -> list[str]:
    """Return the texts of ``ids``, in the same order; raises ``damaged()`` if the data is damaged
    or contains refused characters (``graph/spelling.py``).

    The ids must be below the number of texts. A decoded text can take 65,535 bytes, so request many
    texts in batches.
    """
    from cocite.kernels.names import decode

    wanted = np.ascontiguousarray(ids, np.uint32)
    ends = np.empty(wanted.size, np.uint64)
    out = np.empty(64 * wanted.size + 1024, np.uint8)
    needed = decode(data, blocks, wanted, out, ends)
    if needed > out.size:
        out = np.empty(needed, np.uint8)
        decode(data, blocks, wanted, out, ends)
    whole = out[: max(needed, 0)].tobytes()
    if needed < 0 or _CONTROL.search(whole) or (not whole.isascii() and _WIDE.search(whole)):
        raise damaged()
    try:
        return [whole[begin:end].decode() for begin, end in pairwise((0, *ends.tolist()))]
    except UnicodeDecodeError:
        raise damaged() from None


def is_integer(name: str) -> bool:
    """Return whether a name is an integer below 2**64 in canonical form."""
    return bool(_INTEGER.fullmatch(name)) and str(int(name)) == name and int(name) < 2**64


class IntegerNames(Names):
    """Integer names; ``values`` is None if names are ``dense``: every name equals its id."""

    def __init__(
        self, count: int, values: NDArray[np.uint64] | None, path: Path | str = ""
    ) -> None:
        super().__init__(count)
        self._values, self.path, self.dense = values, path, values is None

    def values(self) -> NDArray[np.uint64]:
        """Return all names, uint64[count], ascending."""
        return np.arange(self._count, dtype=np.uint64) if self._values is None else self._values

    def values_of(self, ids: NDArray[Any]) -> NDArray[Any]:
        """Return the names of ``ids`` as integers."""
        return ids if self._values is None else self._values[ids]

    def _texts(self, ids: NDArray[Any]) -> list[str]:
        return list(map(str, self.values_of(self._check(ids)).tolist()))

    def _find(self, name: str) -> int | None:
        if not is_integer(name):
            return None
        place = self._place(int(name))
        return place if place < self._count and self._value(place) == int(name) else None

    def _found(self, names: Sequence[object] | NDArray[Any]) -> NDArray[np.int64]:
        """Find integers with one vectorized search."""
        if not isinstance(names, np.ndarray) or names.dtype.kind not in "iu" or not self._count:
            return super()._found(names)
        wanted = np.where(names < 0, 0, names).astype(np.uint64)
        places: NDArray[Any] = wanted
        present = wanted < self._count
        if self._values is not None:
            places = np.searchsorted(self._values, wanted)
            present = self._values[np.minimum(places, self._count - 1)] == wanted
        return np.where(present & (names >= 0), places, -1).astype(np.int64)

    def see_that_none_is(self, name: str) -> None:
        """Check, independently of :meth:`find`, that no node has this name."""
        if self._values is not None and bool((self._values[1:] <= self._values[:-1]).any()):
            raise self.damaged()

    def _value(self, place: int) -> int:
        return place if self._values is None else int(self._values[place])

    def _place(self, value: int) -> int:
        """Return how many names are smaller than ``value``."""
        if self._values is None:
            return min(value, self._count)
        if value >= 2**64:
            return self._count
        return int(np.searchsorted(self._values, np.uint64(value)))

    def _with_prefix(self, prefix: str) -> NDArray[Any]:
        if not _INTEGER.fullmatch(prefix):
            return np.arange(0 if prefix else self._count)
        low, width = int(prefix), 1
        found: list[NDArray[np.int64]] = []
        while low < 2**64 and str(low // width) == prefix:
            found.append(np.arange(self._place(low), self._place(low + width)))
            if low == 0:
                break
            low, width = low * 10, width * 10
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def similar(self, name: str, limit: int) -> list[str]:
        """Return the most similar names, nearest first."""
        if not _INTEGER.fullmatch(name):
            return []
        place = self._place(int(name))
        around = range(max(0, place - limit), min(self._count, place + limit))
        near = sorted(around, key=lambda i: (abs(self._value(i) - int(name)), i))
        return self._texts(np.array(near[:limit], np.int64))


class TextNames(Names):
    """Text names, stored as the module docstring describes."""

    def __init__(self, count: int, store: Store) -> None:
        super().__init__(count)
        self.path = store.path
        self._data = store.array(DATA)
        self._blocks = store.array(BLOCKS)
        self._hashes = store.array(HASHES)
        self._by_hash = store.array(BY_HASH)
        self.has_order = store.has(BY_NAME)
        """Whether the name order is stored, because it differs from the id order."""
        self._by_name = store.array(BY_NAME) if self.has_order else None
        # Cached, because the server and the index both resolve a query's name.
        self._find_again = lru_cache(_RECENT)(self._find_anew)

    def _texts(self, ids: NDArray[Any]) -> list[str]:
        return coded_texts(self._data, self._blocks, self._check(ids), self.damaged)

    def _nodes(self, ids: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return ``ids``, read from a file, after a bounds check."""
        if ids.size and int(ids.max()) >= self._count:
            raise self.damaged()
        return ids

    def by_hash(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return all name hashes, ascending, and their ids."""
        if bool((self._hashes[1:] < self._hashes[:-1]).any()):
            raise self.damaged()
        return self._hashes, self._nodes(self._by_hash)

    def _find(self, name: str) -> int | None:
        return self._find_again(name)

    def _find_anew(self, name: str) -> int | None:
        wanted = np.uint32(name_hash(name.encode("utf-8", "surrogatepass")))
        low = int(self._hashes.searchsorted(wanted))
        high = int(self._hashes.searchsorted(wanted, side="right"))
        for node in self._by_hash[low:high].tolist():
            if node >= self._count:
                raise self.damaged()
            found = self._text(node)
            if found == name:
                return int(node)
            if name_hash(found.encode()) != wanted:
                raise self.damaged()
        return None

    def _found(self, names: Sequence[object] | NDArray[Any]) -> NDArray[np.int64]:
        """Find many names at once. The first name with an equal hash is almost always the match."""
        texts = list(map(str, names))
        hashes = (name_hash(text.encode("utf-8", "surrogatepass")) for text in texts)
        wanted = np.fromiter(hashes, np.uint32, len(texts))
        places = np.minimum(np.searchsorted(self._hashes, wanted), self._count - 1)
        if not self._count:
            return np.full(len(texts), -1, np.int64)
        ids = self._nodes(self._by_hash[places])
        each = zip(texts, ids.tolist(), self._texts(ids), strict=True)
        found = (i if text == name else self._find(text) for text, i, name in each)
        return np.fromiter((-1 if i is None else i for i in found), np.int64, len(texts))

    def see_that_none_is(self, name: str) -> None:
        """Check, independently of :meth:`find`, that no node has this name."""
        wanted = name.encode("utf-8", "surrogatepass")
        rank = self._first(lambda other: other >= wanted)
        if rank < self._count and self._text(self._ranked(rank)) == name:
            raise self.damaged()

    def _with_prefix(self, prefix: str) -> NDArray[Any]:
        wanted = prefix.encode("utf-8", "surrogatepass")
        begin = self._first(lambda name: name >= wanted)
        return self.ranked(np.arange(begin, self._first(lambda n: n[: len(wanted)] > wanted)))

    def ranked(self, ranks: NDArray[Any]) -> NDArray[Any]:
        """Return the ids of the names with these ranks."""
        return ranks if self._by_name is None else self._nodes(self._by_name[ranks])

    def _ranked(self, rank: int) -> int:
        return int(self.ranked(np.array([rank]))[0])

    def _first(self, reached: Callable[[bytes], bool]) -> int:
        """Return the lowest rank whose name satisfies a monotone condition."""
        return bisect_left(
            range(self._count), True, key=lambda r: reached(self._text(self._ranked(r)).encode())
        )

    def similar(self, name: str, limit: int) -> list[str]:
        """Return the most similar names, nearest first."""
        from cocite.kernels.names import distances

        wanted = name.encode("utf-8", "replace")
        if not 1 <= len(wanted) <= 64 or self._count > SCAN_LIMIT:
            # Too long or too many to compare: return the names nearest in sort order.
            place = self._first(lambda other: other >= wanted)
            around = range(max(0, place - limit // 2), min(self._count, place + limit))
            return self._texts(np.array([self._ranked(rank) for rank in around], np.int64))
        out = np.empty(self._count, np.int32)
        distances(self._data, self._blocks, self._count, np.frombuffer(wanted, np.uint8), out)
        best = np.argsort(out, kind="stable")[: 10 * limit]
        best = best[out[best] <= max(2, len(wanted) // 2)]
        # Longer common prefixes win ties, because typing errors at the beginning are rare.
        ranked = sorted(
            zip(out[best].tolist(), self._texts(best), strict=True),
            key=lambda pair: (pair[0], -_alike(pair[1].lower(), name.lower())),
        )
        return [other for _, other in ranked[:limit]]


def _alike(first: str, second: str) -> int:
    """Return the length of the common prefix."""
    pairs = zip(first, second, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def name_hash(name: bytes) -> int:
    """Return the high half of XXH3-64, the lookup key of names."""
    return xxhash.xxh3_64_intdigest(name) >> 32


def take_text_files(files: DeclaredFiles, kind: str, count: int) -> None:
    """Check the declared files of ``count`` names and their titles; raises :class:`Damaged`."""
    sizes = {"n": count, "b": -(-count // CODED_BLOCK)}
    files.take(_NAME_FORMS[kind], sizes, optional=(BY_NAME,))
    if files.starting(TITLE_FILES):
        files.take(_TITLE_FORMS, sizes)


def sides_text(facts: Facts, nodes: int) -> Sides | None:
    """Return the sides in a manifest, None unless the graph is bipartite."""
    if "sides" not in facts:
        return None
    from cocite.graph.sides import sides_of  # imported only for such graphs

    return sides_of(facts, nodes)


class Titles:
    """The titles of ``len(titles)`` nodes. ``titles[3]`` is the title of node 3, or None."""

    def __init__(self, store: Store, count: int) -> None:
        self._path, self._count = store.path, count
        self._data, self._blocks = store.array(TITLES_DATA), store.array(TITLES_BLOCKS)
        self.draft: int | None = None
        """The node that an unseen page replaces. The page is shown with the title of this node."""

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, node: int) -> str | None:
        """Return the title of an id; raises :class:`~cocite.errors.UsageError`."""
        return self.of(np.array([checked_id(node, self._count)]))[0] or None

    def __repr__(self) -> str:
        return f"<titles of {self._count:,} nodes>"

    def of(self, ids: NDArray[Any]) -> list[str]:
        """Return the titles of ``ids``, in the same order; "" for nodes without a title, such as
        unseen pages.
        """
        if self.draft is not None:
            ids = np.where(ids == self._count, self.draft, ids)
        known_ids = ids < self._count
        damaged = partial(damaged_texts, self._path, "titles")
        found = coded_texts(self._data, self._blocks, ids[known_ids], damaged)
        known = iter(found)
        return found if len(found) == ids.size else [next(known) if t else "" for t in known_ids]

    def known(self, ids: NDArray[Any]) -> int:
        """Return how many of some nodes have a title."""
        pieces = (ids[low : low + _PIECE] for low in range(0, ids.size, _PIECE))
        return sum(sum(map(bool, self.of(piece))) for piece in pieces)

    def containing(self, text: str) -> NDArray[np.uint32]:
        """Return the ids of all nodes whose titles contain ``text``, uint32, ascending."""
        from cocite.graph.spelling import NameQuery

        return NameQuery(text).among(self.of, self._count, _PIECE)

    def evict(self) -> None:
        """Release the memory of mapped files."""
        evict(self._data, self._blocks)


def open_titles(store: Store, count: int) -> Titles | None:
    """Open the titles of a graph or an index of ``count`` nodes; None if there are none."""
    return Titles(store, count) if store.has(TITLES_DATA) else None


def names_of(store: Store) -> Names:
    """Open the names of a graph or an index, with its original labels and titles."""
    facts = Facts(store.facts, f"{store.path}: the manifest")
    kind, count = facts.text("names", NAME_KINDS), facts.whole("nodes")
    names: Names
    if kind == "text":
        names = TextNames(count, store)
        names.sides = sides_text(facts, count)
        names.note = "" if names.sides is None else names.sides.note
    else:
        names = IntegerNames(count, None if kind == "dense" else store.array(VALUES), store.path)
    if isinstance(store.labels, NodeLabels):
        names.labels = store.labels
    names.titles = partial(open_titles, store, len(names))
    return names


TextPiece = tuple[NDArray[np.uint8], NDArray[np.uint64]]
"""Concatenated names in UTF-8, and where each ends."""


HashSorter = Callable[[Iterator[NDArray[np.uint32]]], Iterator[NDArray[np.uint64]]]
"""Turns hashes, by id, into ascending hash * 2**32 + id, in chunks."""


def write_text_names(
    directory: Path, sort: HashSorter, pieces: Iterable[TextPiece]
) -> dict[str, Entry]:
    """Write text names in id order; ``sort`` sorts their hashes.

    All pieces but the last must have a multiple of CODED_BLOCK names. If the name order differs
    from the id order, the caller must write the name order.
    """
    with (
        ArrayWriter(directory / DATA, np.uint8) as data,
        ArrayWriter(directory / BLOCKS, np.uint64) as blocks,
        ArrayWriter(directory / HASHES, np.uint32) as hashes,
        ArrayWriter(directory / BY_HASH, np.uint32) as by_hash,
    ):
        for keys in sort(starmap(_hashes, _encoded(pieces, data, blocks))):
            hashes.write((keys >> np.uint64(32)).astype(np.uint32))
            by_hash.write((keys & np.uint64(0xFFFFFFFF)).astype(np.uint32))
    writers = {DATA: data, BLOCKS: blocks, HASHES: hashes, BY_HASH: by_hash}
    return {name: writer.finished for name, writer in writers.items()}


def joined_names(names: list[str]) -> TextPiece:
    """Concatenate names."""
    encoded = [name.encode() for name in names]
    ends = np.cumsum(np.fromiter(map(len, encoded), np.uint64, len(encoded)))
    return np.frombuffer(b"".join(encoded), np.uint8), ends


def _encoded(
    pieces: Iterable[TextPiece], data: ArrayWriter, blocks: ArrayWriter
) -> Iterator[TextPiece]:
    """Front-code all texts into the writers; yield each piece."""
    from cocite.kernels.names import BLOCK, encode

    base = 0
    for text, ends in pieces:
        out = np.empty(text.size + 6 * ends.size, np.uint8)
        begins = np.empty(-(-ends.size // BLOCK), np.uint64)
        written = int(encode(text, ends, out, begins))
        data.write(out[:written])
        blocks.write(begins + np.uint64(base))
        base += written
        yield text, ends


def _hashes(text: NDArray[np.uint8], ends: NDArray[np.uint64]) -> NDArray[np.uint32]:
    whole, bounds = text.tobytes(), [0, *ends.tolist()]
    hashes = (name_hash(whole[begin:end]) for begin, end in pairwise(bounds))
    return np.fromiter(hashes, np.uint32, ends.size)


def write_titles(directory: Path, pieces: Iterable[list[str]]) -> dict[str, Entry]:
    """Write all titles in id order, in pieces of a multiple of CODED_BLOCK titles."""
    with (
        ArrayWriter(directory / TITLES_DATA, np.uint8) as data,
        ArrayWriter(directory / TITLES_BLOCKS, np.uint64) as blocks,
    ):
        for _ in _encoded(map(joined_names, pieces), data, blocks):
            pass
    return {TITLES_DATA: data.finished, TITLES_BLOCKS: blocks.finished}


def write_some_titles(directory: Path, titles: Titles, ids: NDArray[np.uint32]) -> dict[str, Entry]:
    """Write only the titles of ``ids``, ascending."""
    pieces = (titles.of(ids[low : low + _PIECE]) for low in range(0, ids.size, _PIECE))
    return write_titles(directory, pieces)


Ids = NDArray[np.uint32]


def match_names(old: Names, new: Names) -> Ids:
    """Return the new id of each old node, uint32[len(old)]; NOWHERE for names not in ``new``."""
    old, new = old.stored, new.stored
    for names in (old, new):
        if isinstance(names, TextNames):
            names.by_hash()  # raises unless hashes ascend; otherwise, searches would miss names
    ids = np.full(len(old), NOWHERE, np.uint32)
    for low in range(0, len(new), _PIECE):
        nodes = np.arange(low, min(low + _PIECE, len(new)))
        found = old.found(
            new.values_of(nodes) if isinstance(new, IntegerNames) else new.names(nodes)
        )
        ids[found[found >= 0]] = nodes[found >= 0]
    return ids
