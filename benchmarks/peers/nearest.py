"""Nearest pages by an embedding and a vector index, compared with cocite.

    python -m benchmarks.peers.nearest GRAPH METHOD        one run, in its own process: JSON

The embedding is scikit-learn's randomized singular value decomposition in 128 dimensions, of the
links taken both ways and scaled by degrees (``benchmarks.studies``). usearch and hnswlib find
neighbors by cosine, with default settings. cocite uses the default measure and PSimRank with 100
samples. All are built on all cores. For each:

    build       processor and wall seconds, from the stored graph to an index
    bytes       size of the index on disk
    query       wall milliseconds for k = 10, one page at a time: median and 99th percentile
    precision   precision@10 by the labels of a suite; graphs without labels have none
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cocite
from benchmarks.block import DATA, ROOT
from benchmarks.peers.graphs import FILES, prepare
from benchmarks.peers.worker import timed
from benchmarks.studies.checks import embed, graph_of, quick_judge
from benchmarks.studies.suite import load_suite
from cocite import Graph, Index
from cocite.evaluation import IndexRanker
from cocite.evaluation.points import JudgePlan
from cocite.evaluation.rankers import Related
from cocite.evaluation.truth import Truth, read_truth
from cocite.kernels.totals import order

EMBEDDING = "embedding"
NEAREST = ("usearch", "hnswlib")
OURS = ("neighborhood", "psimrank")
SUITES = {"wikispeedia": "wikispeedia", "cora": "cora-linqs", "polblogs": "polblogs", "web": ""}
GRAPHS = (*SUITES, "cnr-2000")
K, QUERIES, MORE, DIMENSIONS = 10, 1000, 50, 128
SHORT = 60.0
"""Seconds of the processor that building takes in a round that is made again."""
Found = dict[str, Any]


def there(name: str) -> bool:
    """Whether the data of a graph can be had."""
    return (DATA / SUITES.get(name, FILES.get(name, "-"))).exists()


def _data(name: str, folder: Path) -> tuple[Graph, Truth | None, JudgePlan]:
    """The graph, and what is alike there if that is known."""
    if name not in SUITES:
        return cocite.ingest(prepare(name, folder).file, folder / "graph"), None, JudgePlan()
    suite = load_suite(name)
    place = DATA / SUITES[name] if SUITES[name] else None
    graph, plan = graph_of(suite.data, place, folder, lambda stage, done, total: None)
    return graph, read_truth(graph.names, plan, suite.judge, place or Path()), suite.judge


class Vectors:
    """A vector index as a ranker; ``search(vector, k)`` gives ids and distances, itself too."""

    def __init__(
        self,
        vectors: NDArray[np.float32],
        search: Callable[[NDArray[np.float32], int], tuple[NDArray[Any], NDArray[Any]]],
        truth: Truth | None,
    ) -> None:
        self._vectors, self._search, self.nodes = vectors, search, len(vectors)
        among = truth.candidates if truth else None
        self._among = None if among is None else np.isin(np.arange(self.nodes), among)

    def related(self, node: int, k: int) -> Related:
        """Those of ``MORE`` neighbors that may be hits, the nearest k."""
        ids, distances = self._search(self._vectors[node], max(k, MORE) + 1)
        fine = (ids != node) & (distances < 1)
        if self._among is not None:
            fine &= self._among[ids]
        found = ids[fine][:k].astype(np.uint32), 1 - distances[fine][:k].astype(float)
        places = order(*found)
        return Related(found[0][places], found[1][places])


def _usearch(vectors: NDArray[np.float32], file: Path) -> Callable[..., Any]:
    from usearch.index import Index as VectorIndex

    index = VectorIndex(ndim=vectors.shape[1], metric="cos")
    index.add(np.arange(len(vectors)), vectors)
    index.save(str(file))

    def search(vector: NDArray[np.float32], k: int) -> tuple[NDArray[Any], NDArray[Any]]:
        found = index.search(vector, k)
        return np.asarray(found.keys, np.int64), np.asarray(found.distances)

    return search


def _hnswlib(vectors: NDArray[np.float32], file: Path) -> Callable[..., Any]:
    import hnswlib

    index = hnswlib.Index(space="cosine", dim=vectors.shape[1])
    index.init_index(max_elements=len(vectors))
    index.add_items(vectors)
    index.set_ef(2 * MORE)  # it has to be above k
    index.save_index(str(file))

    def search(vector: NDArray[np.float32], k: int) -> tuple[NDArray[Any], NDArray[Any]]:
        ids, distances = index.knn_query(vector, min(k, len(vectors)))
        return ids[0].astype(np.int64), distances[0]

    return search


def _questions(ask: Callable[[int], object], nodes: int) -> list[float]:
    """Milliseconds: median and 99th percentile, of random pages, after some that do not count."""
    chosen = np.random.default_rng(0).integers(0, nodes, QUERIES).tolist()
    for node in chosen[:100]:
        ask(node)
    times = []
    for node in chosen:
        begin = time.perf_counter()
        ask(node)
        times.append(1e3 * (time.perf_counter() - begin))
    return [float(np.median(times)), float(np.percentile(times, 99))]


def one(name: str, method: str) -> Found:
    """A run of a method."""
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as place:
        folder = Path(place)
        graph, truth, plan = _data(name, folder)
        ranker: Any
        found: Found = {"nodes": graph.nodes, "links": graph.edges}
        if method in OURS:
            found["build"], index = timed(
                lambda: cocite.build(graph, folder / "index", measure=method, overwrite=True)
            )
            found["bytes"] = index.stored.store.nbytes
            ranker = IndexRanker(index, truth.candidates if truth else None)
            found["query"] = _asked(index)
        else:
            found["vectors"], vectors = timed(lambda: embed(graph, dimensions=DIMENSIONS))
            make = {"usearch": _usearch, "hnswlib": _hnswlib}[method]
            file = folder / "vectors"
            indexed, search = timed(lambda: make(vectors, file))
            found["build"] = [a + b for a, b in zip(found["vectors"], indexed, strict=True)]
            found["bytes"] = file.stat().st_size
            ranker = Vectors(vectors, search, truth)
            found["query"] = _questions(lambda node: search(vectors[node], K + 1), graph.nodes)
        if truth is not None:
            judge = quick_judge(truth, plan, truth.queries)
            found["precision"] = judge(ranker).value(f"precision@{K}")
    return found


def _asked(index: Index) -> list[float]:
    names = index.nodes.names(np.arange(len(index.nodes), dtype=np.uint32))
    return _questions(lambda node: index.related(names[node], K), len(names))


def _run(graph: str, method: str) -> Found:
    command = [sys.executable, "-m", "benchmarks.peers.nearest", graph, method]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


def beside(graph: str, library: str, runs: int) -> Found:
    """``theirs`` and each of OURS by turns, after a round that is not counted where a run is short;
    or ``why`` not.
    """
    methods = (*OURS, library)
    row: Found = {"task": EMBEDDING, "library": library}
    try:
        found = {method: [_run(graph, method)] for method in methods}
        if sum(runs[0]["build"][0] for runs in found.values()) < SHORT:
            found = {method: [] for method in methods}
            for _ in range(runs):
                for method in methods:
                    found[method].append(_run(graph, method))
    except subprocess.CalledProcessError as failed:
        lines = failed.stderr.strip().splitlines() or ["no message"]
        return {**row, "why": f"failed: {lines[-1][:200]}"}
    theirs = found.pop(library)
    facts = {key: theirs[0][key] for key in ("nodes", "links")}
    return {**row, **facts, "ours": found, "theirs": theirs}


if __name__ == "__main__":
    print(json.dumps(one(*sys.argv[1:])))
