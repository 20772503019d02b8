"""Compare generated webs with real ones: ``python -m benchmarks.generator [--write]``.

Prints the table of ``docs/generator.md``; ``--write`` updates the document. All figures are
properties of graphs and walks are seeded, so results do not depend on the machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cocite
from benchmarks.block import DATA, ROOT, add_write, edit
from cocite import Graph
from cocite.constants import Step
from cocite.engine.walk import Mover, Walker
from cocite.graph.links import in_links

DOCUMENT = ROOT / "docs" / "generator.md"
BEGIN, END = "<!-- figures: python -m benchmarks.generator --write -->", "<!-- end of figures -->"

REAL = {
    "cnr-2000": "cnr-2000/cnr-2000.edges.txt.gz",
    "web-NotreDame": "web-NotreDame/web-NotreDame.txt.gz",
}
MADE = {
    "300 k / 3 M": (300_000, 3_000_000),
    "326 k / 1.47 M": (326_000, 1_470_000),
    "3 M / 30 M": (3_000_000, 30_000_000),
}
SEEDS, WALK_SEED, LENGTH, SAMPLES = range(1, 6), 1, 10, 5
QUANTILES = (0.5, 0.9, 0.99, 0.999, 1.0)
PIECE = 1 << 18
NOWHERE = 2**32 - 1

Figures = dict[str, Any]


def shares_of_links(graph: Graph) -> dict[str, float]:
    """Shares of links that stay near, by the distance of the ids; a piece of nodes at a time."""
    near = {100: 0, 1000: 0}
    for low in range(0, graph.nodes, PIECE):
        offsets = graph.in_offsets[low : low + PIECE + 1]
        sources = graph.in_sources[int(offsets[0]) : int(offsets[-1])].astype(np.int64)
        nodes = np.repeat(np.arange(low, low + offsets.size - 1), np.diff(offsets).astype(np.int64))
        for limit in near:
            near[limit] += int((np.abs(sources - nodes) < limit).sum())
    return {f"nearer than {limit}": count / graph.edges for limit, count in near.items()}


def walks(graph: Graph, step: Step) -> dict[str, float]:
    """Means over samples: live steps a node, size of a random node's tree, share of singletons."""
    walker = Walker(Mover(in_links(graph), step, WALK_SEED), LENGTH)
    live = tree = alone = 0.0
    for sample in range(SAMPLES):
        found = walker(sample)
        sizes = found.extent[found.parent == NOWHERE].astype(np.float64)
        live += sum(found.live)
        tree += float((sizes**2).sum())
        alone += float((sizes == 1).sum())
    total = SAMPLES * graph.nodes
    return {"live": live / total, "tree": tree / total, "alone": alone / total}


def repeated(graph: Graph) -> float:
    """Share of nodes with the same in-links as the node before them, of the first PIECE nodes."""
    count = min(PIECE, graph.nodes)
    return sum(
        bool(np.array_equal(graph.in_neighbors(node), graph.in_neighbors(node - 1)))
        for node in range(1, count)
    ) / max(1, count - 1)


def measure(graph: Graph) -> Figures:
    """All figures of one graph."""
    ins: NDArray[Any] = np.diff(graph.in_offsets)
    outs = graph.out_degrees
    return {
        "nodes": graph.nodes,
        "links": graph.edges,
        "in": [int(np.quantile(ins, q)) for q in QUANTILES],
        "out": [int(np.quantile(outs, q)) for q in QUANTILES],
        "one": float((ins == 1).mean()),
        "unlinked": float((ins == 0).mean()),
        "dangling": float((outs == 0).mean()),
        "repeated": repeated(graph),
        "simrank": walks(graph, Step.UNIFORM),
        "psimrank": walks(graph, Step.ARGMIN),
    } | shares_of_links(graph)


def whole(value: float) -> str:
    return f"{value:,.0f}"


def digits(value: float) -> str:
    return f"{value:.2f}"


