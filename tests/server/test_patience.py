"""One long question: it ends when it was given no more time, and keeps nobody from answers."""

import asyncio
import json
import threading
from itertools import chain
from pathlib import Path
from typing import Any

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
    options = ("--question-timeout", str(GIVEN), "--threads", "2")
    return start(str(place / "web.index"), *options)


@pytest.mark.process
def test_a_long_question_is_given_up_and_said_to_be(server: Server) -> None:
    server.until(lambda: server.ask("related", node="n0").status == 200)  # kernels are there
    pair = {name: value for name, value in LONG.items() if name != "node"} | {"a": "n0", "b": "n1"}
    for verb, query in (("related", LONG), ("similarity", pair)):
        found = server.ask(verb, **query)
        assert found.status == 503
        assert found.headers["content-type"] == "application/problem+json"
        assert found.json["type"] == "/docs#took-too-long"
        assert "exceeded its time limit of 0.5 s" in found.json["detail"]
        assert "cache-control" not in found.headers or "no-store" in found.headers["cache-control"]
    page = server.get("/?node=n0&damping=0.999&tolerance=1e-8")
    assert (page.status, b"exceeded its time limit" in page.body) == (503, True)


@pytest.mark.process
def test_others_are_answered_meanwhile(server: Server) -> None:
    """As many long questions as there are threads, again and again: others wait until a thread is
    free, and not for the long ones that come after them (``test_load.py``).
    """
    stop, given_up = threading.Event(), list[int]()

    def long() -> None:
        while not stop.is_set():
            given_up.append(server.ask("related", **LONG).status)

    clients = [threading.Thread(target=long) for _ in range(2)]
    for client in clients:
        client.start()
    answered: list[int] = []

    def enough() -> bool:
        answered.append(server.ask("related", node=f"n{len(answered)}").status)
        return answered.count(200) >= 5 and len(given_up) >= 6

    try:
        server.until(enough)
    finally:
        stop.set()
        for client in clients:
            client.join()
    assert set(given_up) == {503}


@pytest.mark.process
@pytest.mark.parametrize("form", ["application/json", "application/x-ndjson"])
def test_a_batch_says_which_of_its_questions_took_too_long(server: Server, form: str) -> None:
    body = {"nodes": ["n0", ["n1", "n2"]], "damping": 0.999, "tolerance": 1e-8}
    found = server.post("/v1/batch", body, Accept=form)
    assert found.status == 200
    lines = found.json["answers"] if form.endswith("/json") else None
    one, two = lines or [json.loads(line) for line in found.body.splitlines()]
    assert (one["node"], two["nodes"]) == ("n0", ["n1", "n2"])
    assert all("exceeded its time limit of 0.5 s" in each["error"]["detail"] for each in (one, two))


def test_a_batch_has_an_end(folder: Path, serving: Serving) -> None:
    server = serving(folder / "web.index", Limits(question_time=1.0, batch_times=0))
    found = server("/v1/batch", {"nodes": ["red"] * 9}).json["answers"]
    assert len(found) == 9
    assert all(
        each["node"] == "red" and "the batch exceeded" in each["error"]["detail"] for each in found
    )


@pytest.mark.process
@pytest.mark.parametrize(
    "bounded",
    {
        each.name: each
        for each in chain(
            QueryOptions.declared().values(), *(measure.ask for measure in MEASURES.values())
        )
        if each.served
    }.values(),
    ids=lambda bounded: bounded.name,
)
def test_nobody_may_ask_for_any_amount_of_work(server: Server, bounded: Option[Any]) -> None:
    assert bounded.served is not None
    low, high = bounded.served
    value = bounded.high if bounded.high > high else low / 10
    found = server.get(f"/v1/related?node=n0&{bounded.name}={value}")
    assert found.status == 422
    assert f"{bounded.name} is {value}" in found.json["detail"]
    assert f" from {low:g} to {high if bounded.type is int else 1}" in found.json["detail"]


# -- what cannot be ended -----------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of all deadlines."""
    found = Clock()
    monkeypatch.setattr("cocite.deadline._now", found)
    return found


def test_another_thread_stands_in_for_one_that_cannot_be_ended(clock: Clock) -> None:
    """Work that looks at no clock, as a kernel."""
    there = set(threading.enumerate())
    pool, kernel, begun = Pool(1, 10, 0.1), threading.Event(), threading.Semaphore(0)

    def threads() -> int:
        return sum(each.name.startswith("answers-") for each in {*threading.enumerate()} - there)

    assert threads() == 1

    def stuck() -> None:
        begun.release()
        assert kernel.wait(LIMIT)

    async def given_up() -> None:
        """What the server's watcher does, when the time is over."""
        asked = asyncio.ensure_future(pool.run(stuck))
        await asyncio.to_thread(begun.acquire)
        clock.sleep(0.05)
        pool.look()
        await asyncio.sleep(0)
        assert not asked.done()
        clock.sleep(2.0)
        pool.look()
        with pytest.raises(QueryTimeout, match=r"0.1 s"):
            await asked

    async def asking() -> None:
        for _ in range(3):
            await given_up()
            assert await pool.run(lambda: 1) == 1
        assert pool.waiting == 0
        for _ in range(2):  # four stand in at most, and then there is nobody
            await given_up()
        with pytest.raises(Full):
            await pool.run(lambda: 1)
        kernel.set()
        await asyncio.to_thread(wait_for, lambda: not pool.full)
        assert await asyncio.gather(*(pool.run(lambda: 2) for _ in range(5))) == [2] * 5
        await asyncio.to_thread(wait_for, lambda: threads() == 1)

    asyncio.run(asyncio.wait_for(asking(), LIMIT))
    pool.close()


def test_work_that_looks_at_the_clock_ends_by_itself(clock: Clock) -> None:
    pool = Pool(1, 10, 0.05)

    def work() -> Any:
        while True:
            check()
            clock.sleep(0.01)

    async def asking() -> None:
        with pytest.raises(QueryTimeout):
            await pool.run(work)
        assert await pool.run(lambda: 3) == 3

    asyncio.run(asyncio.wait_for(asking(), LIMIT))
    pool.close()


def test_heavy_questions_are_answered_from_all_samples(folder: Path, serving: Serving) -> None:
    """Fewer would not help, and each number of them would make its own PageRank."""
    service = serving(folder / "web.index").service
    service.adaptation.share = 0.3
    with service.serving("related", {"node": ["red"]}) as asking:
        assert asking.samples == 18
    for values in ({"refine": True}, {"order": "pagerank"}, {"target_error": 0.1}):
        with service.serving("related", {"node": ["red"], **values}) as asking:
            assert asking.index is asking.held.index
