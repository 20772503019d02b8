"""PageRank on two threads: number of sweeps, and speed-up from the second thread.

    python -m benchmarks.halves GRAPH... [--runs 10]

Prints the sweeps to the default tolerance without and with halves. Then the CPU time of a
whole computation, in milliseconds: without halves, with halves on one thread, and of the slower of
two threads; the same for only the sweeps in halves; and wall times, which include the effect of
other processes. Runs alternate; times are the least of ``--runs``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from cocite import Graph, pagerank
from cocite.cli.output import table_text
from cocite.cluster.threads import Team

_ONE_HALF = patch("cocite.ranking.vectors.LEAST_IN_HALVES", 1 << 60)


class _Timed(Team):
    """One thread, which notes what a second one would spare."""

    both = slower = 0.0

    def split(self, work: Callable[[int, int], Any], size: int, *_: Any, **__: Any) -> list[Any]:
        seconds = []
        for part in range(size):
            begin = time.thread_time()
            work(part, part + 1)
            seconds.append(time.thread_time() - begin)
        _Timed.both += sum(seconds)
        _Timed.slower += max(seconds)
        return []


def processor(graph: Graph) -> tuple[float, ...]:
    """Seconds of a ranking in one thread, and of the slower of two; the same of its sweeps."""
    _Timed.both, _Timed.slower, begin = 0.0, 0.0, time.thread_time()
    with patch("cocite.ranking.solver.Team", _Timed):
        pagerank(graph, threads=1)
    taken = time.thread_time() - begin
    return taken, taken - _Timed.both + _Timed.slower, _Timed.both, _Timed.slower


def clock(graph: Graph, threads: int) -> float:
    """Seconds of a ranking by the clock."""
    begin = time.perf_counter()
    pagerank(graph, threads=threads)
    return time.perf_counter() - begin


def row(name: str, graph: Graph, runs: int) -> list[str]:
    """The table's row of one graph."""
    with _ONE_HALF:
        before = pagerank(graph, threads=1)
    after = pagerank(graph, threads=2)
    times = []
    for _ in range(runs):
        with _ONE_HALF:
            alone = processor(graph)[0]
        times.append((alone, *processor(graph), clock(graph, 1), clock(graph, 2)))
    least = [min(column) for column in zip(*times, strict=True)]
    cells = [name, str(before.convergence.sweeps), str(after.convergence.sweeps)]
    cells += [f"{1000 * each:.0f}" for each in least]
    for one, two in ((3, 4), (0, 2), (5, 6)):
        cells.append(f"{least[one] / least[two]:.2f}" if least[two] else "-")
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    parser.add_argument("--runs", type=int, default=10)
    asked = parser.parse_args()
    rows = [row(path, Graph.open(path), asked.runs) for path in asked.graphs]
    titles = ["graph", "in one half", "sweeps", "ms, one half", "two halves", "slower thread"]
    titles += [
        "halved sweeps",
        "slower",
        "clock, 1",
        "clock, 2",
        "gain of these",
        "of all",
        "clock",
    ]
    print(table_text(titles, rows))


if __name__ == "__main__":
    main()
