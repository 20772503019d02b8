"""Intervals hold the truth as often as they say, and the order is certain only where it is."""

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


def test_half_widths_are_the_formulas() -> None:
    error, samples, width = 0.02, 100, 0.6
    log = math.log(4 / 0.05)
    expected = error * math.sqrt(2 * log) + 7 * width * log / (3 * 99)
    assert half_width(error, samples, width, 0.95) == pytest.approx(expected)
    assert half_width(error, samples, 1.0, 0.95, "hoeffding") == pytest.approx(
        math.sqrt(7 * math.log(40) / 600)
    )
    # Theorem 5 read backwards: 2 exp(-6/7 N d^2) is the failure allowed.
    d = float(half_width(0.0, 1000, 1.0, 0.99, "hoeffding"))
    assert 2 * math.exp(-6 / 7 * 1000 * d * d) == pytest.approx(0.01)
    assert half_width(0.0, 1, 0.6, 0.95) == 0.6  # a single sample says nothing
    assert half_width(5.0, 100, 0.6, 0.95) == 0.6  # never wider than the range


@pytest.mark.parametrize("measure", TWINS)
def test_intervals_cover_the_truth(graph: Graph, tmp_path: Path, measure: str) -> None:
    """40 independent indexes x 62 of 435 pairs at a level of 80%, by each bound.

    Pairs of one index are dependent, so the number of indexes counts: the mean of 40 shares, each
    of which lies in [0, 1] and is 0.8 or more on average, is below 0.8 - sqrt(ln(1e9) / 80), 0.29,
    once in 1e9 times (Hoeffding). In fact all bounds hold nearly always.
    """
    truth = TWINS[measure](inlinks_of(graph), 0.6, 10)
    held: dict[str, list[float]] = {bound: [] for bound in INTERVALS}
    for seed in range(40):
        options: dict[str, Any] = {"samples": 25, "seed": seed, "threads": 1}
        index = cocite.build(graph, tmp_path / f"{seed}", measure=measure, **options)
        pairs = list(itertools.combinations(range(30), 2))[seed % 7 :: 7]
        for bound in INTERVALS:
            inside = 0
            scores = index.similarities(pairs, confidence=0.8, interval=bound)
            for pair, found in zip(pairs, scores, strict=True):
                assert 0 <= found.low <= found.score <= found.high <= 0.6
                inside += found.low - 1e-12 <= truth[pair] <= found.high + 1e-12
            held[bound].append(inside / len(pairs))
    for bound in INTERVALS:
        assert np.mean(held[bound]) >= 0.8


@pytest.mark.parametrize("bound", INTERVALS)
@pytest.mark.parametrize("measure", [*TWINS, "compact-simrank"])
def test_interval_margin(make_graph: MakeGraph, measure: str, bound: str) -> None:
    """Two chains of 12 from one root: all walks from their ends meet there, after 12 steps. Indexes
    of 10 steps know nothing of it.
    """
    chains = [[0, *range(first, first + 12)] for first in (1, 13)]
    graph = make_graph([step for chain in chains for step in itertools.pairwise(chain)], range(25))
    index = cocite.build(graph, measure=measure, samples=100, length=10)
    for decay in (0.6, 0.95):
        found = index.similarity(12, 24, decay=decay, interval=bound)
        assert found.score == found.low == 0
        assert decay**12 <= found.high <= 1


def test_exact_scores_are_their_own_intervals(make_graph: MakeGraph) -> None:
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


def test_hits_that_may_be_nothing_are_dropped(graph: Graph) -> None:
    index = cocite.build(graph, samples=20, measure="psimrank")
    for floor in (0, 0.1):
        everyone = index.related(3, 30, min_score=floor)
        sure = index.related(3, 30, min_score=floor, min_confidence=0.95)
        low = {hit.node: index.similarity(3, hit.node, confidence=0.95).low for hit in everyone}
        assert sure == [hit for hit in everyone if low[hit.node] > floor]
        assert 0 < len(sure) < len(everyone)


def test_a_certain_order_is_the_true_order(graph: Graph) -> None:
    """At a failure of 1e-6 for all comparisons of a list, no list of 30 may be wrong."""
    truth = exact.psimrank(inlinks_of(graph), 0.6, 10)
    index = cocite.build(graph, samples=4000, shard=500, measure="psimrank")
    found = 0
    for node in range(30):
        hits = index.related(node, 8, confidence=1 - 1e-6)
        certain = hits.certain_ranks
        found += certain
        scores = [truth[node, int(hit.node)] for hit in hits[: certain + 1]]
        assert scores == sorted(scores, reverse=True)
    assert found > 5


def test_exact_orders_are_certain_until_a_tie(make_graph: MakeGraph) -> None:
    edges = [("x", "a"), ("x", "b"), ("x", "c"), ("y", "a"), ("y", "b"), ("z", "c"), ("z", "d")]
    index = cocite.build(make_graph(edges), measure="cocitation")
    hits = index.related("a")
    assert [hit.node for hit in hits] == ["b", "c"]
    assert hits.certain_ranks == 2
    assert index.related("a", 1).certain_ranks == 1
    assert hits[1:].certain_ranks == 1
    assert hits[::-1].certain_ranks == 0
    for k in (1, 2):  # by its one page, z, d is related to c alone
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
def test_wrong_levels_are_refused(graph: Graph, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        cocite.build(graph, samples=3, measure="psimrank").related("3", **options)
