"""How long compiling took in this process, a clock that leaves it out, and who is told of it.

``kernels`` calls ``begin``, ``tick`` (now and then) and ``end``, one kernel after another: Numba
compiles one at a time, whatever the threads. Once it has taken ``SAY_AFTER`` seconds in all, so
that there is something to wait for, the logger ``cocite`` says so (INFO), once a process, and
watchers are called. Nothing here runs while all kernels are there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ALL_SECONDS = 12
"""About what the kernels of ``ingest``, ``index`` and ``related`` take by the default measure, on a
quiet machine (``python -m benchmarks.first``)."""

SAY_AFTER = 0.5
"""Seconds of compiling that go by without a word."""

MESSAGE = f"compiling kernels (once, about {ALL_SECONDS} s in all)"

Watcher = Callable[[int, float, bool], None]
"""Called with the kernels compiled, the seconds taken, and whether one is being compiled now."""

_log = logging.getLogger("cocite")


class Compiling:
    """What was compiled so far: so many ``kernels``, in so many ``seconds``."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._state: tuple[float, float | None] = (0.0, None)  # taken; since when, if now
        self.kernels = 0
        self.watchers: list[Watcher] = []
        self._said = False

    @property
    def seconds(self) -> float:
        """Seconds until now, the kernel that is being compiled included."""
        taken, since = self._state
        return taken + (self._now() - since if since is not None else 0.0)

    def clock(self) -> float:
        """Seconds that go by while nothing is compiled, from some point in time on."""
        taken, since = self._state  # read at once: other threads begin and end
        return (self._now() if since is None else since) - taken

    def begin(self) -> None:
        """A kernel is going to be compiled."""
        self._state = self._state[0], self._now()
        self.tick()

    def tick(self) -> None:
        """It goes on: say so, if it takes long enough."""
        if not self._said:
            if self.seconds < SAY_AFTER:
                return
            self._said = True
            _log.info(MESSAGE)
        self._tell(True)

    def end(self) -> None:
        """It is compiled, or it failed."""
        taken = self.seconds
        self._state = taken, None
        self.kernels += 1
        if self._said:
            self._tell(False)

    def _tell(self, busy: bool) -> None:
        for watcher in self.watchers:
            watcher(self.kernels, self.seconds, busy)


compiling = Compiling()
"""That of this process."""


def clock() -> float:
    """``time.perf_counter`` that stands still while kernels are compiled: for telling times."""
    return compiling.clock()


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Have ``watcher`` called within, now and then, while kernels are compiled."""
    compiling.watchers.append(watcher)
    try:
        yield
    finally:
        compiling.watchers.remove(watcher)
