"""Threads that share work, and the workers that hold the blocks of a graph.

* :class:`Team` splits each of many small steps into one range per thread. Ranges are aligned, so
  that threads do not share cache lines.
* :func:`in_order` runs items on workers with their own scratch memory, and yields results in order;
  at most one item more than workers is begun.
* :class:`WorkerPool` creates one object per block and calls its methods, one call at a time for
  each object. A call returns *handles*: pass them to further calls, or ``take`` their values.
  ``Alone`` is the pool of this process; ``cluster/workers.py`` has the pool of a cluster.

Kernels release the interpreter lock. Items that take less time than handing them to a thread run
without threads (:class:`Pace`): passing the lock back and forth takes ten times as long.
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
    """``with Team(threads) as team: team.split(work, n)`` runs ``work(low, high)`` side by side."""

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
        """Return what ``work`` returns for each part of range(size), in order.

        ``load``, ascending and one longer than the range, is the work before each item; by default
        all items are equal. Parts begin at multiples of ``aligned``.
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
"""Seconds below which an item runs faster without a thread."""


class Pace:
    """Measures how quick items are, for all runs of items of one kind. Two consecutive slow items
    bring the threads back, and some quick ones stop them.
    """

    def __init__(self) -> None:
        self._mean = 2 * _QUICK

    @property
    def alone(self) -> bool:
        """Return whether the next item should run without threads."""
        return self._mean < _QUICK

    def took(self, seconds: float) -> None:
        """Record the time of an item: processor time in a thread, else clock time."""
        alone = self.alone
        self._mean = 0.75 * self._mean + 0.25 * min(seconds, 2 * _QUICK)
        if alone and not self.alone:
            self._mean = 8 * _QUICK


def in_order(
    workers: Sequence[Callable[[T], R]], items: Iterable[T], pace: Pace | None = None
) -> Iterator[R]:
    """Yield ``worker(item)`` for every item, in the items' order.

    Exceptions of workers are raised here, and drop all items that have not begun.
    """
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
        # Wait for running items, but do not join threads: the garbage collector closes abandoned
        # iterators, perhaps inside the very locks that joining takes.
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)
        wait([future for future in waiting if not future.cancelled()])


class WorkerPool(Protocol):
    """Objects, one per block, and calls of their methods. ``take`` and ``again`` may raise
    :class:`~cocite.errors.WorkerLost`.
    """

    @property
    def size(self) -> int:
        """Return the number of objects."""

    def call(self, block: int, method: str, *arguments: Any, answers: int = 1) -> list[Any]:
        """Call a method of one of them; return handles of its ``answers``, which it returns as a
        tuple if there are several.
        """

    def take(self, handles: Sequence[Any]) -> list[Any]:
        """Return the values of handles, when they are available."""

    def again(self) -> None:
        """Replace lost objects."""


Hiring = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]], int], WorkerPool]
"""Makes a pool from a kind of object, and arguments and bytes of memory for each object."""


class Alone:
    """The pool of one process."""

    def __init__(
        self, kind: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], memory: int = 0
    ) -> None:
        """Make one of ``kind`` for each of the ``arguments``; ignores ``memory``."""
        self._objects = [kind(*each) for each in arguments]

    @property
    def size(self) -> int:
        """Return the number of objects."""
        return len(self._objects)

    def call(self, block: int, method: str, *arguments: Any, answers: int = 1) -> list[Any]:
        """Call at once."""
        found = getattr(self._objects[block], method)(*arguments)
        return [found] if answers == 1 else list(found)

    def take(self, handles: Sequence[Any]) -> list[Any]:
        """Return the handles, which are the values."""
        return list(handles)

    def again(self) -> None:
        """Do nothing: no object can be lost."""
