"""Processes that are killed: at every call that changes a disk, and at any time.

A process that does an operation (``operations.py``) is ended at each point of ``shim.py``; or when
it has taken a time of the processor that is drawn: no test waits by the clock. Then the output is
what it was, or the new one whole; and the same command, given once more, ends with the very bytes,
and leaves nothing else.
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
    return given.in_turns(OPERATIONS, partial(_killed_at_points, given))


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


def kill_commands(given: Given) -> dict[str, Row]:
    """End processes, each after a time of the processor that is drawn, the operations in turns, on
    graphs that take them a while. Most are forks of this process, which has loaded all; one in some
    is a command as it is typed.
    """
    each = given.count(_KILLS) // max(sum(given.only in name for name in OPERATIONS), 1) + 1

    def kills(name: str, row: Row) -> Iterator[bool]:
        told = prepared(OPERATIONS[name], given.folder / "killed" / name, _PAGES)
        return kill_at_times(told, row, each, random.Random(f"{given.seed} {name}"))

    return given.in_turns(OPERATIONS, kills)


def kill_at_times(told: Prepared, row: Row, wanted: int, chance: random.Random) -> Iterator[bool]:
    """End it so often, each time when it has taken a time of the processor that is drawn, some of
    them again and again; yields whether one was ended.
    """
    usual = dict[bool, float]()
    for typed in (False, True):
        folder = told.copy(told.before.parent / f"timed {typed}")
        code, usual[typed] = _ended(told, folder, typed)
        assert code == 0, f"it ends with {code}"
    for number in count():  # until one is killed, as each that is not makes the time shorter
        if row.injected >= wanted or (row.injected and number >= _TRIES * wanted):
            return
        typed = number % _TYPED == _TYPED - 1
        folder = told.copy(told.before.parent / "ended")
        ended = False
        for _ in range(chance.choice((1, 1, 3))):
            # Of a command that is typed half of the time is that of the interpreter.
            seconds = chance.uniform(usual[typed] / 2 if typed else 0, usual[typed])
            code, took = _ended(told, folder, typed, seconds)
            ended = ended or code == -signal.SIGPROF
            usual[typed] = min(usual[typed], took) if code == 0 else usual[typed]
        if ended:
            row.add(f"killed after {seconds:.3f} s", wrong_after(told, folder, row))
        shutil.rmtree(folder)
        if row.injected or number >= _TRIES:
            yield ended


def _ended(told: Prepared, folder: Path, typed: bool, seconds: float = 0) -> tuple[int, float]:
    """The exit code of a process that does it, and the time of the processor that it took. A signal
    ends it, without a word, after so many ``seconds`` of that, if any are said.
    """

    def run() -> int:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        if typed:
            silent = os.open(os.devnull, os.O_RDWR)
            for stream in (1, 2):
                os.dup2(silent, stream)
            words = [sys.executable, "-m", "cocite", *told.operation.arguments(folder)]
            os.execv(sys.executable, words)
        return told.operation.run(folder)

    _, status, used = os.wait4(forked(run), 0)
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime


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
