"""Layouts of walks, compared with brute force and with each other; damage."""

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
from tests.search.test_why import DIRECTION_KEYS, STEPS, neighbor_lists

LAYOUTS = {
    "simrank": ("trees", "paths"),
    "psimrank": ("trees", "paths"),
    "compact-simrank": ("trees", "paths", "compact"),
}
NOWHERE = 2**32 - 1
WITH_WALKS = [(m, layout) for m, layouts in LAYOUTS.items() for layout in layouts[1:]]
TREES = ("psimrank", "trees"), ("psimrank", "packed")


def build(graph: Graph, measure: str, layout: str, **options: Any) -> Index:
    return cocite.build(graph, measure=measure, layout=layout, **options)


def reader_of(index: Index) -> WalkReader:
    reader = index.scorer.readers[0]
    assert isinstance(reader, WalkReader)
    return reader


@settings(max_examples=12)
@given(
    graphs(),
    st.sampled_from(WITH_WALKS),
    st.sampled_from(sorted(DIRECTION_KEYS)),
    st.tuples(st.integers(1, 6), st.integers(1, 15), st.integers(0, 2**64 - 1)),
)
def test_walk_reader_matches_brute_force(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    kind: tuple[str, str],
    direction: str,
    drawn: tuple[int, int, int],
) -> None:
    n, edges = graph
    measure, layout = kind
    samples, length, seed = drawn
    options: dict[str, Any] = {"samples": samples, "length": length, "seed": seed, "shard": 4}
    index = build(make_graph(edges, range(n)), measure, layout, direction=direction, **options)
    reader, neighbors = reader_of(index), neighbor_lists(n, edges, direction)
    for sample in range(samples):
        paths = walks.paths(
            neighbors, STEPS[measure], seed, sample, length, DIRECTION_KEYS[direction]
        )
        times = walks.meeting_times(paths)
        for u in range(n):
            steps = paths[u][1:]
            padded = steps + [NOWHERE] * (length - len(steps))
            assert reader.walks(u)[sample].tolist() == padded
            for v in range(n):
                assert reader.meeting_times(u, v)[sample] == times[u, v]


@settings(max_examples=10)
@given(
    st.sampled_from([*TREES, ("simrank", "paths"), ("compact-simrank", "compact")]),
    st.integers(1, 15),
    st.integers(0, 2**64 - 1),
    st.data(),
)
def test_meeting_reader_times_with_handles_long_trees(
    make_graph: MakeGraph, kind: tuple[str, str], length: int, seed: int, data: st.DataObject
) -> None:
    """Trees whose labels fill many words; other nodes in any order."""
    n, edges = 70, [(v // 3, v) for v in range(1, 70)] + [(60, 0), (69, 1), (5, 2), (3, 40)]
    measure, layout = kind
    options: dict[str, Any] = {"samples": 3, "length": length, "seed": seed, "shard": 2}
    index = build(make_graph(edges, range(n)), measure, layout, **options)
    reader, neighbors = index.scorer.readers[0], neighbor_lists(n, edges, "in")
    assert isinstance(reader, MeetingReader)
    nodes = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=90))
    for sample in range(3):
        times = walks.meeting_times(walks.paths(neighbors, STEPS[measure], seed, sample, length))
        for u in range(0, n, 7):
            others = [v for v in nodes if v != u]
            found = reader.times_with(u, np.array(others, np.uint32))
            assert found.shape == (3, len(others))
            assert found[sample].tolist() == times[u, others].tolist()


@settings(max_examples=10)
@given(
    graphs(max_nodes=10),
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
def test_layouts_give_identical_scores(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    measure: str,
    options: dict[str, Any],
    decay: float,
) -> None:
    n, edges = graph
    stored, layouts = make_graph(edges, range(n)), (*LAYOUTS[measure], "packed")
    trees, *others = [build(stored, measure, layout, shard=5, **options) for layout in layouts]
    for u in range(n):
        expected = trees.related(u, n, decay=decay)
        pairs = [trees.similarity(u, v, decay=decay) for v in range(n)]
        for other in others:
            # as text, because nan != nan
            assert str(other.related(u, n, decay=decay)) == str(expected)
            found = [other.similarity(u, v, decay=decay) for v in range(n)]
            assert str(found) == str(pairs)


@settings(max_examples=12)
@given(graphs(), st.integers(1, 12), st.integers(1, 15), st.floats(0.05, 0.95))
def test_compact_layout_scores_match_sampled_functions(
    make_graph: MakeGraph, graph: tuple[int, Edges], samples: int, length: int, decay: float
) -> None:
    """A sample's function is read from its walks of one step, and evaluated with plain sets."""
    n, edges = graph
    options: dict[str, Any] = {"samples": samples, "length": length, "shard": 5}
    index = build(make_graph(edges, range(n)), "compact-simrank", "compact", **options)
    values = np.zeros((samples, n, n))
    for sample in range(samples):
        paths = walks.paths(in_neighbors(n, edges), "uniform", 0, sample, 1)
        step = [path[1] if len(path) > 1 else None for path in paths]
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


def test_compact_layout_follows_cycles(make_graph: MakeGraph) -> None:
    """Nodes of a cycle never meet; a tail meets the cycle node at the same distance."""
    ring = [(i, (i + 1) % 3) for i in range(3)]
    graph = make_graph([*ring, (2, "tail"), ("tail", "end")])
    index = build(graph, "compact-simrank", "compact", samples=3, length=9)
    assert index.similarity(0, 1).score == index.similarity(1, 2).score == 0
    assert [hit[:3] for hit in index.related(0)] == [("tail", 0.6, 0.0)]
    assert [hit[:3] for hit in index.related(1)] == [("end", 0.36, 0.0)]
    assert [hit[:3] for hit in index.related("end")] == [("1", 0.36, 0.0)]


def test_compact_layout_detects_repeated_children(make_graph: MakeGraph) -> None:
    """All 200 children have the same 200 children: there are 200**15 paths down."""
    graph = make_graph([(i, (i + 1) % 200) for i in range(200)])
    index = build(graph, "compact-simrank", "compact", samples=1, length=15)
    path = Path(index.stored.store.path) / "in.samples-000000"
    words = np.fromfile(path, np.uint32)
    words[:200] = 0  # forward
    words[200:401] = [200 * (i % 2) for i in range(201)]  # begin: even nodes have all children
    words[401:601] = 2  # child
    words.tofile(path)
    with pytest.raises(Damaged, match="see: cocite verify"):
        cocite.open(path.parent, verify=False).related(7)
