"""Times of questions in a plan: each node asked once, of as many samples as there is time for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite.errors import UsageError
from cocite.index.plan import BuildOptions
from cocite.means import Means
from cocite.measures import SAMPLES
from cocite.query.batch.run import related_all
from cocite.query.index import Index
from cocite.query.plan import pilots as module
from cocite.query.plan.pilots import Costs, Pilots
from cocite.query.plan.questions import time_questions
from tests.conftest import MakeGraph

pytestmark = pytest.mark.usefixtures("no_processes")


def links(nodes: int, count: int) -> list[tuple[str, str]]:
    rng = np.random.default_rng(4)
    return [(f"p{a}", f"p{b}") for a, b in rng.integers(0, nodes, (count, 2)).tolist()]


def test_a_node_is_asked_once(make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked again, it would find all that it needs near: half of the time."""
    asked = list[str]()

    class Asked:
        nodes = cocite.Graph.open(make_graph(links(400, 2500)).path).names

        def related(self, name: str, k: int, **settings: Any) -> None:
            asked.append(name)

    index: Any = Asked()
    assert time_questions(index, 300, 60, {}).size == 300
    assert len(asked) == len(set(asked)) == 303  # three that are not counted, and not timed either
    assert time_questions(index, 1000, 60, {}).size == 400
    assert time_questions(index, 1000, 0, {}).size == 1


def test_a_pilot_has_the_samples_planned_if_there_is_time(make_graph: MakeGraph) -> None:
    graph = make_graph(links(400, 2500))
    plan = cocite.plan_index(graph, measure="psimrank", samples=80, threads=2, pilot=20)
    assert plan.pilot == 80
    assert cocite.plan_index(graph, measure="psimrank", samples=80, pilot=0.01).pilot != 80
    plan = cocite.plan_index(graph, measure="psimrank", disk="1MB", threads=2, pilot=20)
    assert plan.pilot is not None
    assert plan.planned.samples is not None
    assert plan.planned.samples / 1.3 < plan.pilot < 1.3 * plan.planned.samples


def test_quantiles_and_not_nodes_are_followed(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times of n samples are sqrt(n), twice that, and so on, of whichever node."""
    rng = np.random.default_rng(1)

    def times(index: Index, most: int, *given: Any) -> Any:
        counts = index.stored.parts[0].settings[SAMPLES]
        return rng.permutation(np.sqrt(counts) * np.arange(1, 101))[:most]

    monkeypatch.setattr(module, "time_questions", times)
    graph = make_graph(links(400, 2500))
    plan = cocite.plan_index(graph, measure="psimrank", samples=40, threads=2, pilot=20)
    assert plan.pilot == 40
    assert plan.planned.median == pytest.approx(np.sqrt(40) * 50.5)
    assert plan.doubled is not None
    assert plan.doubled.median is not None
    told = plan.doubled.median / (np.sqrt(80) * 50.5)
    # Through a quarter and all: 1 + (1 - 1/2) / (1 - 1/4) of the root of 40, beside its 1.414.
    assert told == pytest.approx((1 + 2 / 3) / np.sqrt(2))


def test_related_all_is_told_before_the_build(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph(links(400, 2500))
    plan = cocite.plan_index(graph, measure="psimrank", samples=40, threads=2, pilot=20)
    index = cocite.build(graph, tmp_path / "x", measure="psimrank", samples=40)
    report = related_all(index, tmp_path / "all.parquet")
    assert report.bytes is not None
    assert plan.planned.batch_bytes == pytest.approx(report.bytes, rel=0.1)
    assert plan.planned.batch_seconds is not None
    assert plan.doubled is not None
    assert plan.doubled.batch_bytes is not None
    assert report.bytes < plan.doubled.batch_bytes <= 2.2 * report.bytes
    whole = cocite.plan_index(graph, measure="cocitation", pilot=20).planned
    assert whole.batch_bytes is not None
    assert cocite.plan_index(graph, measure="pagesim", pilot=1e-6).planned.batch_bytes is None
    costs = Costs(0, 1.0, 0.0, 0.0, np.empty((0, 2)), None, 2)  # type: ignore[arg-type]
    assert costs.related_all(4) is None
    batch = np.array([[1.0, 0.5], [100.0, 25.0]])
    assert replace(costs, batch=batch).related_all(4) == (3.0, 200)


def test_what_rough_costs_refuse_is_left_to_better_ones() -> None:
    def choose(costs: Costs) -> int:
        raise UsageError("no sample fits")

    costs = Costs(0, 1.0, 0.0, 0.0, np.empty((0, 2)), None, 2)  # type: ignore[arg-type]
    assert module._wanted(choose, costs) == 1
    assert module._wanted(lambda costs: 7, costs) == 7


@pytest.mark.parametrize(("estimate", "built"), [(54.0, True), (66.0, False)])
def test_what_is_made_in_one_go_is_built_if_that_takes_no_longer_than_the_pilot(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch, estimate: float, built: bool
) -> None:
    graph = make_graph(links(400, 2500))
    options = BuildOptions.checked("cocitation")
    asked = options.measure.ask_settings({})
    work = Pilots(graph, options, asked, Means.checked(1), 60, None, lambda *given: None)
    with work._folder() as folder, work._build(folder, options, 1) as build:
        kind = type(build.parts[0])
    real = kind.estimate
    monkeypatch.setattr(kind, "estimate", lambda self: replace(real(self), seconds=estimate))
    assert (work.whole().times is not None) == built
