"""A pool of threads behind a queue that is bounded by length and by time.

Kernels release the interpreter's lock, so questions run beside each other. A question that would
wait too long is not taken: with what waits before it and the mean of what questions took of late,
its wait is known before it begins. Work that is taken in pieces (batches) waits for its turn, one
piece at a time, so that it does not push single questions out.

Cost: some 20 µs a question.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

__all__ = ["Full", "Pool"]

_SMOOTH = 0.05
"""The weight of the last question in the mean of what they take."""
Result = TypeVar("Result")
_Job = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


class Full(Exception):
    """The queue is full; ``after`` is in how many seconds it will not be."""

    def __init__(self, after: float) -> None:
        self.after = after
        super().__init__(f"full for {after:.3f} s")


class Pool:
    """``threads`` that answer, and room for ``queue`` questions that wait."""

    def __init__(self, threads: int, queue: int) -> None:
        self.threads, self.queue = threads, queue
        self.waiting = 0
        """Questions that wait, or are being answered; of the event loop alone."""
        self.mean = 0.0
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._team = [
            threading.Thread(target=self._work, name=f"answers-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._team:
            thread.start()

    @property
    def wait(self) -> float:
        """How many seconds a question that comes now would wait for its turn."""
        return max(0, self.waiting - self.threads + 1) * self.mean / self.threads

    @property
    def full(self) -> bool:
        """Whether nobody more may wait."""
        return self.waiting >= self.queue + self.threads

    async def run(
        self, work: Callable[[], Result], *, most: float | None = None, pushing: bool = True
    ) -> Result:
        """Have ``work`` done; raises :class:`Full` if it would wait longer than ``most`` seconds,
        or nobody more may wait. What is not ``pushing`` is always taken.
        """
        if pushing:
            wait = self.wait
            if self.full or (most is not None and wait > most):
                raise Full(wait)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Result] = loop.create_future()
        self.waiting += 1
        self._jobs.put((work, done, loop))
        return await done

    def close(self) -> None:
        """Let the threads end when they have done what waits."""
        for _ in self._team:
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, done, loop = job
            found, error = None, None
            if not done.cancelled():
                began = time.perf_counter()
                try:
                    found = work()
                except BaseException as failed:
                    error = failed
                took = time.perf_counter() - began
                self.mean += (_SMOOTH if self.mean else 1.0) * (took - self.mean)
            loop.call_soon_threadsafe(self._settle, done, found, error)

    def _settle(self, done: asyncio.Future[Any], found: Any, error: BaseException | None) -> None:
        self.waiting -= 1
        if done.cancelled():
            return
        if error is None:
            done.set_result(found)
        else:
            done.set_exception(error)
