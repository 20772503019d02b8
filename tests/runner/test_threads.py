"""Results in order, and what becomes of iterators that are left alone."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

from cocite.runner import Pace, in_order

T = TypeVar("T")


def test_results_come_in_the_order_of_the_items() -> None:
    def slow(item: int) -> int:
        time.sleep(0.002 * (item % 3))
        return item * item

    assert list(in_order([slow] * 3, range(50))) == [i * i for i in range(50)]
    assert list(in_order([slow], range(5))) == [0, 1, 4, 9, 16]
    assert list(in_order([slow] * 3, [])) == []


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
    busy = 0
    lock = threading.Lock()

    def work(item: int) -> int:
        nonlocal busy
        with lock:
            busy += 1
        time.sleep(0.05)
        with lock:
            busy -= 1
        return item

    results = in_order([work] * 2, range(100))
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert busy == 0


def where(items: Iterable[T], each: Callable[[T], object], pace: Pace | None = None) -> list[int]:
    """The thread that did each item."""

    def work(item: T) -> int:
        each(item)
        return threading.get_ident()

    return list(in_order([work] * 3, items, pace))


def test_items_that_are_quick_are_done_here() -> None:
    """Passing the interpreter's lock to and fro for them took ten times as long."""
    here = threading.get_ident()
    assert where([0.001], time.sleep) == [here]  # one alone, however long it takes
    pace = Pace()
    done = where(range(10_000), abs, pace)
    assert done[0] != here
    assert done.count(here) > 5_000
    assert where(range(100), abs, pace).count(here) > 50  # it knows


def test_items_that_are_long_are_done_by_threads() -> None:
    """All of them, in a row; and again when some come behind quick ones."""
    block = bytes(4 << 20)
    done = where(range(40), lambda item: zlib.crc32(block))
    assert threading.get_ident() not in done
    assert len({*done}) > 1
    done = where([b""] * 200 + [block] * 100, zlib.crc32)
    assert done[-90:].count(threading.get_ident()) == 0


LEFT_ALONE = """
import gc, threading
from cocite.runner import in_order

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


def test_an_iterator_left_alone_does_not_stop_the_collector() -> None:
    """It may be collected while a thread is being started, inside the locks of ``threading``."""
    found = subprocess.run(
        [sys.executable, "-c", LEFT_ALONE], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout == "done\n"
