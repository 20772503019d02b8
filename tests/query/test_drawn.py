"""A graph asked without an index answers as its index does, to the bit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite.cli.main import main
from cocite.errors import UsageError
from cocite.measures import MEASURES
from tests.conftest import MakeGraph
from tests.oracles import simrank as exact
from tests.oracles.graphs import Edges, graphs, weighted_graphs

DRAWN = [name for name, measure in MEASURES.items() if "trees" in measure.layouts]


@settings(max_examples=12)
@given(
    graphs(),
    st.sampled_from(DRAWN),
    st.sampled_from(["in", "out", "both", "any"]),
    st.integers(1, 12),
    st.integers(1, 15),
)
def test_a_graph_answers_as_its_index(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    measure: str,
    direction: str,
    samples: int,
    length: int,
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    options: dict[str, Any] = {"measure": measure, "direction": direction, "seed": 3}
    options |= {"samples": samples, "length": length}
    built = cocite.build(stored, stored.path.with_suffix(".index"), **options)
    drawn = cocite.open_graph(stored.path, **options)
    assert drawn.settings == built.settings
    for u in range(n):
        hits = built.related(u, n)
        assert repr(drawn.related(u, n)) == repr(hits)  # nan of a single sample included
        assert drawn.certain(u, hits) == built.certain(u, hits)
        for v in range(n):
            assert repr(drawn.similarity(u, v)) == repr(built.similarity(u, v))


@settings(max_examples=20)
@given(
    weighted_graphs(),
    st.sampled_from(["in", "out", "both"]),
    st.sampled_from(
        [
            "cocitation",
            "coupling",
            "ppr",
            "psimrank",
            "simrank",
            "blend:2*psimrank(hubs=idf)+1*simrank(direction=both)",
            "blend:psimrank(length=3,decay=0.3)+cocitation(idf=true,form=jaccard)",
        ]
    ),
    st.booleans(),
)
def test_weights_links_and_blends_need_no_index(
    make_graph: MakeGraph,
    graph: tuple[int, Edges, list[float]],
    direction: str,
    measure: str,
    unweighted: bool,
) -> None:
    n, edges, weights = graph
    rows = [(a, b, w) for (a, b), w in zip(edges, weights, strict=True)]
    stored = make_graph(rows, range(n))
    options: dict[str, Any] = {"measure": measure, "direction": direction}
    options["unweighted"] = unweighted or "cocitation" in measure or "coupling" in measure
    if "simrank" in measure:
        options["samples"] = 5
    built = cocite.build(stored, stored.path.with_suffix(".index"), **options)
    drawn = cocite.open_graph(stored, **options)
    for u in range(n):
        hits = built.related(u, n)
        assert drawn.related(u, n) == hits
        for hit in hits:
            assert drawn.why(u, hit.node) == built.why(u, hit.node)
            assert drawn.similarity(u, hit.node) == built.similarity(u, hit.node)


@pytest.mark.parametrize("measure", ["xjaccard", "pagesim", "blend:psimrank+xjaccard"])
def test_what_needs_an_index_says_so(make_graph: MakeGraph, measure: str) -> None:
    with pytest.raises(UsageError, match=r"needs an index: cocite index .* --measure"):
        cocite.open_graph(make_graph([("a", "b")]), measure=measure)


def test_refined_answers_need_no_index(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([(a, b) for a in range(6) for b in range(9) if (a * b) % 5 in (1, 2)])
    for measure in DRAWN:
        built = cocite.build(graph, tmp_path / measure, measure=measure)
        drawn = cocite.open_graph(graph, measure=measure)
        hits = drawn.related("1", refine=True)
        assert hits
        if measure == "simrank":  # computed in another way, of which intervals hold for certain
            found = built.related("1", refine=True)
            assert [h.node for h in hits] == [h.node for h in found]
            assert all(
                a.low <= b.high and b.low <= a.high for a, b in zip(hits, found, strict=True)
            )
        else:
            assert hits == built.related("1", refine=True)


@settings(max_examples=10)
@given(
    graphs(),
    st.sampled_from(["in", "out", "both"]),
    st.sampled_from([0.3, 0.6, 0.8]),
    st.sampled_from([1e-5, 0.001, 0.1]),
)
def test_every_score_refined_without_an_index_is_within_its_interval(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    direction: str,
    decay: float,
    target: float,
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    drawn = cocite.open_graph(stored, measure="simrank", direction=direction)
    links = exact.dense(n, edges)
    ways = {"in": [links], "out": [links.T], "both": [links, links.T]}[direction]
    rounds = math.ceil(math.log(1e-14) / math.log(decay))
    truth = np.mean([exact.simrank(way, decay, rounds) for way in ways], axis=0)
    for u in range(n):
        hits = {int(h.node): h for h in drawn.related(u, n, target_error=target, decay=decay)}
        for v in set(range(n)) - {u}:
            pair = drawn.similarity(u, v, target_error=target, decay=decay)
            assert pair.low <= truth[u, v] <= pair.high
            assert pair.low <= pair.score <= pair.high
            if v in hits:
                assert tuple(pair) == tuple(hits[v])[1:]


def test_what_is_refined_without_an_index_is_near_the_exact_scores(make_graph: MakeGraph) -> None:
    """300 nodes: intervals that are narrow, and scores that are nearer than these say."""
    rng = np.random.default_rng(5)
    edges = np.minimum(rng.integers(0, 300, (2000, 2)), rng.integers(0, 300, (2000, 2)))
    graph = make_graph(edges.tolist(), range(300))
    drawn = cocite.open_graph(graph, measure="simrank")
    pairs = [(int(u), v) for v in range(300) for u in graph.in_neighbours(v)]
    truth = exact.simrank(exact.dense(300, pairs), 0.6, 70)
    for node in range(0, 300, 30):
        for hit in drawn.related(node, 20, refine=True):
            assert hit.high - hit.low < 0.003 + 0.2 * hit.score
            assert abs(hit.score - truth[node, int(hit.node)]) < 0.001 + 0.01 * hit.score


def test_the_command_line_takes_a_graph(
    make_graph: MakeGraph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = make_graph([("a", "b"), ("a", "c"), ("d", "b"), ("d", "e")])
    cocite.build(graph, tmp_path / "i", measure="simrank", samples=40)
    options = ["--measure", "simrank", "--samples", "40"]
    for verb, *rest in (("related", "b"), ("similarity", "b", "c")):
        capsys.readouterr()
        assert main([verb, str(graph.path), *rest, *options]) == 0
        told = capsys.readouterr().out
        assert main([verb, str(tmp_path / "i"), *rest]) == 0
        assert capsys.readouterr().out == told
        assert "c" in told
        assert main([verb, str(tmp_path / "i"), *rest, *options]) == 2
        assert "--measure is fixed when an index is built" in capsys.readouterr().err
        assert main([verb, str(graph.path), *rest, "--graph", str(graph.path)]) == 2
        assert "is a graph itself" in capsys.readouterr().err


def test_settings_are_checked_as_for_an_index(make_graph: MakeGraph) -> None:
    graph = make_graph([("a", "b")])
    with pytest.raises(UsageError, match="samples is 0"):
        cocite.open_graph(graph, samples=0)
    with pytest.raises(UsageError, match="no measure is called"):
        cocite.open_graph(graph, measure="nothing")
