"""The low-rank closed form: it ends, in scores or in an error that is right about the matrix."""

import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cocite import exact_simrank
from cocite.allpairs import svd
from cocite.allpairs.core import node_rows, offsets_of, reduce
from cocite.errors import NotConverged
from cocite.graph.blocks import Links
from tests.conftest import MakeGraph
from tests.oracles import simrank as exact
from tests.oracles.graphs import Edges

Matrix = NDArray[np.float64]
ISSUE = (
    "7 0;0 1;2 1;5 1;7 1;0 2;7 2;9 2;0 3;1 3;6 3;0 4;1 4;5 4;9 4;0 5;8 5;0 6;9 6;0 7;0 8;2 8;0 9;"
    "2 9;3 9"
)
"""A graph of ten nodes whose links, cut to rank 2 to 5, have a spectral radius of 1.15 to 1.17."""


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in whatever runs longer."""

    def late(number: int, frame: object) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def pairs_of(text: str) -> Edges:
    return [(int(a), int(b)) for a, b in (pair.split() for pair in text.split(";"))]


def in_memory(n: int, edges: Edges) -> Links:
    """Links without a file: thousands of them are made."""
    ordered = sorted(set(edges), key=lambda e: (e[1], e[0]))
    degrees = np.bincount([b for _, b in ordered], minlength=n)
    sources = np.array([a for a, _ in ordered], np.uint32)
    return Links(offsets_of(degrees).astype(np.uint64), sources)


def normalized(n: int, edges: Edges) -> Matrix:
    links = exact.dense(n, edges)
    return np.asarray(links / np.maximum(links.sum(axis=1, keepdims=True), 1))


def radius_of(q: Matrix, rank: int) -> float:
    """The spectral radius of the matrix cut to this rank."""
    u, e, vt = np.linalg.svd(q)
    kept = min(rank, int((e > 1e-13 * max(e[0], 1e-300)).sum()))
    cut = (u[:, :kept] * e[:kept]) @ vt[:kept]
    return float(np.abs(np.linalg.eigvals(cut)).max())


def random_graph(rng: np.random.Generator) -> tuple[int, Edges]:
    """As many links as they may be: few, many, with hubs, or one way only."""
    n = int(rng.integers(7, 40))
    pairs = rng.integers(0, n, (int(n * rng.uniform(0.5, 5)), 2))
    if rng.random() < 0.4:
        pairs = np.concatenate([pairs, [(rng.integers(n), v) for v in range(n)]])
    if rng.random() < 0.2:
        pairs.sort(axis=1)
    return n, [(int(a), int(b)) for a, b in pairs if a != b]


@pytest.mark.long
@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.chosen), 1, 2, 3])
def test_thousands_of_graphs_end_or_are_refused(seed: int) -> None:
    rng, refused = np.random.default_rng(seed), 0
    with within(200):
        for _ in range(1000):
            n, edges = random_graph(rng)
            web, decay = in_memory(n, edges), float(rng.choice([0.6, 0.8, 0.99]))
            rank = int(rng.integers(1, n + 1))
            root = math.sqrt(decay) * radius_of(normalized(n, edges), rank)
            try:
                core = reduce(web, order=False)
                found = svd.low_rank_scores(node_rows(web, None, None), core, rank, decay, 1e-3)
            except NotConverged:
                refused += 1
                assert root >= 1 - 1e-9, (n, edges, decay, rank)
            else:
                assert root < 1 + 1e-9, (n, edges, decay, rank)
                assert np.isfinite(found).all()
    assert refused >= 3


@pytest.mark.parametrize("decay", [0.6, 0.99])
def test_the_full_rank_is_exact_however_near_the_decay_is_to_one(decay: float) -> None:
    rng = np.random.default_rng(7)
    for _ in range(40):
        n, edges = random_graph(rng)
        web = in_memory(n, edges)
        core = reduce(web, order=False)
        found = svd.low_rank_scores(node_rows(web, None, None), core, n, decay, 1e-6)
        right = exact.simrank(exact.dense(n, edges), decay, math.ceil(-20 / math.log(decay)))
        right = right[np.ix_(core.firsts, core.firsts)]
        apart = ~np.eye(core.size, dtype=bool)
        assert np.abs(found - right)[apart].max(initial=0) <= 1e-6


@pytest.mark.parametrize(("scale", "ends"), [(1 - 1e-9, True), (1.0, False), (1 + 1e-9, False)])
def test_a_spectral_radius_of_one_is_where_the_sum_ends(scale: float, ends: bool) -> None:
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])  # eigenvalues i and -i
    with within(10):
        if ends:
            assert len(svd._powers(scale * turn / math.sqrt(0.25), 0.25)) > 30
            return
        with pytest.raises(NotConverged, match="truncated to rank 2 have a spectral radius of 2"):
            svd._powers(scale * turn / math.sqrt(0.25), 0.25)


@pytest.mark.parametrize(("decay", "rank"), [(0.8, 3), (0.99, 3), (0.99, 8)])
def test_endless_graph_is_refused(make_graph: MakeGraph, decay: float, rank: int) -> None:
    web = make_graph(pairs_of(ISSUE))
    with (
        within(20),
        pytest.raises(NotConverged, match=r"spectral radius of 1\..*or a larger --rank"),
    ):
        exact_simrank(web, method="svd", decay=decay, rank=rank)
    found = exact_simrank(web, method="svd", decay=decay, rank=10)
    assert found.convergence.converged


def test_a_rank_that_says_nothing_of_the_scores_is_refused(make_graph: MakeGraph) -> None:
    web = make_graph(pairs_of(ISSUE))
    message = "truncated to rank 1, scores between 0 and 1 may be off by 54"
    with pytest.raises(NotConverged, match=message):
        exact_simrank(web, method="svd", decay=0.99, rank=1)


def test_what_the_low_rank_takes_is_said_beforehand() -> None:
    any_: dict[str, Any] = {"decay": 0.6}
    assert svd.low_rank_bytes(1000, 1000, **any_) > 72 * 1000**2
    assert svd.low_rank_bytes(10_000, 50, **any_) < 0.1 * svd.low_rank_bytes(10_000, 5000, **any_)
