"""``in_order``: results in order, errors, and abandoned iterators."""

import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

from cocite.cluster import Pace, in_order, threads
from tests.clock import LIMIT, ThreadClock

T = TypeVar("T")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ThreadClock:
    """A clock that items advance."""
    found = ThreadClock()
    monkeypatch.setattr(threads, "time", found)
    return found


LONG, SHORT = 1e-2, 1e-5
"""Seconds that are worth a thread, or not."""


def test_in_order_keeps_item_order(clock: ThreadClock) -> None:
    done = [threading.Event() for _ in range(51)]

    def backwards(item: int) -> int:
        """Of two running items, the later one ends first."""
        if item % 2 == 0:
            assert done[item + 1].wait(LIMIT)
        clock.sleep(LONG)
        done[item].set()
        return item * item

    assert list(in_order([backwards] * 3, range(50))) == [i * i for i in range(50)]
    assert list(in_order([lambda item: item * item], range(5))) == [0, 1, 4, 9, 16]
    assert list(in_order([backwards] * 3, [])) == []


def test_in_order_raises_error_in_place() -> None:
    done: list[int] = []

    def work(item: int) -> int:
        if item == 3:
            raise ValueError("three")
        done.append(item)
        return item

    results = in_order([work] * 2, range(1000))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)
    assert len(done) < 10


def test_in_order_close_waits_for_running_items() -> None:
    started, closing, done = threading.Event(), threading.Event(), list[int]()

    def work(item: int) -> int:
        if item:
            started.set()
            assert closing.wait(LIMIT)
        done.append(item)
        return item

    results = in_order([work] * 2, range(100))
    assert next(results) == 0
    assert started.wait(LIMIT)
    closer = threading.Thread(target=results.close)  # type: ignore[attr-defined]
    closer.start()
    assert closer.is_alive()
    finished = len(done)
    closing.set()
    closer.join()
    assert finished == 1
    assert sorted(done)[:2] == [0, 1]
    assert len(done) <= 3  # waiting items were dropped


def thread_ids(
    items: Iterable[T], each: Callable[[T], object], pace: Pace | None = None
) -> list[int]:
    """The thread that ran each item."""

    def work(item: T) -> int:
        each(item)
        return threading.get_ident()

    return list(in_order([work] * 3, items, pace))


def test_in_order_runs_quick_items_in_caller(clock: ThreadClock) -> None:
    """Regression: passing the GIL back and forth took ten times as long."""
    caller = threading.get_ident()
    assert thread_ids([LONG], clock.sleep) == [caller]  # a single item, however long
    pace = Pace()
    used = thread_ids([SHORT] * 10_000, clock.sleep, pace)
    assert used[0] != caller
    assert used.count(caller) > 5_000
    assert thread_ids([SHORT] * 100, clock.sleep, pace) == [caller] * 100  # known from the pace


def test_in_order_runs_long_items_in_threads(clock: ThreadClock) -> None:
    """All of them in a row; and also those after quick ones."""
    both, calls = threading.Barrier(2), itertools.count()

    def together(seconds: float) -> None:
        if next(calls) < 2:  # each thread gets one, whichever is faster
            both.wait(LIMIT)
        clock.sleep(seconds)

    used = thread_ids([LONG] * 40, together)
    assert threading.get_ident() not in used
    assert len({*used}) > 1
    used = thread_ids([SHORT] * 200 + [LONG] * 100, clock.sleep)
    assert used[-90:].count(threading.get_ident()) == 0


ABANDONED = """
import gc, threading
from cocite.cluster import in_order

class Collecting:
    def __init__(self, lock):
        self.lock = lock

    def __enter__(self):
        self.lock.acquire()
        gc.collect()

    def __exit__(self, *error):
        self.lock.release()

    def __getattr__(self, name):
        return getattr(self.lock, name)

class Ring:
    pass

for name in ("_active_limbo_lock", "_shutdown_locks_lock"):
    if hasattr(threading, name):
        setattr(threading, name, Collecting(getattr(threading, name)))
gc.disable()
for _ in range(20):
    ring = Ring()
    ring.self, ring.results = ring, in_order([abs] * 2, range(10))
    next(ring.results)
    del ring
    list(in_order([abs] * 2, range(4)))
print("done")
"""
"""Iterators that only the garbage collector ends, which runs at the worst moment: while a lock of
``threading`` is held. An iterator that joins its threads needs these locks itself.
"""


@pytest.mark.process
def test_in_order_abandoned_iterator_never_blocks_collector() -> None:
    """It may be collected while a thread starts, inside the locks of ``threading``."""
    result = subprocess.run(
        [sys.executable, "-c", ABANDONED], capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stdout == "done\n"
