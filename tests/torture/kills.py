"""Processes that end by kill -9: at every call that changes a disk, and at any time.

A process that does an operation (``operations.py``) is ended at each point of ``shim.py``; or after
a time that is drawn. Then the output is what it was, or the new one whole; and the same
command, given once more, ends with the very bytes, and leaves nothing else.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.torture.operations import OPERATIONS, Prepared, contents, generation, prepared
from tests.torture.results import Given, Row
from tests.torture.shim import KILLED, count_points, run_apart, run_killed

__all__ = [
    "differences",
    "kill_at_all_points",
    "kill_at_points",
    "kill_at_times",
    "kill_commands",
    "wrong_after",
]

_MOST_POINTS = 10_000
_KILLS = 1_000
"""Commands that are killed, if there is time for all."""
_TRIES = 5
"""A kill, as a command may end before it."""
_PAGES = 1_000
"""Of the graphs that they are given."""
_EXISTS = 1
"""What a command that replaces nothing exits with where its output is."""


def kill_at_points(told: Prepared, place: Path, every: int = 1, first: int = 1) -> Row:
    """End it at each point, or at every so many-th from the ``first`` on."""
    row = Row()
    for point in range(first, _MOST_POINTS, every):
        if not _kill_at(told, place / f"{point}", point, row):
            return row
    raise AssertionError("it never ends")


def kill_at_all_points(given: Given) -> dict[str, Row]:
    """End all operations at all points, in an order that is drawn."""
    chance, rows, cases = random.Random(given.seed), dict[str, Row](), list[tuple[Prepared, int]]()
    names: dict[Path, str] = {}
    for name, operation in OPERATIONS.items():
        if given.only in name and not given.until.over:
            told = prepared(operation, given.folder / "kills" / name)
            found = count_points(partial(operation.run, told.copy(told.before.parent / "counted")))
            cases += [(told, point) for point in range(1, found + 1)]
            names[told.before], rows[name] = name, Row()
    for told, point in chance.sample(cases, given.count(len(cases)) if cases else 0):
        if given.until.over:
            break
        _kill_at(told, told.before.parent / "killed", point, rows[names[told.before]])
    return rows


def _kill_at(told: Prepared, folder: Path, point: int, row: Row) -> bool:
    """End it there; False if it does not come so far."""
    told.copy(folder)
    code = run_killed(partial(told.operation.run, folder), point)
    if code == KILLED:
        row.add(f"killed at point {point}", wrong_after(told, folder, row))
    else:
        assert code == 0, f"exit code {code}"
    shutil.rmtree(folder)
    return code == KILLED


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


def kill_commands(given: Given) -> dict[str, Row]:
    """End commands, processes of their own, each at a time that is drawn, from when it has begun to
    change the disk to when it would have ended; on graphs that take them a while.
    """
    chance, rows = random.Random(given.seed), dict[str, Row]()
    ready: list[tuple[Prepared, float, Row]] = []
    for name, operation in OPERATIONS.items():
        if given.only in name and not given.until.over:
            told = prepared(operation, given.folder / "killed" / name, _PAGES)
            process = _started(told, told.copy(told.before.parent / "timed"))
            begin = time.monotonic()
            assert process.wait() == 0, f"{name}: exit code {process.returncode}"
            rows[name] = Row()
            ready.append((told, time.monotonic() - begin, rows[name]))
    wanted = given.count(_KILLS)
    for number in range(_TRIES * wanted):
        if given.until.over or sum(row.injected for row in rows.values()) >= wanted or not ready:
            break
        told, usual, row = ready[number % len(ready)]
        folder = told.copy(told.before.parent / "ended")
        process, seconds = _started(told, folder), chance.uniform(0, usual)
        time.sleep(seconds)
        process.kill()
        if process.wait() == -signal.SIGKILL:
            wrong = wrong_after(told, folder, row)
            row.add(f"killed {seconds:.3f} s after it had begun", wrong)
        shutil.rmtree(folder)
    return rows


def _started(told: Prepared, folder: Path) -> subprocess.Popen[bytes]:
    """A command that has begun to change what is in its folder, or has ended."""
    before, words = sorted(os.listdir(folder)), told.operation.arguments(folder)
    process = subprocess.Popen(
        [sys.executable, "-m", "cocite", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None and sorted(os.listdir(folder)) == before:
        time.sleep(0.001)
    return process


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
    return "; ".join(differences(contents(folder) or {}, contents(told.after) or {}))


def differences(found: dict[str, bytes], wanted: dict[str, bytes]) -> Iterator[str]:
    """How what is there differs from what is to be there."""
    for name in sorted(found.keys() - wanted.keys()):
        yield f"{name} is left"
    for name in sorted(wanted.keys() - found.keys()):
        yield f"{name} is missing"
    for name in sorted(wanted.keys() & found.keys()):
        if wanted[name] != found[name]:
            yield f"{name} differs"
