"""Pruning: its error is reported, and both entries of a pair are kept or dropped."""

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
from tests.allpairs.test_exact import large_graph, looped_graphs, stored, truth
from tests.conftest import MakeGraph
from tests.oracles import simrank as exact
from tests.oracles.graphs import Edges

Matrix = NDArray[Any]
METHODS = ["plain", "gauss-seidel", "sor"]
THRESHOLDS = st.floats(1e-4, 0.3)


def pruned(web: Graph, method: str, **options: Any) -> Scores:
    omega: dict[str, Any] = {"omega": 1.2} if method == "sor" else {}
    return exact_simrank(web, method=method, **omega, **options)


@settings(max_examples=20)
@given(looped_graphs(), THRESHOLDS, st.sampled_from([0.3, 0.6, 0.8]), st.sampled_from(METHODS))
def test_prune_keeps_bound_symmetry_and_threshold(
    make_graph: MakeGraph, graph: tuple[int, Edges], threshold: float, decay: float, method: str
) -> None:
    web, expected = stored(make_graph, graph), truth(graph, decay)
    for epsilon in (1e-5, 0.2):
        found = pruned(web, method, prune=threshold, epsilon=epsilon, decay=decay)
        scores, convergence = found.array(), found.convergence
        assert np.abs(scores - expected).max() <= convergence.error_bound + 1e-14
        assert (scores == scores.T).all()
        assert convergence.pruning_error <= threshold / (1 - decay) * (1 + 1e-6)
        assert convergence.converged == (convergence.error_bound <= epsilon)
        assert convergence.reason.startswith("error <=") == convergence.converged
        if method != "sor":
            assert ((scores == 0) | (scores >= threshold * (1 - 1e-6))).all()
        matrix: Any = found.matrix
        for begin, count in zip(matrix.begin, matrix.count, strict=True):
            assert (np.diff(matrix.columns[begin : begin + count].astype(int)) > 0).all()


@settings(max_examples=20)
@given(looped_graphs(), THRESHOLDS, st.integers(1, 6))
def test_prune_plain_matches_equation_9(
    make_graph: MakeGraph, graph: tuple[int, Edges], threshold: float, count: int
) -> None:
    """A dense loop drops by the same rule."""
    web = stored(make_graph, graph)
    options: dict[str, Any] = {"max_sweeps": count, "epsilon": 1e-9, "prune": threshold}
    found = exact_simrank(web, method="plain", decay=0.8, **options)
    sweeps = found.convergence.sweeps
    assert sweeps == count or found.convergence.converged
    q = exact.dense(*graph)
    q /= np.maximum(q.sum(axis=1, keepdims=True), 1)
    expected = np.eye(len(q))
    for _ in range(sweeps):
        expected = 0.8 * q @ expected @ q.T
        if np.abs(expected - threshold).min() < 1e-9:
            return  # a value that rounding may keep or drop
        expected[expected < threshold] = 0
        np.fill_diagonal(expected, 1)
    assert np.allclose(found.array(), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("omega", "fresh"), [(1.0, False), (1.0, True), (1.3, True), (0.6, True)])
def test_pruned_sweeps_without_pruning_equal_sweeps(
    make_graph: MakeGraph, omega: float, fresh: bool
) -> None:
    """Several blocks, and a diagonal that is not 1."""
    plan = runs.AllPairs(large_graph(make_graph), AllPairsOptions())
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


@pytest.fixture(scope="module")
def web(module_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(11)
    return module_graph({(int(a), int(b)) for a, b in rng.integers(0, 60, (200, 2)) if a != b})


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("method", METHODS)
def test_prune_reports_unreachable_epsilon(web: Graph, method: str, threads: int) -> None:
    found = pruned(web, method, prune=0.05, epsilon=1e-4, threads=threads)
    convergence, scores = found.convergence, found.array()
    assert (scores == scores.T).all()
    assert (scores > 0).sum() > 2 * scores.shape[0]
    assert not convergence.converged
    assert convergence.error_bound > 0.05
    assert convergence.reason == "the error from pruning may exceed 0.0001"
    reached = pruned(web, method, prune=0.05, epsilon=0.13).convergence
    assert reached.converged
    assert reached.error_bound <= 0.13


def test_iterate_counts_pruning_error_toward_epsilon() -> None:
    def convergence(dropped: float, steps: bool = False) -> ExactConvergence:
        changes = iter([0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6])
        sweep = lambda: ExactSweep(next(changes), dropped)  # noqa: E731
        return iterate(sweep, Bounds(0.6, 1.0, steps), 1e-2, 6, lambda k, e: None)

    assert (convergence(0.0).sweeps, convergence(0.0).converged) == (3, True)
    late = convergence(0.0039)  # 0.00975 in the end, which leaves little for the iteration
    assert (late.sweeps, late.converged) == (4, True)
    assert late.pruning_error == pytest.approx(0.00975)
    never = convergence(0.0041)
    assert (never.sweeps, never.converged) == (3, False)
    assert never.reason == "the error from pruning may exceed 0.01"


def test_settle_pruned_counts_negative_value_as_dropped() -> None:
    """A value of G below 0 that is set to 0 is an error of its size."""
    from cocite.kernels.pruned import PrunedRows, settle_pruned

    empty = np.zeros(2, np.int64)
    old = PrunedRows(empty, empty, np.zeros(1, np.uint32), np.zeros(1))
    rows = np.array([[1.0, 0.0], [-0.5, 1.0]])
    single, factors = np.ones(2, np.uint8), np.array([0.8, 1.3, 1.0, 0.1])
    change, dropped, kept = settle_pruned(rows, 0, old, single, factors)
    assert (change, dropped, kept) == (0.0, 0.4, 2)
    assert (rows == np.eye(2)).all()
