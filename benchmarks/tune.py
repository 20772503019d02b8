"""How well ``cocite tune`` without labels agrees with a choice by labels.

    python -m benchmarks.tune [--write] [SUITE]...

On the labeled suites (wikispeedia, cora, polblogs, web), every measure in every direction, with
default settings and 50 samples, is evaluated twice:

    without labels   a tenth of the links hidden, 200 pages that lost some: coneighbors@50,
                     coneighbors@10, links@50, links@10 (``evaluation/held_out.py``)
    with labels      all links, 200 labeled pages: precision@10

The two orders are compared by Spearman's and Kendall's correlation over the candidates, and over
the measures, each in its best direction. The regret is the difference in precision@10 between the
best candidate and the candidate that a figure ranks first. Finally, the choice of ``cocite.tune``
is compared with the default, by labels.

``--write`` stores the results of these suites under results/ and in docs/tuning.md. Takes about
eight minutes of CPU time.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau, spearmanr

import cocite
from benchmarks.block import DATA, ROOT, Block, run_today
from benchmarks.studies.checks import graph_of
from benchmarks.studies.suite import load_suite
from cocite import Graph
from cocite.evaluation import Bootstrap, IndexRanker, Ranker
from cocite.evaluation.held_out import CoNeighborGain, Hidden, hidden_pairs, hide_links
from cocite.evaluation.labels import SAME
from cocite.evaluation.points import called
from cocite.evaluation.trials import first_points
from cocite.evaluation.truth import Truth, read_truth, sample_pages

SUITES = {"cora": "cora-linqs", "polblogs": "polblogs", "web": None, "wikispeedia": "wikispeedia"}
FIGURES = ("coneighbors@50", "coneighbors@10", "links@50", "links@10")
PAGES, SAMPLES, SHARE = 200, 50, 0.1
Row = dict[str, Any]


def precision(truth: Truth, ranker: Ranker, pages: NDArray[np.uint32]) -> NDArray[np.float64]:
    """precision@10 of some pages, float64[pages]."""
    assert truth.labels is not None
    classes = truth.labels.collapsed()
    found = [classes.relation(int(q), ranker.related(int(q), 10).ids) == SAME for q in pages]
    return np.array([same.sum() / 10 for same in found])


def measure(name: str, folder: Path) -> Row:
    """A suite's candidates, and the choice of ``cocite.tune``."""
    suite, data = load_suite(name), SUITES[name]
    place = DATA / data if data else None
    graph, plan = graph_of(suite.data, place, folder, lambda stage, done, total: None)
    truth = read_truth(graph.names, plan, suite.judge, place or Path())
    pages = sample_pages(truth.queries, PAGES, 1)
    pairs = hidden_pairs(graph, SHARE, 0)
    shown, hidden = hide_links(graph, folder / "shown.graph", pairs), Hidden.of(pairs)
    court = CoNeighborGain(graph, shown, hidden, sample_pages(hidden.pages, PAGES, 0), 1 << 30)
    points, _ = first_points(graph, {"samples": SAMPLES, "seed": 0})
    rows = []
    for number, each in enumerate(points):
        found: Row = {"name": called(each), "measure": each.measure}
        build: dict[str, Any] = {"measure": each.measure, "direction": each.direction}
        build |= dict(each.build)
        index = cocite.build(shown, folder / f"shown-{number}", **build)
        judged = court(IndexRanker(index))
        found |= {title: judged.value(title) for title in FIGURES}
        index = cocite.build(graph, folder / f"whole-{number}", **build)
        ranker = IndexRanker(index, truth.candidates)
        found["precision@10"] = float(precision(truth, ranker, pages).mean())
        rows.append(found)
    return {"graph": name, "rows": rows, "chosen": chosen(graph, truth, folder)}


