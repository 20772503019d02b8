"""Links in memory, in blocks on disk and in partitions: equal ranks, to the bit."""

import re
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
from cocite.ranking.blocks import Resident
from tests.conftest import MakeGraph
from tests.index.test_external import tangled
from tests.index.test_partitioned import Lossy, in_blocks
from tests.oracles.graphs import WEIGHTS, Edges, weighted_graphs

Formed = tuple[Graph, dict[str, Any]]
Form = Callable[[Graph, Path], Formed]


def on_disk(blocks: int) -> Form:
    return lambda graph, folder: (graph, {"blocks": blocks})


def partitioned(blocks: int, **options: Any) -> Form:
    return lambda graph, folder: (in_blocks(graph, folder / f"p{blocks}", blocks), options)


FORMS: list[Form] = [
    *map(on_disk, (1, 3, 10)),
    *map(partitioned, (1, 5)),
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
CASES = [
    pytest.param(options, by_weight, by_weight == i % 2, i // 2 % 2, id=f"{name}-{by_weight}")
    for i, options in enumerate(OPTIONS)
    for name in ["-".join(options) or "plain"]
    for by_weight in (False, True)
]
"""Each of the options with and without weights, and in one half and two."""


def use_halves(monkeypatch: pytest.MonkeyPatch, crossing: float) -> None:
    """Sweep any graph of two or more nodes in halves; ``crossing`` is the part of the change that
    may cross.
    """
    monkeypatch.setattr(vectors, "LEAST_IN_HALVES", 2)
    monkeypatch.setattr("cocite.ranking.solver._CROSSING", crossing)


def numbers(ranks: Ranks) -> dict[str, bytes]:
    return {title: values.tobytes() for title, values in ranks._numbers().items()}


def equal_ranks(found: Ranks, expected: Ranks) -> bool:
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


@pytest.fixture(scope="module")
def tangle(module_graph: MakeGraph) -> Graph:
    return tangled(module_graph)


@pytest.fixture(scope="module")
def forms(
    module_graph: MakeGraph, tangle: Graph, tmp_path_factory: pytest.TempPathFactory
) -> dict[bool, list[Formed]]:
    """A graph without and with weights, first in memory, then in all other forms."""
    found = {}
    for by_weight, graph in ((False, tangle), (True, weighted(module_graph))):
        folder = tmp_path_factory.mktemp("forms")
        found[by_weight] = [(graph, {}), *(form(graph, folder) for form in FORMS)]
    return found


@pytest.mark.parametrize(("options", "by_weight", "halves", "crossing"), CASES)
def test_pagerank_is_equal_in_all_forms(
    forms: dict[bool, list[Formed]],
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    by_weight: bool,
    halves: bool,
    crossing: float,
) -> None:
    """In one half; in two for eight sweeps, or to the end."""
    (graph, _), *others = forms[by_weight]
    files = sorted(graph.path.iterdir())
    if halves:
        use_halves(monkeypatch, crossing)
    expected = pagerank(graph, threads=1, **options)
    assert all(equal_ranks(pagerank(graph, threads=n, **options), expected) for n in (2, 4))
    if not options:
        assert expected.convergence.sweeps > 8  # so that it extrapolates
    for other, extra in others:
        found = pagerank(other, **options, **extra)
        assert equal_ranks(found, expected)
        blocks = extra.get("blocks", getattr(other, "blocks", 0))
        if not halves or other is not graph:
            assert found.blocks == blocks
        else:  # halves are cut at block boundaries
            assert found.blocks in (max(2, blocks - 1), max(2, blocks))
    warm = pagerank(graph, **options, start=expected.values)
    assert equal_ranks(pagerank(graph, **options, start=expected.values, blocks=3), warm)
    assert sorted(graph.path.iterdir()) == files


@settings(max_examples=20)
@given(
    weighted_graphs(),
    st.booleans(),
    st.sampled_from([None, 0.0, 1.0]),
    st.integers(1, 9).flatmap(lambda n: st.sampled_from([on_disk(n), partitioned(n)])),
    st.data(),
)
def test_pagerank_of_any_graph_is_equal_in_all_forms(
    make_graph: MakeGraph,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    graph: tuple[int, Edges, list[float]],
    by_weight: bool,
    crossing: float | None,
    form: Form,
    data: st.DataObject,
) -> None:
    """With small pieces, so that rows, strips and windows are cut."""
    monkeypatch.setattr(vectors, "PIECE", 3)
    monkeypatch.setattr(RankRoom, "piece", 96)
    monkeypatch.setattr(RankRoom, "window", 24)
    monkeypatch.setattr(RankRoom, "strip", lambda self, weighted: 5)
    monkeypatch.setattr(vectors, "LEAST_IN_HALVES", 1 << 20)
    if crossing is not None:
        use_halves(monkeypatch, crossing)
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
    other, extra = form(stored, tmp_path_factory.mktemp("form"))
    try:
        expected = pagerank(stored, **options)
    except UsageError as error:  # no node, or no weight, is left
        with pytest.raises(UsageError, match=re.escape(str(error)[-30:])):
            pagerank(other, **options, **extra)
    else:
        assert equal_ranks(pagerank(other, **options, **extra), expected)


# -- halves ----------------------------------------------------------------------------------


@pytest.mark.parametrize("disjoint", [True, False])
def test_pagerank_halves_end_when_change_crosses(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch, disjoint: bool
) -> None:
    rng = np.random.default_rng(7)
    links = rng.integers(0, 60, (500, 2))
    links[250:] = links[:250] + 60  # two graphs, one behind the other
    if not disjoint:
        links[:, 1] = 119 - links[:, 1]  # which link to each other
    graph = make_graph(links.tolist(), range(120))
    whole, cuts, sweep = pagerank(graph), [], Resident.sweep

    def record_cut(self: Resident, *arguments: Any) -> None:
        cuts.append(arguments[-2])
        sweep(self, *arguments)

    monkeypatch.setattr(vectors, "LEAST_IN_HALVES", 0)
    monkeypatch.setattr(Resident, "sweep", record_cut)
    found = pagerank(graph)
    halved = 8 if not disjoint else found.convergence.sweeps
    assert [cut > 0 for cut in cuts] == [i < halved for i in range(found.convergence.sweeps)]
    bound = whole.convergence.error_bound + found.convergence.error_bound
    assert np.abs(found.values - whole.values).sum() <= bound


# -- partitions ------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [{40}, {100, 130}, {61, 62, 200, 300}, set(range(25, 900, 125))])
@pytest.mark.parametrize("halves", [False, True])
def test_pagerank_survives_lost_workers(
    tangle: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: set[int], halves: bool
) -> None:
    crews: list[Lossy] = []
    if halves:
        use_halves(monkeypatch, 0.0)

    def hire(*arguments: Any) -> Lossy:
        crews.append(Lossy(*arguments))
        crews[-1].lost = lost
        return crews[-1]

    blocked = in_blocks(tangle, tmp_path / "split", 3, hire)
    for options in ({}, {"until_top_stable": 20}, {"dangling": "remove"}):
        assert equal_ranks(pagerank(blocked, **options), pagerank(tangle, **options))
        assert crews[-1].losses >= 1


@pytest.mark.parametrize("first", [3, 60])
def test_pagerank_fails_when_workers_are_always_lost(
    tangle: Graph, tmp_path: Path, first: int
) -> None:
    def hire(*arguments: Any) -> Lossy:
        crew = Lossy(*arguments)
        crew.lost = set(range(first, 100_000))
        return crew

    blocked = in_blocks(tangle, tmp_path / "split", 3, hire)
    with pytest.raises(WorkerLost, match="somebody was lost"):
        pagerank(blocked, dangling="remove")


def test_pagerank_start_by_name_is_equal_in_all_forms(
    forms: dict[bool, list[Formed]],
) -> None:
    start = {"p1": 0.5, "a": 0.25, "gone": 0.25}
    found = [
        pagerank(graph, dangling="remove", start=start, **extra) for graph, extra in forms[False]
    ]
    assert all(equal_ranks(each, found[0]) for each in found)
    assert {each.started for each in found} == {2}
