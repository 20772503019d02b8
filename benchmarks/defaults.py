"""Quality of an index with all defaults, on labeled graphs.

    python -m benchmarks.defaults [--write]

``cocite index GRAPH -o INDEX``, without options, is compared with a spectral embedding of 128
dimensions on every labeled page of four graphs (``evaluation/``). Reports the differences of the
means, with 95% intervals; the same for pages connected with at least ten others, which can have
ten hits; and Γ of the embedding's own hundred hits in the default's order. For random pages of
these and of unlabeled graphs, it also reports:

    answered   fraction of the linked pages that have results
    full       fraction of these whose list of 20 is full, or has all connected pages
    build      seconds, and CPU time
    question   milliseconds of ``related`` with k = 20: median and 99th percentile

``--write`` stores the results under results/ and in docs/evaluation.md. Takes about three minutes.
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import cocite
from benchmarks.block import DATA, ROOT, Block, run_today
from benchmarks.studies.answers import JudgedQueries, connected
from benchmarks.studies.checks import embed, graph_of
from benchmarks.studies.rankers import VectorRanker
from benchmarks.studies.suite import load_suite
from cocite import Graph
from cocite.evaluation import Bootstrap, IndexRanker, Judgment, Ranker
from cocite.evaluation.rankers import Related
from cocite.evaluation.truth import read_truth
from cocite.graph.links import links_of
from cocite.kernels.totals import order

SUITES = {"wikispeedia": "wikispeedia", "cora": "cora-linqs", "polblogs": "polblogs", "web": None}
OTHERS = {
    "cit-hepph": "cit-HepPh/cit-HepPh.txt.gz",
    "hollins": "hollins/hollins_edges.txt",
    "cnr-2000": "cnr-2000/cnr-2000.edges.txt.gz",
}
FIGURES = ("precision@10", "gamma", "gamma_macro")
CELL = "{:.3f}, {:.3f}, {:+.4f} [{:+.3f}, {:+.3f}]"
K, PAGES = 20, 1000
TEN, HUNDRED = 10, 100
UNKNOWN = 1e-12
"""The score of what a ranker does not know."""
Row = dict[str, Any]


def judged(name: str, folder: Path) -> tuple[Graph, Row]:
    """The graph of a suite, and its figures."""
    suite, data = load_suite(name), SUITES[name]
    place = DATA / data if data else None
    graph, plan = graph_of(
        replace(suite.data, texts=""), place, folder, lambda stage, done, total: None
    )
    truth = read_truth(graph.names, plan, suite.judge, place or Path())
    judge = truth.judge(replace(suite.judge, cutoffs=(TEN, HUNDRED)))
    index = cocite.build(graph, folder / "judged")
    ours = IndexRanker(index, truth.candidates)
    vectors = VectorRanker(embed(graph), truth.candidates)
    found, base = judge(ours), judge(vectors)
    row: Row = {"queries": int(truth.queries.size)}
    for title in FIGURES:
        row[title] = beside(found, base, title)
    links = links_of(graph, "any")
    fills = np.array([connected(links, int(node), TEN) == TEN for node in truth.queries])
    row["fill"] = int(fills.sum())
    row["filled"] = beside(found.of(fills), base.of(fills), "precision@10")
    best = f"precision@{HUNDRED}"
    row["hundred"] = [found.value(best), base.value(best)]
    row["reordered"] = beside(judge(Reordered(vectors, ours)), base, "gamma")
    return graph, row


def beside(found: Judgment, base: Judgment, title: str) -> list[float]:
    """[a figure, that of the embedding, the difference, from, to]."""
    apart = found.differences(base, Bootstrap(len(found.parts)))[title]
    return [found.value(title), base.value(title), apart.value, apart.low, apart.high]


class Reordered:
    """The hundred best of one ranker in the order of another; what that does not know, last."""

    def __init__(self, whose: Ranker, order: Ranker) -> None:
        self._whose, self._order, self.nodes = whose, order, whose.nodes

    def related(self, node: int, k: int) -> Related:
        """The same pages, other scores."""
        ids = self._whose.related(node, HUNDRED).ids
        known, scores = self._order.related(node, self.nodes)
        row = np.full(self.nodes, UNKNOWN)
        row[known] = scores
        best = ids[order(ids, row[ids])[:k]]
        return Related(best, row[best])


def asked(graph: Graph, folder: Path) -> Row:
    """What it takes to build, and what random pages with links are answered."""
    begin, spent = time.perf_counter(), time.process_time()
    index = cocite.build(graph, folder / "asked")
    seconds, spent = time.perf_counter() - begin, time.process_time() - spent
    some = JudgedQueries(graph, PAGES, K)
    names = dict(zip(some.nodes, index.nodes.names(np.array(some.nodes)), strict=True))
    answers = some.by(lambda node: index.related(names[node], K))
    return {
        "nodes": graph.nodes,
        "edges": graph.edges,
        "answered": answers.answered,
        "full": answers.full,
        "build_s": seconds,
        "processor_s": spent,
        "bytes": index.stored.store.nbytes,
        "related_ms": [answers.median_ms, answers.slowest_ms],
    }


def measure() -> list[Row]:
    """Return one row per graph."""
    rows = []
    for name in (*SUITES, *OTHERS):
        with tempfile.TemporaryDirectory(prefix="cocite-bench-") as place:
            folder = Path(place)
            row: Row = {}
            if name in SUITES:
                graph, row = judged(name, folder)
            else:
                graph = cocite.ingest(DATA / OTHERS[name], folder / "graph")
            rows.append({"graph": name} | row | asked(graph, folder))
        print(json.dumps(rows[-1]), flush=True)
    return rows


def figures(results: Row) -> str:
    """Return the block of docs/evaluation.md."""
    rows = results["rows"]
    with_labels = [row for row in rows if FIGURES[0] in row]
    lines = [
        "`neighborhood`, compared with a spectral embedding of 128 dimensions, on all labeled "
        f"pages. In brackets: the 95% interval of the difference. {results['date']}.",
        "",
        "| graph | "
        + " | ".join(f"{title}: neighborhood, embedding, difference" for title in FIGURES),
        "| --- " * (1 + len(FIGURES)) + "|",
    ]
    lines[2] += " |"
    for row in with_labels:
        cells = [CELL.format(*row[title]) for title in FIGURES]
        lines.append(f"| {row['graph']} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "precision@10 of the pages that are connected with at least ten others; "
        f"precision@{HUNDRED}; and Γ of the embedding's {HUNDRED} hits, ordered by `neighborhood` "
        "and by the embedding itself.",
        "",
        "| graph | pages | with ten connected | precision@10: neighborhood, embedding, difference "
        f"| precision@{HUNDRED}: neighborhood, embedding "
        "| gamma of the embedding's hits, by neighborhood, by embedding, difference |",
        "| --- " * 6 + "|",
    ]
    lines += [
        f"| {row['graph']} | {row['queries']:,} | {row['fill']:,} | {CELL.format(*row['filled'])} "
        f"| {row['hundred'][0]:.3f}, {row['hundred'][1]:.3f} | {CELL.format(*row['reordered'])} |"
        for row in with_labels
    ]
    lines += [
        "",
        f"Cost and coverage on 1,000 random pages with links, k = {K}; {results['machine']}.",
        "",
        "| graph | nodes | links | answered | full lists | build | CPU time | size "
        "| median | 99th percentile |",
        "| --- " * 10 + "|",
    ]
    lines += [
        f"| {row['graph']} | {row['nodes']:,} | {row['edges']:,} | {row['answered']:.1%} "
        f"| {row['full']:.1%} | {row['build_s']:.1f} s | {row['processor_s']:.1f} s "
        f"| {row['bytes'] / 1e6:.1f} MB | {row['related_ms'][0]:.2f} ms "
        f"| {row['related_ms'][1]:.1f} ms |"
        for row in rows
    ]
    return "\n".join(lines)


BLOCK = Block("defaults", ROOT / "docs" / "evaluation.md", "<!-- end of defaults -->", figures)


def main() -> None:
    """Measure, print, and write with ``--write``."""
    chosen = BLOCK.parser(__doc__).parse_args()
    results = {**run_today(), "rows": measure()}
    BLOCK.keep(results, chosen)


if __name__ == "__main__":
    main()
