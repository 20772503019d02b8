"""Finding nodes by a part of their names, what they are linked with, and pages to begin with.

Nodes are found by their names and titles, best matches first (``graph/names.py``); without a
text all are, those that most nodes link to first. Links are those of the stored graph, which an
index is asked for (``search/source.py``); without it nodes are found by name alone.

Prominent pages are those that most others link to, each of another kind: one in the list of one
before it is left out, and so is one without related pages. In an index of samples alone, pages that
are in many lists of others stand for them.

Cost: a pass over the names; over the links, for those of some nodes; for prominent pages a pass
over the offsets of the links, and some twenty questions.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from cocite.deadline import limited
from cocite.errors import NotAStore, QueryTimeout, UsageError
from cocite.graph import Graph
from cocite.graph.name_files import Titles
from cocite.graph.names import Names, Resolver
from cocite.index import StoredIndex
from cocite.results import Document, ResultRows, plain
from cocite.search.source import GivenGraph, find_graph, in_links_of, in_offsets_of
from cocite.storage import evict, kind_of

if TYPE_CHECKING:
    from cocite.search.index import Index

_PIECE = 1 << 22


@dataclass(frozen=True)
class FoundNode:
    """A node with its numbers of in-links and out-links, None without the graph. On request it has
    the names of these neighbors, in the order of ids; and its title, if it has one.
    """

    node: str
    in_links: int | None
    out_links: int | None
    linked_from: list[str] | None = None
    links_to: list[str] | None = None
    title: str | None = None


@dataclass(frozen=True)
class NodesDocument(Document):
    """The first of the ``found`` nodes whose names or titles contain ``search``, of all ``of``
    nodes; ``titled`` if the graph has titles.
    """

    path: str
    search: str
    of: int
    found: int
    titled: bool
    nodes: Sequence[FoundNode]

    @classmethod
    def of_path(
        cls,
        path: str | os.PathLike[str],
        search: str = "",
        *,
        k: int = 20,
        links: bool = False,
        graph: GivenGraph = None,
        side: str | None = None,
    ) -> Self:
        """Look through the nodes of the stored graph or index at ``path``.

        Parameters
        ----------
        path
            A stored graph or an index.
        search
            A part of the names, in any case, with blanks or underscores, encoded for addresses or
            not, with accents or not; all nodes by default.
        k
            How many nodes to give.
        links
            Give the names of the nodes that they are linked with, too.
        graph
            Where the graph of an index is now, if it was moved.
        side
            Of a bipartite graph the side that is looked through, by its title, such as ``"user"``;
            by default both.

        Raises
        ------
        UsageError, StoreError
        """
        if type(k) is not int or k < 1:
            raise UsageError(f"k is {k!r}; it must be a whole number, 1 or more")
        name = os.fspath(path)
        names, titles, stored = _opened(name, links, graph)
        within = range(len(names))
        if side is not None:
            if names.sides is None:
                raise UsageError(f"{name} is not bipartite: omit side")
            within = names.sides.named(side)
        ids = Resolver(names).matches(search, None if side is None else within).ids
        chosen = ids[:k]
        called = names.names(chosen)
        if stored is None:
            nodes = [FoundNode(node, None, None) for node in called]
        else:
            nodes = _linked(stored, _ids_in(stored, names, chosen), called, links)
        if titles is not None:
            pairs = zip(nodes, titles.of(chosen), strict=True)
            nodes = [replace(node, title=title or None) for node, title in pairs]
        return cls(name, search, len(within), int(ids.size), titles is not None, nodes)

    def facts(self) -> dict[str, Any]:
        """Return the fields, without those not requested."""
        nodes = [
            {name: value for name, value in plain(each).items() if value is not None}
            for each in self.nodes
        ]
        facts = {title: value for title, value in super().facts().items() if title != "titled"}
        return facts | {"nodes": nodes}

    def rows(self) -> ResultRows:
        """Return a row per node, or per link if links are requested."""
        if not any(each.linked_from is not None for each in self.nodes):
            titles = ("node", "in_links", "out_links", *(["title"] if self.titled else []))
            rows = ((n.node, n.in_links, n.out_links, n.title) for n in self.nodes)
            return ResultRows(titles, (row[: len(titles)] for row in rows))
        return ResultRows(
            ("node", "direction", "other"),
            (
                (each.node, way, other)
                for each in self.nodes
                for way, others in (("in", each.linked_from), ("out", each.links_to))
                for other in others or ()
            ),
        )


def _opened(path: str, links: bool, given: GivenGraph) -> tuple[Names, Titles | None, Graph | None]:
    """Return names, titles if there are any, and the graph if available; ``links`` require the
    graph.
    """
    if "://" in path and not links:  # nobody else waits for copies
        from cocite.io.remote import copied

        path = str(copied(path))
    if kind_of(path) != "index":
        if given:
            raise UsageError(f"{path} is a graph itself: omit --graph (graph=...)")
        graph = Graph.open(path)
        return graph.names, graph.titles, graph
    stored = StoredIndex.open(path)
    names = copy(stored.names)
    names.in_links = partial(in_links_of, stored, given)
    try:
        return names, stored.titles, find_graph(stored, given)
    except NotAStore:
        if links or given:
            raise
        return names, stored.titles, None


def _ids_in(graph: Graph, names: Names, ids: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the graph's ids of nodes of an index, which may hold only selected pages."""
    if len(names) == graph.nodes:
        return ids.astype(np.int64)
    return graph.names.ids(names.names(ids)).astype(np.int64)


