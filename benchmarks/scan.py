"""Cost of a scan per link and lane, in memory and out of core.

    python -m benchmarks.scan GRAPH... [--memory SIZE]

Scans take the minimum over uint32 in rows of 1, 4 and 16 lanes: in memory on one thread and on all
cores, then in blocks from disk that fit in SIZE (by default a quarter of what links, x and y take).
Times are the best of several, with files in the system's cache as far as they fit.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from cocite import Graph
from cocite.engine.plan import Way, plan_scan
from cocite.engine.scan import Fold, Scan
from cocite.graph.links import in_links
from cocite.resources import Resources, cores, format_size, parse_size

LANES = (1, 4, 16)
RUNS = 5


def nanoseconds(scan: Scan, graph: Graph) -> float:
    """A link, all lanes: the best of several, after one that compiles and warms up."""
    rng = np.random.default_rng(0)
    x, y = scan.vector(), scan.vector()
    x[:] = rng.integers(0, 2**32, x.shape, np.uint32)
    times = []
    for _ in range(1 + RUNS):
        begin = time.perf_counter()
        scan(x, Fold.MIN, start=x, out=y)
        times.append(time.perf_counter() - begin)
    return 1e9 * min(times[1:]) / graph.edges


def scan_of(graph: Graph, lanes: int, **means: Any) -> Scan:
    """A scan of all links, with these means."""
    links = in_links(graph)
    return Scan(links, plan_scan(links, Resources.checked(**means), lanes=lanes, dtype=np.uint32))


def in_blocks(graph: Graph, lanes: int, memory: int) -> Scan:
    """A scan in blocks within ``memory``, also where x and y would fit beside pieces of links."""
    scan = scan_of(graph, lanes, memory=memory)
    if scan.plan.way is Way.BLOCKS:
        return scan
    blocks = max(2, -(-8 * lanes * graph.nodes // memory))
    return scan_of(graph, lanes, memory=memory, blocks=blocks)


def main() -> None:
    """A table for each graph."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scan", description=__doc__)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    parser.add_argument("--memory", type=parse_size)
    chosen = parser.parse_args()
    for path in chosen.graphs:
        graph = Graph.open(path)
        print(f"{path}: {graph.nodes:,} nodes, {graph.edges:,} links\n")
        print(f"| lanes | 1 thread | {cores()} threads | from disk | blocks | memory |")
        print("| --- | --- | --- | --- | --- | --- |")
        for lanes in LANES:
            whole = 8 * lanes * graph.nodes + 8 * graph.nodes + 4 * graph.edges
            memory = chosen.memory or whole // 4
            one = nanoseconds(scan_of(graph, lanes, threads=1), graph)
            many = nanoseconds(scan_of(graph, lanes), graph)
            scan = in_blocks(graph, lanes, memory)
            disk = nanoseconds(scan, graph)
            cells = (f"{ns / lanes:.2f} ({ns:.1f})" for ns in (one, many, disk))
            room = f"{format_size(scan.plan.memory)} of {format_size(whole)}"
            print(f"| {lanes} | {' | '.join(cells)} | {scan.plan.blocks} | {room} |")
        print("\nns a link and lane (a link)\n")


if __name__ == "__main__":
    main()
