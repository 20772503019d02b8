"""Run many items on a few workers, and hand the results over in the order of the items.

Each worker owns scratch memory, so there are as many workers as threads, and an item takes
whichever is free. One more item is begun than there are workers, so at most that many results
wait for their turn, which bounds memory.
Kernels release the interpreter lock; one worker runs without any thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import TypeVar

__all__ = ["in_order"]

T = TypeVar("T")
R = TypeVar("R")


def in_order(workers: Sequence[Callable[[T], R]], items: Iterable[T]) -> Iterator[R]:
    """Yield ``worker(item)`` for every item, in the items' order.

    An exception of a worker comes out here; items not begun by then are dropped.
    """
    if len(workers) == 1:
        yield from map(workers[0], items)
        return
    free: SimpleQueue[Callable[[T], R]] = SimpleQueue()
    for worker in workers:
        free.put(worker)

    def run(item: T) -> R:
        mine = free.get()
        try:
            return mine(item)
        finally:
            free.put(mine)

    pool = ThreadPoolExecutor(len(workers), thread_name_prefix="cocite")
    waiting: deque[Future[R]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(run, item))
            if len(waiting) > len(workers):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        # What is at work ends before this does. Threads are not joined: an iterator that was left
        # alone is ended by the collector, which may run inside the very locks that joining takes.
        pool.shutdown(wait=False, cancel_futures=True)
        wait([future for future in waiting if not future.cancelled()])
