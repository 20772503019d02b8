"""PageRank in single and in double precision, after Haveliwala's section 4.

    python -m benchmarks.precision GRAPH...

Each GRAPH is a stored graph. The residual is that of the returned vector, computed in double
precision. *Sweeps to* counts sweeps until the L1 residual is provably below 1e-6. *Same top n* is
|A & B| / |A | B| of the n highest nodes of both after 100 sweeps. *Same order to* is the first
position at which the orders differ, and *gap* the relative difference of the two ranks there.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.convergence.orders import top_similarity
from cocite import Graph
from cocite.ranking import Ranks, pagerank
from cocite.ranking.vectors import order_of

SIZES = (10, 100, 1000, 10_000)
TITLES = [
    "graph",
    "precision",
    "residual after 100",
    "sweeps to 1e-6",
    "seconds for 100",
    *(f"same top {n:,}" for n in SIZES),
    "same order to",
    "gap",
]


def timed(graph: Graph, precision: str) -> tuple[float, Ranks]:
    """(best seconds of three, ranks after 100 sweeps)."""
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        found = pagerank(graph, tolerance=1e-300, max_sweeps=100, precision=precision)
        times.append(time.perf_counter() - begin)
    return min(times), found


def rows(name: str, graph: Graph) -> list[list[str]]:
    """A row for each precision."""
    top = min(SIZES[-1], graph.nodes)
    found = {precision: timed(graph, precision) for precision in ("double", "single")}
    truth = found["double"][1].values
    best = order_of(truth, top)
    printed = []
    for precision, (seconds, ranks) in found.items():
        order = order_of(ranks.values, top)
        alike = top_similarity(order.astype(np.uint32), best.astype(np.uint32), graph.nodes)
        differ = np.flatnonzero(order != best)
        place, gap = "end", "-"
        if differ.size:
            here, there = truth[best[differ[0]]], truth[order[differ[0]]]
            place, gap = f"{differ[0] + 1:,}", f"{abs(here - there) / here:.0e}"
        to = pagerank(graph, tolerance=1e-6, max_sweeps=1000, precision=precision).convergence
        printed.append(
            [
                name,
                precision,
                f"{ranks.convergence.residual:.1e}",
                f"{to.sweeps}" if to.converged else "never",
                f"{seconds:.2f}",
                *(f"{alike[min(n, top) - 1]:.4f}" for n in SIZES),
                place,
                gap,
            ]
        )
    return printed


def main() -> None:
    """One table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.precision", description=__doc__)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    chosen = parser.parse_args()
    print("| " + " | ".join(TITLES) + " |\n|" + " --- |" * len(TITLES))
    for path in chosen.graphs:
        graph = Graph.open(path)
        for row in rows(graph.path.name.removesuffix(".graph"), graph):
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
