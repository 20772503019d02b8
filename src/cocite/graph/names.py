"""Node names: lookup by id, name, prefix, substring and similarity, without loading them all.

:class:`Resolver` implements name search for commands, completion, the server and Python. A node
ranks by its name or its title, whichever matches better:

    0  equals the text
    1  equals the text in another spelling (``graph/spelling.py``): case, accents, percent-encoding
    2  begins with the text
    3  has a word that begins with the text
    4  contains the text
    5  name and title together contain every word of the text

Ties go to nodes with more in-links, then to smaller ids. If nothing matches, similar names are
suggested. A search reads all names and titles, about 3 million per second. With more than 50,000
names, a text shorter than 3 characters matches only prefixes of names. If ``passes`` is false, all
texts match only prefixes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from cocite.deadline import check
from cocite.errors import Damaged, UnknownNode, UsageError
from cocite.storage import evict

if TYPE_CHECKING:
    from cocite.graph.sides import Sides


MAX_NODES = 2**32 - 1
"""Maximum number of nodes. Ids are uint32, and the largest uint32 means *no node*."""
Ids = NDArray[np.uint32]
SCAN_LIMIT = 3_000_000
"""Maximum number of names to search by edit distance or substring, in about a second."""
_PIECE = 1 << 12
"""Names to search at a time."""
_SHOWN = 3


def checked_id(node: object, count: int) -> int:
    """Return ``node`` as an int if it is an id below ``count``; raises :class:`UsageError`."""
    if isinstance(node, bool) or not isinstance(node, int | np.integer):
        raise UsageError(
            f"{node!r} is not a node id; ids are integers, as returned by names.id(name)"
        )
    if not 0 <= node < count:
        raise UsageError(f"{node} is not a node id; ids run from 0 to {count - 1:,}")
    return int(node)


def text_of(label: object) -> str:
    """Return the stored name of a label: its ``str``, with NumPy scalars as Python scalars."""
    if isinstance(label, str):
        return str(label)
    if isinstance(label, tuple):
        inner = [repr(part) if isinstance(part, str) else text_of(part) for part in label]
        return f"({', '.join(inner)}{',' * (len(inner) == 1)})"
    return str(label.item() if isinstance(label, np.generic) else label)


class NodeLabels:
    """A graph's original names: ``labels`` maps stored names to them; None if all are integers."""

    def __init__(self, labels: Mapping[str, Hashable] | None) -> None:
        self._labels = labels
        self._texts = {} if labels is None else {label: text for text, label in labels.items()}

    def of(self, text: str) -> Any:
        """Return the label of a stored name, or the name itself for an unseen page."""
        if self._labels is not None:
            return self._labels.get(text, text)
        return int(text) if text.isdecimal() else text

    def text(self, label: object) -> str:
        """Return the stored name of a label."""
        if self._labels is None or isinstance(label, str):
            return text_of(label)
        try:
            return self._texts.get(label, text_of(label))
        except TypeError:  # not hashable
            return text_of(label)

    def has(self, value: object) -> bool:
        """Return whether ``value`` is a label."""
        try:
            return value in self._texts
        except TypeError:
            return False


INTEGERS = NodeLabels(None)
"""Labels of graphs whose original names were integers."""


class NamedTitles(Protocol):
    """Node titles (``graph/name_files.py``)."""

    def containing(self, text: str) -> Ids:
        """Return the ids of nodes whose titles contain ``text``, ascending."""

    def of(self, ids: NDArray[Any]) -> list[str]:
        """Return the titles of ``ids``."""


def damaged_texts(path: Path | str, what: str) -> Damaged:
    """Return the error for invalid names or titles (``what``) in the store at ``path``."""
    return Damaged(
        f"{path}: its {what} are damaged (see: cocite verify {path}). Restore it from an intact "
        "copy, or rebuild it"
    )


