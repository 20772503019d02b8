"""Weighted walks: against brute force, in blocks, and their choice and meeting probabilities."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite.constants import Step
from cocite.engine import weights as weights_module
from cocite.engine.walk import Mover, Walker
from cocite.engine.weights import inverse_degrees, step_weights, telling_weights
from cocite.errors import UsageError
from cocite.graph.blocks import Links
from cocite.graph.links import in_links
from cocite.storage.spool import Scratch
from tests.conftest import MakeGraph
from tests.engine.test_walk import assert_sample, cuts
from tests.kernels.arrays import compressed as rows
from tests.oracles import simrank as exact
from tests.oracles import walks
from tests.oracles.bounds import bernstein
from tests.oracles.graphs import Edges, in_neighbors, in_weights, weighted_graphs

BY_WEIGHT = [Step.WEIGHTED, Step.CLOCK]


def compressed(neighbors: list[list[int]], weights: list[list[float]] | None) -> Links:
    offsets, sources = rows(neighbors)
    if weights is None:
        return Links(offsets, sources)
    return Links(offsets, sources, np.array([w for row in weights for w in row], np.float32))


@settings(max_examples=150)
@given(weighted_graphs(), st.sampled_from(BY_WEIGHT), st.integers(0, 2**64 - 1), st.data())
def test_weighted_walker_equals_brute_force(
    graph: tuple[int, Edges, list[float]], step: Step, seed: int, data: st.DataObject
) -> None:
    """With weights of links, of nodes, and of both."""
    n, edges, given_weights = graph
    neighbors, by_link = in_neighbors(n, edges), in_weights(n, edges, given_weights)
    powers = data.draw(st.lists(st.integers(-9, 9), min_size=n, max_size=n))
    by_node = 2.0 ** np.array(powers)
    for use_links, use_nodes in ((True, False), (False, True), (True, True)):
        links = compressed(neighbors, by_link if use_links else None)
        prepared = step_weights(
            links, step, node_weights=by_node.astype(np.float32) if use_nodes else None
        )
        found = Walker(Mover(links, step, seed, weights=prepared), 6)(4)
        weights = [
            [(w if use_links else 1) * (float(by_node[u]) if use_nodes else 1) for u, w in row]
            for row in (list(zip(*r, strict=True)) for r in zip(neighbors, by_link, strict=True))
        ]
        assert_sample(found, walks.paths(neighbors, step.value, seed, 4, 6, weights=weights))


@pytest.fixture(scope="module")
def web() -> tuple[list[list[int]], list[list[float]]]:
    """500 nodes, in-degrees from 0 to 300, weights over six orders of magnitude."""
    rng = np.random.default_rng(11)
    sizes = np.minimum(rng.zipf(1.5, 500) - 1, 300)
    neighbors = [sorted(rng.choice(500, size, replace=False).tolist()) for size in sizes]
    weights = [
        np.exp(rng.normal(0, 3, len(row))).astype(np.float32).astype(float).tolist()
        for row in neighbors
    ]
    return neighbors, weights


@pytest.mark.parametrize("step", BY_WEIGHT)
def test_weighted_walker_equals_brute_force_at_hubs(
    web: tuple[list[list[int]], list[list[float]]], step: Step
) -> None:
    neighbors, weights = web
    assert max(map(len, neighbors)) > 200
    found = Walker(Mover(compressed(neighbors, weights), step, 7), 4)(1)
    assert_sample(found, walks.paths(neighbors, step.value, 7, 1, 4, weights=weights))


@pytest.mark.parametrize("step", BY_WEIGHT)
@pytest.mark.parametrize("blocks", [2, 7, 64])
def test_weighted_walker_ignores_blocks_and_scratch(
    web: tuple[list[list[int]], list[list[float]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: Step,
    blocks: int,
) -> None:
    links = compressed(*web)
    plain = Walker(Mover(links, step, 3), 8)(2)
    expected = plain.parent.copy(), plain.label.copy()
    monkeypatch.setattr(weights_module, "_PIECE", 1000)
    prepared = step_weights(links, step, scratch=Scratch(tmp_path))
    found = Walker(Mover(links, step, 3, cuts(links.nodes, blocks), weights=prepared), 8)(2)
    assert (found.parent == expected[0]).all()
    assert (found.label == expected[1]).all()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", BY_WEIGHT)
def test_weighted_walker_ignores_weight_scale(
    web: tuple[list[list[int]], list[list[float]]], step: Step
) -> None:
    neighbors, weights = web
    scaled = [[w * 2.0**20 for w in row] for row in weights]
    first = Walker(Mover(compressed(neighbors, weights), step, 0), 5)(0).parent.copy()
    assert (Walker(Mover(compressed(neighbors, scaled), step, 0), 5)(0).parent == first).all()


SAMPLES = 20_000
PAIRS = [
    ([1.0, 1.0, 1.0, 0.0], [0.0, 1.0, 1.0, 1.0]),
    ([1e-6, 1.0, 1e6, 2.0], [1.0, 1.0, 1.0, 1.0]),
    ([3.0, 1.0, 2.0, 9.0], [6.0, 2.0, 4.0, 18.0]),
]


def chosen(step: Step, x: list[float], y: list[float]) -> np.ndarray:
    """The first steps of two nodes whose in-links have these weights, in SAMPLES samples.

    Nodes 0 to 3 are the in-neighbors, and 4 and 5 the two nodes. Each in-neighbor i has a witness
    6 + i with no other in-link: a walk that meets it first stepped to i.
    """
    rows = [[i for i in range(4) if w[i]] for w in (x, y)]
    neighbors: list[list[int]] = [[]] * 4 + rows + [[i] for i in range(4)]
    weights: list[list[float]] = [[]] * 4 + [[w for w in row if w] for row in (x, y)] + [[1.0]] * 4
    walker = Walker(Mover(compressed(neighbors, weights), step, 99), 1)
    found = np.empty((SAMPLES, 2), np.int64)
    for sample in range(SAMPLES):
        parent = walker(sample).parent
        for which in (0, 1):
            # The smallest node of a group is its parent: 4, 5 or the witness.
            met = [6 + i for i in range(4) if parent[6 + i] == 4 + which]
            same = which == 1 and parent[5] == 4
            found[sample, which] = found[sample, 0] if same else met[0] - 6
    return found


@pytest.mark.statistical
@pytest.mark.parametrize("step", BY_WEIGHT)
@pytest.mark.parametrize(("x", "y"), PAIRS)
def test_weighted_step_choice_and_meeting_probabilities(
    step: Step, x: list[float], y: list[float]
) -> None:
    """Independent draws meet with the sum of products; shared clocks with the probability Jaccard
    coefficient. The tolerance is Bernstein's for indicators, all comparisons of the test together.
    """
    found = chosen(step, x, y)
    p, q = (np.array(w) / sum(w) for w in (x, y))
    comparisons = 9 * len(PAIRS) * len(BY_WEIGHT)
    for which, probabilities in ((0, p), (1, q)):
        shares = np.bincount(found[:, which], minlength=4) / SAMPLES
        assert (
            np.abs(shares - probabilities) <= bernstein(probabilities, SAMPLES, 1.0, comparisons)
        ).all()
    meet = float((found[:, 0] == found[:, 1]).mean())
    truth = float(p @ q)
    if step is Step.CLOCK:
        truth = exact.probability_jaccard(np.array(x), np.array(y))
    assert abs(meet - truth) <= bernstein(truth, SAMPLES, 1.0, comparisons)


def test_probability_jaccard_of_equal_weights_is_jaccard() -> None:
    x, y = np.array([1.0, 1, 1, 0, 0]), np.array([0.0, 1, 1, 1, 1])
    assert exact.probability_jaccard(x, y) == pytest.approx(2 / 5)
    assert exact.probability_jaccard(3 * x, y) == pytest.approx(2 / 5)
    assert exact.probability_jaccard(x, 7 * x) == pytest.approx(1)
    assert exact.probability_jaccard(np.array([2.0, 1]), np.array([1.0, 0])) == pytest.approx(2 / 3)


@pytest.mark.statistical
def test_inverse_degrees_lower_choice_of_hub(make_graph: MakeGraph) -> None:
    """a and b share a hub and a small page, which dominates by weights 1 / out-degree."""
    edges = [("hub", f"x{i}") for i in range(98)] + [("hub", "a"), ("hub", "b")]
    graph = make_graph([*edges, ("kin", "a"), ("kin", "b")])
    links = in_links(graph)
    node_weights = inverse_degrees(graph.out_degrees)
    names = {name: graph.names.id(name) for name in ("hub", "kin")}
    assert node_weights[names["hub"]] == np.float32(0.01)
    assert node_weights[names["kin"]] == np.float32(0.5)
    prepared = step_weights(links, Step.CLOCK, node_weights=node_weights)
    assert prepared.values is node_weights  # no array of the length of the links
    x0, a = graph.names.id("x0"), graph.names.id("a")
    walker = Walker(Mover(links, Step.CLOCK, 5, weights=prepared), 1)
    to_hub = 0
    for sample in range(5000):
        parent = walker(sample).parent
        assert parent[graph.names.id("b")] == a  # equal weights, so the walks always meet
        to_hub += int(parent[x0]) == a
    truth = 0.01 / 0.51
    assert abs(to_hub / 5000 - truth) <= bernstein(truth, 5000, 1.0, 1)


@pytest.mark.parametrize("piece", [1, 3, 100])
def test_telling_weights_follow_degree(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    """Of 4 pages, page 0 links to none, page 1 to one, page 2 to two, page 3 to all."""
    monkeypatch.setattr(weights_module, "_PIECE", piece)
    links = compressed([[1, 2, 3], [2, 3], [3], [3]], None)
    assert telling_weights(links, "rare").tolist() == [1, 1, 0.5, 0.25]
    idf = [math.log(5), math.log(5), math.log(5 / 2), math.log(5 / 4)]
    assert telling_weights(links, "idf").tolist() == pytest.approx(idf, rel=1e-7)


@pytest.mark.parametrize(
    ("node_weights", "message"),
    [
        (None, "the clock step needs weights, but the links are unweighted. Store the graph with"),
        (
            np.ones(3, np.float32),
            "must be positive, finite float32 numbers, one for each of 2 nodes",
        ),
        (np.ones(2), "positive, finite float32 numbers"),
        (np.array([1, 0], np.float32), "positive, finite float32 numbers"),
        (np.array([1, np.nan], np.float32), "positive, finite float32 numbers"),
        (np.array([1, np.inf], np.float32), "positive, finite float32 numbers"),
    ],
)
def test_step_weights_refuses_invalid_weights(
    node_weights: np.ndarray | None, message: str
) -> None:
    links = compressed([[1], [0]], None)
    with pytest.raises(UsageError, match=message):
        step_weights(links, Step.CLOCK, node_weights=node_weights)


def test_step_weights_refuses_products_beyond_float32() -> None:
    links = compressed([[1], [0]], [[1e25], [1.0]])
    with pytest.raises(UsageError, match="exceed float32"):
        step_weights(links, Step.CLOCK, node_weights=np.array([1, 1e25], np.float32))
