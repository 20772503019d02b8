"""Cost of refreshing an index, and the speed of the refreshed index.

    python -m benchmarks.refresh GRAPH [--samples 100] [--fraction 0.1] [--threads 2]

GRAPH is a stored graph whose nodes are the integers from 0 on. Two later versions are created in a
scratch directory: in *links*, 1% of the links are replaced; in *pages*, 0.5% of the nodes are
also replaced by new ones with 3 links in each direction. Times are CPU times, the best of
three. Queries are `related` with k = 20, of nodes that all versions have.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import cocite
from cocite import Graph

TITLES = ["graph", "build", "refresh", "share", "question, built", "question, refreshed"]
QUESTIONS, TRIES = 2000, 3


def changed(graph: Graph, pages: bool) -> NDArray[np.int64]:
    """int64[links, 2]: the links of a later graph."""
    rng = np.random.default_rng(1)
    nodes, names = graph.nodes, np.array(list(map(int, graph.names)))
    offsets = graph.in_offsets.astype(np.int64)
    targets = np.repeat(np.arange(nodes), offsets[1:] - offsets[:-1])
    links = names[np.column_stack((graph.in_sources.astype(np.int64), targets))]
    count, few = len(links) // 100, nodes // 200
    kept = links[rng.random(len(links)) > 0.01]
    fresh = np.column_stack((rng.choice(links[:, 0], count), rng.choice(links[:, 1], count)))
    found = [kept, fresh]
    if pages:
        new = names.max() + 1 + rng.integers(0, few, (2, 3 * few))
        found.append(np.column_stack((rng.choice(links[:, 0], 3 * few), new[0])))
        found.append(np.column_stack((new[1], rng.choice(links[:, 1], 3 * few))))
    later = np.concatenate(found)
    gone = rng.choice(names, few, replace=False) if pages else names[:0]
    return later[~np.isin(later, gone).any(axis=1)]


def stored(folder: Path, name: str, graph: Graph) -> Graph:
    """A later graph, ingested; with the same nodes if only links have changed."""
    links = folder / f"{name}.tsv"
    np.savetxt(links, changed(graph, name == "pages"), fmt="%d", delimiter="\t")
    nodes = None
    if name == "links":
        nodes = folder / "nodes.tsv"
        nodes.write_text("".join(f"{each}\n" for each in graph.names))
    return cocite.ingest(links, folder / name, nodes=nodes, header="no")


def timed(work: Callable[[], object]) -> float:
    """Seconds of the processor."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def question(path: Path, names: list[str]) -> float:
    """Mean milliseconds."""
    index = cocite.open(path)
    return min(
        timed(lambda: index.related_many(names, 20)) / len(names) * 1000 for _ in range(TRIES)
    )


def row(folder: Path, name: str, graph: Graph, options: argparse.Namespace) -> list[str]:
    """One line of the table."""
    later, old, new = stored(folder, name, graph), folder / "old", folder / f"{name}.index"
    kind = {
        "measure": "psimrank",
        "samples": options.samples,
        "threads": options.threads,
        "overwrite": True,
    }
    some = {"share": options.share, "threads": options.threads}
    builds, refreshes = [], []
    for _ in range(TRIES):
        builds.append(timed(lambda: cocite.build(later, folder / "whole", **kind)))
        shutil.rmtree(new, ignore_errors=True)
        shutil.copytree(old, new)
        refreshes.append(timed(lambda: cocite.refresh(new, later, **some)))
    asked = [str(each) for each in np.random.default_rng(2).permutation(graph.nodes)]
    there = [each for each in asked[: 2 * QUESTIONS] if each in later.names][:QUESTIONS]
    build, refresh = min(builds), min(refreshes)
    times = question(folder / "whole", there), question(new, there)
    return [name, f"{build:.2f} s", f"{refresh:.2f} s", f"{refresh / build:.2f}"] + [
        f"{each:.3f} ms" for each in times
    ]


def main() -> None:
    """One table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.refresh", description=__doc__)
    parser.add_argument("graph", metavar="GRAPH")
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--fraction", type=float, default=0.1)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    graph = Graph.open(options.graph)
    print("| " + " | ".join(TITLES) + " |")
    print("| " + " | ".join("---" for _ in TITLES) + " |")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        kind = {"measure": "psimrank", "samples": options.samples}
        cocite.build(graph, folder / "old", threads=options.threads, **kind)
        for name in ("links", "pages"):
            print("| " + " | ".join(row(folder, name, graph, options)) + " |")


if __name__ == "__main__":
    main()
