"""Effect of ``max_degree``, the number of links above which pages are excluded, by graph size.

    python -m benchmarks.max_degree [--queries COUNT] [--large]

For labeled graphs and each value, on the queries of ``benchmarks.studies``, prints the fraction of
the pages excluded in either direction, precision@10, and CPU times of a build (snn,
neighborhood) and of a query, at the median and the 99th percentile. Values are multiples of the
square root of the number of links, and fractions of the pages. ``--large`` times cnr-2000 and
web-NotreDame, which have no labels, instead. Takes about three minutes.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import cocite
from benchmarks.block import DATA
from benchmarks.defaults import SUITES
from benchmarks.studies.checks import graph_of, quick_judge
from benchmarks.studies.suite import load_suite
from cocite import Graph, Index
from cocite.evaluation import IndexRanker
from cocite.evaluation.truth import Truth, read_truth

ROOTS = (0.25, 0.5, 1, 2, 4, 8)
SHARES = (0.02, 0.05, 0.1, 0.2)
LARGE = {
    "web-NotreDame": "web-NotreDame/web-NotreDame.txt.gz",
    "cnr-2000": "cnr-2000/cnr-2000.edges.txt.gz",
}
K, TEN = 20, 10


def values(graph: Graph, large: bool) -> dict[str, int]:
    """What is tried, by name."""
    root, nodes = math.sqrt(graph.edges), graph.nodes
    found = {f"{factor:g} √links": round(factor * root) for factor in ROOTS[2 * large :]}
    found |= {f"{share:g} of pages": round(share * nodes) for share in SHARES[: 4 * (not large)]}
    return {name: max(1, value) for name, value in found.items()} | {"none": 2**32 - 1}


def timed(index: Index, nodes: list[str], settings: dict[str, Any]) -> tuple[float, float]:
    """Milliseconds of CPU time of a question: the median and the 99th percentile."""
    took = []
    for node in [nodes[0], *nodes]:
        begin = time.process_time()
        index.related(node, K, **settings)
        took.append(1000 * (time.process_time() - begin))
    low, high = np.percentile(took[1:], [50, 99])
    return float(low), float(high)


def rows(graph: Graph, truth: Truth | None, queries: int, folder: Path) -> Iterator[str]:
    """A row a measure and value."""
    degrees = np.concatenate([np.diff(graph.in_offsets).astype(np.int64), graph.out_degrees])
    rng = np.random.default_rng(1)
    drawn = rng.choice(graph.nodes, min(graph.nodes, 200), replace=False)
    asked = [graph.names.name(int(node)) for node in drawn]
    some = None
    if truth is not None:
        some = np.sort(rng.permutation(truth.queries)[:queries])
    measures = ("neighborhood", "snn", "companion")
    for measure in measures[truth is None :]:
        index, spent = None, 0.0
        for name, max_degree in values(graph, truth is None).items():
            settings: dict[str, Any] = {"max_degree": max_degree}
            if measure != "companion" or index is None:
                built: dict[str, Any] = {} if measure == "companion" else settings
                begin = time.process_time()
                index = cocite.build(graph, folder / "i", measure=measure, overwrite=True, **built)
                spent = time.process_time() - begin
            ask: dict[str, Any] = settings if measure == "companion" else {}
            precision = ""
            if truth is not None and some is not None:
                suite = replace(load_suite("cora").judge, cutoffs=(TEN,))
                judge = quick_judge(truth, suite, some)
                found = judge(IndexRanker(index, truth.candidates, **ask))
                precision = f"{found.value(f'precision@{TEN}'):.4f}"
            median, late = timed(index, asked, ask)
            cut = np.count_nonzero(degrees > max_degree)
            shown = max_degree if max_degree < 2**32 - 1 else "–"
            yield (
                f"| {measure} | {name} | {shown} | {cut:,} | "
                f"{precision} | {spent:.1f} | {median:.2f} | {late:.2f} |"
            )


def main() -> None:
    """A table for each graph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--only")
    given = parser.parse_args()
    titles = (
        "measure",
        "max_degree",
        "links",
        "pages cut",
        "precision@10",
        "build s",
        "ms",
        "p99 ms",
    )
    for name in LARGE if given.large else SUITES:
        if given.only not in (None, name):
            continue
        with tempfile.TemporaryDirectory() as work:
            folder, truth = Path(work), None
            if given.large:
                graph = cocite.ingest(DATA / LARGE[name], folder / "g")
            else:
                suite, data = load_suite(name), SUITES[name]
                place = DATA / data if data else None
                told = replace(suite.data, texts="")
                graph, plan = graph_of(told, place, folder, lambda stage, done, total: None)
                truth = read_truth(graph.names, plan, suite.judge, place or Path())
            print(f"\n{name}: {graph.nodes:,} pages, {graph.edges:,} links\n")
            print(f"| {' | '.join(titles)} |\n|{' --- |' * len(titles)}")
            for row in rows(graph, truth, given.queries, folder):
                print(row, flush=True)


if __name__ == "__main__":
    main()
