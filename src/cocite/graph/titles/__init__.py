"""Titles of nodes, shown beside their names; most nodes of a graph may have none.

They are stored as names are, front-coded in blocks of 16 in order of id (``store/FORMAT.md``), an
empty one for a node without a title, which takes two bytes. A graph without titles has no such
files. They say nothing of what is related: the digest of a graph leaves them out.

Cost: a lookup decodes one block; a search reads all, some 3 million a second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import Damaged
from cocite.graph.coded import CODED_BLOCK, coded_texts
from cocite.graph.naming import checked_id
from cocite.store import DeclaredFiles, Store, forget

__all__ = [
    "TITLES_BLOCKS",
    "TITLES_DATA",
    "TITLE_FILES",
    "Titles",
    "open_titles",
    "take_title_files",
]

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
        from cocite.graph.spelling import Wanted

        wanted, found = Wanted(text), [np.empty(0, np.uint32)]
        for low in range(0, self._count, _PIECE):
            titles = self.of(np.arange(low, min(low + _PIECE, self._count)))
            if wanted.within("\n".join(titles)):
                places = (i for i, title in enumerate(titles, low) if wanted.within(title))
                found.append(np.fromiter(places, np.uint32))
        return np.concatenate(found)

    def meant(self, text: str) -> NDArray[np.uint32]:
        """uint32: the ids of all nodes whose title is ``text``, in any spelling that means the same
        and with any blanks; if there is none, of those whose titles contain it.
        """
        from cocite.graph.spelling import folded

        def even(text: str) -> str:
            return " ".join(folded(text).split())

        wanted = even(text)
        same, within = [], []
        for low in range(0, self._count, _PIECE):
            titles = self.of(np.arange(low, min(low + _PIECE, self._count)))
            if wanted not in even("\n".join(titles)):
                continue
            for node, title in enumerate(map(even, titles), low):
                if title == wanted:
                    same.append(node)
                elif not same and wanted in title:
                    within.append(node)
        return np.array(same or within, np.uint32)

    def forget(self) -> None:
        """Give back the memory of the files: they are read again when they are needed."""
        forget(self._data, self._blocks)


def open_titles(store: Store, count: int) -> Titles | None:
    """The titles held by a graph or an index of ``count`` nodes; None if it has none."""
    return Titles(store, count) if store.has(TITLES_DATA) else None


def take_title_files(files: DeclaredFiles, count: int) -> None:
    """See that the files of titles are as declared, if there are any; raises :class:`Damaged`."""
    if files.starting(TITLE_FILES):
        files.take(_FORMS, {"b": -(-count // CODED_BLOCK)})
