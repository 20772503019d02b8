"""All-pairs scores by every method against the plain oracle, and their error bounds."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite import Graph, exact_simrank
from cocite.allpairs import AllPairsOptions
from cocite.allpairs import run as runs
from cocite.allpairs.scores import Bounds, ExactConvergence, ExactSweep, iterate
from cocite.errors import NotConverged, ResourceError, UnknownNode, UsageError
from tests.conftest import MakeGraph
from tests.oracles import simrank as exact
from tests.oracles.fusion import order
from tests.oracles.graphs import Edges, graphs

ROUNDS = 150  # 0.8^151 < 3e-15
VARIANTS: list[dict[str, Any]] = [
    {},
    {"method": "plain"},
    {"method": "sor", "omega": 1.1},
    {"method": "sor", "omega": 0.7},
    {"products": "dense"},
    {"products": "dense", "method": "plain"},
    {"order": "rcm"},
    {"method": "plain", "order": "rcm"},
    {"prune": 1e-9},
    {"prune": 1e-9, "method": "plain"},
]


def with_loops(draw: st.DrawFn, graph: tuple[int, Edges]) -> tuple[int, Edges]:
    n, edges = graph
    return n, sorted(set(edges) | {(v, v) for v in draw(st.sets(st.integers(0, n - 1)))})


@st.composite
def looped_graphs(draw: st.DrawFn) -> tuple[int, Edges]:
    """Half with self-loops; often with nodes of equal in-neighbors."""
    n, edges = draw(graphs(12))
    if draw(st.booleans()):
        n, edges = with_loops(draw, (n, edges))
    twins = draw(st.lists(st.integers(0, n - 1), max_size=3))
    for i, twin in enumerate(twins):
        edges = edges + [(a, n + i) for a, b in edges if b == twin]
    return n + len(twins), sorted(set(edges))


def truth(graph: tuple[int, Edges], decay: float) -> np.ndarray:
    return exact.simrank(exact.dense(*graph), decay, ROUNDS)


def stored(make_graph: MakeGraph, graph: tuple[int, Edges]) -> Graph:
    return make_graph(graph[1], range(graph[0]), keep_self_loops=True)


@settings(max_examples=10)
@given(looped_graphs(), st.sampled_from([0.3, 0.6, 0.8]), st.sampled_from([1e-2, 1e-4, 1e-8]))
def test_exact_simrank_error_is_within_error_bound(
    make_graph: MakeGraph, graph: tuple[int, Edges], decay: float, epsilon: float
) -> None:
    web, expected = stored(make_graph, graph), truth(graph, decay)
    for options in VARIANTS:
        found = exact_simrank(web, decay=decay, epsilon=epsilon, **options)
        error = float(np.abs(found.array() - expected).max())
        assert error <= found.convergence.error_bound + 1e-14, options
        assert found.convergence.converged, options
        assert found.convergence.error_bound <= epsilon * (1 + 1e-9), options


@settings(max_examples=20)
@given(looped_graphs(), st.floats(0.1, 1.9), st.none() | st.floats(1e-4, 0.3))
def test_sor_error_is_within_bound_when_unfinished(
    make_graph: MakeGraph, graph: tuple[int, Edges], omega: float, threshold: float | None
) -> None:
    """With and without pruning of small scores."""
    web, expected = stored(make_graph, graph), truth(graph, 0.8)
    for count in (1, 2, 5):
        options: dict[str, Any] = {"method": "sor", "omega": omega, "prune": threshold}
        options |= {"decay": 0.8, "max_sweeps": count}
        try:
            found = exact_simrank(web, epsilon=1e-7, precision="double", **options)
        except NotConverged:
            assert omega > 2 / 1.8
            continue
        scores, convergence = found.array(), found.convergence
        assert np.abs(scores - expected).max() <= convergence.error_bound + 1e-14
        assert (scores == scores.T).all()
        assert (
            convergence.converged
            or convergence.reason == f"{count} sweeps"
            or threshold is not None
        )


@settings(max_examples=25)
@given(looped_graphs(), st.integers(0, 12))
def test_plain_sweeps_equal_oracle(
    make_graph: MakeGraph, graph: tuple[int, Edges], count: int
) -> None:
    web = stored(make_graph, graph)
    expected = exact.simrank(exact.dense(*graph), 0.8, count + 1)
    variants: list[dict[str, Any]] = [{}, {"products": "dense"}]
    for products in variants:
        options: dict[str, Any] = {"method": "plain", "decay": 0.8, "max_sweeps": count + 1}
        found = exact_simrank(web, epsilon=1e-12, **options, **products)
        if found.convergence.sweeps == count + 1:
            assert np.allclose(found.array(), expected, rtol=0, atol=1e-13)
        assert found.convergence.iteration_error <= 0.8 ** (found.convergence.sweeps + 1)


@settings(max_examples=15)
@given(looped_graphs())
def test_exact_psimrank_matches_definition(make_graph: MakeGraph, graph: tuple[int, Edges]) -> None:
    inlinks = exact.dense(*graph)
    found = exact_simrank(stored(make_graph, graph), measure="psimrank", epsilon=1e-7)
    error = np.abs(found.array() - exact.psimrank_by_definition(inlinks, 0.6, 40)).max()
    assert error <= found.convergence.error_bound + 0.6**41


def teleporting(n: int, edges: Edges, share: float) -> np.ndarray:
    """The dense matrix of Eq. 7."""
    q = exact.dense(n, edges)
    degrees = q.sum(axis=1, keepdims=True)
    uniform = np.where(degrees == 0, 1 / n, 0)
    return np.asarray(share * q / np.maximum(degrees, 1) + (1 - share) * uniform)


def fixed_point(q: np.ndarray, decay: float) -> np.ndarray:
    scores = np.eye(len(q))
    for _ in range(ROUNDS):
        scores = decay * q @ scores @ q.T
        np.fill_diagonal(scores, 1)
    return scores


@settings(max_examples=15)
@given(looped_graphs(), st.sampled_from([0.2, 0.8, 1.0]))
def test_teleport_matches_paper_equation(
    make_graph: MakeGraph, graph: tuple[int, Edges], share: float
) -> None:
    web, expected = stored(make_graph, graph), fixed_point(teleporting(*graph, share), 0.8)
    for options in ({}, {"method": "plain"}, {"prune": 1e-12}):
        found = exact_simrank(web, decay=0.8, epsilon=1e-8, teleport=share, **options)
        assert np.abs(found.array() - expected).max() <= found.convergence.error_bound + 1e-14


def test_exact_simrank_uses_graph_weights_by_default(make_graph: MakeGraph) -> None:
    edges = [("a", "u", 3), ("b", "u", 1), ("b", "v", 2), ("a", "v", 0.5), ("u", "a", 1)]
    plain = make_graph([edge[:2] for edge in edges])
    web = make_graph(edges, weight_column=3)
    assert web.in_weights is not None
    own = exact_simrank(web, epsilon=1e-9).array()
    passed = exact_simrank(plain, epsilon=1e-9, weights=np.array(web.in_weights)).array()
    assert (own == passed).all()
    unweighted = exact_simrank(web, epsilon=1e-9, weighted=False).array()
    assert (unweighted == exact_simrank(plain, epsilon=1e-9).array()).all()
    assert np.abs(own - unweighted).max() > 0.01
    with pytest.raises(UsageError, match="pass --unweighted"):
        exact_simrank(web, measure="psimrank")


@settings(max_examples=12)
@given(looped_graphs(), st.data())
def test_exact_simrank_weights_match_fixed_point(
    make_graph: MakeGraph, graph: tuple[int, Edges], data: st.DataObject
) -> None:
    n, edges = graph
    web = stored(make_graph, graph)
    drawn = st.lists(st.sampled_from([0.5, 1, 3]), min_size=len(edges), max_size=len(edges))
    weights = np.array(data.draw(drawn), np.float32)
    q = np.zeros((n, n))
    for (source, target), weight in zip(
        sorted(edges, key=lambda e: (e[1], e[0])), weights, strict=True
    ):
        q[target, source] = weight
    q /= np.maximum(q.sum(axis=1, keepdims=True), 1e-300)
    variants: list[dict[str, Any]] = [{}, {"prune": 1e-12}, {"prune": 0.03}]
    for options in [*variants, {"method": "svd", "rank": n}]:
        found = exact_simrank(web, epsilon=1e-8, weights=weights, **options)
        error = np.abs(found.array() - fixed_point(q, 0.6)).max()
        assert error <= found.convergence.error_bound + 1e-13


@settings(max_examples=15)
@given(looped_graphs())
def test_svd_error_is_within_bound(make_graph: MakeGraph, graph: tuple[int, Edges]) -> None:
    web, expected = stored(make_graph, graph), truth(graph, 0.6)
    for rank in (1, 3, graph[0]):
        try:
            found = exact_simrank(web, method="svd", rank=rank, epsilon=1e-6)
        except NotConverged:
            assert rank < graph[0]
            continue
        assert np.abs(found.array() - expected).max() <= found.convergence.error_bound + 1e-13
    assert found.convergence.converged


def test_exact_simrank_reproduces_published_scores(
    data: Callable[[str], Path], make_graph: MakeGraph
) -> None:
    folder = data("simrank-crime")
    pairs = [line.split() for line in (folder / "crime.txt").read_text().splitlines()]
    web = make_graph([(a, b) for a, b in pairs] + [(b, a) for a, b in pairs])
    found = exact_simrank(web, epsilon=1e-6)
    worst = 0.0
    for line in (folder / "crime_simrank_naive_top20.txt").read_text().splitlines():
        node, *hits = line.split()
        row = found.row(found.names.id(node))
        for hit in hits:
            other, score = hit.split(":")
            worst = max(worst, abs(float(row[found.names.id(other)]) - float(score)))
    assert worst < 1e-6 + 0.6**21 + 1e-6  # our error, theirs after 20 iterations, and six digits


def large_graph(make_graph: MakeGraph) -> Graph:
    """300 nodes, more than one block: some have equal rows, some have none."""
    rng = np.random.default_rng(4)
    edges = {(int(a), int(b)) for a, b in rng.integers(0, 200, (900, 2))}
    edges |= {(a, 200 + b % 60) for a, b in edges if b < 60}
    return make_graph(sorted(edges), range(300))


@pytest.fixture(scope="module")
def web(module_graph: MakeGraph) -> Graph:
    return large_graph(module_graph)


@pytest.mark.parametrize(  # no dense products: BLAS has its own order
    ("precision", "way"),
    [
        ("single", {}),
        ("double", {"method": "plain"}),
        ("single", {"method": "sor", "omega": 1.1}),
        ("double", {"order": "rcm"}),
        ("single", {"method": "plain", "order": "rcm"}),
        ("double", {"prune": 1e-9}),
        ("single", {"prune": 1e-9, "method": "plain"}),
        ("double", {"measure": "psimrank"}),
    ],
)
def test_exact_simrank_is_independent_of_threads(
    web: Graph, way: dict[str, Any], precision: str
) -> None:
    one, three = (
        exact_simrank(web, epsilon=1e-2, precision=precision, threads=threads, **way)
        for threads in (1, 3)
    )
    assert one.precision == precision
    assert one.array().tobytes() == three.array().tobytes()
    assert one.convergence == three.convergence


@pytest.mark.parametrize("method", ["plain", "gauss-seidel", "sor"])
def test_all_pairs_panels_on_disk_give_equal_scores(web: Graph, method: str) -> None:
    options = AllPairsOptions(method=method, epsilon=1e-4)
    default = runs.AllPairs(web, options, threads=1)
    whole = default.run()
    with pytest.raises(ResourceError, match=r"needs .* of memory") as refused:
        runs.AllPairs(web, options, memory="1kB")
    needed = str(refused.value).split("needs ")[1].split(" of")[0]
    plan = runs.AllPairs(web, options, memory=needed)
    assert 2 * plan.panel_width < default.core.size
    assert f"in panels of {plan.panel_width} columns" in plan.estimate()
    before = sorted(path.name for path in web.path.iterdir())
    paneled = plan.run()
    assert paneled.array().tobytes() == whole.array().tobytes()
    assert paneled.convergence == whole.convergence
    assert sorted(path.name for path in web.path.iterdir()) == before


def two_cycles() -> Edges:
    """Two long cycles that a node links to: omega 1.9 is far beyond 2 / (1 + decay)."""
    cycles = [(c + i, c + (i + 1) % 9) for c in (0, 9) for i in range(9)]
    return [*cycles, (18, 0), (18, 9)]


@pytest.mark.parametrize("limit", [1000, 30])
def test_sor_divergence_raises_not_converged(make_graph: MakeGraph, limit: int) -> None:
    web = make_graph(two_cycles())
    message = (
        r"diverges with omega 1.9: after \d+ sweeps, .* or an omega below 1.05: both always conv"
    )
    with pytest.raises(NotConverged, match=message):
        exact_simrank(web, decay=0.9, method="sor", omega=1.9, max_sweeps=limit)
    assert exact_simrank(web, decay=0.9, method="sor", omega=1.05).convergence.converged


def convergence_of(changes: list[float], omega: float, limit: int) -> ExactConvergence:
    """The convergence after these changes; the last one repeats."""
    following = iter(changes)
    sweep = lambda: ExactSweep(next(following, changes[-1]))  # noqa: E731
    return iterate(sweep, Bounds(0.6, omega, False), 1e-3, limit, lambda k, e: None)


def test_iterate_stops_when_change_stalls() -> None:
    stalled = convergence_of([0.1], 1.3, 1000)
    assert (stalled.sweeps, stalled.converged) == (21, False)
    assert stalled.reason == "the change has not fallen for 20 sweeps"


@pytest.mark.parametrize(
    ("changes", "omega", "limit", "diverges"),
    [
        ([0.9, 0.5], 1.6, 1000, True),  # stalled, with an error up to 1.2
        ([0.9, 0.4], 1.6, 1000, False),  # up to 0.98
        ([0.9, 0.5], 1.0, 1000, False),  # never leaves [0, 1]
        ([0.9, 0.8], 1.6, 2, False),  # still falling at the limit
        ([0.8, 0.9], 1.6, 2, True),
        ([0.5, 1e5, math.nan], 1.0, 1000, True),
        ([0.5, 1e5, math.inf], 1.0, 3, True),
    ],
)
def test_iterate_detects_divergence(
    changes: list[float], omega: float, limit: int, diverges: bool
) -> None:
    if diverges:
        with pytest.raises(NotConverged):
            convergence_of(changes, omega, limit)
    else:
        assert not convergence_of(changes, omega, limit).converged


def test_precision_auto_selects_single_when_accurate_enough(web: Graph) -> None:
    assert exact_simrank(web).precision == "single"
    assert exact_simrank(web, epsilon=1e-7).precision == "double"
    with pytest.raises(UsageError, match="rounding errors in float32 may reach"):
        exact_simrank(web, epsilon=1e-7, precision="single")
    with pytest.raises(UsageError, match="Increase epsilon"):
        exact_simrank(web, epsilon=1e-15)


def test_exact_simrank_refuses_insufficient_memory(web: Graph) -> None:
    with pytest.raises(ResourceError, match=r"rows needs .* of memory; the limit is 50 kB"):
        exact_simrank(web, memory="50kB")
    with pytest.raises(ResourceError, match="or prune more with --prune"):
        exact_simrank(web, memory="250kB", prune=1e-9, epsilon=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decay": 1.0}, "decay is 1.0; it must be a number above 0 and below 1"),
        ({"epsilon": 0}, "epsilon is 0"),
        ({"method": "jacobi"}, "method is 'jacobi'; it must be gauss-seidel or plain or sor"),
        ({"omega": 1.2}, "omega requires the sor method; the method is gauss-seidel"),
        ({"method": "sor", "omega": 2.0}, "omega is 2.0; it must be a number above 0 and below 2"),
        ({"max_sweeps": 0}, "sweeps is 0"),
        ({"rank": 3}, "rank requires the svd method"),
        ({"prune": 0.1, "method": "svd"}, "prune requires the gauss-seidel or plain or sor method"),
        ({"teleport": 0}, "teleport is 0.0; it must be above 0 and at most 1"),
        ({"products": "dense", "prune": 0.1}, "dense products require"),
        ({"measure": "psimrank", "prune": 0.1}, "prune requires|psimrank requires"),
        ({"measure": "psimrank", "method": "sor"}, "psimrank requires the plain method"),
        ({"weights": np.ones(3, np.float32)}, "positive, finite numbers, one for each link"),
        ({"order": "best"}, "order is 'best'; it must be stored or rcm"),
        ({"method": "svd", "precision": "single"}, "svd .* requires double precision"),
    ],
)
def test_exact_simrank_refuses_invalid_options(
    web: Graph, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        exact_simrank(web, **options)


def test_exact_simrank_of_graph_without_links_is_identity(make_graph: MakeGraph) -> None:
    for nodes in (1, 5):
        web = make_graph([], range(nodes))
        for options in (*VARIANTS, {"measure": "psimrank"}, {"method": "svd"}):
            found = exact_simrank(web, **options)
            assert (found.array() == np.eye(nodes)).all()
            assert found.convergence.converged


def test_scores_row_top_and_pairs_agree_with_array(web: Graph) -> None:
    found = exact_simrank(web, epsilon=1e-6)
    scores = found.array()
    assert (scores[17] == found.row(17)).all()
    name = found.names.name(17)
    ranked = sorted(range(300), key=lambda i: (-scores[17, i], order(i)))
    best = [i for i in ranked if i != 17 and scores[17, i] > 0][:7]
    assert found.top(name, 7) == [(found.names.name(i), float(scores[17, i])) for i in best]
    assert found.similarity(name, found.names.name(3)) == float(scores[17, 3])
    pairs = [
        (int(u), int(v), float(s))
        for batch in found.pairs(0.1)
        for u, v, s in zip(batch.nodes, batch.others, batch.scores, strict=True)
    ]
    expected = np.argwhere(np.triu(scores, 1) >= 0.1).tolist()
    assert pairs == [(u, v, float(scores[u, v])) for u, v in expected]
    with pytest.raises(UnknownNode):
        found.top("nobody")
    with pytest.raises(UsageError, match="ids are 0 to 299"):
        found.row(300)
    with pytest.raises(UsageError, match="k is 0"):
        found.top(name, 0)
