"""SimRank as NetworkX has it: s <- c A' s A with ones on the diagonal, A of column sums 1.

NetworkX stops when no score of *any* pair has changed by more than ``tolerance`` (and 1e-5 of
itself), whatever was asked for, so the scores of all pairs are needed here, too, and the steps are
NetworkX's, with sparse products for its dense ones. Where they do not fit in memory it says so
before it begins; an index of cocite answers there.

Cost: 2 links * nodes a step, where NetworkX takes 2 nodes**3; three matrices of all pairs.
Source: Jeh & Widom 2002.
"""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from cocite.errors import ResourceError
from cocite.extras import need
from cocite.interop.networkx.graph import BackendGraph
from cocite.memory import available, format_size

__all__ = ["simrank_similarity"]

_PIECE = 1 << 22
_DENSE = 0.1
"""From how many of all pairs linked dense products are faster."""
Matrix = NDArray[np.float64]


def simrank_similarity(
    G: BackendGraph,
    source: Any = None,
    target: Any = None,
    importance_factor: float = 0.9,
    max_iterations: int = 1000,
    tolerance: float = 0.0001,
) -> Any:
    """As :func:`networkx.simrank_similarity`.

    Raises
    ------
    networkx.NodeNotFound, networkx.ExceededMaxIterations
        As there.
    ResourceError
        Where the scores of all pairs do not fit in memory.
    """
    for title, node in (("Source", source), ("Target", target)):
        if node is not None and node not in G:
            raise nx.NodeNotFound(f"{title} node {node} not in G")
    wanted, have = 3 * 8 * len(G) ** 2, available()
    if wanted > have:
        raise ResourceError(
            f"the scores of all pairs of {len(G):,} nodes take {format_size(wanted)} of memory; "
            f"{format_size(have)} are left. An index answers in less: "
            "cocite.build(cocite.ingest(G), measure='simrank').related(source)"
        )
    scores = _all_pairs(G, importance_factor, max_iterations, tolerance)
    if source is None:
        return {u: G.by_node(row) for u, row in zip(G, scores, strict=True)}
    row = scores[G.index[source]]
    return G.by_node(row) if target is None else float(row[G.index[target]])


def _all_pairs(graph: BackendGraph, c: float, most: int, tolerance: float) -> Matrix:
    nodes = len(graph)
    turned: Any = _transitions(graph)
    if turned.nnz > _DENSE * nodes**2:
        turned = turned.toarray()
    scores = np.eye(nodes)
    for step in range(1, most + 1):
        before = scores
        scores = np.ascontiguousarray((turned @ (turned @ before).T).T)
        scores *= c
        np.fill_diagonal(scores, 1.0)
        # As there, what comes about in the last step is refused.
        if step < most and _close(before, scores, tolerance):
            return scores
    raise nx.ExceededMaxIterations(f"simrank did not converge after {most} iterations.")


def _transitions(graph: BackendGraph) -> Any:
    """The matrix A': a row a node, its in-neighbours with their shares."""
    sparse = need("scipy.sparse", "the backend of NetworkX", "scipy")
    weights = graph.weights("weight")
    values = weights if weights.size else np.ones(graph.outs.neighbours.size)
    ends = graph.outs.neighbours.astype(np.int64), graph.sources.astype(np.int64)
    found = sparse.csr_array((values, ends), shape=(len(graph), len(graph)))
    sums = np.asarray(found.sum(axis=1))
    sums[sums == 0] = 1
    found.data /= np.repeat(sums, np.diff(found.indptr))
    return found


def _close(before: Matrix, after: Matrix, tolerance: float) -> bool:
    """``numpy.allclose``, some rows at a time."""
    rows = max(1, _PIECE // max(1, len(after)))
    return all(
        np.allclose(before[low : low + rows], after[low : low + rows], atol=tolerance)
        for low in range(0, len(after), rows)
    )
