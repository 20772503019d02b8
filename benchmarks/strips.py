"""PageRank in strips: what they cost in sweeps, and what two threads could gain a sweep.

    python -m benchmarks.strips GRAPH... [--strips 1,2,4,8,16] [--sweeps 40]

A strip is a range of rows with as many links as every other. Sweeps go by Gauss-Seidel within a
strip; from other strips a row takes the values of the sweep before. So strips can be swept side by
side, and ranks do not depend on the number of threads, but on the number of strips. Each strip has
a copy of all values, in which the rows of others are old: links are stored as for one strip.

A second way changes no rank: one thread adds up what rows get from the rows above them, some rows
ahead of the other thread, which goes on from there.

Printed are sweeps to the default tolerance, and milliseconds of processor time a sweep: of all rows
in one strip, of the slower of two strips, and of the slower part of the second way. The least of
``--sweeps``, in turns: on a busy machine, the clock would measure the other processes.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise
from typing import Any

import numpy as np

from cocite import Graph
from cocite.cli.output import table_text
from cocite.kernels import rank
from cocite.options.rank import RankOptions
from cocite.ranking.blocks import CoreLinks, Resident
from cocite.ranking.pagerank import set_up
from cocite.ranking.solver import System
from cocite.ranking.vectors import Vector

_ZERO = np.uint64(0)


class Strips(CoreLinks):
    """Links in memory, swept in ``count`` strips; ``seconds`` of each, the last time."""

    def __init__(self, links: Resident, count: int) -> None:
        self._links, self.loops = links, links.loops
        self._above, self._below = links._block.above, links._block.below
        self._ends = self._below[1]
        goals = self._ends[-1] * np.arange(1, count) // count
        cuts = np.searchsorted(self._ends, goals).tolist()
        self._cuts = list(pairwise([0, *cuts, self._ends.size]))
        self.seconds = [0.0] * count

    def sweep(self, z: Vector, facts: Vector, damping: float, sums: Vector) -> None:
        """Each strip with the old values of the others."""
        old = z.copy()
        for i, (low, high) in enumerate(self._cuts):
            mine, begin, first = np.empty_like(z), time.thread_time(), np.uint64(low)
            mine[:] = old
            begins, _, links, weights = self._above
            assert begins is not None
            rows = begins[low:high], self._ends[low:high], links, weights
            so_far = self._links._so_far[low:high]
            rank.sweep(rows, (_ZERO, first, first), so_far, mine, facts[low:high], damping, sums)
            z[low:high] = mine[low:high]
            self.seconds[i] = time.thread_time() - begin

    def gathered(self, z: Vector, all_rows: bool) -> Any:
        """All nodes at once."""
        return self._links.gathered(z, all_rows)


class Ahead(Strips):
    """One strip, in two parts: what rows get from above them, and all else."""

    def __init__(self, links: Resident) -> None:
        super().__init__(links, 2)

    def sweep(self, z: Vector, facts: Vector, damping: float, sums: Vector) -> None:
        """Two passes over the rows."""
        so_far, begin = np.zeros(z.size), time.thread_time()
        self._links._block.collect_above(z, so_far)
        middle = time.thread_time()
        rank.sweep(self._below, (_ZERO, _ZERO, _ZERO), so_far, z, facts, damping, sums)
        self.seconds = [middle - begin, time.thread_time() - middle]


def _system(graph: Graph) -> tuple[System, Vector]:
    system, where, _ = set_up(graph, RankOptions(), None, 1 << 35)
    return system, where


def sweeps(graph: Graph, count: int) -> int:
    """How many sweeps so many strips take to the default tolerance."""
    system, where = _system(graph)
    assert isinstance(system.links, Resident)
    system.links = Strips(system.links, count)
    options = RankOptions()
    return next(s.number for s in system.sweeps(where, None) if s.residual <= options.tolerance)


def times(graph: Graph, count: int) -> list[float]:
    """Seconds a sweep, of the slower thread: of one strip, of two, and of one ahead of another."""
    system, where = _system(graph)
    links = system.links
    assert isinstance(links, Resident)
    next(system.sweeps(where, None))
    ways = [Strips(links, 1), Strips(links, 2), Ahead(links)]
    values = [np.full(system.lumped.core, 1 / system.lumped.core) for _ in ways]
    least = [float("inf")] * len(ways)
    for _ in range(count):
        for i, way in enumerate(ways):
            way.sweep(values[i], system._facts, 0.85, np.zeros(4))
            least[i] = min(least[i], max(way.seconds))
    assert values[2].tobytes() == values[0].tobytes()
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    parser.add_argument("--strips", default="1,2,4,8,16")
    parser.add_argument("--sweeps", type=int, default=40)
    asked = parser.parse_args()
    counts = [int(text) for text in asked.strips.split(",")]
    rows = []
    for path in asked.graphs:
        graph = Graph.open(path)
        found = [str(sweeps(graph, count)) for count in counts]
        rows.append([path, *found, *(f"{1000 * each:.2f}" for each in times(graph, asked.sweeps))])
    strips = [f"{count} strips" for count in counts]
    print(table_text(["graph", *strips, "ms, 1 strip", "2 strips", "ahead"], rows))


if __name__ == "__main__":
    main()
