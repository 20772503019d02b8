"""Names of nodes: by id, by name, by beginning, and by likeness, without loading them all.

Two forms on disk (``store/FORMAT.md``):

* *text*: front-coded blocks of 16 names in order of id; sorted 32-bit hashes (the high half of
  XXH3-64) with their ids for the way back; and, if some names are URLs and ids therefore
  not in the order of names, the ids in that order, for prefix search.
* *integers*: the sorted values; or nothing at all if they are 0 to n - 1.

A lookup by name costs a binary search and the decoding of one block; about 10 to 20 bytes a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.errors import Damaged
from cocite.graph.coded import CODED_BLOCK, coded_texts
from cocite.graph.naming import SCAN_LIMIT, Names
from cocite.store import DeclaredFiles, Facts, Store

if TYPE_CHECKING:
    from cocite.graph.sides import Sides

__all__ = [
    "BLOCKS",
    "BY_HASH",
    "BY_NAME",
    "DATA",
    "HASHES",
    "NAME_FILES",
    "NAME_KINDS",
    "VALUES",
    "Names",
    "name_hash",
    "open_names",
    "sides_told",
    "take_name_files",
]

NAME_FILES = "names."
"""All files of the names begin so; an index holds copies of them."""

NAME_KINDS = "text", "integers", "dense"
"""What names can be."""

DATA, BLOCKS = "names.data", "names.blocks"
HASHES, BY_HASH, BY_NAME = "names.hashes", "names.by_hash", "names.by_name"
VALUES = "names.values"
_FILES: dict[str, dict[str, str]] = {
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


class IntegerNames(Names):
    """Names that are integers; ``values`` is None if every name is its own id."""

    def __init__(
        self, count: int, values: NDArray[np.uint64] | None, path: Path | str = ""
    ) -> None:
        super().__init__(count)
        self._values, self._path = values, path

    @property
    def dense(self) -> bool:
        """Whether every name is its own id."""
        return self._values is None

    def values(self) -> NDArray[np.uint64]:
        """uint64[count], ascending: the integers themselves."""
        return np.arange(self._count, dtype=np.uint64) if self._values is None else self._values

    def names(self, ids: NDArray[Any]) -> list[str]:
        ids = self._check(ids)
        values = ids if self._values is None else self._values[ids]
        return list(map(str, values.tolist()))

    def find(self, name: str) -> int | None:
        if not _INTEGER.fullmatch(name) or str(int(name)) != name:
            return None
        place = self._place(int(name))
        return place if place < self._count and self._value(place) == int(name) else None

    def found(self, names: Sequence[object] | NDArray[Any]) -> NDArray[np.int64]:
        """Of an array of whole numbers all at once."""
        if not isinstance(names, np.ndarray) or names.dtype.kind not in "iu" or not self._count:
            return super().found(names)
        wanted = np.where(names < 0, 0, names).astype(np.uint64)
        places: NDArray[Any] = wanted
        there = wanted < self._count
        if self._values is not None:
            places = np.searchsorted(self._values, wanted)
            there = self._values[np.minimum(places, self._count - 1)] == wanted
        return np.where(there & (names >= 0), places, -1).astype(np.int64)

    def see_that_none_is(self, name: str) -> None:
        if self._values is not None and bool((self._values[1:] <= self._values[:-1]).any()):
            raise self.damaged()

    def damaged(self) -> Damaged:
        return _damaged(self._path)

    def _value(self, place: int) -> int:
        return place if self._values is None else int(self._values[place])

    def _place(self, value: int) -> int:
        """How many names are smaller than ``value``."""
        if self._values is None:
            return min(value, self._count)
        if value >= 2**64:
            return self._count
        return int(np.searchsorted(self._values, np.uint64(value)))

    def _first_with_prefix(self, prefix: str, limit: int, but: str | None = None) -> NDArray[Any]:
        if not _INTEGER.fullmatch(prefix):
            return np.arange(0 if prefix else min(limit, self._count))
        low, width, count = int(prefix), 1, 0
        found: list[NDArray[np.int64]] = []
        while low < 2**64 and count < limit and str(low // width) == prefix:
            begin, end = self._place(low), self._place(low + width)
            found.append(np.arange(begin, min(end, begin + limit - count)))
            count += found[-1].size
            if low == 0:
                break
            low, width = low * 10, width * 10
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def _similar(self, name: str, limit: int) -> list[str]:
        if not _INTEGER.fullmatch(name):
            return []
        place = self._place(int(name))
        around = range(max(0, place - limit), min(self._count, place + limit))
        near = sorted(around, key=lambda i: (abs(self._value(i) - int(name)), i))
        return self.names(np.array(near[:limit], np.int64))


class TextNames(Names):
    """Names that are text, in the form this module's banner describes."""

    def __init__(self, count: int, store: Store) -> None:
        super().__init__(count)
        self._path = store.path
        self._data = store.array(DATA)
        self._blocks = store.array(BLOCKS)
        self._hashes = store.array(HASHES)
        self._by_hash = store.array(BY_HASH)
        self._by_name = store.array(BY_NAME) if store.has(BY_NAME) else None

    def names(self, ids: NDArray[Any]) -> list[str]:
        found = coded_texts(self._data, self._blocks, self._check(ids))
        if found is None:
            raise self.damaged()
        return found

    def damaged(self) -> Damaged:
        return _damaged(self._path)

    def _nodes(self, ids: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Ids out of a file: each is looked at before it is one."""
        if ids.size and int(ids.max()) >= self._count:
            raise self.damaged()
        return ids

    def by_hash(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """The hashes of all names, ascending, and the id of each."""
        if bool((self._hashes[1:] < self._hashes[:-1]).any()):
            raise self.damaged()
        return self._hashes, self._nodes(self._by_hash)

    def find(self, name: str) -> int | None:
        wanted = np.uint32(name_hash(name.encode("utf-8", "surrogatepass")))
        low = int(np.searchsorted(self._hashes, wanted))
        high = int(np.searchsorted(self._hashes, wanted, side="right"))
        for node in self._by_hash[low:high].tolist():
            if node >= self._count:
                raise self.damaged()
            found = self.name(node)
            if found == name:
                return int(node)
            if name_hash(found.encode()) != wanted:
                raise self.damaged()
        return None

    def found(self, names: Sequence[object] | NDArray[Any]) -> NDArray[np.int64]:
        """All at once: the first name of each hash is mostly the one, and else it is looked for."""
        texts = list(map(str, names))
        hashes = (name_hash(text.encode("utf-8", "surrogatepass")) for text in texts)
        wanted = np.fromiter(hashes, np.uint32, len(texts))
        places = np.minimum(np.searchsorted(self._hashes, wanted), self._count - 1)
        if not self._count:
            return np.full(len(texts), -1, np.int64)
        ids = self._nodes(self._by_hash[places])
        each = zip(texts, ids.tolist(), self.names(ids), strict=True)
        found = (i if text == name else self.find(text) for text, i, name in each)
        return np.fromiter((-1 if i is None else i for i in found), np.int64, len(texts))

    def see_that_none_is(self, name: str) -> None:
        wanted = name.encode("utf-8", "surrogatepass")
        rank = self._first(lambda other: other >= wanted)
        if rank < self._count and self.name(self._ranked(rank)) == name:
            raise self.damaged()

    def _first_with_prefix(self, prefix: str, limit: int, but: str | None = None) -> NDArray[Any]:
        begin, end = self._beginning(prefix)
        if but is None:
            return self.ranked(np.arange(begin, min(end, begin + limit)))
        first, last = (min(max(place, begin), end) for place in self._beginning(but))
        before = np.arange(begin, min(first, begin + limit))
        behind = np.arange(last, min(end, last + limit))
        return self.ranked(np.concatenate((before, behind))[:limit])

    def _beginning(self, prefix: str) -> tuple[int, int]:
        """Where the names stand that begin so: together, as behind them come only larger ones."""
        wanted = prefix.encode("utf-8", "surrogatepass")
        begin = self._first(lambda name: name >= wanted)
        return begin, self._first(lambda name: name[: len(wanted)] > wanted)

    @property
    def has_order(self) -> bool:
        """Whether ids are in another order than names, which is stored then."""
        return self._by_name is not None

    def ranked(self, ranks: NDArray[Any]) -> NDArray[Any]:
        """The ids of the names that have so many names before them."""
        return ranks if self._by_name is None else self._nodes(self._by_name[ranks])

    def _ranked(self, rank: int) -> int:
        return int(self.ranked(np.array([rank]))[0])

    def _first(self, reached: Callable[[bytes], bool]) -> int:
        """The lowest rank whose name satisfies a condition that then stays true."""
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            if reached(self.name(self._ranked(middle)).encode()):
                high = middle
            else:
                low = middle + 1
        return low

    def _similar(self, name: str, limit: int) -> list[str]:
        from cocite.kernels.names import distances

        wanted = name.encode("utf-8", "replace")
        if not 1 <= len(wanted) <= 64 or self._count > SCAN_LIMIT:
            # Too long, or too many to compare: those that stand around the place it would have.
            place = self._first(lambda other: other >= wanted)
            around = range(max(0, place - limit // 2), min(self._count, place + limit))
            return self.names(np.array([self._ranked(rank) for rank in around], np.int64))
        out = np.empty(self._count, np.int32)
        distances(self._data, self._blocks, self._count, np.frombuffer(wanted, np.uint8), out)
        best = np.argsort(out, kind="stable")[: 10 * limit]
        best = best[out[best] <= max(2, len(wanted) // 2)]
        # Of equally distant names, first those that begin alike: people get beginnings right.
        ranked = sorted(
            zip(out[best].tolist(), self.names(best), strict=True),
            key=lambda pair: (pair[0], -_alike(pair[1].lower(), name.lower())),
        )
        return [other for _, other in ranked[:limit]]


def _damaged(path: Path | str) -> Damaged:
    return Damaged(
        f"{path}: its names are damaged; see: cocite verify {path}. Copy it again from where it "
        "was whole, or build it again"
    )


def _alike(first: str, second: str) -> int:
    """How many characters two names begin with in common."""
    pairs = zip(first, second, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def name_hash(name: bytes) -> int:
    """The high half of XXH3-64: what names are found by."""
    return xxhash.xxh3_64_intdigest(name) >> 32


def take_name_files(files: DeclaredFiles, kind: str, count: int) -> None:
    """See that the files of ``count`` names of a kind are as declared; raises :class:`Damaged`."""
    files.take(_FILES[kind], {"n": count, "b": -(-count // CODED_BLOCK)}, optional=(BY_NAME,))


def sides_told(facts: Facts, nodes: int) -> Sides | None:
    """What a manifest says of the sides of its nodes; None if they are of one kind."""
    if "sides" not in facts:
        return None
    from cocite.graph.sides import sides_of  # other graphs do not wait for it

    return sides_of(facts, nodes)


def open_names(store: Store) -> Names:
    """The names held by a graph or an index."""
    facts = Facts(store.facts, f"{store.path}: the manifest")
    kind, count = facts.text("names", NAME_KINDS), facts.whole("nodes")
    if kind == "text":
        names = TextNames(count, store)
        names.sides = sides_told(facts, count)
        names.note = "" if names.sides is None else names.sides.note
        return names
    return IntegerNames(count, None if kind == "dense" else store.array(VALUES), store.path)
