"""PageRank compared with other libraries, at the same true error.

    python -m benchmarks.pagerank GRAPH...
    python -m benchmarks.pagerank GRAPH... --memory 61MB --memory 72MB
    python -m benchmarks.pagerank GRAPH... --alone

Each GRAPH is a stored graph. The error is the L1 distance from cocite's ranks at a residual of
1e-14, which igraph confirms. cocite's tolerance is set so that its certified error is below the
bound. Other libraries have the same tolerance, and their error is shown. Libraries that are not
installed are reported and skipped. Times are medians of several runs in this process, after the
links are in memory in each library's own form.

``--memory`` compares cocite with that much memory, in CPU time (user and system), with cocite
in memory. Runs alternate, and files are in the system's cache. ``--alone`` compares cocite with and
without extrapolation, alternately, in CPU time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from cocite import Graph
from cocite.ranking import pagerank
from cocite.ranking.solver import Extrapolation

Vector = NDArray[np.float64]
Solver = Callable[[], Vector]
DAMPING = 0.85


def ours(graph: Graph, error: float) -> Solver:
    tolerance = error * (1 - DAMPING)
    return lambda: pagerank(graph, tolerance=tolerance).values


def _links(graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    targets = np.repeat(np.arange(graph.nodes), np.diff(graph.in_offsets).astype(np.int64))
    return graph.in_sources.astype(np.int64), targets


def scipy_power(graph: Graph, error: float) -> Solver:
    """Power iteration in float64 until the L1 change is below the error times 1 - damping."""
    import scipy.sparse

    out = np.maximum(graph.out_degrees, 1).astype(float)
    values = 1 / out[graph.in_sources]
    n = graph.nodes
    offsets, sources = graph.in_offsets.astype(np.int64), graph.in_sources.astype(np.int32)
    matrix = scipy.sparse.csr_array((values, sources, offsets), shape=(n, n))
    dangling = graph.out_degrees == 0

    def solve() -> Vector:
        x = np.full(n, 1 / n)
        while True:
            after = DAMPING * (matrix @ x + x[dangling].sum() / n) + (1 - DAMPING) / n
            change = np.abs(after - x).sum()
            x = after
            if change < error * (1 - DAMPING):
                return np.asarray(x)

    return solve


def igraph_prpack(graph: Graph, error: float) -> Solver:
    import igraph

    del error  # PRPACK takes none: it ends near 1e-11
    other = igraph.Graph(n=graph.nodes, edges=np.column_stack(_links(graph)), directed=True)
    return lambda: np.array(other.pagerank(damping=DAMPING))


def networkit_pagerank(graph: Graph, error: float) -> Solver:
    import networkit

    sources, targets = _links(graph)
    other = networkit.GraphFromCoo((sources, targets), n=graph.nodes, directed=True)

    def solve() -> Vector:
        algorithm = networkit.centrality.PageRank(
            other,
            damp=DAMPING,
            tol=error * (1 - DAMPING),
            distributeSinks=networkit.centrality.SinkHandling.DistributeSinks,
        )
        algorithm.norm = networkit.centrality.Norm.l1norm
        return np.array(algorithm.run().scores())

    return solve


def graph_mate_pagerank(graph: Graph, error: float) -> Solver:
    import graph_mate

    links = np.column_stack(_links(graph)).astype(np.uint32)
    other = graph_mate.DiGraph.from_numpy(links, graph_mate.Layout.Sorted)

    def solve() -> Vector:
        ranks = other.page_rank(
            max_iterations=1000, tolerance=error * (1 - DAMPING), damping_factor=DAMPING
        )
        values = np.asarray(ranks.scores(), np.float64)
        return np.asarray(values / values.sum())

    return solve


SOLVERS: dict[str, tuple[str, Callable[[Graph, float], Solver]]] = {
    "cocite": ("cocite", ours),
    "SciPy power iteration": ("scipy", scipy_power),
    "igraph": ("igraph", igraph_prpack),
    "NetworKit": ("networkit", networkit_pagerank),
    "graph-mate": ("graph_mate", graph_mate_pagerank),
}


def timed(solve: Solver, runs: int) -> tuple[float, Vector]:
    """(median seconds, result) of several runs, after one that does not count."""
    result = solve()
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        result = solve()
        times.append(time.perf_counter() - begin)
    return statistics.median(times), result


def rows(graph: Graph, errors: list[float], runs: int) -> list[list[Any]]:
    """One row a library and error bound: name, bound, seconds, true error."""
    truth = pagerank(graph, tolerance=1e-14, max_sweeps=1000).values
    found = []
    for error in errors:
        for name, (module, make) in SOLVERS.items():
            if find_spec(module) is None:
                print(f"{name}: left out, {module} is not installed")
                continue
            seconds, values = timed(make(graph, error), runs)
            found.append([name, error, seconds, float(np.abs(values - truth).sum())])
    return found


def on_disk(graph: Graph, sizes: list[str], runs: int) -> list[list[Any]]:
    """One row a size of memory: size, blocks, seconds, how often that of memory without limit."""
    rows: dict[str | None, list[float]] = {None: [], **{size: [] for size in sizes}}
    blocks: dict[str | None, int] = {}
    for run in range(runs + 1):
        for size, seconds in rows.items():
            begin = time.process_time()
            found = pagerank(graph, tolerance=1e-8, memory=size)
            if run > 0:
                seconds.append(time.process_time() - begin)
            blocks[size] = found.blocks
    least = {size: min(seconds) for size, seconds in rows.items()}
    return [
        [size or "all", blocks[size], seconds, seconds / least[None]]
        for size, seconds in least.items()
    ]


def alone(graph: Graph, runs: int) -> list[list[Any]]:
    """With extrapolation and by sweeps alone: title, sweeps, seconds."""
    titles = {"with extrapolation": Extrapolation.wants, "sweeps alone": lambda *_: False}
    seconds: dict[str, list[float]] = {title: [] for title in titles}
    sweeps = {}
    for run in range(runs + 1):
        for title, wants in titles.items():
            with mock.patch.object(Extrapolation, "wants", wants):
                begin = time.process_time()
                found = pagerank(graph, tolerance=1e-8 * (1 - DAMPING))
                if run > 0:
                    seconds[title].append(time.process_time() - begin)
            sweeps[title] = found.convergence.sweeps
    return [[title, sweeps[title], statistics.median(seconds[title])] for title in titles]


def main() -> None:
    """A table for each graph."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pagerank", description=__doc__)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--memory", action="append", metavar="SIZE", help="repeatable")
    parser.add_argument("--alone", action="store_true")
    chosen = parser.parse_args()
    for path in chosen.graphs:
        graph = Graph.open(path)
        print(f"\n{path}: {graph.nodes:,} nodes, {graph.edges:,} links\n")
        if chosen.alone:
            print("| | sweeps | seconds |\n| --- | --- | --- |")
            for title, sweeps, seconds in alone(graph, chosen.runs):
                print(f"| {title} | {sweeps} | {seconds:.3f} |", flush=True)
            continue
        if chosen.memory:
            print("| memory | blocks | seconds | times |\n| --- | --- | --- | --- |")
            for size, blocks, seconds, times in on_disk(graph, chosen.memory, chosen.runs):
                print(f"| {size} | {blocks} | {seconds:.2f} | {times:.1f} |", flush=True)
            continue
        print("| library | asked | seconds | true L1 error |\n| --- | --- | --- | --- |")
        for name, error, seconds, true in rows(graph, [1e-8, 1e-6], chosen.runs):
            print(f"| {name} | {error:.0e} | {seconds:.3f} | {true:.1e} |", flush=True)


if __name__ == "__main__":
    main()
