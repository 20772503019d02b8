"""Benefit and cost of texts: indexes with and without ``--texts`` on wikispeedia.

    python -m benchmarks.texts [--write]

Evaluates precision@10 and Gamma by labels, as the suite does (``evaluation/``). The default
settings and the weight of texts were chosen on 500 labeled pages, which the suite's sweeps use. On
the other pages, this compares links alone, the default weight, texts alone, and some other weights.
Intervals are 95% intervals of the differences from links alone, on the same pages.

    build      CPU time, including reading texts
    question   processor milliseconds of ``related`` with k = 20: median, 99th percentile

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
from benchmarks.studies.checks import graph_of
from benchmarks.studies.suite import load_suite
from cocite.evaluation import Bootstrap, IndexRanker
from cocite.evaluation.truth import read_truth, sample_pages

FIGURES = ("precision@10", "gamma", "gamma_macro")
K, PAGES = 20, 1000
Row = dict[str, Any]


def ways(texts: Path) -> dict[str, dict[str, Any]]:
    """Return the compared configurations by name; links alone come first."""
    found: dict[str, dict[str, Any]] = {"links alone": {}}
    found["`--texts`"] = {"texts": texts}
    found["`--text-fraction 0.2`"] = {"texts": texts, "text_fraction": 0.2}
    found["all words: `--words 1000000`"] = {"texts": texts, "words": 1_000_000}
    return found | {"texts alone": {"texts": texts, "measure": "tfidf"}}


def measure() -> list[Row]:
    """A row a way."""
    suite = load_suite("wikispeedia")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as place:
        folder = Path(place)
        graph, plan = graph_of(suite.data, DATA, folder, lambda stage, done, total: None)
        truth = read_truth(graph.names, replace(plan, texts=""), suite.judge, DATA)
        chosen = sample_pages(truth.queries, suite.judge.sweep_queries, 0)
        others = np.setdiff1d(truth.queries, chosen)
        judge, bootstrap = truth.judge(suite.judge, others), Bootstrap(others.size)
        asked = np.random.default_rng(0).permutation(graph.nodes)[:PAGES].astype(np.uint32)
        base = None
        for name, options in ways(DATA / plan.texts).items():
            spent = time.process_time()
            index = cocite.build(graph, folder / "index", overwrite=True, **options)
            row: Row = {"way": name, "queries": int(others.size)}
            row["processor_s"] = time.process_time() - spent
            row["bytes"] = index.stored.store.nbytes
            found = judge(IndexRanker(index, truth.candidates))
            base = base or found
            apart = found.differences(base, bootstrap)
            for title, value in found.figures(bootstrap).items():
                if title in FIGURES:
                    row[title] = [value.value, *apart[title]]
            times = []
            for node in index.nodes.names(asked):
                begin = time.thread_time()
                index.related(node, K)
                times.append(1000 * (time.thread_time() - begin))
            row["related_ms"] = np.percentile(times, [50, 99]).tolist()
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows


def figures(results: Row) -> str:
    """The block of docs/evaluation.md."""
    rows = results["rows"]
    titles = " | ".join(FIGURES)
    lines = [
        f"{rows[0]['queries']:,} labeled pages of wikispeedia, not used to choose settings. In "
        "brackets: the difference from links alone, with its 95% interval. "
        f"{results['date']}, {results['machine']}.",
        "",
        f"| | {titles} | build, CPU time | size | `related`: median, 99th percentile |",
        "| --- " * (4 + len(FIGURES)) + "|",
    ]
    for row in rows:
        cells = [
            f"{row[title][0]:.3f}"
            + " ({:+.3f} [{:+.3f}, {:+.3f}])".format(*row[title][1:]) * (row is not rows[0])
            for title in FIGURES
        ]
        lines.append(
            f"| {row['way']} | {' | '.join(cells)} | {row['processor_s']:.1f} s "
            f"| {row['bytes'] / 1e6:.1f} MB "
            f"| {row['related_ms'][0]:.2f}, {row['related_ms'][1]:.1f} ms |"
        )
    return "\n".join(lines)


BLOCK = Block("texts", ROOT / "docs" / "evaluation.md", "<!-- end of texts -->", figures)


def main() -> None:
    """Measure, print, and write with ``--write``."""
    chosen = BLOCK.parser(__doc__).parse_args()
    results = {**run_today(), "rows": measure()}
    BLOCK.keep(results, chosen)


if __name__ == "__main__":
    main()
