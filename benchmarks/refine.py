"""Refined SimRank compared with exact scores: ``python -m benchmarks.refine [GRAPH ...]``.

For each graph (a name in the data folder, or the path of a stored graph), builds an index of few
samples that supports refinement, queries about 100 nodes with in-links, and compares the results
with exact scores. These require SciPy: the iteration on the full matrix in float64 until it is
stationary, or, if that does not fit, rows without truncation from a diagonal certified three times
closer.

``--ways`` compares methods for the same top 20: from an index that supports refinement, from the
graph alone, and with more samples for the best hits of an index.

    precision     entries of the refined top 20 that are in the exact one, apart from ties
    error         the largest |score - truth| over all nodes, and the largest that intervals allow
    outside       number of scores outside their interval
    certain       positions of the top 20 whose interval lies above the next one's
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cocite
from cocite import Graph, Index
from cocite.engine.diagonal import make_diagonal
from cocite.graph.links import in_links, links_of
from cocite.resources import format_size
from cocite.search.refine.candidates import MOST_SAMPLES, SampleRefiner

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("COCITE_DATA", ROOT.parent / "shared" / "data"))
FILES = {
    "wiki-Vote": "wiki-Vote/wiki-Vote.txt",
    "wikispeedia": "wikispeedia/links.tsv",
    "cit-HepPh": "cit-HepPh/cit-HepPh.txt.gz",
    "cnr-2000": "cnr-2000/cnr-2000.edges.txt.gz",
}
DECAY, K, QUESTIONS, SAMPLES = 0.6, 20, 100, 25
MOST_DENSE = 8000
Row = NDArray[np.float64]


def spread(graph: Graph) -> tuple[object, Row]:
    """Q as a sparse matrix, and the in-degrees."""
    from scipy import sparse

    offsets = graph.in_offsets.astype(np.int64)
    degrees = np.diff(offsets)
    values = np.repeat(1 / np.maximum(degrees, 1), degrees)
    shape = graph.nodes, graph.nodes
    return sparse.csr_matrix((values, graph.in_sources.astype(np.int64), offsets), shape), degrees


Truth = tuple[Callable[[int], Row], float]
"""Rows of scores, and by what part of a score they may be off themselves."""


def dense_truth(graph: Graph) -> Truth:
    """All scores, by the iteration."""
    q, _ = spread(graph)
    scores = np.eye(graph.nodes)
    for _ in range(40):
        scores = DECAY * (q @ (q @ scores).T)  # type: ignore[operator]
        np.fill_diagonal(scores, 1)
    return lambda node: scores[node], 0.0


def linear_truth(graph: Graph) -> Truth:
    """Row by row in SciPy: 40 levels, nothing left out, with a diagonal certified to 0.003."""
    q, _ = spread(graph)
    back = q.T.tocsr()  # type: ignore[attr-defined]
    made = make_diagonal(in_links(graph), links_of(graph, "out"), DECAY, threads=2, target=0.003)
    diagonal = made.table[:, 0].astype(np.float64)

    def row(node: int) -> Row:
        levels = [np.zeros(graph.nodes)]
        levels[0][node] = 1
        for _ in range(40):
            levels.append(back @ levels[-1])
        found = diagonal * levels[-1]
        for level in reversed(levels[:-1]):
            found = DECAY * (q @ found) + diagonal * level  # type: ignore[operator]
        return found

    return row, 1.01 * max(made.high, -made.low)


def intervals(index: Index, node: int, hits: list[cocite.Hit]) -> tuple[Row, Row, Row]:
    """Scores of all nodes, and both ends of their intervals; what is no hit has the most that may
    be missing, which the interval of a pair that scores 0 says.
    """
    nodes = len(index.nodes)
    ids = index.nodes.ids([hit.node for hit in hits])
    others = np.setdiff1d(np.arange(nodes), np.append(ids, node))
    names = index.nodes.names(np.append(others[:1], [node, node])[:2].astype(np.uint32))
    missing = index.similarity(names[1], names[0], refine=True).high if others.size else 0.0
    scores, low, high = np.zeros(nodes), np.zeros(nodes), np.full(nodes, missing)
    scores[ids] = [hit.score for hit in hits]
    low[ids], high[ids] = [hit.low for hit in hits], [hit.high for hit in hits]
    return scores, low, high


def times(index: Index, names: list[str], **options: bool) -> float:
    """Milliseconds of CPU time a question, the best of three runs."""
    best = np.inf
    for _ in range(3):
        begin = time.process_time()
        for name in names:
            index.related(name, K, **options)
        best = min(best, time.process_time() - begin)
    return 1e3 * best / len(names)


def top_share(row: Row, ids: NDArray[np.uint32]) -> float:
    """The share of ``ids`` that belong into the exact top K, ties within 1e-9 apart."""
    wanted = min(K, int((row > 0).sum()))
    least = np.sort(row)[-wanted] if wanted else 0.0
    return float((row[ids[:wanted]] >= least - 1e-9).sum() / wanted) if wanted else 1.0


def opened(name: str, folder: Path) -> Graph:
    """The graph of that name or at that path."""
    if Path(name).is_dir():
        return Graph.open(name)
    return cocite.ingest(DATA / FILES[name], folder / "graph")


def asked_for(graph: Graph, index: Index) -> tuple[list[int], list[str]]:
    """Nodes with in-links, always the same ones, and their names."""
    active = np.flatnonzero(np.diff(graph.in_offsets.astype(np.int64)))
    nodes = np.random.default_rng(1).choice(active, QUESTIONS, replace=False).tolist()
    return nodes, [index.nodes.name(node) for node in nodes]


def measure(name: str, folder: Path) -> str:
    """One row of the table."""
    graph = opened(name, folder)
    begin = time.process_time()
    index = cocite.build(
        graph, folder / "index", measure="simrank", samples=SAMPLES, refine=True, threads=2
    )
    built = time.process_time() - begin
    nodes, names = asked_for(graph, index)
    refined_ms, plain_ms = times(index, names, refine=True), times(index, names)
    truth, unsure = dense_truth(graph) if graph.nodes <= MOST_DENSE else linear_truth(graph)
    shares, plain, errors, outside, widths, certain = [], [], [], 0, [], []
    for node, asked in zip(nodes, names, strict=True):
        row = truth(node).copy()
        row[node] = 0
        hits = index.related(asked, graph.nodes, refine=True)
        scores, low, high = intervals(index, node, hits)
        scores[node] = low[node] = 0
        ids = index.nodes.ids([hit.node for hit in hits])
        shares.append(top_share(row, ids))
        plain.append(top_share(row, index.nodes.ids([h.node for h in index.related(asked, K)])))
        errors.append(float(np.abs(scores - row).max()))
        slack = 1e-9 + unsure * row
        outside += int(((row < low - slack) | (row > high + slack)).sum())
        widths.append(float(np.maximum(high - scores, scores - low).max()))
        first = hits[: K + 1]
        certain += [a.low > b.high for a, b in pairwise(first)]
    cells = [
        Path(name).name,
        f"{built:.1f} s, {format_size(index.stored.store.nbytes)}",
        f"{refined_ms:.2f} ms",
        f"{plain_ms:.2f} ms",
        f"{np.mean(shares):.4f}",
        f"{np.mean(plain):.3f}",
        f"{max(errors):.5f}",
        f"{np.mean(widths):.5f}, {max(widths):.5f}",
        str(outside),
        f"{np.mean(certain):.1%}",
    ]
    return "| " + " | ".join(cells) + " |"


def ways(name: str, folder: Path) -> list[str]:
    """A row for each way."""
    graph = opened(name, folder)
    options: dict[str, Any] = {"measure": "simrank", "samples": 100}
    index = cocite.build(graph, folder / "index", refine=True, threads=2, **options)
    more = cocite.open(folder / "index")
    more.now.__dict__["_refiner"] = SampleRefiner(more.scorer, graph, more.means)
    found = {
        "computed, index made ready": index,
        f"the best 100 by {MOST_SAMPLES:,} samples": more,
    }
    nodes, names = asked_for(graph, index)
    truth, _ = dense_truth(graph) if graph.nodes <= MOST_DENSE else linear_truth(graph)
    rows = []
    for way, each in found.items():
        shares = []
        for node, asked in zip(nodes, names, strict=True):
            row = truth(node).copy()
            row[node] = 0
            hits = each.related(asked, K, refine=True)
            shares.append(top_share(row, index.nodes.ids([hit.node for hit in hits])))
        spent = times(each, names[:20], refine=True)
        rows.append(f"| {Path(name).name} | {way} | {spent:.1f} ms | {np.mean(shares):.4f} |")
    return rows


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.refine", description=__doc__)
    parser.add_argument("graphs", nargs="*", default=list(FILES), help=", ".join(FILES))
    parser.add_argument("--ways", action="store_true", help="compare the ways to refine")
    chosen = parser.parse_args()
    titles = ["graph", "build, index", "refined", "samples", "precision", "of samples"]
    titles += ["error", "certified: mean, most", "outside", "certain"]
    if chosen.ways:
        titles = ["graph", "way", "a question", "precision"]
    print("| " + " | ".join(titles) + " |\n|" + " --- |" * len(titles))
    for name in chosen.graphs:
        with tempfile.TemporaryDirectory(prefix="cocite-refine-") as folder:
            rows = ways(name, Path(folder)) if chosen.ways else [measure(name, Path(folder))]
            print("\n".join(rows), flush=True)


if __name__ == "__main__":
    main()
