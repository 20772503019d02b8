"""PageRank by weights: the dense solution, NetworkX, and the ranks of equal weights to the bit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite.cli.main import main
from cocite.ranking import Dangling, Residual, Sweeps, pagerank
from tests.conftest import MakeGraph
from tests.oracles import pagerank as exact
from tests.oracles.graphs import WEIGHTS, Edges, weighted_graphs
from tests.ranking.test_pagerank import TIGHT, close

WEIGHTED: dict[str, Any] = {"weight_column": 3}


def triples(edges: Edges, weights: list[float]) -> list[tuple[int, int, float]]:
    return [(a, b, w) for (a, b), w in zip(edges, weights, strict=True)]


@settings(max_examples=40)
@given(weighted_graphs(), st.floats(0.05, 0.95), st.booleans(), st.data())
def test_every_way_with_dangling_nodes_is_the_dense_solution(
    make_graph: MakeGraph,
    graph: tuple[int, Edges, list[float]],
    damping: float,
    loops: bool,
    data: st.DataObject,
) -> None:
    n, edges, weights = graph
    if loops:
        more = data.draw(st.dictionaries(st.integers(0, n - 1), WEIGHTS))
        edges, weights = edges + [(v, v) for v in more], weights + list(more.values())
    if not edges:
        edges, weights = [(0, n - 1)], [3.0]
    stored = make_graph(triples(edges, weights), range(n), keep_self_loops=True, **WEIGHTED)
    toward = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), float)
    toward[data.draw(st.integers(0, n - 1))] += 1
    uniform = np.full(n, 1 / n)
    for teleport in (None, toward):
        options: dict[str, Any] = {"damping": damping, "personalization": teleport, "stop": TIGHT}
        spread = pagerank(stored, dangling="spread", **options)
        assert close(spread.values, exact.pagerank(n, edges, damping, teleport, None, weights))
        even = pagerank(stored, dangling="uniform", **options)
        assert close(even.values, exact.pagerank(n, edges, damping, teleport, uniform, weights))
        for found in (spread, even):
            assert found.weighted
            assert abs(found.values.sum() - 1) < 1e-12
            assert found.convergence.error_bound < 1e-10
    plain = pagerank(stored, damping=damping, weighted=False, stop=TIGHT)
    assert not plain.weighted
    assert close(plain.values, exact.pagerank(n, edges, damping))


@settings(max_examples=25)
@given(weighted_graphs(), st.integers(0, 3))
def test_removed_nodes_take_the_weights_of_links_to_them_away(
    make_graph: MakeGraph, graph: tuple[int, Edges, list[float]], removals: int
) -> None:
    n, edges, weights = graph
    gone = exact.removed(n, edges, removals)
    if len(gone) == n or not edges:
        return
    stored = make_graph(triples(edges, weights), range(n), **WEIGHTED)
    left = sorted(set(range(n)) - gone)
    index = {node: i for i, node in enumerate(left)}
    inner = [
        (index[a], index[b], w) for a, b, w in triples(edges, weights) if a in index and b in index
    ]
    truth = np.zeros(n)
    truth[left] = exact.pagerank(
        len(left), [(a, b) for a, b, _ in inner], 0.85, weights=[w for _, _, w in inner]
    )
    found = pagerank(stored, dangling=Dangling.REMOVE, removals=removals, stop=TIGHT)
    assert close(found.values, truth)


@pytest.fixture
def rows() -> list[tuple[str, str, float]]:
    rng = np.random.default_rng(5)
    ends = {(a, b) for a, b in rng.zipf(1.6, (3000, 2)).tolist() if b < 400}
    weights = np.exp(rng.normal(0, 2, len(ends))).astype(np.float32).tolist()
    return [(f"n{a}", f"n{b}", w) for (a, b), w in zip(sorted(ends), weights, strict=True)]


@pytest.fixture
def graph(make_graph: MakeGraph, rows: list[tuple[str, str, float]]) -> cocite.Graph:
    return make_graph(rows, keep_self_loops=True, **WEIGHTED)


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("dangling", list(Dangling))
def test_equal_weights_are_no_weights_to_the_bit(
    make_graph: MakeGraph, rows: list[tuple[str, str, float]], precision: str, dangling: Dangling
) -> None:
    options: dict[str, Any] = {"precision": precision, "dangling": dangling}
    options["stop"] = Residual(1e-6) | Sweeps(200)
    plain = pagerank(make_graph([row[:2] for row in rows], keep_self_loops=True), **options)
    for weight in (1, 0.125):
        equal = [(a, b, weight) for a, b, _ in rows]
        found = pagerank(make_graph(equal, keep_self_loops=True, **WEIGHTED), **options)
        assert found.weighted
        assert (found.values == plain.values).all()
        assert found.convergence == plain.convergence


def test_networkx_finds_the_same(data: Callable[[str], Path], tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx", reason="needs networkx")
    pytest.importorskip("scipy", reason="networkx.pagerank needs scipy")
    lines = data("wiki-Vote/wiki-Vote.txt").read_text().splitlines()
    rng = np.random.default_rng(8)
    pairs = [line.split() for line in lines if not line.startswith("#")]
    weights = np.exp(rng.normal(0, 2, len(pairs))).tolist()
    links = tmp_path / "links.tsv"
    links.write_text(
        "".join(f"{a}\t{b}\t{w!r}\n" for (a, b), w in zip(pairs, weights, strict=True))
    )
    graph = cocite.ingest(links, tmp_path / "g", **WEIGHTED)
    assert graph.in_weights is not None
    other = networkx.DiGraph()
    other.add_nodes_from(range(graph.nodes))
    targets = np.repeat(np.arange(graph.nodes), np.diff(graph.in_offsets).astype(np.int64))
    other.add_weighted_edges_from(
        zip(graph.in_sources.tolist(), targets.tolist(), graph.in_weights.tolist(), strict=True)
    )
    ranks = networkx.pagerank(other, tol=1e-13 / graph.nodes * 100, max_iter=500)
    found = pagerank(graph, stop=Residual(1e-12))
    assert close(found.values, np.array([ranks[v] for v in range(graph.nodes)]), 1e-9)
    assert not close(found.values, pagerank(graph, weighted=False).values, 0.1)


def test_a_source_shares_its_rank_by_weight_alone(make_graph: MakeGraph) -> None:
    """Closed form: s links to a and b with weights 3 and 1, they link back."""
    graph = make_graph([("s", "a", 3), ("s", "b", 1), ("a", "s", 9), ("b", "s", 0.1)], **WEIGHTED)
    d, rank = 0.85, dict(pagerank(graph, stop=TIGHT).top(3))
    assert rank["s"] == pytest.approx((0.05 + d * 0.95 + d * 0.05) / (1 + d), abs=1e-9)
    assert rank["a"] == pytest.approx(0.05 + d * 0.75 * rank["s"], abs=1e-12)
    assert rank["b"] == pytest.approx(0.05 + d * 0.25 * rank["s"], abs=1e-12)


def test_the_command_line_says_that_weights_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("links.tsv").write_text("s\ta\t3\ns\tb\t1\na\ts\t1\nb\ts\t1\n")
    assert main(["ingest", "links.tsv", "-o", "g", "--weight-column", "3"]) == 0
    capsys.readouterr()
    assert main(["rank", "g", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["weighted"] is True
    assert [hit["node"] for hit in json.loads(out)["top"]] == ["s", "a", "b"]
    assert "links count by their weights" in err
    assert main(["rank", "g", "--format", "json", "--unweighted"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["weighted"] is False
    assert found["top"][1]["rank"] == found["top"][2]["rank"]
    assert "weights" not in err
