"""PageRank, eigenvector and Katz centrality: what comes in over links, over and over.

    pagerank     x <- alpha (x' A + dangling mass * d) + (1 - alpha) p        A of row sums 1
    eigenvector  x <- (x + x' A) / norm
    katz         x <- alpha x' A + beta

NetworkX says how often: until the L1 change is below nodes * tol, at most ``max_iter`` times, else
:class:`networkx.PowerIterationFailedConvergence`. With millions of nodes that is a step or two, far
from the limit, so that another way to the same limit, as ``cocite.pagerank`` takes, would give
other ranks and fail in other cases. So the steps are NetworkX's, one by one, and results are equal
but for the rounding of sums.

Cost: a pass over the links a step (``kernels/networks.py``), some nanoseconds a link.
"""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from cocite.interop.networkx.graph import BackendGraph

__all__ = ["eigenvector_centrality", "katz_centrality", "pagerank"]

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
    """As :func:`networkx.pagerank`."""
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
    """As :func:`networkx.eigenvector_centrality`."""
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
                return _as_given(G, x, nstart)
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
    """As :func:`networkx.katz_centrality`."""
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
                return _as_given(G, x, nstart)
    raise nx.PowerIterationFailedConvergence(max_iter)


class _Incoming:
    """x' A: what comes to every node over the links that end there."""

    def __init__(self, graph: BackendGraph, weight: Any) -> None:
        # Undirected, the links that end at a node are those that begin there.
        self._rows = graph.ins if graph.is_directed() else graph.outs
        self._weights = graph.weights(weight, self._rows)
        self._graph, self._weight = graph, weight

    def __call__(self, values: Vector) -> Vector:
        from cocite.kernels.networks import gather

        out = np.empty(values.size)
        gather(self._rows.offsets, self._rows.neighbours, self._weights, values, out)
        return out

    def strengths(self) -> Vector:
        """float64[nodes]: the weights of the links that begin at each node."""
        weights = self._graph.weights(self._weight)
        if weights.size == 0:
            return np.diff(self._graph.outs.offsets).astype(np.float64)
        found: Vector = np.bincount(self._graph.sources, weights, len(self._graph)).astype(float)
        return found


def _norm(x: Vector) -> float:
    return math.hypot(*x.tolist()) if x.size < 10_000 else float(np.linalg.norm(x))


def _as_given(graph: BackendGraph, x: Vector, nstart: Any) -> dict[Any, float]:
    """By node, in the order of ``nstart`` where there is one."""
    found = graph.by_node(x)
    return found if nstart is None else {node: found[node] for node in nstart}
