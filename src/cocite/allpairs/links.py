"""What all-pairs scores are of: the links that they go along, those of a graph, turned round, or
taken either way; their weights; and the nodes that are compared.

    in    who links to a page: the graph as it is stored
    out   what a page links to
    any   both in one row; SimRank of a bipartite graph goes so from users to their other items

Taken either way a neighbor that is linked both ways stands in a row twice. SimRank draws it twice
as often: here it is one entry of the weights added up. PSimRank looks at sets: one entry.

Cost: that of ``graph/links.py``, and a pass over the links.
Source: either way on a bipartite graph it is the bipartite SimRank of Jeh and Widom 2002, 4.3, with
one decay.

What a run is asked for, checked in one place.

The order of rows: extended reverse Cuthill-McKee, and how wide a matrix is.

Rows that link to each other get near numbers, so that the rows a block reads are few and near. The
search goes over Q + Q', as its structure is symmetric and no narrower than Q's; one component after
another, each from a node of least degree. Bandwidth is the largest |row - column| of an entry, the
larger of the upper and the lower.

Source: Yu et al. 2011, 4.2, Definition 2 and Algorithm 2. By its theorem 1 scores
of a renumbered graph are the renumbered scores, so results come back in the stored order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.graph.links import links_of

MEASURES = ("simrank", "psimrank")
DIRECTIONS = ("in", "out", "any")
METHODS = ("gauss-seidel", "plain", "sor", "psum", "svd")
_PRECISIONS = ("auto", "single", "double")
_ORDERS = ("stored", "rcm")
_PRODUCTS = ("auto", "sparse", "dense")
_OMEGA, _RANK = 1.3, 100


@dataclass(frozen=True)
class Options:
    """Checked options; the meaning of each is :func:`cocite.exact_simrank`'s."""

    decay: float
    measure: str
    method: str
    omega: float
    epsilon: float
    sweeps: int
    prune: float | None
    teleport: float | None
    order: str
    precision: str
    products: str
    rank: int
    direction: str

    @classmethod
    def checked(
        cls,
        *,
        decay: float = 0.6,
        measure: str = "simrank",
        method: str | None = None,
        omega: float | None = None,
        epsilon: float = 1e-3,
        sweeps: int = 1000,
        prune: float | None = None,
        teleport: float | None = None,
        order: str = "stored",
        precision: str = "auto",
        products: str = "auto",
        rank: int | None = None,
        direction: str = "in",
    ) -> Options:
        """Raises :class:`UsageError` for what is not allowed, alone or together."""
        _choice("measure", measure, MEASURES)
        if method is None:
            method = "gauss-seidel" if measure == "simrank" else "plain"
        _choice("method", method, METHODS)
        _choice("order", order, _ORDERS)
        _choice("precision", precision, _PRECISIONS)
        _choice("products", products, _PRODUCTS)
        _choice("direction", direction, DIRECTIONS)
        if direction == "any":
            _only("direction any", method, "gauss-seidel", "plain", "sor", "svd")
        _within("decay", decay, 0, 1)
        _within("epsilon", epsilon, 0, 1)
        if sweeps < 1:
            raise UsageError(f"sweeps is {sweeps!r}; it is a whole number, 1 or more")
        if omega is not None:
            _within("omega", omega, 0, 2)
            _only("omega", method, "sor")
        if rank is not None:
            _only("rank", method, "svd")
            if rank < 1:
                raise UsageError(f"rank is {rank!r}; it is a whole number, 1 or more")
        if prune is not None:
            _within("prune", prune, 0, 1)
            _only("prune", method, "gauss-seidel", "plain", "sor")
        if teleport is not None:
            if not 0 < teleport <= 1:
                raise UsageError(f"teleport is {teleport!r}; it is above 0 and at most 1")
            _only("teleport", method, "gauss-seidel", "plain", "sor")
        if products == "dense" and (prune is not None or method in ("psum", "svd")):
            raise UsageError("dense products go with plain, gauss-seidel or sor, and no pruning")
        if measure == "psimrank" and (
            method != "plain" or products == "dense" or not prune is teleport is None
        ):
            raise UsageError(
                "psimrank has one method, plain, with sparse products, and neither pruning nor "
                "teleportation"
            )
        return cls(
            decay,
            measure,
            method,
            (omega or _OMEGA) if method == "sor" else 1.0,
            epsilon,
            sweeps,
            prune,
            teleport,
            order,
            precision,
            products,
            rank or _RANK,
            direction,
        )

    @property
    def title(self) -> str:
        """The method in words."""
        return f"sor, omega {self.omega:g}" if self.method == "sor" else self.method


def _choice(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"{what} is {value!r}; it is one of {', '.join(allowed)}")


def _within(what: str, value: float, low: float, high: float) -> None:
    if not low < value < high:
        raise UsageError(f"{what} is {value!r}; it is a number between {low} and {high}, excluded")


def _only(what: str, method: str, *methods: str) -> None:
    if method not in methods:
        raise UsageError(f"{what} is for the method {' or '.join(methods)}; this one is {method}")


# -- turned ------------------------------------------------------------------------------


