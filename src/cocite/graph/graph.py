"""The stored graph: in-links in compressed sparse rows, out-degrees and names.

The in-neighbours of node v are ``in_sources[in_offsets[v] : in_offsets[v + 1]]``, ascending. In a
weighted graph ``in_weights`` holds the weights of the same links, in the same order. All arrays
are read-only views of files; opening a graph reads its manifest only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import Damaged, UsageError
from cocite.graph.exchange import Exchanged
from cocite.graph.labelled import names_of
from cocite.graph.links import out_links
from cocite.graph.names import NAME_FILES, NAME_KINDS, Names, sides_told, take_name_files
from cocite.graph.naming import checked_id
from cocite.graph.rows import DEGREES, OFFSETS, SOURCES, WEIGHTS, rows_fault
from cocite.graph.titles import TITLES_DATA, Titles, open_titles, take_title_files
from cocite.store import Access, DeclaredFiles, Facts, Store

if TYPE_CHECKING:
    from cocite.graph.hubs import Hub
    from cocite.graph.sides import Sides

__all__ = [
    "DEGREES",
    "MAX_NODES",
    "OFFSETS",
    "SOURCES",
    "WEIGHTS",
    "Graph",
    "GraphInfo",
    "check_graph",
]

_PIECE = 1 << 17
"""Nodes or links that are looked at, and in memory, at a time."""
_LARGEST_SUM = 1e300
_FILES = {OFFSETS: "<u8[n + 1]", SOURCES: "<u4[m]", DEGREES: "<u4[n]", WEIGHTS: "<f4[m]"}
MAX_NODES = 2**32 - 1
"""Ids are uint32, and the last of those means none."""


@dataclass(frozen=True)
class GraphInfo:
    """What ``cocite info`` shows of a graph; the three weights are None if links have none."""

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
    """A graph on disk. Open one with :meth:`open`, make one with :func:`cocite.ingest`, or of what
    is in memory (:meth:`from_edges`, :meth:`from_scipy`, :meth:`from_networkx`,
    :meth:`from_igraph`), and turn it back into such (:meth:`to_networkx`, ...).
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        check_graph(store)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = True) -> Graph:
        """Open the directory ``path``, or a copy of what lies at a URL that fsspec reads; nothing
        is read but its manifest. Whatever is computed from
        it first compares its files with their checksums (:meth:`check`), unless ``verify`` is
        false.

        Raises :class:`~cocite.errors.NotAStore`, :class:`~cocite.errors.WrongFormat` or
        :class:`~cocite.errors.Damaged`.
        """
        place = os.fspath(path)
        if "://" in place:  # nobody else waits for copies
            from cocite.copies import copied

            place = str(copied(place, "graph"))
        return cls(Store.open(place, "graph", verify=verify))

    def __repr__(self) -> str:
        return f"Graph({str(self.path)!r}, nodes={self.nodes}, edges={self.edges})"

    @property
    def store(self) -> Store:
        """The directory and its manifest."""
        return self._store

    @property
    def path(self) -> Any:
        """Where the graph is."""
        return self._store.path

    @property
    def nodes(self) -> int:
        """Number of nodes; their ids are 0 to nodes - 1."""
        return int(self._store.facts["nodes"])

    @property
    def edges(self) -> int:
        """Number of distinct links."""
        return int(self._store.facts["edges"])

    @cached_property
    def in_offsets(self) -> NDArray[np.uint64]:
        """uint64[nodes + 1]: where each node's in-neighbours begin."""
        return self._store.array(OFFSETS)

    @cached_property
    def in_sources(self) -> NDArray[np.uint32]:
        """uint32[edges]: the in-neighbours, ascending within a node."""
        return self._store.array(SOURCES)

    @cached_property
    def in_weights(self) -> NDArray[np.float32] | None:
        """float32[edges]: the weights of the links in ``in_sources``; None if they have none."""
        return self._store.array(WEIGHTS) if WEIGHTS in self._store.manifest.files else None

    @cached_property
    def out_degrees(self) -> NDArray[np.uint32]:
        """uint32[nodes]: how many nodes each node links to."""
        return self._store.array(DEGREES)

    @cached_property
    def names(self) -> Names:
        """The names of the nodes."""
        return names_of(self._store)

    @property
    def sides(self) -> Sides | None:
        """The two sides of a bipartite graph, each a range of ids; None for nodes of one kind."""
        return self.names.sides

    @cached_property
    def titles(self) -> Titles | None:
        """The titles of the nodes; None if it has none."""
        return open_titles(self._store, self.nodes)

    def in_neighbours(self, node: int) -> NDArray[np.uint32]:
        """uint32: the ids of the nodes that link to ``node``, an id, ascending."""
        node = checked_id(node, self.nodes)
        begin, end = int(self.in_offsets[node]), int(self.in_offsets[node + 1])
        found = self.in_sources[begin:end]
        if found.size != end - begin or (found.size and int(found.max()) >= self.nodes):
            raise self._damaged("its links point outside of it")
        return found

    def out_neighbours(self, node: int) -> NDArray[np.uint32]:
        """uint32: the ids of the nodes that ``node``, an id, links to, ascending.

        The graph is stored by destination. The first call turns all links round, as
        :func:`cocite.graph.links.out_links` does, in half of the memory that is available; the
        result, 4 bytes a link and 8 a node, is there as long as the graph is.
        """
        node = checked_id(node, self.nodes)
        offsets, targets = self._out_links
        return targets[int(offsets[node]) : int(offsets[node + 1])]

    @cached_property
    def _out_links(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        links = out_links(self)
        return links.offsets, links.neighbours

    @cached_property
    def hubs(self) -> tuple[Hub, ...]:
        """The pages that link to more than a fifth of all pages, or that as many link to, those
        with the most links first; none in small graphs, and dense ones (``graph/hubs.py``).
        """
        from cocite.graph.hubs import hubs_of  # a question asks for none

        return hubs_of(self.in_offsets, self.out_degrees, self.names)

    @cached_property
    def digest(self) -> str:
        """A checksum of links, weights and names: equal graphs have equal digests."""
        return self._store.manifest.digest(OFFSETS, SOURCES, WEIGHTS, NAME_FILES)

    def check(self) -> None:
        """See that no byte is another than was written, that offsets ascend, that the links of a
        node ascend strictly and name nodes, and that weights are positive, as all rely on.

        Reads all files for their checksums, unless it was opened with ``verify=False``; what was
        compared once is not compared again. Then reads the links once, and has the system read
        ahead from then on: who looks at all links will read them again. Raises
        :class:`~cocite.errors.Damaged`, which names the file, and
        :class:`~cocite.errors.UsageError` for a graph without nodes: there is nothing to walk.
        """
        if self.nodes == 0:
            raise UsageError(f"{self.path} has no nodes: there is nothing to compute")
        self.store.advise(Access.AROUND)
        self.store.require(*self.store.manifest.files)
        self.check_links()
        if self.in_weights is not None and not self._weights_are_positive():
            raise self._damaged("some of its weights are not positive")

    def check_links(self) -> None:
        """The same of offsets and links alone, also of a graph without nodes."""
        fault = rows_fault(self.in_offsets, self.in_sources, self.nodes)
        if fault:
            raise self._damaged(f"its links point outside of it: {fault}")

    def _weights_are_positive(self) -> bool:
        fine = True
        for weights in self.store.through(WEIGHTS, _PIECE):
            # NaN is neither; infinity is not below itself.
            fine = fine and bool(weights.min() > 0) and bool(weights.max() < np.inf)
        return fine

    def _damaged(self, what: str) -> Damaged:
        return Damaged(
            f"{self.path} is damaged: {what}. See: cocite verify {self.path}; then make it again"
        )

    @property
    def nbytes(self) -> int:
        """The size of all arrays on disk."""
        return self._store.nbytes

    def info(self) -> GraphInfo:
        """Count what there is to know at a glance; reads the degrees once."""
        facts = self._store.facts
        in_degrees = np.diff(self.in_offsets)
        if int(self.in_offsets[0]) or int(in_degrees.max(initial=0)) > self.edges:
            raise self._damaged("its links point outside of it")
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
            names={"text": "text", "integers": "integers", "dense": "integers 0 to n - 1"}[
                facts["names"]
            ],
            rows=facts["rows"],
            undirected=facts["undirected"],
            duplicates=facts["dropped"]["duplicates"],
            self_loops=facts["dropped"]["self_loops"],
            bad_rows=facts["dropped"]["bad_rows"],
            smallest_weight=weights.get("smallest"),
            largest_weight=weights.get("largest"),
            total_weight=weights.get("sum"),
            bytes=self.nbytes,
        )

    def _first_largest(self, degrees: NDArray[Any]) -> str | None:
        return self.names.name(int(degrees.argmax())) if degrees.size else None


def check_graph(store: Store) -> None:
    """See that what a manifest tells of a graph is of its kind, its files of their size; reads no
    file. Raises :class:`Damaged`.
    """
    facts = Facts(store.facts, f"{store.path}: the manifest")
    nodes, edges = facts.whole("nodes", 0, MAX_NODES), facts.whole("edges")
    facts.text("names", NAME_KINDS)
    sides_told(facts, nodes)
    facts.whole("rows")
    facts.flag("undirected")
    facts.flag("self_loops_kept")
    facts.groups("sources")
    dropped = facts.group("dropped")
    for name in ("duplicates", "self_loops", "bad_rows"):
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
    take_name_files(files, facts.text("names"), nodes)
    if TITLES_DATA in store.manifest.files:
        titles = facts.group("titles")
        for name in ("nodes", "unknown", "others"):
            titles.whole(name)
        titles.groups("sources")
    take_title_files(files, nodes)
    files.no_more()
