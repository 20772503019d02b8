"""Width, coverage and cost of confidence intervals, for each bound.

    python -m benchmarks.intervals [--write]

Uses PSimRank on wikispeedia, with default decay and length. The true scores are those of all pairs,
to 1e-5 (``cocite all-pairs``). The samples of one large index are divided into runs of 100 and of
1,000, each of which serves as an index. Each row covers 100,000 intervals of one of two kinds of
pairs, chosen without looking at the samples:

    hits     pages and their true twenty most similar ones
    any      any two pages, most of which rarely meet

    width    mean of high - low; ``inside`` is the fraction that contains the true score
    z        standard deviation of (score - truth) / stderr, over samples whose error is not 0; 1 in
             a z-test; ``no error`` is the fraction where it is 0
    certain  fraction of lists (``related`` with k = 20, random pages) whose first rank is certain
    question median time of ``related`` on a warm index, without and with ``certain_ranks``, as
             ``cocite related`` computes

``--write`` stores the results under results/ and in docs/measures.md. Takes about three minutes.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cocite
from benchmarks.block import DATA, ROOT, Block, run_today
from cocite import Graph, Index
from cocite.index.layouts.reader import SampledReader
from cocite.measures import find_measure
from cocite.options.query import INTERVALS as METHODS
from cocite.search.intervals import Draws, around

LEVELS, SIZES = (0.5, 0.8, 0.95), (100, 1000)
INTERVALS, ALL, LISTS, DECAY, EXACT = 100_000, 10_000, 300, 0.6, 1e-5
Row = dict[str, Any]
Pairs = list[tuple[int, NDArray[np.uint32]]]


def pairs_of(truth: NDArray[np.float64], pages: int) -> dict[str, Pairs]:
    """Some pages with in-links, each with twenty others; by kind."""
    rng = np.random.default_rng(0)
    apart = truth - 2 * np.eye(len(truth))
    there = np.flatnonzero(apart.max(axis=1) > 0)
    chosen = rng.choice(there, pages, replace=False).tolist()
    best = [np.argsort(-apart[node], kind="stable")[:20].astype(np.uint32) for node in chosen]
    some = [
        rng.choice(np.delete(there, there.searchsorted(node)), 20, replace=False).astype(np.uint32)
        for node in chosen
    ]
    return {
        "hits": list(zip(chosen, best, strict=True)),
        "any": list(zip(chosen, some, strict=True)),
    }


def widths(reader: SampledReader, truth: NDArray[np.float64], kind: str, size: int) -> list[Row]:
    """Rows by bound: 100,000 intervals from runs of ``size`` samples."""
    runs = ALL // size
    own = reader.part.ask_settings(find_measure("psimrank").ask_settings({}))
    pairs = pairs_of(truth, INTERVALS // (20 * runs))[kind]
    span = reader.span(own)
    sums = {bound: np.zeros((len(LEVELS), 2)) for bound in METHODS}
    errors: list[NDArray[np.float64]] = []
    for node, others in pairs:
        values, most = reader.values(node, others, own)
        true = truth[node, others]
        for run in range(runs):
            part = slice(run * size, (run + 1) * size)
            draws = Draws(values[part], most[part], span)
            stderr = draws.values.std(axis=0, ddof=1) / np.sqrt(size)
            errors.append(np.stack([draws.values.mean(axis=0) - true, stderr], axis=1))
            for bound in METHODS:
                for at, level in enumerate(LEVELS):
                    mean, below, above = around(draws, level, bound)
                    low, high = np.maximum(0, mean - below), np.minimum(DECAY, mean + above)
                    inside = (low - EXACT <= true) & (true <= high + EXACT)
                    sums[bound][at] += (high - low).sum(), inside.sum()
    off, stderr = np.concatenate(errors).T
    z = off[stderr > 0] / stderr[stderr > 0]
    count = off.size
    return [
        {
            "pairs": kind,
            "samples": size,
            "interval": bound,
            "intervals": count,
            "width": {str(level): row[0] / count for level, row in zip(LEVELS, found, strict=True)},
            "inside": {
                str(level): row[1] / count for level, row in zip(LEVELS, found, strict=True)
            },
            "z": float(z.std()),
            "no error": float((stderr == 0).mean()),
        }
        for bound, found in sums.items()
    ]


def certain(index: Index, bound: str, nodes: list[str]) -> float:
    """Return the share of lists whose first rank is certain."""
    lists = [index.related(node, interval=bound) for node in nodes]
    found = [hits.certain_ranks > 0 for hits in lists if len(hits) > 1]
    return sum(found) / len(found)


def question(index: Index, bound: str, nodes: list[str]) -> tuple[float, float]:
    """Median milliseconds of ``related``, and of both."""
    alone, both = [], []
    for node in nodes * 3:
        begin = time.perf_counter()
        hits = index.related(node, interval=bound)
        middle = time.perf_counter()
        _ = hits.certain_ranks
        alone.append(1e3 * (middle - begin))
        both.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(alone), statistics.median(both)


def measure(graph: Graph, folder: Path) -> list[Row]:
    """All rows."""
    scores = cocite.exact_simrank(graph, measure="psimrank", decay=DECAY, epsilon=EXACT)
    truth = np.asarray(scores.array(), np.float64)
    whole = cocite.build(graph, folder / "all", measure="psimrank", samples=ALL, seed=1)
    (reader,) = whole.scorer.readers
    assert isinstance(reader, SampledReader)
    rng, rows = np.random.default_rng(1), []
    names = whole.nodes.names(rng.choice(graph.nodes, LISTS, replace=False))
    for size in SIZES:
        index = whole.with_samples(size)
        for kind in ("hits", "any"):
            found = widths(reader, truth, kind, size)
            if kind == "hits":
                for row in found:
                    row["certain"] = certain(index, row["bound"], names)
                for row in found:
                    row["question_ms"], row["with_certain_ms"] = question(
                        index, row["bound"], names
                    )
            rows += found
            print(table(found), flush=True)
    return rows


TITLES = (
    "pairs",
    "samples",
    "bound",
    "width at 50, 80, 95%",
    "coverage, %",
    "first rank certain",
    "`related`",
    "with `certain_ranks`",
)


def table(rows: list[Row]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(TITLES) + " |", "|" + " --- |" * len(TITLES)]
    for row in rows:
        cells = [
            "random" if row["pairs"] == "any" else row["pairs"],
            f"{row['samples']:,}",
            f"`{row['bound']}`",
            ", ".join(f"{width:.3f}" for width in row["width"].values()),
            ", ".join(f"{100 * inside:.2f}" for inside in row["inside"].values()),
            f"{100 * row['certain']:.0f}%" if "certain" in row else "",
            f"{row['question_ms']:.2f} ms" if "question_ms" in row else "",
            f"{row['with_certain_ms']:.2f} ms" if "with_certain_ms" in row else "",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def figures(results: dict[str, Any]) -> str:
    """Return the block of docs/measures.md."""
    rows = results["rows"]
    z = {(r["pairs"], r["samples"]): f"{r['z']:.1f}" for r in rows}
    none = {(r["pairs"], r["samples"]): f"{100 * r['no error']:.0f}%" for r in rows}
    return (
        f"PSimRank on wikispeedia, {rows[0]['intervals']:,} intervals per row; median time of "
        f"`related` with k = 20; {results['date']}, {results['machine']}.\n\n{table(rows)}\n\n"
        "If the standard error is not 0, `(score - truth) / stderr` has a standard deviation of "
        f"{z['hits', 100]} for hits and {z['any', 100]} for random pairs at 100 samples, and of "
        f"{z['hits', 1000]} and {z['any', 1000]} at 1,000. The standard error is 0 for "
        f"{none['any', 100]} and {none['any', 1000]} of the random pairs."
    )


BLOCK = Block("intervals", ROOT / "docs" / "measures.md", "<!-- end of intervals -->", figures)


def main() -> None:
    """Measure, print, and write with ``--write``."""
    chosen = BLOCK.parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as name:
        folder = Path(name)
        cocite.ingest(DATA / "wikispeedia" / "links.tsv", folder / "graph")
        rows = measure(Graph.open(folder / "graph"), folder)
    results = {**run_today(), "rows": rows}
    BLOCK.keep(results, chosen)


if __name__ == "__main__":
    main()
