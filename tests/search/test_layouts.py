"""Layouts of walks: brute force, each other to the bit, the walks themselves, damage."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph, Index
from cocite.errors import Damaged
from cocite.index.layouts.trees.reader import MeetingReader, WalkReader
from tests.conftest import MakeGraph
from tests.oracles import walks
from tests.oracles.compact import relatives
from tests.oracles.graphs import Edges, graphs, in_neighbors
from tests.search.test_why import STEPS, TURN, turned

LAYOUTS = {
    "simrank": ("trees", "paths"),
    "psimrank": ("trees", "paths"),
    "compact-simrank": ("trees", "paths", "compact"),
}
NOWHERE = 2**32 - 1
WITH_WALKS = [(m, layout) for m, layouts in LAYOUTS.items() for layout in layouts[1:]]
TREES = ("psimrank", "trees"), ("psimrank", "packed")


def make(graph: Graph, measure: str, layout: str, **options: Any) -> Index:
    return cocite.build(graph, measure=measure, layout=layout, **options)


def reader_of(index: Index) -> WalkReader:
    reader = index.scorer.readers[0]
    assert isinstance(reader, WalkReader)
    return reader


@settings(max_examples=15)
@given(
    graphs(),
    st.sampled_from(WITH_WALKS),
    st.sampled_from(sorted(TURN)),
    st.tuples(st.integers(1, 6), st.integers(1, 15), st.integers(0, 2**64 - 1)),
)
def test_walks_and_meetings_are_those_of_brute_force(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    kind: tuple[str, str],
    direction: str,
    chosen: tuple[int, int, int],
) -> None:
    n, edges = graph
    measure, layout = kind
    samples, length, seed = chosen
    options: dict[str, Any] = {"samples": samples, "length": length, "seed": seed, "shard": 4}
    index = make(make_graph(edges, range(n)), measure, layout, direction=direction, **options)
    reader, neighbors = reader_of(index), turned(n, edges, direction)
    for sample in range(samples):
        walked = walks.paths(neighbors, STEPS[measure], seed, sample, length, TURN[direction])
        times = walks.meeting_times(walked)
        for u in range(n):
            steps = walked[u][1:]
            padded = steps + [NOWHERE] * (length - len(steps))
            assert reader.walks(u)[sample].tolist() == padded
            for v in range(n):
                assert reader.meeting_times(u, v)[sample] == times[u, v]


@settings(max_examples=15)
@given(
    st.sampled_from([*TREES, ("simrank", "paths"), ("compact-simrank", "compact")]),
    st.integers(1, 15),
    st.integers(0, 2**64 - 1),
    st.data(),
)
def test_many_are_asked_at_once_in_long_trees(
    make_graph: MakeGraph, kind: tuple[str, str], length: int, seed: int, data: st.DataObject
) -> None:
    """Trees of many words of labels, most of which are passed at once; any others in any order."""
    n, edges = 70, [(v // 3, v) for v in range(1, 70)] + [(60, 0), (69, 1), (5, 2), (3, 40)]
    measure, layout = kind
    options: dict[str, Any] = {"samples": 3, "length": length, "seed": seed, "shard": 2}
    index = make(make_graph(edges, range(n)), measure, layout, **options)
    reader, neighbors = index.scorer.readers[0], turned(n, edges, "in")
    assert isinstance(reader, MeetingReader)
    some = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=90))
    for sample in range(3):
        times = walks.meeting_times(walks.paths(neighbors, STEPS[measure], seed, sample, length))
        for u in range(0, n, 7):
            others = [v for v in some if v != u]
            found = reader.times_with(u, np.array(others, np.uint32))
            assert found.shape == (3, len(others))
            assert found[sample].tolist() == times[u, others].tolist()


@settings(max_examples=12)
@given(
    graphs(),
    st.sampled_from(sorted(LAYOUTS)),
    st.fixed_dictionaries(
        {
            "direction": st.sampled_from(["in", "out", "both"]),
            "samples": st.integers(1, 12),
            "length": st.integers(1, 15),
        }
    ),
    st.floats(0.05, 0.95),
)
def test_layouts_of_one_measure_answer_alike_to_the_bit(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    measure: str,
    chosen: dict[str, Any],
    decay: float,
) -> None:
    n, edges = graph
    stored, layouts = make_graph(edges, range(n)), (*LAYOUTS[measure], "packed")
    trees, *others = [make(stored, measure, layout, shard=5, **chosen) for layout in layouts]
    for u in range(n):
        expected = trees.related(u, n, decay=decay)
        pairs = [trees.similarity(u, v, decay=decay) for v in range(n)]
        for other in others:
            assert str(other.related(u, n, decay=decay)) == str(expected)  # nan is nan
            found = [other.similarity(u, v, decay=decay) for v in range(n)]
            assert str(found) == str(pairs)


@settings(max_examples=25)
@given(graphs(), st.integers(1, 12), st.integers(1, 15), st.floats(0.05, 0.95))
def test_compacted_scores_are_means_over_the_sampled_functions(
    make_graph: MakeGraph, graph: tuple[int, Edges], samples: int, length: int, decay: float
) -> None:
    """Each sample's function is read off its walks of one step, and asked by plain sets."""
    n, edges = graph
    options: dict[str, Any] = {"samples": samples, "length": length, "shard": 5}
    index = make(make_graph(edges, range(n)), "compact-simrank", "compact", **options)
    values = np.zeros((samples, n, n))
    for sample in range(samples):
        one = walks.paths(in_neighbors(n, edges), "uniform", 0, sample, 1)
        step = [path[1] if len(path) > 1 else None for path in one]
        for u in range(n):
            for v, value in relatives(step, u, decay, length).items():
                values[sample, u, v] = value
    means = values.mean(axis=0)
    for u in range(n):
        found = {int(hit.node): hit for hit in index.related(u, n, decay=decay)}
        assert set(found) == {v for v in range(n) if means[u, v] > 0.5e-12}
        for v in range(n):
            if v == u:
                continue
            score = index.similarity(u, v, decay=decay)
            assert abs(score.score - means[u, v]) < 1e-12
            if v in found:
                assert found[v].score == score.score
            if samples > 1:
                error = values[:, u, v].std(ddof=1) / math.sqrt(samples)
                assert abs(score.stderr - error) < 1e-6


