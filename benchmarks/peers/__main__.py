"""Compare cocite with other libraries, alternately, as ratios.

    python -m benchmarks.peers [--only TASK]... [--graph GRAPH]... [--with LIBRARY]... [--runs N]
                               [--write] [--against]

Tasks are pagerank, simrank-all, simrank-source, jaccard and embedding. By default, each has its own
graphs (``tasks.py``, ``nearest.py``); a GRAPH may also be a stored graph. Libraries that are not
installed are skipped and reported with the command that installs them; ``make bench-peers``
installs all available ones in a separate environment. ``--write`` stores each comparison as it
ends, and all of them in docs/performance.md. ``--against`` compares ratios with the last stored
ones and warns if cocite has become slower; the exit code is 0 all the same, as machines differ.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.block import add_write
from benchmarks.kept import ResultStore, watched
from benchmarks.peers.document import ratios, told, warnings, wholes
from benchmarks.peers.graphs import prepare, there
from benchmarks.peers.nearest import EMBEDDING, NEAREST, beside
from benchmarks.peers.nearest import GRAPHS as NEAREST_GRAPHS
from benchmarks.peers.nearest import there as labeled
from benchmarks.peers.tasks import OURS, PACKAGES, TASKS, missing
from benchmarks.peers.turns import compare
from benchmarks.performance import write

RESULTS = ResultStore("peers")
Measured = tuple[str, dict[str, Any], float | None]
BY = 1.25
"""Ratios of a machine with others on it are compared: less than this is no news."""


def libraries(task: str) -> list[str]:
    """Who can do a task, besides cocite."""
    if task == EMBEDDING:
        return list(NEAREST)
    return [name for name in TASKS[task].solvers if name != OURS]


def measured(task: str, graph: str, wanted: list[str], runs: int) -> Iterator[Measured]:
    """(key, figures, what else ran) of each library on a graph, as it ends."""
    name = Path(graph).name.removesuffix(".graph")
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as folder:
        text = None if task == EMBEDDING else prepare(graph, Path(folder))
        for library in wanted:
            with watched() as watch:
                if text is None:
                    row = beside(graph, library, runs)
                else:
                    row = compare(task, library, text, runs)
            yield f"{task} {name} {library}", {**row, "graph": name}, watch.others


def main() -> None:
    """Compare, print, keep, write, warn: as was chosen."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tasks = [*TASKS, EMBEDDING]
    parser.add_argument("--only", action="append", choices=tasks, metavar="TASK")
    parser.add_argument("--graph", action="append", metavar="GRAPH")
    parser.add_argument("--with", dest="libraries", action="append", choices=list(PACKAGES))
    parser.add_argument("--runs", type=int, default=5)
    add_write(parser, "keep the results under results/ and put them into docs/performance.md")
    parser.add_argument("--against", action="store_true", help="compare with the last kept ratios")
    chosen = parser.parse_args()
    if chosen.runs < 1:
        parser.error("--runs is 1 or more")
    lacking = {name: missing(name) for name in chosen.libraries or PACKAGES}
    for name, command in lacking.items():
        if command:
            print(f"{name} is left out; to compare with it: {command}", file=sys.stderr)
    before, warned = wholes(RESULTS.newest()), []
    for task in chosen.only or tasks:
        wanted = [
            name
            for name in libraries(task)
            if not lacking.get(name, "") and name in (chosen.libraries or PACKAGES)
        ]
        own, can = (NEAREST_GRAPHS, labeled) if task == EMBEDDING else (TASKS[task].graphs, there)
        for graph in chosen.graph or own:
            if not can(graph):
                print(f"{task}, {graph}: left out, its data is not there", file=sys.stderr)
                continue
            for key, row, others in measured(task, graph, wanted, chosen.runs):
                print(told(row), flush=True)
                found = warnings(ratios(row), before.get(key, {}), BY)
                warned += [f"{key}, {line}" for line in found]
                if chosen.against and key not in before:
                    print(f"{key}: nothing was kept to compare with", file=sys.stderr)
                if chosen.write:
                    RESULTS.keep(key, row, others)
    if chosen.against:
        for line in warned:
            print(f"warning: slower than when last kept: {line}", file=sys.stderr)
        if not warned:
            print("nothing is slower than when last kept", file=sys.stderr)
    if chosen.write:
        write()


if __name__ == "__main__":
    main()
