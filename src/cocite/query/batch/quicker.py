"""Which of two ways to the same answers takes less: found by trying both.

The first runs go one way and the other by turns: runs become longer until they take their time, and
what either way takes is told by the longest of them. Then all go the way that takes less a node.
Now and then one of usual length goes the other way, as what is asked for may have become another;
a thirtieth of the time goes there. Answers are the same to the bit either way: clocks decide of
time alone.
"""

from __future__ import annotations

from threading import Lock
from time import perf_counter

__all__ = ["Quicker"]

_TURNS = 10
"""Runs by turns, at least: all that are twice as long as both ways have been gone."""
_AGAIN = 32
"""How much longer it goes on than the other way takes before that is tried again."""
_KEPT = 0.8
"""How much of what was heard before counts beside a run of usual length."""


class Quicker:
    """``way = quicker.way(nodes); begin = perf_counter(); ...; quicker.took(way, nodes, begin)``;
    ways are 0 and 1. Threads may share it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._runs, self._usual, self._spent = 0, 0.0, 0.0
        self._heard, self._longest = [0, 0], [0, 0]
        self._nodes, self._seconds = [0.0, 0.0], [0.0, 0.0]

    def way(self, nodes: int) -> int:
        """The one to go now, for so many nodes."""
        with self._lock:
            self._runs += 1
            if self._runs <= _TURNS or nodes >= 2 * min(self._longest):
                return (self._runs - 1) % 2
            each = [self._seconds[way] / self._nodes[way] for way in (0, 1)]
            best = int(each[1] < each[0])
            if nodes < self._usual / 2 or self._spent < _AGAIN * nodes * each[1 - best]:
                return best
            self._spent = 0.0
            return 1 - best

    def took(self, way: int, nodes: int, begin: float) -> None:
        """Hear that a run of so many nodes, which began at ``begin``, is done."""
        seconds = perf_counter() - begin
        with self._lock:
            self._heard[way] += 1
            if self._heard[way] == 1:  # which loads what it needs
                return
            self._longest[way] = max(self._longest[way], nodes)
            kept = _KEPT ** min(1.0, nodes / max(1.0, self._usual))  # short runs tell little
            self._nodes[way] = kept * self._nodes[way] + nodes
            self._seconds[way] = kept * self._seconds[way] + seconds
            self._usual = kept * self._usual + (1 - kept) * nodes
            self._spent += seconds
