"""NetworkX's PageRank, eigenvector and Katz centrality, HITS, BiRank and the matrix of a graph.

    pagerank     x <- alpha (x' A + dangling mass * d) + (1 - alpha) p        A of row sums 1
    eigenvector  x <- (x + x' A) / norm
    katz         x <- alpha x' A + beta
    birank       p <- alpha S' u + (1 - alpha) p0,    u <- beta S p + (1 - beta) u0
                 S = D_u^(-1/2) W D_p^(-1/2),  W the links from the bottom to the top

NetworkX stops at an L1 change below nodes * tol, with millions of nodes after a step or two, far
from the limit. So the steps are NetworkX's instead of those of ``cocite.pagerank``; HITS uses its
ARPACK. Results are equal up to the rounding of sums. Cost: a pass over the links a step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain
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
    nodes = len(G)
    if nodes == 0:
        return {}
    incoming = _Incoming(G, weight)
    shares = incoming.strengths()
    bare = np.flatnonzero(shares == 0)
    shares[shares != 0] = 1 / shares[shares != 0]
    x = np.repeat(1.0 / nodes, nodes)
    with np.errstate(divide="ignore", invalid="ignore"):
        if nstart is not None:
            x = G.vector(nstart)
            x /= x.sum()
        p = np.repeat(1.0 / nodes, nodes)
        if personalization is not None:
            p = G.vector(personalization)
            if p.sum() == 0:
                raise ZeroDivisionError
            p /= p.sum()
        left = p
        if dangling is not None:
            left = G.vector(dangling)
            left /= left.sum()
        for _ in range(max_iter):
            before = x
            x = alpha * (incoming(x * shares) + x[bare].sum() * left) + (1 - alpha) * p
            if np.absolute(x - before).sum() < nodes * tol:
                return G.by_node(x)
    raise nx.PowerIterationFailedConvergence(max_iter)


def eigenvector_centrality(
    G: BackendGraph,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: Any = None,
    weight: Any = None,
) -> dict[Any, float]:
    """See :func:`networkx.eigenvector_centrality`."""
    nodes = len(G)
    if nodes == 0:
        raise nx.NetworkXPointlessConcept("cannot compute centrality for the null graph")
    if nstart is None:
        x = np.repeat(1 / nodes, nodes)
    else:
        if all(value == 0 for value in nstart.values()):
            raise nx.NetworkXError("initial vector cannot have all zero values")
        whole = sum(nstart.values())
        x = G.vector({node: value / whole for node, value in nstart.items()})
    incoming = _Incoming(G, weight or None)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(max_iter):
            before = x
            x = x + incoming(x)
            x = x / (_norm(x) or 1)
            if np.absolute(x - before).sum() < nodes * tol:
                return _in_input_order(G, x, nstart)
    raise nx.PowerIterationFailedConvergence(max_iter)


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
    nodes = len(G)
    if nodes == 0:
        return {}
    x = np.zeros(nodes) if nstart is None else G.vector(nstart)
    try:
        base = np.full(nodes, float(beta))
    except (TypeError, ValueError, AttributeError) as error:
        if set(beta) != set(G):
            raise nx.NetworkXError("beta dictionary must have a value for every node") from error
        base = G.vector(beta)
    incoming = _Incoming(G, weight)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(max_iter):
            before = x
            x = alpha * incoming(x) + base
            if np.absolute(x - before).sum() < nodes * tol:
                if normalized:
                    norm = _norm(x)
                    x = x * (1 / norm if norm else 1.0)
                return _in_input_order(G, x, nstart)
    raise nx.PowerIterationFailedConvergence(max_iter)


class _Incoming:
    """Computes x' A: what every node receives along in-links."""

    def __init__(self, graph: BackendGraph, weight: Any) -> None:
        # Undirected, the links that end at a node are those that begin there.
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
    """Return values by node, in the order of ``nstart`` if given."""
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
    sparse = _sparse()
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
        # As there: every link once, then all turned round, then links to themselves taken off.
        begins, ends = G.sources[links], G.outs.neighbors[links]
        once, loops = begins <= ends, begins == ends
        if loops.any() and values.dtype == np.bool_:  # what is taken off is -1
            values = values.astype(np.int64)
        values = np.concatenate((values[once], values[once], -values[loops]))
        rows, columns = (
            np.concatenate((rows[once], columns[once], rows[loops])),
            np.concatenate((columns[once], rows[once], rows[loops])),
        )
    found = sparse.coo_array((values, (rows, columns)), shape=(nodes, nodes), dtype=dtype)
    try:
        return found.asformat(format)
    except ValueError as error:
        raise nx.NetworkXError(f"Unknown sparse matrix format: {format}") from error


def _places(graph: BackendGraph, nodelist: Any) -> NDArray[np.int64]:
    """Return the position of each node in the list, int64[nodes], -1 if missing."""
    if len(nodelist) == 0:
        raise nx.NetworkXError("nodelist has no nodes")
    known = {node for node in nodelist if node in graph}
    if len(known) != len(nodelist):
        for node in nodelist:
            if node not in graph:
                raise nx.NetworkXError(f"Node {node} in nodelist is not in G")
        raise nx.NetworkXError("nodelist contains duplicates.")
    place = np.full(len(graph), -1, np.int64)
    place[graph.ids(nodelist)] = np.arange(len(nodelist))
    return place


