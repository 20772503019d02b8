"""Load: the queue before the threads, samples that adapt, indexes that are replaced, and a server
with more to do than it can: fewer samples, then refusals, then all samples again.
"""

import asyncio
import heapq
import random
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("granian", reason="the extra serve is not installed")

import cocite
from cocite.server import load, service
from cocite.server.load import Adaptation, Full, Holder, Pool
from cocite.server.service import Service
from tests.clock import Clock
from tests.server.conftest import Serving, ask_app

CLIENTS, FLOOR = 24, 7
PATH = "/v1/related?node=red&k=50"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the service and its queue: an answer takes a hundredth of a second."""
    found, answer = Clock(), Service._answer
    for module in (load, service):
        monkeypatch.setattr(module, "time", found)

    def slow(self: Service, *asked: Any) -> Any:
        found.sleep(0.01)
        return answer(self, *asked)

    monkeypatch.setattr(Service, "_answer", slow)
    return found


def test_load_lowers_samples_then_refuses_then_recovers(
    folder: Path, clock: Clock, serving: Serving
) -> None:
    """One millisecond is asked for, which is not enough, and many ask at once, again and again."""
    few: dict[str, Any] = {"target_latency": 1.0, "min_samples": FLOOR, "queue": 8, "threads": 1}
    server = serving(folder / "web.index", **few)
    server.service.cache.most = 0  # every answer is computed
    found: list[SimpleNamespace] = []

    async def ask() -> None:
        for _ in range(50):
            asked = (ask_app(server.app, PATH) for _ in range(CLIENTS))
            found.extend(await asyncio.gather(*asked))

    asyncio.run(ask())
    answers = [each for each in found if each.status == 200]
    used = [int(each.headers["cocite-samples"]) for each in answers]
    assert {each.status for each in found} == {200, 429}
    assert used[0] == 60
    assert used == sorted(used, reverse=True)
    assert used[-1] == FLOOR
    assert [each.json["settings"]["samples"] for each in answers] == used
    assert all(int(e.headers["retry-after"]) >= 1 for e in found if e.status == 429)
    assert answers[-1].headers["cache-control"] == "public, no-cache"  # there will be a better
    assert server("/healthz").status == 200
    clock.sleep(60.0)
    server.service.gauge()
    assert "cocite_samples_share 1.0" in server("/metrics").body.decode()
    assert server(PATH).headers["cocite-samples"] == "60"


@pytest.mark.process
def test_the_unit_is_one(tmp_path: Path) -> None:
    """What ``docs/serving.md`` has for systemd, by systemd."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd is not here")
    text = (Path(__file__).parents[2] / "docs" / "serving.md").read_text("utf-8")
    unit = re.findall(r"^```ini\n(.*?)^```", text, re.M | re.S)[0]
    unit = unit.replace("/opt/cocite/bin/cocite", sys.executable)  # has to be there
    (tmp_path / "cocite.service").write_text(unit)
    done = subprocess.run(
        [program, "verify", "--man=no", str(tmp_path / "cocite.service")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


# -- the queue -------------------------------------------------------------------------


def test_hopeless_waits_are_refused_but_not_idle_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(load, "time", clock)

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


# -- what takes the place of an index --------------------------------------------------


def test_copied_index_is_served_when_it_is_whole(folder: Path, tmp_path: Path) -> None:
    """Not by a rename, as cocite does, but file by file: at first the last one is not whole."""
    served, new = tmp_path / "served", tmp_path / "new"
    shutil.copytree(folder / "web.index", served)
    graph = cocite.Graph.open(folder / "web.graph")
    cocite.build(graph, new, measure="psimrank", samples=40, seed=1)
    holder = Holder("web", str(served), (), {})
    assert holder.look() is None
    before = holder.now
    shutil.rmtree(served)
    assert holder.look() is None  # it is gone: the old one stays
    shutil.copytree(new, served)
    (last,) = served.glob("in.samples-000000")
    whole = last.read_bytes()
    last.chmod(0o644)
    with last.open("r+b") as file:  # the directory itself stays as it is
        file.truncate(len(whole) // 2)
    refused = holder.look()
    assert refused not in (None, "taken")
    assert holder.look() is None  # nothing has changed
    with last.open("r+b") as file:
        file.write(whole)
    assert holder.look() == "taken"
    assert holder.now is not before
    assert holder.look() is None


# -- adaptation, by a simulated clock --------------------------------------------------


TARGET, LOWEST, THREADS, QUEUE = 0.05, 0.1, 2, 256
BASE, EACH = 0.0005, 0.0015
"""Seconds that an answer takes without samples, and with all of them: 1,000 a second at most."""


class Simulated:
    """Questions come at random, ``rate(now)`` a second, and are refused as the pool does."""

    def __init__(self, rate: Callable[[float], float], seconds: float) -> None:
        self.adaptation = Adaptation(TARGET, LOWEST, 0.0)
        self.answers: list[tuple[float, float, float]] = []  # when, how long, of which share
        self.refused: list[float] = []
        rng, now = random.Random(7), 0.0
        free = [0.0] * THREADS
        told: list[tuple[float, float]] = []
        while now < seconds:
            now += rng.expovariate(rate(now))
            while told and told[0][0] <= now:
                done, took = heapq.heappop(told)
                self.adaptation.answered(took, done)
            share = self.adaptation.share_now(now)
            begin = max(now, heapq.heappop(free))
            full = len(told) >= QUEUE + THREADS
            if full or (self.adaptation.at_floor and begin - now > TARGET):
                heapq.heappush(free, begin)
                self.refused.append(now)
                self.adaptation.refused(now)
                continue
            done = begin + BASE + EACH * share
            heapq.heappush(free, done)
            heapq.heappush(told, (done, done - now))
            self.answers.append((now, done - now, share))

    def late(self, begin: float, end: float) -> float:
        """The share of answers that took longer than the target."""
        there = [took > TARGET for now, took, _ in self.answers if begin <= now < end]
        return sum(there) / len(there)

    def shares(self, begin: float, end: float) -> list[float]:
        return [share for now, _, share in self.answers if begin <= now < end]


def test_all_samples_answer_while_there_is_time() -> None:
    found = Simulated(lambda now: 500, 20)
    assert set(found.shares(0, 20)) == {1.0}
    assert not found.refused


def test_samples_fall_so_that_answers_are_in_time_and_come_back() -> None:
    found = Simulated(lambda now: 1400 if 5 <= now < 35 else 100, 60)
    assert found.late(8, 35) < 0.15
    assert len(found.refused) < 0.001 * len(found.answers)
    busy = found.shares(8, 35)
    assert max(busy) < 1
    assert min(busy) >= LOWEST
    # 1,400 a second take 1.43 ms each on two threads: 0.62 of the samples.
    assert 0.3 < sum(busy) / len(busy) < 0.65
    assert set(found.shares(50, 60)) == {1.0}


def test_past_the_floor_what_is_answered_is_in_time_and_the_rest_is_refused() -> None:
    found = Simulated(lambda now: 12_000 if now >= 5 else 100, 15)
    assert set(found.shares(8, 15)) == {LOWEST}
    assert found.refused
    assert max(took for now, took, _ in found.answers if now >= 8) <= TARGET + BASE + EACH
    answered = len(found.shares(8, 15)) / 7
    assert answered == pytest.approx(THREADS / (BASE + EACH * LOWEST), rel=0.05)
