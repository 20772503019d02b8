"""Which servers are asked: one that fails, or stays silent twice in a row, is left alone.

    closed ──► an error, or two questions in a row that it let pass ──► open
       ▲                                                                 │
       └────────────── it says what it holds ◄── asked now and then ─────┘

Calls to a server that is being started again wait for it instead of failing, and so would
questions. So an open breaker keeps questions away from it, and whoever watches (``company.py``)
asks it what it holds: when it says so, it is asked like the others again.

Cost: none to speak of.
"""

from __future__ import annotations

__all__ = ["Breaker"]

_SILENCES = 2
"""Questions in a row that a server may let pass."""


class Breaker:
    """Of one server. Not safe to share between threads: its owner has a lock."""

    def __init__(self) -> None:
        self.open = True
        """As nothing is known of the server yet."""
        self.opened = 0
        """How many times it opened since it was first closed: restarts, and long silences."""
        self.fault = "it has not said yet what it holds"
        self._silent = 0

    def answered(self) -> None:
        """The server answered."""
        self.open, self._silent, self.fault = False, 0, ""

    def silent(self) -> None:
        """A question's time was up before the server had answered, and others had."""
        self._silent += 1
        if self._silent >= _SILENCES:
            self._opens("it lets questions pass without an answer")

    def failed(self, fault: str) -> None:
        """It is known not to answer."""
        self._opens(fault)

    def _opens(self, fault: str) -> None:
        if not self.open:
            self.opened += 1
        self.open, self._silent, self.fault = True, 0, fault
