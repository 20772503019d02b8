"""Run many items on a few workers, and hand the results over in the order of the items.

Each worker owns scratch memory, so there are as many workers as threads, and an item takes
whichever is free. One more item is begun than there are workers, so at most that many results
wait for their turn, which bounds memory.
Kernels release the interpreter lock; one worker runs without any thread. So does a single item, and
so do items that take less than to hand them over does (:class:`Pace`): threads that pass the lock
to and fro for them take ten times as long.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import chain, islice
from queue import SimpleQueue
from typing import TypeVar

__all__ = ["Pace", "in_order"]

T = TypeVar("T")
R = TypeVar("R")

_QUICK = 150e-6
"""Seconds that an item takes which is better not handed over."""


class Pace:
    """How quick items are, by those that are done; who runs items of one kind again and again has
    one for all of them. Two in a row that are not quick bring the threads back, and some that are
    send them away.
    """

    def __init__(self) -> None:
        self._mean = 2 * _QUICK

    @property
    def alone(self) -> bool:
        """Whether the next item is better done without threads."""
        return self._mean < _QUICK

    def took(self, seconds: float) -> None:
        """What an item took: of the processor in a thread, of the clock without threads, as there
        nothing is done while it waits.
        """
        alone = self.alone
        self._mean = 0.75 * self._mean + 0.25 * min(seconds, 2 * _QUICK)
        if alone and not self.alone:
            self._mean = 8 * _QUICK


def in_order(
    workers: Sequence[Callable[[T], R]], items: Iterable[T], pace: Pace | None = None
) -> Iterator[R]:
    """Yield ``worker(item)`` for every item, in the items' order.

    An exception of a worker comes out here; items not begun by then are dropped.
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
        # What is at work ends before this does. Threads are not joined: an iterator that was left
        # alone is ended by the collector, which may run inside the very locks that joining takes.
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)
        wait([future for future in waiting if not future.cancelled()])
