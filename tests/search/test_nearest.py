"""Shared nearest neighbors: dense matrices, closed forms, builds and queries."""

import math
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph, Index
from cocite.errors import ResourceError
from cocite.graph import links as graph_links
from cocite.index.layouts.rows import build as row_build
from cocite.index.layouts.rows import neighbors as nearest
from cocite.index.layouts.rows.reader import NearestReader
from tests.conftest import MakeGraph
from tests.oracles import nearest as exact
from tests.oracles.fusion import order
from tests.oracles.graphs import Edges, graphs
from tests.oracles.simrank import dense
from tests.search.exact import (
    assert_related_is_similarity_sorted,
    contents,
    scores,
    scratch_folders,
)

ROUNDING = 2e-12
"""Scores are multiples of 1e-12; sums of a few dozen float64 are off by far less."""
DIRECTIONS = st.sampled_from(["in", "out", "both"])
LIST_SIZES = st.sampled_from([1, 2, 3, 50])
MAX_DEGREES = st.sampled_from([1, 2, 3, 10_000])
FORMS = st.sampled_from(["jaccard", "cosine"])


def build(graph: Graph, output: Path, **options: Any) -> Index:
    return cocite.build(graph, output, measure="snn", **options)


def neighbor_matrices(n: int, edges: Edges, direction: str) -> list[Any]:
    ins = dense(n, edges)
    return {"in": [ins], "out": [ins.T], "both": [ins, ins.T]}[direction]


def reader_of(index: Index) -> NearestReader:
    (found,) = index.scorer.readers
    assert isinstance(found, NearestReader)
    return found


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(3)
    return make_graph([(f"p{a}", f"p{b}") for a, b in rng.integers(0, 100, (500, 2)).tolist()])


# -- the definition ------------------------------------------------------------------------


@settings(max_examples=25)
@given(graphs(), DIRECTIONS, LIST_SIZES, MAX_DEGREES, FORMS, st.booleans())
def test_snn_scores_match_dense_matrices(
    make_graph: MakeGraph,
    drawn: tuple[int, Edges],
    direction: str,
    k: int,
    max_degree: int,
    form: str,
    mutual: bool,
) -> None:
    n, edges = drawn
    graph = make_graph(edges, range(n))
    output = graph.path.with_suffix(".index")
    index = build(graph, output, direction=direction, neighbors=k, max_degree=max_degree)
    vectors = exact.lists(neighbor_matrices(n, edges, direction), k, max_degree)
    reader = reader_of(index)
    for v in range(n):
        listed, values = reader.listed(v)
        assert listed.tolist() == np.flatnonzero(vectors[v]).tolist()
        np.testing.assert_allclose(np.abs(values), vectors[v, listed], rtol=2.0**-23)
        assert ((values > 0) == (vectors[listed, v] > 0)).all()
    options: dict[str, Any] = {"form": form, "mutual": mutual}
    truth = exact.scores(vectors, form, mutual)
    found = scores(cocite.open(output), **options)
    assert np.abs(found - truth).max() < ROUNDING
    assert (found == found.T).all()
    assert_related_is_similarity_sorted(index, found, **options)


@settings(max_examples=15)
@given(graphs(), DIRECTIONS, FORMS, st.booleans())
def test_snn_why_shares_match_common_neighbors(
    make_graph: MakeGraph, drawn: tuple[int, Edges], direction: str, form: str, mutual: bool
) -> None:
    n, edges = drawn
    graph = make_graph(edges, range(n))
    index = build(graph, graph.path.with_suffix(".index"), direction=direction, neighbors=3)
    vectors = exact.lists(neighbor_matrices(n, edges, direction), 3, 10_000)
    terms = exact.shared(vectors, form, mutual)
    truth = exact.scores(vectors, form, mutual)
    for u, v in permutations(range(n), 2):
        found = index.why(u, v, 10**6, form=form, mutual=mutual).reasons
        parts = terms[u, v].copy()
        merged = int(v if parts[v] else u)  # that the two are near each other is one reason
        parts[[u, v]] = 0
        parts[merged] = terms[u, v, [u, v]].sum()
        assert {int(r.node) for r in found} == set(np.flatnonzero(parts).tolist())
        for reason in found:
            share = truth[u, v] * parts[int(reason.node)] / parts.sum()
            assert abs(reason.contribution - share) < ROUNDING
            assert reason.links == direction


@settings(max_examples=10)
@given(graphs(), DIRECTIONS, st.data())
def test_snn_ignores_self_loops(
    make_graph: MakeGraph, drawn: tuple[int, Edges], direction: str, data: st.DataObject
) -> None:
    """A page is always among its own neighbors."""
    n, edges = drawn
    loops = [(v, v) for v in sorted(data.draw(st.sets(st.integers(0, n - 1))))]
    plain = make_graph(edges, range(n))
    looped = make_graph(edges + loops, range(n), keep_self_loops=True)
    without_loops, with_loops = (
        build(g, g.path.with_suffix(".index"), direction=direction, neighbors=2)
        for g in (plain, looped)
    )
    assert np.abs(scores(without_loops) - scores(with_loops)).max() < ROUNDING


