"""Panther: nodes are alike if random paths pass through both.

    generate_random_paths      a start, drawn evenly, and steps in proportion to weights
    panther_similarity         the share of all paths that pass through both nodes
    panther_vector_similarity  1 / distance of the D largest such shares of each node

Random numbers are taken from ``seed`` as NetworkX takes them, a start and then a number a step, and
a number takes the same step: so equal seeds give equal paths, where sums of weights round as
NumPy's do.

Cost: a binary search a step, and taking the numbers, a few microseconds a path; links, where
NetworkX has a matrix of all pairs of nodes, and goes through a row of it a step. Memory: 8 bytes a
node of a path.
Source: Zhang, Tang, Ma, Tong, Jing, Li 2015, *Panther: fast top-k similarity search on large
networks*.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from cocite.extras import need
from cocite.interop.networkx.graph import BackendGraph

__all__ = ["generate_random_paths", "panther_similarity", "panther_vector_similarity"]

_PIECE = 1 << 14
Ids = NDArray[np.int64]


def generate_random_paths(
    G: BackendGraph,
    sample_size: int,
    path_length: int = 5,
    index_map: Any = None,
    weight: Any = "weight",
    seed: Any = None,
    *,
    source: Any = None,
) -> Iterator[list[Any]]:
    """As :func:`networkx.generate_random_paths`: numbers are taken as paths are asked for."""
    walks = _Walks(G, np.arange(len(G)), weight)
    start = None
    for number in range(sample_size):
        if source is not None and start is None:
            if source not in G:
                raise nx.NodeNotFound(f"Initial node {source} not in G")
            start = G.index[source]
        path = [G.nodes[i] for i in walks.paths(1, path_length, seed, start)[0].tolist()]
        if index_map is not None:
            for node in path:
                index_map.setdefault(node, set()).add(number)
        yield path


def panther_similarity(
    G: BackendGraph,
    source: Any,
    k: int = 5,
    path_length: int = 5,
    c: float = 0.5,
    delta: float = 0.1,
    eps: float | None = None,
    weight: Any = "weight",
    seed: Any = None,
) -> dict[Any, float]:
    """As :func:`networkx.panther_similarity`."""
    _check_source(G, source)
    kept = _linked(G)
    paths, share, _ = _sampled(G, kept, path_length, c, delta, eps, weight, seed)
    nodes = kept.size
    if nodes < k:
        raise nx.NetworkXUnfeasible(
            f"The number of requested nodes {k} is greater than the number of nodes {nodes}."
        )
    own = int(np.flatnonzero(kept == G.index[source])[0])
    shared = paths[(paths == own).any(axis=1)]
    if not shared.size:
        raise KeyError(source)
    rows, _ = _once(shared)
    S = np.bincount(rows, minlength=nodes) * share
    width = min(k + 1, nodes)
    best = np.argpartition(S, -width)[-width:]
    best = best[np.argsort(S[best])][::-1]
    found = dict(zip((G.nodes[i] for i in kept[best].tolist()), S[best].tolist(), strict=True))
    found.pop(source, None)
    return found


def panther_vector_similarity(
    G: BackendGraph,
    source: Any,
    *,
    D: int = 10,
    k: int = 5,
    path_length: int = 5,
    c: float = 0.5,
    delta: float = 0.1,
    eps: float | None = None,
    weight: Any = "weight",
    seed: Any = None,
) -> dict[Any, float]:
    """As :func:`networkx.panther_vector_similarity`."""
    _check_source(G, source)
    nodes = len(G)
    if k is not None and nodes < k:
        raise nx.NetworkXUnfeasible(
            f"The number of requested nodes {k} is greater than the number of nodes {nodes}."
        )
    alone = {G.nodes[i] for i in np.flatnonzero(G.degrees == 0)}
    if alone:
        raise nx.NetworkXUnfeasible(
            f"Cannot generate random paths with isolated nodes present: {alone}"
        )
    everyone = np.arange(nodes)
    paths, share, eps = _sampled(G, everyone, path_length, c, delta, eps, weight, seed)
    if nodes < D:
        raise nx.NetworkXUnfeasible(
            f"The number of requested similarity scores {D} is greater than the number of nodes "
            f"{nodes}."
        )
    spatial = need("scipy.spatial", "the backend of NetworkX", "scipy")
    theta = _largest(paths, nodes, D, G) * share
    distances, near = spatial.KDTree(theta).query(theta[G.index[source]], k=min(k + 1, nodes))
    distances = np.maximum(np.atleast_1d(distances), eps)
    scores = 1 / distances
    if scores.size and (most := scores.max()) > 0:
        scores /= most
    named = (G.nodes[i] for i in np.atleast_1d(near).tolist())
    found = dict(zip(named, scores.tolist(), strict=True))
    found.pop(source, None)
    if len(found) > k:
        found = dict(sorted(found.items(), key=lambda item: item[1], reverse=True)[:k])
    return found


class _Walks:
    """Steps among some nodes, called by their places in ``kept``: as NumPy's ``choice`` takes them
    with the shares of all nodes.
    """

    def __init__(self, graph: BackendGraph, kept: Ids, weight: Any) -> None:
        from cocite.kernels.networks import add_up

        self._nodes = kept.size
        place = np.full(len(graph), -1, np.int64)
        place[kept] = np.arange(kept.size)
        weights = graph.weights(weight)
        pairs = place[graph.sources] * np.int64(kept.size) + place[graph.outs.neighbours]
        # Parallel links are one, with the sum of their weights.
        pairs, link = np.unique(pairs, return_inverse=True)
        self._shares = np.bincount(link, weights if weights.size else None).astype(np.float64)
        self._neighbours = (pairs % max(kept.size, 1)).astype(np.uint32)
        counts = np.bincount(pairs // max(kept.size, 1), minlength=kept.size)
        self._offsets = np.zeros(kept.size + 1, np.uint64)
        np.cumsum(counts, out=self._offsets[1:], dtype=np.uint64)
        self._weights = self._shares.copy()
        add_up(self._offsets, self._shares)

    def paths(self, count: int, length: int, seed: Any, start: int | None = None) -> Ids:
        """int64[count, length + 1]; raises what ``choice`` does where a node has no way on."""
        from cocite.kernels.networks import wander

        fresh = isinstance(seed, np.random.Generator)
        whole = seed.integers if fresh else seed.randint
        numbers = seed.random if fresh else seed.random_sample
        found, draws = np.empty((count, length + 1), np.int64), np.empty((count, length))
        for i in range(count):
            found[i, 0] = whole(self._nodes) if start is None else start
            draws[i] = numbers(length)
        stuck = wander(self._offsets, self._neighbours, self._shares, draws, found)
        if stuck < count:
            path = found[stuck]
            self._refuse(int(path[np.flatnonzero(path == -1)[0] - 1]), seed)
        return found

    def _refuse(self, node: int, seed: Any) -> None:
        """Ask for a step where there is none, in NumPy's words."""
        begin, end = self._offsets[node : node + 2]
        row = np.zeros(self._nodes)
        row[self._neighbours[begin:end]] = self._weights[begin:end]
        with np.errstate(divide="ignore", invalid="ignore"):
            row = row * np.reciprocal(row.sum())
        seed.choice(self._nodes, p=row)