class Names(ABC):
    """The names of ``len(names)`` nodes. Iterates in order of id."""

    path: Path | str = ""
    """Path of the store, for messages."""

    labels: NodeLabels | None = None
    """Original names, if they are not text. Searches accept both."""

    note = ""
    """Hint for errors about unknown names."""

    sides: Sides | None = None
    """The sides of a bipartite graph, each a range of ids, or None."""

    titles: Callable[[], NamedTitles | None] = staticmethod(lambda: None)
    """Opens the titles, to check whether an unknown name is a title."""

    in_links: Callable[[NDArray[np.uint32]], NDArray[np.int64]] = staticmethod(
        lambda ids: np.zeros(ids.size, np.int64)
    )
    """Returns the in-degrees of nodes, 0 if unknown. In-degrees break ties between matches."""

    def __init__(self, count: int) -> None:
        self._count = count

    @property
    def stored(self) -> Names:
        """Return the names as stored, as text."""
        if self.labels is None:
            return self
        plain = copy(self)
        plain.labels = None
        return plain

    def is_one(self, value: object) -> bool:
        """Return whether ``value``, such as a tuple, is the label of one node."""
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
        """Return the name of an id, counted from the end if negative, or the names of a slice."""
        if isinstance(node, slice):
            return self.names(np.arange(*node.indices(self._count)))
        below = isinstance(node, int | np.integer) and -self._count <= node < 0
        return self.name(checked_id(node + self._count if below else node, self._count))

    def name(self, node: int) -> str:
        """Return the name of one id."""
        (name,) = self.names(np.array([node]))
        return name  # type: ignore[no-any-return]

    def id(self, name: object) -> int:
        """Return the id of ``name``, or of ``name`` without leading or trailing blanks. Raises
        :class:`UnknownNode` with similar names.
        """
        text = self._called(name)
        found = self._find(text)
        if found is None and self.labels is None and text != (bare := text.strip(" ")):
            return self.id(bare)  # names are stored without these blanks (``graph/spelling.py``)
        if found is None:
            raise self.unknown(name, text)
        return found

    def _text(self, node: int) -> str:
        return self._texts(np.array([node]))[0]

    def _called(self, name: object) -> str:
        return str(name) if self.labels is None else self.labels.text(name)

    def names(self, ids: NDArray[Any]) -> list[Any]:
        """Return the names of ``ids``, in the same order."""
        texts = self._texts(ids)
        return texts if self.labels is None else list(map(self.labels.of, texts))

    def find(self, name: Any) -> int | None:
        """Return the id of ``name``, or None."""
        return self._find(name if self.labels is None else self.labels.text(name))

    def found(self, names: Sequence[object] | NDArray[Any]) -> NDArray[np.int64]:
        """Return the ids of many names, int64[len(names)]; -1 for unknown names."""
        if self.labels is None or (isinstance(names, np.ndarray) and self.labels is INTEGERS):
            return self._found(names)
        return self._found(list(map(self.labels.text, names)))

    def unknown(self, name: object, text: str, *, passes: bool = True) -> UnknownNode:
        """Return the error for an unknown ``name``, stored as ``text``. Unless ``passes`` is true,
        does not read all names. Raises :class:`Damaged` if the name exists but lookups do not find
        it.
        """
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
        """Return the ids of many names, uint32[len(names)]; raises :class:`UnknownNode`."""
        return np.fromiter((self.id(name) for name in names), np.uint32, len(names))

    def _found(self, names: Sequence[object] | NDArray[Any]) -> NDArray[np.int64]:
        each = (self._find(str(name)) for name in names)
        return np.fromiter((-1 if i is None else i for i in each), np.int64, len(names))

    def containing(self, text: str, *, plain: bool = False) -> NDArray[np.uint32]:
        """Return the ids of all names that contain ``text``, uint32, ascending. Matches equivalent
        spellings (``graph/spelling.py``); with ``plain``, only ignores case.
        """
        from cocite.graph.spelling import NameQuery

        return NameQuery(text, plain=plain).among(self._texts, self._count, _PIECE)

    def evict(self) -> None:
        """Release the memory of mapped files."""
        evict(*(value for value in vars(self).values() if isinstance(value, np.ndarray)))

    def suggest(self, name: str, limit: int = 5, *, passes: bool = True) -> list[str]:
        """Suggest names for ``name`` (:meth:`Resolver.suggest`)."""
        return Resolver(self).suggest(name, limit, passes=passes)

    @abstractmethod
    def _texts(self, ids: NDArray[Any]) -> list[str]:
        """Return the stored names of ``ids``, in the same order."""

    @abstractmethod
    def _find(self, name: str) -> int | None:
        """Return the id of a stored name, or None."""

    @abstractmethod
    def see_that_none_is(self, name: str) -> None:
        """Check, independently of :meth:`find`, that no node has this name; raises
        :class:`Damaged`.
        """

    def damaged(self) -> Damaged:
        """Return the error for invalid stored names."""
        return damaged_texts(self.path, "names")

    def with_prefix(self, prefix: str) -> NDArray[np.uint32]:
        """Return the ids of all names that begin with ``prefix``, ascending."""
        return np.sort(self._with_prefix(prefix).astype(np.uint32))

    @abstractmethod
    def _with_prefix(self, prefix: str) -> NDArray[Any]: ...

    @abstractmethod
    def similar(self, name: str, limit: int) -> list[str]:
        """Return the most similar names, nearest first."""

    def _check(self, ids: NDArray[Any]) -> NDArray[Any]:
        signed = ids.dtype.kind != "u"
        if ids.size and (int(ids.max()) >= self._count or (signed and int(ids.min()) < 0)):
            raise UsageError(
                f"ids range from {ids.min()} to {ids.max()}; they must be 0 to {self._count - 1}"
            )
        return ids


