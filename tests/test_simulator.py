"""The simulator of clusters against closed forms, and against runs measured here.

The runs are stored in ``benchmarks/results/cluster.json``. To measure them again, see
``python -m benchmarks.simulator --help``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from benchmarks.simulator import sizes
from benchmarks.simulator.__main__ import DOCUMENT, MARKS, within
from benchmarks.simulator.building import Coarse, Fine, Rank, coarse, fine, fine_calls, rank
from benchmarks.simulator.constants import read
from benchmarks.simulator.events import Machine, World
from benchmarks.simulator.reproduce import ALLOWED, figures
from benchmarks.simulator.serving import Serving, serve

import cocite
from cocite.cluster.threads import Alone
from cocite.graph.partitions import BlockedGraph
from cocite.io.partitions import split

BUILD = Coarse(hosts=3, processors=4, nodes=3, shards=36, work=7.0, begin=2.0, beside=1.5, each=4)
WALK = Fine(
    hosts=4, processors=2, blocks=8, nodes=1e6, samples=32, together=16, live=(1.0, 0.5, 0.25),
    token=1e-7, layout=3e-8,
)  # fmt: skip
SERVING = Serving(
    hosts=4, processors=2, nodes=4, shards=4, samples=10, replicas=1, mean=0.003, spread=0.0,
    front=0.001, merge=0.0005, trip=0.002, deadline=0.1,
)  # fmt: skip


def close(number: float) -> Any:
    return pytest.approx(number, rel=1e-9)


# -- processors --------------------------------------------------------------------------------


def test_machine_shares_processors_among_jobs() -> None:
    world, ended = World(), list[float]()
    machine = Machine(world, 2, speed=0.5)
    for work in (1.0, 2.0, 4.0):
        machine.do(work, lambda: ended.append(world.now))
    world.run()
    # Three get 1/3 of the speed each until the first ends, then each has a processor.
    assert ended == [close(3), close(5), close(9)]
    assert machine.busy * machine.speed == close(7)


# -- builds ------------------------------------------------------------------------------------


def test_coarse_without_failures_matches_formula() -> None:
    found = coarse(replace(BUILD, fetch=3.0, wire=10.0, copied=100.0))
    assert found.seconds == close(3 + 2 + 3 * 7 + 1.5)
    assert found.processor == close(36 * 7 + 12 * 2 + 1.5)
    assert found.wire == close(36 * 10 + 3 * 100)
    assert found.again == 0
    rest = coarse(replace(BUILD, shards=37))
    assert rest.seconds == close(2 + 4 * 7 + 1.5)


def test_fine_without_failures_matches_formula() -> None:
    found = fine(WALK)
    walk, layout = 32 * 1e6 * 1.75 * 1e-7, 32 * 1e6 * 3e-8
    assert found.seconds == close(walk / 8 + layout / 3)  # eight blocks, then three jobs at a time
    assert found.processor == close(walk + layout)
    sent = fine(replace(WALK, token_bytes=12, crossing=0.5, record_bytes=6, laid=8.0))
    assert sent.wire == close(32 * 1e6 * (12 * 0.5 * 1.75 + 6 + 8))


def test_rank_matches_formula() -> None:
    plan = Rank(
        hosts=4, processors=1, blocks=4, sweeps=10, links=1e8, link=2e-9, borders=1e6, value=8,
        hop=0.001,
    )  # fmt: skip
    found = rank(plan)
    assert found.seconds == close(10 * (0.1 / 4 + 0.1 + 4 * 0.001))  # half of it in sequence
    assert found.processor == close(10 * 0.2)
    assert found.wire == close(10 * 8e6)


class Counting(Alone):
    """Counts the calls to a crew, and the answers that go from block to block."""

    calls: list[tuple[str, int]]

    def __init__(self, kind: Callable[..., Any], arguments: Sequence[Any], memory: int = 0) -> None:
        super().__init__(kind, arguments, memory)
        self.calls = []

    def call(self, block: int, method: str, *arguments: Any, answers: int = 1) -> list[Any]:
        self.calls.append((method, answers))
        return super().call(block, method, *arguments, answers=answers)


def test_fine_calls_match_real_build(tmp_path: Path) -> None:
    graph = cocite.generate_web(tmp_path / "web", nodes=600, links=4000, seed=2)
    split(graph, tmp_path / "blocks", 3)
    crews: list[Counting] = []

    def hire(*arguments: Any) -> Counting:
        crews.append(Counting(*arguments))
        return crews[-1]

    blocked = BlockedGraph.open(tmp_path / "blocks", crew=hire)
    cocite.build(blocked, tmp_path / "index", measure="psimrank", samples=5)
    calls = crews[-1].calls
    steps = sum(method == "step" for method, _ in calls) // 3
    parcels = sum(answers - (method == "step") for method, answers in calls if answers > 1)
    assert fine_calls(3, steps, 5) == (len(calls), parcels)


# -- queries -----------------------------------------------------------------------------------


def test_serve_without_failures_matches_formula() -> None:
    found = serve(SERVING, 20, None)
    # Send to the first of four shards, wait for its answer, then merge four answers.
    assert found.took == [close(0.001 / 4 + 0.002 + 0.003 + 4 * 0.0005)] * 20
    assert found.samples == [40] * 20
    assert found.processor == close(20 * (0.001 + 4 * 0.0035))
    together = serve(replace(SERVING, hosts=1, beside=True, front=0.0), 20, None)
    assert together.took[0] == close(0.002 + 4 * 0.003 / 2 + 4 * 0.0005)
    assert serve(replace(SERVING, ended=3), 5, None).samples == [10] * 5


# -- measured runs -----------------------------------------------------------------------------


COMMANDS = {"build": "cluster_build GRAPH", "blocks": "cluster_blocks GRAPH"}
COMMANDS["serving"] = "cluster_serving INDEX"


def stored_run(name: str) -> dict[str, Any]:
    _, runs = read()
    if name not in runs:
        pytest.skip(f"not measured on a quiet machine: python -m benchmarks.{COMMANDS[name]}")
    found: dict[str, Any] = runs[name]
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_simulator_reproduces_measured_runs(name: str) -> None:
    found = list(figures(read()[0], {name: stored_run(name)}))
    assert len(found) >= 5
    assert not [row for row in found if abs(row.off) > ALLOWED]


def test_measured_builds_equal_one_machine() -> None:
    build, blocks = stored_run("build"), stored_run("blocks")
    assert all(build[name]["equal"] for name in ("cluster", "node killed", "driver killed"))
    assert all(each["equal"] for each in (*blocks["indexes"].values(), blocks["ranks"]))


def test_measured_serving_keeps_answers_and_coverage() -> None:
    run = stored_run("serving")
    assert run["same"] == 1
    assert run["coverage"]["hold"] >= 0.95 * run["coverage"]["intervals"]


@pytest.fixture(scope="module", autouse=True)
def plans_made_once() -> Iterator[None]:
    """Make the plans of each web once for the module."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sizes, "plans", cache(sizes.plans))
        yield


@pytest.mark.long
@pytest.mark.parametrize("name", MARKS)
def test_cluster_doc_matches_results(name: str) -> None:
    text = DOCUMENT.read_text("utf-8")
    assert MARKS[name][0] in text
    assert within(text, name) == text


@pytest.mark.long
def test_sizes_plans_fit_machines() -> None:
    found, _ = read()
    kind = sizes.Kind()
    for web in sizes.WEBS:
        plans = sizes.plans(web, found)
        assert plans
        for plan in plans:
            assert plan.memory <= kind.room
            assert plan.build.seconds * kind.processors * web.machines > plan.build.processor
        wide = web.nodes > sizes.IDS
        assert wide == all(plan.form.startswith("in ") and "blocks" in plan.form for plan in plans)
