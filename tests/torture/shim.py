"""Intercept every call of ``storage/disk.py``, before and after it.

    with between(before, after): ...      ``before(name, arguments)``, ``after(name, arguments)``
    run_killed(work, 17)                  a process that ends, as by kill -9, at the 17th point
    count_points(work)                    the number of points

A point is the start or the end of a call, or the middle of a write. A process that ends there runs
no more code: no ``finally``, no destructor; its locks are released.
"""

import os
import pickle
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, TypeVar

from cocite.storage import disk

KILLED, _BROKEN = 9, 70
_Callback = Callable[[str, tuple[Any, ...]], None]
_Reached = Callable[[int], None]
_Value = TypeVar("_Value")


@contextmanager
def between(before: _Callback, after: _Callback) -> Iterator[None]:
    """Run the callbacks around all disk calls."""
    real = {
        name: call
        for name, call in vars(disk).items()
        if isinstance(call, FunctionType) and call.__module__ == disk.__name__ and name[0] != "_"
    }

    def wrapped(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            before(name, arguments)
            result = real[name](*arguments, **options)
            after(name, arguments)
            return result

        return call

    try:
        for name in real:
            setattr(disk, name, wrapped(name))
        yield
    finally:
        for name, call in real.items():
            setattr(disk, name, call)


def forked(work: Callable[[], int]) -> int:
    """Run work in a fork, which exits with its code; return the fork's process ID."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = _BROKEN
        try:
            code = work()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return child


def run_apart(work: Callable[[], int]) -> int:
    """Run work in a fork of this process; return its exit code."""
    _, status = os.waitpid(forked(work), 0)
    code = os.waitstatus_to_exitcode(status)
    if code == _BROKEN:
        raise AssertionError("the process ended by an error that is not cocite's")
    return code


def value_apart(work: Callable[[], tuple[int, _Value]]) -> tuple[int, _Value | None]:
    """The same, with a value besides the exit code: None if the process was killed."""
    reader, writer = os.pipe()

    def send() -> int:
        code, value = work()
        with os.fdopen(writer, "wb") as file:
            pickle.dump(value, file)
        return code

    try:
        code = run_apart(send)
    finally:
        os.close(writer)
        with os.fdopen(reader, "rb") as file:
            content = file.read()
    return code, pickle.loads(content) if content else None


def count_points(work: Callable[[], int]) -> int:
    """The number of points that successful work passes."""
    code, passed = value_apart(lambda: _watched(work, lambda passed: None))
    assert code == 0, f"exit code {code}"
    assert passed is not None
    return passed


def run_killed(work: Callable[[], int], point: int) -> int:
    """As :func:`run_apart`, but the process exits with :data:`KILLED` at its ``point``-th point, if
    it has as many.
    """

    def reached(passed: int) -> None:
        if passed == point:
            os._exit(KILLED)

    def killed() -> int:
        return _watched(work, reached, half=point)[0]

    return run_apart(killed)


def _watched(work: Callable[[], int], reached: _Reached, half: int = 0) -> tuple[int, int]:
    """The result of work and the number of points passed; ``reached`` gets the number of each. A
    write whose middle is the point ``half`` first writes its first half.
    """
    passed = 0

    def step() -> None:
        nonlocal passed
        passed += 1
        reached(passed)

    def before(name: str, arguments: tuple[Any, ...]) -> None:
        step()
        if name == "write" and len(arguments[1]) > 1:
            if passed + 1 == half:
                file, data = arguments
                os.write(file.fileno(), bytes(data[: len(data) // 2]))
            step()

    with between(before, lambda name, arguments: step()):
        code = work()
    return code, passed
