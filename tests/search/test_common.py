"""Cocitation and coupling: against dense products, against each other, by closed forms."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from tests.conftest import MakeGraph
from tests.oracles import neighbors as exact
from tests.oracles.graphs import Edges, graphs
from tests.oracles.simrank import dense
from tests.search.exact import assert_related_is_similarity_sorted, scores

FORMS = ("cosine", "jaccard", "count")
ROUNDING = 2e-12
"""Scores are whole grains (1e-12); sums of some dozens of numbers are off by far less."""


@settings(max_examples=40)
@given(
    graphs(),
    st.sampled_from(["cocitation", "coupling"]),
    st.sampled_from(["in", "out", "both"]),
    st.sampled_from(FORMS),
    st.booleans(),
)
def test_scores_are_those_of_dense_products(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    measure: str,
    direction: str,
    form: str,
    idf: bool,
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    output = stored.path.with_suffix(".index")
    index = cocite.build(stored, output, measure=measure, direction=direction)
    ins = dense(n, edges)
    ways = {"in": [ins], "out": [ins.T], "both": [ins, ins.T]}
    if measure == "coupling":
        ways = {"in": [ins.T], "out": [ins], "both": [ins, ins.T]}
    truth = np.mean([exact.common(rows, form, idf) for rows in ways[direction]], axis=0)
    found = scores(cocite.open(output), form=form, idf=idf)
    assert np.abs(found - truth).max() < ROUNDING
    assert (found == found.T).all()
    assert_related_is_similarity_sorted(index, found, form=form, idf=idf)


@pytest.mark.parametrize(("direction", "turned"), [("in", "out"), ("out", "in")])
def test_coupling_is(make_graph: MakeGraph, tmp_path: Path, direction: str, turned: str) -> None:
    rng = np.random.default_rng(5)
    graph = make_graph(rng.integers(0, 60, (500, 2)).tolist())
    one = cocite.build(graph, tmp_path / "a", measure="cocitation", direction=direction)
    other = cocite.build(graph, tmp_path / "b", measure="coupling", direction=turned)
    assert one.related("1")
    for node in one.nodes:
        for form in FORMS:
            for idf in (False, True):
                asked = {"form": form, "idf": idf}
                assert one.related(node, 99, **asked) == other.related(node, 99, **asked)


def test_closed_forms(make_graph: MakeGraph, tmp_path: Path) -> None:
    """u has 4 in-links, v has 9, 2 are common; x links to two of the 13 nodes, y to three."""
    edges = [(f"u{i}", "u") for i in range(2)] + [(f"v{i}", "v") for i in range(7)]
    edges += [(hub, node) for hub in "xy" for node in "uv"] + [("y", "v0")]
    index = cocite.build(make_graph(edges), tmp_path / "i", measure="cocitation")
    assert len(index.nodes) == 13
    assert index.similarity("u", "v")[:2] == (round(2 / math.sqrt(4 * 9), 12), 0)
    assert index.similarity("u", "v", form="jaccard")[:2] == (round(2 / 11, 12), 0)
    assert index.similarity("u", "v", form="count")[:2] == (2, 0)
    x, y, one = math.log(13 / 2), math.log(13 / 3), math.log(13)
    weighted = {
        "cosine": (x**2 + y**2)
        / math.sqrt((2 * one**2 + x**2 + y**2) * (7 * one**2 + x**2 + y**2)),
        "jaccard": (x + y) / (9 * one + x + y),
        "count": x + y,
    }
    for form, score in weighted.items():
        assert abs(index.similarity("u", "v", form=form, idf=True).score - score) < ROUNDING


def test_page_linking_to_all_weighs_nothing(make_graph: MakeGraph, tmp_path: Path) -> None:
    """Itself included: the logarithm of 1 is 0, in norms and in sums."""
    nodes = "abcd"
    graph = make_graph([("a", node) for node in nodes], keep_self_loops=True)
    index = cocite.build(graph, tmp_path / "i", measure="cocitation")
    assert index.related("b")
    for form in FORMS:
        assert index.related("b", form=form, idf=True) == []
        assert index.similarity("b", "c", form=form, idf=True).score == 0
