"""Pruning: what it leaves of error is said, and what it keeps of a pair it keeps of both."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cocite import Graph, Scores, exact_simrank
from cocite.allpairs import AllPairsOptions
from cocite.allpairs import run as runs
from cocite.allpairs.products import Products
from cocite.allpairs.prune import PrunedSweeps
from cocite.allpairs.scores import Bounds, ExactConvergence, ExactSweep, iterate
from cocite.allpairs.sweeps import Sweeps
from cocite.cluster import Team
from tests.allpairs.test_exact import looped_graphs, stored, truth
from tests.conftest import MakeGraph
from tests.oracles import simrank as exact
from tests.oracles.graphs import Edges

Matrix = NDArray[Any]
METHODS = ["plain", "gauss-seidel", "sor"]
THRESHOLDS = st.floats(1e-4, 0.3)


def pruned(web: Graph, method: str, **options: Any) -> Scores:
    omega: dict[str, Any] = {"omega": 1.2} if method == "sor" else {}
    return exact_simrank(web, method=method, **omega, **options)


@settings(max_examples=40)
@given(looped_graphs(), THRESHOLDS, st.sampled_from([0.3, 0.6, 0.8]), st.sampled_from(METHODS))
def test_pruned_scores_are_within_their_bound_symmetric_and_nothing_small_is_kept(
    make_graph: MakeGraph, graph: tuple[int, Edges], threshold: float, decay: float, method: str
) -> None:
    web, right = stored(make_graph, graph), truth(graph, decay)
    for epsilon in (1e-5, 0.2):
        found = pruned(web, method, prune=threshold, epsilon=epsilon, decay=decay)
        scores, ended = found.array(), found.convergence
        assert np.abs(scores - right).max() <= ended.error_bound + 1e-14
        assert (scores == scores.T).all()
        assert ended.pruning_error <= threshold / (1 - decay) * (1 + 1e-6)
        assert ended.converged == (ended.error_bound <= epsilon)
        assert ended.reason.startswith("error <=") == ended.converged
        if method != "sor":
            assert ((scores == 0) | (scores >= threshold * (1 - 1e-6))).all()
        matrix: Any = found.matrix
        for begin, count in zip(matrix.begin, matrix.count, strict=True):
            assert (np.diff(matrix.columns[begin : begin + count].astype(int)) > 0).all()


@settings(max_examples=40)
@given(looped_graphs(), THRESHOLDS, st.integers(1, 6))
def test_the_plain_iteration_is_equation_9(
    make_graph: MakeGraph, graph: tuple[int, Edges], threshold: float, count: int
) -> None:
    """Against a dense loop that drops by the same rule."""
    q = exact.dense(*graph)
    q /= np.maximum(q.sum(axis=1, keepdims=True), 1)
    right = np.eye(len(q))
    for _ in range(count):
        right = 0.8 * q @ right @ q.T
        if np.abs(right - threshold).min() < 1e-9:
            return  # a value that rounding may keep or drop
        right[right < threshold] = 0
        np.fill_diagonal(right, 1)
    web = stored(make_graph, graph)
    options: dict[str, Any] = {"max_sweeps": count, "epsilon": 1e-9, "prune": threshold}
    found = exact_simrank(web, method="plain", decay=0.8, **options)
    if found.convergence.sweeps == count:
        assert np.allclose(found.array(), right, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("omega", "fresh"), [(1.0, False), (1.0, True), (1.3, True), (0.6, True)])
def test_pruning_nothing_is_exact(make_graph: MakeGraph, omega: float, fresh: bool) -> None:
    """300 nodes, of which some share a row: several blocks, and a diagonal that is not 1."""
    rng = np.random.default_rng(4)
    edges = {(int(a), int(b)) for a, b in rng.integers(0, 200, (900, 2))}
    edges |= {(a, 200 + b % 60) for a, b in edges if b < 60}
    plan = runs.AllPairs(make_graph(sorted(edges), range(300)), AllPairsOptions())
    with Team(2) as team:
        products = Products(plan.core, np.float64, team, plan.width)
        whole = Sweeps(products, 0.8, omega if fresh else None)
        sparse = PrunedSweeps(plan.core, np.float64, team, (0.8, omega, -1e9), fresh, (0, 1 << 30))
        for _ in range(6):
            changes = whole().change, sparse().change
            found = sparse.matrix.block(0, plan.core.size)
            assert np.allclose(found, whole.matrix.panels[0], rtol=0, atol=1e-13)
            assert np.allclose(*changes, rtol=0, atol=1e-13)
            assert (sparse.matrix.diagonal() == found.diagonal()).all()


@pytest.fixture
def web(make_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(11)
    return make_graph({(int(a), int(b)) for a, b in rng.integers(0, 60, (200, 2)) if a != b})


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("method", METHODS)
def test_a_run_that_cannot_reach_its_error_says_so(web: Graph, method: str, threads: int) -> None:
    found = pruned(web, method, prune=0.05, epsilon=1e-4, threads=threads)
    ended, scores = found.convergence, found.array()
    assert (scores == scores.T).all()
    assert (scores > 0).sum() > 2 * scores.shape[0]
    assert not ended.converged
    assert ended.error_bound > 0.05
    assert ended.reason == "the error from pruning may exceed 0.0001"
    enough = pruned(web, method, prune=0.05, epsilon=0.13).convergence
    assert enough.converged
    assert enough.error_bound <= 0.13


def test_what_pruning_leaves_counts_where_the_accuracy_is_decided() -> None:
    def ended(dropped: float, steps: bool = False) -> ExactConvergence:
        changes = iter([0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6])
        made = lambda: ExactSweep(next(changes), dropped)  # noqa: E731
        return iterate(made, Bounds(0.6, 1.0, steps), 1e-2, 6, lambda k, e: None)

    assert (ended(0.0).sweeps, ended(0.0).converged) == (3, True)
    late = ended(0.0039)  # 0.00975 in the end, which leaves little for the iteration
    assert (late.sweeps, late.converged) == (4, True)
    assert late.pruning_error == pytest.approx(0.00975)
    never = ended(0.0041)
    assert (never.sweeps, never.converged) == (3, False)
    assert never.reason == "the error from pruning may exceed 0.01"


def test_an_over_relaxed_value_below_zero_counts_as_dropped() -> None:
    """Where G has a value below 0 and the score is set to 0, that is an error of its size."""
    from cocite.kernels.pruned import PrunedRows, settle_pruned

    none = np.zeros(2, np.int64)
    old = PrunedRows(none, none, np.zeros(1, np.uint32), np.zeros(1))
    rows = np.array([[1.0, 0.0], [-0.5, 1.0]])
    single, factors = np.ones(2, np.uint8), np.array([0.8, 1.3, 1.0, 0.1])
    change, dropped, kept = settle_pruned(rows, 0, old, single, factors)
    assert (change, dropped, kept) == (0.0, 0.4, 2)
    assert (rows == np.eye(2)).all()
