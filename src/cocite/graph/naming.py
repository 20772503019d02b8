"""What all names of nodes answer: by id, by name, by beginning, by a part, and by likeness.

How they lie on disk, and what each form does quickly, is in ``names.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, overload
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from cocite.errors import Damaged, UnknownNode, UsageError
from cocite.store import forget

if TYPE_CHECKING:
    from cocite.graph.sides import Sides

__all__ = ["SCAN_LIMIT", "Names", "TitlesLike", "checked_id"]

SCAN_LIMIT = 3_000_000
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
        titles, similar = self.titles(), self.nearest(text)
        if text in similar:
            raise self.stored.damaged()
        if titles is None or self._count > SCAN_LIMIT or not text.strip():
            return UnknownNode(name, similar, self.note)
        ids = titles.meant(text)[:_SHOWN]
        titled = list(zip(map(str, self.names(ids)), titles.of(ids), strict=True))
        nearest = [node for node, _ in titled] or similar
        return UnknownNode(name, nearest, self.note, titled)

    def ids(self, names: Sequence[object]) -> NDArray[np.uint32]:
        """The ids of many names, uint32[len(names)]; raises :class:`UnknownNode`."""
        return np.fromiter((self.id(name) for name in names), np.uint32, len(names))

    def found(self, names: Sequence[object] | NDArray[Any]) -> NDArray[np.int64]:
        """The ids of many names, int64[len(names)]; -1 for those that no node has."""
        each = (self.find(str(name)) for name in names)
        return np.fromiter((-1 if i is None else i for i in each), np.int64, len(names))

    def complete(self, prefix: str, limit: int = 10, but: str | None = None) -> list[str]:
        """The first ``limit`` names that begin with ``prefix``, in the order of names; none that
        begins with ``but``.
        """
        return self.names(self._first_with_prefix(prefix, limit, but))

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
        if len(found) < limit and len(name) >= _LEAST_PART and self._count <= SCAN_LIMIT:
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
    def _similar(self, name: str, limit: int) -> list[str]: ...

    def _check(self, ids: NDArray[Any]) -> NDArray[Any]:
        if ids.size and not (int(ids.min()) >= 0 and int(ids.max()) < self._count):
            raise UsageError(f"ids go from 0 to {self._count - 1}; found {ids.min()}, {ids.max()}")
        return ids
