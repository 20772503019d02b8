"""One long question: it ends when it was given no more time, and keeps nobody from answers."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cocite
from cocite.deadline import check
from cocite.errors import TookTooLong
from cocite.service.config import Config, Served
from cocite.service.pool import Full, Pool
from cocite.service.service import Service
from tests.service.conftest import Server, Start

GIVEN = 0.5
LONG = {"node": "n0", "damping": 0.999, "tolerance": 1e-8}
"""Hundreds of thousands of sweeps over all links: minutes."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, start: Start) -> Server:
    """A graph in which everything is near to everything."""
    place = tmp_path_factory.mktemp("patience")
    ends = np.random.default_rng(1).integers(0, 3000, (100_000, 2)).tolist()
    (place / "links.tsv").write_text("".join(f"n{a}\tn{b}\n" for a, b in ends))
    graph = cocite.ingest(place / "links.tsv", place / "graph", header="no")
    cocite.build(graph, place / "web.index", measure="ppr")
    options = ("--question-timeout", str(GIVEN), "--threads", "2", "--target-latency", "10000")
    return start(str(place / "web.index"), *options)


def test_a_long_question_is_given_up_and_said_to_be(server: Server) -> None:
    assert server.ask("related", node="n0").status == 200
    pair = {name: value for name, value in LONG.items() if name != "node"} | {"a": "n0", "b": "n1"}
    for verb, query in (("related", LONG), ("similarity", pair)):
        began = time.monotonic()
        found = server.ask(verb, **query)
        assert time.monotonic() - began < 4
        assert found.status == 503
        assert found.headers["content-type"] == "application/problem+json"
        assert found.json["type"] == "/docs#took-too-long"
        assert "took longer than the 0.5 s" in found.json["detail"]
        assert "cache-control" not in found.headers or "no-store" in found.headers["cache-control"]
    page = server.get("/?node=n0&damping=0.999&tolerance=1e-8")
    assert (page.status, b"took longer than" in page.body) == (503, True)


def test_others_are_answered_meanwhile(server: Server) -> None:
    """As many long questions as there are threads, again and again."""
    stop = time.monotonic() + 3

    def long() -> None:
        while time.monotonic() < stop:
            assert server.ask("related", **LONG).status == 503

    clients = [threading.Thread(target=long) for _ in range(2)]
    for client in clients:
        client.start()
    answered, slowest = 0, 0.0
    while time.monotonic() < stop:
        began = time.monotonic()
        assert server.ask("related", node=f"n{answered}").status == 200
        slowest, answered = max(slowest, time.monotonic() - began), answered + 1
    for client in clients:
        client.join()
    assert answered >= 3
    assert slowest < 4 * GIVEN + 1


@pytest.mark.parametrize("form", ["application/json", "application/x-ndjson"])
def test_a_batch_says_which_of_its_questions_took_too_long(server: Server, form: str) -> None:
    body = {"nodes": ["n0", ["n1", "n2"]], "damping": 0.999, "tolerance": 1e-8}
    found = server.post("/v1/batch", body, Accept=form)
    assert found.status == 200
    lines = found.json["answers"] if form.endswith("/json") else None
    one, two = lines or [json.loads(line) for line in found.body.splitlines()]
    assert (one["node"], two["nodes"]) == ("n0", ["n1", "n2"])
    assert all("took longer than the 0.5 s" in each["error"] for each in (one, two))


def test_a_batch_has_an_end(folder: Path) -> None:
    config = Config((Served("web", str(folder / "web.index")),), target=1e6)
    service = Service(config)
    limits = SimpleNamespace(question_time=1.0, batch_times=0, hits=1000)
    service.config = SimpleNamespace(limits=limits, threads=2, target=1e6)  # type: ignore[assignment]

    async def lines() -> list[bytes]:
        with service.asking("related", {}) as asking:
            return [
                x async for each in service.ask_each({"nodes": ["red"] * 9}, asking) for x in each
            ]

    try:
        found = [json.loads(line) for line in asyncio.run(lines())]
    finally:
        service.close()
    assert len(found) == 9
    assert all(each["node"] == "red" and "the batch took" in each["error"] for each in found)


@pytest.mark.parametrize(
    ("setting", "value", "most"),
    [
        ("effort", 10**12, "10000000"),
        ("reach", 2**32 - 1, "100000"),
        ("widest", 10**9, "10000"),
        ("tolerance", 1e-12, "1e-08"),
    ],
)
def test_nobody_may_ask_for_any_amount_of_work(
    server: Server, setting: str, value: float, most: str
) -> None:
    found = server.get(f"/v1/related?node=n0&{setting}={value}")
    assert found.status == 422
    assert f"{setting} is {value}" in found.json["detail"]
    assert most in found.json["detail"]


# -- what cannot be ended -----------------------------------------------------------------


def patient(pool: Pool, stop: threading.Event) -> None:
    """What the server's watcher does."""
    while not stop.wait(0.05):
        pool.look()


def test_another_thread_stands_in_for_one_that_cannot_be_ended() -> None:
    """Work that looks at no clock, as a kernel."""
    there = set(threading.enumerate())
    pool, stop, kernel = Pool(1, 10, 0.1), threading.Event(), threading.Event()

    def threads() -> int:
        return sum(each.name.startswith("answers-") for each in {*threading.enumerate()} - there)

    assert threads() == 1
    threading.Thread(target=patient, args=(pool, stop), daemon=True).start()

    async def asking() -> None:
        for _ in range(3):
            began = time.monotonic()
            with pytest.raises(TookTooLong, match=r"0.1 s"):
                await pool.run(lambda: kernel.wait(30))
            assert time.monotonic() - began < 4
            assert await pool.run(lambda: 1) == 1
        assert pool.waiting == 0
        for _ in range(2):  # four stand in at most, and then there is nobody
            with pytest.raises(TookTooLong):
                await pool.run(lambda: kernel.wait(30))
        with pytest.raises(Full):
            await pool.run(lambda: 1)
        kernel.set()
        while pool.full:
            await asyncio.sleep(0.01)
        assert await asyncio.gather(*(pool.run(lambda: 2) for _ in range(5))) == [2] * 5
        while threads() > 1:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(asking(), 60))
    stop.set()
    pool.close()


def test_work_that_looks_at_the_clock_ends_by_itself() -> None:
    pool = Pool(1, 10, 0.05)

    def work() -> Any:
        while True:
            check()
            time.sleep(0.01)

    async def asking() -> None:
        with pytest.raises(TookTooLong):
            await pool.run(work)
        assert await pool.run(lambda: 3) == 3

    asyncio.run(asyncio.wait_for(asking(), 20))
    pool.close()


def test_heavy_questions_are_answered_from_all_samples(folder: Path) -> None:
    """Fewer would not help, and each number of them would make its own PageRank."""
    service = Service(Config((Served("web", str(folder / "web.index")),)))
    service.adaptation.share = 0.3
    try:
        with service.asking("related", {"node": ["red"]}) as asking:
            assert asking.samples == 18
        for values in ({"refine": True}, {"order": "pagerank"}, {"target_error": 0.1}):
            with service.asking("related", {"node": ["red"], **values}) as asking:
                assert asking.index is asking.held.index
    finally:
        service.close()
