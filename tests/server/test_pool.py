"""The queue before the threads: what its wait is said to be, and what is not taken."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Any

import pytest

pytest.importorskip("granian", reason="the extra serve is not installed")

import cocite.server.load as pool_file
from cocite.server.load import Full, Pool
from tests.clock import Clock


def test_the_wait_goes_by_what_is_done_and_not_by_what_threads_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Threads take next to nothing, but all stands still between one that is done and the next, as
    processors, the lock or the loop have other things to do: who comes then waits for that, too.
    """
    clock, apart = Clock(), 0.02
    monkeypatch.setattr(pool_file, "time", clock)

    async def ask(pool: Pool) -> None:
        done: list[int] = []
        settle = pool._settle

        def late(*job: Any) -> None:
            clock.sleep(apart)
            settle(*job)
            done.append(pool.waiting)

        monkeypatch.setattr(pool, "_settle", late)
        await asyncio.gather(*(pool.run(lambda: None) for _ in range(60)))
        assert done == list(range(59, -1, -1))
        clock.sleep(1000.0)  # nobody asks
        await pool.run(lambda: None)

    pool = Pool(1, 64, 10.0)
    asyncio.run(ask(pool))
    pool.close()
    assert pool.mean == pytest.approx(apart)


def test_who_would_wait_too_long_is_not_taken_and_what_is_not_pushing_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(pool_file, "time", clock)

    async def ask(pool: Pool) -> None:
        for _ in range(10):
            await pool.run(lambda: clock.sleep(0.01))
        gate = threading.Event()
        first = asyncio.ensure_future(pool.run(gate.wait))
        others = [asyncio.ensure_future(pool.run(lambda: None)) for _ in range(4)]
        await asyncio.sleep(0)
        assert pool.wait == pytest.approx(5 * pool.mean)
        assert pool.mean == pytest.approx(0.01)
        with pytest.raises(Full) as full:
            await pool.run(lambda: None, most=pool.wait / 2)
        assert full.value.after == pytest.approx(pool.wait)
        last = asyncio.ensure_future(pool.run(lambda: None, most=0.0, pushing=False))
        await asyncio.sleep(0)
        assert pool.waiting == 6
        with pytest.raises(Full):
            await pool.run(lambda: None)  # as many wait as may
        gate.set()
        await asyncio.gather(first, last, *others)
        assert pool.waiting == 0
        assert pool.wait == 0.0

    pool = Pool(1, 5, 10.0)
    asyncio.run(ask(pool))
    pool.close()


def test_questions_are_begun_in_the_order_that_they_came() -> None:
    """None waits for those that come after it, however long they take."""
    begun: list[int] = []

    async def ask(pool: Pool) -> None:
        gate = threading.Event()
        long = asyncio.ensure_future(pool.run(gate.wait))
        rest = [asyncio.ensure_future(pool.run(partial(begun.append, i))) for i in range(20)]
        await asyncio.sleep(0)
        assert pool.waiting == 21
        gate.set()
        await asyncio.gather(long, *rest)

    pool = Pool(1, 64, 10.0)
    asyncio.run(ask(pool))
    pool.close()
    assert begun == list(range(20))
