"""The stored graph: in-links in compressed sparse rows, out-degrees and names.

The in-neighbors of node v are ``in_sources[in_offsets[v] : in_offsets[v + 1]]``, ascending. In a
weighted graph, ``in_weights`` holds the weights of the same links in the same order. All arrays are
mapped read-only.

A *hub* has links to or from more than a fifth of all pages, at least LEAST links, and at least
twice the mean degree. Small and dense graphs therefore have none. A page that is linked with nearly
all others says little about any of them. Index builds report hubs, so that users can down-weight or
exclude them.

An *unseen page* gets the last id, ``nodes``. The page comes last in every row that contains it, and
no other id changes. Draws are keyed by ids, so walks equal those on a graph that contains the page.
Adding the page copies all links, to a scratch file if memory is short.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.errors import Damaged, UsageError
from cocite.graph.blocks import DEGREES, OFFSETS, SOURCES, WEIGHTS, Links
from cocite.graph.convert import Exchanged
from cocite.graph.links import links_of
from cocite.graph.name_files import NAME_FILES, NAME_KINDS, TITLES_DATA, sides_text, take_text_files
from cocite.graph.names import MAX_NODES, Names, checked_id
from cocite.options import shown
from cocite.storage import DeclaredFiles, Facts, Store, evict
from cocite.storage.spool import Scratch

if TYPE_CHECKING:
    from cocite.graph.sides import Sides


_PIECE = 1 << 14
"""Nodes or links to examine at a time."""
_LARGEST_SUM = 1e300
_DROPPED = "duplicates", "self_loops", "bad_rows"
_FILES = {OFFSETS: "<u8[n + 1]", SOURCES: "<u4[m]", DEGREES: "<u4[n]", WEIGHTS: "<f4[m]"}


@dataclass(frozen=True)
class GraphInfo:
    """What ``cocite info`` reports about a graph. Unweighted graphs have None for all weights."""

    nodes: int
    edges: int
    without_in_links: int
    without_out_links: int
    isolated: int
    largest_in_degree: int
    largest_in_degree_node: str | None
    largest_out_degree: int
    largest_out_degree_node: str | None
    names: str
    rows: int
    undirected: bool
    duplicates: int
    self_loops: int
    bad_rows: int
    smallest_weight: float | None
    largest_weight: float | None
    total_weight: float | None
    bytes: int


class Graph(Exchanged):
    """A graph on disk, created by :func:`cocite.ingest` and opened by :meth:`open`."""

    def __init__(self, store: Store) -> None:
        if not isinstance(store, Store):
            raise UsageError(
                f"Graph() does not accept {shown(store)}. Open a stored graph with "
                "cocite.Graph.open(path), and other links with cocite.open_graph(links)"
            )
        super().__init__(store)
        check_graph(store)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = True) -> Graph:
        """Open a graph in a directory, or copy it from a URL with fsspec.

        Only the manifest is read. Unless ``verify`` is false, computations first verify the
        checksums of all files (:meth:`check`). Raises :class:`~cocite.errors.NotAStore`,
        :class:`~cocite.errors.WrongFormat` or :class:`~cocite.errors.Damaged`.
        """
        place = os.fspath(path)
        if "://" in place:  # imported only for copies
            from cocite.io.remote import copied

            place = str(copied(place, "graph"))
        return cls(Store.open(place, "graph", verify=verify))

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_")]

    def __repr__(self) -> str:
        return f"Graph({str(self.path)!r}, nodes={self.nodes}, edges={self.edges})"

    @property
    def sides(self) -> Sides | None:
        """Return the sides of a bipartite graph, each a range of ids; None for other graphs."""
        return self.names.sides

    def in_neighbors(self, node: int) -> NDArray[np.uint32]:
        """Return the ids of the nodes that link to ``node``, uint32, ascending."""
        node = checked_id(node, self.nodes)
        begin, end = int(self.in_offsets[node]), int(self.in_offsets[node + 1])
        found = self.in_sources[begin:end]
        if found.size != end - begin or (found.size and int(found.max()) >= self.nodes):
            raise Damaged.graph(self.path, "some links point outside the graph")
        return found

    def out_neighbors(self, node: int) -> NDArray[np.uint32]:
        """Return the ids of the nodes that ``node`` links to, uint32, ascending.

        The first call transposes all links (:func:`~cocite.graph.links.links_of`), using at most
        half of the available memory. The result takes 4 bytes per link and 8 per node until the
        graph is closed.
        """
        node = checked_id(node, self.nodes)
        begin, end = self._out_links.offsets[node : node + 2].tolist()
        return self._out_links.neighbors[begin:end]

    @cached_property
    def _out_links(self) -> Links:
        return links_of(self, "out")

    @cached_property
    def hubs(self) -> tuple[Hub, ...]:
        """Return the hubs: pages with links to or from more than a fifth of all pages, those with
        the most links first. Small and dense graphs have none.
        """
        return hubs_of(self.in_offsets, self.out_degrees, self.names)

    @cached_property
    def digest(self) -> str:
        """Return a checksum of links, weights and names, the same for equal graphs."""
        return self._store.manifest.digest(OFFSETS, SOURCES, WEIGHTS, NAME_FILES)

    @property
    def nbytes(self) -> int:
        """Return the size of all arrays on disk."""
        return self._store.nbytes

    def info(self) -> GraphInfo:
        """Return counts and sizes. Reads all degrees once."""
        facts = self._store.facts
        in_degrees = np.diff(self.in_offsets)
        if int(self.in_offsets[0]) or int(in_degrees.max(initial=0)) > self.edges:
            raise Damaged.graph(self.path, "some links point outside the graph")
        outs = self.out_degrees
        weights = facts.get("weights", {})
        return GraphInfo(
            nodes=self.nodes,
            edges=self.edges,
            without_in_links=int((in_degrees == 0).sum()),
            without_out_links=int((outs == 0).sum()),
            isolated=int(((in_degrees == 0) & (outs == 0)).sum()),
            largest_in_degree=int(in_degrees.max(initial=0)),
            largest_in_degree_node=self._first_largest(in_degrees),
            largest_out_degree=int(outs.max(initial=0)),
            largest_out_degree_node=self._first_largest(outs),
            names={"dense": "integers 0 to n - 1"}.get(facts["names"], facts["names"]),
            rows=facts["rows"],
            undirected=facts["undirected"],
            **{name: facts["dropped"][name] for name in _DROPPED},
            smallest_weight=weights.get("smallest"),
            largest_weight=weights.get("largest"),
            total_weight=weights.get("sum"),
            bytes=self.nbytes,
        )

    def _first_largest(self, degrees: NDArray[Any]) -> str | None:
        return self.names.name(int(degrees.argmax())) if degrees.size else None


def check_graph(store: Store) -> None:
    """Check a graph's manifest and file sizes, without reading the files. Raises
    :class:`Damaged`.
    """
    facts = Facts(store.facts, f"{store.path}: the manifest")
    nodes, edges = facts.whole("nodes", 0, MAX_NODES), facts.whole("edges")
    facts.text("names", NAME_KINDS)
    sides_text(facts, nodes)
    facts.whole("rows")
    facts.flag("undirected")
    facts.flag("self_loops_kept")
    facts.groups("sources")
    dropped = facts.group("dropped")
    for name in _DROPPED:
        dropped.whole(name)
    if "excluded" in store.facts:
        for name in ("nodes", "links", "unknown"):
            facts.group("excluded").whole(name)
    if WEIGHTS in store.manifest.files:
        weights = facts.group("weights")
        for name in ("sum", *(("smallest", "largest") if edges else ())):
            weights.number(name, 0, _LARGEST_SUM)
    files = DeclaredFiles(store.path, store.manifest.files)
    files.take(_FILES, {"n": nodes, "m": edges}, optional=(WEIGHTS,))
    take_text_files(files, facts.text("names"), nodes)
    if TITLES_DATA in store.manifest.files:
        titles = facts.group("titles")
        for name in ("nodes", "unknown", "others"):
            titles.whole(name)
        titles.groups("sources")
    files.no_more()


LEAST, _SHARE = 50, 5
"""A hub has more than nodes / _SHARE in-links or out-links, at least LEAST, and at least twice the
mean degree.
"""
_NAMED = 3
"""Maximum number of hubs to name in a sentence."""


class Hub(NamedTuple):
    """A page with its in-degree and out-degree."""

    node: str
    in_links: int
    out_links: int


def hubs_of(
    in_offsets: NDArray[np.uint64], out_degrees: NDArray[np.uint32], names: Names
) -> tuple[Hub, ...]:
    """Return the hubs by the larger of in-degree and out-degree, descending, then by id."""
    nodes = out_degrees.size
    least = max(LEAST, 2 * int(in_offsets[-1]) / max(1, nodes))
    found = []
    for low in range(0, nodes, _PIECE):
        outs = out_degrees[low : low + _PIECE].astype(np.int64)
        ins = np.diff(in_offsets[low : low + _PIECE + 1]).astype(np.int64)
        most = np.maximum(ins, outs)
        for at in np.flatnonzero((most * _SHARE > nodes) & (most >= least)).tolist():
            found.append((-int(most[at]), low + at, int(ins[at]), int(outs[at])))
        evict(in_offsets, out_degrees)
    found.sort()
    called = names.names(np.array([node for _, node, _, _ in found], np.int64))
    return tuple(
        Hub(name, into, out) for name, (_, _, into, out) in zip(called, found, strict=True)
    )


def hubs_in_words(hubs: Sequence[Hub], nodes: int) -> str:
    """Describe the first few hubs, ``x links to 900 of the 1,000 pages``, and count the others."""
    clauses: list[str] = []
    for hub in hubs[:_NAMED]:
        of = "" if clauses else f" of the {nodes:,} pages"
        if hub.out_links >= hub.in_links:
            clauses.append(f"{hub.node} links to {hub.out_links:,}{of}")
        else:
            clauses.append(f"{hub.in_links:,}{of} link to {hub.node}")
    if len(hubs) > _NAMED:
        more = len(hubs) - _NAMED
        what = "more pages are" if more > 1 else "more page is"
        clauses.append(f"and {more:,} {what} linked with more than a fifth of all pages")
    return ", ".join(clauses)


Ids = NDArray[np.uint32]


@dataclass(frozen=True)
class UnseenPage:
    """The links of an unseen page: out-neighbors ``out`` uint32[o] and in-neighbors ``into``
    uint32[i], ascending and distinct, with float32 weights.
    """

    out: Ids
    into: Ids
    out_weights: NDArray[np.float32]
    into_weights: NDArray[np.float32]

    def row(self, way: str) -> tuple[Ids, NDArray[np.float32]]:
        """Return the page's own row and weights for direction ``way`` (``in``, ``out``, ``any``).
        A neighbor linked both ways occurs twice, with the in-link first.
        """
        ins, outs = (self.into, self.into_weights), (self.out, self.out_weights)
        return ins if way == "in" else outs if way == "out" else _merged(ins, outs)

    def rows(self, way: str) -> tuple[Ids, NDArray[np.float32]]:
        """Return the nodes whose rows contain the page, ascending, and the weights there."""
        ins, outs = (self.into, self.into_weights), (self.out, self.out_weights)
        return outs if way == "in" else ins if way == "out" else _merged(outs, ins)


def _merged(*rows: tuple[Ids, NDArray[np.float32]]) -> tuple[Ids, NDArray[np.float32]]:
    """Merge two rows by ascending id. For equal ids, the first row's entry comes first."""
    ids, weights = (np.concatenate(each) for each in zip(*rows, strict=True))
    order = np.argsort(ids, kind="stable")
    return ids[order], weights[order]


