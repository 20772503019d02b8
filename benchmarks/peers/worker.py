"""Run one library once in this process and print one JSON object.

    python -m benchmarks.peers.worker TASK LIBRARY TEXT ANSWER ERROR...

``load`` is a pair of processor and wall seconds. ``first`` is the pair of the first solution, as
for users who load and solve once; ``again`` has a pair per error, of the second solution. If the
first took more than SLOW CPU seconds, it is not repeated. Imports and one-time work of a
library are not counted: a few links are loaded and solved first. The answer to the last error is
written to the file ANSWER; ERROR "exactly" computes the reference.
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
