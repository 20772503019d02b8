"""PageRank from a file of links beside other libraries, reading the text included.

    python -m benchmarks.loading GRAPH... [--without networkx]

The links of each stored GRAPH are written as plain text, two integers a line, and every library
reads that file and ranks, in a process of its own: *load* and *rank* are seconds inside of it,
*whole* is the wall time of the process with Python's start and imports, *peak* its resident memory.
All are asked for an L1 error of 1e-8 (igraph takes no tolerance). Best of ``--runs`` by *whole*.

cocite's load makes a stored graph with names and checksums on disk, which later runs open at once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pagerank import DAMPING
from benchmarks.peak import peak
from cocite import Graph
from cocite.memory import format_size

ROOT = Path(__file__).parents[1]
ERROR = 1e-8


def with_cocite(file: Path, lap: Callable[[], None]) -> Any:
    import cocite
    from cocite.ranking import Residual

    lap()
    graph = cocite.ingest(file, file.with_suffix(".graph"), overwrite=True)
    lap()
    return cocite.pagerank(graph, stop=Residual(ERROR * (1 - DAMPING))).values


def with_igraph(file: Path, lap: Callable[[], None]) -> Any:
    import igraph

    lap()
    graph = igraph.Graph.Read_Edgelist(str(file), directed=True)
    lap()
    return graph.pagerank(damping=DAMPING)


def with_scipy(file: Path, lap: Callable[[], None]) -> Any:
    import scipy.sparse

    lap()
    links = np.loadtxt(file, np.int32)
    n = int(links.max()) + 1
    out = np.bincount(links[:, 0], minlength=n)
    weights = 1 / out[links[:, 0]]
    matrix = scipy.sparse.csr_array((weights, (links[:, 1], links[:, 0])), shape=(n, n))
    lap()
    dangling, x = out == 0, np.full(n, 1 / n)
    while True:
        after = DAMPING * (matrix @ x + x[dangling].sum() / n) + (1 - DAMPING) / n
        change = np.abs(after - x).sum()
        x = after
        if change < ERROR * (1 - DAMPING):
            return x


def with_networkx(file: Path, lap: Callable[[], None]) -> Any:
    import networkx

    lap()
    graph = networkx.read_edgelist(file, create_using=networkx.DiGraph, nodetype=int)
    lap()
    tolerance = ERROR * (1 - DAMPING) / len(graph)  # it asks for the error of the mean node
    return networkx.pagerank(graph, alpha=DAMPING, tol=tolerance, max_iter=1000)


LIBRARIES = {
    "cocite": with_cocite,
    "igraph": with_igraph,
    "scipy": with_scipy,
    "networkx": with_networkx,
}


def one(library: str, file: str) -> None:
    """One run: prints JSON."""
    laps = []
    LIBRARIES[library](Path(file), lambda: laps.append(time.perf_counter()))
    most = peak()
    load, rank = laps[1] - laps[0], time.perf_counter() - laps[1]
    print(json.dumps({"load": load, "rank": rank, "peak": most}))


def measured(library: str, file: Path, runs: int) -> dict[str, float]:
    """The quickest of several processes."""
    found = []
    for _ in range(runs):
        begin = time.perf_counter()
        command = [sys.executable, "-m", "benchmarks.loading", "--one", library, str(file)]
        done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        found.append(json.loads(done.stdout) | {"whole": time.perf_counter() - begin})
    return min(found, key=lambda run: run["whole"])


def write_links(graph: Graph, file: Path) -> None:
    """All links of a graph, by id, one a line."""
    targets = np.repeat(np.arange(graph.nodes), np.diff(graph.in_offsets).astype(np.int64))
    with file.open("w") as out:
        for low in range(0, graph.edges, 1 << 20):
            part = slice(low, low + (1 << 20))
            pairs = zip(graph.in_sources[part].tolist(), targets[part].tolist(), strict=True)
            out.writelines(f"{a} {b}\n" for a, b in pairs)


def main() -> None:
    """A table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loading", description=__doc__)
    parser.add_argument("graphs", nargs="*", metavar="GRAPH")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--without", action="append", default=[], choices=list(LIBRARIES))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        one(*chosen.one)
        return
    print("| graph | library | load | rank | whole | peak |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as folder:
        for path in chosen.graphs:
            graph = Graph.open(path)
            name = graph.path.name.removesuffix(".graph")
            file = Path(folder, name + ".txt")
            write_links(graph, file)
            for library in LIBRARIES:
                if library not in chosen.without:
                    m = measured(library, file, chosen.runs)
                    times = " | ".join(f"{m[key]:.2f} s" for key in ("load", "rank", "whole"))
                    print(
                        f"| {name} | {library} | {times} | {format_size(m['peak'])} |", flush=True
                    )


if __name__ == "__main__":
    main()
