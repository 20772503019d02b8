"""XJaccard: against brute-force winners and exact sets; bits of hashes."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import cocite
from cocite import Graph, Index
from cocite.index.layouts.minhash.reader import MatchReader, MinhashReader
from cocite.measures import PartSettings
from tests.conftest import MakeGraph
from tests.oracles import walks
from tests.oracles import xjaccard as exact
from tests.oracles.bounds import bernstein
from tests.oracles.graphs import Edges, graphs
from tests.search.test_why import DIRECTION_KEYS, neighbor_lists

NOWHERE = 2**32 - 1


def build(graph: Graph, **options: Any) -> Index:
    return cocite.build(graph, measure="xjaccard", **options)


def reader_of(index: Index) -> MatchReader:
    reader = index.scorer.readers[0]
    assert isinstance(reader, MatchReader)
    return reader


def weights_of(decay: float, length: int, normalized: bool) -> NDArray[np.float64]:
    weights = np.array([decay**k * (1 - decay) for k in range(1, length + 1)])
    return weights / weights.sum() if normalized else weights


def winners_of(
    n: int, edges: Edges, direction: str, length: int, seed: int, samples: int
) -> NDArray[np.int64]:
    """int64[samples, length, n], by breadth-first search and with plain integers."""
    rings = exact.rings(neighbor_lists(n, edges, direction), length)[1:]
    return np.array(
        [
            [exact.first_nodes(sets, seed, sample, DIRECTION_KEYS[direction]) for sets in rings]
            for sample in range(samples)
        ]
    )


def sketched(winners: NDArray[np.int64], direction: str, seed: int, bits: int) -> Any:
    """The first bits of each winner's draw, keyed by sample and ring."""
    found = np.empty_like(winners)
    for sample, rings in enumerate(winners):
        for k, nodes in enumerate(rings.tolist(), 1):
            key = walks.key_of(seed, sample, DIRECTION_KEYS[direction] + k)
            found[sample, k - 1] = [walks.draw(key, node) >> (64 - bits) for node in nodes]
    return found


@settings(max_examples=20)
@given(
    graphs(),
    st.fixed_dictionaries(
        {
            "direction": st.sampled_from(sorted(DIRECTION_KEYS)),
            "length": st.integers(1, 15),
            "seed": st.integers(0, 2**64 - 1),
            "samples": st.integers(1, 20),
        }
    ),
    st.integers(0, 16),
    st.fixed_dictionaries({"decay": st.floats(0.05, 0.95), "normalized": st.booleans()}),
)
def test_xjaccard_scores_match_brute_force_winners(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    build_options: dict[str, Any],
    bits: int,
    options: dict[str, Any],
) -> None:
    """Compare values per sample, scores, errors, hits and shared nodes."""
    n, edges = graph
    index = build(make_graph(edges, range(n)), bits=bits, shard=5, **build_options)
    direction, length, seed, samples = (
        build_options[key] for key in ("direction", "length", "seed", "samples")
    )
    reader = reader_of(index)
    winners = winners_of(n, edges, direction, length, seed, samples)
    stored = sketched(winners, direction, seed, bits) if bits else winners
    weights, chance = weights_of(length=length, **options), 2.0**-bits if bits else 0.0
    equal = stored[:, :, :, None] == stored[:, :, None, :]
    values = np.tensordot(equal, weights, axes=([1], [0]))
    values = (values - chance * weights.sum()) / (1 - chance)
    means = values.mean(axis=0)
    for u in range(n):
        hits = {int(hit.node): hit for hit in index.related(u, n, **options)}
        decided = np.abs(means[u] - 0.5e-12) > 1e-13
        assert {v for v in hits if decided[v]} == {
            v for v in range(n) if v != u and means[u, v] > 0.5e-12 and decided[v]
        }
        for v in range(n):
            found = index.similarity(u, v, **options)
            assert abs(found.score - means[u, v]) < 1.5e-12
            if u != v:
                lower, upper = reader.values(u, np.array([v], np.uint32), PartSettings(options))
                assert np.allclose(lower[:, 0], values[:, u, v], rtol=0, atol=1e-13)
                assert upper is lower  # nothing is cut
            assert v not in hits or str(hits[v][1:]) == str(tuple(found))
            if samples == 1:
                assert math.isnan(found.stderr)
            else:
                error = values[:, u, v].std(ddof=1) / math.sqrt(samples)
                assert abs(found.stderr - error) < 1e-6
            if isinstance(reader, MinhashReader) and u != v:
                shared = np.where(winners[:, :, u] == winners[:, :, v], winners[:, :, u], NOWHERE)
                assert reader.common(u, v).tolist() == shared.tolist()


N, LENGTH = 24, 3


@pytest.fixture(scope="module")
def edges() -> Edges:
    """A hub, chains, a node without in-links, and rings of many sizes."""
    rng = np.random.default_rng(3)
    drawn = {(int(a), int(b)) for a, b in rng.integers(1, N, (40, 2)) if a != b}
    return sorted(drawn | {(v, 5) for v in range(6, N, 2)} | {(0, 9)})


def scores_of(index: Index, **options: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    found = np.empty((2, N, N))
    for u in range(N):
        for v in range(u, N):
            score = index.similarity(u, v, interval="bernstein", **options)
            found[:, u, v] = found[:, v, u] = score[:2]
    return found[0], found[1]


@pytest.mark.statistical
@pytest.mark.parametrize(("bits", "samples"), [(1, 6000), (5, 12_000)])
def test_xjaccard_bits_estimates_are_unbiased(
    make_graph: MakeGraph, edges: Edges, bits: int, samples: int
) -> None:
    """Bernstein, with the variance that values in [low, low + R] and their mean s allow:
    (low + R - s)(s - low).
    """
    index = build(
        make_graph(edges, range(N)), samples=samples, length=LENGTH, bits=bits, shard=2000
    )
    truth = exact.xjaccard(neighbor_lists(N, edges, "in"), 0.6, LENGTH)
    found, _ = scores_of(index)
    full, chance = 0.6 - 0.6 ** (LENGTH + 1), 2.0**-bits
    width = full / (1 - chance)
    # The same as values above 0 in [0, width], moved down by chance * width.
    allowed = bernstein(truth + chance * width, samples, width, N * N)
    np.fill_diagonal(allowed, 1e-12)
    assert (np.abs(found - truth) <= allowed).all()
    assert allowed.max() < 0.05
    assert (found < 0).any()  # where little is shared
    biased = truth + chance * (full - truth)  # what would come out without the correction
    assert (np.abs(biased - truth) > 2 * allowed).any()


@pytest.mark.parametrize("bits", [0, 2])
def test_xjaccard_intervals_are_nonnegative(make_graph: MakeGraph, edges: Edges, bits: int) -> None:
    index = build(make_graph(edges, range(N)), samples=10, bits=bits)
    for bound in ("betting", "bernstein", "hoeffding"):
        for u in range(0, N, 4):
            for v in range(N):
                found = index.similarity(u, v, interval=bound)
                assert 0 <= found.low <= found.high <= 1
                assert found.low <= max(found.score, 0) + 1e-12
                if u == v:
                    assert found.low == found.high == found.score
        hits = index.related(5, N, interval=bound)
        assert 0 <= hits.certain_ranks <= len(hits)
