"""Which of two ways to the same answers takes less: found by trying both.

The first run goes one way, the second one the other, then all go the way that took less a node;
now and then one goes the other way, as what is asked for may have become another: the more it took
the later, so that this costs a thirtieth. Answers are the same to the bit either way: clocks decide
of time alone.
"""

from __future__ import annotations

from time import perf_counter

__all__ = ["Quicker"]

_AGAIN = 32
"""Runs after which the slower way is tried again, times how much slower it was."""


class Quicker:
    """``way = quicker.way(); begin = perf_counter(); ...; quicker.took(way, nodes, begin)``; ways
    are 0 and 1. Threads may share it: what one of them overwrites is only a time.
    """

    def __init__(self) -> None:
        self._seconds = [0.0, 0.0]
        self._runs, self._next = 0, 0

    def way(self) -> int:
        """The one to go now."""
        self._runs += 1
        if self._runs <= 2:
            return self._runs - 1
        (less, best), (more, _) = sorted(zip(self._seconds, (0, 1), strict=True))
        if self._next == 0:
            self._next = self._runs + round(_AGAIN * more / max(less, 1e-9))
        if self._runs < self._next:
            return best
        self._next = 0
        return 1 - best

    def took(self, way: int, nodes: int, begin: float) -> None:
        """Hear that a run of so many nodes, which began at ``begin``, is done."""
        self._seconds[way] = (perf_counter() - begin) / nodes
