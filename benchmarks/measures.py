"""Build time, size and query time of every measure and layout, as a table of docs/measures.md.

python -m benchmarks.measures NAME=GRAPH ... [--only MEASURE] [--write]

Builds use two threads, 100 samples where a measure has samples, and defaults otherwise. Queries ask
for the 20 most related nodes of the same 1,000 random nodes. Kernels are compiled first. Query time
is thread time, so other work on the machine does not count. ``--write`` replaces the table; with
``--only``, it replaces only the rows of these measures, or adds them to their graph.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

import cocite
from benchmarks.block import ROOT, add_write, edit
from cocite import Graph
from cocite.measures import MEASURES

DOCS = ROOT / "docs" / "measures.md"
BEGIN = "<!-- table: python -m benchmarks.measures --write -->"
END = "<!-- end of table -->"
TITLES = (
    "| graph | measure | layout | build | bytes per node | per node per sample | query, median "
    "| 99th percentile |"
)


def row(name: str, graph: Graph, measure: str, layout: str, queries: int) -> str:
    """Build and query one index, and return its row of the table."""
    folder = Path(tempfile.mkdtemp(prefix="cocite-"))
    try:
        options = {"measure": measure, "layout": layout or None, "threads": 2}
        sampled = "samples" in {setting.name for setting in MEASURES[measure].build}
        if sampled:
            cocite.build(graph, folder / "small", samples=2, **options)
        else:
            cocite.build(graph, folder / "small", **options)
        begin = time.perf_counter()
        index = cocite.build(graph, folder / "index", **options)
        built = time.perf_counter() - begin
        size = index.stored.store.nbytes - sum(
            entry.nbytes
            for file, entry in index.stored.store.manifest.files.items()
            if file.startswith("names.")
        )
        ids = np.random.default_rng(0).integers(0, graph.nodes, queries)
        names, times = index.nodes.names(ids), []
        for node in names[:50]:
            index.related(node, 20)
        for node in names:
            begin = time.thread_time()
            index.related(node, 20)
            times.append(1e3 * (time.thread_time() - begin))
    finally:
        shutil.rmtree(folder)
    stored = ", ".join(f"`{each}`" for each in ([layout] if layout else MEASURES[measure].layouts))
    each = size / graph.nodes
    sample = f"{each / (index.samples or 1):.1f}" if sampled else ""
    return (
        f"| {name} | `{measure}` | {stored} | {built:.1f} s | {each:,.0f} | {sample} | "
        f"{np.median(times):.2f} ms | {np.percentile(times, 99):.1f} ms |"
    )


def merged(table: list[str], rows: list[str]) -> list[str]:
    """Replace rows of the same graph, measure and layout; insert the others after their graph."""

    def key(line: str) -> list[str]:
        return line.split(" | ")[:3]

    found = list(table)
    for new in rows:
        graph = [at for at, line in enumerate(found) if key(line)[0] == key(new)[0]]
        same = [at for at in graph if key(found[at]) == key(new)]
        if same:
            found[same[0]] = new
        else:
            found.insert(graph[-1] + 1 if graph else len(found), new)
    return found


def main() -> None:
    """Measure, print and, with --write, store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="+", metavar="NAME=GRAPH")
    parser.add_argument("--queries", type=int, default=1000)
    add_write(parser, "replace the table in docs/measures.md")
    parser.add_argument("--only", action="append", choices=list(MEASURES), help="not all measures")
    chosen = parser.parse_args()
    lines = [TITLES, "|" + " --- |" * TITLES.strip("|").count("|") + " --- |"]
    for pair in chosen.graphs:
        name, path = pair.split("=", 1)
        graph = Graph.open(path)
        of_links = [name for name, measure in MEASURES.items() if not measure.texts]
        for measure in map(MEASURES.__getitem__, chosen.only or of_links):
            layouts = [""] if measure.parts else measure.layouts
            for layout in layouts:
                lines.append(row(name, graph, measure.name, layout, chosen.queries))
                print(lines[-1], flush=True)
    if chosen.write:
        text = DOCS.read_text("utf-8")
        head, rest = text.split(BEGIN)
        old, tail = rest.split(END)
        if chosen.only:
            lines = merged(old.strip().splitlines(), lines[2:])
        edit(DOCS, head + BEGIN + "\n" + "\n".join(lines) + "\n" + END + tail, write=True)


if __name__ == "__main__":
    main()