def _linked(
    graph: Graph, ids: NDArray[np.int64], called: Sequence[str], links: bool
) -> list[FoundNode]:
    """Return the nodes with their degrees, and with their links if requested."""
    targets = _targets(graph, ids) if links else {}
    found = []
    for node, name in zip(ids.tolist(), called, strict=True):
        sources = graph.in_neighbors(node)
        more: dict[str, Any] = {}
        if links:
            more["linked_from"] = graph.names.names(sources)
            more["links_to"] = graph.names.names(targets[node])
        found.append(FoundNode(name, sources.size, int(graph.out_degrees[node]), **more))
    return found


def _targets(graph: Graph, ids: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """Return the targets of some nodes, from a pass over all links."""
    found: dict[int, list[NDArray[np.int64]]] = {node: [] for node in ids.tolist()}
    offsets, sources = graph.in_offsets, graph.in_sources
    wanted = np.sort(ids).astype(np.uint32)
    for low in range(0, graph.edges, _PIECE):
        piece = sources[low : low + _PIECE]
        places = np.flatnonzero(np.isin(piece, wanted))
        rows = np.searchsorted(offsets, (places + low).astype(np.uint64), side="right") - 1
        for node in np.unique(piece[places]).tolist():
            found[node].append(rows[piece[places] == node])
        evict(sources[low : low + _PIECE])
    nothing = np.empty(0, np.int64)
    return {node: np.concatenate([nothing, *rows]) for node, rows in found.items()}


def linked_with(graph: Graph, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the ids of all in- and out-neighbors of some nodes, ascending."""
    sources = [graph.in_neighbors(node).astype(np.int64) for node in ids.tolist()]
    targets = _targets(graph, ids).values()
    return np.unique(np.concatenate([np.empty(0, np.int64), *sources, *targets]))


# -- prominent pages ---------------------------------------------------------------------


_CANDIDATES, _NEAR = 400, 20
"""Pages that are looked at, and how far in the list of one before it a page may not be."""
_HUBS = 1000
"""Most pages with many in-links to skip: one in fifty of the others, up to this number."""
_LISTS, _LISTED = 40, 10
"""Lists that are made where no links are at hand, and how many pages of each are counted."""
_RANK_PIECE = 1 << 20
_LONGEST = 2.0
"""Seconds after which the names found so far are enough."""


def prominent(index: Index, most: int) -> list[tuple[str, str | None]]:
    """Return up to ``most`` names with their titles; None for a page without title."""
    found: list[tuple[str, str | None]] = []
    near: set[str] = set()
    try:
        with limited(_LONGEST):
            for name in _candidates(index):
                if name in near:
                    continue
                hits = index.related(name, _NEAR)
                if hits:
                    found.append((name, (index.titles_of([name]) or [""])[0] or None))
                    near.update(str(hit.node) for hit in hits)
                if len(found) == most:
                    break
    except QueryTimeout:
        pass  # a large graph has large lists: what there is will do
    return found


def _candidates(index: Index) -> Iterator[str]:
    """Yield names, the most prominent first."""
    offsets = in_offsets_of(index.stored, index.given)
    if offsets is None:
        yield from _listed(index)
        return
    ids = _most_linked(offsets, index)
    names = [str(name) for name in index.nodes.names(ids)]
    titles = index.titles_of(names)
    if titles is not None:
        yield from (name for name, title in zip(names, titles, strict=True) if title)
        yield from (name for name, title in zip(names, titles, strict=True) if not title)
    else:
        yield from names


def _most_linked(offsets: NDArray[np.uint64], index: Index) -> NDArray[np.uint32]:
    """Return the ids of the pages with most in-links, most first, without hubs."""
    hubs = min(max(0, len(index.nodes) - _HUBS) // 50, _HUBS)
    best, ids = np.empty(0, np.int64), np.empty(0, np.int64)
    for begin in range(0, len(index.nodes), _RANK_PIECE):
        mine = np.arange(begin, min(begin + _RANK_PIECE, len(index.nodes)))
        there = index.stored.in_graph(mine.astype(np.uint32)).astype(np.int64)
        degrees = (offsets[there + 1] - offsets[there]).astype(np.int64)
        best, ids = np.append(best, degrees), np.append(ids, mine)
        order = np.lexsort((ids, -best))[: hubs + _CANDIDATES]
        best, ids = best[order], ids[order]
    return ids[best > 0][hubs:].astype(np.uint32)


def _listed(index: Index) -> list[str]:
    """Return names of pages that occur in many lists, widely spaced in order of ids."""
    count, seen = len(index.nodes), Counter[str]()
    for place in sorted({each * count // _LISTS for each in range(_LISTS)}) if count else ():
        seen.update(str(hit.node) for hit in index.related(index.nodes.name(place), _LISTED))
    return [name for name, _ in seen.most_common()]
