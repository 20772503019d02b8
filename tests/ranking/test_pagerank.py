"""PageRank against the dense solution, closed forms, and other people's code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite.errors import UnknownNode, UsageError
from cocite.ranking import Convergence, Dangling, Residual, Sweeps, TopOrder, pagerank
from tests.conftest import MakeGraph
from tests.oracles import pagerank as exact
from tests.oracles.graphs import Edges, graphs

TIGHT = Residual(1e-13) | Sweeps(5000)


def close(found: np.ndarray, truth: np.ndarray, tolerance: float = 1e-11) -> bool:
    return float(np.abs(found - truth).sum()) < tolerance


@settings(max_examples=40)
@given(graphs(), st.floats(0.05, 0.95), st.booleans(), st.data())
def test_every_way_with_dangling_nodes_is_the_dense_solution(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    damping: float,
    loops: bool,
    data: st.DataObject,
) -> None:
    n, edges = graph
    if loops:
        edges = edges + [(v, v) for v in data.draw(st.sets(st.integers(0, n - 1)))]
    stored = make_graph(edges, range(n), keep_self_loops=True)
    weights = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), float)
    weights[data.draw(st.integers(0, n - 1))] += 1
    uniform = np.full(n, 1 / n)
    for teleport in (None, weights):
        options: dict[str, Any] = {"damping": damping, "personalization": teleport, "stop": TIGHT}
        spread = pagerank(stored, dangling="spread", **options)
        assert close(spread.values, exact.pagerank(n, edges, damping, teleport))
        even = pagerank(stored, dangling="uniform", **options)
        assert close(even.values, exact.pagerank(n, edges, damping, teleport, uniform))
        for found in (spread, even):
            assert abs(found.values.sum() - 1) < 1e-12
            assert found.convergence.error_bound < 1e-10


@settings(max_examples=25)
@given(graphs(), st.integers(0, 4))
def test_removed_nodes_have_no_rank_and_the_others_that_of_what_is_left(
    make_graph: MakeGraph, graph: tuple[int, Edges], removals: int
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    gone = exact.removed(n, edges, removals)
    if len(gone) == n:
        with pytest.raises(UsageError, match="leave nothing"):
            pagerank(stored, dangling="remove", removals=removals)
        return
    left = sorted(set(range(n)) - gone)
    index = {node: i for i, node in enumerate(left)}
    inner = [(index[a], index[b]) for a, b in edges if a in index and b in index]
    truth = np.zeros(n)
    truth[left] = exact.pagerank(len(left), inner, 0.85)
    found = pagerank(stored, dangling=Dangling.REMOVE, removals=removals, stop=TIGHT)
    assert close(found.values, truth)
    assert found.removed == len(gone)


@settings(max_examples=25)
@given(graphs(), st.sampled_from([1e-2, 1e-4, 1e-8]))
def test_the_error_is_within_its_bound_and_the_residual_within_its_tolerance(
    make_graph: MakeGraph, graph: tuple[int, Edges], tolerance: float
) -> None:
    n, edges = graph
    found = pagerank(make_graph(edges, range(n)), stop=Residual(tolerance))
    error = np.abs(found.values - exact.pagerank(n, edges, 0.85)).sum()
    assert error <= found.convergence.error_bound + 1e-14
    assert found.convergence.residual <= tolerance
    assert found.convergence.converged


@pytest.mark.parametrize("n", [3, 10, 50])
def test_a_clique_with_a_chain_has_its_closed_form(make_graph: MakeGraph, n: int) -> None:
    """Nodes 0..n-1 all link to each other, and n-1 also to the first of a chain of three.

    With z = y / out-degree of a chain's node, rank passes down it: y1 = d y_last / n + b,
    y2 = d y1 + b, y3 = d y2 + b; in the clique, all but the last are equal.
    """
    d = 0.85
    clique = [(a, b) for a in range(n) for b in range(n) if a != b]
    edges = [*clique, (n - 1, n), (n, n + 1), (n + 1, n + 2)]
    # Two unknowns: a (inner nodes) and z (the node with the exit), for base 1.
    a_row = [1 - d * (n - 2) / (n - 1), -d / n]
    z_row = [-d * (n - 1) / (n - 1), 1.0]
    a, z = np.linalg.solve([a_row, z_row], [1, 1])
    y1 = d * z / n + 1
    y = np.array([a] * (n - 1) + [z, y1, d * y1 + 1, d * (d * y1 + 1) + 1])
    found = pagerank(make_graph(edges), stop=TIGHT)
    assert close(found.values, y / y.sum())


def test_a_ring_and_a_graph_without_links_are_uniform(make_graph: MakeGraph) -> None:
    ring = pagerank(make_graph([(i, (i + 1) % 7) for i in range(7)]), stop=TIGHT)
    assert close(ring.values, np.full(7, 1 / 7))
    bare = pagerank(make_graph([], range(5)))
    assert close(bare.values, np.full(5, 1 / 5))
    assert bare.convergence.converged


@pytest.mark.parametrize("name", ["wiki-Vote/wiki-Vote.txt", "cit-HepPh/cit-HepPh.txt.gz"])
def test_real_graphs_agree_with_networkx(
    data: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    networkx = pytest.importorskip("networkx", reason="needs networkx")
    pytest.importorskip("scipy", reason="networkx.pagerank needs scipy")
    graph = cocite.ingest(data(name), tmp_path / "g")
    other = networkx.DiGraph()
    other.add_nodes_from(range(graph.nodes))
    other.add_edges_from((int(u), v) for v in range(graph.nodes) for u in graph.in_neighbors(v))
    ranks = networkx.pagerank(other, tol=1e-13 / graph.nodes * 100, max_iter=500)
    found = pagerank(graph, stop=Residual(1e-12))
    assert close(found.values, np.array([ranks[v] for v in range(graph.nodes)]), 1e-9)


@pytest.mark.parametrize(
    "name",
    ["wiki-Vote/wiki-Vote.txt", "cit-HepPh/cit-HepPh.txt.gz", "web-NotreDame/web-NotreDame.txt.gz"],
)
def test_real_graphs_agree_with_igraph(
    data: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    igraph = pytest.importorskip("igraph", reason="needs igraph")
    graph = cocite.ingest(data(name), tmp_path / "g")
    targets = np.repeat(np.arange(graph.nodes), np.diff(graph.in_offsets).astype(np.int64))
    links = np.column_stack([graph.in_sources.astype(np.int64), targets])
    other = igraph.Graph(n=graph.nodes, edges=links, directed=True)
    found = pagerank(graph, stop=Residual(1e-13) | Sweeps(1000))
    assert close(found.values, np.array(other.pagerank()), 1e-10)


@pytest.fixture
def graph(make_graph: MakeGraph) -> cocite.Graph:
    rng = np.random.default_rng(5)
    return make_graph([(f"n{a}", f"n{b}") for a, b in rng.zipf(1.6, (3000, 2)).tolist() if b < 400])


def test_a_warm_start_ends_at_the_same_ranks_in_fewer_sweeps(graph: cocite.Graph) -> None:
    cold = pagerank(graph, stop=Residual(1e-10))
    warm = pagerank(graph, stop=Residual(1e-10), start=cold.values)
    assert warm.convergence.sweeps < cold.convergence.sweeps / 2
    assert close(warm.values, cold.values, 1e-9)


def test_single_precision_is_within_its_own_rounding(graph: cocite.Graph) -> None:
    double = pagerank(graph, stop=TIGHT)
    single = pagerank(graph, stop=Residual(1e-6), precision="single")
    assert single.convergence.converged
    assert close(single.values, double.values, 1e-5)


def test_personalization_may_be_names_weights_or_a_vector(graph: cocite.Graph) -> None:
    vector = np.zeros(graph.nodes)
    vector[[graph.names.id("n1"), graph.names.id("n7")]] = 3
    by_vector = pagerank(graph, personalization=vector)
    assert close(pagerank(graph, personalization=["n1", "n7"]).values, by_vector.values)
    assert close(pagerank(graph, personalization={"n1": 2, "n7": 2}).values, by_vector.values)


def test_not_converged_is_said(graph: cocite.Graph) -> None:
    found = pagerank(graph, stop=Residual(1e-10) | Sweeps(2)).convergence
    bound = pytest.approx(found.residual / 0.15)
    assert found == Convergence(2, found.residual, bound, "2 sweeps", False)  # type: ignore[arg-type]
    assert found.residual > 1e-10


def test_a_top_order_that_stands_still_stops_the_iteration(graph: cocite.Graph) -> None:
    found = pagerank(graph, stop=TopOrder(10, sweeps=2) | Residual(1e-13))
    assert found.convergence.reason == "top 10 in the same order for 2 sweeps"
    exact_order = pagerank(graph, stop=TIGHT).top(10)
    assert [node for node, _ in found.top(10)] == [node for node, _ in exact_order]


def test_the_top_is_sorted_with_ties_by_id(make_graph: MakeGraph) -> None:
    ranks = pagerank(make_graph([("h", "b"), ("h", "a"), ("h", "c"), ("a", "h")]))
    assert [node for node, _ in ranks.top(10)] == ["h", "a", "b", "c"]
    assert len(ranks.top(2)) == 2


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"damping": 1}, UsageError, "damping is 1"),
        ({"dangling": "drop"}, UsageError, "dangling is 'drop'; it is spread, uniform, remove"),
        ({"precision": "half"}, UsageError, "precision is 'half'"),
        ({"personalization": ["nobody"]}, UnknownNode, "no node is named 'nobody'"),
        ({"personalization": "n1"}, UsageError, "is one text"),
        ({"personalization": []}, UsageError, "not 0 for all"),
        ({"personalization": np.array([-1.0])}, UsageError, "non-negative"),
        ({"start": np.ones(3)}, UsageError, "start is a non-negative vector"),
        ({"removals": -1, "dangling": "remove"}, UsageError, "removals is -1"),
    ],
)
def test_wrong_use_is_refused(
    graph: cocite.Graph, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        pagerank(graph, **options)


@pytest.mark.parametrize("rule", [lambda: Residual(0), lambda: Sweeps(0), lambda: TopOrder(0)])
def test_rules_that_cannot_hold_are_refused(rule: Callable[[], object]) -> None:
    with pytest.raises(UsageError):
        rule()


@pytest.mark.parametrize("options", [{}, {"blocks": 2}, {"memory": "20MB"}])
def test_an_empty_graph_has_no_ranks(empty_graph: cocite.Graph, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="has no nodes: there is nothing to rank"):
        pagerank(empty_graph, **options)


def test_every_rule_ends_by_count(graph: cocite.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["cocite.ranking.pagerank"], "_PATIENCE", 7)
    found = pagerank(graph, stop=Residual(1e-300)).convergence
    assert (found.sweeps, found.reason, found.converged) == (7, "7 sweeps", False)


def test_two_solutions_are_converged_only_if_both_are(graph: cocite.Graph) -> None:
    """The first begins at its end, the second from nothing: it is the second that is not done."""
    toward = ["n1", "n7"]
    first = pagerank(graph, personalization=toward, stop=TIGHT)
    both = pagerank(
        graph,
        personalization=toward,
        dangling="uniform",
        start=first.values,
        stop=Residual(1e-8) | Sweeps(3),
    )
    assert not both.convergence.converged


def test_rounding_is_no_floor_above_the_tolerances_of_double(
    data: Callable[[str], Path], tmp_path: Path
) -> None:
    """Sums over 240,000 rows, one by one, would end the iteration at 1e-12."""
    graph = cocite.ingest(data("cnr-2000/cnr-2000.edges.txt.gz"), tmp_path / "g")
    found = pagerank(graph, stop=Residual(1e-14) | Sweeps(150)).convergence
    assert found.converged
    assert found.sweeps < 120
    assert found.residual < 1e-13


def test_a_balance_within_rounding_is_no_floor(tmp_path: Path) -> None:
    """Rescaling by the noise of the sums would hold the residual at 1e-15 for ever."""
    graph = cocite.generate_web(tmp_path / "g", nodes=300, links=2000, seed=1)
    found = pagerank(graph, stop=Residual(2e-16) | Sweeps(100)).convergence
    assert found.converged
    assert found.sweeps < 50
