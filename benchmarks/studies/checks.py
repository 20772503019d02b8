"""Baselines, accuracy and structure.

**Baselines** are node embeddings with nearest neighbors, which a user might choose instead:

    spectral   the largest singular vectors, scaled by their values, of the undirected links,
               divided by the square roots of the degrees of both ends:
               D**(-1/2) (A + A^T) D**(-1/2), D the diagonal of its row sums
    walks      skip-gram vectors of random walks along undirected links (DeepWalk; node2vec
               with p = q = 1): 10 walks of 40 nodes from each node, windows of 5 nodes each way

Nearest neighbors have the largest cosine (``rankings.VectorRanker``). Both embeddings ignore the
direction of links; a node without links has no neighbors. ``spectral`` needs scikit-learn (the
extra ``evaluate``), ``walks`` needs gensim (the extra ``embed``). On the same machine, the same
seed gives the same vectors.

Cost: for spectral, 12 products of the matrix with dimensions + 10 columns, which are kept in
memory; for walks, about 10 us per node of a walk on one core.
Source: Halko, Martinsson, Tropp 2011 for the randomized decomposition; Perozzi, Al-Rfou, Skiena
2014, *DeepWalk*; Grover, Leskovec 2016, *node2vec*.

**Accuracy** compares estimates with exact scores, without labels. With s the exact score and e the
estimate, over the queries v and all nodes w:

    mean error      mean of |e(v, w) - s(v, w)| over w other than v
    largest error   the largest of these
    ave_err         the mean over all w including v, whose error is 0 (003, eq. 13, over the rows of
                    the queries instead of all rows)
    precision@k     the fraction of the first k hits whose exact score is at least the k-th best
                    exact score, so ties count as found; if fewer score above 0, k is their number

Exact scores are read row by row, from a matrix or a solver (``Rows``). Cost: a list and an exact
row per query.
Source: Yu, Zhang, Lin, Zhang, Le, *A space and time efficient algorithm for SimRank computation*,
6.1.3.

**Structure** is the cost of reading fingerprint trees and of building walks, by walk length. A
query reads the tree of its node in every sample, so its cost depends on

    mean tree      the mean, over nodes and samples, of the size of the node's tree
    largest tree   the largest of all
    alone          the fraction of nodes that met no other node, and are alone in their trees

One index has the trees of all lengths up to its own. Draws are keyed by step, so long walks begin
with the shorter walks; and in dendrogram order, a label is the step at which a member joins the
previous member. So the trees of length l are the runs between labels that are 0 or above l.

    live tokens    the number of walks before each step that have neither ended nor met: the cost
                   of building

No index stores this number, so the walks of the first samples are drawn again. Cost: one pass over
the labels of these samples, and for the tokens a walk per sample.
Source: Fogaras, Racz, *Scaling link-based similarity search*, 5.3 and figure 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.studies.plans import SuiteData
from cocite.errors import UsageError
from cocite.evaluation.judge import Judge
from cocite.evaluation.points import JudgePlan
from cocite.evaluation.rankers import Ranker
from cocite.evaluation.truth import Truth
from cocite.extras import need
from cocite.graph import Graph
from cocite.graph.generate import generate_web
from cocite.graph.links import links_of
from cocite.index.layouts.batch_maker import SampleJob
from cocite.index.layouts.memory_plan import MemoryPlan
from cocite.index.layouts.reader import sampled_builder
from cocite.index.layouts.trees.format import labels_of
from cocite.index.layouts.trees.reader import TreeReader
from cocite.io.ingest import ingest
from cocite.kernels import runs
from cocite.measures import LENGTH
from cocite.search import Index

Progress = Callable[[str, int, int], None]


def graph_of(
    plan: SuiteData, folder: Path | None, work: Path, progress: Progress
) -> tuple[Graph, SuiteData]:
    """The graph, and the plan with what making it has added: the labels of a generated web.

    Raises :class:`~cocite.errors.UsageError` without a folder for data that is read.
    """
    if plan.web:
        wrong = set(plan.web) - {"nodes", "links", "seed"}
        if wrong or not {"nodes", "links"} <= set(plan.web):
            raise UsageError("[data] web takes nodes, links and seed")
        labels = work / "topics.tsv"
        graph = generate_web(
            work / "web.graph",
            nodes=plan.web["nodes"],
            links=plan.web["links"],
            seed=plan.web.get("seed", 0),
            labels=labels,
            progress=progress,
        )
        return graph, replace(plan, labels=str(labels))
    if folder is None:
        raise UsageError("the suite reads data: name the folder that it is in")
    if plan.graph:
        graph = Graph.open(folder / plan.graph)
        graph.check()
        return graph, plan
    if not plan.links:
        raise UsageError("[data] names neither links, nor a graph, nor a web")
    graph = ingest(
        folder / plan.links,
        work / "links.graph",
        columns=plan.columns,
        undirected=plan.undirected,
        progress=progress,
    )
    return graph, plan


def quick_judge(truth: Truth, plan: JudgePlan, queries: NDArray[np.uint32]) -> Judge:
    """Return a judge that looks at no more of a list than the largest cutoff, for many rankers."""
    relevance = truth.labels.collapsed() if truth.labels else None
    return Judge(queries, relevance=relevance, cutoffs=plan.cutoffs, longest=max(plan.cutoffs))


# -- embedding ---------------------------------------------------------------------------


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
        self._offsets, self._neighbors, self._seed = links.indptr, links.indices, seed
        self._starts = np.flatnonzero(np.diff(links.indptr))

    def __iter__(self) -> Iterator[list[str]]:
        rng = np.random.default_rng(self._seed)
        for _ in range(_WALKS):
            at = rng.permutation(self._starts)
            path = np.empty((at.size, _WALK_LENGTH), np.int64)
            for step in range(_WALK_LENGTH):
                path[:, step] = at
                first, end = self._offsets[at], self._offsets[at + 1]
                at = self._neighbors[first + (rng.random(at.size) * (end - first)).astype(int)]
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


# -- accuracy ----------------------------------------------------------------------------


_TIE = 1e-9
"""Exact scores that differ by less are equal: they come out of sums in some order."""

Rows = Callable[[int], NDArray[Any]]
"""The exact scores of a node and all nodes, [nodes]."""


@dataclass(frozen=True)
class Accuracy:
    """``precision`` by k; nan if no query has an exact score above 0."""

    queries: int
    mean_error: float
    largest_error: float
    ave_err: float
    precision: dict[int, float]


def accuracy(
    ranker: Ranker,
    exact: Rows,
    queries: NDArray[np.uint32],
    ks: Sequence[int] = (10, 20),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Accuracy:
    """Compare a ranker's scores with exact ones on some queries."""
    total, largest = 0.0, 0.0
    shares: dict[int, list[float]] = {k: [] for k in ks}
    for done, node in enumerate(queries.tolist(), 1):
        truth = np.array(exact(node), np.float64)
        truth[node] = 0  # a node and itself: left out of all but ave_err, where it adds nothing
        hits, scores = ranker.related(node, ranker.nodes)
        errors = truth.copy()
        errors[hits] -= scores
        errors = np.abs(errors)
        total += float(errors.sum())
        largest = max(largest, float(errors.max()))
        for k in ks:
            share = _found(truth, hits, k)
            if share is not None:
                shares[k].append(share)
        progress(done, queries.size)
    count, nodes = queries.size, ranker.nodes
    return Accuracy(
        queries=count,
        mean_error=total / (count * max(1, nodes - 1)),
        largest_error=largest,
        ave_err=total / (count * nodes),
        precision={k: float(np.mean(v)) if v else float("nan") for k, v in shares.items()},
    )


