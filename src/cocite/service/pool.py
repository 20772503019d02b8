"""A pool of threads behind a queue that is bounded by length and by time.

Kernels release the interpreter's lock, so questions run beside each other. A question that would
wait too long is not taken: its wait is known before it begins, by how many wait before it and how
long the event loop waited of late from one that was done to the next. That is not what threads say
they took: where processors have more to do than they can, and threads wait for the lock, for
processors and for the loop, it is several times as much. Work that is taken in pieces (batches)
waits for its turn, one piece at a time, so that it does not push single questions out.

Work has a deadline of its own (``deadline.py``). Threads cannot be ended: where a single kernel
takes longer, ``look`` gives the question up, so that who asked is told, and another thread stands
in for the one that goes on; this one ends with its kernel. Where as many stand in as may, nothing
more is taken until one of them comes back.

Cost: some 20 µs a question.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from cocite.compiled.clock import clock
from cocite.deadline import limited, too_long

__all__ = ["Full", "Pool"]

_SMOOTH = 0.05
"""The weight of the last question in the mean."""
_STAND_INS = 4
"""How many threads may stand in for each, at most."""
_LATE = 1.0
"""Seconds behind its deadline after which work is given up that has not ended by itself."""
Result = TypeVar("Result")


class Full(Exception):
    """The queue is full; ``after`` is in how many seconds it will not be."""

    def __init__(self, after: float) -> None:
        self.after = after
        super().__init__(f"full for {after:.3f} s")


class _Job:
    """Work, who waits for it, and how long it may take, from when a thread begins with it."""

    __slots__ = ("came", "done", "given_up", "loop", "seconds", "until", "work")

    def __init__(
        self,
        work: Callable[[], Any],
        seconds: float,
        done: asyncio.Future[Any],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.work, self.seconds, self.done, self.loop = work, seconds, done, loop
        self.came, self.until = time.perf_counter(), 0.0
        self.given_up = False


class Pool:
    """``threads`` that answer, and room for ``queue`` questions that wait; ``seconds`` is how long
    work may take.
    """

    def __init__(self, threads: int, queue: int, seconds: float) -> None:
        self.threads, self.queue, self.seconds = threads, queue, seconds
        self.waiting = 0
        """Questions that wait, or are being answered; of the event loop alone."""
        self.mean = 0.0
        """Seconds from one that is done to the next, while some wait."""
        self._last = 0.0
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._running: set[_Job] = set()
        self._lost = 0
        self._team = [self._begun(number) for number in range(threads)]

    def _begun(self, number: int) -> threading.Thread:
        thread = threading.Thread(target=self._work, name=f"answers-{number}", daemon=True)
        thread.start()
        return thread

    @property
    def wait(self) -> float:
        """How many seconds a question that comes now would wait for its turn."""
        return max(0, self.waiting - self.threads + 1) * self.mean

    @property
    def full(self) -> bool:
        """Whether nobody more may wait."""
        stuck = self._lost >= (1 + _STAND_INS) * self.threads
        return self.waiting >= self.queue + self.threads or stuck

    async def run(
        self,
        work: Callable[[], Result],
        *,
        most: float | None = None,
        pushing: bool = True,
        seconds: float | None = None,
    ) -> Result:
        """Have ``work`` done; raises :class:`Full` if it would wait longer than ``most`` seconds,
        or nobody more may wait, and :class:`TookTooLong`. What is not ``pushing`` is always taken.
        """
        if pushing:
            wait = self.wait
            if self.full or (most is not None and wait > most):
                raise Full(wait)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Result] = loop.create_future()
        self.waiting += 1
        self._jobs.put(_Job(work, seconds or self.seconds, done, loop))
        return await done

    def look(self) -> None:
        """Give up what has passed its deadline and goes on; to be called now and then, by any
        thread.
        """
        now = clock()
        with self._lock:
            late = [job for job in list(self._running) if now > job.until + _LATE]
            for job in late:
                job.given_up = True
                self._running.discard(job)
                self._lost += 1
                if self._lost <= _STAND_INS * self.threads:
                    self._begun(self.threads + self._lost)
        for job in late:
            error = too_long(job.seconds)
            job.loop.call_soon_threadsafe(self._settle, job, None, error)

    def close(self) -> None:
        """Let the threads end when they have done what waits."""
        for _ in range((1 + _STAND_INS) * self.threads):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if not self._do(job):
                return
            del job  # which has the index in hand that it asks, while this thread waits

    def _do(self, job: _Job) -> bool:
        """One job; returns whether this thread is to go on, as no other stands in for it."""
        found, error = None, None
        if not job.done.cancelled():
            job.until = clock() + job.seconds
            self._running.add(job)
            try:
                with limited(job.seconds):
                    found = job.work()
            except BaseException as failed:
                error = failed
            with self._lock:
                self._running.discard(job)
                if job.given_up:
                    self._lost -= 1
                    return self._lost >= _STAND_INS * self.threads
        job.loop.call_soon_threadsafe(self._settle, job, found, error)
        return True

    def _settle(self, job: _Job, found: Any, error: BaseException | None) -> None:
        done = job.done
        self.waiting -= 1
        if not job.given_up:
            now = time.perf_counter()
            apart, self._last = now - max(job.came, self._last), now
            self.mean += (_SMOOTH if self.mean else 1.0) * (apart - self.mean)
        if done.cancelled():
            return
        if error is None:
            done.set_result(found)
        else:
            done.set_exception(error)
