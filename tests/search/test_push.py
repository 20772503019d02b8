"""Personalized PageRank: against the solved equations, within its certified error."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite.index.layouts.links import push
from cocite.index.layouts.links.push import PushReader
from cocite.index.layouts.reader import borrowed
from cocite.measures import PartSettings
from tests.conftest import MakeGraph
from tests.oracles import neighbors as exact
from tests.oracles.graphs import Edges, graphs
from tests.oracles.simrank import dense
from tests.search.exact import assert_related_is_similarity_sorted, scores

ROUNDING = 1e-11
"""Scores are whole grains (1e-12); solving and pushing are off by some 1e-15 a step."""


@settings(max_examples=40)
@given(
    graphs(),
    st.sampled_from(["in", "out", "both"]),
    st.sampled_from([0.001, 0.3, 0.85, 0.999]),
    st.sampled_from([1.0, 0.1, 1e-3, 1e-12]),
)
def test_scores_are_within_the_tolerance_below_the_truth(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    direction: str,
    damping: float,
    tolerance: float,
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    index = cocite.build(stored, stored.path.with_suffix(".i"), measure="ppr", direction=direction)
    asked = {"damping": damping, "tolerance": tolerance}
    steps = dense(n, edges).T
    ways = {"out": [steps], "in": [steps.T], "both": [steps, steps.T]}[direction]
    truth = np.mean([exact.ppr(way, damping) for way in ways], axis=0)
    assert np.allclose(truth.sum(axis=1), 1)
    found = scores(index, **asked)
    assert (found <= truth + ROUNDING).all()
    assert (found >= truth - tolerance - ROUNDING).all()
    assert (1 - found.sum(axis=1) <= tolerance + n * ROUNDING).all()
    assert_related_is_similarity_sorted(index, found, **asked)
    assert (np.diag(found) >= (1 - damping) - ROUNDING).all() or tolerance > 1e-12


@given(graphs(), st.sampled_from([0.3, 0.01]))
@settings(max_examples=20)
def test_certified_err(make_graph: MakeGraph, graph: tuple[int, Edges], tolerance: float) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    index = cocite.build(stored, stored.path.with_suffix(".i"), measure="ppr")
    reader = index.scorer.readers[0]
    assert isinstance(reader, PushReader)
    asked = {"damping": 0.85, "tolerance": tolerance}
    truth, found = exact.ppr(dense(n, edges).T, 0.85), scores(index, **asked)
    for u in range(n):
        with borrowed(n) as scratch:
            count, bound = reader._push(u, PartSettings(asked), scratch)
            scratch.scores[scratch.used[:count]] = 0.0
        assert 0 <= bound <= tolerance * (1 + 1e-9)
        assert (truth[u] - found[u] <= bound + ROUNDING).all()
        # All that is missing is the bound itself: it is not merely an upper one.
        assert abs(1 - found[u].sum() - bound) < n * ROUNDING


def test_walk_follows_links_forwards(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([("a", "b"), ("b", "c")])
    ahead = cocite.build(graph, tmp_path / "o", measure="ppr")
    back = cocite.build(graph, tmp_path / "i", measure="ppr", direction="in")
    assert ahead.direction == "out"
    assert [hit.node for hit in ahead.related("a")] == ["b", "c"]
    assert [hit.node for hit in back.related("c")] == ["b", "a"]
    assert ahead.related("c") == back.related("a") == []
    assert ahead.similarity("a", "c").score > 0 == ahead.similarity("c", "a").score
    # a, b and c in turns, each step survived with 0.5: shares 4, 2 and 1 of 7.
    assert [hit[:3] for hit in ahead.related("a", damping=0.5, tolerance=1e-12)] == [
        ("b", round(2 / 7, 12), 0),
        ("c", round(1 / 7, 12), 0),
    ]


def test_a_node_without_links_keeps_its_walk(make_graph: MakeGraph, tmp_path: Path) -> None:
    index = cocite.build(make_graph([("a", "b")], ["alone"]), tmp_path / "i", measure="ppr")
    assert index.similarity("alone", "alone")[:2] == (1, 0)
    assert index.similarity("alone", "a")[:2] == (0, 0)
    assert index.related("alone") == []


def test_slices_do_not_change_a_bit(
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a push is interrupted to listen, it goes on as if it had not been."""
    rng = np.random.default_rng(5)
    graph = make_graph(rng.integers(0, 300, (2000, 2)).tolist())
    index = cocite.build(graph, tmp_path / "i", measure="ppr")
    asked = list(index.nodes)[::6]
    whole = [index.related(node, 400) for node in asked]
    assert max(map(len, whole)) > 200
    for links in (1, 50, 5000):
        monkeypatch.setattr(push, "_SLICE", links)
        assert [index.related(node, 400) for node in asked] == whole
