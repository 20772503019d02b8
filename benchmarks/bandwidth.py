"""Memory traffic of a PageRank sweep, compared with the machine's bandwidth.

    python -m benchmarks.bandwidth GRAPH...

Measures bandwidth on one thread over arrays of 256 MB, best of several: reading (a sum of integers,
which compiles to wide loads), and the triad a = b + s * c (24 bytes per element, without the read
of the overwritten data). A sweep streams, according to the sizes of its arrays:

    8 per core node: rows     32: facts     16: z, read and written     16: z, scaled afterwards
    4 per link of the core: links

Each link also gathers 8 bytes of z at random (*gathered*). How much of this reaches memory depends
on caches and on the locality of ids, so *share* is the bandwidth of only the streamed bytes, as a
fraction of the read bandwidth.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from cocite import Graph
from cocite.ranking import plan_ranks
from cocite.ranking.blocks import Resident
from cocite.ranking.solver import System
from cocite.resources import budget

WORDS = 1 << 25
TITLES = ["graph", "nodes", "links", "core", "core links", "z", "ms per sweep", "ns per link"]
TITLES += ["streamed", "gathered", "GB/s streamed", "share"]


@numba.njit(nogil=True)
def _read(values: Any) -> Any:
    total = np.uint64(0)
    for i in range(values.size):
        total += values[i]
    return total


@numba.njit(nogil=True)
def _triad(a: Any, b: Any, c: Any) -> None:
    for i in range(a.size):
        a[i] = b[i] + 3.0 * c[i]


def best(run: Callable[[], object], runs: int = 7) -> float:
    """The least seconds of several, after one that does not count."""
    run()
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def bandwidths() -> tuple[float, float]:
    """Bytes a second: reading, triad."""
    words = np.ones(WORDS, np.uint64)
    a, b, c = (np.ones(WORDS) for _ in range(3))
    return (
        8 * WORDS / best(lambda: _read(words)),
        24 * WORDS / best(lambda: _triad(a, b, c)),
    )


def row(name: str, graph: Graph, reading: float) -> list[str]:
    """The table's row of one graph."""
    system = System(graph, 0.85, room=plan_ranks(graph, budget(None)))
    assert isinstance(system.links, Resident), "this graph does not fit in memory"
    sweeps = system.sweeps(np.full(graph.nodes, 1 / graph.nodes), None)
    seconds = best(lambda: next(sweeps), runs=40)
    core, links = system.lumped.core, int(system.links.core[1][-1])
    streamed, gathered = (8 + 32 + 16 + 16) * core + 4 * links, 8 * links
    rate = streamed / seconds
    return [
        name,
        f"{graph.nodes:,}",
        f"{graph.edges:,}",
        f"{core:,}",
        f"{links:,}",
        f"{8e-6 * core:.1f} MB",
        f"{1e3 * seconds:.2f}",
        f"{1e9 * seconds / links:.2f}",
        f"{1e-6 * streamed:.1f} MB",
        f"{1e-6 * gathered:.1f} MB",
        f"{1e-9 * rate:.1f}",
        f"{rate / reading:.0%}",
    ]


def main() -> None:
    """The bandwidths, and a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bandwidth", description=__doc__)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    chosen = parser.parse_args()
    reading, triad = bandwidths()
    print(f"one thread reads {1e-9 * reading:.1f} GB/s, triad {1e-9 * triad:.1f} GB/s\n")
    print("| " + " | ".join(TITLES) + " |\n|" + " --- |" * len(TITLES))
    for path in chosen.graphs:
        graph = Graph.open(path)
        found = row(graph.path.name.removesuffix(".graph"), graph, reading)
        print("| " + " | ".join(found) + " |", flush=True)


if __name__ == "__main__":
    main()
