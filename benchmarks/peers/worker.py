"""One run of one library, in a process of its own: prints one JSON object.

    python -m benchmarks.peers.worker TASK LIBRARY TEXT ANSWER ERROR...

``load`` of the object is a pair of seconds, of the processor and of the clock; ``first`` is the
first time that it was solved, as whoever loads and solves once has it; ``again`` has one pair for
each error, of the second time. Where the first took more than SLOW seconds of the processor it is
not done twice. Imports and what a library does once in a process are not counted: each has done all
of it with a few links before. The answer to the last error goes to the file ANSWER; "exactly" in
the place of ERROR makes the reference.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peak import peak
from benchmarks.peers.loads import few_links, start
from benchmarks.peers.pairs import pairs_file
from benchmarks.peers.tasks import TASKS, Solver

SLOW = 5.0


def timed(work: Callable[[], Any]) -> tuple[list[float], Any]:
    """Seconds, of the processor and of the clock; and what came of it."""
    busy, begin = time.process_time(), time.perf_counter()
    found = work()
    return [time.process_time() - busy, time.perf_counter() - begin], found


def try_out(solver: Solver, error: float) -> None:
    """Do all of it once with a few links."""
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as folder:
        file = few_links(Path(folder))
        np.save(pairs_file(file), np.array([[0, 1], [2, 3]]))
        solver.solve(solver.load(file), error)


def main() -> None:
    """As the command line says."""
    name, library, text, answer, *errors = sys.argv[1:]
    task = TASKS[name]
    solver = task.solvers[library]
    start(library)
    if errors != ["exactly"]:
        try_out(solver, float(errors[-1]))
    load, form = timed(lambda: solver.load(Path(text)))
    if errors == ["exactly"]:
        np.save(answer, task.exactly(form))
        return
    first, found = timed(lambda: solver.solve(form, float(errors[-1])))
    again = []
    for error in map(float, errors):
        spent = first
        if first[0] < SLOW:
            spent, found = timed(lambda error=error: solver.solve(form, error))  # type: ignore[misc]
        again.append(spent)
    most = peak()
    np.save(answer, found)
    print(json.dumps({"load": load, "first": first, "again": again, "peak": most}))


if __name__ == "__main__":
    main()
