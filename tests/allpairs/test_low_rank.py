"""The low-rank closed form: it returns scores, or a correct error about the matrix."""

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
DIVERGENT = (
    "7 0;0 1;2 1;5 1;7 1;0 2;7 2;9 2;0 3;1 3;6 3;0 4;1 4;5 4;9 4;0 5;8 5;0 6;9 6;0 7;0 8;2 8;0 9;"
    "2 9;3 9"
)
"""Ten nodes whose links, truncated to rank 2 to 5, have a spectral radius of 1.15 to 1.17."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TimeoutError after this time."""

    def raise_timeout(number: int, frame: object) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    previous = signal.signal(signal.SIGALRM, raise_timeout)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def pairs_of(text: str) -> Edges:
    return [(int(a), int(b)) for a, b in (pair.split() for pair in text.split(";"))]


def in_memory(n: int, edges: Edges) -> Links:
    """Links without a file; tests make thousands."""
    ordered = sorted(set(edges), key=lambda e: (e[1], e[0]))
    degrees = np.bincount([b for _, b in ordered], minlength=n)
    sources = np.array([a for a, _ in ordered], np.uint32)
    return Links(offsets_of(degrees).astype(np.uint64), sources)


def normalized(n: int, edges: Edges) -> Matrix:
    links = exact.dense(n, edges)
    return np.asarray(links / np.maximum(links.sum(axis=1, keepdims=True), 1))


def radius_of(q: Matrix, rank: int) -> float:
    """The spectral radius of the matrix at this rank."""
    u, e, vt = np.linalg.svd(q)
    kept = min(rank, int((e > 1e-13 * max(e[0], 1e-300)).sum()))
    cut = (u[:, :kept] * e[:kept]) @ vt[:kept]
    return float(np.abs(np.linalg.eigvals(cut)).max())


def random_graph(rng: np.random.Generator) -> tuple[int, Edges]:
    """A graph with few or many links, perhaps with hubs or acyclic."""
    n = int(rng.integers(7, 40))
    pairs = rng.integers(0, n, (int(n * rng.uniform(0.5, 5)), 2))
    if rng.random() < 0.4:
        pairs = np.concatenate([pairs, [(rng.integers(n), v) for v in range(n)]])
    if rng.random() < 0.2:
        pairs.sort(axis=1)
    return n, [(int(a), int(b)) for a, b in pairs if a != b]


@pytest.mark.long
@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.chosen), 1, 2, 3])
def test_low_rank_scores_refuses_radius_of_one_or_more(seed: int) -> None:
    rng, refused = np.random.default_rng(seed), 0
    with time_limit(200):
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
def test_low_rank_scores_at_full_rank_are_exact(decay: float) -> None:
    rng = np.random.default_rng(7)
    for _ in range(15):
        n, edges = random_graph(rng)
        web = in_memory(n, edges)
        core = reduce(web, order=False)
        found = svd.low_rank_scores(node_rows(web, None, None), core, n, decay, 1e-6)
        expected = exact.simrank(exact.dense(n, edges), decay, math.ceil(-20 / math.log(decay)))
        expected = expected[np.ix_(core.firsts, core.firsts)]
        off_diagonal = ~np.eye(core.size, dtype=bool)
        assert np.abs(found - expected)[off_diagonal].max(initial=0) <= 1e-6


@pytest.mark.parametrize(
    ("scale", "converges"), [(1 - 1e-9, True), (1.0, False), (1 + 1e-9, False)]
)
def test_powers_converges_below_spectral_radius_of_one(scale: float, converges: bool) -> None:
    rotation = np.array([[0.0, -1.0], [1.0, 0.0]])  # eigenvalues i and -i
    with time_limit(10):
        if converges:
            assert len(svd._powers(scale * rotation / math.sqrt(0.25), 0.25)) > 30
            return
        with pytest.raises(NotConverged, match="truncated to rank 2 have a spectral radius of 2"):
            svd._powers(scale * rotation / math.sqrt(0.25), 0.25)


@pytest.mark.parametrize(("decay", "rank"), [(0.8, 3), (0.99, 3), (0.99, 8)])
def test_svd_refuses_divergent_rank(make_graph: MakeGraph, decay: float, rank: int) -> None:
    web = make_graph(pairs_of(DIVERGENT))
    with (
        time_limit(20),
        pytest.raises(NotConverged, match=r"spectral radius of 1\..*or a larger --rank"),
    ):
        exact_simrank(web, method="svd", decay=decay, rank=rank)
    found = exact_simrank(web, method="svd", decay=decay, rank=10)
    assert found.convergence.converged


def test_svd_refuses_uninformative_rank(make_graph: MakeGraph) -> None:
    web = make_graph(pairs_of(DIVERGENT))
    message = "truncated to rank 1, scores between 0 and 1 may be off by 54"
    with pytest.raises(NotConverged, match=message):
        exact_simrank(web, method="svd", decay=0.99, rank=1)


def test_low_rank_bytes_grows_with_size_and_rank() -> None:
    options: dict[str, Any] = {"decay": 0.6}
    assert svd.low_rank_bytes(1000, 1000, **options) > 72 * 1000**2
    assert svd.low_rank_bytes(10_000, 50, **options) < 0.1 * svd.low_rank_bytes(
        10_000, 5000, **options
    )
