"""Results in order, and what becomes of iterators that are left alone."""

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
    """How long items take."""
    found = ThreadClock()
    monkeypatch.setattr(threads, "time", found)
    return found


LONG, SHORT = 1e-2, 1e-5
"""Seconds that are worth a thread, and that are not."""


def test_results_come_in_the_order_of_the_items(clock: ThreadClock) -> None:
    done = [threading.Event() for _ in range(51)]

    def backwards(item: int) -> int:
        """Of two items that are under way the later one ends first."""
        if item % 2 == 0:
            assert done[item + 1].wait(LIMIT)
        clock.sleep(LONG)
        done[item].set()
        return item * item

    assert list(in_order([backwards] * 3, range(50))) == [i * i for i in range(50)]
    assert list(in_order([lambda item: item * item], range(5))) == [0, 1, 4, 9, 16]
    assert list(in_order([backwards] * 3, [])) == []


def test_an_error_comes_out_in_its_place_and_the_rest_is_dropped() -> None:
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


def test_closing_waits_for_what_is_at_work() -> None:
    begun, closing, done = threading.Event(), threading.Event(), list[int]()

    def work(item: int) -> int:
        if item:
            begun.set()
            assert closing.wait(LIMIT)
        done.append(item)
        return item

    results = in_order([work] * 2, range(100))
    assert next(results) == 0
    assert begun.wait(LIMIT)
    closer = threading.Thread(target=results.close)  # type: ignore[attr-defined]
    closer.start()
    assert closer.is_alive()
    at_work = len(done)
    closing.set()
    closer.join()
    assert at_work == 1
    assert sorted(done)[:2] == [0, 1]
    assert len(done) <= 3  # what waited was dropped


def where(items: Iterable[T], each: Callable[[T], object], pace: Pace | None = None) -> list[int]:
    """The thread that did each item."""

    def work(item: T) -> int:
        each(item)
        return threading.get_ident()

    return list(in_order([work] * 3, items, pace))


def test_items_that_are_quick_are_done_here(clock: ThreadClock) -> None:
    """Passing the interpreter's lock to and fro for them took ten times as long."""
    here = threading.get_ident()
    assert where([LONG], clock.sleep) == [here]  # one alone, however long it takes
    pace = Pace()
    done = where([SHORT] * 10_000, clock.sleep, pace)
    assert done[0] != here
    assert done.count(here) > 5_000
    assert where([SHORT] * 100, clock.sleep, pace) == [here] * 100  # it knows


def test_items_that_are_long_are_done_by_threads(clock: ThreadClock) -> None:
    """All of them, in a row; and again when some come behind quick ones."""
    both, calls = threading.Barrier(2), itertools.count()

    def together(seconds: float) -> None:
        if next(calls) < 2:  # so that each thread has one, whichever is faster
            both.wait(LIMIT)
        clock.sleep(seconds)

    done = where([LONG] * 40, together)
    assert threading.get_ident() not in done
    assert len({*done}) > 1
    done = where([SHORT] * 200 + [LONG] * 100, clock.sleep)
    assert done[-90:].count(threading.get_ident()) == 0


LEFT_ALONE = """
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
"""Iterators that only the collector can end, which runs where it can do the most harm: whenever
one of the locks of ``threading`` is held. An iterator that joins its threads takes them itself.
"""


@pytest.mark.process
def test_an_iterator_left_alone_does_not_stop_the_collector() -> None:
    """It may be collected while a thread is being started, inside the locks of ``threading``."""
    found = subprocess.run(
        [sys.executable, "-c", LEFT_ALONE], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout == "done\n"
