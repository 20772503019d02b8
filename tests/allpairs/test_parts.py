"""The parts on their own: order, the team."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cocite.allpairs.core import offsets_of
from cocite.allpairs.links import bandwidth, reordered
from cocite.cluster import Team
from tests.oracles.graphs import Edges, graphs


def rows(n: int, edges: Edges) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    ordered = sorted((b, a) for a, b in edges)
    counts = np.bincount([b for b, _ in ordered], minlength=n)
    return offsets_of(counts), np.array([a for _, a in ordered], np.uint32)


def renumbered(edges: Edges, order: NDArray[np.int64]) -> Edges:
    place = np.argsort(order)
    return [(int(place[a]), int(place[b])) for a, b in edges]


@given(graphs(30))
def test_order_is_a_permutation_from_least_degrees(graph: tuple[int, Edges]) -> None:
    n, edges = graph
    order = reordered(*rows(n, edges))
    assert sorted(order.tolist()) == list(range(n))
    degree = [
        len({b for a, b in edges if a == v} | {a for a, b in edges if b == v}) for v in range(n)
    ]
    assert degree[order[-1]] == min(degree)


@pytest.mark.parametrize("seed", range(3))
def test_a_shuffled_path_gets_bandwidth_one_and_a_grid_its_width(seed: int) -> None:
    shuffle = np.random.default_rng(seed).permutation(120)
    path = [(int(shuffle[i]), int(shuffle[i + 1])) for i in range(119)]
    assert bandwidth(*rows(120, path)) > 10
    assert bandwidth(*rows(120, renumbered(path, reordered(*rows(120, path))))) == 1
    side = [(r * 6 + c, r * 6 + c + 1) for r in range(20) for c in range(5)]
    down = [(r * 6 + c, r * 6 + 6 + c) for r in range(19) for c in range(6)]
    grid = [(int(shuffle[a]), int(shuffle[b])) for a, b in side + down]
    assert bandwidth(*rows(120, renumbered(grid, reordered(*rows(120, grid))))) <= 7


def test_scipy_finds_no_much_narrower_order() -> None:
    import scipy.sparse

    rng = np.random.default_rng(2)
    edges = sorted({(int(a), int(b)) for a, b in rng.integers(0, 200, (260, 2)) if a != b})
    offsets, columns = rows(200, edges)
    both = scipy.sparse.coo_array((np.ones(len(edges)), np.array(edges).T), shape=(200, 200))
    matrix = scipy.sparse.csr_array(both + both.T)
    theirs = scipy.sparse.csgraph.reverse_cuthill_mckee(matrix, symmetric_mode=True)
    ours = bandwidth(*rows(200, renumbered(edges, reordered(offsets, columns))))
    other = bandwidth(*rows(200, renumbered(edges, theirs.astype(np.int64))))
    assert ours <= 1.15 * other  # ties are broken otherwise


@given(st.integers(1, 7), st.integers(0, 200), st.sampled_from([1, 16]), st.data())
def test_team_splits_range(threads: int, size: int, aligned: int, data: st.DataObject) -> None:
    loads = data.draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))
    for load in (None, offsets_of(np.array(loads, int))):
        with Team(threads) as team:
            parts = team.split(lambda low, high: (low, high), size, load, aligned)
        assert parts[0][0] == 0
        assert parts[-1][1] == size
        assert all(a[1] == b[0] and b[0] % aligned == 0 for a, b in pairwise(parts))


def test_what_a_member_of_a_team_raises_comes_out_when_all_are_done() -> None:
    done = []

    def work(low: int, high: int) -> None:
        done.append(low)
        if low:
            raise ValueError(f"at {low}")

    with Team(3) as team, pytest.raises(ValueError, match="at 16"):
        team.split(work, 48)
    assert sorted(done) == [0, 16, 32]
