"""Cost of the min-hashes of neighborhoods, the fingerprints of XJaccard.

    python -m benchmarks.rings GRAPH... [--samples N] [--length L] [--threads T]

Computes all samples and hop neighborhoods of a graph in memory, and prints the time, in total and
per link, step and sample.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from cocite import Graph
from cocite.engine.scan import HopNeighborhoods, plan_ring_scan
from cocite.graph.links import in_links
from cocite.resources import Resources, cores

LANES = 16


def main() -> None:
    """A row for each graph."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rings", description=__doc__)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--length", type=int, default=4)
    parser.add_argument("--threads", type=int, default=cores())
    chosen = parser.parse_args()
    samples, length = range(chosen.samples), chosen.length
    print("| graph | links | samples | length | threads | seconds | ns a link, step and sample |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for path in chosen.graphs:
        graph = Graph.open(path)
        links = in_links(graph)
        plan = plan_ring_scan(links, Resources.checked(chosen.threads))
        make = HopNeighborhoods(links, plan, length, 0)
        out = np.empty((LANES, graph.nodes), np.uint32)
        for ring in make(samples[:LANES]):  # compiles
            ring.winners(out[: len(samples[:LANES])])
        begin = time.perf_counter()
        for low in range(0, len(samples), LANES):
            batch = samples[low : low + LANES]
            for ring in make(batch):
                ring.winners(out[: len(batch)])
        seconds = time.perf_counter() - begin
        each = 1e9 * seconds / (graph.edges * length * len(samples))
        print(
            f"| {path} | {graph.edges:,} | {len(samples)} | {length} | {chosen.threads} | "
            f"{seconds:.2f} | {each:.2f} |"
        )


if __name__ == "__main__":
    main()
