"""PageRank by each library, to an L1 error set as precisely as each library permits.

The chain is the same for all: damping 0.85, with uniform jumps, also from pages without out-links.
A change of one step of at most error * (1 - damping) / damping bounds the error, so libraries that
stop on changes get this tolerance; NetworkX takes the error of the mean page. igraph's PRPACK has
no tolerance and ends near 1e-11. scikit-network neither measures the error nor jumps from pages
without out-links, so its result is reported but not compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.loads import Ours

DAMPING = 0.85
Vector = NDArray[np.float64]


def exactly(loaded: Ours) -> Vector:
    """What all are compared with: our ranks at a residual of 1e-14, which igraph's confirm."""
    from cocite.ranking import pagerank

    return loaded.by_name(pagerank(loaded.graph, tolerance=1e-14, max_sweeps=1000).values)


def by_cocite(loaded: Ours, error: float) -> Vector:
    """Its bound on the error is certified: residual / (1 - damping)."""
    from cocite.ranking import pagerank

    values = pagerank(loaded.graph, tolerance=error * (1 - DAMPING)).values
    return loaded.by_name(values)


def by_igraph(loaded: Any, error: float) -> Vector:
    del error
    return np.array(loaded.pagerank(damping=DAMPING))


def by_scipy(links: Any, error: float) -> Vector:
    """Power iteration, as anyone would write it."""
    n = links.shape[0]
    out = np.asarray(links.sum(axis=0)).ravel()
    dangling = out == 0
    matrix = links.multiply(1 / np.where(dangling, 1, out)).tocsr()
    x = np.full(n, 1 / n)
    while True:
        after = DAMPING * (matrix @ x + x[dangling].sum() / n) + (1 - DAMPING) / n
        change = np.abs(after - x).sum()
        x = after
        if change < error * (1 - DAMPING) / DAMPING:
            return np.asarray(x)


def by_graphblas(links: Any, error: float) -> Vector:
    """The same over the semiring plus_second: links have no values that count."""
    from graphblas import Vector as GraphVector
    from graphblas import semiring

    n = links.nrows
    out = links.reduce_columnwise("plus").new().to_dense(fill_value=0.0)
    dangling, shares = out == 0, DAMPING / np.maximum(out, 1)
    x = np.full(n, 1 / n)
    while True:
        found = semiring.plus_second(links @ GraphVector.from_dense(x * shares)).new()
        base = (DAMPING * x[dangling].sum() + 1 - DAMPING) / n
        after = found.to_dense(fill_value=0.0) + base
        change = np.abs(after - x).sum()
        x = after
        if change < error * (1 - DAMPING) / DAMPING:
            return np.asarray(x)


def by_networkit(loaded: Any, error: float) -> Vector:
    import networkit

    rank = networkit.centrality.PageRank(
        loaded,
        DAMPING,
        error * (1 - DAMPING) / DAMPING,
        distributeSinks=networkit.centrality.SinkHandling.DistributeSinks,
    )
    rank.norm = networkit.centrality.Norm.L1_NORM
    return np.array(rank.run().scores())


def by_networkx(loaded: Any, error: float) -> Vector:
    import networkx

    tolerance = error * (1 - DAMPING) / DAMPING / len(loaded)
    ranks = networkx.pagerank(loaded, alpha=DAMPING, tol=tolerance, max_iter=1000)
    found = np.empty(len(loaded))
    found[np.array(list(ranks))] = np.array(list(ranks.values()))
    return found


def by_scikit_network(links: Any, error: float) -> Vector:
    from sknetwork.ranking import PageRank

    rank = PageRank(DAMPING, n_iter=1000, tol=error * (1 - DAMPING) / DAMPING)
    return np.asarray(rank.fit_predict(links))