def test_snn_matches_closed_forms(make_graph: MakeGraph, tmp_path: Path) -> None:
    """h links to a and b, and a to c; of 5 nodes. By in-links, with themselves: N(a) = {h, a},
    N(b) = {h, b}, N(c) = {a, c}, N(h) = {h}; h has three members, a two, b and c one.
    """
    graph = make_graph([("h", "a"), ("h", "b"), ("a", "c")], ["alone"])
    index = build(graph, tmp_path / "i", direction="in")
    h, a, self_weight = math.log(5 / 3), math.log(5 / 2), math.log(5)
    similarities = {
        ("a", "b"): h / (h + a + self_weight),
        ("a", "c"): a / (a + h + self_weight),
        ("a", "h"): h / (h + a),
        ("b", "h"): h / (h + self_weight),
    }
    lists: dict[str, dict[str, float]] = {u: {u: 1.0} for u in "abch"}
    for (u, v), score in similarities.items():
        lists[u][v] = lists[v][u] = score
    for u, v in permutations("abch", 2):
        pages = lists[u].keys() | lists[v].keys()
        weights = [(lists[u].get(x, 0), lists[v].get(x, 0)) for x in pages]
        score = sum(map(min, weights)) / sum(map(max, weights))
        assert abs(index.similarity(u, v).score - score) < 4 * 2.0**-24
    assert index.similarity("alone", "alone").score == 1
    assert index.similarity("a", "alone").score == 0


def test_snn_max_degree_ignores_hubs(make_graph: MakeGraph, tmp_path: Path) -> None:
    """The hub is its own neighbor, too; pages linked only with it get no hits."""
    edges = [("hub", f"n{i}") for i in range(6)]
    graph = make_graph(edges, ["x", "y", "z"])
    for max_degree, hits in ((7, 6), (6, 0)):
        index = build(graph, tmp_path / str(max_degree), direction="in", max_degree=max_degree)
        assert len(index.related("n0")) == hits


def test_snn_lists_break_ties_by_hash(make_graph: MakeGraph, tmp_path: Path) -> None:
    """n1 is nearest to the hub, and then equally near to n2, n3 and n5, which have the same
    in-links; n0 and n4 have one more.
    """
    graph = make_graph([("hub", f"n{i}") for i in range(6)] + [("other", "n0"), ("other", "n4")])
    index = build(graph, tmp_path / "i", direction="in", neighbors=2)
    ids = index.nodes.ids(["n1", "hub", "n2", "n3", "n5"]).tolist()
    listed, values = reader_of(index).listed(ids[0])
    assert listed.tolist() == sorted([*ids[:2], min(ids[2:], key=order)])
    h, self_weight = math.log(8 / 7), math.log(8)
    expected = [1, h / (h + self_weight), h / (h + 2 * self_weight)]
    assert sorted(np.abs(values), reverse=True) == pytest.approx(expected, rel=2.0**-23)


def test_snn_direction_both_is_one_part(graph: Graph, tmp_path: Path) -> None:
    index = build(graph, tmp_path / "i")
    assert index.direction == "both"
    assert [(part.direction, part.weight) for part in index.stored.parts] == [("both", 1)]
    blend = cocite.build(graph, measure="blend:snn+cocitation(form=cosine)", direction="both")
    assert [(p.measure.name, p.direction, p.weight) for p in blend.stored.parts] == [
        ("snn", "both", 0.5),
        ("cocitation", "in", 0.25),
        ("cocitation", "out", 0.25),
    ]
    cocitation = cocite.build(graph, measure="cocitation", direction="both")
    for a, b in (("p1", "p2"), ("p7", "p30")):
        mean = (index.similarity(a, b).score + cocitation.similarity(a, b).score) / 2
        assert abs(blend.similarity(a, b).score - mean) < ROUNDING


# -- building ------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["in", "out", "both"])
def test_snn_build_ignores_threads_and_memory(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direction: str
) -> None:
    build(graph, tmp_path / "a", direction=direction, threads=1)
    build(graph, tmp_path / "b", direction=direction, threads=3)
    monkeypatch.setattr(nearest, "_MOST_ENTRIES", 200)
    monkeypatch.setattr(row_build, "READ", 100)
    monkeypatch.setattr(graph_links, "_LEAST_BLOCK", 512)
    monkeypatch.setattr(graph_links, "_PIECE", 512)
    monkeypatch.setattr(nearest, "_LEAST_LINKS", 4096)
    folders = scratch_folders(monkeypatch)
    required = 80 * graph.nodes + 24 * 200 + 4096
    build(graph, tmp_path / "c", direction=direction, memory=required)
    assert folders
    with pytest.raises(
        ResourceError, match=r"lists of .* nodes need .* Raise the limit with --memory"
    ):
        build(graph, tmp_path / "d", direction=direction, memory=required - 1000)
    assert contents(tmp_path / "a") == contents(tmp_path / "b") == contents(tmp_path / "c")