def chosen(graph: Graph, truth: Truth, folder: Path) -> Row:
    """Return the choice of ``cocite.tune`` and its figure by labels, with the default's."""
    begin, spent = time.perf_counter(), time.process_time()
    found = cocite.tune(graph, queries=400, time=None)
    seconds, spent = time.perf_counter() - begin, time.process_time() - spent
    pages, judged = sample_pages(truth.queries, 1000, 2), []
    first = next(each for each in found.tried if each.behind is not None and each.behind.value == 0)
    for number, settings in enumerate((None, found.settings)):
        index = cocite.build(graph, folder / f"chosen-{number}", settings=settings)
        judged.append(precision(truth, IndexRanker(index, truth.candidates), pages))
    apart = np.array(judged[1] - judged[0])[:, None]
    bootstrap = Bootstrap(pages.size)
    interval = bootstrap.interval(bootstrap.ratios(apart, np.ones_like(apart))[:, 0])
    return {
        "name": found.best.name,
        "reason": found.reason,
        "first": first.name,
        "default": float(judged[0].mean()),
        "precision@10": float(judged[1].mean()),
        "difference": list(interval),
        "candidates": len(found.tried),
        "seconds": seconds,
        "processor": spent,
    }


def agreement(rows: list[Row], figure: str) -> Row:
    """How a figure's order of the candidates is beside that of the labels."""
    mine, theirs = (np.array([row[title] for row in rows]) for title in (figure, "precision@10"))
    best = rows[int(mine.argmax())]
    by_measure: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        by_measure.setdefault(row["measure"], []).append((row[figure], row["precision@10"]))
    tops = np.array([np.max(values, axis=0) for values in by_measure.values()])
    return {
        "spearman": float(spearmanr(mine, theirs)[0]),
        "kendall": float(kendalltau(mine, theirs)[0]),
        "measures": float(spearmanr(tops[:, 0], tops[:, 1])[0]),
        "best": best["name"],
        "regret": float(theirs.max() - best["precision@10"]),
    }


def figures(results: Row) -> str:
    """The block of docs/tuning.md."""
    lines = [
        f"The table covers every measure in every direction, with {SAMPLES} samples and {PAGES} "
        f"test pages ({results['date']}).",
        "",
        "| graph | figure without labels | Spearman | Kendall | Spearman over measures "
        "| best candidate | regret of the best candidate in precision@10 |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for suite in results["suites"]:
        for figure in FIGURES:
            found = agreement(suite["rows"], figure)
            lines.append(
                f"| {suite['graph']} | `{figure}` | {found['spearman']:.2f} "
                f"| {found['kendall']:.2f} | {found['measures']:.2f} | {found['best']} "
                f"| {found['regret']:.3f} |"
            )
    lines += [
        "",
        "The next table compares the choice of `cocite tune` (`--queries 400`) with the default, "
        "by precision@10 on up to 1,000 labeled pages. Brackets hold the 95% interval of the "
        "difference.",
        "",
        "| graph | candidates | first in the last round | chosen | precision@10 of the default "
        "| of the choice | difference | wall time | CPU time |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for suite in results["suites"]:
        row = suite["chosen"]
        value, low, high = row["difference"]
        lines.append(
            f"| {suite['graph']} | {row['candidates']} | {row['first']} | {row['name']} "
            f"| {row['default']:.3f} | {row['precision@10']:.3f} "
            f"| {value:+.4f} [{low:+.4f}, {high:+.4f}] | {row['seconds']:.0f} s "
            f"| {row['processor']:.0f} s |"
        )
    return "\n".join(lines)


BLOCK = Block("tune", ROOT / "docs" / "tuning.md", "<!-- end of tune -->", figures)


def kept() -> dict[str, Row]:
    """The results that are there, by suite."""
    if not BLOCK.results.exists():
        return {}
    return {
        suite["graph"]: suite for suite in json.loads(BLOCK.results.read_text("utf-8"))["suites"]
    }


def main() -> None:
    """Measure, print, and write with ``--write``."""
    parser = BLOCK.parser(__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="of " + ", ".join(SUITES))
    asked = parser.parse_args()
    found = kept() if asked.suites else {}
    for name in asked.suites or SUITES:
        with tempfile.TemporaryDirectory(prefix="cocite-bench-") as place:
            found[name] = measure(name, Path(place))
        print(json.dumps(found[name]["chosen"]), flush=True)
        ordered = [found[suite] for suite in SUITES if suite in found]
        results = {**run_today(), "suites": ordered}
        BLOCK.keep(results, asked)
    print(figures(results))


if __name__ == "__main__":
    main()
