"""A clock, and machines whose processors are shared by their jobs.

A machine of c processors with n jobs gives each job min(1, c/n) of a processor, as an operating
system does. With V(t) the work that a single job would have received since the machine began, a job
of w seconds that arrives at V ends at V + w. A machine therefore needs one number and a heap, and
an event costs O(log jobs).

Stragglers are machines of lower ``speed``. The work of a worker that dies is lost.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

Action = Callable[[], None]


class World:
    """The clock, in seconds, and what is to happen."""

    def __init__(self) -> None:
        self.now = 0.0
        self._order = count()
        self._events: list[tuple[float, int, Action]] = []

    def after(self, seconds: float, action: Action) -> None:
        """Do it so much later."""
        heapq.heappush(self._events, (self.now + seconds, next(self._order), action))

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Go on until nothing is left to happen, or ``until`` holds."""
        while self._events and not until():
            self.now, _, action = heapq.heappop(self._events)
            action()


class Machine:
    """So many processors of a speed (1 is that of the machine that the constants are of)."""

    def __init__(self, world: World, processors: float, speed: float = 1.0) -> None:
        self.world, self.processors, self.speed = world, processors, speed
        self.busy = 0.0
        self._given, self._since = 0.0, 0.0  # V, and when it was reckoned
        self._jobs: list[tuple[float, int, Action]] = []
        self._order, self._round = count(), 0

    def do(self, work: float, done: Action) -> int:
        """A job of so many CPU seconds; calls ``done``. Returns its number."""
        self._reckon()
        job = next(self._order)
        heapq.heappush(self._jobs, (self._given + work, job, done))
        self._next()
        return job

    def drop(self, number: int) -> None:
        """The job ends without being done, as its worker has died."""
        self._reckon()
        self._jobs = [job for job in self._jobs if job[1] != number]
        heapq.heapify(self._jobs)
        self._next()

    @property
    def _rate(self) -> float:
        return self.speed * min(1.0, self.processors / max(1, len(self._jobs)))

    def _reckon(self) -> None:
        """Bring V up to now."""
        passed = self.world.now - self._since
        self._since = self.world.now
        if self._jobs:
            self._given += passed * self._rate
            self.busy += passed * min(len(self._jobs), self.processors)

    def _next(self) -> None:
        """Wake when the first job ends, unless others come or go before."""
        self._round += 1
        if self._jobs:
            left = max(0.0, self._jobs[0][0] - self._given)
            mine = self._round
            self.world.after(left / self._rate, lambda: self._wake(mine))

    def _wake(self, mine: int) -> None:
        if mine != self._round:
            return
        self._reckon()
        _, _, done = heapq.heappop(self._jobs)
        self._next()
        done()