def with_page(links: Links, page: UnseenPage, way: str, memory: int, scratch: Scratch) -> Links:
    """Return a copy of ``links``, of direction ``way``, that includes ``page``.

    The copy is weighted if ``links`` are. The copy is in memory if ``memory`` bytes can hold two
    copies, and in ``scratch`` otherwise.
    """
    if way == "both":
        assert links.back is not None
        ins = with_page(replace(links, back=None), page, "in", memory, scratch)
        return replace(ins, back=with_page(links.back, page, "out", memory, scratch))
    own, own_weights = page.row(way)
    into, into_weights = page.rows(way)
    nodes, more = links.nodes, into.size
    assert nodes < MAX_NODES
    room = Scratch(None) if 2 * links.nbytes <= memory else scratch
    offsets = room.zeros(nodes + 2, np.uint64)
    ends = [0, *(into.astype(np.int64) + 1).tolist(), nodes + 1]
    for before, (low, high) in enumerate(pairwise(ends)):
        np.add(links.offsets[low:high], np.uint64(before), out=offsets[low:high])
    offsets[nodes + 1] = links.edges + more + own.size
    cuts = links.offsets[into.astype(np.int64) + 1].astype(np.int64)
    newcomer = np.full(more, nodes, np.uint32)
    neighbors = _spliced(links.neighbors, cuts, newcomer, own, room)
    weights = None
    if links.weights is not None:
        weights = _spliced(links.weights, cuts, into_weights, own_weights, room)
    return Links(offsets, neighbors, weights)


