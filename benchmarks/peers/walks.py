"""SimRank by each library: of all pairs, and from one source to all nodes.

    S = decay * mean of S over pairs of in-neighbors, 1 on the diagonal        decay 0.6

NetworkX always computes all pairs, on dense matrices. SciPy and GraphBLAS have no SimRank and are
represented by the few lines that their products require. igraph, NetworKit and scikit-network offer
nothing comparable. A change of all scores of at most error * (1 - decay) / decay bounds the error,
so libraries that stop on changes get this tolerance.

For one source, cocite's solution is a refined result of an index of samples, whose build is part of
the loading. The error of its scores is certified.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cocite
from benchmarks.peers.loads import Ours, load_cocite
from cocite import Index

DECAY, SOURCE, SAMPLES = 0.6, 0, 100
Matrix = NDArray[np.float64]


class Indexed(NamedTuple):
    """An index beside its graph."""

    ours: Ours
    answers: Index


def load_index(file: Path) -> Indexed:
    """The graph, and an index that is ready for refined answers."""
    ours = load_cocite(file)
    index = cocite.build(
        ours.graph,
        file.with_suffix(".index"),
        measure="simrank",
        samples=SAMPLES,
        refine=True,
        overwrite=True,
    )
    return Indexed(ours, index)


def _all(loaded: Ours, epsilon: float) -> Matrix:
    scores = cocite.exact_simrank(loaded.graph, decay=DECAY, epsilon=epsilon)
    return np.asarray(scores.array(), float)


def all_exactly(loaded: Ours) -> Matrix:
    """What all are compared with: ours to 1e-9."""
    return all_by_cocite(loaded, 1e-9)


def all_by_cocite(loaded: Ours, error: float) -> Matrix:
    found = np.empty((loaded.graph.nodes, loaded.graph.nodes))
    found[np.ix_(loaded.names, loaded.names)] = _all(loaded, error)
    return found


def all_by_networkx(loaded: Any, error: float) -> Matrix:
    import networkx

    found = networkx.simrank_similarity(
        loaded,
        importance_factor=DECAY,
        max_iterations=1000,
        tolerance=error * (1 - DECAY) / DECAY,
    )
    where = np.array(list(found))
    matrix = np.empty((where.size, where.size))
    for u, row in found.items():
        matrix[u, list(row)] = list(row.values())
    return matrix


def all_by_scipy(links: Any, error: float) -> Matrix:
    """S = decay * W S W', W the rows of links divided by their sums."""
    sums = np.asarray(links.sum(axis=1)).ravel()
    mean = links.multiply(1 / np.maximum(sums, 1)[:, None]).tocsr()
    found = np.eye(links.shape[0])
    while True:
        after = DECAY * (mean @ (mean @ found).T)
        np.fill_diagonal(after, 1)
        change = np.abs(after - found).max()
        found = after
        if change < error * (1 - DECAY) / DECAY:
            return np.asarray(found)


def all_by_graphblas(links: Any, error: float) -> Matrix:
    """The same."""
    from graphblas import Matrix as GraphMatrix
    from graphblas import semiring

    sums = np.maximum(links.reduce_rowwise("plus").new().to_dense(fill_value=0.0), 1)
    scale = GraphMatrix.from_coo(range(links.nrows), range(links.nrows), 1 / sums)
    mean = semiring.plus_times(scale @ links).new()
    found = np.eye(links.nrows)
    while True:
        half = semiring.plus_times(mean @ GraphMatrix.from_dense(found)).new()
        after = DECAY * semiring.plus_times(half @ mean.T).new().to_dense(fill_value=0.0)
        np.fill_diagonal(after, 1)
        change = np.abs(after - found).max()
        found = after
        if change < error * (1 - DECAY) / DECAY:
            return np.asarray(found)


def source_exactly(loaded: Indexed) -> Matrix:
    """The row of all pairs."""
    return np.asarray(all_exactly(loaded.ours)[SOURCE])


def source_by_cocite(loaded: Indexed, error: float) -> Matrix:
    n = loaded.ours.graph.nodes
    hits = loaded.answers.related(str(SOURCE), k=n, target_error=error, decay=DECAY)
    found = np.zeros(n)
    found[[int(hit.node) for hit in hits]] = [hit.score for hit in hits]
    found[SOURCE] = 1
    return found


def source_by_networkx(loaded: Any, error: float) -> Matrix:
    import networkx

    row = networkx.simrank_similarity(
        loaded,
        source=SOURCE,
        importance_factor=DECAY,
        max_iterations=1000,
        tolerance=error * (1 - DECAY) / DECAY,
    )
    found = np.empty(len(loaded))
    found[list(row)] = list(row.values())
    return found


def source_by_scipy(links: Any, error: float) -> Matrix:
    return np.asarray(all_by_scipy(links, error)[SOURCE])


def source_by_graphblas(links: Any, error: float) -> Matrix:
    return np.asarray(all_by_graphblas(links, error)[SOURCE])
