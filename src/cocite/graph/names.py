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
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload
from urllib.parse import quote, unquote

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.errors import Damaged, UnknownNode, UsageError
from cocite.graph.coded import CODED_BLOCK, coded_texts
from cocite.store import DeclaredFiles, Facts, Store, forget

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
    "checked_id",
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
_SCAN_LIMIT = 3_000_000
"""Names among which a misspelt one is searched by edit distance, or as a part: about a second."""
_FOLD_LIMIT = 300_000
"""The same, in any spelling that means the same."""
_LEAST_PART, _PIECE = 3, 1 << 12
"""Characters of a part that says something, and names that are looked through at a time."""


_SHOWN = 3


def checked_id(node: object, count: int) -> int:
    """``node`` if it is the id of one of ``count`` nodes; raises :class:`UsageError`."""
    if isinstance(node, bool) or not isinstance(node, int | np.integer):
        raise UsageError(f"{node!r} is no id of a node; ids are whole numbers: names.id(name)")
    if not 0 <= node < count:
        raise UsageError(f"{node} is no id of a node; there are {count:,}, from 0 on")
    return int(node)


class TitlesLike(Protocol):
    """What names ask of the titles of the same nodes (``graph/titles``)."""

    def meant(self, text: str) -> NDArray[np.uint32]:
        """The ids of those whose title is ``text``, or has it in it."""

    def of(self, ids: NDArray[Any]) -> list[str]:
        """The titles of ``ids``."""


