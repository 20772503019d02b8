"""Time limits for queries.

    with limited(10.0):
        index.related("Zebra")         raises QueryTimeout after 10 s

Kernels cannot be interrupted, so queries call ``check`` between kernels; a check costs 0.1 µs.
Computations that later queries reuse, such as PageRanks, ignore the deadline.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from cocite.errors import QueryTimeout

_now = time.perf_counter


def clock() -> float:
    """Return the seconds since an arbitrary point in time."""
    return _now()


class _Deadline(threading.local):
    """The deadline of the current thread, and its time limit in seconds."""

    until: float | None = None
    given = 0.0


_here = _Deadline()


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Limit this thread to ``seconds``. If limits are nested, the earliest deadline applies."""
    before = _here.until, _here.given
    until = clock() + seconds
    if before[0] is None or until < before[0]:
        _here.until, _here.given = until, seconds
    try:
        yield
    finally:
        _here.until, _here.given = before


def check() -> None:
    """Raise :class:`QueryTimeout` if this thread's deadline has passed."""
    if _here.until is not None and clock() > _here.until:
        raise too_long(_here.given)


def too_long(seconds: float) -> QueryTimeout:
    """Return the error for a query with this time limit."""
    return QueryTimeout(
        f"the query exceeded its time limit of {seconds:g} s: request less, such as fewer nodes at "
        "once, fewer hits, or unrefined scores"
    )
