"""Thread teams, ordered parallel maps, and worker pools for a graph's blocks.

* :class:`Team` splits each of many small steps into one range per thread, aligned so that threads
  do not share cache lines.
* :func:`in_order` runs items on workers with their own scratch memory, and yields results in order.
  At most one more item than there are workers is pending at a time.
* :class:`WorkerPool` creates one object per block and calls its methods. A call returns *handles*:
  pass them to other calls, or ``take`` their values. ``Alone`` is a pool within this process.

Kernels release the interpreter lock. Short items run without threads (:class:`Pace`), because
handing over the lock would take ten times as long.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import chain, islice, pairwise
from queue import SimpleQueue
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray


class Team:
    """Runs ``work(low, high)`` on threads: ``with Team(n) as team: team.split(work, size)``."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self.threads > 1:
            self._pool = ThreadPoolExecutor(self.threads - 1, thread_name_prefix="cocite")
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)

    def split(
        self,
        work: Callable[[int, int], Any],
        size: int,
        load: NDArray[Any] | None = None,
        aligned: int = 16,
    ) -> list[Any]:
        """Return the results of ``work`` for each part of range(size), in order.

        ``load`` [size + 1] is the cumulative work before each item; by default all items are equal.
        Parts begin at multiples of ``aligned``.
        """
        cuts = self._cuts(size, load, aligned)
        ranges: Sequence[tuple[int, int]] = list(pairwise(cuts))
        if self._pool is None or len(ranges) < 2:
            return [work(low, high) for low, high in ranges]
        others = [self._pool.submit(work, low, high) for low, high in ranges[1:]]
        try:
            mine = work(*ranges[0])
        finally:
            found = [other.result() for other in others]
        return [mine, *found]

    def _cuts(self, size: int, load: NDArray[Any] | None, aligned: int) -> list[int]:
        if load is None:
            inner = [size * i // self.threads for i in range(1, self.threads)]
        else:
            whole = float(load[size] - load[0])
            shares = [load[0] + whole * i / self.threads for i in range(1, self.threads)]
            inner = np.searchsorted(load[: size + 1], shares).tolist()
        cuts = {cut // aligned * aligned for cut in inner}
        return [0, *sorted(cuts - {0, size}), size]


T = TypeVar("T")
R = TypeVar("R")

_QUICK = 150e-6
"""Seconds per item below which threads do not pay off."""


class Pace:
    """Decides whether items run on threads: two slow items in a row start threads, quick items stop
    them.
    """

    def __init__(self) -> None:
        self._mean = 2 * _QUICK

    @property
    def alone(self) -> bool:
        """Return whether to run the next item without threads."""
        return self._mean < _QUICK

    def took(self, seconds: float) -> None:
        """Record an item's time: CPU time on a thread, otherwise clock time."""
        alone = self.alone
        self._mean = 0.75 * self._mean + 0.25 * min(seconds, 2 * _QUICK)
        if alone and not self.alone:
            self._mean = 8 * _QUICK


def in_order(
    workers: Sequence[Callable[[T], R]], items: Iterable[T], pace: Pace | None = None
) -> Iterator[R]:
    """Yield ``worker(item)`` for every item, in order; an exception cancels the other items."""
    coming = iter(items)
    first = list(islice(coming, 2)) if len(workers) > 1 else []
    if len(first) < 2:
        yield from map(workers[0], chain(first, coming))
        return
    pace = pace or Pace()
    free: SimpleQueue[Callable[[T], R]] = SimpleQueue()
    for worker in workers:
        free.put(worker)

    def run(item: T) -> R:
        mine = free.get()
        begun = time.thread_time()
        try:
            return mine(item)
        finally:
            pace.took(time.thread_time() - begun)
            free.put(mine)

    pool: ThreadPoolExecutor | None = None
    waiting: deque[Future[R]] = deque()
    try:
        for item in chain(first, coming):
            if pace.alone:
                while waiting:
                    yield waiting.popleft().result()
                begun = time.perf_counter()
                found = workers[0](item)
                pace.took(time.perf_counter() - begun)
                yield found
                continue
            if pool is None:
                pool = ThreadPoolExecutor(len(workers), thread_name_prefix="cocite")
            waiting.append(pool.submit(run, item))
            if len(waiting) > len(workers):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        # Wait for running items, but do not join threads: the garbage collector may close abandoned
        # iterators while locks that joining needs are held.
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)
        wait([future for future in waiting if not future.cancelled()])


class WorkerPool(Protocol):
    """One object per block, called by method name. ``take`` and ``again`` may raise
    :class:`~cocite.errors.WorkerLost`.
    """

    @property
    def size(self) -> int:
        """Return the number of objects."""

    def call(self, block: int, method: str, *arguments: Any, answers: int = 1) -> list[Any]:
        """Call an object's method; return a handle for each of its ``answers``."""

    def take(self, handles: Sequence[Any]) -> list[Any]:
        """Wait for handles and return their values."""

    def again(self) -> None:
        """Replace lost objects."""


class Alone:
    """A pool within this process."""

    def __init__(
        self, kind: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], memory: int = 0
    ) -> None:
        """Create one object of ``kind`` for each of the ``arguments``; ``memory`` is ignored."""
        self._objects = [kind(*each) for each in arguments]

    @property
    def size(self) -> int:
        """Return the number of objects."""
        return len(self._objects)

    def call(self, block: int, method: str, *arguments: Any, answers: int = 1) -> list[Any]:
        """Call the method at once."""
        found = getattr(self._objects[block], method)(*arguments)
        return [found] if answers == 1 else list(found)

    def take(self, handles: Sequence[Any]) -> list[Any]:
        """Return the handles, which are the values."""
        return list(handles)

    def again(self) -> None:
        """Do nothing: objects in this process cannot be lost."""
