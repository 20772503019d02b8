"""The NetworkX backend compared with NetworkX on the same graphs.

    python -m benchmarks.networkx_backend FILE.txt.gz ... [--pairs 100000] [--pages 2000]

Each file is a list of links between integers. Prints the CPU time of converting the graph, of
reading it, and of

* ``pagerank`` with NetworkX's default tolerance, and to an L1 change of 1e-8,
* ``jaccard_coefficient`` of ``--pairs`` pairs with a common neighbor, in both directions,
* ``simrank_similarity`` of one source among the first ``--pages`` pages: NetworkX multiplies a
  dense matrix of all pairs, which would be 700 GB for 300,000 pages,

with NetworkX, with the backend including conversion, and with the backend on a converted graph.
Results are compared. Kernels are loaded first. Run it in an environment whose NetworkX
configuration does not enable the backend.
"""

from __future__ import annotations

import argparse
import gzip
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from cocite.integrations.networkx import backend


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    found = call()
    return time.process_time() - began, found


def warm() -> None:
    graph = nx.karate_club_graph()
    for one in (graph, nx.DiGraph(graph), nx.Graph(nx.path_graph(9))):
        converted = backend.convert_from_nx(one)
        backend.pagerank(converted)
        if not one.is_directed():
            list(backend.jaccard_coefficient(converted, [(0, 2)]))
        backend.simrank_similarity(converted, 0)


def compared(what: str, graph: Any, name: str, *args: Any, **options: Any) -> tuple[Any, Any]:
    """Print a line; what NetworkX and the backend found. Conversion is what the first call takes,
    with all that is made once of the graph.
    """
    theirs, wanted = timed(lambda: listed(getattr(nx, name)(graph, *args, **options)))
    call = getattr(backend, name)
    converting, converted = timed(lambda: backend.convert_from_nx(graph))
    first, _ = timed(lambda: listed(call(converted, *args, **options)))
    ours, found = timed(lambda: listed(call(converted, *args, **options)))
    whole = converting + first
    print(
        f"| {what} | {theirs:.2f} | {whole:.2f}, {theirs / whole:.1f}x | "
        f"{ours:.3f}, {theirs / ours:.0f}x |",
        flush=True,
    )
    return wanted, found


def listed(found: Any) -> Any:
    return found if isinstance(found, dict) else list(found)


def pairs_of(graph: Any, count: int) -> list[tuple[Any, Any]]:
    """Pairs of nodes with a neighbor in common, drawn by a link and another of the same node."""
    rng, nodes = np.random.default_rng(1), list(graph)
    found: list[tuple[Any, Any]] = []
    while len(found) < count:
        row = list(graph[nodes[rng.integers(len(nodes))]])
        if len(row) > 1:
            a, b = rng.choice(len(row), 2, replace=False)
            found.append((row[a], row[b]))
    return found


def measured(file: Path, count: int, pages: int) -> None:
    options: dict[str, Any] = {"create_using": nx.DiGraph, "nodetype": int}
    with gzip.open(file) as text:
        theirs, graph = timed(lambda: nx.read_edgelist(text, **options))
    with gzip.open(file) as text:
        ours, read = timed(lambda: backend.read_edgelist(text, **options))
    assert read.number_of_edges() == graph.number_of_edges()
    print(f"\n{file.name}: {len(graph):,} nodes, {read.number_of_edges():,} links\n")
    print("| | NetworkX, s | with conversion, s | without, s |\n| --- | --- | --- | --- |")
    print(f"| read_edgelist | {theirs:.2f} | {ours:.2f}, {theirs / ours:.1f}x | |")
    del read
    for what, tol in (("pagerank", 1e-6), ("pagerank, to 1e-8", 1e-8 / len(graph))):
        wanted, found = compared(what, graph, "pagerank", tol=tol, max_iter=1000)
        assert max(abs(found[node] - wanted[node]) for node in graph) < 1e-12
    small = graph.subgraph(list(graph)[:pages]).copy()
    both = graph.to_undirected()
    del graph
    told = f"jaccard_coefficient, {count:,} pairs"
    wanted, found = compared(told, both, "jaccard_coefficient", pairs_of(both, count))
    assert wanted == found
    source = next(node for node in small if small.in_degree(node) > 2)
    told = f"simrank_similarity, one of {len(small):,} pages"
    wanted, found = compared(told, small, "simrank_similarity", source)
    assert max(abs(found[node] - wanted[node]) for node in small) < 1e-9


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networkx_backend")
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--pages", type=int, default=2_000)
    asked = parser.parse_args()
    warm()
    for file in asked.files:
        measured(file, asked.pairs, asked.pages)


if __name__ == "__main__":
    main()
