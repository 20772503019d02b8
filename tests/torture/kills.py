"""Processes that end by kill -9: at every call that changes a disk, and at any time.

A process that does an operation (``operations.py``) is ended at each point of ``shim.py`` in turn;
or after a time that is drawn. Then the output is what it was, or the new one whole; and the same
command, given once more, ends with the very bytes, and leaves nothing else.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from tests.torture.operations import Prepared, contents, generation
from tests.torture.results import Row
from tests.torture.shim import KILLED, run_apart, run_killed

__all__ = ["kill_at_points", "kill_at_times", "wrong_after"]

_MOST_POINTS = 10_000
_EXISTS = 1
"""What a command that replaces nothing exits with where its output is."""


def kill_at_points(told: Prepared, place: Path, every: int = 1, first: int = 1) -> Row:
    """End it at each point, or at every so many-th from the ``first`` on."""
    row = Row()
    for point in range(first, _MOST_POINTS, every):
        folder = told.copy(place / f"{point}")
        code = run_killed(lambda folder=folder: told.operation.run(folder), point)  # type: ignore[misc]
        if code != KILLED:
            assert code == 0, f"exit code {code}"
            break
        row.add(f"killed at point {point}", wrong_after(told, folder, row))
        shutil.rmtree(folder)
    else:
        raise AssertionError("it never ends")
    return row


def kill_at_times(told: Prepared, place: Path, count: int, seed: int) -> Row:
    """End it ``count`` times, each after a time that is drawn, some of them again and again."""
    chance, row = random.Random(seed), Row()
    folder = told.copy(place / "timed")
    begin = time.monotonic()
    assert run_apart(lambda: told.operation.run(folder)) == 0
    usual = time.monotonic() - begin
    for number in range(count):
        shutil.rmtree(folder)
        told.copy(folder)
        times = [chance.uniform(0, usual) for _ in range(chance.choice((1, 1, 3)))]
        for seconds in times:
            _kill_after(told, folder, seconds)
        row.add(f"killed at time {number}", wrong_after(told, folder, row))
    return row


def _kill_after(told: Prepared, folder: Path, seconds: float) -> None:
    child = os.fork()
    if child == 0:
        try:
            told.operation.run(folder)
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def wrong_after(told: Prepared, folder: Path, row: Row, repeated: bool = True) -> str:
    """What is wrong with what a fault left, if anything is; ``row`` counts what was seen, and
    whether the new generation was there already.
    """
    found = generation(told, folder)
    row.seen[found] += 1
    if found not in ("old", "new"):
        return f"the output is {found}"
    if not repeated:
        return ""
    code = run_apart(lambda: told.operation.run(folder))
    refused = found == "new" and told.operation.is_once and code == _EXISTS
    if code != 0 and not refused:
        return f"repeated, it exits with {code}"
    return "; ".join(_differences(contents(folder) or {}, contents(told.after) or {}))


def _differences(found: dict[str, bytes], wanted: dict[str, bytes]) -> Iterator[str]:
    """How what is there differs from what is to be there."""
    for name in sorted(found.keys() - wanted.keys()):
        yield f"{name} is left"
    for name in sorted(wanted.keys() - found.keys()):
        yield f"{name} is missing"
    for name in sorted(wanted.keys() & found.keys()):
        if wanted[name] != found[name]:
            yield f"{name} differs"
