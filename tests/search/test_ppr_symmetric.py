"""Proximity: against the inverse of the matrix, within its certificate, and full lists."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite.errors import Damaged, UsageError
from cocite.measures.ppr import MAX_EDGES, MIN_RESULTS
from tests.conftest import MakeGraph
from tests.oracles.fusion import order
from tests.oracles.graphs import Edges, graphs
from tests.oracles.ppr_symmetric import ppr_symmetric
from tests.oracles.simrank import dense
from tests.search.exact import scores

ROUNDING = 2e-11
"""Scores are whole grains (1e-12); solving is off by some 1e-15 / (1 - damping)."""


@settings(max_examples=40)
@given(
    graphs(),
    st.sampled_from([0.1, 0.5, 0.85, 0.95]),
    st.sampled_from([1, 10, 10**6]),
    st.sampled_from([1, 5, 100]),
)
def test_the_truth_is_within_what_is_certified(
    make_graph: MakeGraph, graph: tuple[int, Edges], damping: float, max_edges: int, least: int
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    index = cocite.build(stored, stored.path.with_suffix(".i"), measure="ppr-symmetric")
    asked: dict[str, Any] = {"damping": damping, MAX_EDGES.name: max_edges}
    asked[MIN_RESULTS.name] = least
    links = dense(n, edges)
    truth = ppr_symmetric(links + links.T, damping)
    linked = (links + links.T).any(axis=1)
    found = scores(index, **asked)
    assert (found[linked] <= truth[linked] + ROUNDING).all()
    high = np.ones((n, n))
    for u in range(n):
        for hit in index.related(index.nodes.name(u), n, **asked):
            high[u, index.nodes.id(hit.node)] = hit.high
            assert hit.low == pytest.approx(hit.score, abs=1e-12)
        for v in range(n):
            pair = index.similarity(index.nodes.name(u), index.nodes.name(v), **asked)
            assert pair.low - ROUNDING <= truth[u, v] <= pair.high + ROUNDING
    assert (truth <= high + ROUNDING).all()
    if max_edges == 10**6:
        assert np.abs(found - truth)[linked].max(initial=0) <= ROUNDING


@settings(max_examples=30)
@given(graphs(), st.integers(1, 40))
def test_list_fills_component(make_graph: MakeGraph, graph: tuple[int, Edges], least: int) -> None:
    """However little is read: a page reaches all that is connected with it, or so many pages."""
    n, edges = graph
    stored = make_graph(edges, range(n))
    index = cocite.build(stored, stored.path.with_suffix(".i"), measure="ppr-symmetric")
    links = dense(n, edges)
    reached = np.linalg.matrix_power(links + links.T + np.eye(n), n) > 0
    for u in range(n):
        there = int(reached[u].sum()) - 1
        hits = index.related(index.nodes.name(u), n, **{MAX_EDGES.name: 1, MIN_RESULTS.name: least})
        assert min(there, least) <= len(hits) <= there


def test_weighted_ppr_is_that_of_the_matrix(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    pairs = rng.integers(0, 30, (90, 2)).tolist()
    weights = np.exp(rng.normal(0, 1, 90)).astype(np.float32).tolist()
    rows = {(a, b): w for (a, b), w in zip(pairs, weights, strict=True) if a != b}
    (tmp_path / "l.tsv").write_text("".join(f"{a}\t{b}\t{w!r}\n" for (a, b), w in rows.items()))
    graph = cocite.ingest(tmp_path / "l.tsv", tmp_path / "g", weight_column="3", header="no")
    index = cocite.build(graph, tmp_path / "i", measure="ppr-symmetric")
    either = np.zeros((graph.nodes, graph.nodes))
    for (a, b), weight in rows.items():
        u, v = index.nodes.id(str(a)), index.nodes.id(str(b))
        either[u, v] += weight
        either[v, u] += weight
    truth = ppr_symmetric(either, 0.9)
    assert np.abs(scores(index, max_edges=10**7) - truth).max() < ROUNDING
    plain = cocite.build(graph, tmp_path / "p", measure="ppr-symmetric", unweighted=True)
    assert np.abs(scores(plain) - truth).max() > 0.01


def test_isolated_pair_scores_1(make_graph: MakeGraph, tmp_path: Path) -> None:
    edges = [("a", "b"), *(("h", f"x{i}") for i in range(50)), *(("k", f"x{i}") for i in range(50))]
    index = cocite.build(make_graph([*edges, ("h", "k")]), tmp_path / "i", measure="ppr-symmetric")
    assert index.similarity("a", "b").score == 1
    assert index.similarity("h", "x1", damping=0.1).score > 0.1 / np.sqrt(51 * 2)
    assert index.related("a") == [cocite.Hit("b", *index.similarity("a", "b"))]


def test_it_takes_links_either_way_and_nothing_else(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([("a", "b"), ("c", "b")])
    with pytest.raises(UsageError, match="direction is 'in'; for ppr-symmetric it is any"):
        cocite.build(graph, tmp_path / "i", measure="ppr-symmetric", direction="in")
    with pytest.raises(UsageError, match="for cocitation it is in or out or both"):
        cocite.build(graph, tmp_path / "i", measure="cocitation", direction="any")
    index = cocite.build(graph, tmp_path / "i", measure="ppr-symmetric")
    assert index.direction == "any"
    hits = index.related("a")
    assert [hit.score for hit in hits] == [1.0, 1.0]
    assert [hit.node for hit in hits] == sorted("bc", key=lambda n: order(index.nodes.id(n)))
    reasons = index.why("a", "c").reasons
    assert [(r.node, r.links) for r in reasons] == [("b", "any")]


def test_degrees_that_are_none_are_damage(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([("a", "b"), ("c", "b")])
    index = cocite.build(graph, tmp_path / "i", measure="ppr-symmetric")
    path = index.stored.store.path / "any.degrees"
    whole = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(whole[:-16] + np.array([-1.0, 1.0]).tobytes())
    with pytest.raises(Damaged, match="degrees"):
        cocite.open(tmp_path / "i").related("a")
