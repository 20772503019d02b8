"""Cost of a draft compared with a page of the graph: ``related`` with k = 20, CPU time.

    python -m benchmarks.drafts GRAPH INDEX... [--pages 50] [--in-links]

A draft has the out-links of a random page that has some, with ``--in-links`` also its in-links.
Three drafts come first, so that what all drafts share is computed before the measurement.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import cocite
from cocite import Graph
from cocite.graph.links import links_of

TITLES = ["index", "draft, median", "mean", "90th percentile", "page, median", "mean"]
BEFORE = 3


def milliseconds(work: Callable[[], object]) -> float:
    """Of the processor, in this thread."""
    begin = time.thread_time()
    work()
    return 1000 * (time.thread_time() - begin)


def row(graph: Graph, path: str, pages: int, into: bool) -> list[str]:
    """One line of the table."""
    index, links = cocite.open(path, graph=graph), links_of(graph, "out")
    linking = np.flatnonzero(np.diff(links.offsets.astype(np.int64)))
    drafts, asked = [], []
    for page in np.random.default_rng(1).choice(linking, BEFORE + pages).tolist():
        begin, end = links.offsets[page : page + 2].astype(np.int64).tolist()
        out = graph.names.names(links.neighbors[begin:end])
        back = graph.names.names(graph.in_neighbors(page)) if into else []
        name = graph.names.name(page)
        drafts.append(milliseconds(lambda out=out, back=back: index.related_to(out, back)))  # type: ignore[misc]
        asked.append(milliseconds(lambda name=name: index.related(name)))  # type: ignore[misc]
    mine, theirs = np.array(drafts[BEFORE:]), np.array(asked[BEFORE:])
    found = [np.median(mine), mean(mine), np.quantile(mine, 0.9), np.median(theirs), mean(theirs)]
    return [path, *(f"{value:.1f} ms" for value in found)]


def mean(values: NDArray[np.float64]) -> float:
    """Of some times."""
    return float(values.mean())


def main() -> None:
    """Print a line an index."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph", type=Graph.open)
    parser.add_argument("indexes", nargs="+")
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--in-links", action="store_true")
    options = parser.parse_args()
    print(" | ".join(TITLES))
    for path in options.indexes:
        print(" | ".join(row(options.graph, path, options.pages, options.in_links)), flush=True)


if __name__ == "__main__":
    main()
