"""Names of nodes: by id, name, beginning, part and likeness, without loading them all.

Two forms on disk (``storage/FORMAT.md``):

* *text*: front-coded blocks of 16 names in order of id; sorted 32-bit hashes (the high half of
  XXH3-64) with their ids for the way back; and, if some names are URLs and ids therefore
  not in the order of names, the ids in that order, for prefix search.
* *integers*: the sorted values; or nothing at all if they are 0 to n - 1.

A lookup by name costs a binary search and the decoding of one block; about 10 to 20 bytes a name.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.errors import Damaged, UnknownNode, UsageError
from cocite.graph.spelling import CODED_BLOCK, coded_texts
from cocite.storage import DeclaredFiles, Facts, Store, evict

if TYPE_CHECKING:
    from cocite.graph.resolver import TitlesLike
    from cocite.graph.sides import Sides


MAX_NODES = 2**32 - 1
"""Ids are uint32, and the last of those means none."""
_PIECE = 1 << 12
"""Names that are looked through at a time."""
_SHOWN = 3


def checked_id(node: object, count: int) -> int:
    """``node`` if it is the id of one of ``count`` nodes; raises :class:`UsageError`."""
    if isinstance(node, bool) or not isinstance(node, int | np.integer):
        raise UsageError(f"{node!r} is no id of a node; ids are whole numbers: names.id(name)")
    if not 0 <= node < count:
        raise UsageError(f"{node} is no id of a node; there are {count:,}, from 0 on")
    return int(node)


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


class Names(ABC):
    """The names of ``len(names)`` nodes. Iteration yields them in order of id."""

    labels: NodeLabels | None = None
    """What names are told by, if not as text: those that are looked for may be such, or text."""

    note = ""
    """What is to be said of a name that is not there, if not all nodes of a graph are."""

    sides: Sides | None = None
    """The two sides of a bipartite table, if the nodes are of such; each is a range of ids."""

    titles: Callable[[], TitlesLike | None] = staticmethod(lambda: None)
    """The titles of the nodes, opened when a name is asked for that is not there: it may be one."""

    in_links: Callable[[NDArray[np.uint32]], NDArray[np.int64]] = staticmethod(
        lambda ids: np.zeros(ids.size, np.int64)
    )
    """How many link to some nodes, which decides between equal matches; 0 where it is not known."""

    def __init__(self, count: int) -> None:
        self._count = count

    @property
    def stored(self) -> Names:
        """The names as they are stored, as text."""
        if self.labels is None:
            return self
        plain = copy(self)
        plain.labels = None
        return plain

    def is_one(self, value: object) -> bool:
        """Whether a tuple names one node, and not several."""
        return self.labels is not None and self.labels.has(value)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        for low in range(0, self._count, _PIECE):
            yield from self.names(np.arange(low, min(low + _PIECE, self._count)))

    def __contains__(self, name: object) -> bool:
        return self.find(self._called(name)) is not None

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
        (name,) = self.names(np.array([node]))
        return name  # type: ignore[no-any-return]

    def id(self, name: object) -> int:
        """The id of ``name``, blanks at its ends left out if it is not there with them; raises
        :class:`UnknownNode` with the nearest names.
        """
        text = self._called(name)
        found = self._find(text)
        if found is None and self.labels is None and text != (bare := text.strip(" ")):
            return self.id(bare)  # as names are stored (``graph/spelling.py``)
        if found is None:
            raise self.unknown(name, text)
        return found

    def _text(self, node: int) -> str:
        return self._texts(np.array([node]))[0]

    def _called(self, name: object) -> str:
        return str(name) if self.labels is None else self.labels.text(name)

    def names(self, ids: NDArray[Any]) -> list[Any]:
        """The names of ``ids``, in their order."""
        texts = self._texts(ids)
        return texts if self.labels is None else list(map(self.labels.of, texts))

    def find(self, name: Any) -> int | None:
        """The id of ``name``, None if no node has it."""
        return self._find(name if self.labels is None else self.labels.text(name))

    def found(self, names: Sequence[object] | NDArray[Any]) -> NDArray[np.int64]:
        """The ids of many names, int64[len(names)]; -1 for those that no node has."""
        if self.labels is None or (isinstance(names, np.ndarray) and self.labels is INTEGERS):
            return self._found(names)
        return self._found(list(map(self.labels.text, names)))

    def unknown(self, name: object, text: str, *, passes: bool = True) -> UnknownNode:
        """What is to be said of a name, ``text``, that is not there; raises :class:`Damaged` if it
        is there and was not found. Without ``passes`` only what takes no pass over all names.
        """
        from cocite.graph.resolver import Resolver
        from cocite.graph.spelling import SCAN_LIMIT

        self.stored.see_that_none_is(text)
        resolver, passes = Resolver(self), passes and len(self) <= SCAN_LIMIT
        matches = resolver.matches(text, passes=passes) if text.strip() else None
        similar = resolver.suggest(text, passes=passes, matches=matches)
        if text in similar:
            raise self.stored.damaged()
        titles = self.titles()
        if titles is None or matches is None:
            return UnknownNode(name, similar, self.note)
        ids = matches.ids[matches.titled][:_SHOWN]
        titled = list(zip(map(str, self.names(ids)), titles.of(ids), strict=True))
        return UnknownNode(name, [node for node, _ in titled] or similar, self.note, titled)

    def ids(self, names: Sequence[object]) -> NDArray[np.uint32]:
        """The ids of many names, uint32[len(names)]; raises :class:`UnknownNode`."""
        return np.fromiter((self.id(name) for name in names), np.uint32, len(names))

    def _found(self, names: Sequence[object] | NDArray[Any]) -> NDArray[np.int64]:
        each = (self._find(str(name)) for name in names)
        return np.fromiter((-1 if i is None else i for i in each), np.int64, len(names))

    def complete(self, prefix: str, limit: int = 10, but: str | None = None) -> list[str]:
        """The first ``limit`` names that begin with ``prefix``, in the order of names; none that
        begins with ``but``.
        """
        return self.names(self._first_with_prefix(prefix, limit, but))

    def containing(self, text: str, *, plain: bool = False) -> NDArray[np.uint32]:
        """uint32: the ids of all names that contain ``text``, ascending, in any spelling that means
        the same (``graph/spelling.py``), or, ``plain``, in any case only. Reads all names: some 3
        million a second.
        """
        from cocite.graph.spelling import NameQuery

        return NameQuery(text, plain=plain).among(self._texts, self._count, _PIECE)

    def evict(self) -> None:
        """Give back the memory of the files: they are read again when they are needed."""
        evict(*(value for value in vars(self).values() if isinstance(value, np.ndarray)))

    def suggest(self, name: str, limit: int = 5, *, passes: bool = True) -> list[str]:
        """Names that ``name`` may have meant (``graph/resolver.py``). Without ``passes`` only what
        takes no pass over all names.
        """
        from cocite.graph.resolver import Resolver

        return Resolver(self).suggest(name, limit, passes=passes)

    @abstractmethod
    def _texts(self, ids: NDArray[Any]) -> list[str]:
        """The names of ``ids`` as text, in their order."""

    @abstractmethod
    def _find(self, name: str) -> int | None:
        """The id of a name as text, None if no node has it."""

    @abstractmethod
    def see_that_none_is(self, name: str) -> None:
        """See in another way than :meth:`find` that no node is called so; raises :class:`Damaged`
        if one may be.
        """

    @abstractmethod
    def damaged(self) -> Damaged:
        """What is to be said of names that cannot be as they are."""

    def with_prefix(self, prefix: str) -> NDArray[np.uint32]:
        """The ids of all names that begin with ``prefix``, ascending."""
        found = self._first_with_prefix(prefix, self._count)
        return np.sort(found.astype(np.uint32))

    @abstractmethod
    def _first_with_prefix(
        self, prefix: str, limit: int, but: str | None = None
    ) -> NDArray[Any]: ...

    @abstractmethod
    def similar(self, name: str, limit: int) -> list[str]:
        """Names that are spelt most like one, nearest first."""

    def _check(self, ids: NDArray[Any]) -> NDArray[Any]:
        if ids.size and not (int(ids.min()) >= 0 and int(ids.max()) < self._count):
            raise UsageError(f"ids go from 0 to {self._count - 1}; found {ids.min()}, {ids.max()}")
        return ids


# -- names -------------------------------------------------------------------------------


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

    def _texts(self, ids: NDArray[Any]) -> list[str]:
        ids = self._check(ids)
        values = ids if self._values is None else self._values[ids]
        return list(map(str, values.tolist()))

    def _find(self, name: str) -> int | None:
        if not _INTEGER.fullmatch(name) or str(int(name)) != name:
            return None
        place = self._place(int(name))
        return place if place < self._count and self._value(place) == int(name) else None

    def _found(self, names: Sequence[object] | NDArray[Any]) -> NDArray[np.int64]:
        """Of an array of whole numbers all at once."""
        if not isinstance(names, np.ndarray) or names.dtype.kind not in "iu" or not self._count:
            return super()._found(names)
        wanted = np.where(names < 0, 0, names).astype(np.uint64)
        places: NDArray[Any] = wanted
        there = wanted < self._count
        if self._values is not None:
            places = np.searchsorted(self._values, wanted)
            there = self._values[np.minimum(places, self._count - 1)] == wanted
        return np.where(there & (names >= 0), places, -1).astype(np.int64)

    def see_that_none_is(self, name: str) -> None:
        """See in another way than :meth:`find` that no node is called so."""
        if self._values is not None and bool((self._values[1:] <= self._values[:-1]).any()):
            raise self.damaged()

    def damaged(self) -> Damaged:
        """What is to be said of names that cannot be as they are."""
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

    def similar(self, name: str, limit: int) -> list[str]:
        """Names that are spelt most like one, nearest first."""
        if not _INTEGER.fullmatch(name):
            return []
        place = self._place(int(name))
        around = range(max(0, place - limit), min(self._count, place + limit))
        near = sorted(around, key=lambda i: (abs(self._value(i) - int(name)), i))
        return self._texts(np.array(near[:limit], np.int64))


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

    def _texts(self, ids: NDArray[Any]) -> list[str]:
        found = coded_texts(self._data, self._blocks, self._check(ids))
        if found is None:
            raise self.damaged()
        return found

    def damaged(self) -> Damaged:
        """What is to be said of names that cannot be as they are."""
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

    def _find(self, name: str) -> int | None:
        wanted = np.uint32(name_hash(name.encode("utf-8", "surrogatepass")))
        low = int(np.searchsorted(self._hashes, wanted))
        high = int(np.searchsorted(self._hashes, wanted, side="right"))
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
        """All at once: the first name of each hash is mostly the one, and else it is looked for."""
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
        """See in another way than :meth:`find` that no node is called so."""
        wanted = name.encode("utf-8", "surrogatepass")
        rank = self._first(lambda other: other >= wanted)
        if rank < self._count and self._text(self._ranked(rank)) == name:
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
            if reached(self._text(self._ranked(middle)).encode()):
                high = middle
            else:
                low = middle + 1
        return low

    def similar(self, name: str, limit: int) -> list[str]:
        """Names that are spelt most like one, nearest first."""
        from cocite.graph.spelling import SCAN_LIMIT
        from cocite.kernels.names import distances

        wanted = name.encode("utf-8", "replace")
        if not 1 <= len(wanted) <= 64 or self._count > SCAN_LIMIT:
            # Too long, or too many to compare: those that stand around the place it would have.
            place = self._first(lambda other: other >= wanted)
            around = range(max(0, place - limit // 2), min(self._count, place + limit))
            return self._texts(np.array([self._ranked(rank) for rank in around], np.int64))
        out = np.empty(self._count, np.int32)
        distances(self._data, self._blocks, self._count, np.frombuffer(wanted, np.uint8), out)
        best = np.argsort(out, kind="stable")[: 10 * limit]
        best = best[out[best] <= max(2, len(wanted) // 2)]
        # Of equally distant names, first those that begin alike: people get beginnings right.
        ranked = sorted(
            zip(out[best].tolist(), self._texts(best), strict=True),
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


def sides_text(facts: Facts, nodes: int) -> Sides | None:
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
        names.sides = sides_text(facts, count)
        names.note = "" if names.sides is None else names.sides.note
        return names
    return IntegerNames(count, None if kind == "dense" else store.array(VALUES), store.path)
