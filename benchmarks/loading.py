"""PageRank from a file of links compared with other libraries, including reading the text.

    python -m benchmarks.loading [GRAPH...] [--links FILE]... [--without networkx]

The links of each stored GRAPH are written as plain text, two integers per line; ``--links`` adds
such files. Every library reads the file and ranks in its own process, alternating with the others.
*load* and *rank* are CPU seconds within the process, *both* is their sum, *whole* is the wall
time of the process including Python's start and imports, and *peak* is its resident memory. Values
are medians of ``--runs``, and *ratio* is cocite's *both* relative to each. The L1 error is 1e-8
(igraph has no tolerance). Libraries that are not installed are reported and skipped.

cocite's load creates a stored graph with names and checksums on disk, which later runs open at
once. Imports and one-time initialization count only in *whole*: each process first loads and ranks
a few links.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pagerank import DAMPING
from benchmarks.peak import peak
from benchmarks.peers.loads import few_links
from cocite import Graph
from cocite.resources import format_size

ROOT = Path(__file__).parents[1]
ERROR = 1e-8


def with_cocite(file: Path, lap: Callable[[], None]) -> Any:
    import cocite

    lap()
    graph = cocite.ingest(file, file.with_suffix(".graph"), overwrite=True)
    lap()
    return cocite.pagerank(graph, tolerance=ERROR * (1 - DAMPING)).values


def with_igraph(file: Path, lap: Callable[[], None]) -> Any:
    import igraph

    lap()
    graph = igraph.Graph.Read_Edgelist(str(file), directed=True)
    lap()
    return graph.pagerank(damping=DAMPING)


def with_scipy(file: Path, lap: Callable[[], None]) -> Any:
    import polars
    import scipy.sparse

    lap()
    frame = polars.read_csv(
        file, has_header=False, separator=" ", schema={"a": polars.Int32, "b": polars.Int32}
    )
    links = frame.to_numpy()
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


def with_networkit(file: Path, lap: Callable[[], None]) -> Any:
    import networkit

    lap()
    graph = networkit.graphio.EdgeListReader(" ", 0, directed=True).read(str(file))
    lap()
    rank = networkit.centrality.PageRank(
        graph, DAMPING, ERROR * (1 - DAMPING), distributeSinks=networkit.centrality.SinkHandling(1)
    )
    rank.norm = networkit.centrality.Norm.L1_NORM
    return rank.run().scores()


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
    "networkit": with_networkit,
    "networkx": with_networkx,
}
NEEDED = {
    "cocite": ("cocite",),
    "igraph": ("igraph",),
    "scipy": ("scipy", "polars"),
    "networkit": ("networkit",),
    "networkx": ("networkx",),
}


def one(library: str, file: str) -> None:
    """One run: prints JSON."""
    laps: list[float] = []
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as folder:
        LIBRARIES[library](few_links(Path(folder)), lambda: None)
    LIBRARIES[library](Path(file), lambda: laps.append(time.process_time()))
    most = peak()
    load, rank = laps[1] - laps[0], time.process_time() - laps[1]
    print(json.dumps({"load": load, "rank": rank, "both": load + rank, "peak": most}))


def run(library: str, file: Path) -> dict[str, float]:
    """What one process took."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.loading", "--one", library, str(file)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found | {"whole": time.perf_counter() - begin}


def compare(libraries: list[str], file: Path, runs: int) -> None:
    """Print the medians of libraries, which take turns."""
    found: dict[str, list[dict[str, float]]] = {library: [] for library in libraries}
    for _ in range(runs):
        for library in libraries:
            found[library].append(run(library, file))
    ours = 0.0
    for library, each in found.items():
        m = {key: statistics.median(one[key] for one in each) for key in each[0]}
        ours = ours or m["both"]
        times = " | ".join(f"{m[key]:.2f} s" for key in ("load", "rank", "both", "whole"))
        ratio, most = f"{ours / m['both']:.2f}", format_size(m["peak"])
        print(f"| {file.stem} | {library} | {times} | {most} | {ratio} |", flush=True)


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
    parser.add_argument("--links", action="append", default=[], metavar="FILE")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--without", action="append", default=[], choices=list(LIBRARIES))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        one(*chosen.one)
        return
    wanted = [library for library in LIBRARIES if library not in chosen.without]
    missing = [library for library in wanted if not all(map(find_spec, NEEDED[library]))]
    if missing:
        print(f"not installed, and left out: {', '.join(missing)}\n")
    libraries = [library for library in wanted if library not in missing]
    print("| links | library | load | rank | both | whole | peak | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as folder:
        for path in chosen.graphs:
            graph = Graph.open(path)
            file = Path(folder, graph.path.name.removesuffix(".graph") + ".txt")
            write_links(graph, file)
            compare(libraries, file, chosen.runs)
        for path in chosen.links:
            Path(folder, "links").mkdir(exist_ok=True)
            file = Path(folder, "links", Path(path).name)
            file.symlink_to(Path(path).resolve())
            compare(libraries, file, chosen.runs)


if __name__ == "__main__":
    main()