class Names(ABC):
    """The names of ``len(names)`` nodes. Iteration yields them in order of id."""

    note = ""
    """What is to be said of a name that is not there, if not all nodes of a graph are."""

    sides: Sides | None = None
    """The two sides of a bipartite table, if the nodes are of such; each is a range of ids."""

    titles: Callable[[], TitlesLike | None] = staticmethod(lambda: None)
    """The titles of the nodes, opened when a name is asked for that is not there: it may be one."""

    def __init__(self, count: int) -> None:
        self._count = count

    @property
    def stored(self) -> Names:
        """The names as they are stored, as text: others are told by labels (``labelled.py``)."""
        return self

    def is_one(self, value: object) -> bool:
        """Whether a tuple names one node, and not several."""
        return False

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        for low in range(0, self._count, _PIECE):
            yield from self.names(np.arange(low, min(low + _PIECE, self._count)))

    def __contains__(self, name: object) -> bool:
        return self.find(str(name)) is not None

    def __repr__(self) -> str:
        first = self.names(np.arange(min(self._count, _SHOWN)))
        more = ", ..." if self._count > _SHOWN else ""
        return f"<{self._count:,} names: {', '.join(map(repr, first))}{more}>"

    @overload
    def __getitem__(self, node: int) -> str: ...

    @overload
    def __getitem__(self, node: slice) -> list[str]: ...

    def __getitem__(self, node: int | slice) -> str | list[str]:
        """The name of one id, from the end if it is below 0; of a slice a list of names."""
        if isinstance(node, slice):
            return self.names(np.arange(*node.indices(self._count)))
        below = isinstance(node, int | np.integer) and -self._count <= node < 0
        return self.name(checked_id(node + self._count if below else node, self._count))

    def name(self, node: int) -> str:
        """The name of one id."""
        return self.names(np.array([node]))[0]

    def id(self, name: object) -> int:
        """The id of ``name``; raises :class:`UnknownNode` with the nearest names."""
        found = self.find(str(name))
        if found is None:
            raise self.unknown(name, str(name))
        return found

    def unknown(self, name: object, text: str) -> UnknownNode:
        """What is to be said of a name, ``text``, that is not there; raises :class:`Damaged` if it
        is there and was not found.
        """
        self.stored.see_that_none_is(text)
        titles = self.titles()
        if titles is None or self._count > _SCAN_LIMIT or not text.strip():
            return UnknownNode(name, self.nearest(text), self.note)
        ids = titles.meant(text)[:_SHOWN]
        titled = list(zip(map(str, self.names(ids)), titles.of(ids), strict=True))
        nearest = [node for node, _ in titled] or self.nearest(text)
        return UnknownNode(name, nearest, self.note, titled)

    def ids(self, names: Sequence[object]) -> NDArray[np.uint32]:
        """The ids of many names, uint32[len(names)]; raises :class:`UnknownNode`."""
        return np.fromiter((self.id(name) for name in names), np.uint32, len(names))

    def complete(self, prefix: str, limit: int = 10) -> list[str]:
        """The first ``limit`` names that begin with ``prefix``, in the order of names."""
        return self.names(self._first_with_prefix(prefix, limit))

    def containing(self, text: str, *, plain: bool = False) -> NDArray[np.uint32]:
        """uint32: the ids of all names that contain ``text``, ascending, in any spelling that means
        the same (``spelling.py``), or, ``plain``, in any case only. Reads all names: some 3 million
        a second.
        """
        from cocite.graph.spelling import Wanted

        wanted, found = Wanted(text, plain=plain), []
        for low in range(0, self._count, _PIECE):
            names = self.names(np.arange(low, min(low + _PIECE, self._count)))
            if wanted.within("\n".join(names)):
                places = (i for i, name in enumerate(names, low) if wanted.within(name))
                found.append(np.fromiter(places, np.uint32))
        return np.concatenate(found) if found else np.empty(0, np.uint32)

    def forget(self) -> None:
        """Give back the memory of the files: they are read again when they are needed."""
        forget(*(value for value in vars(self).values() if isinstance(value, np.ndarray)))

    def nearest(self, name: str, limit: int = 5, *, quick: bool = False) -> list[str]:
        """Names that ``name`` may have meant: itself written otherwise (URL-encoded, blanks as
        underscores, a scheme before it), those it begins, the shortest that contain it in any case,
        then the most similar. ``quick`` leaves out what takes a pass over all names.
        """
        spellings = {quote(name, errors="surrogatepass"), unquote(name), name.replace(" ", "_")}
        spellings |= {
            quote(name.replace(" ", "_"), errors="surrogatepass"),
            f"http://{name}",
            f"https://{name}",
        }
        if self.sides is not None:
            spellings.add(self.sides.mark + name)
        found = sorted(s for s in spellings if s != name and self.find(s) is not None)
        found += self.complete(name, limit - len(found)) if name else []
        if quick:
            return found
        within: list[str] = []
        if len(found) < limit and len(name) >= _LEAST_PART and self._count <= _SCAN_LIMIT:
            plain = self._count > _FOLD_LIMIT
            within = sorted(self.names(self.containing(name, plain=plain)), key=len)
        for other in (*within, *self._similar(name, limit)):
            if len(found) < limit and other not in found:
                found.append(other)
        return found

    @abstractmethod
    def names(self, ids: NDArray[Any]) -> list[str]:
        """The names of ``ids``, in their order."""

    @abstractmethod
    def find(self, name: str) -> int | None:
        """The id of ``name``, None if no node has it."""

    @abstractmethod
    def see_that_none_is(self, name: str) -> None:
        """See in another way than :meth:`find` that no node is called so; raises :class:`Damaged`
        if one may be.
        """

    def with_prefix(self, prefix: str) -> NDArray[np.uint32]:
        """The ids of all names that begin with ``prefix``, ascending."""
        found = self._first_with_prefix(prefix, self._count)
        return np.sort(found.astype(np.uint32))

    @abstractmethod
    def _first_with_prefix(self, prefix: str, limit: int) -> NDArray[Any]: ...

    @abstractmethod
    def _similar(self, name: str, limit: int) -> list[str]: ...

    def _check(self, ids: NDArray[Any]) -> NDArray[Any]:
        if ids.size and not (int(ids.min()) >= 0 and int(ids.max()) < self._count):
            raise UsageError(f"ids go from 0 to {self._count - 1}; found {ids.min()}, {ids.max()}")
        return ids


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

    def see_that_none_is(self, name: str) -> None:
        if self._values is not None and bool((self._values[1:] <= self._values[:-1]).any()):
            raise _damaged(self._path)

    def _value(self, place: int) -> int:
        return place if self._values is None else int(self._values[place])

    def _place(self, value: int) -> int:
        """How many names are smaller than ``value``."""
        if self._values is None:
            return min(value, self._count)
        if value >= 2**64:
            return self._count
        return int(np.searchsorted(self._values, np.uint64(value)))

    def _first_with_prefix(self, prefix: str, limit: int) -> NDArray[Any]:
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
            raise self._damaged()
        return found

    def _damaged(self) -> Damaged:
        return _damaged(self._path)

    def _nodes(self, ids: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Ids out of a file: each is looked at before it is one."""
        if ids.size and int(ids.max()) >= self._count:
            raise self._damaged()
        return ids

    def by_hash(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """The hashes of all names, ascending, and the id of each."""
        if bool((self._hashes[1:] < self._hashes[:-1]).any()):
            raise self._damaged()
        return self._hashes, self._nodes(self._by_hash)

    def find(self, name: str) -> int | None:
        wanted = np.uint32(name_hash(name.encode("utf-8", "surrogatepass")))
        low = int(np.searchsorted(self._hashes, wanted))
        high = int(np.searchsorted(self._hashes, wanted, side="right"))
        for node in self._by_hash[low:high].tolist():
            if node >= self._count:
                raise self._damaged()
            found = self.name(node)
            if found == name:
                return int(node)
            if name_hash(found.encode()) != wanted:
                raise self._damaged()
        return None

    def see_that_none_is(self, name: str) -> None:
        wanted = name.encode("utf-8", "surrogatepass")
        rank = self._first(lambda other: other >= wanted)
        if rank < self._count and self.name(self._ranked(rank)) == name:
            raise self._damaged()

    def _first_with_prefix(self, prefix: str, limit: int) -> NDArray[Any]:
        wanted = prefix.encode("utf-8", "surrogatepass")
        begin = self._first(lambda name: name >= wanted)
        # Names that begin so stand together: behind them come only larger ones.
        end = self._first(lambda name: name[: len(wanted)] > wanted)
        end = min(end, begin + limit)
        return self.ranked(np.arange(begin, end))

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
        if not 1 <= len(wanted) <= 64 or self._count > _SCAN_LIMIT:
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