def _found(truth: NDArray[np.float64], hits: NDArray[np.uint32], k: int) -> float | None:
    """The share of the best k that is among the first k hits; None if nothing is to be found."""
    size = min(k, int(np.count_nonzero(truth > 0)))
    if size == 0:
        return None
    least = np.partition(truth, truth.size - size)[truth.size - size]
    return float(np.count_nonzero(truth[hits[:size]] >= least - _TIE)) / size


# -- structure ---------------------------------------------------------------------------


@dataclass(frozen=True)
class TreeSizes:
    """Trees at one length, over all samples (and directions) of an index."""

    length: int
    mean: float
    largest: int
    alone: float


def has_trees(index: Index) -> bool:
    """Whether the index is one of fingerprint trees."""
    return all(part.layout in ("trees", "packed") for part in index.stored.parts)


def _length(index: Index) -> int:
    """Steps of its longest walks."""
    return max(part.settings[LENGTH] for part in index.stored.parts)


def labels_in(reader: TreeReader) -> Iterator[NDArray[np.uint8]]:
    """Yield the labels of each sample in dendrogram order, uint8[members]."""
    for row in reader.table if reader.part.layout == "packed" else ():
        member = np.empty(reader.part.nodes, np.uint32)
        joined = np.empty(reader.part.nodes, np.uint8)
        yield joined[: int(runs.unpack(row, member, joined))]
    for shard in reader.part.shards if reader.part.layout == "trees" else ():
        for _, first, _, members in shard.blobs[:, :4].tolist():
            yield labels_of(shard.words[first:], members)


