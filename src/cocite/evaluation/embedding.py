"""Baselines that a user would pick instead: node embeddings with nearest neighbours.

    spectral   the largest singular vectors, scaled by their values, of the links taken both ways
               and divided by the roots of both ends' degrees:
               D**(-1/2) (A + A^T) D**(-1/2), D the diagonal of its row sums
    walks      skip-gram vectors of random walks along links taken both ways (DeepWalk; node2vec
               with p = q = 1): 10 walks of 40 nodes from each node, windows of 5 nodes each way

Nearest neighbours are those of the largest cosine (``rankings.VectorRanker``). Both say nothing of
the direction of links; a node without links has no neighbours.

``spectral`` takes scikit-learn (the extra ``evaluate``), ``walks`` gensim (the extra ``embed``);
both give the same vectors again for the same seed on the same machine.

Cost: spectral 12 products of the matrix with dimensions + 10 columns, which stay in memory; walks
about 10 us a node of a walk on one core.
Source: Halko, Martinsson, Tropp 2011 for the randomised decomposition; Perozzi, Al-Rfou, Skiena
2014, *DeepWalk*; Grover, Leskovec 2016, *node2vec*.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.extras import need
from cocite.graph import Graph

__all__ = ["KINDS", "embed"]

KINDS = ("spectral", "walks")
_WALKS, _WALK_LENGTH, _WINDOW = 10, 40, 5


def embed(
    graph: Graph, kind: str = "spectral", dimensions: int = 128, seed: int = 0
) -> NDArray[np.float32]:
    """float32[nodes, dimensions]: a vector for every node; fewer dimensions on tiny graphs.

    Raises :class:`~cocite.errors.UsageError` for a kind that there is not, and without its library.
    """
    if kind not in KINDS:
        raise UsageError(f"no embedding is called {kind!r}; there are " + ", ".join(KINDS))
    if dimensions < 1:
        raise UsageError(f"dimensions is {dimensions}; it is a whole number, 1 or more")
    make = _spectral if kind == "spectral" else _walks
    return make(graph, dimensions, seed)


def _both_ways(graph: Graph) -> Any:
    """The symmetric sparse matrix of links; a pair linked both ways counts twice."""
    sparse = need("scipy.sparse", "an embedding")
    counts = np.diff(graph.in_offsets).astype(np.int64)
    targets = np.repeat(np.arange(graph.nodes), counts)
    shape = graph.nodes, graph.nodes
    links = sparse.csr_matrix((np.ones(graph.edges), (targets, graph.in_sources)), shape=shape)
    return (links + links.T).tocsr()


def _spectral(graph: Graph, dimensions: int, seed: int) -> NDArray[np.float32]:
    extmath = need("sklearn.utils.extmath", "the spectral embedding")
    links = _both_ways(graph)
    degrees = np.asarray(links.sum(axis=1)).ravel()
    scale = np.zeros(graph.nodes)
    np.divide(1, np.sqrt(degrees), out=scale, where=degrees > 0)
    links = links.multiply(scale[:, None]).multiply(scale[None, :]).tocsr()
    vectors, values, _ = extmath.randomized_svd(
        links, min(dimensions, graph.nodes), n_iter=6, random_state=seed % 2**32
    )
    found: NDArray[np.float32] = (vectors * values).astype(np.float32)
    return found


class _Walked:
    """Random walks as sentences of node ids; gensim reads them several times."""

    def __init__(self, links: Any, seed: int) -> None:
        self._offsets, self._neighbours, self._seed = links.indptr, links.indices, seed
        self._starts = np.flatnonzero(np.diff(links.indptr))

    def __iter__(self) -> Iterator[list[str]]:
        rng = np.random.default_rng(self._seed)
        for _ in range(_WALKS):
            at = rng.permutation(self._starts)
            path = np.empty((at.size, _WALK_LENGTH), np.int64)
            for step in range(_WALK_LENGTH):
                path[:, step] = at
                first, end = self._offsets[at], self._offsets[at + 1]
                at = self._neighbours[first + (rng.random(at.size) * (end - first)).astype(int)]
            yield from (list(map(str, row)) for row in path.tolist())


def _walks(graph: Graph, dimensions: int, seed: int) -> NDArray[np.float32]:
    models = need("gensim.models", "the embedding of walks")
    found = np.zeros((graph.nodes, dimensions), np.float32)
    walked = _Walked(_both_ways(graph), seed)
    if graph.edges == 0:
        return found
    model = models.Word2Vec(
        walked,
        vector_size=dimensions,
        window=_WINDOW,
        sg=1,
        min_count=0,
        workers=1,  # with more of them the vectors depend on who is first
        seed=seed % 2**32,
        epochs=5,
    )
    ids = np.array(model.wv.index_to_key, np.int64)
    found[ids] = model.wv.vectors
    return found