def test_a_cycle_is_walked_round_and_round(make_graph: MakeGraph) -> None:
    """Two nodes of a cycle never meet; what hangs on it meets the node as far from it."""
    ring = [(i, (i + 1) % 3) for i in range(3)]
    graph = make_graph([*ring, (2, "tail"), ("tail", "end")])
    index = make(graph, "compact-simrank", "compact", samples=3, length=9)
    assert index.similarity(0, 1).score == index.similarity(1, 2).score == 0
    assert [hit[:3] for hit in index.related(0)] == [("tail", 0.6, 0.0)]
    assert [hit[:3] for hit in index.related(1)] == [("end", 0.36, 0.0)]
    assert [hit[:3] for hit in index.related("end")] == [("1", 0.36, 0.0)]


def test_repeated_children_end(make_graph: MakeGraph) -> None:
    """200 children, all of them a node with the same 200 children: 200**15 ways down."""
    graph = make_graph([(i, (i + 1) % 200) for i in range(200)])
    index = make(graph, "compact-simrank", "compact", samples=1, length=15)
    path = Path(index.stored.store.path) / "in.samples-000000"
    words = np.fromfile(path, np.uint32)
    words[:200] = 0  # forward
    words[200:401] = [200 * (i % 2) for i in range(201)]  # begin: the even nodes have them all
    words[401:601] = 2  # child
    words.tofile(path)
    with pytest.raises(Damaged, match="see: cocite verify"):
        cocite.open(path.parent, verify=False).related(7)
