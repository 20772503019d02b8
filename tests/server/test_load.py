"""Load: the queue, adaptive samples, replaced indexes, and an overloaded server, which uses fewer
samples, then refuses requests, then recovers.
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

CLIENTS, ROUNDS, FLOOR = 24, 20, 7
PATH = "/v1/related?node=red&k=50"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the service and its queue; an answer takes 10 ms."""
    fake, answer = Clock(), Service._answer
    for module in (load, service):
        monkeypatch.setattr(module, "time", fake)

    def slow(self: Service, *arguments: Any) -> Any:
        fake.sleep(0.01)
        return answer(self, *arguments)

    monkeypatch.setattr(Service, "_answer", slow)
    return fake


@pytest.mark.long
def test_service_lowers_samples_then_refuses_then_recovers(
    folder: Path, clock: Clock, serving: Serving
) -> None:
    """The target of 1 ms is too short for many concurrent clients."""
    options = {"target_latency": 1.0, "min_samples": FLOOR, "queue": 8, "threads": 1}
    server = serving(folder / "web.index", **options)
    server.service.cache.most = 0  # every answer is computed
    responses: list[SimpleNamespace] = []

    async def send_requests() -> None:
        for _ in range(ROUNDS):
            requests = (ask_app(server.app, PATH) for _ in range(CLIENTS))
            responses.extend(await asyncio.gather(*requests))

    asyncio.run(send_requests())
    answers = [each for each in responses if each.status == 200]
    samples = [int(each.headers["cocite-samples"]) for each in answers]
    assert {each.status for each in responses} == {200, 429}
    assert samples[0] == 60
    assert samples == sorted(samples, reverse=True)
    assert samples[-1] == FLOOR
    assert [each.json["settings"]["samples"] for each in answers] == samples
    assert all(int(each.headers["retry-after"]) >= 1 for each in responses if each.status == 429)
    assert answers[-1].headers["cache-control"] == "public, no-cache"  # a better answer will come
    assert server("/healthz").status == 200
    clock.sleep(60.0)
    server.service.gauge()
    assert "cocite_samples_share 1.0" in server("/metrics").body.decode()
    assert server(PATH).headers["cocite-samples"] == "60"


@pytest.mark.process
def test_systemd_unit_passes_verify(tmp_path: Path) -> None:
    """The unit of ``docs/serving.md``, checked by systemd."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd is not installed")
    text = (Path(__file__).parents[2] / "docs" / "serving.md").read_text("utf-8")
    unit = re.findall(r"^```ini\n(.*?)^```", text, re.M | re.S)[0]
    unit = unit.replace("/opt/cocite/bin/cocite", sys.executable)  # must exist
    (tmp_path / "cocite.service").write_text(unit)
    completed = subprocess.run(
        [program, "verify", "--man=no", str(tmp_path / "cocite.service")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (completed.returncode, completed.stderr) == (0, "")


# -- the queue -------------------------------------------------------------------------


def test_pool_refuses_hopeless_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(load, "time", clock)

    async def fill(pool: Pool) -> None:
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
            await pool.run(lambda: None)  # the queue is full
        gate.set()
        await asyncio.gather(first, last, *others)
        assert pool.waiting == 0
        assert pool.wait == 0.0

    pool = Pool(1, 5, 10.0)
    asyncio.run(fill(pool))
    pool.close()


# -- replaced indexes ------------------------------------------------------------------


@pytest.mark.long
def test_holder_serves_copied_index_once_complete(folder: Path, tmp_path: Path) -> None:
    """The copy comes file by file, not by a rename as in cocite; its last file is cut at first."""
    served, new = tmp_path / "served", tmp_path / "new"
    shutil.copytree(folder / "web.index", served)
    graph = cocite.Graph.open(folder / "web.graph")
    cocite.build(graph, new, measure="psimrank", samples=40, seed=1)
    holder = Holder("web", str(served), (), {})
    assert holder.look() is None
    before = holder.now
    shutil.rmtree(served)
    assert holder.look() is None  # missing: the old one stays
    shutil.copytree(new, served)
    (last,) = served.glob("in.samples-000000")
    whole = last.read_bytes()
    last.chmod(0o644)
    with last.open("r+b") as file:  # the directory itself is unchanged
        file.truncate(len(whole) // 2)
    refused = holder.look()
    assert refused not in (None, "taken")
    assert holder.look() is None  # nothing changed
    with last.open("r+b") as file:
        file.write(whole)
    assert holder.look() == "taken"
    assert holder.now is not before
    assert holder.look() is None


# -- adaptation, with a simulated clock ------------------------------------------------


TARGET, LOWEST, THREADS, QUEUE = 0.05, 0.1, 2, 256
BASE, EACH = 0.0005, 0.0015
"""Seconds for an answer without samples, and for all samples: at most 1,000 answers a second."""


class Simulated:
    """Random queries, ``rate(now)`` a second, refused as by the pool."""

    def __init__(self, rate: Callable[[float], float], seconds: float) -> None:
        self.adaptation = Adaptation(TARGET, LOWEST, 0.0)
        self.answers: list[tuple[float, float, float]] = []  # time, latency, share
        self.refused: list[float] = []
        rng, now = random.Random(7), 0.0
        free = [0.0] * THREADS
        pending: list[tuple[float, float]] = []
        while now < seconds:
            now += rng.expovariate(rate(now))
            while pending and pending[0][0] <= now:
                done, took = heapq.heappop(pending)
                self.adaptation.answered(took, done)
            share = self.adaptation.share_now(now)
            begin = max(now, heapq.heappop(free))
            full = len(pending) >= QUEUE + THREADS
            if full or (self.adaptation.at_floor and begin - now > TARGET):
                heapq.heappush(free, begin)
                self.refused.append(now)
                self.adaptation.refused(now)
                continue
            done = begin + BASE + EACH * share
            heapq.heappush(free, done)
            heapq.heappush(pending, (done, done - now))
            self.answers.append((now, done - now, share))

    def late(self, begin: float, end: float) -> float:
        """The fraction of answers slower than the target."""
        is_late = [took > TARGET for now, took, _ in self.answers if begin <= now < end]
        return sum(is_late) / len(is_late)

    def shares(self, begin: float, end: float) -> list[float]:
        return [share for now, _, share in self.answers if begin <= now < end]


def test_adaptation_keeps_all_samples_under_light_load() -> None:
    simulated = Simulated(lambda now: 500, 20)
    assert set(simulated.shares(0, 20)) == {1.0}
    assert not simulated.refused


def test_adaptation_lowers_samples_then_recovers() -> None:
    simulated = Simulated(lambda now: 1400 if 5 <= now < 35 else 100, 60)
    assert simulated.late(8, 35) < 0.15
    assert len(simulated.refused) < 0.001 * len(simulated.answers)
    busy = simulated.shares(8, 35)
    assert max(busy) < 1
    assert min(busy) >= LOWEST
    # 1,400 a second have 1.43 ms each on two threads: 0.62 of the samples.
    assert 0.3 < sum(busy) / len(busy) < 0.65
    assert set(simulated.shares(50, 60)) == {1.0}


def test_adaptation_refuses_excess_load_at_floor() -> None:
    simulated = Simulated(lambda now: 12_000 if now >= 5 else 100, 15)
    assert set(simulated.shares(8, 15)) == {LOWEST}
    assert simulated.refused
    assert max(took for now, took, _ in simulated.answers if now >= 8) <= TARGET + BASE + EACH
    answered = len(simulated.shares(8, 15)) / 7
    assert answered == pytest.approx(THREADS / (BASE + EACH * LOWEST), rel=0.05)
