"""PageRank, weighted or not, against the dense solution and closed forms."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite.errors import UnknownNode, UsageError
from cocite.options.rank import RankOptions
from cocite.ranking import Convergence, Dangling, pagerank
from tests.conftest import MakeGraph
from tests.oracles import pagerank as exact
from tests.oracles.graphs import WEIGHTS, Edges, graphs, weighted_graphs

TIGHT = RankOptions(tolerance=1e-13, max_sweeps=5000)


def close(found: np.ndarray, truth: np.ndarray, tolerance: float = 1e-11) -> bool:
    return float(np.abs(found - truth).sum()) < tolerance


def make_stored(
    make_graph: MakeGraph, n: int, edges: Edges, weights: list[float] | None
) -> cocite.Graph:
    if not weights:
        return make_graph(edges, range(n), keep_self_loops=True)
    rows = [(a, b, w) for (a, b), w in zip(edges, weights, strict=True)]
    return make_graph(rows, range(n), keep_self_loops=True, weight_column=3)


@settings(max_examples=25)
@given(weighted_graphs(), st.booleans(), st.floats(0.05, 0.95), st.booleans(), st.data())
def test_pagerank_dangling_modes_match_dense_solution(
    make_graph: MakeGraph,
    monkeypatch: pytest.MonkeyPatch,
    graph: tuple[int, Edges, list[float]],
    weighted: bool,
    damping: float,
    loops: bool,
    data: st.DataObject,
) -> None:
    monkeypatch.setattr("cocite.ranking.vectors.LEAST_IN_HALVES", data.draw(st.integers(0, 50)))
    n, edges, drawn = graph
    if loops:
        self_loops = data.draw(st.dictionaries(st.integers(0, n - 1), WEIGHTS))
        edges, drawn = edges + [(v, v) for v in self_loops], drawn + list(self_loops.values())
    weights = drawn if weighted and edges else None
    stored = make_stored(make_graph, n, edges, weights)
    toward = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), float)
    toward[data.draw(st.integers(0, n - 1))] += 1
    uniform = np.full(n, 1 / n)
    for teleport in (None, toward):
        options: dict[str, Any] = {
            "damping": damping,
            "personalization": teleport,
            "options": TIGHT,
        }
        spread = pagerank(stored, dangling="spread", **options)
        assert close(spread.values, exact.pagerank(n, edges, damping, teleport, None, weights))
        even = pagerank(stored, dangling="uniform", **options)
        assert close(even.values, exact.pagerank(n, edges, damping, teleport, uniform, weights))
        for found in (spread, even):
            assert found.weighted is (weights is not None)
            assert abs(found.values.sum() - 1) < 1e-12
            assert found.convergence.error_bound < 1e-10
    plain = pagerank(stored, damping=damping, weighted=False, options=TIGHT)
    assert not plain.weighted
    assert close(plain.values, exact.pagerank(n, edges, damping))


@settings(max_examples=25)
@given(weighted_graphs(), st.booleans(), st.integers(0, 4))
def test_pagerank_dangling_remove_ranks_only_remaining_nodes(
    make_graph: MakeGraph, graph: tuple[int, Edges, list[float]], weighted: bool, removals: int
) -> None:
    n, edges, drawn = graph
    stored = make_stored(make_graph, n, edges, drawn if weighted and edges else None)
    removed = exact.removed(n, edges, removals)
    if len(removed) == n:
        with pytest.raises(UsageError, match=r"no nodes of .* are left"):
            pagerank(stored, dangling="remove", removals=removals)
        return
    remaining = sorted(set(range(n)) - removed)
    index = {node: i for i, node in enumerate(remaining)}
    inner = [
        (index[a], index[b], w if weighted else 1)
        for (a, b), w in zip(edges, drawn, strict=True)
        if a in index and b in index
    ]
    truth = np.zeros(n)
    truth[remaining] = exact.pagerank(
        len(remaining), [(a, b) for a, b, _ in inner], 0.85, weights=[w for _, _, w in inner]
    )
    found = pagerank(stored, dangling=Dangling.REMOVE, removals=removals, options=TIGHT)
    assert close(found.values, truth)
    assert found.removed == len(removed)


@settings(max_examples=25)
@given(graphs(), st.sampled_from([1e-2, 1e-4, 1e-8]))
def test_pagerank_error_is_within_error_bound(
    make_graph: MakeGraph, graph: tuple[int, Edges], tolerance: float
) -> None:
    n, edges = graph
    found = pagerank(make_graph(edges, range(n)), tolerance=tolerance)
    error = np.abs(found.values - exact.pagerank(n, edges, 0.85)).sum()
    assert error <= found.convergence.error_bound + 1e-14
    assert found.convergence.residual <= tolerance
    assert found.convergence.converged


@pytest.mark.parametrize("n", [3, 10, 50])
def test_pagerank_of_clique_with_chain_matches_closed_form(make_graph: MakeGraph, n: int) -> None:
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
    found = pagerank(make_graph(edges), options=TIGHT)
    assert close(found.values, y / y.sum())


def test_pagerank_of_ring_or_no_links_is_uniform(make_graph: MakeGraph) -> None:
    ring = pagerank(make_graph([(i, (i + 1) % 7) for i in range(7)]), options=TIGHT)
    assert close(ring.values, np.full(7, 1 / 7))
    bare = pagerank(make_graph([], range(5)))
    assert close(bare.values, np.full(5, 1 / 5))
    assert bare.convergence.converged


@pytest.fixture(scope="module")
def graph(module_graph: MakeGraph) -> cocite.Graph:
    rng = np.random.default_rng(5)
    return module_graph(
        [(f"n{a}", f"n{b}") for a, b in rng.zipf(1.6, (3000, 2)).tolist() if b < 400]
    )


def test_pagerank_single_precision_is_within_rounding(graph: cocite.Graph) -> None:
    double = pagerank(graph, options=TIGHT)
    single = pagerank(graph, tolerance=1e-6, precision="single")
    assert single.convergence.converged
    assert close(single.values, double.values, 1e-5)


def test_pagerank_personalization_accepts_names_or_vector(graph: cocite.Graph) -> None:
    vector = np.zeros(graph.nodes)
    vector[[graph.names.id("n1"), graph.names.id("n7")]] = 3
    by_vector = pagerank(graph, personalization=vector)
    assert close(pagerank(graph, personalization=["n1", "n7"]).values, by_vector.values)
    assert close(pagerank(graph, personalization={"n1": 2, "n7": 2}).values, by_vector.values)


def test_pagerank_reports_not_converged(graph: cocite.Graph) -> None:
    found = pagerank(graph, tolerance=1e-10, max_sweeps=2).convergence
    bound = pytest.approx(found.residual / 0.15)
    assert found == Convergence(2, found.residual, bound, "2 sweeps", False)  # type: ignore[arg-type]
    assert found.residual > 1e-10


def test_pagerank_until_top_stable_stops_iteration(graph: cocite.Graph) -> None:
    found = pagerank(graph, until_top_stable=10, tolerance=1e-13)
    assert found.convergence.reason == "top 10 in the same order for 3 sweeps"
    exact_order = pagerank(graph, options=TIGHT).top(10)
    assert [node for node, _ in found.top(10)] == [node for node, _ in exact_order]


def test_ranks_top_breaks_ties_by_id(make_graph: MakeGraph) -> None:
    ranks = pagerank(make_graph([("h", "b"), ("h", "a"), ("h", "c"), ("a", "h")]))
    assert [node for node, _ in ranks.top(10)] == ["h", "a", "b", "c"]
    assert len(ranks.top(2)) == 2


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"damping": 1}, UsageError, "damping is 1"),
        (
            {"dangling": "drop"},
            UsageError,
            "dangling is 'drop'; it must be spread or uniform or remove",
        ),
        ({"precision": "half"}, UsageError, "precision is 'half'"),
        ({"personalization": ["nobody"]}, UnknownNode, "no node is named 'nobody'"),
        ({"personalization": "n1"}, UsageError, "is a single string"),
        ({"personalization": []}, UsageError, "with a positive, finite sum"),
        ({"personalization": np.array([-1.0])}, UsageError, "finite weights, 0 or more"),
        ({"start": np.ones(3)}, UsageError, "start must be"),
        ({"removals": -1, "dangling": "remove"}, UsageError, "removals is -1"),
    ],
)
def test_pagerank_refuses_invalid_options(
    graph: cocite.Graph, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        pagerank(graph, **options)


@pytest.mark.parametrize("options", [{}, {"blocks": 2}, {"memory": "20MB"}])
def test_pagerank_refuses_empty_graph(empty_graph: cocite.Graph, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="has no nodes, so there is nothing to rank"):
        pagerank(empty_graph, **options)


def test_pagerank_converges_only_if_both_solutions_do(graph: cocite.Graph) -> None:
    """The first solution starts converged; the second, from nothing, is not done."""
    toward = ["n1", "n7"]
    first = pagerank(graph, personalization=toward, options=TIGHT)
    both = pagerank(
        graph,
        personalization=toward,
        dangling="uniform",
        start=first.values,
        tolerance=1e-8,
        max_sweeps=3,
    )
    assert not both.convergence.converged


@pytest.mark.long
def test_pagerank_rounding_does_not_limit_tolerance(
    data: Callable[[str], Path], tmp_path: Path
) -> None:
    """Sums over 240,000 rows, one by one, would end the iteration at 1e-12."""
    graph = cocite.ingest(data("cnr-2000/cnr-2000.edges.txt.gz"), tmp_path / "g")
    found = pagerank(graph, tolerance=1e-14, max_sweeps=150).convergence
    assert found.converged
    assert found.sweeps < 120
    assert found.residual < 1e-13


def test_pagerank_rescaling_does_not_limit_tolerance(tmp_path: Path) -> None:
    """Rescaling by the noise of the sums would hold the residual at 1e-15 forever."""
    graph = cocite.generate_web(tmp_path / "g", nodes=300, links=2000, seed=1)
    found = pagerank(graph, tolerance=2e-16, max_sweeps=100).convergence
    assert found.converged
    assert found.sweeps < 50


# -- weights ---------------------------------------------------------------------------------


@pytest.fixture
def rows() -> list[tuple[str, str, float]]:
    rng = np.random.default_rng(5)
    ends = {(a, b) for a, b in rng.zipf(1.6, (3000, 2)).tolist() if b < 400}
    weights = np.exp(rng.normal(0, 2, len(ends))).astype(np.float32).tolist()
    return [(f"n{a}", f"n{b}", w) for (a, b), w in zip(sorted(ends), weights, strict=True)]


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("dangling", list(Dangling))
def test_pagerank_equal_weights_match_unweighted(
    make_graph: MakeGraph, rows: list[tuple[str, str, float]], precision: str, dangling: Dangling
) -> None:
    options: dict[str, Any] = {"precision": precision, "dangling": dangling}
    options |= {"tolerance": 1e-6, "max_sweeps": 200}
    plain = pagerank(make_graph([row[:2] for row in rows], keep_self_loops=True), **options)
    for weight in (1, 0.125):
        equal = [(a, b, weight) for a, b, _ in rows]
        found = pagerank(make_graph(equal, keep_self_loops=True, weight_column=3), **options)
        assert found.weighted
        assert (found.values == plain.values).all()
        assert found.convergence == plain.convergence


def test_pagerank_shares_rank_by_weight(make_graph: MakeGraph) -> None:
    """Closed form: s links to a and b with weights 3 and 1, they link back."""
    graph = make_graph(
        [("s", "a", 3), ("s", "b", 1), ("a", "s", 9), ("b", "s", 0.1)], weight_column=3
    )
    d, rank = 0.85, dict(pagerank(graph, options=TIGHT).top(3))
    assert rank["s"] == pytest.approx((0.05 + d * 0.95 + d * 0.05) / (1 + d), abs=1e-9)
    assert rank["a"] == pytest.approx(0.05 + d * 0.75 * rank["s"], abs=1e-12)
    assert rank["b"] == pytest.approx(0.05 + d * 0.25 * rank["s"], abs=1e-12)


def test_ranks_support_lookup_by_name_and_tables() -> None:
    ranks = pagerank([("a", "b"), ("b", "a"), ("c", "a")])
    named = dict(zip(ranks.names, ranks.values.tolist(), strict=True))
    assert {name: ranks[name] for name in ranks} == named
    assert len(ranks) == 3
    assert "c" in ranks
    assert "d" not in ranks
    with pytest.raises(UnknownNode, match="no node is named 'd'"):
        ranks["d"]
    for table in (ranks.to_pandas(), ranks.to_polars(), ranks.to_arrow().to_pandas()):
        assert dict(zip(table["node"], table["rank"], strict=True)) == named
    assert "to_pandas" in dir(ranks)
    assert not [name for name in dir(ranks) if name.startswith("_")]


def test_ranks_support_lookup_by_integer() -> None:
    ranks = pagerank([(7, 9), (9, 7), (8, 9)])
    assert ranks[9] == max(ranks.values)
    assert list(ranks) == [7, 8, 9]
    assert ranks.to_pandas()["node"].tolist() == ranks.to_arrow()["node"].to_pylist() == [7, 8, 9]


def test_hits_support_lookup_by_name() -> None:
    from cocite.ranking.hits import hits

    found = hits(cocite.ingest([("a", "b"), ("c", "b"), ("c", "d")]))
    (best, *_) = found.top(1)
    assert found[best[0]] == best[1:]
    assert found.to_pandas().columns.tolist() == ["node", "authority", "hub"]
