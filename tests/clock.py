"""Time in tests: a clock that only a test moves, and a loop that waits for an event elsewhere.

No outcome depends on the speed of the machine. Code that reads a clock gets a :class:`Clock` in
place of the module ``time``. :func:`wait_for` waits for other processes, with a limit far beyond
what they take. :data:`HOLD` keeps a process at a known place until a signal arrives.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

LIMIT = 120.0
"""Seconds that an event may take on any machine; only a failing test waits this long."""
_PAUSE = 0.01

HOLD = """
def hold():
    "Print a line, and stay here until a signal comes."
    import signal
    print("held", flush=True)
    while True:
        signal.pause()
"""
"""Source for a child process: its parent reads the line and sends the signal."""

Found = TypeVar("Found")


class Clock:
    """A clock in place of the module ``time``, or of one of its functions."""

    now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += seconds

    monotonic = perf_counter = process_time = thread_time = __call__

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)  # everything but clocks, such as dates


class ThreadClock(threading.local, Clock):
    """A clock for each thread: what one does takes no time of another."""


def wait_for(event: Callable[[], Found], seconds: float = LIMIT) -> Found:
    """Return the first true result of ``event``; fail if there is none within the limit."""
    end = time.monotonic() + seconds
    while not (found := event()):
        assert time.monotonic() < end, f"waited {seconds:g} s in vain"
        time.sleep(_PAUSE)
    return found
