"""Steps and meetings: kernels against brute force."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.constants import NOWHERE
from cocite.kernels import random, trees, walk
from tests.kernels.arrays import compressed
from tests.oracles import walks
from tests.oracles.graphs import Edges, graphs, in_neighbors


def move(
    step: Any, offsets: Any, sources: Any, at: Any, choice: Any, out: Any, blocks: int
) -> None:
    """One step over so many destination blocks, the last one first."""
    cuts = np.linspace(0, offsets.size - 1, blocks + 1).astype(np.uint32)
    for first, last in reversed(list(pairwise(cuts))):
        step(offsets, sources, at, choice, out, first, last)


def steps(
    neighbors: list[list[int]], step: str, seed: int, sample: int, length: int, blocks: int = 1
) -> tuple[Any, Any, Any]:
    """(parent, label, extent) of one sample, by the kernels."""
    offsets, sources = compressed(neighbors)
    n = len(neighbors)
    at, head, out, owner, parent, extent = (np.empty(n, np.uint32) for _ in range(6))
    owner[:] = np.arange(n)[::-1]  # must not matter
    label = np.empty(n, np.uint8)
    walk.start(at, head, parent, label, extent)
    live = n
    for t in range(1, length + 1):
        key = np.uint64(random.draw_key(np.uint64(seed), np.uint64(sample), np.uint64(t)))
        if step == "uniform":
            move(walk.step_uniform, offsets, sources, at[:live], key, out[:live], blocks)
        else:
            order = random.empty_order()
            random.make_order(key, np.uint64(random.order_bits(n)), order)
            move(walk.step_argmin, offsets, sources, at[:live], order, out[:live], blocks)
        live = int(walk.meet(out[:live], at, head, owner, parent, label, extent, np.uint8(t)))
        assert (np.diff(head[:live].astype(int)) > 0).all()
    return parent, label, extent


@given(
    graphs(), st.sampled_from(["uniform", "argmin"]), st.integers(0, 2**64 - 1), st.integers(1, 15)
)
def test_the_walk_makes_the_fingerprint_graph_of_the_definition(
    graph: tuple[int, Edges], step: str, seed: int, length: int
) -> None:
    neighbors = in_neighbors(*graph)
    times = walks.meeting_times(walks.paths(neighbors, step, seed, 3, length))
    parents, labels = walks.fingerprint_graph(times)
    parent, label, _ = steps(neighbors, step, seed, 3, length)
    found = [None if p == NOWHERE else int(p) for p in parent]
    assert found == parents
    assert label.tolist() == labels


@given(graphs(), st.sampled_from(["uniform", "argmin"]), st.integers(0, 1000))
def test_dendrogram_order_holds_all_meeting_times(
    graph: tuple[int, Edges], step: str, seed: int
) -> None:
    neighbors = in_neighbors(*graph)
    n = len(neighbors)
    times = walks.meeting_times(walks.paths(neighbors, step, seed, 0, 10))
    parents, labels = walks.fingerprint_graph(times)
    parent, label, extent = steps(neighbors, step, seed, 0, 10)
    position, member = np.empty(n, np.uint32), np.empty(n, np.uint32)
    joined = np.empty(n, np.uint8)
    size = int(trees.lay_out(parent, label, extent, position, member, joined))
    assert size == sum(
        any(times[u, v] != walks.NEVER for v in range(n) if v != u) for u in range(n)
    )
    for u in range(n):
        for v in range(n):
            if u == v:
                continue
            tau = walks.tau_in_fingerprint_graph(parents, labels, u, v)
            assert tau == times[u, v]
            if NOWHERE in (position[u], position[v]):
                assert tau == walks.NEVER
                continue
            low, high = sorted((int(position[u]), int(position[v])))
            between = joined[low + 1 : high + 1].tolist()
            assert (max(between) if 0 not in between else walks.NEVER) == tau
    assert [int(member[position[v]]) for v in range(n) if position[v] != NOWHERE] == [
        v for v in range(n) if position[v] != NOWHERE
    ]


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9])
def test_labels_are_packed_low_half_first(size: int) -> None:
    joined = (np.arange(size) % 15 + 1).astype(np.uint8)
    out = np.zeros((size + 1) // 2, np.uint8)
    trees.pack_labels(joined, out)
    assert [(out[i // 2] >> (4 * (i % 2))) & 15 for i in range(size)] == joined.tolist()


@pytest.mark.parametrize("degree", [1, 2, 100, 5000, 30_000])
def test_a_hub_is_searched_and_scanned_to_the_same_argmin(degree: int) -> None:
    """From about 2,900 in-links on, on 65,536 words, the order is walked instead of the links."""
    nodes = 60_000
    rng = np.random.default_rng(degree)
    hub = sorted(rng.choice(nodes - 1, degree, replace=False).tolist())
    neighbors: list[list[int]] = [[] for _ in range(nodes)]
    neighbors[nodes - 1] = hub
    offsets, sources = compressed(neighbors)
    out = np.empty(1, np.uint32)
    for sample in range(50):
        key = random.draw_key(np.uint64(9), np.uint64(sample), np.uint64(1))
        order = random.empty_order()
        random.make_order(np.uint64(key), np.uint64(random.order_bits(nodes)), order)
        at = np.array([nodes - 1], np.uint32)
        move(walk.step_argmin, offsets, sources, at, order, out, 1)
        places = [int(random.place_of(order, np.uint32(u))) for u in hub]
        assert int(out[0]) == hub[int(np.argmin(places))]


def test_the_search_is_used_where_it_pays() -> None:
    """Guards the case above: the threshold lies between its degrees."""
    words = 2**16
    assert 100**2 < int(walk._SEARCH_FACTOR) * words < 5000**2


def test_tokens_beyond_one_batch_move_as_in_a_small_one() -> None:
    rng = np.random.default_rng(1)
    n = 500
    neighbors = [
        sorted(rng.choice(n, rng.integers(0, 5), replace=False).tolist()) for _ in range(n)
    ]
    for step in ("uniform", "argmin"):
        walked = walks.paths(neighbors, step, 5, 2, 4)
        parents, labels = walks.fingerprint_graph(walks.meeting_times(walked))
        parent, label, _ = steps(neighbors, step, 5, 2, 4)
        assert [None if p == NOWHERE else int(p) for p in parent] == parents
        assert label.tolist() == labels


@given(graphs(), st.sampled_from(["uniform", "argmin"]), st.integers(2, 20))
def test_blocks_do_not_change_a_walk(graph: tuple[int, Edges], step: str, blocks: int) -> None:
    neighbors = in_neighbors(*graph)
    whole = steps(neighbors, step, 1, 2, 10)
    cut = steps(neighbors, step, 1, 2, 10, blocks)
    assert all((a == b).all() for a, b in zip(whole, cut, strict=True))
