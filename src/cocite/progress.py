"""Progress lines on standard error, for Python functions that take more than two seconds.

    building an index: 45% (5 s)

A background thread draws the line, in terminals and notebooks only. At the end, the line is cleared
in a terminal; in a notebook, it stays and shows the total time. Nested calls share one line. The
command line and servers report progress in other forms, and turn this line off (:func:`turn`).
"""

from __future__ import annotations

import contextvars
import inspect
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Report = Callable[..., None]
"""Called with ([stage,] done, total), or with the arguments of a format string."""
_FIRST, _EVERY, _IN_NOTEBOOKS = 2.0, 0.5, 2.0
"""Seconds before the line is first drawn, and between updates in terminals and in notebooks."""


class _Line:
    """The progress line of a call and its nested calls."""

    def __init__(self, what: str) -> None:
        self.text, self._drawn = what, ""
        self._began, self._ended = time.monotonic(), threading.Event()
        context = contextvars.copy_context()  # associates output with a notebook cell
        self._drawer = threading.Thread(target=context.run, args=(self._run,), daemon=True)
        self.thread = threading.get_ident()
        self._drawer.start()

    def _run(self) -> None:
        wait = _FIRST
        while not self._ended.wait(wait):
            self.draw()
            wait = _IN_NOTEBOOKS if _in_notebook() else _EVERY

    def draw(self, end: str = "") -> None:
        """Draw the line over its previous state."""
        width = shutil.get_terminal_size().columns - 1
        text = f"{self.text} ({time.monotonic() - self._began:.0f} s)"
        shown = "".join(sign if sign.isprintable() else "?" for sign in text)[:width]
        print(f"\r{shown:<{len(self._drawn)}}", end=end, file=sys.stderr, flush=True)
        self._drawn = shown

    def close(self, what: str) -> None:
        """Clear the line; in a notebook, show the total time instead."""
        self._ended.set()
        self._drawer.join()
        if self._drawn and _in_notebook():
            self.text = what
            self.draw("\n")
        elif self._drawn:
            print(f"\r{' ' * len(self._drawn)}\r", end="", file=sys.stderr, flush=True)


class _Shown:
    """Progress state of this process; at most one line at a time."""

    lock = threading.Lock()
    on = True
    line: _Line | None = None


def turn(on: bool) -> bool:
    """Turn progress lines on or off in this process; return the previous state."""
    before, _Shown.on = _Shown.on, on
    return before


def _in_notebook() -> bool:
    return type(sys.stderr).__module__.startswith("ipykernel")


@contextmanager
def showing(what: str, form: str = "") -> Iterator[Report]:
    """Show ``what`` in the progress line; yield a callback. ``form`` formats its arguments."""
    with _Shown.lock:
        seen = sys.stderr is not None and (sys.stderr.isatty() or _in_notebook())
        mine = _Shown.line is None and _Shown.on and seen
        if mine:
            _Shown.line = _Line(what)
        line = _Shown.line
    if line is None or line.thread != threading.get_ident():
        yield lambda *report: None
        return
    before, line.text = line.text, what

    def report(*values: Any) -> None:
        line.text = f"{what}: {form.format(*values) if form else _in_words(values)}"

    try:
        yield report
    finally:
        line.text = before
        if mine:
            _Shown.line = None
            line.close(what)


def _in_words(values: tuple[Any, ...]) -> str:
    words = [each for each in values if isinstance(each, str) and each]
    numbers = [each for each in values if not isinstance(each, str)]
    if len(numbers) == 2 and numbers[1]:
        words.insert(1, f"{min(1.0, numbers[0] / numbers[1]):.0%}")
    return ", ".join(words)


def shows(what: str, form: str = "") -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function to show its progress, unless the caller passes ``progress``."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        reports = "progress" in inspect.signature(function).parameters

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            if "progress" in kwargs:
                return function(*args, **kwargs)
            with showing(what, form) as report:
                if reports:
                    kwargs["progress"] = report
                return function(*args, **kwargs)

        return call

    return decorate