def _spliced(
    values: NDArray[Any], cuts: NDArray[np.int64], put: NDArray[Any], own: NDArray[Any], to: Scratch
) -> NDArray[Any]:
    """Return ``values`` with ``put[i]`` inserted before position ``cuts[i]`` (``cuts`` must
    ascend), and ``own`` appended.
    """
    found = to.zeros(values.size + put.size + own.size, values.dtype)
    for i, (low, high) in enumerate(pairwise((0, *cuts.tolist(), values.size))):
        found[low + i : high + i] = values[low:high]
    found[cuts + np.arange(put.size)] = put
    found[values.size + put.size :] = own
    return found


class NamesAndOne(Names):
    """Names with one more node, found only by its exact name."""

    def __init__(self, names: Names, name: str) -> None:
        super().__init__(len(names) + 1)
        self._names, self._own, self.note = names, name, names.note
        self.titles, self.labels, self.path = names.titles, names.labels, names.path

    def names(self, ids: NDArray[Any]) -> list[Any]:
        """Return the names of ``ids``, in the same order."""
        ids = self._check(ids)
        own = ids == self._count - 1
        known = iter(self._names.names(ids[~own]))
        return [self._own if mine else next(known) for mine in own.tolist()]

    def _texts(self, ids: NDArray[Any]) -> list[str]:
        return self.stored.names(ids)

    def _find(self, name: str) -> int | None:
        return self._count - 1 if name == self._own else self._names.find(name)

    def see_that_none_is(self, name: str) -> None:
        """Check that no node of the graph has this name."""
        self._names.see_that_none_is(name)

    @property
    def stored(self) -> Names:
        """Return the names as stored."""
        return NamesAndOne(self._names.stored, self._own)

    def evict(self) -> None:
        """Release the memory of mapped files."""
        self._names.evict()

    def _with_prefix(self, prefix: str) -> NDArray[Any]:
        return self._names._with_prefix(prefix)

    def similar(self, name: str, limit: int) -> list[str]:
        """Return the most similar names in the graph."""
        return self._names.similar(name, limit)
