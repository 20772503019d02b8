"""Alternate a library and cocite, each run in its own process.

The first run of a library is not counted. It determines the error that the library reaches, at
which cocite then also runs, in addition to the common error. Rounds of both follow. If a run takes
longer than LONG CPU seconds, there is only one round, which includes the first run. If it
takes longer than LONGEST wall seconds, the library is skipped with a message.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.block import ROOT
from benchmarks.peers.graphs import Text
from benchmarks.peers.tasks import OURS, TASKS

LONG, LONGEST = 60.0, 1800.0
PASSIVE = {"OMP_WAIT_POLICY": "passive"}
"""Threads of OpenMP that wait shall not spin, which is no work and depends on what else runs."""
FLOOR = {"pagerank": 2e-12, "simrank-all": 1e-8, "simrank-source": 1e-6}
"""The least error that ours is asked for."""


def _run(task: str, library: str, text: Path, answer: Path, *errors: object) -> dict[str, Any]:
    """What a run took; raises CalledProcessError, TimeoutExpired."""
    command = [sys.executable, "-m", "benchmarks.peers.worker", task, library, text, answer]
    done = subprocess.run(
        [*map(str, command), *map(str, errors)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        env=os.environ | PASSIVE,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}
    return found


def reference(name: str, text: Path) -> Path:
    """Where the true answer of a task lies, which is made if it is not there."""
    truth = text.with_suffix(f".{name}.npy")
    if not truth.exists():
        _run(name, TASKS[name].truth, text, truth, "exactly")
    return truth


def compare(name: str, library: str, text: Text, runs: int) -> dict[str, Any]:
    """All turns of a library with ours: ``ours``, ``theirs``, a run each; ``error``, that of the
    library, and ``our_error`` at the same; ``unlike`` if it computes something else; or ``why`` it
    has no turn.
    """
    facts = {"nodes": text.nodes, "links": text.links, "task": name, "library": library}
    try:
        return {**facts, **_turns(name, library, text.file, runs)}
    except subprocess.TimeoutExpired:
        return {**facts, "why": f"a run took longer than {LONGEST / 60:.0f} minutes"}
    except subprocess.CalledProcessError as failed:
        lines = failed.stderr.strip().splitlines() or ["no message"]
        return {**facts, "why": f"{failed.cmd[4]} failed: {lines[-1][:200]}"}


def _turns(name: str, library: str, text: Path, runs: int) -> dict[str, Any]:
    task = TASKS[name]
    answer, other = text.with_suffix(".answer.npy"), text.with_suffix(".other.npy")
    truth = np.load(reference(name, text))
    first = _run(name, library, text, other, task.error)
    error = task.apart(np.load(other), truth)
    if error > task.unlike:
        return {"error": error, "unlike": True, "theirs": [first], "ours": []}
    asked = (task.error, max(error, FLOOR.get(name, 0.0)))
    _run(name, OURS, text, answer, *asked)  # compiles, and brings the text to the cache
    once = first["load"][0] + first["first"][0] + first["again"][0][0] > LONG
    ours, theirs = [], []
    for _ in range(1 if once else runs):
        ours.append(_run(name, OURS, text, answer, *asked))
        theirs.append(first if once else _run(name, library, text, other, task.error))
    our_error = task.apart(np.load(answer), truth)
    return {"error": error, "our_error": our_error, "ours": ours, "theirs": theirs}
