"""Ranks by trusted nodes, and the spam mass, against dense solutions and closed forms."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite.cli.main import main
from cocite.errors import UnknownNode, UsageError
from cocite.options.rank import RankOptions
from cocite.ranking import pagerank, plan_ranks
from tests.conftest import MakeGraph
from tests.oracles import pagerank as exact
from tests.oracles.graphs import Edges, weighted_graphs

FARM = [(f"farm{i}", "target") for i in range(20)] + [("target", f"farm{i}") for i in range(20)]
GOOD = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "a"), ("a", "end")]


@settings(max_examples=25)
@given(
    weighted_graphs(),
    st.booleans(),
    st.floats(0.05, 0.95),
    st.floats(0, 1),
    st.sampled_from(["spread", "uniform"]),
    st.data(),
)
def test_trust_and_spam_mass_match_dense_solutions(
    make_graph: MakeGraph,
    graph: tuple[int, Edges, list[float]],
    weighted: bool,
    damping: float,
    good_fraction: float,
    dangling: str,
    data: st.DataObject,
) -> None:
    n, edges, drawn = graph
    weights = drawn if weighted and edges else None
    rows = [(a, b, w) for (a, b), w in zip(edges, drawn, strict=True)] if weights else edges
    stored = make_graph(rows, range(n), keep_self_loops=True, weight_column=3 if weights else None)
    trust = data.draw(st.dictionaries(st.integers(0, n - 1), st.integers(1, 5), min_size=1))
    seeds = np.zeros(n)
    seeds[list(trust)] = list(trust.values())
    found = pagerank(
        stored,
        trust={str(node): weight for node, weight in trust.items()},
        good_fraction=good_fraction,
        options=RankOptions(tolerance=1e-13, max_sweeps=5000, damping=damping, dangling=dangling),
    )
    share = np.full(n, 1 / n) if dangling == "uniform" else None
    truth = exact.pagerank(n, edges, damping, seeds, share, weights)
    mass = exact.spam_mass(n, edges, damping, seeds, good_fraction, weights)
    assert found.trust is not None
    assert found.spam_mass is not None
    assert np.abs(found.trust - truth).sum() < 1e-11
    # y[v] >= (1 - damping) / n, so a quotient multiplies errors of y by the inverse
    assert np.abs(found.spam_mass - mass).max() < 1e-11 * n / (1 - damping) ** 2
    alone = pagerank(stored, options=RankOptions(damping=damping, dangling=dangling))
    assert np.abs(found.values - alone.values).sum() < 2e-8 / (1 - damping)


def test_trust_of_link_farm_is_zero(make_graph: MakeGraph) -> None:
    found = pagerank(make_graph(GOOD + FARM), trust=["a"], good_fraction=0.2)
    assert found["target"] == pytest.approx((max(found.values), 0.0, 1.0))
    assert found.trust is not None
    assert found.trust.sum() == pytest.approx(1)
    assert all(found[name][1] > 0 and found[name][2] < 0.8 for name in ("a", "b", "c", "end"))


def test_trust_of_all_nodes_equals_ranks(
    make_graph: MakeGraph,
) -> None:
    graph = make_graph(GOOD + FARM)
    found = pagerank(graph, trust=list(graph.names), good_fraction=0.7)
    assert found.trust is not None
    assert found.spam_mass is not None
    assert found.trust.tobytes() == found.values.tobytes()
    np.testing.assert_allclose(found.spam_mass, 0.3)


def test_trust_of_removed_nodes_is_zero(make_graph: MakeGraph) -> None:
    found = pagerank(make_graph(GOOD + FARM), trust=["a"], dangling="remove")
    assert found["end"] == (0, 0, 0)
    assert found["target"][2] == 1


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"trust": ["nobody"]}, UnknownNode, "no node is named 'nobody'"),
        ({"trust": []}, UsageError, "trust must have finite weights"),
        ({"trust": "a"}, UsageError, "trust is a single string"),
        ({"trust": ["end"], "dangling": "remove"}, UsageError, "over the ranked"),
        ({"trust": ["a"], "personalization": ["b"]}, UsageError, "omit personalization"),
        ({"trust": ["a"], "good_fraction": 1.5}, UsageError, "good_fraction"),
    ],
)
def test_trust_refuses_invalid_options(
    make_graph: MakeGraph, options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        pagerank(make_graph(GOOD + FARM), **options)


def test_plan_ranks_counts_trust(make_graph: MakeGraph) -> None:
    graph = make_graph(GOOD + FARM)
    memory = plan_ranks(graph, 1 << 30).memory
    assert plan_ranks(graph, 1 << 30, trust=True).memory == memory + 24 * graph.nodes


def test_rank_trust_prints_and_writes_trust(
    make_graph: MakeGraph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = make_graph(GOOD + FARM)
    seeds, out = tmp_path / "trusted.txt", tmp_path / "r.csv"
    seeds.write_text("a\nb\n")
    command = ["rank", str(graph.path), "--trust", str(seeds), "-k", "2"]
    found = pagerank(graph, trust=["a", "b"])
    titles = ("node", "rank", "trust", "spam_mass")
    rows = [dict(zip(titles, (node, *found[node]), strict=True)) for node in found]
    assert main([*command, "--format", "json", "-o", str(out)]) == 0
    assert (
        json.loads(capsys.readouterr().out)["top"] == sorted(rows, key=lambda row: -row["rank"])[:2]
    )
    assert out.read_text().splitlines()[0] == "node,rank,trust,spam_mass"
    assert cocite.pagerank(graph, start=out).started == graph.nodes
    assert main(command) == 0
    top = capsys.readouterr().out.splitlines()
    assert top[0].split() == ["place", "rank", "trust", "spam", "mass", "node"]
    assert top[2].split()[2:] == ["0.000e+00", "1.000", "target"]
    for extra in (["--toward", "a"], ["--score", "hubs"]):
        assert main([*command, *extra]) == 2
