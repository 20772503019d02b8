"""SimRank++'s evidence: against dense matrices, and in every kind of query."""

import itertools
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph, Hit, Index
from cocite.errors import NotAStore, UsageError
from tests.conftest import MakeGraph
from tests.oracles import simrank as exact
from tests.oracles.bounds import bernstein
from tests.oracles.fusion import order
from tests.oracles.graphs import Edges, graphs
from tests.search.exact import scores

FORMS = ("geometric", "exponential")
ORACLES = {"simrank": exact.simrank, "psimrank": exact.psimrank}
RNG = np.random.default_rng(4)
EDGES = [(a, b) for a, b in RNG.integers(0, 12, (40, 2)).tolist() if a != b]
EDGES += [(a, b) for a in (0, 1, 2, 3) for b in (10, 11)]  # these share many neighbors
LINKED = "10"
"""A node that shares neighbors with others."""


def neighbor_matrix(n: int, edges: Edges, direction: str) -> exact.Matrix:
    """The 0/1 matrix of neighbors in a direction."""
    links = exact.dense(n, edges)
    rows = {"in": links, "out": links.T, "any": np.maximum(links, links.T)}
    return rows[direction]


def sorted_pairs(index: Index, node: object, **options: Any) -> list[Hit]:
    """``similarity`` with every node, in the order of ``related``."""
    found = [Hit(name, *index.similarity(node, name, **options)) for name in index.nodes]
    ranked = sorted(enumerate(found), key=lambda pair: (-pair[1].score, order(pair[0])))
    return [hit for _, hit in ranked if hit.score > 0 and hit.node != node]


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    return make_graph(EDGES, range(12))


@pytest.mark.statistical
@pytest.mark.parametrize(("measure", "direction"), [("simrank", "in"), ("psimrank", "out")])
def test_evidence_estimates_converge(graph: Graph, measure: str, direction: str) -> None:
    samples, length, decay = 5_000, 7, 0.8
    options: dict[str, Any] = {"samples": samples, "length": length, "seed": 1, "shard": 2000}
    options |= {"threads": 1}
    index = cocite.build(graph, measure=measure, direction=direction, **options)
    rows = neighbor_matrix(12, EDGES, direction)
    # Names are numbers, and so are ids in their order.
    assert [int(name) for name in index.nodes] == list(range(12))
    without_evidence = ORACLES[measure](rows, decay, length)
    for form in FORMS:
        truth = without_evidence * exact.evidence(rows, form)
        found = scores(index, decay=decay, evidence=form, interval="bernstein")
        allowed = bernstein(truth, samples, decay, 2 * truth.size)
        np.fill_diagonal(allowed, 1e-12)
        assert (np.abs(found - truth) <= allowed).all()
        assert allowed.max() < 0.05  # the test can fail
        assert np.abs(without_evidence - truth).max() > 0.1


@settings(max_examples=6)
@given(
    graphs(max_nodes=10),
    st.sampled_from(FORMS),
    st.fixed_dictionaries(
        {
            "measure": st.sampled_from(sorted(ORACLES)),
            "direction": st.sampled_from(["in", "out", "any", "both"]),
            "layout": st.sampled_from(["trees", "paths"]),
            "samples": st.integers(1, 20),
        }
    ),
)
def test_evidence_scales_and_sorts_scores(
    make_graph: MakeGraph, drawn: tuple[int, Edges], form: str, options: dict[str, Any]
) -> None:
    n, edges = drawn
    index = cocite.build(make_graph(edges, range(n)), **options)
    found = scores(index, evidence=form)
    assert (found == found.T).all()
    if index.direction != "both":
        factors = exact.evidence(neighbor_matrix(n, edges, index.direction), form)
        assert np.allclose(found, scores(index) * factors, rtol=0, atol=1.1e-12)
        assert not found[factors == 0].any()
    for node in index.nodes:
        hits = index.related(node, n, evidence=form)
        assert repr(hits) == repr(sorted_pairs(index, node, evidence=form))
        for hit in hits:
            assert 0 <= hit.low <= hit.score <= hit.high <= 1
        if hits:
            why = index.why(node, hits[0].node, 10**6, evidence=form)
            assert why.score == hits[0].score
            shares = math.fsum(reason.contribution for reason in why.reasons)
            assert shares == pytest.approx(why.score, abs=1e-10)


