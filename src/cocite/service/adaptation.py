"""Adaptation: how many samples an answer gets, so that answers come in time.

Under load a question is answered from a share of the samples, and its intervals are those of so
many. The share goes down a step, to 3/4, whenever more than a tenth of the answers of a window, and
two at least, took longer than the target: one slow answer alone is no load. A window is a tenth of
a second, longer until it has five answers, a second at most. The share goes up a step when for ten
windows in a row, idle ones included, nine tenths took less than half of the target. A step up that
has to be taken back within two seconds makes the next one wait twice as long, up to ten seconds, so
that it does not swing at the edge of what can be done; once one holds, waiting is as short as
before.

The time that counts goes from the arrival of a question to its answer, its wait included. The clock
is the caller's: every method is told the time.

Cost: a comparison an answer.
Source: Fogaras, Racz, *Scaling link-based similarity search*, 4 (dynamic adaptation to load).
"""

from __future__ import annotations

import threading

__all__ = ["Adaptation"]

_STEP = 0.75
_WINDOW = 0.1
_CALM, _LONGEST = 10, 100
"""Windows that have to be calm before a step up, at first and at most."""
_ENOUGH, _LONG = 5, 1.0
"""Answers that a window needs, or else seconds."""
_LATE_SHARE, _LATE_LEAST = 0.1, 2
_HELD = 2.0
"""Seconds after which a step up has held."""


class Adaptation:
    """The share of samples that answers get, from ``lowest`` to 1. Threads may share it."""

    def __init__(self, target: float, lowest: float, now: float) -> None:
        self.target, self.lowest = target, lowest
        self.share = 1.0
        self._lock = threading.Lock()
        self._begin, self._count, self._late, self._slow = now, 0, 0, 0
        self._calm, self._wanted, self._raised = 0, _CALM, float("-inf")

    @property
    def at_floor(self) -> bool:
        """Whether no sample more can be given up."""
        return self.share <= self.lowest

    def answered(self, seconds: float, now: float) -> None:
        """An answer took so long."""
        with self._lock:
            self._close(now)
            self._count += 1
            self._late += seconds > self.target
            self._slow += seconds > self.target / 2

    def refused(self, now: float) -> None:
        """A question was not taken, as too many wait: it would have been late."""
        self.answered(float("inf"), now)

    def asked(self, now: float) -> float:
        """The share for a question that comes now."""
        if now - self._begin >= _WINDOW:
            with self._lock:
                self._close(now)
        return self.share

    def _close(self, now: float) -> None:
        """End the windows that are over: the first has what was counted, the others nothing."""
        over = int((now - self._begin) / _WINDOW)
        if over < 1 or (0 < self._count < _ENOUGH and now - self._begin < _LONG):
            return
        if self._late >= _LATE_LEAST and self._late > _LATE_SHARE * self._count:
            self._down(now)
        elif self._slow > _LATE_SHARE * self._count:
            self._calm = 0
        else:
            self._calm += 1
        self._calm += over - 1
        while self._calm >= self._wanted:
            self._calm -= self._wanted
            if not self._up(now):
                self._calm = 0
        self._begin = now if over > 1 else self._begin + _WINDOW
        self._count = self._late = self._slow = 0

    def _down(self, now: float) -> None:
        if now - self._raised < _HELD:
            self._wanted = min(_LONGEST, 2 * self._wanted)
        self._raised = float("-inf")
        self.share = max(self.lowest, self.share * _STEP)
        self._calm = 0

    def _up(self, now: float) -> bool:
        if self.share >= 1.0:
            self._wanted = _CALM
            return False
        if now - self._raised >= _HELD and self._raised > float("-inf"):
            self._wanted = _CALM
        self.share = min(1.0, self.share / _STEP)
        self._raised = now
        return True
