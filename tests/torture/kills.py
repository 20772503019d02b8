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
from itertools import count
from pathlib import Path

from tests.torture.operations import OPERATIONS, Prepared, contents, generation, prepared
from tests.torture.results import Given, Row, in_turns
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
_TYPED = 10
"""Of so many commands one is started as from a shell, which takes it a second."""
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
    """End all operations at all points, in an order that is drawn, the operations in turns."""
    rows = {name: Row() for name in OPERATIONS if given.only in name}
    in_turns([_killed_at_points(given, name, row) for name, row in rows.items()], given.until)
    return rows


def _killed_at_points(given: Given, name: str, row: Row) -> Iterator[bool]:
    told = prepared(OPERATIONS[name], given.folder / "kills" / name)
    found = count_points(partial(told.operation.run, told.copy(told.before.parent / "counted")))
    chance = random.Random(f"{given.seed} {name}")
    for point in chance.sample(range(1, found + 1), given.count(found)):
        yield _kill_at(told, told.before.parent / "killed", point, row)


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
    """End processes, each at a time that is drawn, the operations in turns, on graphs that take
    them a while. Most are forks of this process, which has loaded all, and end at any time of
    theirs; one in some is a command as it is typed, and ends after it has begun to change the disk.
    """
    rows = {name: Row() for name in OPERATIONS if given.only in name}
    each = given.count(_KILLS) // max(len(rows), 1) + 1
    in_turns([_ended(given, name, row, each) for name, row in rows.items()], given.until)
    return rows


def _ended(given: Given, name: str, row: Row, wanted: int) -> Iterator[bool]:
    told = prepared(OPERATIONS[name], given.folder / "killed" / name, _PAGES)
    chance, usual = random.Random(f"{given.seed} {name}"), dict[bool, float]()
    for typed in (False, True):
        process = _started(told, told.copy(told.before.parent / f"timed {typed}"), typed)
        begin = time.monotonic()
        assert process.wait() == 0, f"{name}: it does not end well"
        usual[typed] = time.monotonic() - begin
    for number in count():  # until one is killed, as each that is not makes the time shorter
        if row.injected >= wanted or (row.injected and number >= _TRIES * wanted):
            break
        typed = number % _TYPED == _TYPED - 1
        folder = told.copy(told.before.parent / "ended")
        process, seconds = _started(told, folder, typed), chance.uniform(0, usual[typed])
        time.sleep(seconds)
        process.kill()
        ended = process.wait() == -signal.SIGKILL
        if ended:
            wrong = wrong_after(told, folder, row)
            row.add(f"killed {seconds:.3f} s after it had begun", wrong)
        else:  # it takes less time than it took first
            usual[typed] = min(usual[typed], seconds)
        shutil.rmtree(folder)
        if row.injected or number >= _TRIES:
            yield ended


class _Fork:
    """A process that does an operation, a fork of this one; used as one of ``subprocess``."""

    def __init__(self, told: Prepared, folder: Path) -> None:
        self._code: int | None = None
        self._child = os.fork()
        if self._child == 0:
            code = 1
            try:
                code = told.operation.run(folder)
            finally:
                os._exit(code)

    def _waited(self, options: int) -> int | None:
        if self._code is None:
            child, status = os.waitpid(self._child, options)
            self._code = os.waitstatus_to_exitcode(status) if child else None
        return self._code

    def poll(self) -> int | None:
        """What it ended with, negative for a signal; None if it has not."""
        return self._waited(os.WNOHANG)

    def wait(self) -> int:
        """The same, once it has ended."""
        code = self._waited(0)
        assert code is not None
        return code

    def kill(self) -> None:
        """End it, if it has not ended."""
        if self.poll() is None:
            os.kill(self._child, signal.SIGKILL)


def _started(told: Prepared, folder: Path, typed: bool) -> subprocess.Popen[bytes] | _Fork:
    """A command; if it is ``typed``, one that has begun to change what is in its folder, or has
    ended.
    """
    before = sorted(os.listdir(folder))
    process: subprocess.Popen[bytes] | _Fork
    if typed:
        process = subprocess.Popen(
            [sys.executable, "-m", "cocite", *told.operation.arguments(folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    else:
        process = _Fork(told, folder)
    while typed and process.poll() is None and sorted(os.listdir(folder)) == before:
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
