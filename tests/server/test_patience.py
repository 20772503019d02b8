"""Query timeouts: a long query ends at its time limit, and does not block others."""

import asyncio
import json
import threading
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest

import cocite
from cocite.deadline import check
from cocite.errors import QueryTimeout
from cocite.measures import MEASURES
from cocite.options import Option
from cocite.options.query import QueryOptions
from cocite.server.load import Full, Pool
from cocite.server.results import Limits
from tests.clock import LIMIT, Clock, wait_for
from tests.server.conftest import Server, Serving, Start

TIMEOUT = 0.5
SLOW = {"damping": 0.999, "tolerance": 1e-8}
"""Hundreds of thousands of sweeps over all links, which take minutes."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, start: Start) -> Server:
    """Serve a graph in which all nodes are close to each other."""
    folder = tmp_path_factory.mktemp("patience")
    ends = np.random.default_rng(1).integers(0, 3000, (100_000, 2)).tolist()
    (folder / "links.tsv").write_text("".join(f"n{a}\tn{b}\n" for a, b in ends))
    graph = cocite.ingest(folder / "links.tsv", folder / "graph", header="no")
    cocite.build(graph, folder / "web.index", measure="ppr")
    options = ("--question-timeout", str(TIMEOUT), "--threads", "2")
    return start(str(folder / "web.index"), *options)


@pytest.mark.process
def test_question_timeout_returns_503(server: Server) -> None:
    server.until(lambda: server.ask("related", node="n0").status == 200)  # kernels are compiled
    for verb, query in (("related", {"node": "n0"}), ("similarity", {"a": "n0", "b": "n1"})):
        response = server.ask(verb, **query, **SLOW)
        assert response.status == 503
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json["type"] == "/docs#took-too-long"
        assert "exceeded its time limit of 0.5 s" in response.json["detail"]
        assert "no-store" in response.headers.get("cache-control", "no-store")
    page = server.get(f"/?{urlencode({'node': 'n0', **SLOW})}")
    assert (page.status, b"exceeded its time limit" in page.body) == (503, True)


@pytest.mark.process
def test_question_timeout_frees_threads_for_others(server: Server) -> None:
    """Long queries keep all threads busy: others wait for a free thread, but not for long queries
    that come after them (``test_load.py``).
    """
    stop, timed_out = threading.Event(), list[int]()

    def send_long() -> None:
        while not stop.is_set():
            timed_out.append(server.ask("related", node="n0", **SLOW).status)

    clients = [threading.Thread(target=send_long) for _ in range(2)]
    for client in clients:
        client.start()
    answered: list[int] = []

    def enough_answers() -> bool:
        answered.append(server.ask("related", node=f"n{len(answered)}").status)
        return answered.count(200) >= 5 and len(timed_out) >= 6

    try:
        server.until(enough_answers)
    finally:
        stop.set()
        for client in clients:
            client.join()
    assert set(timed_out) == {503}


@pytest.mark.process
@pytest.mark.parametrize("media_type", ["application/json", "application/x-ndjson"])
def test_batch_reports_timeout_per_query(server: Server, media_type: str) -> None:
    body = {"nodes": ["n0", ["n1", "n2"]], **SLOW}
    response = server.post("/v1/batch", body, Accept=media_type)
    assert response.status == 200
    lines = response.json["answers"] if media_type.endswith("/json") else None
    one, two = lines or [json.loads(line) for line in response.body.splitlines()]
    assert (one["node"], two["nodes"]) == ("n0", ["n1", "n2"])
    assert all("exceeded its time limit of 0.5 s" in each["error"]["detail"] for each in (one, two))


def test_batch_stops_at_time_limit(folder: Path, serving: Serving) -> None:
    server = serving(folder / "web.index", Limits(question_time=1.0, batch_times=0))
    answers = server("/v1/batch", {"nodes": ["red"] * 9}).json["answers"]
    assert len(answers) == 9
    assert all(
        each["node"] == "red" and "the batch exceeded" in each["error"]["detail"]
        for each in answers
    )


@pytest.mark.process
@pytest.mark.parametrize(
    "option",
    {
        each.name: each
        for each in chain(
            QueryOptions.declared().values(), *(measure.ask for measure in MEASURES.values())
        )
        if each.served
    }.values(),
    ids=lambda option: option.name,
)
def test_served_options_are_bounded(server: Server, option: Option[Any]) -> None:
    assert option.served is not None
    low, high = option.served
    value = option.high if option.high > high else low / 10
    response = server.get(f"/v1/related?node=n0&{option.name}={value}")
    assert response.status == 422
    assert f"{option.name} is {value}" in response.json["detail"]
    assert f" from {low:g} to {high if option.type is int else 1}" in response.json["detail"]


# -- stuck threads -----------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of all deadlines."""
    fake = Clock()
    monkeypatch.setattr("cocite.deadline._now", fake)
    return fake


def test_pool_replaces_stuck_threads(clock: Clock) -> None:
    """Work such as a kernel does not check the deadline."""
    existing = set(threading.enumerate())
    pool, kernel, begun = Pool(1, 10, 0.1), threading.Event(), threading.Semaphore(0)

    def threads() -> int:
        return sum(each.name.startswith("answers-") for each in {*threading.enumerate()} - existing)

    assert threads() == 1

    def stuck() -> None:
        begun.release()
        assert kernel.wait(LIMIT)

    async def time_out() -> None:
        """Do what the server's watcher does after a timeout."""
        task = asyncio.ensure_future(pool.run(stuck))
        await asyncio.to_thread(begun.acquire)
        clock.sleep(0.05)
        pool.look()
        await asyncio.sleep(0)
        assert not task.done()
        clock.sleep(2.0)
        pool.look()
        with pytest.raises(QueryTimeout, match=r"0.1 s"):
            await task

    async def run_all() -> None:
        for _ in range(3):
            await time_out()
            assert await pool.run(lambda: 1) == 1
        assert pool.waiting == 0
        for _ in range(2):  # at most four replacements
            await time_out()
        with pytest.raises(Full):
            await pool.run(lambda: 1)
        kernel.set()
        await asyncio.to_thread(wait_for, lambda: not pool.full)
        assert await asyncio.gather(*(pool.run(lambda: 2) for _ in range(5))) == [2] * 5
        await asyncio.to_thread(wait_for, lambda: threads() == 1)

    asyncio.run(asyncio.wait_for(run_all(), LIMIT))
    pool.close()


def test_pool_work_stops_at_deadline(clock: Clock) -> None:
    pool = Pool(1, 10, 0.05)

    def work() -> Any:
        while True:
            check()
            clock.sleep(0.01)

    async def run_all() -> None:
        with pytest.raises(QueryTimeout):
            await pool.run(work)
        assert await pool.run(lambda: 3) == 3

    asyncio.run(asyncio.wait_for(run_all(), LIMIT))
    pool.close()


def test_serving_uses_all_samples_for_heavy_queries(folder: Path, serving: Serving) -> None:
    """Fewer samples would not help, and each number of samples would need its own PageRank."""
    service = serving(folder / "web.index").service
    service.adaptation.share = 0.3
    with service.serving("related", {"node": ["red"]}) as query:
        assert query.samples == 18
    for values in ({"refine": True}, {"order": "pagerank"}, {"target_error": 0.1}):
        with service.serving("related", {"node": ["red"], **values}) as query:
            assert query.index is query.held.index
