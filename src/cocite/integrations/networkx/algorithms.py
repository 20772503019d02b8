"""Link prediction and SimRank, with NetworkX's conventions.

    adamic_adar_index           sum of 1 / log(degree(w)) over common neighbors w
    resource_allocation_index   sum of 1 / degree(w)
    common_neighbor_centrality  alpha * |common| + (1 - alpha) * n / distance(u, v)
    simrank_similarity          s <- c A' s A, with ones on the diagonal; A has column sums of 1

The common neighbors of u and v exclude u and v, and a self-loop counts twice in a degree. Without
``ebunch``, results cover all unlinked pairs, in NetworkX's order. SimRank iterates over all pairs,
as NetworkX does, but with sparse products: a step costs 2 * links * nodes.

Source: Jeh & Widom, "SimRank: a measure of structural-context similarity", 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain, islice
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from cocite.errors import ResourceError
from cocite.extras import need
from cocite.integrations.networkx.graph import BackendGraph
from cocite.resources import available, format_size

_PIECE = 1 << 12
Ids = NDArray[np.int64]
Pair = tuple[Any, Any]
Scored = Iterator[tuple[Any, Any, Any]]


def jaccard_coefficient(G: BackendGraph, ebunch: Any = None) -> Scored:
    """See :func:`networkx.jaccard_coefficient`."""
    sizes = np.diff(G.outs.offsets).astype(np.int64)

    def predict(u: Ids, v: Ids) -> Iterable[Any]:
        counts, _ = _shared(G, u, v, np.zeros(len(G)))
        union = sizes[u] + sizes[v] - counts[:, 0]
        return _plain(counts[:, 1] / np.maximum(union, 1))

    return _scored(G, predict, ebunch)


def resource_allocation_index(G: BackendGraph, ebunch: Any = None) -> Scored:
    """See :func:`networkx.resource_allocation_index`."""
    worth = 1 / np.maximum(G.degrees, 1)
    return _scored(G, lambda u, v: _plain(_shared(G, u, v, worth)[1]), ebunch)


def adamic_adar_index(G: BackendGraph, ebunch: Any = None) -> Scored:
    """See :func:`networkx.adamic_adar_index`.

    As in NetworkX, iteration raises :class:`ZeroDivisionError` at a common neighbor of degree 1,
    which only a pair (u, u) can have.
    """
    worth = 1 / np.log(np.maximum(G.degrees, 2))
    worth[G.degrees < 2] = np.inf

    def predict(u: Ids, v: Ids) -> Iterable[Any]:
        for value in _plain(_shared(G, u, v, worth)[1]):
            if value == np.inf:
                raise ZeroDivisionError("float division by zero")
            yield value

    return _scored(G, predict, ebunch)


def preferential_attachment(G: BackendGraph, ebunch: Any = None) -> Scored:
    """See :func:`networkx.preferential_attachment`."""
    degrees = G.degrees
    return _scored(G, lambda u, v: (degrees[u] * degrees[v]).tolist(), ebunch)


def common_neighbor_centrality(G: BackendGraph, ebunch: Any = None, alpha: float = 0.8) -> Scored:
    """See :func:`networkx.common_neighbor_centrality`."""
    far = _distances_in(G) if alpha != 1 else None

    def predict(u: Ids, v: Ids) -> Iterable[Any]:
        counts, _ = _shared(G, u, v, np.zeros(len(G)))
        common = counts[:, 1]
        values: NDArray[Any] = common
        if far is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                values = alpha * common + (1 - alpha) * len(G) / far(u, v)
        for same, value in zip((u == v).tolist(), values.tolist(), strict=True):
            if same:
                raise nx.NetworkXAlgorithmError("Self loops are not supported")
            yield value

    return _scored(G, predict, ebunch)


def _distances_in(graph: BackendGraph) -> Callable[[Ids, Ids], NDArray[np.float64]]:
    """Return a function from pairs to distances, which are infinite without a path."""
    from cocite.kernels.networks import reachable

    rows = graph.ins

    @lru_cache(1)  # pairs with the same first node are adjacent
    def from_node(source: int) -> NDArray[np.float64]:
        found = np.full(len(graph), -1, np.int32)
        reachable(rows.offsets, rows.neighbors, source, found, np.empty(len(graph), np.uint32))
        return np.where(found < 0, np.inf, found)

    def distances(u: Ids, v: Ids) -> NDArray[np.float64]:
        out = np.empty(u.size)
        for source in dict.fromkeys(u.tolist()):
            mine = u == source
            out[mine] = from_node(source)[v[mine]]
        return out

    return distances


def _plain(values: NDArray[np.float64]) -> Iterable[Any]:
    """Return Python floats, with the integer 0 for empty sums, as in NetworkX."""
    return (value or 0 for value in values.tolist())


def _shared(
    graph: BackendGraph, u: Ids, v: Ids, worth: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    from cocite.kernels.networks import meet

    counts, out = np.empty((u.size, 2), np.int64), np.empty(u.size)
    meet(graph.ins.offsets, graph.ins.neighbors, u, v, worth, counts, out)
    return counts, out


def _scored(
    graph: BackendGraph, predict: Callable[[Ids, Ids], Iterable[Any]], ebunch: Any
) -> Scored:
    """Yield (u, v, value) for every pair. Raises :class:`networkx.NodeNotFound` immediately."""
    given = [] if ebunch is None else list(ebunch)
    for node in chain.from_iterable(given):
        if node not in graph:
            raise nx.NodeNotFound(f"Node {node} not in G.")
    pairs = _unlinked(graph) if ebunch is None else iter(given)

    def score() -> Scored:
        while piece := list(islice(pairs, _PIECE)):
            first, second = zip(*piece, strict=True)
            values = predict(graph.ids(first), graph.ids(second))
            for (u, v), value in zip(piece, values, strict=True):
                yield u, v, value

    return score()


def _unlinked(graph: BackendGraph) -> Iterator[Pair]:
    """Yield unlinked pairs like ``networkx.non_edges``, in the order of sets."""
    left = set(graph)
    while left:
        u = left.pop()
        for v in left - set(graph.neighbors(u)):
            yield (u, v)


_SIMRANK_PIECE, _DENSE = 1 << 22, 0.1
"""Number of scores compared at a time; density of links above which dense products are faster."""
Matrix = NDArray[np.float64]


def simrank_similarity(
    G: BackendGraph,
    source: Any = None,
    target: Any = None,
    importance_factor: float = 0.9,
    max_iterations: int = 1000,
    tolerance: float = 0.0001,
) -> Any:
    """See :func:`networkx.simrank_similarity`; raises :class:`ResourceError` if the scores of all
    pairs do not fit in memory.
    """
    for title, node in (("Source", source), ("Target", target)):
        if node is not None and node not in G:
            raise nx.NodeNotFound(f"{title} node {node} not in G")
    wanted, have = 3 * 8 * len(G) ** 2, available()
    if wanted > have:
        raise ResourceError(
            f"the scores of all pairs of {len(G):,} nodes need {format_size(wanted)} of memory; "
            f"{format_size(have)} is available. Use an index, which needs less: "
            "cocite.build(cocite.ingest(G), measure='simrank').related(source)"
        )
    scores = _all_pairs(G, importance_factor, max_iterations, tolerance)
    if source is None:
        return {u: G.by_node(row) for u, row in zip(G, scores, strict=True)}
    row = scores[G.index[source]]
    return G.by_node(row) if target is None else float(row[G.index[target]])


def _all_pairs(graph: BackendGraph, c: float, most: int, tolerance: float) -> Matrix:
    turned: Any = _transitions(graph)
    if turned.nnz > _DENSE * len(graph) ** 2:
        turned = turned.toarray()
    scores = np.eye(len(graph))
    for step in range(1, most + 1):
        before = scores
        scores = np.ascontiguousarray((turned @ (turned @ before).T).T)
        scores *= c
        np.fill_diagonal(scores, 1.0)
        # As in NetworkX, convergence in the last step is not accepted.
        if step < most and _close(before, scores, tolerance):
            return scores
    raise nx.ExceededMaxIterations(f"simrank did not converge after {most} iterations.")


def _transitions(graph: BackendGraph) -> Any:
    """Return the sparse matrix A': each row has a node's in-neighbors, with a sum of 1."""
    sparse = need("scipy.sparse", "the backend of NetworkX", "scipy")
    weights = graph.weights("weight")
    values = weights if weights.size else np.ones(graph.outs.neighbors.size)
    ends = graph.outs.neighbors.astype(np.int64), graph.sources.astype(np.int64)
    found = sparse.csr_array((values, ends), shape=(len(graph), len(graph)))
    sums = np.asarray(found.sum(axis=1))
    sums[sums == 0] = 1
    found.data /= np.repeat(sums, np.diff(found.indptr))
    return found


def _close(before: Matrix, after: Matrix, tolerance: float) -> bool:
    """Return ``numpy.allclose``, computed in chunks of rows."""
    rows = max(1, _SIMRANK_PIECE // max(1, len(after)))
    return all(
        np.allclose(before[low : low + rows], after[low : low + rows], atol=tolerance)
        for low in range(0, len(after), rows)
    )