def _check_source(graph: BackendGraph, source: Any) -> None:
    if source not in graph:
        raise nx.NodeNotFound(f"Source node {source} not in G")
    if graph.degrees[graph.index[source]] == 0:
        raise nx.NetworkXUnfeasible(
            f"Panther similarity is not defined for the isolated source node {source}."
        )


def _linked(graph: BackendGraph) -> Ids:
    """The nodes with links, in the order of ``G.subgraph(...).copy()``: that of a set where they
    are less than half.
    """
    kept = np.flatnonzero(graph.degrees)
    if 2 * kept.size < len(graph):
        return graph.ids({graph.nodes[i] for i in kept.tolist()})
    return kept


def _sampled(
    graph: BackendGraph,
    kept: Ids,
    length: int,
    c: float,
    delta: float,
    eps: float | None,
    weight: Any,
    seed: Any,
) -> tuple[Ids, float, Any]:
    """(paths, 1 / their number, eps): as many as the accuracy takes."""
    accuracy: Any = np.sqrt(1.0 / graph.number_of_edges()) if eps is None else eps
    pairs = math.comb(length, 2)
    count = int(c / accuracy**2 * (np.log2(pairs) + 1 + np.log(1 / delta)))
    walks = _Walks(graph, kept, weight)
    pieces = [
        walks.paths(min(_PIECE, count - done), length, seed) for done in range(0, count, _PIECE)
    ]
    paths = np.concatenate(pieces) if pieces else np.empty((0, length + 1), np.int64)
    return paths, 1 / count, accuracy


def _once(paths: Ids) -> tuple[Ids, Ids]:
    """(nodes, number of the path): every node of a path once."""
    ordered = np.sort(paths, axis=1)
    first = np.ones(ordered.shape, np.bool_)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return ordered[first], np.nonzero(first)[0]


def _largest(paths: Ids, nodes: int, count: int, graph: BackendGraph) -> NDArray[np.float64]:
    """float64[nodes, count]: with how many paths in common each node has most, largest first."""
    sparse = need("scipy.sparse", "the backend of NetworkX", "scipy")
    on, path = _once(paths)
    seen = np.bincount(on, minlength=nodes)
    if not seen.all():
        raise KeyError(graph.nodes[int(np.flatnonzero(seen == 0)[0])])
    through = sparse.csr_array((np.ones(on.size, np.int64), (on, path)), shape=(nodes, len(paths)))
    together = (through @ through.T.tocsr()).tocsr()
    found = np.zeros((nodes, count))
    for node in range(nodes):
        row = together.data[together.indptr[node] : together.indptr[node + 1]]
        most = np.sort(row)[::-1][:count]
        found[node, : most.size] = most
    return found