def test_evidence_scales_standard_errors(graph: Graph) -> None:
    index = cocite.build(graph, samples=400, measure="psimrank")
    factors = exact.evidence(neighbor_matrix(12, EDGES, "in"), "geometric")
    checked = 0
    for a, b in zip(*np.nonzero((factors > 0) & (factors < 1)), strict=True):
        without_evidence = index.similarity(str(a), str(b))
        found = index.similarity(str(a), str(b), evidence="geometric")
        assert found.stderr == pytest.approx(without_evidence.stderr * factors[a, b], rel=1e-9)
        assert found.low <= without_evidence.score * factors[a, b] <= found.high
        assert found.high < without_evidence.high
        checked += without_evidence.stderr > 0
    assert checked >= 10
    # Pages without common neighbors score 0.
    a, b = np.argwhere(factors == 0)[0].tolist()
    assert index.similarity(str(a), str(b), evidence="geometric")[:3] == (0, 0, 0)


def test_evidence_defaults_to_none(graph: Graph) -> None:
    index = cocite.build(graph, samples=30, measure="psimrank")
    assert index.related(LINKED, evidence="none") == index.related(LINKED)
    assert "evidence" not in index.stored.ask_settings({}).to_json()
    settings = index.stored.ask_settings({"evidence": "geometric"})
    assert settings.to_json()["evidence"] == "geometric"
    with pytest.raises(UsageError, match="evidence is 'some'; it must be none or geometric or exp"):
        index.related(LINKED, evidence="some")
    cocitation = cocite.build(graph, measure="cocitation")
    with pytest.raises(UsageError, match="cocitation has no setting 'evidence'"):
        cocitation.related(LINKED, evidence="geometric")


@pytest.mark.parametrize("measure", ORACLES)
def test_evidence_is_rejected_by_refine(graph: Graph, tmp_path: Path, measure: str) -> None:
    index = cocite.build(graph, measure=measure, samples=10)
    for query in (
        lambda: index.related(LINKED, refine=True, evidence="geometric"),
        lambda: index.similarity(LINKED, "11", target_error=0.01, evidence="geometric"),
        lambda: index.related_all(tmp_path / "a.csv", refine=True, evidence="geometric"),
    ):
        with pytest.raises(UsageError, match="evidence is 'geometric', which refined answers"):
            query()
    assert not (tmp_path / "a.csv").exists()


def test_evidence_requires_graph(graph: Graph, tmp_path: Path) -> None:
    index = cocite.build(graph, tmp_path / "i", samples=20, measure="psimrank")
    expected = index.related(LINKED, evidence="geometric")
    elsewhere = tmp_path / "elsewhere"
    shutil.move(graph.path, elsewhere)
    without_graph = cocite.open(tmp_path / "i")
    assert without_graph.related(LINKED)
    with pytest.raises(NotAStore, match="--graph"):
        without_graph.related(LINKED, evidence="geometric")
    with pytest.raises(NotAStore, match="--graph"):
        without_graph.related_all(tmp_path / "all.csv", evidence="geometric")
    with_graph = cocite.open(tmp_path / "i", graph=elsewhere)
    assert expected == with_graph.related(LINKED, evidence="geometric") != []


def test_evidence_of_selected_nodes_equals_whole_index(graph: Graph) -> None:
    full = cocite.build(graph, samples=60, measure="psimrank")
    selected = cocite.build(
        graph, samples=60, only_nodes=["11", "10", "5", "3"], measure="psimrank"
    )
    for pair in itertools.product(selected.nodes, repeat=2):
        found = selected.similarity(*pair, evidence="geometric")
        assert found == full.similarity(*pair, evidence="geometric")
    assert selected.related(LINKED, evidence="geometric")


def test_evidence_uses_newest_graph_after_refresh(
    graph: Graph, make_graph: MakeGraph, tmp_path: Path
) -> None:
    cocite.build(graph, tmp_path / "i", samples=40, measure="psimrank")
    edges = [(a, b) for a, b in EDGES if (a, b) != (0, 10)] + [(12, 10), (12, 11)]
    newer = make_graph(edges, range(13))
    index = cocite.refresh(tmp_path / "i", newer, fraction=0.5, force=True)
    names = list(index.nodes)
    by_id = [(names.index(str(a)), names.index(str(b))) for a, b in edges]
    factors = exact.evidence(neighbor_matrix(13, by_id, "in"), "geometric")
    found = scores(index, evidence="geometric")
    assert np.allclose(found, scores(index) * factors, rtol=0, atol=1.1e-12)
    for node in names:
        expected = sorted_pairs(index, node, evidence="geometric")
        assert index.related(node, 13, evidence="geometric") == expected