class LinkRows(Protocol):
    """What is read of a graph: who links to each node, ascending within a node."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""

    @property
    def edges(self) -> int:
        """Number of links."""

    @property
    def in_offsets(self) -> NDArray[np.uint64]:
        """uint64[nodes + 1]: where each node's row begins."""

    @property
    def in_sources(self) -> NDArray[np.uint32]:
        """uint32[edges]: the rows."""

    @property
    def in_weights(self) -> NDArray[np.float32] | None:
        """float32[edges]: the weights of the same links, if they have any."""


@dataclass(frozen=True)
class Turned:
    """Links as if they were in-links; ``counted`` if weights tell how often a neighbor is there,
    though the graph has none.
    """

    in_offsets: NDArray[np.uint64]
    in_sources: NDArray[np.uint32]
    in_weights: NDArray[np.float32] | None
    counted: bool = False

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.in_offsets.size - 1

    @property
    def edges(self) -> int:
        """Number of links."""
        return self.in_sources.size


def turned(graph: Graph, direction: str, memory: int, *, weighted: bool, sets: bool) -> LinkRows:
    """The links of a direction, ``in``, ``out`` or ``any``; with ``weighted`` those of the graph
    that it may have. ``sets``: a neighbor that is there twice counts once.
    """
    if direction == "in":
        return graph
    links = links_of(graph, direction, memory, weighted=weighted)
    return _merged(links, sets) if direction == "any" else _plain(links)


def _plain(links: Links) -> Turned:
    return Turned(links.offsets, links.neighbors, links.weights)


def _merged(links: Links, sets: bool) -> Turned:
    """Neighbors once each in a row."""
    degrees = np.diff(links.offsets).astype(np.int64)
    row = np.repeat(np.arange(links.nodes), degrees)
    first = np.ones(links.edges, bool)
    first[1:] = (links.neighbors[1:] != links.neighbors[:-1]) | (row[1:] != row[:-1])
    if first.all():
        return _plain(links)
    places = np.flatnonzero(first)
    counts = np.bincount(row[places], minlength=links.nodes)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)
    neighbors = np.asarray(links.neighbors)[places]
    if sets:
        return Turned(offsets, neighbors, None)
    each = np.ones(links.edges) if links.weights is None else links.weights.astype(np.float64)
    weights = np.add.reduceat(each, places).astype(np.float32)
    return Turned(offsets, neighbors, weights, links.weights is None)


def compared(graph: Graph, options: Options, side: str | None) -> range:
    """The ids of the nodes whose pairs are told: all, or those of a side."""
    if graph.sides is None:
        if side is not None:
            raise UsageError(f"{graph.path} is not bipartite: leave side out")
        return range(graph.nodes)
    found = graph.sides.named(side)
    way = {"in": 0, "out": 1}.get(options.direction)
    if way is not None and graph.sides.titles[way] == graph.sides.title_of(found.start):
        title, other = graph.sides.titles[way], ("in", "out")[1 - way]
        raise UsageError(
            f"{title} nodes have no {options.direction}-links, so that all of them score 0: choose "
            f"--direction {other} (direction={other!r}), or any"
        )
    return found


def checked_weights(
    graph: LinkRows, options: Options, weights: NDArray[np.float32] | None, weighted: bool
) -> NDArray[np.float32] | None:
    """float32[edges]: those given, or the graph's own; None if all links count the same."""
    if weights is not None and options.direction != "in":
        raise UsageError("weights are those of the in-links: leave them out for other directions")
    if weights is None:
        counted = isinstance(graph, Turned) and graph.counted
        weights = graph.in_weights if weighted or counted else None
    if weights is None:
        return None
    found = np.asarray(weights, np.float32)
    if found.shape != (graph.edges,) or not np.isfinite(found).all() or (found <= 0).any():
        raise UsageError(f"weights are {graph.edges:,} positive, finite numbers, one a link")
    if options.measure == "psimrank" or options.method == "psum":
        raise UsageError(
            "weights are for simrank, and not for the psum baseline: pass --unweighted "
            "(weighted=False) to let all links count the same"
        )
    return found


# -- order -------------------------------------------------------------------------------


Ints = NDArray[np.int64]


def bandwidth(offsets: Ints, columns: NDArray[np.uint32]) -> int:
    """The largest |row - column| of an entry; 0 without entries."""
    row = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    return int(np.abs(row - columns.astype(np.int64)).max(initial=0))


def reordered(offsets: Ints, columns: NDArray[np.uint32]) -> Ints:
    """int64[n]: the rows in their new order."""
    from cocite.kernels import allpairs

    n = offsets.size - 1
    row = np.repeat(np.arange(n), np.diff(offsets))
    column = columns.astype(np.int64)
    off = row != column
    both = np.concatenate([row[off] * n + column[off], column[off] * n + row[off]])
    both = np.unique(both)
    here, there = both // n, both % n
    degrees = np.bincount(here, minlength=n)
    by_degree = np.lexsort((there, degrees[there], here))
    begins = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    found = np.empty(n, np.int64)
    starts = np.argsort(degrees, kind="stable")
    allpairs.reverse_cuthill_mckee(begins, there[by_degree], starts, np.zeros(n, np.uint8), found)
    return found
