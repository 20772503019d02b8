"""The nodes that are asked for, in the order of work, and how their hits become pages."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.graph.labelled import text_of
from cocite.memory import checked_threads
from cocite.query.batch.outputs import Pages
from cocite.query.batch.pieces import Ids, Piece, Rows, answered, piece_of
from cocite.query.batch.question import Found, Question
from cocite.query.ordered import Ordered
from cocite.store import Access

__all__ = ["Progress", "Work"]

_SLICE_ROWS, _MOST_TOGETHER, _OUT_ROWS = 1 << 15, 1024, 1 << 17
_MANY = 0.001
"""The share of the nodes from which on a batch reads most pages of an index."""

Progress = Callable[[str, int, int], None]


class Work:
    """Nodes to ask for, in the order of work, and how they become pages.

    ``nodes`` are names, by default all, or those of a ``side`` of a bipartite graph, by default the
    right one; each is asked for once. ``ids`` is whether pages have the
    numbers of nodes instead of names; ``options`` are those of :class:`Question`.
    """

    def __init__(
        self,
        index: Ordered,
        k: int,
        *,
        nodes: Iterable[object] | None = None,
        side: str | None = None,
        ids: bool = False,
        threads: int | None = None,
        **options: Any,
    ) -> None:
        self.question = Question(index, k, **options)
        self.asked = _chosen(index, nodes, side)
        self.question.check_sites(self.asked)
        self.threads = index.means.threads if threads is None else checked_threads(threads)
        self._ids, self._stopped = ids, Event()

    @property
    def index(self) -> Ordered:
        """What is asked."""
        return self.question.index

    @property
    def nodes(self) -> int:
        """How many nodes are asked for."""
        return self.asked.size

    def order(self, some: slice = slice(None)) -> Ids:
        """Which of the nodes, or of ``some`` of them, comes when: neighbours in a tree one after
        another.
        """
        reader, nodes = self.question.together, np.arange(self.nodes, dtype=np.uint32)[some]
        if reader is None:
            return nodes
        return nodes[np.argsort(reader.places()[self.asked[nodes]], kind="stable")]

    def pieces(self, order: Ids, todo: Iterable[range]) -> Generator[Piece]:
        """The hits of some runs of places, from all threads."""
        most = 1
        if self.question.together is not None:
            most = max(1, min(_MOST_TOGETHER, _SLICE_ROWS // self.question.k))

        def answer(run: range) -> Found:
            return self.question.answer(self.asked[order[run.start : run.stop]])

        def work(run: range) -> Piece:
            return piece_of(run, answer, most, self._stopped)

        with closing(answered(todo, work, self.threads)) as found:
            try:
                yield from found
            finally:
                self._stopped.set()
                found.close()
                self._stopped.clear()

    def advise(self) -> None:
        """Say how the index is read: of many nodes nearly every page will be, so what stands around
        it is welcome; but where the memory given does not hold them all, it would drive out others.
        """
        index, many = self.index, self.nodes >= _MANY * len(self.index.nodes)
        fits = index.stored.store.nbytes <= index.means.memory
        index.stored.store.advise(Access.AROUND if many and fits else Access.SCATTERED)

    def pages(self, rows: Rows, places: slice, first: int = 0) -> Pages:
        """The pages of some nodes, by their numbers among those asked for, of which ``rows`` has
        those from ``first`` on.
        """
        counts, found = rows.of(slice(places.start - first, places.stop - first))
        return self._pages(self.asked[places], counts, found)

    @property
    def none(self) -> Pages:
        """No pages, with the types of those that there will be."""
        nobody = np.empty(0, np.uint32)
        return self._pages(nobody, nobody, np.empty((0, self.question.words), np.uint32))

    def pages_of(self, rows: Rows, numbers: Ids) -> Pages:
        """The same of nodes that are not next to each other."""
        counts, found = rows.of(numbers)
        return self._pages(self.asked[numbers], counts, found)

    def _pages(self, nodes: Ids, counts: Ids, found: Ids) -> Pages:
        numbers = np.ascontiguousarray(found[:, 1:]).view(np.float64)
        columns = [np.ascontiguousarray(column) for column in numbers.T]
        related = found[:, 0]
        named = self._named(nodes), counts, self._named(related)
        titles = self._titled(nodes), self._titled(related)
        (scores, errors), ends = columns[:2], columns[2:]
        return Pages(*named, scores, errors, nodes, related, *titles, *ends)

    def _titled(self, ids: Ids) -> NDArray[Any] | None:
        """Titles, None for none; None if the graph has none at all."""
        if self.index.titles is None:
            return None
        different, where = np.unique(ids, return_inverse=True)
        found = [title or None for title in self.index.titles.of(different)]
        return np.array([*found, None], object)[:-1][where]

    @property
    def chunk(self) -> int:
        """How many nodes' pages are written at once."""
        return max(1, _OUT_ROWS // self.question.k)

    def _named(self, ids: Ids) -> Any:
        """Names, or the numbers themselves; each name is looked up once."""
        if self._ids:
            return ids.astype(np.int64)
        different, where = np.unique(ids, return_inverse=True)
        return np.array(self.index.nodes.stored.names(different), object)[where]


def _chosen(index: Ordered, nodes: Iterable[object] | None, side: str | None) -> Ids:
    names, sides = index.nodes, index.nodes.sides
    if side is not None and sides is None:
        raise UsageError(f"{index.stored.store.path} is not bipartite: leave side out")
    if nodes is None:
        return np.array(sides.named(side) if sides else range(len(names)), np.uint32)
    if isinstance(nodes, str):
        raise UsageError("nodes is one text; give a list of names")
    named = list(nodes)
    if sides is not None and side is not None:
        named = [sides.name(side, text_of(name)) for name in named]
    found = names.ids(named)
    if sides is not None and found.size:
        sides.check_alike(found.tolist(), named)
    _, first = np.unique(found, return_index=True)
    return found[np.sort(first)]
