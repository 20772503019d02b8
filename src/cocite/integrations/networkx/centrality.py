"""NetworkX's PageRank, eigenvector and Katz centrality, HITS, BiRank and graph matrices.

    pagerank     x <- alpha (x' A + dangling mass * d) + (1 - alpha) p        A has row sums of 1
    eigenvector  x <- (x + x' A) / norm
    katz         x <- alpha x' A + beta

NetworkX stops at an L1 change below nodes * tol. With millions of nodes, that is after one or two
steps, far from the limit. To return the same values up to rounding, this module follows NetworkX's
steps, not those of ``cocite.pagerank``. Each step makes one pass over the links. HITS and BiRank
are NetworkX's code, run on this module's matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from cocite.extras import need
from cocite.integrations.networkx.graph import BackendGraph

Vector = NDArray[np.float64]


def pagerank(
    G: BackendGraph,
    alpha: float = 0.85,
    personalization: Any = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: Any = None,
    weight: Any = "weight",
    dangling: Any = None,
) -> dict[Any, float]:
    """See :func:`networkx.pagerank`."""
    if len(G) == 0:
        return {}
    incoming = _Incoming(G, weight)
    shares = incoming.strengths()
    bare = np.flatnonzero(shares == 0)
    shares[shares != 0] = 1 / shares[shares != 0]
    uniform = np.repeat(1.0 / len(G), len(G))

    def distribution(given: Any, default: Vector) -> Vector:
        if given is None:
            return default
        found = G.vector(given)
        found /= found.sum()
        return found

    with np.errstate(divide="ignore", invalid="ignore"):
        x, p = distribution(nstart, uniform), distribution(personalization, uniform)
        if personalization is not None and G.vector(personalization).sum() == 0:
            raise ZeroDivisionError
        left = distribution(dangling, p)

    def step(x: Vector) -> Vector:
        after: Vector = alpha * (incoming(x * shares) + x[bare].sum() * left) + (1 - alpha) * p
        return after

    return G.by_node(_limit(step, x, max_iter, tol))


def eigenvector_centrality(
    G: BackendGraph,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: Any = None,
    weight: Any = None,
) -> dict[Any, float]:
    """See :func:`networkx.eigenvector_centrality`."""
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("cannot compute centrality for the null graph")
    if nstart is None:
        x = np.repeat(1 / len(G), len(G))
    else:
        if all(value == 0 for value in nstart.values()):
            raise nx.NetworkXError("initial vector cannot have all zero values")
        whole = sum(nstart.values())
        x = G.vector({node: value / whole for node, value in nstart.items()})
    incoming = _Incoming(G, weight or None)

    def step(x: Vector) -> Vector:
        x = x + incoming(x)
        x /= _norm(x) or 1
        return x

    return _in_input_order(G, _limit(step, x, max_iter, tol), nstart)


def katz_centrality(
    G: BackendGraph,
    alpha: float = 0.1,
    beta: Any = 1.0,
    max_iter: int = 1000,
    tol: float = 1.0e-6,
    nstart: Any = None,
    normalized: bool = True,
    weight: Any = None,
) -> dict[Any, float]:
    """See :func:`networkx.katz_centrality`."""
    if len(G) == 0:
        return {}
    x = np.zeros(len(G)) if nstart is None else G.vector(nstart)
    try:
        base = np.full(len(G), float(beta))
    except (TypeError, ValueError, AttributeError) as error:
        if set(beta) != set(G):
            raise nx.NetworkXError("beta dictionary must have a value for every node") from error
        base = G.vector(beta)
    incoming = _Incoming(G, weight)
    x = _limit(lambda x: alpha * incoming(x) + base, x, max_iter, tol)
    if normalized:
        norm = _norm(x)
        x = x * (1 / norm if norm else 1.0)
    return _in_input_order(G, x, nstart)


def _limit(step: Callable[[Vector], Vector], x: Vector, most: int, tol: float) -> Vector:
    """Iterate until the mean change per node is below ``tol``, for at most ``most`` steps."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        for _ in range(most):
            before, x = x, step(x)
            if np.absolute(x - before).sum() < x.size * tol:
                return x
    raise nx.PowerIterationFailedConvergence(most)


class _Incoming:
    """The product x' A: the sum of x over each node's in-links."""

    def __init__(self, graph: BackendGraph, weight: Any) -> None:
        # In an undirected graph, in-links and out-links are the same.
        self._rows = graph.ins if graph.is_directed() else graph.outs
        self._weights = graph.weights(weight, self._rows)
        self._graph, self._weight = graph, weight

    def __call__(self, values: Vector) -> Vector:
        from cocite.kernels.networks import gather

        out = np.empty(values.size)
        gather(self._rows.offsets, self._rows.neighbors, self._weights, values, out)
        return out

    def strengths(self) -> Vector:
        """Return the total weight of each node's out-links, float64[nodes]."""
        weights = self._graph.weights(self._weight)
        if weights.size == 0:
            return np.diff(self._graph.outs.offsets).astype(np.float64)
        found: Vector = np.bincount(self._graph.sources, weights, len(self._graph)).astype(float)
        return found


