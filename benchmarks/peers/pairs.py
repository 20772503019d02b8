"""Jaccard coefficients of pairs of pages, links taken either way: |N(u) & N(v)| / |N(u) | N(v)|.

The pairs are in a file next to the text. Both pages of a pair are linked from the same random page,
so that they have common neighbors. cocite is called through NetworkX's backend. SciPy multiplies
rows pair by pair; GraphBLAS computes the entries of the squared matrix that a mask selects. All are
exact. scikit-network has no such function.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.loads import load_graphblas, load_scipy

PIECE = 1 << 13
Pairs = NDArray[np.int64]
Values = NDArray[np.float64]


class Asked(NamedTuple):
    """A graph in some form, and the pairs as it takes them."""

    graph: Any
    pairs: Any


def pairs_file(file: Path) -> Path:
    """Where the pairs of a text lie: int64[pairs, 2]."""
    return file.with_suffix(".pairs.npy")


def _pairs(file: Path) -> Pairs:
    return np.asarray(np.load(pairs_file(file)))


def _tuples(file: Path) -> list[tuple[int, int]]:
    return [(u, v) for u, v in _pairs(file).tolist()]


def load_cocite(file: Path) -> Asked:
    from cocite.integrations.networkx import backend

    with file.open("rb") as opened:
        return Asked(backend.read_edgelist(opened, nodetype=int), _tuples(file))


def load_networkx(file: Path) -> Asked:
    import networkx

    return Asked(networkx.read_edgelist(file, nodetype=int, backend="networkx"), _tuples(file))


def by_networkx(asked: Asked, error: float) -> Values:
    import networkx

    del error
    found = networkx.jaccard_coefficient(asked.graph, asked.pairs)
    return np.array([value for _, _, value in found])


def by_cocite(asked: Asked, error: float) -> Values:
    """What NetworkX calls of its backend."""
    from cocite.integrations.networkx import backend

    del error
    return np.array([value for _, _, value in backend.jaccard_coefficient(*asked)])


def exactly(asked: Asked) -> Values:
    """What all are compared with, by sets."""
    around: dict[int, set[int]] = {}
    found = []
    for pair in asked.pairs:
        for node in pair:
            if node not in around:
                around[node] = set(asked.graph[node])
        u, v = (around[node] for node in pair)
        found.append(len(u & v) / max(1, len(u | v)))
    return np.array(found)


def load_igraph(file: Path) -> Asked:
    import igraph

    graph = igraph.Graph.Read_Edgelist(str(file), directed=False)
    return Asked(graph.simplify(), _tuples(file))


def by_igraph(asked: Asked, error: float) -> Values:
    del error
    return np.array(asked.graph.similarity_jaccard(pairs=asked.pairs, loops=False))


def load_networkit(file: Path) -> Asked:
    import networkit

    graph = networkit.graphio.EdgeListReader(" ", 0, directed=False).read(str(file))
    graph.removeMultiEdges()
    return Asked(graph, _tuples(file))


def by_networkit(asked: Asked, error: float) -> Values:
    import networkit

    del error
    found = dict(networkit.linkprediction.JaccardIndex(asked.graph).runOn(asked.pairs))
    return np.array([found[pair] for pair in asked.pairs])


def load_scipy_pairs(file: Path) -> Asked:
    links = load_scipy(file)
    either = (links + links.T).tocsr()
    either.data[:] = 1
    return Asked(either, _pairs(file))


def _of_shared(shared: Values, degrees: Values, pairs: Pairs) -> Values:
    union = degrees[pairs[:, 0]] + degrees[pairs[:, 1]] - shared
    return shared / np.maximum(union, 1)


def by_scipy(asked: Asked, error: float) -> Values:
    del error
    links, pairs = asked
    shared = np.empty(len(pairs))
    for low in range(0, len(pairs), PIECE):
        u, v = pairs[low : low + PIECE].T
        shared[low : low + PIECE] = links[u].multiply(links[v]).sum(axis=1)
    return _of_shared(shared, np.asarray(links.sum(axis=1)).ravel(), pairs)


def load_graphblas_pairs(file: Path) -> Asked:
    from graphblas import binary

    links = load_graphblas(file)
    either = links.ewise_add(links.T, binary.any).new()
    return Asked(either, _pairs(file))


def by_graphblas(asked: Asked, error: float) -> Values:
    from graphblas import Matrix, semiring

    del error
    links, pairs = asked
    n = links.nrows
    mask = Matrix.from_coo(pairs[:, 0], pairs[:, 1], 1.0, nrows=n, ncols=n)
    counts = semiring.plus_pair(links @ links.T).new(dtype=float, mask=mask.S)
    rows, columns, values = counts.to_coo()
    keys, wanted = rows.astype(np.int64) * n + columns.astype(np.int64), pairs @ np.array([n, 1])
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    shared = np.where(keys[at] == wanted, values[at], 0.0)
    return _of_shared(shared, links.reduce_rowwise("count").new().to_dense(fill_value=0.0), pairs)
