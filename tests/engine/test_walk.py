"""The walk: samples equal brute force, in any order and in any number of blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite.constants import NOWHERE, Step
from cocite.engine.walk import FingerprintGraph, Mover, Walker
from cocite.graph.blocks import Links
from cocite.graph.links import in_links, links_of
from cocite.kernels import trees
from tests.conftest import MakeGraph
from tests.kernels.arrays import compressed
from tests.oracles import walks
from tests.oracles.graphs import Edges, graphs, in_neighbors

PLAIN = [Step.UNIFORM, Step.ARGMIN]
"""Steps without weights; test_weighted_walk.py has the others."""


def assert_sample(found: FingerprintGraph, walked: list[list[int]]) -> None:
    parents, labels = walks.fingerprint_graph(walks.meeting_times(walked))
    assert [None if p == NOWHERE else int(p) for p in found.parent] == parents
    assert found.label.tolist() == labels


def cuts(nodes: int, blocks: int) -> list[int]:
    """The first nodes of all blocks but the first."""
    return sorted(set(np.linspace(0, nodes, blocks + 1)[1:-1].astype(int).tolist()) - {0})


@settings(max_examples=60)
@given(
    graphs(),
    st.sampled_from(PLAIN),
    st.integers(0, 2**64 - 1),
    st.integers(0, 65_534),
    st.integers(1, 15),
    st.integers(1, 20),
    st.booleans(),
)
def test_walker_equals_brute_force(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    step: Step,
    seed: int,
    sample: int,
    length: int,
    blocks: int,
    along_out_links: bool,
) -> None:
    """In any blocks, along in-links or out-links."""
    n, edges = graph
    links = links_of(make_graph(edges, range(n)), "out" if along_out_links else "in")
    walker = Walker(Mover(links, step, seed, cuts(n, blocks)), length)
    edges_walked = [(b, a) for a, b in edges] if along_out_links else edges
    walked = walks.paths(in_neighbors(n, edges_walked), step.value, seed, sample, length)
    for _ in range(2):
        assert_sample(walker(sample), walked)
        walker(sample + 1)  # a walker can be used again, in any order


@pytest.mark.parametrize("step", PLAIN)
def test_walker_moves_tokens_beyond_one_batch(step: Step) -> None:
    rng = np.random.default_rng(1)
    sizes = rng.integers(0, 5, 500)
    neighbors = [sorted(rng.choice(500, size, replace=False).tolist()) for size in sizes]
    found = Walker(Mover(Links(*compressed(neighbors)), step, 5), 4)(2)
    assert_sample(found, walks.paths(neighbors, step.value, 5, 2, 4))


def test_walker_counts_live_tokens(make_graph: MakeGraph) -> None:
    """In a star all walks of spokes meet at the hub at once, and the walk of the hub has ended."""
    graph = make_graph([("hub", f"spoke{i:02}") for i in range(10)])
    assert Walker(Mover(in_links(graph), Step.UNIFORM, 0), 10)(0).live == (11, 1)


@given(graphs(), st.sampled_from(PLAIN), st.integers(0, 1000))
def test_lay_out_keeps_meeting_times(graph: tuple[int, Edges], step: Step, seed: int) -> None:
    neighbors = in_neighbors(*graph)
    n = len(neighbors)
    times = walks.meeting_times(walks.paths(neighbors, step.value, seed, 0, 10))
    parents, labels = walks.fingerprint_graph(times)
    found = Walker(Mover(Links(*compressed(neighbors)), step, seed), 10)(0)
    position, member = np.empty(n, np.uint32), np.empty(n, np.uint32)
    joined = np.empty(n, np.uint8)
    size = int(trees.lay_out(found.parent, found.label, found.extent, position, member, joined))
    placed = [v for v in range(n) if position[v] != NOWHERE]
    assert size == len(placed)
    assert placed == [u for u in range(n) if (np.delete(times[u], u) != walks.NEVER).any()]
    assert [int(member[position[v]]) for v in placed] == placed
    for u in range(n):
        for v in range(u):
            tau = walks.tau_in_fingerprint_graph(parents, labels, u, v)
            assert tau == times[u, v] == times[v, u]
            if u not in placed or v not in placed:
                assert tau == walks.NEVER
                continue
            low, high = sorted((int(position[u]), int(position[v])))
            between = joined[low + 1 : high + 1].tolist()
            assert (max(between) if 0 not in between else walks.NEVER) == tau
