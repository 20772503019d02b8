"""Time in tests: a clock that only a test moves, and one loop that waits for an event elsewhere.

No outcome depends on how fast the machine is. Code that reads a clock gets a :class:`Clock` in the
place of its module ``time``; what another process does is waited for by :func:`wait_for`, whose
limit is far beyond what it takes; a process that a signal is to meet at a known place holds still
there by :data:`HOLD`.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

LIMIT = 120.0
"""Seconds that an event may take on any machine; only a test that fails waits so long."""
_PAUSE = 0.01

HOLD = """
def hold():
    "Say so on standard output, and stay here until a signal comes."
    import signal
    print("held", flush=True)
    while True:
        signal.pause()
"""
"""Source for a child process: the parent reads the line and sends the signal."""

Found = TypeVar("Found")


class Clock:
    """A clock in the place of the module ``time``, or of one of its functions."""

    now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let so many seconds go by."""
        self.now += seconds

    monotonic = perf_counter = process_time = thread_time = __call__

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)  # what is no clock, such as dates


class ThreadClock(threading.local, Clock):
    """A clock of each thread: what one does takes no time of another."""


def wait_for(event: Callable[[], Found], seconds: float = LIMIT) -> Found:
    """Return what ``event`` returns once that is true; fail if it is not within the limit."""
    end = time.monotonic() + seconds
    while not (found := event()):
        assert time.monotonic() < end, f"waited {seconds:g} s in vain"
        time.sleep(_PAUSE)
    return found
