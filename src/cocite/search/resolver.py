"""Search nodes by parts of their names, list their links, and suggest nodes to start from.

Names and titles are searched, best matches first (``graph/names.py``). An empty search lists all
nodes by descending in-degree. Degrees and links come from the stored graph, which is optional for
an index (``search/source.py``).

A search takes one pass over the names; listing links takes one pass over the links.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cocite.constants import Ints
from cocite.errors import NotAStore, UsageError
from cocite.graph import Graph
from cocite.graph.name_files import Titles
from cocite.graph.names import Names, Resolver
from cocite.index import StoredIndex
from cocite.results import Document, ResultRows, plain
from cocite.search.source import GivenGraph, find_graph, in_links_of
from cocite.storage import evict, kind_of

if TYPE_CHECKING:
    from cocite.search.index import Index

_PIECE = 1 << 22


@dataclass(frozen=True)
class FoundNode:
    """A node with its in- and out-degree, None without the graph.

    ``linked_from`` and ``links_to`` are neighbor names by ascending id, None unless requested.
    """

    node: str
    in_links: int | None
    out_links: int | None
    linked_from: list[str] | None = None
    links_to: list[str] | None = None
    title: str | None = None


@dataclass(frozen=True)
class NodesDocument(Document):
    """The best of ``found`` matches for ``search`` among ``of`` nodes; ``titled`` if the graph has
    titles.
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
        """Search the nodes of a stored graph or an index.

        Parameters
        ----------
        path
            A stored graph or an index.
        search
            Part of a name or title, in any equivalent spelling (``graph/spelling.py``). The default
            matches all nodes.
        k
            The maximum number of nodes to return.
        links
            Also return the names of neighbors.
        graph
            The index's graph, if it was moved.
        side
            In a bipartite graph, the side to search, such as ``"user"``; by default both.

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
                raise UsageError(f"{name} is not bipartite: omit --side (side=...)")
            within = names.sides.named(side)
        ids = Resolver(names).matches(search, None if side is None else within).ids
        chosen = ids[:k]
        called = names.names(chosen)
        if stored is None:
            nodes = [FoundNode(node, None, None) for node in called]
        else:
            places = chosen if len(names) == stored.nodes else stored.names.ids(called)
            nodes = _linked(stored, places.astype(np.int64), called, links)
        if titles is not None:
            pairs = zip(nodes, titles.of(chosen), strict=True)
            nodes = [replace(node, title=title or None) for node, title in pairs]
        return cls(name, search, len(within), int(ids.size), titles is not None, nodes)

    def facts(self) -> dict[str, Any]:
        """Return the requested fields."""
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
    """Return names, titles or None, and the graph or None; ``links`` require the graph."""
    if "://" in path and not links:  # imported only for remote stores
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


def _linked(graph: Graph, ids: Ints, called: Sequence[str], links: bool) -> list[FoundNode]:
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


def _targets(graph: Graph, ids: Ints) -> dict[int, Ints]:
    found: dict[int, list[Ints]] = {node: [] for node in ids.tolist()}
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


def linked_with(graph: Graph, ids: Ints) -> Ints:
    """Return the ids of all in- and out-neighbors of some nodes, ascending."""
    sources = [graph.in_neighbors(node).astype(np.int64) for node in ids.tolist()]
    targets = _targets(graph, ids).values()
    return np.unique(np.concatenate([np.empty(0, np.int64), *sources, *targets]))


# -- nodes to start from -----------------------------------------------------------------


_SPREAD = 4096
"""Number of nodes to examine, evenly spaced by id."""
_BAND = 60.0, 95.0
"""Percentiles of in-degrees. Hubs above them are related to everything, and obscure nodes below
them to little.
"""


def starters(index: Index, most: int) -> list[str]:
    """Return up to ``most`` nodes to start from. Nodes with medium in-degrees come before others;
    in both groups, nodes with titles come first.
    """
    from cocite.kernels.random import scramble

    count = min(len(index.nodes), _SPREAD)
    ids = (np.arange(count) * len(index.nodes) // max(1, count)).astype(np.uint32)
    links = in_links_of(index.stored, index.given, ids)
    linked = links[links > 0]
    low, high = np.percentile(linked, _BAND) if linked.size else (0, 0)
    outside = (links < low) | (links > high)
    order = np.lexsort((scramble.__wrapped__(ids.astype(np.uint64)), outside))[: 4 * most]
    names = [str(name) for name in index.nodes.names(ids[order])]
    titles = index.titles_of(names) or names
    ranked = zip(outside[order].tolist(), (not title for title in titles), names, strict=True)
    return [name for *_, name in sorted(ranked, key=lambda each: each[:2])][:most]