def _norm(x: Vector) -> float:
    return math.hypot(*x.tolist()) if x.size < 10_000 else float(np.linalg.norm(x))


def _in_input_order(graph: BackendGraph, x: Vector, nstart: Any) -> dict[Any, float]:
    """Return values by node, in the order of the graph or of a given ``nstart``."""
    found = graph.by_node(x)
    return found if nstart is None else {node: found[node] for node in nstart}


def to_scipy_sparse_array(
    G: BackendGraph,
    nodelist: Any = None,
    dtype: Any = None,
    weight: Any = "weight",
    format: str = "csr",
) -> Any:
    """See :func:`networkx.to_scipy_sparse_array`."""
    if len(G) == 0:
        raise nx.NetworkXError("Graph has no nodes or edges")
    rows, columns = G.sources.astype(np.int64), G.outs.neighbors.astype(np.int64)
    nodes, links = len(G), np.arange(rows.size)
    if nodelist is not None:
        place = _places(G, nodelist)
        nodes = len(nodelist)
        links = links[(place[rows] >= 0) & (place[columns] >= 0)]
        rows, columns = place[rows[links]], place[columns[links]]
    cells = G.cells(weight)
    values = np.ones(links.size, np.int64) if cells is None else _inferred(cells[links])
    if not G.is_directed():
        # NetworkX's order: every link once, all links reversed, then self-loops, negated.
        begins, ends = G.sources[links], G.outs.neighbors[links]
        once, loops = begins <= ends, begins == ends
        if loops.any() and values.dtype == np.bool_:  # NumPy cannot negate bool
            values = values.astype(np.int64)
        values = np.concatenate((values[once], values[once], -values[loops]))
        rows, columns = (
            np.concatenate((rows[once], columns[once], rows[loops])),
            np.concatenate((columns[once], rows[once], rows[loops])),
        )
    return _matrix(values, rows, columns, (nodes, nodes), dtype, format)


def _matrix(
    values: NDArray[Any],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    shape: tuple[int, int],
    dtype: Any,
    format: str,
) -> Any:
    sparse = need("scipy.sparse", "the backend of NetworkX", "scipy")
    found = sparse.coo_array((values, (rows, columns)), shape=shape, dtype=dtype)
    try:
        return found.asformat(format)
    except ValueError as error:
        raise nx.NetworkXError(f"Unknown sparse matrix format: {format}") from error


def _places(graph: BackendGraph, nodelist: Any) -> NDArray[np.int64]:
    """Return each node's position in ``nodelist``, int64[nodes], or -1."""
    if len(nodelist) == 0:
        raise nx.NetworkXError("nodelist has no nodes")
    for node in nodelist:
        if node not in graph:
            raise nx.NetworkXError(f"Node {node} in nodelist is not in G")
    if len(set(nodelist)) != len(nodelist):
        raise nx.NetworkXError("nodelist contains duplicates.")
    place = np.full(len(graph), -1, np.int64)
    place[graph.ids(nodelist)] = np.arange(len(nodelist))
    return place


def _inferred(cells: NDArray[Any]) -> NDArray[Any]:
    """Return object cells as an array of the type that NumPy infers."""
    return np.array(cells.tolist()) if cells.dtype == object else cells


def biadjacency_matrix(
    G: BackendGraph,
    row_order: Any,
    column_order: Any = None,
    dtype: Any = None,
    weight: Any = "weight",
    format: str = "csr",
) -> Any:
    """See :func:`networkx.bipartite.biadjacency_matrix`."""
    if column_order is None:
        column_order = list(set(G) - set(row_order))
    for title, order in (("row_order", row_order), ("column_order", column_order)):
        if len(order) != len(set(order)):
            raise nx.NetworkXError(f"Ambiguous ordering: `{title}` contained duplicates.")
    if len(row_order) == 0:
        raise nx.NetworkXError("row_order is empty list")
    place = np.full((2, len(G)), -1, np.int64)
    for side, order in zip(place, (row_order, column_order), strict=True):
        places = {node: at for at, node in enumerate(order) if node in G}
        side[G.ids(places)] = list(places.values())
    rows, columns = place[0, G.sources], place[1, G.outs.neighbors]
    across = (rows >= 0) & (columns >= 0)
    cells = G.cells(weight)
    values = np.ones(int(across.sum()), np.int64) if cells is None else _inferred(cells[across])
    shape = len(row_order), len(column_order)
    return _matrix(values, rows[across], columns[across], shape, dtype, format)


# NetworkX's functions, which need nothing but the matrices above.
adjacency_matrix: Any = nx.adjacency_matrix.orig_func
hits: Any = nx.hits.orig_func
birank: Any = nx.bipartite.birank.orig_func
