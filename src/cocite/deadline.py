"""Time limits for queries: the deadline of a thread, which work checks between its steps.

    with limited(10.0):
        index.related("Zebra")         raises QueryTimeout when it has taken 10 s

Kernels cannot be interrupted, so work checks the clock between them (``check``): between two files
of samples, two runs of links, two rounds, two nodes. A query ends at most one such step late. Work
done once for all queries (PageRanks, the diagonal of refined answers) does not check, or it would
never be completed: the query that waits for it is late, the next one benefits.

Nothing is limited unless a caller asks for it: without a deadline ``check`` does nothing.

Cost: 0.1 µs a check.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from cocite.errors import QueryTimeout

_now = time.perf_counter


def clock() -> float:
    """Return the seconds since some point in time, for deadlines and reports."""
    return _now()


class _Deadline(threading.local):
    """The deadline of a thread's work, and its time limit in seconds."""

    until: float | None = None
    given = 0.0


_here = _Deadline()


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Limit this thread's work to ``seconds``, after which it raises :class:`QueryTimeout`; of
    nested limits the earlier one applies.
    """
    before = _here.until, _here.given
    until = clock() + seconds
    if before[0] is None or until < before[0]:
        _here.until, _here.given = until, seconds
    try:
        yield
    finally:
        _here.until, _here.given = before


def check() -> None:
    """Raise :class:`QueryTimeout` if this thread has a deadline that has passed."""
    if _here.until is not None and clock() > _here.until:
        raise too_long(_here.given)


def too_long(seconds: float) -> QueryTimeout:
    """Return the error for a query with this time limit."""
    return QueryTimeout(
        f"the question took longer than the {seconds:g} s that it is given: ask for less, such as "
        "fewer nodes at once, fewer hits, or scores that are not refined"
    )
