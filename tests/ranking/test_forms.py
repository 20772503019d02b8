"""Forms of the links, in memory, in blocks on disk, in partitions: equal ranks, to the bit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite import Graph
from cocite.errors import UsageError, WorkerLost
from cocite.ranking import RankRoom, Ranks, pagerank, vectors
from tests.conftest import MakeGraph
from tests.index.test_external import tangled
from tests.index.test_in_blocks import Lossy, in_blocks
from tests.oracles.graphs import WEIGHTS, Edges, weighted_graphs

Form = Callable[[Graph, Path], tuple[Graph, dict[str, Any]]]


def on_disk(blocks: int) -> Form:
    return lambda graph, folder: (graph, {"blocks": blocks})


def partitioned(blocks: int, **more: Any) -> Form:
    return lambda graph, folder: (in_blocks(graph, folder / f"p{blocks}", blocks), more)


FORMS: list[Form] = [
    *map(on_disk, (1, 3, 7, 64)),
    *map(partitioned, (1, 2, 5)),
    partitioned(3, memory="8MB"),
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"damping": 0.99, "precision": "single", "max_sweeps": 30},
    {"dangling": "uniform", "personalization": ["p1", "a", "chain3"]},
    {"dangling": "remove", "removals": 3, "precision": "single", "tolerance": 1e-6},
    {"until_top_stable": 20},
    {"trust": ["p1", "chain3"], "dangling": "uniform"},
    {"weighted": False},
]


def numbers(ranks: Ranks) -> dict[str, bytes]:
    return {title: values.tobytes() for title, values in ranks._numbers().items()}


def same(found: Ranks, expected: Ranks) -> bool:
    return (
        numbers(found) == numbers(expected)
        and found.convergence == expected.convergence
        and found.removed == expected.removed
    )


def weighted(make_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(2)
    rows = [(f"p{a}", f"p{b}", f"{1 + a % 7}.3") for a, b in rng.integers(0, 90, (700, 2))]
    rows += [("a", f"p{i}", "0.1") for i in range(30)]
    rows += [("chain3", "a", "2"), *((f"p{i}", f"end{i}", "1.7") for i in range(20))]
    return make_graph(rows, [], weight_column=3, keep_self_loops=True)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "plain")
@pytest.mark.parametrize("by_weight", [False, True])
def test_forms_have_equal_ranks(
    make_graph: MakeGraph, tmp_path: Path, options: dict[str, Any], by_weight: bool
) -> None:
    graph = weighted(make_graph) if by_weight else tangled(make_graph)
    files = sorted(graph.path.iterdir())
    expected = pagerank(graph, **options)
    if not options:
        assert expected.convergence.sweeps > 8  # extrapolation has its turn
    for form in FORMS:
        other, more = form(graph, tmp_path)
        found = pagerank(other, **options, **more)
        assert same(found, expected)
        assert found.blocks == more.get("blocks", getattr(other, "blocks", 0))
    warm = pagerank(graph, **options, start=expected.values)
    assert same(pagerank(graph, **options, start=expected.values, blocks=3), warm)
    assert sorted(graph.path.iterdir()) == files


@settings(max_examples=40)
@given(
    weighted_graphs(),
    st.booleans(),
    st.integers(1, 9).flatmap(lambda n: st.sampled_from([on_disk(n), partitioned(n)])),
    st.data(),
)
def test_any_graph_has_equal_ranks_in_all_forms(
    make_graph: MakeGraph,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    graph: tuple[int, Edges, list[float]],
    by_weight: bool,
    form: Form,
    data: st.DataObject,
) -> None:
    """With a few numbers at a time of everything, so that rows, strips and windows are cut."""
    monkeypatch.setattr(vectors, "PIECE", 3)
    monkeypatch.setattr(RankRoom, "piece", 96)
    monkeypatch.setattr(RankRoom, "window", 24)
    monkeypatch.setattr(RankRoom, "strip", lambda self, weighted: 5)
    n, edges, weights = graph
    loops = data.draw(st.dictionaries(st.integers(0, n - 1), WEIGHTS))
    edges, weights = edges + [(v, v) for v in loops], weights + list(loops.values())
    if by_weight and edges:
        rows = [(a, b, w) for (a, b), w in zip(edges, weights, strict=True)]
        stored = make_graph(rows, range(n), keep_self_loops=True, weight_column=3)
    else:
        stored = make_graph(edges, range(n), keep_self_loops=True)
    toward = data.draw(st.none() | st.sets(st.sampled_from(range(n)), min_size=1))
    options: dict[str, Any] = {
        "dangling": data.draw(st.sampled_from(["spread", "uniform", "remove"])),
        "precision": data.draw(st.sampled_from(["double", "single"])),
        "personalization": toward and list(map(str, toward)),
        "tolerance": 1e-6,
        "max_sweeps": 60,
    }
    other, more = form(stored, tmp_path_factory.mktemp("form"))
    try:
        expected = pagerank(stored, **options)
    except UsageError as error:  # no node is left, or none with a weight
        with pytest.raises(UsageError, match=str(error)[-30:]):
            pagerank(other, **options, **more)
    else:
        assert same(pagerank(other, **options, **more), expected)


# -- partitions ------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [{40}, {100, 130}, {61, 62, 200, 300}, set(range(25, 900, 125))])
def test_lost_workers_keep_ranks(make_graph: MakeGraph, tmp_path: Path, lost: set[int]) -> None:
    graph, crews = tangled(make_graph), []

    def hire(*arguments: Any) -> Lossy:
        crews.append(Lossy(*arguments))
        crews[-1].lost = lost
        return crews[-1]

    for options in ({}, {"until_top_stable": 20}, {"dangling": "remove"}):
        blocked = in_blocks(graph, tmp_path / f"split{'-'.join(options)}", 3, hire)
        assert same(pagerank(blocked, **options), pagerank(graph, **options))
        assert crews[-1].losses >= 1


@pytest.mark.parametrize("first", [3, 60])
def test_workers_always_lost_end_it(make_graph: MakeGraph, tmp_path: Path, first: int) -> None:
    def hire(*arguments: Any) -> Lossy:
        crew = Lossy(*arguments)
        crew.lost = set(range(first, 100_000))
        return crew

    blocked = in_blocks(tangled(make_graph), tmp_path / "split", 3, hire)
    with pytest.raises(WorkerLost, match="somebody was lost"):
        pagerank(blocked, dangling="remove")


@pytest.mark.parametrize("form", FORMS)
def test_forms_start_from_named_ranks(make_graph: MakeGraph, tmp_path: Path, form: Form) -> None:
    graph, start = tangled(make_graph), {"p1": 0.5, "a": 0.25, "gone": 0.25}
    expected = pagerank(graph, dangling="remove", start=start)
    other, options = form(graph, tmp_path)
    found = pagerank(other, dangling="remove", start=start, **options)
    assert same(found, expected)
    assert found.started == expected.started == 2
