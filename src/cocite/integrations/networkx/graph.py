"""The backend graph: NetworkX's nodes, and arrays for links.

    node i          nodes[i], any object, in NetworkX's order
    its neighbors   neighbors[offsets[i] : offsets[i + 1]], in NetworkX's order

Undirected links are stored in both directions, self-loops once; parallel links are adjacent.
Link attributes are columns: arrays as long as ``neighbors``. Graphs are immutable, so derived data
is cached: ids by node, in-links, degrees.

Requires 8 bytes per node and 4 per link, the list of nodes, and 8 bytes per link per column.
In-links take another 8 bytes per node and 12 per link.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Node = Hashable
_NONE = np.empty(0)


class _Missing:
    """Type of ``MISSING``, the value of an attribute that a link does not have."""


MISSING: Any = _Missing()


class AdjacencyRows(NamedTuple):
    """Links grouped by one end: ``offsets`` uint64[nodes + 1], ``neighbors`` uint32[links].

    ``links`` int64[links] are positions in the graph, or None for the graph's own order.
    """

    offsets: NDArray[np.uint64]
    neighbors: NDArray[np.uint32]
    links: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Column:
    """A link attribute: ``values`` int64, float64, bool or object[links].

    ``missing`` is bool[links], or None if every link has the attribute.
    """

    values: NDArray[Any]
    missing: NDArray[np.bool_] | None = None

    def take(self, links: Any) -> Column:
        """Return the column of the selected links."""
        return Column(self.values[links], None if self.missing is None else self.missing[links])

    def cells(self) -> NDArray[Any]:
        """Return the values, with 1 for missing ones."""
        if self.missing is None:
            return self.values
        found = self.values.astype(object)
        found[self.missing] = 1
        return found


def column_of(values: list[Any]) -> Column | None:
    """Return a column of Python objects; None if all of them are ``MISSING``."""
    missing = None
    kinds = set(map(type, values))
    if _Missing in kinds:
        missing = np.fromiter((value is MISSING for value in values), np.bool_, len(values))
        if missing.all():
            return None
        kinds.discard(_Missing)
        filler: Any = next(kind() for kind in kinds) if kinds <= {int, float, bool} else None
        values = [filler if value is MISSING else value for value in values]
    dtype = {int: np.int64, float: np.float64, bool: np.bool_}.get(next(iter(kinds), object))
    if dtype is not None and len(kinds) == 1:
        try:
            return Column(np.array(values, dtype), missing)
        except OverflowError:
            pass
    found = np.empty(len(values), object)
    found[:] = values
    return Column(found, missing)


class BackendGraph:
    """An immutable graph that NetworkX's functions accept.

    ``columns`` are link attributes by name. ``keys`` are the keys of parallel links, or None for 0,
    1, ... ``arrived`` int64[links] is the order in which links were added, or None if unknown.
    ``graph`` and ``node_data`` are attributes of the graph and of each node.
    """

    __networkx_backend__ = "cocite"

    def __init__(
        self,
        nodes: list[Any],
        offsets: NDArray[np.uint64],
        neighbors: NDArray[np.uint32],
        *,
        directed: bool,
        multigraph: bool,
        columns: dict[Any, Column] | None = None,
        keys: list[Any] | None = None,
        arrived: NDArray[np.int64] | None = None,
        graph: dict[Any, Any] | None = None,
        node_data: list[dict[Any, Any]] | None = None,
    ) -> None:
        self.nodes, self.outs = nodes, AdjacencyRows(offsets, neighbors)
        self.columns, self.keys, self.arrived = columns or {}, keys, arrived
        self.graph, self.node_data = graph or {}, node_data
        self._directed, self._multigraph = directed, multigraph
        self.__networkx_cache__: dict[str, Any] = {}

    # -- for NetworkX and its users ------------------------------------------------------------

    def is_directed(self) -> bool:
        """Return whether links have a direction."""
        return self._directed

    def is_multigraph(self) -> bool:
        """Return whether there may be parallel links."""
        return self._multigraph

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    def __contains__(self, node: object) -> bool:
        try:
            return node in self.index
        except TypeError:
            return False

    def number_of_nodes(self) -> int:
        """Return the number of nodes."""
        return len(self.nodes)

    def number_of_edges(self) -> int:
        """Return the number of links; undirected ones count once."""
        links = self.outs.neighbors.size
        return links if self._directed else (links + int(self.loops.sum())) // 2

    def neighbors(self, node: Any) -> Iterator[Any]:
        """Yield the out-neighbors of a node; raises KeyError for an unknown one."""
        at = self.index[node]
        begin, end = self.outs.offsets[at : at + 2]
        return (self.nodes[i] for i in dict.fromkeys(self.outs.neighbors[begin:end].tolist()))

    def has_edge(self, u: Any, v: Any) -> bool:
        """Return whether u links to v."""
        return u in self and v in self and any(v == other for other in self.neighbors(u))

    @property
    def kind(self) -> str:
        """Return the name of the NetworkX class for this kind of graph."""
        return f"{'Multi' * self._multigraph}{'Di' * self._directed}Graph"

    def __repr__(self) -> str:
        return f"<cocite {self.kind}: {len(self):,} nodes, {self.number_of_edges():,} edges>"

    # -- for functions of the backend ----------------------------------------------------------

    @cached_property
    def index(self) -> dict[Any, int]:
        """Return the ids by node."""
        return dict(zip(self.nodes, range(len(self.nodes)), strict=True))

    def ids(self, nodes: Any) -> NDArray[np.int64]:
        """Return the ids of nodes; raises KeyError for an unknown one."""
        return np.fromiter(map(self.index.__getitem__, nodes), np.int64)

    @cached_property
    def sources(self) -> NDArray[np.uint32]:
        """Return the source of each link, uint32[links]."""
        rows = np.arange(len(self.nodes), dtype=np.uint32)
        return np.repeat(rows, np.diff(self.outs.offsets).astype(np.int64))

    @cached_property
    def loops(self) -> NDArray[np.int64]:
        """Return the number of self-loops of each node, int64[nodes]."""
        own = self.outs.neighbors[self.sources == self.outs.neighbors]
        return np.bincount(own, minlength=len(self.nodes))

    @cached_property
    def ins(self) -> AdjacencyRows:
        """Return the in-links (if undirected, all links) with each row in ascending order."""
        from cocite.kernels.networks import turn_rows

        begins = np.empty(len(self.nodes) + 1, np.uint64)
        sources = np.empty(self.outs.neighbors.size, np.uint32)
        links = np.empty(sources.size, np.int64)
        turn_rows(self.outs.offsets, self.outs.neighbors, begins, sources, links)
        return AdjacencyRows(begins, sources, links)

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """Return in- plus out-degrees, int64[nodes]; undirected self-loops count twice."""
        outs = np.diff(self.outs.offsets).astype(np.int64)
        if self._directed:
            return outs + np.diff(self.ins.offsets).astype(np.int64)
        return outs + self.loops

    def cells(self, weight: Any) -> NDArray[Any] | None:
        """Return an attribute of every link, 1 where missing; None if all are missing."""
        column = None if weight is None else self.columns.get(weight)
        return None if column is None else column.cells()

    def weights(self, weight: Any, rows: AdjacencyRows | None = None) -> NDArray[np.float64]:
        """Return an attribute as float64[links], in the order of the graph or of ``rows``.

        If no link has the attribute, return an empty array, which kernels read as weights of 1.
        """
        cells = self.cells(weight)
        if cells is None:
            return _NONE
        found = cells.astype(np.float64)
        return found if rows is None or rows.links is None else found[rows.links]

    def vector(self, values: Any) -> NDArray[np.float64]:
        """Return a dictionary's values in the order of nodes, float64[nodes]; 0 where missing."""
        return np.array([values.get(node, 0) for node in self.nodes], dtype=float)

    def by_node(self, values: NDArray[np.float64]) -> dict[Any, float]:
        """Return the values by node, as Python floats."""
        return dict(zip(self.nodes, values.tolist(), strict=True))