def percent(share: float) -> str:
    return f"{100 * share:.1f}%"


ROWS: dict[str, tuple[Callable[[Figures], float], Callable[[float], str]]] = {
    "nodes": (lambda f: f["nodes"], whole),
    "links": (lambda f: f["links"], whole),
    "links per node": (lambda f: f["links"] / f["nodes"], digits),
    "in-degree, median": (lambda f: f["in"][0], whole),
    "in-degree, 90%": (lambda f: f["in"][1], whole),
    "in-degree, 99%": (lambda f: f["in"][2], whole),
    "in-degree, 99.9%": (lambda f: f["in"][3], whole),
    "in-degree, largest": (lambda f: f["in"][4], whole),
    "one in-link": (lambda f: f["one"], percent),
    "no in-link": (lambda f: f["unlinked"], percent),
    "no out-link (dangling)": (lambda f: f["dangling"], percent),
    "out-degree, 90%": (lambda f: f["out"][1], whole),
    "out-degree, 99%": (lambda f: f["out"][2], whole),
    "out-degree, largest": (lambda f: f["out"][4], whole),
    "links nearer than 100": (lambda f: f["nearer than 100"], percent),
    "links nearer than 1000": (lambda f: f["nearer than 1000"], percent),
    "same in-links as the node before": (lambda f: f["repeated"], percent),
    "simrank: steps per node until walks meet": (lambda f: f["simrank"]["live"], digits),
    "simrank: tree read by a query": (lambda f: f["simrank"]["tree"], whole),
    "simrank: singletons": (lambda f: f["simrank"]["alone"], percent),
    "psimrank: steps per node until walks meet": (lambda f: f["psimrank"]["live"], digits),
    "psimrank: tree read by a query": (lambda f: f["psimrank"]["tree"], whole),
    "psimrank: singletons": (lambda f: f["psimrank"]["alone"], percent),
}


def cell(values: list[float], show: Callable[[float], str]) -> str:
    """The mean, and the range if that is a wide one."""
    mean = sum(values) / len(values)
    if max(values) - min(values) <= 0.5 * mean:
        return show(mean)
    return f"{show(mean)} ({show(min(values))} – {show(max(values))})"


def table(found: dict[str, list[Figures]]) -> str:
    """A Markdown table, one column a graph or a size of graphs."""
    lines = ["| | " + " | ".join(found) + " |", "| --- |" + " ---: |" * len(found)]
    lines += [
        f"| {title} | "
        + " | ".join(cell([get(one) for one in column], show) for column in found.values())
        + " |"
        for title, (get, show) in ROWS.items()
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write with ``--write``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generator", description=__doc__)
    add_write(parser, f"put the table in docs/{DOCUMENT.name}")
    chosen = parser.parse_args()
    found: dict[str, list[Figures]] = {}
    with tempfile.TemporaryDirectory(prefix="cocite-generator-") as folder:
        output = Path(folder) / "web.graph"
        for name, links in REAL.items():
            if (DATA / links).exists():
                found[name] = [measure(cocite.ingest(DATA / links, output, overwrite=True))]
            else:
                print(f"{name}: left out, {DATA / links} is not there", file=sys.stderr)
        for name, (nodes, count) in MADE.items():
            found["generated, " + name] = [
                measure(
                    cocite.generate_web(
                        output,
                        nodes=nodes,
                        links=count,
                        seed=seed,
                        names="integers",
                        overwrite=True,
                    )
                )
                for seed in SEEDS
            ]
    print(table(found))
    if chosen.write:
        if not set(REAL) <= set(found):
            sys.exit("a table without the real graphs is not written")
        head, _, rest = DOCUMENT.read_text("utf-8").partition(BEGIN)
        tail = rest.partition(END)[2]
        edit(DOCUMENT, f"{head}{BEGIN}\n{table(found)}\n{END}{tail}", write=True)


if __name__ == "__main__":
    main()
