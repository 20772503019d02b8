"""Kill processes: at every call that changes a disk, and at random times.

A process that runs an operation (``operations.py``) ends at each point of ``shim.py``; or after a
random CPU time, so that no test depends on the clock. Then the output is the old one, or the
complete new one; and the same command, run again, writes the same bytes and leaves nothing else.
"""

import os
import random
import shutil
import signal
import sys
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

from tests.torture.operations import OPERATIONS, Prepared, contents, generation, prepared
from tests.torture.results import Given, Row
from tests.torture.shim import KILLED, count_points, forked, run_apart, run_killed

_MOST_POINTS = 10_000
_KILLS = 1_000
"""Commands to kill, if time allows."""
_TRIES = 5
"""Per kill, as a command may end before it."""
_TYPED = 10
"""One command of so many starts as from a shell, which takes a second."""
_PAGES = 1_000
"""Nodes of the input graphs."""
_EXISTS = 1
"""The exit code of a command that refuses to replace its output."""


def kill_at_points(target: Prepared, place: Path, every: int = 1, first: int = 1) -> Row:
    """Kill it at each point, or at each ``every``-th point from the ``first`` on."""
    row = Row()
    for point in range(first, _MOST_POINTS, every):
        if not _kill_at(target, place / f"{point}", point, row):
            return row
    raise AssertionError("it never ends")


def kill_at_all_points(given: Given) -> dict[str, Row]:
    """Kill all operations at all points, in random order, the operations in turns."""
    return given.in_turns(OPERATIONS, partial(_killed_at_points, given))


def _killed_at_points(given: Given, name: str, row: Row) -> Iterator[bool]:
    target = prepared(OPERATIONS[name], given.folder / "kills" / name)
    points = count_points(
        partial(target.operation.run, target.copy(target.before.parent / "counted"))
    )
    chance = random.Random(f"{given.seed} {name}")
    for point in chance.sample(range(1, points + 1), given.count(points)):
        yield _kill_at(target, target.before.parent / "killed", point, row)


def _kill_at(target: Prepared, folder: Path, point: int, row: Row) -> bool:
    """Kill it at a point; False if it ends before."""
    target.copy(folder)
    code = run_killed(partial(target.operation.run, folder), point)
    if code == KILLED:
        row.add(f"killed at point {point}", wrong_after(target, folder, row))
    else:
        assert code == 0, f"exit code {code}"
    shutil.rmtree(folder)
    return code == KILLED


def kill_commands(given: Given) -> dict[str, Row]:
    """Kill processes after random CPU times, the operations in turns, on larger graphs. Most are
    forks of this process, which has loaded everything; some start as commands from a shell.
    """
    per_operation = (
        given.count(_KILLS) // max(sum(given.only in name for name in OPERATIONS), 1) + 1
    )

    def kills(name: str, row: Row) -> Iterator[bool]:
        target = prepared(OPERATIONS[name], given.folder / "killed" / name, _PAGES)
        return kill_at_times(target, row, per_operation, random.Random(f"{given.seed} {name}"))

    return given.in_turns(OPERATIONS, kills)


def kill_at_times(target: Prepared, row: Row, kills: int, chance: random.Random) -> Iterator[bool]:
    """Kill it ``kills`` times, each after a random CPU time, sometimes repeatedly; yield whether a
    process was killed.
    """
    durations = dict[bool, float]()
    for typed in (False, True):
        folder = target.copy(target.before.parent / f"timed {typed}")
        code, durations[typed] = _ended(target, folder, typed)
        assert code == 0, f"it ends with {code}"
    for number in count():  # until one is killed: each that is not shortens the time
        if row.injected >= kills or (row.injected and number >= _TRIES * kills):
            return
        typed = number % _TYPED == _TYPED - 1
        folder = target.copy(target.before.parent / "ended")
        ended = False
        for _ in range(chance.choice((1, 1, 3))):
            # The interpreter takes half of the time of a typed command.
            seconds = chance.uniform(durations[typed] / 2 if typed else 0, durations[typed])
            code, took = _ended(target, folder, typed, seconds)
            ended = ended or code == -signal.SIGPROF
            durations[typed] = min(durations[typed], took) if code == 0 else durations[typed]
        if ended:
            row.add(f"killed after {seconds:.3f} s", wrong_after(target, folder, row))
        shutil.rmtree(folder)
        if row.injected or number >= _TRIES:
            yield ended


def _ended(target: Prepared, folder: Path, typed: bool, seconds: float = 0) -> tuple[int, float]:
    """The exit code and CPU time of a process that runs it. A signal ends it silently after
    ``seconds`` of CPU time, if not 0.
    """

    def run() -> int:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        if typed:
            silent = os.open(os.devnull, os.O_RDWR)
            for stream in (1, 2):
                os.dup2(silent, stream)
            words = [sys.executable, "-m", "cocite", *target.operation.arguments(folder)]
            os.execv(sys.executable, words)
        return target.operation.run(folder)

    _, status, used = os.wait4(forked(run), 0)
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime


def wrong_after(target: Prepared, folder: Path, row: Row, repeated: bool = True) -> str:
    """What is wrong with the files after a fault, if anything; ``row`` counts the state of the
    output.
    """
    state = generation(target, folder)
    row.seen[state] += 1
    if state not in ("old", "new"):
        return f"the output is {state}"
    if not repeated:
        return ""
    code = run_apart(lambda: target.operation.run(folder))
    refused = state == "new" and target.operation.is_once and code == _EXISTS
    if code != 0 and not refused:
        return f"repeated, it exits with {code}"
    return "; ".join(differences(contents(folder) or {}, contents(target.after) or {}))


def differences(actual: dict[str, bytes], expected: dict[str, bytes]) -> Iterator[str]:
    """The differences between actual and expected files."""
    for name in sorted(actual.keys() - expected.keys()):
        yield f"{name} is left"
    for name in sorted(expected.keys() - actual.keys()):
        yield f"{name} is missing"
    for name in sorted(expected.keys() & actual.keys()):
        if expected[name] != actual[name]:
            yield f"{name} differs"