def _inferred(cells: NDArray[Any]) -> NDArray[Any]:
    """Return the array that NumPy makes from a list of the same values."""
    return np.array(cells.tolist()) if cells.dtype == object else cells


def hits(
    G: BackendGraph,
    max_iter: int = 100,
    tol: float = 1.0e-8,
    nstart: Any = None,
    normalized: bool = True,
) -> tuple[dict[Any, float], dict[Any, float]]:
    """See :func:`networkx.hits`."""
    if len(G) == 0:
        return {}, {}
    linear = need("scipy.sparse.linalg", "the backend of NetworkX", "scipy")
    A = to_scipy_sparse_array(G, dtype=float)
    start = None if nstart is None else np.array(list(nstart.values()))
    if max_iter <= 0:
        raise nx.PowerIterationFailedConvergence(max_iter)
    try:
        _, _, found = linear.svds(A, k=1, v0=start, maxiter=max_iter, tol=tol)
    except linear.ArpackNoConvergence as error:
        raise nx.PowerIterationFailedConvergence(max_iter) from error
    authorities = found.flatten().real
    hubs = A @ authorities
    if normalized:
        hubs /= hubs.sum()
        authorities /= authorities.sum()
    return G.by_node(hubs), G.by_node(authorities)


def birank(
    G: BackendGraph,
    nodes: Iterable[Any],
    *,
    alpha: float | None = None,
    beta: float | None = None,
    top_personalization: Any = None,
    bottom_personalization: Any = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    weight: Any = "weight",
) -> dict[Any, float]:
    """See :func:`networkx.bipartite.birank`."""
    top = set(nodes)
    bottom = set(G) - top
    if not top or not bottom:
        raise nx.NetworkXAlgorithmError(
            "The BiRank algorithm requires a bipartite graph with at least onenode in each set."
        )
    of_top, of_bottom = _clean(top_personalization), _clean(bottom_personalization)
    alpha = (0.8 if of_top else 1) if alpha is None else alpha
    beta = (0.8 if of_bottom else 1) if beta is None else beta
    for title, value in (("alpha", alpha), ("beta", beta)):
        if value < 0 or value > 1:
            raise nx.NetworkXAlgorithmError(f"{title} must be in the interval [0, 1]")
    p0 = np.array([of_top.get(node, 0) for node in top], dtype=float)
    u0 = np.array([of_bottom.get(node, 0) for node in bottom], dtype=float)
    S = _balanced(G, list(bottom), list(top), weight)
    turned = S.T.tocsr()
    p = np.ones(len(top)) / len(top)
    u = beta * (S @ p) + (1 - beta) * u0
    for _ in range(max_iter):
        p_last, u_last = p, u
        p = alpha * (turned @ u) + (1 - alpha) * p0
        u = beta * (S @ p) + (1 - beta) * u0
        if np.absolute((u_last - u) / np.maximum(1.0, u_last)).sum() >= len(u) * tol:
            continue
        if np.absolute((p_last - p) / np.maximum(1.0, p_last)).sum() >= len(p) * tol:
            continue
        if alpha == 1 and beta == 1:
            p, u = p / np.linalg.norm(p, 1), u / np.linalg.norm(u, 1)
        return dict(zip(chain(top, bottom), chain(p.tolist(), u.tolist()), strict=True))
    raise nx.PowerIterationFailedConvergence(max_iter)


def _balanced(graph: BackendGraph, bottom: list[Any], top: list[Any], weight: Any) -> Any:
    """Return S, a row per bottom node and a column per top node."""
    sparse = _sparse()
    row, column = np.full((2, len(graph)), -1, np.int64)
    row[graph.ids(bottom)] = np.arange(len(bottom))
    there = [i for i, node in enumerate(top) if node in graph]
    column[graph.ids(top[i] for i in there)] = there
    rows, columns = row[graph.sources], column[graph.outs.neighbors]
    across = (rows >= 0) & (columns >= 0)
    weights = graph.weights(weight)
    values = np.ones(int(across.sum())) if weights.size == 0 else weights[across]
    shape = len(bottom), len(top)
    W = sparse.csr_array((values, (rows[across], columns[across])), shape=shape)
    sides = []
    for axis in (1, 0):
        degrees = np.asarray(W.sum(axis=axis, dtype=float))
        degrees[degrees == 0] = 1.0
        sides.append(sparse.dia_array(([1.0 / np.sqrt(degrees)], [0]), shape=2 * degrees.shape))
    return sides[0].tocsr() @ W @ sides[1].tocsr()


def _clean(personalization: Any) -> dict[Any, float]:
    if personalization is None:
        return {}
    if any(value < 0 for value in personalization.values()):
        raise nx.NetworkXAlgorithmError("Personalization values must be non-negative.")
    return {node: value for node, value in personalization.items() if value != 0}


def _sparse() -> Any:
    return need("scipy.sparse", "the backend of NetworkX", "scipy")