def tree_sizes(index: Index) -> list[TreeSizes]:
    """For every length from 1 to the index's own.

    Raises :class:`~cocite.errors.UsageError` for an index in another layout than ``trees`` and
    ``packed``.
    """
    if not has_trees(index):
        raise UsageError(f"{index!r} has no fingerprint trees: the layouts trees and packed have")
    nodes, length = index.stored.nodes, _length(index)
    squares, largest, alone = (np.zeros(length + 1) for _ in range(3))
    samples = 0
    for reader in index.scorer.readers:
        assert isinstance(reader, TreeReader)
        for labels in labels_in(reader):
            samples += 1
            others = nodes - labels.size
            for limit in range(1, length + 1):
                sizes = _runs(labels, limit)
                squares[limit] += float((sizes.astype(np.float64) ** 2).sum()) + others
                largest[limit] = max(largest[limit], sizes.max(initial=1))
                alone[limit] += np.count_nonzero(sizes == 1) + others
    count = samples * nodes
    return [
        TreeSizes(limit, squares[limit] / count, int(largest[limit]), alone[limit] / count)
        for limit in range(1, length + 1)
    ]


def _runs(labels: NDArray[np.uint8], limit: int) -> NDArray[np.int64]:
    """The sizes of the trees of walks of ``limit`` steps."""
    starts = np.flatnonzero((labels == 0) | (labels > limit))
    return np.diff(starts, append=labels.size)


def live_tokens(graph: Graph, index: Index, samples: int = 5) -> NDArray[np.float64]:
    """float64[length]: the mean number of live tokens before each step, as a share of the nodes.

    Parameters
    ----------
    graph
        The graph that the index was built from.
    index
        Whose first walks are made again, by its own draws; of all its parts if it has several.
    samples
        How many of them, or as many as it has.

    Raises
    ------
    UsageError
        For an index without fingerprint trees, or of another graph.
    """
    if not has_trees(index):
        raise UsageError(f"{index!r} has no fingerprint trees: the layouts trees and packed have")
    if graph.digest != index.stored.graph["digest"]:
        raise UsageError(f"{index!r} was built from another graph")
    graph.check()
    found = np.zeros(_length(index))
    samples = min(samples, index.samples or 0)
    for part in index.stored.parts:
        links = links_of(graph, part.direction, index.means.memory, weighted=part.weighted)
        fit = MemoryPlan(memory=0, threads=1, cuts=())  # all in memory
        builder = sampled_builder(part.layout)
        (make,) = builder.makers(links, SampleJob(part.plan, range(samples), Path()), fit)
        for sample in range(samples):
            live = make(sample).live
            found[: len(live)] += live
    return found / (samples * len(index.stored.parts) * graph.nodes)
