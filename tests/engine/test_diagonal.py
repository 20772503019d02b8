"""The diagonal of linearized SimRank: its error bounds and limits, against dense matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cocite import Graph
from cocite.engine.diagonal import LIMITS, diagonal_room, make_diagonal
from cocite.errors import ResourceError
from cocite.graph.links import in_links, links_of
from cocite.resources import Resources
from tests.conftest import MakeGraph
from tests.oracles import simrank as exact
from tests.oracles.graphs import Edges, graphs

Matrix = NDArray[np.float64]


def spread(n: int, edges: Edges) -> Matrix:
    """Q: row v is uniform over the in-neighbors of v."""
    inlinks = exact.dense(n, edges)
    found: Matrix = inlinks / np.maximum(inlinks.sum(axis=1, keepdims=True), 1)
    return found


def linearized(q: Matrix, diagonal: Matrix, decay: float) -> Matrix:
    """The sum over l of c**l Q**l D (Q')**l, up to 1e-13."""
    total, term = np.zeros_like(q), np.diag(diagonal)
    while np.abs(term).max() > 1e-14:
        total += term
        term = decay * q @ term @ q.T
    return total


@settings(max_examples=50)
@given(graphs(), st.sampled_from([0.2, 0.6, 0.85]))
def test_make_diagonal_bounds_residual_and_walks(
    make_graph: MakeGraph, graph: tuple[int, Edges], decay: float
) -> None:
    """limit(l, w) >= max over v of c * mean over in-neighbors a of w of (Q**(l + 1) S')(v, a)."""
    n, edges = graph
    stored = make_graph(edges, range(n))
    diagonal = make_diagonal(in_links(stored), links_of(stored, "out"), decay)
    q = spread(n, edges)
    common = linearized(q, diagonal.table[:, 0].astype(float), decay)
    residual = np.diag(common) - 1
    assert (residual >= diagonal.low - 1e-12).all()
    assert (residual <= diagonal.high + 1e-12).all()
    assert (diagonal.table[:, 0] <= 1).all()
    assert (diagonal.table[:, 0] >= np.float32(1 - decay)).all()
    power = q.copy()
    for level in range(1, LIMITS + 4):
        power = power @ q
        truth = (decay * power @ common @ q.T).max(axis=0)
        assert (diagonal.table[:, min(level, LIMITS)] >= truth - 1e-12).all()


@pytest.fixture(scope="module")
def graph(module_graph: MakeGraph) -> Graph:
    """300 nodes, 2,000 links, and some hubs, so that nodes differ."""
    rng = np.random.default_rng(5)
    edges = np.minimum(rng.integers(0, 300, (2000, 2)), rng.integers(0, 300, (2000, 2)))
    return module_graph(edges.tolist(), range(300))


def test_make_diagonal_is_near_exact_diagonal(graph: Graph) -> None:
    """The residual is within its target, and the error of the diagonal is smaller."""
    diagonal = make_diagonal(in_links(graph), links_of(graph, "out"), 0.6)
    edges = [(int(u), v) for v in range(graph.nodes) for u in graph.in_neighbors(v)]
    q = spread(graph.nodes, edges)
    scores = exact.simrank((q > 0).astype(float), 0.6, 60)
    truth = 1 - 0.6 * np.diag(q @ scores @ q.T)  # the mean of s over pairs of in-neighbors
    assert np.abs(truth - 1).max() > 0.3
    assert -0.01 < diagonal.low <= 0 <= diagonal.high < 0.0125
    assert np.abs(diagonal.table[:, 0] - truth).max() < 0.01
    assert np.abs(diagonal.table[:, 0] - truth).mean() < 0.001


def test_make_diagonal_ignores_thread_count(graph: Graph) -> None:
    ends = in_links(graph), links_of(graph, "out")
    one, three = (make_diagonal(*ends, 0.6, threads=t) for t in (1, 3))
    assert one.table.tobytes() == three.table.tobytes()
    assert (one.low, one.high) == (three.low, three.high)


def test_make_diagonal_progress_counts_nodes(graph: Graph) -> None:
    calls: list[tuple[int, int, int]] = []
    make_diagonal(
        in_links(graph), links_of(graph, "out"), 0.6, progress=lambda *call: calls.append(call)
    )
    assert calls[0] == (0, graph.nodes, graph.nodes)
    assert [sweep for sweep, _, _ in calls] == sorted(sweep for sweep, _, _ in calls)
    assert all(done <= total for _, done, total in calls)


def test_diagonal_room_reports_lack_of_memory(graph: Graph) -> None:
    ends = in_links(graph), links_of(graph, "out")
    assert diagonal_room(*ends, Resources(4, 10**9)) == 4
    with pytest.raises(ResourceError, match=r"preparing refined answers for .* takes .* of memory"):
        diagonal_room(*ends, Resources(1, 10_000))


def test_make_diagonal_resumes_from_any_stage(make_graph: MakeGraph) -> None:
    rng = np.random.default_rng(2)
    graph = make_graph(rng.integers(0, 60, (400, 2)).tolist(), range(60))
    ends = in_links(graph), links_of(graph, "out")
    tables: list[NDArray[np.float32]] = []
    full = make_diagonal(*ends, 0.6, keep=lambda table: tables.append(table.copy()))
    assert len(tables) == 4
    for stages, table in enumerate(tables, 1):
        later: list[NDArray[np.float32]] = []
        resumed = make_diagonal(*ends, 0.6, reached=(stages, table), keep=later.append)
        assert len(later) == 4 - stages
        assert resumed.table.tobytes() == full.table.tobytes()
        assert (resumed.low, resumed.high) == (full.low, full.high)
