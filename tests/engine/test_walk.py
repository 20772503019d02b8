"""The walker: samples depend on what they should, and on nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite.engine.walk import Walker, walker_bytes
from cocite.engine.weights import Step
from cocite.graph.links import in_links, out_links
from tests.conftest import MakeGraph
from tests.oracles import walks
from tests.oracles.graphs import Edges, graphs, in_neighbors

PLAIN = [Step.UNIFORM, Step.ARGMIN]
"""Steps without weights; the others are in test_weighted_walk.py."""


@settings(max_examples=25)
@given(graphs(), st.sampled_from(PLAIN), st.integers(0, 2**64 - 1), st.integers(0, 65_534))
def test_a_sample_of_a_stored_graph_is_that_of_brute_force(
    make_graph: MakeGraph, graph: tuple[int, Edges], step: Step, seed: int, sample: int
) -> None:
    n, edges = graph
    found = Walker(in_links(make_graph(edges, range(n))), step, 6, seed)(sample)
    walked = walks.paths(in_neighbors(n, edges), step.value, seed, sample, 6)
    parents, labels = walks.fingerprint_graph(walks.meeting_times(walked))
    assert [None if p == 2**32 - 1 else int(p) for p in found.parent] == parents
    assert found.label.tolist() == labels


@pytest.mark.parametrize("step", PLAIN)
def test_a_walker_can_be_used_again_and_in_any_order(make_graph: MakeGraph, step: Step) -> None:
    rng = np.random.default_rng(0)
    graph = make_graph(rng.integers(0, 50, (300, 2)).tolist())
    walker = Walker(in_links(graph), step, 10, 1)
    first = [walker(i).parent.copy() for i in (0, 1, 2)]
    again = [walker(i).parent.copy() for i in (2, 0, 1)]
    assert all((a == b).all() for a, b in zip(first, [again[1], again[2], again[0]], strict=True))
    assert not (first[0] == first[1]).all()


def test_live_tokens_are_counted_and_only_they_are_moved(make_graph: MakeGraph) -> None:
    """In a star all spokes' walks meet at the hub at once, and the hub's walk has ended."""
    graph = make_graph([("hub", f"spoke{i:02}") for i in range(10)])
    assert Walker(in_links(graph), Step.UNIFORM, 10, 0)(0).live == (11, 1)


def test_scratch_memory_is_what_it_says(make_graph: MakeGraph) -> None:
    walker = Walker(in_links(make_graph([(i, i + 1) for i in range(99)])), Step.ARGMIN, 5, 0)
    owned = sum(
        v.nbytes for v in vars(walker).values() if isinstance(v, np.ndarray) and v.base is None
    )
    assert owned == walker_bytes(100)


@settings(max_examples=15)
@given(graphs(), st.sampled_from(PLAIN), st.integers(0, 99))
def test_a_walk_over_out_links_is_that_of_the_graph_turned_round(
    make_graph: MakeGraph, graph: tuple[int, Edges], step: Step, seed: int
) -> None:
    n, edges = graph
    turned = Walker(out_links(make_graph(edges, range(n))), step, 6, seed)(3)
    walked = walks.paths(in_neighbors(n, [(b, a) for a, b in edges]), step.value, seed, 3, 6)
    parents, labels = walks.fingerprint_graph(walks.meeting_times(walked))
    assert [None if p == 2**32 - 1 else int(p) for p in turned.parent] == parents
    assert turned.label.tolist() == labels