_FOLD_LIMIT = 300_000
"""Maximum number of names to search in equivalent spellings."""
_LEAST_PART, _FEW = 3, 50_000
"""Minimum length of a text to search for within names, unless there are at most _FEW names."""
_SAME, _PREFIX, _WORDS, _NONE = 1, 2, 5, 9
_MOST_WORDS = 8


@dataclass(frozen=True)
class Matches:
    """Matching nodes, best first: ``ids`` uint32[m], ``ranks`` int8[m] as in the module's table,
    and ``titled`` bool[m], whether the title matched better than the name.
    """

    ids: Ids
    ranks: NDArray[np.int8]
    titled: NDArray[np.bool_]


class Resolver:
    """Finds nodes by text."""

    def __init__(self, names: Names) -> None:
        self._names, self._stored = names, names.stored
        self._titles: NamedTitles | None = names.titles()

    def find(self, text: str, among: range | None = None, *, passes: bool = True) -> int | None:
        """Return the id that ``text`` identifies: the node with this name; otherwise the only node
        whose name or title equals the text in another spelling; otherwise the only node whose name
        ends with a slash and the text; otherwise None.
        """
        node = self._stored.find(text)
        if node is not None or not text.strip() or not passes or len(self._stored) > SCAN_LIMIT:
            return node
        found = self.matches(text, among)
        same = found.ids[found.ranks <= _SAME]
        if not same.size:
            end = "/" + text
            names = self._stored.names(found.ids)
            same = found.ids[[name.endswith(end) for name in names]]
        return int(same[0]) if same.size == 1 else None

    def matches(self, text: str, among: range | None = None, *, passes: bool = True) -> Matches:
        """Return all matching nodes, or those within ``among``. An empty text matches all nodes."""
        from cocite.graph.spelling import NameQuery

        short = len(text) < _LEAST_PART and len(self._stored) > _FEW
        if not text:
            ids = np.arange(len(self._stored), dtype=np.uint32)
        elif short or not passes:
            sides, prefix = self._stored.sides, text
            if sides is not None and among is not None and among.start == 0:
                prefix = sides.name(sides.titles[0], text)
            ids = self._stored.with_prefix(prefix)
        else:
            ids = self._containing(text)
            if not ids.size and len(words := text.split()) > 1:
                for word in words[:_MOST_WORDS]:
                    these = self._containing(word)
                    ids = these if word is words[0] else np.intersect1d(ids, these)
        if among is not None:
            ids = ids[(ids >= among.start) & (ids < among.stop)]
        wanted, mark = NameQuery(text), ""
        if among is not None and (sides := self._stored.sides) is not None:
            mark = "" if text.startswith(sides.mark) else sides.mark
        by_name, by_title = np.zeros((2, ids.size), np.int8)
        for low in range(0, ids.size if text else 0, _PIECE):
            check()
            some = slice(low, low + _PIECE)
            names = self._stored.names(ids[some])
            by_name[some] = [wanted.how(name.removeprefix(mark)) for name in names]
            by_title[some] = _NONE
            if self._titles is not None:
                by_title[some] = list(map(wanted.how, self._titles.of(ids[some])))
        ranks = np.minimum(np.minimum(by_name, by_title), _WORDS)
        order = np.lexsort((ids, -self._names.in_links(ids), ranks))
        return Matches(ids[order], ranks[order], (by_title < by_name)[order])

    def suggest(
        self, text: str, limit: int = 5, *, passes: bool = True, matches: Matches | None = None
    ) -> list[str]:
        """Suggest names for ``text``: variants (URL-encoded, underscores for blanks, with a scheme
        or the mark of a side), then the best matches, then the most similar names.

        Unless ``passes`` is true, does not read all names. ``matches`` saves searching for ``text``
        again.
        """
        stored = self._stored
        under = text.replace(" ", "_")
        spellings = {under, unquote(text), f"http://{text}", f"https://{text}"}
        spellings |= {quote(each, errors="surrogatepass") for each in (text, under)}
        if stored.sides is not None:
            spellings.add(stored.sides.mark + text)
        found = sorted(s for s in spellings if s != text and stored.find(s) is not None)
        few = passes and len(stored) <= SCAN_LIMIT
        if len(found) < limit and text.strip():
            matches = matches or self.matches(text, passes=few)
            enough = len(text) >= _LEAST_PART
            ids = matches.ids if enough else matches.ids[matches.ranks <= _PREFIX]
            found += stored.names(ids[: limit + len(found)])
        if len(found) < limit and passes:
            found += stored.similar(text, limit)
        return list(dict.fromkeys(found))[:limit]

    def _containing(self, text: str) -> Ids:
        """Return the ids of nodes whose name or title contains ``text``, ascending."""
        ids = self._stored.containing(text, plain=len(self._stored) > _FOLD_LIMIT)
        return ids if self._titles is None else np.union1d(ids, self._titles.containing(text))
