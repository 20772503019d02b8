"""Nodes by what people type: the one search behind all commands, completion, the server, Python.

A node matches by its name or its title, whichever is better:

    0  it is the text, as it is written
    1  it is the text in another spelling (``graph/spelling.py``): case, accents, underscores, codes
    2  it begins with the text
    3  one of its words begins with the text
    4  it contains the text
    5  name and title together contain each of its words

Of equal matches, nodes with more in-links come first, then smaller ids. Where nothing matches,
names that are spelt nearly so are suggested.

Cost: a pass over names and titles, some 3 million a second; a text of fewer than 3 characters is
looked for at the beginnings of names alone where there are many, and so is any text without
``passes``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from cocite.deadline import check
from cocite.graph.spelling import SCAN_LIMIT, NameQuery

if TYPE_CHECKING:
    from cocite.graph.sides import Sides


_FOLD_LIMIT = 300_000
"""Names that are looked through in any spelling that means the same."""
_LEAST_PART, _FEW = 3, 50_000
"""Characters of a part that says something, and names of which shorter parts are looked for."""
_SAME, _PREFIX, _WORDS, _NONE = 1, 2, 5, 9
_MOST_WORDS = 8
_PIECE = 1 << 12
Ids = NDArray[np.uint32]


class TitlesLike(Protocol):
    """The titles of the same nodes (``titles/``)."""

    def containing(self, text: str) -> Ids:
        """The ids of those whose titles contain ``text``, ascending."""

    def of(self, ids: NDArray[Any]) -> list[str]:
        """The titles of ``ids``."""


class NamesLike(Protocol):
    """What is asked of names (``graph/names.py``)."""

    sides: Sides | None

    @property
    def stored(self) -> NamesLike:
        """The names as text."""

    @property
    def titles(self) -> Callable[[], TitlesLike | None]:
        """Opens the titles."""

    @property
    def in_links(self) -> Callable[[Ids], NDArray[np.int64]]:
        """Counts in-links."""

    def __len__(self) -> int: ...

    def find(self, name: str) -> int | None:
        """The id of a name."""

    def names(self, ids: NDArray[Any]) -> list[str]:
        """The names of ids."""

    def containing(self, text: str, *, plain: bool = False) -> Ids:
        """The ids of names that contain a text."""

    def with_prefix(self, prefix: str) -> Ids:
        """The ids of names that begin so."""

    def similar(self, name: str, limit: int) -> list[str]:
        """Names that are spelt most like one."""


@dataclass(frozen=True)
class Matches:
    """Nodes, best first: ``ids`` uint32[m], ``ranks`` int8[m] as above, and whether it is their
    titles that match, and not their names, bool[m].
    """

    ids: Ids
    ranks: NDArray[np.int8]
    titled: NDArray[np.bool_]


class Resolver:
    """Find nodes by text."""

    def __init__(self, names: NamesLike) -> None:
        self._names, self._stored = names, names.stored
        self._titles: TitlesLike | None = names.titles()

    def find(self, text: str, among: range | None = None, *, passes: bool = True) -> int | None:
        """The node that is meant without doubt: the one that is called so, or else the only one
        whose name or title is the text in another spelling. None if there is none.
        """
        node = self._stored.find(text)
        if node is not None or not text.strip() or not passes or len(self._stored) > SCAN_LIMIT:
            return node
        found = self.matches(text, among)
        same = found.ids[found.ranks <= _SAME]
        return int(same[0]) if same.size == 1 else None

    def matches(self, text: str, among: range | None = None, *, passes: bool = True) -> Matches:
        """All nodes that match, of some ids if ``among`` is given; all of these without a text."""
        short = len(text) < _LEAST_PART and len(self._stored) > _FEW
        if not text:
            ids = np.arange(len(self._stored), dtype=np.uint32)
        elif short or not passes:
            ids = self._beginning(text, among)
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
        """Names that ``text`` may have meant: itself written otherwise (URL-encoded, blanks as
        underscores, a scheme before it, the mark of a side), the best matches, then the names that
        are spelt most like it. ``matches`` are those of the text, if they are known.
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
        """The ids of those whose names or titles contain a text, ascending."""
        ids = self._stored.containing(text, plain=len(self._stored) > _FOLD_LIMIT)
        return ids if self._titles is None else np.union1d(ids, self._titles.containing(text))

    def _beginning(self, text: str, among: range | None) -> Ids:
        """The ids of those whose names begin so, as it is written, ascending."""
        sides = self._stored.sides
        if sides is not None and among is not None and among.start == 0:
            text = sides.mark + text.removeprefix(sides.mark)
        return self._stored.with_prefix(text)
