"""Companion: against sets and eigenvectors, its vicinity, its reasons."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph, Index
from cocite.errors import Damaged
from tests.conftest import MakeGraph
from tests.oracles import companion as oracle
from tests.oracles.graphs import Edges, graphs


def build(graph: Graph, folder: Path, **options: Any) -> Index:
    return cocite.build(graph, folder, measure="companion", **options)


@settings(max_examples=60)
@given(graphs(max_nodes=12), st.sampled_from([1, 2, 1000]), st.sampled_from(["in", "out"]))
def test_authorities_around_a_page_are_the_eigenvector(
    make_graph: MakeGraph, graph: tuple[int, Edges], max_degree: int, direction: str
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    index = build(stored, stored.path.with_suffix(".i"), direction=direction)
    edges = sorted({(a, b) if direction == "in" else (b, a) for a, b in edges if a != b})
    for u in range(n):
        truth, ratio = oracle.companions(edges, u, max_degree)
        found = {v: index.similarity(u, v, max_degree=max_degree).score for v in range(n)}
        assert {v for v in found if found[v] > 0} <= set(truth)
        assert sum(found.values()) == pytest.approx(1 if any(truth.values()) else 0, abs=1e-10)
        if ratio < 0.9:  # a round brings the rest down by the ratio
            allowed = 2e-9 + 20 * ratio**100
            for v, score in truth.items():
                assert abs(found[v] - score) <= allowed


def test_two_pages_that_one_page_recommends(make_graph: MakeGraph, tmp_path: Path) -> None:
    """a and b with two hubs in common, c with one of them: by hand a = b > c around a."""
    graph = make_graph([("h", "a"), ("h", "b"), ("g", "a"), ("g", "b"), ("h", "c"), ("far", "z")])
    index = build(graph, tmp_path / "i")
    hits = index.related("a")
    assert [hit.node for hit in hits] == ["b", "c"]
    # authorities (2 h's worth): a = b, c = a * h / (h + g), of A'A = [[2,2,1],[2,2,1],[1,1,1]]
    values, vectors = np.linalg.eigh([[2, 2, 1], [2, 2, 1], [1, 1, 1]])
    best = np.abs(vectors[:, np.argmax(values)])
    expected = best / best.sum()
    assert [hit.score for hit in hits] == pytest.approx(expected[1:].tolist(), abs=1e-9)
    assert index.similarity("a", "a").score == pytest.approx(expected[0], abs=1e-9)
    assert index.similarity("a", "z").score == 0
    why = index.why("a", "b")
    assert {reason.node for reason in why.reasons} == {"h", "g"}
    assert sum(reason.contribution for reason in why.reasons) == pytest.approx(hits[0].score)
    assert why.reasons[0].node == "h"  # who recommends more of them is more of a hub


def test_a_wide_page_is_not_passed_through(make_graph: MakeGraph, tmp_path: Path) -> None:
    edges = [("wide", f"p{i}") for i in range(9)] + [("h", "p0"), ("h", "p1")]
    graph = make_graph(edges)
    index = build(graph, tmp_path / "i")
    assert {hit.node for hit in index.related("p0", max_degree=9)} == {f"p{i}" for i in range(1, 9)}
    assert {hit.node for hit in index.related("p0", max_degree=8)} == {"p1"}


def test_a_page_without_links_has_no_companions(make_graph: MakeGraph, tmp_path: Path) -> None:
    index = build(make_graph([("h", "a")], ["alone"]), tmp_path / "i")
    assert index.related("alone") == []
    assert index.similarity("alone", "alone").score == 0


@pytest.mark.parametrize("name", ["in_neighbours", "out_neighbours", "in_offsets", "out_offsets"])
def test_links_outside_are_an_error(make_graph: MakeGraph, tmp_path: Path, name: str) -> None:
    graph = make_graph(np.random.default_rng(2).integers(0, 60, (240, 2)).tolist())
    index = build(graph, tmp_path / "i")
    (file,) = (tmp_path / "i").glob(f"*{name}")
    names = list(index.nodes)
    file.write_bytes(b"\xff" * file.stat().st_size)
    with pytest.raises(Damaged, match="verify"):
        cocite.open(tmp_path / "i", verify=False).related(names[5])
