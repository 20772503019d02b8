"""Intervals contain the truth at least as often as stated, and certain orders are correct."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.errors import UsageError
from cocite.options.query import INTERVALS
from cocite.search.intervals import half_width
from tests.conftest import MakeGraph
from tests.oracles import simrank as exact
from tests.search.test_estimates import inlinks_of

TWINS = {"simrank": exact.simrank, "psimrank": exact.psimrank}


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(9)
    return make_graph(rng.integers(0, 30, (140, 2)).tolist(), range(30))


def test_half_width_matches_formulas() -> None:
    error, samples, width = 0.02, 100, 0.6
    log = math.log(4 / 0.05)
    expected = error * math.sqrt(2 * log) + 7 * width * log / (3 * 99)
    assert half_width(error, samples, width, 0.95) == pytest.approx(expected)
    assert half_width(error, samples, 1.0, 0.95, "hoeffding") == pytest.approx(
        math.sqrt(7 * math.log(40) / 600)
    )
    # Theorem 5, inverted: 2 exp(-6/7 N d^2) is the allowed failure probability.
    d = float(half_width(0.0, 1000, 1.0, 0.99, "hoeffding"))
    assert 2 * math.exp(-6 / 7 * 1000 * d * d) == pytest.approx(0.01)
    assert half_width(0.0, 1, 0.6, 0.95) == 0.6  # a single sample gives no information
    assert half_width(5.0, 100, 0.6, 0.95) == 0.6  # never wider than the range


@pytest.mark.parametrize("measure", TWINS)
def test_similarity_intervals_cover_truth(graph: Graph, tmp_path: Path, measure: str) -> None:
    """40 independent indexes x 62 of 435 pairs at a level of 80%, by each bound.

    Pairs of one index are dependent, so only the indexes count: the mean of 40 fractions, each in
    [0, 1] with expectation of at least 0.8, is below 0.8 - sqrt(ln(1e9) / 80), 0.29, with a
    probability of 1e-9 (Hoeffding). In practice all bounds nearly always hold.
    """
    truth = TWINS[measure](inlinks_of(graph), 0.6, 10)
    coverage: dict[str, list[float]] = {bound: [] for bound in INTERVALS}
    for seed in range(40):
        options: dict[str, Any] = {"samples": 25, "seed": seed, "threads": 1}
        index = cocite.build(graph, tmp_path / f"{seed}", measure=measure, **options)
        pairs = list(itertools.combinations(range(30), 2))[seed % 7 :: 7]
        for bound in INTERVALS:
            covered = 0
            scores = index.similarities(pairs, confidence=0.8, interval=bound)
            for pair, found in zip(pairs, scores, strict=True):
                assert 0 <= found.low <= found.score <= found.high <= 0.6
                covered += found.low - 1e-12 <= truth[pair] <= found.high + 1e-12
            coverage[bound].append(covered / len(pairs))
    for bound in INTERVALS:
        assert np.mean(coverage[bound]) >= 0.8


@pytest.mark.parametrize("bound", INTERVALS)
@pytest.mark.parametrize("measure", [*TWINS, "compact-simrank"])
def test_similarity_interval_includes_truncation_margin(
    make_graph: MakeGraph, measure: str, bound: str
) -> None:
    """Walks from the ends of two chains of 12 meet at their root, after 12 steps. An index of 10
    steps cannot see it.
    """
    chains = [[0, *range(first, first + 12)] for first in (1, 13)]
    graph = make_graph([step for chain in chains for step in itertools.pairwise(chain)], range(25))
    index = cocite.build(graph, measure=measure, samples=100, length=10)
    for decay in (0.6, 0.95):
        found = index.similarity(12, 24, decay=decay, interval=bound)
        assert found.score == found.low == 0
        assert decay**12 <= found.high <= 1


def test_exact_measure_intervals_have_zero_width(make_graph: MakeGraph) -> None:
    graph = make_graph([("h", "a"), ("h", "b"), ("g", "b")])
    index = cocite.build(graph, measure="cocitation")
    found = index.similarity("a", "b")
    assert found.low == found.score == found.high
    counted = index.similarity("b", "b", form="count")
    assert tuple(counted) == (2, 0, 2, 2)
    push = cocite.build(graph, measure="ppr")
    found = push.similarity("h", "a", tolerance=0.01)
    assert found.low == found.score
    assert found.high == pytest.approx(found.score + 0.01)


def test_min_confidence_drops_uncertain_hits(graph: Graph) -> None:
    index = cocite.build(graph, samples=20, measure="psimrank")
    for floor in (0, 0.1):
        hits = index.related(3, 30, min_score=floor)
        confident = index.related(3, 30, min_score=floor, min_confidence=0.95)
        low = {hit.node: index.similarity(3, hit.node, confidence=0.95).low for hit in hits}
        assert confident == [hit for hit in hits if low[hit.node] > floor]
        assert 0 < len(confident) < len(hits)


def test_certain_ranks_match_true_order(graph: Graph) -> None:
    """At a failure probability of 1e-6 per list, none of the 30 lists may be wrong."""
    truth = exact.psimrank(inlinks_of(graph), 0.6, 10)
    index = cocite.build(graph, samples=2000, shard=500, measure="psimrank")
    total = 0
    for node in range(30):
        hits = index.related(node, 8, confidence=1 - 1e-6)
        certain = hits.certain_ranks
        total += certain
        scores = [truth[node, int(hit.node)] for hit in hits[: certain + 1]]
        assert scores == sorted(scores, reverse=True)
    assert total > 5


def test_certain_ranks_of_exact_measures_end_at_ties(make_graph: MakeGraph) -> None:
    edges = [("x", "a"), ("x", "b"), ("x", "c"), ("y", "a"), ("y", "b"), ("z", "c"), ("z", "d")]
    index = cocite.build(make_graph(edges), measure="cocitation")
    hits = index.related("a")
    assert [hit.node for hit in hits] == ["b", "c"]
    assert hits.certain_ranks == 2
    assert index.related("a", 1).certain_ranks == 1
    assert hits[1:].certain_ranks == 1
    assert hits[::-1].certain_ranks == 0
    for k in (1, 2):  # d's only in-link is from z, shared with c alone
        assert index.related("d", k).certain_ranks == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 0}, "confidence is 0; it must be a number above 0 and below 1"),
        ({"confidence": 1.0}, "confidence is 1.0"),
        ({"confidence": "high"}, "confidence is 'high'"),
        (
            {"interval": "chernoff"},
            "interval is 'chernoff'; it must be betting or bernstein or hoeffding",
        ),
        ({"min_confidence": 2}, "confidence is 2"),
    ],
)
def test_confidence_options_reject_invalid_values(
    graph: Graph, options: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        cocite.build(graph, samples=3, measure="psimrank").related("3", **options)
