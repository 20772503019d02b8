"""Min-hashes of rings: the samples of a batch do not depend on each other."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cocite import Graph
from cocite.engine.plan import Way
from cocite.engine.scan import HopNeighborhoods, plan_ring_scan
from cocite.errors import UsageError
from cocite.graph.links import in_links
from cocite.resources import Resources
from tests.conftest import MakeGraph
from tests.oracles.graphs import Edges

N = 24
LENGTH = 3


def rings_of(graph: Graph, length: int, seed: int, **limits: Any) -> HopNeighborhoods:
    links = in_links(graph)
    return HopNeighborhoods(links, plan_ring_scan(links, Resources.checked(**limits)), length, seed)


def fingerprints(graph: Graph, samples: int, seed: int = 5, **options: Any) -> NDArray[np.uint32]:
    """uint32[ring, sample, node]"""
    rings = rings_of(graph, LENGTH, seed, **options)
    winners = np.empty((LENGTH, samples, graph.nodes), np.uint32)
    for low in range(0, samples, 16):
        batch = range(low, min(low + 16, samples))
        for ring in rings(batch):
            winners[ring.step - 1, low : batch.stop] = ring.winners()
    return winners


@pytest.fixture(scope="module")
def edges() -> Edges:
    """A hub, chains, a node without in-links, and rings of many sizes."""
    rng = np.random.default_rng(3)
    drawn = {(int(a), int(b)) for a, b in rng.integers(1, N, (40, 2)) if a != b}
    return sorted(drawn | {(v, 5) for v in range(6, N, 2)} | {(0, 9)})


@pytest.fixture
def graph(make_graph: MakeGraph, edges: Edges) -> Graph:
    return make_graph(edges, range(N))


def test_hop_neighborhoods_ignore_other_samples_in_batch(graph: Graph) -> None:
    together = fingerprints(graph, 40)
    rings = rings_of(graph, LENGTH, 5, threads=2)
    for samples in ([7], [39, 0, 7], range(24, 40)):
        for ring in rings(samples):
            assert (ring.winners() == together[ring.step - 1, list(samples)]).all()
    for options in ({"threads": 1}, {"threads": 2, "blocks": 3}, {"blocks": 1}):
        assert (fingerprints(graph, 40, **options) == together).all()
    assert (fingerprints(graph, 40, seed=6) != together).any()


def test_plan_ring_scan_uses_blocks_on_request(graph: Graph) -> None:
    links = in_links(graph)
    assert plan_ring_scan(links, Resources.checked()).way is Way.MEMORY
    assert plan_ring_scan(links, Resources.checked(blocks=3)).way is Way.BLOCKS


def test_hop_neighborhoods_take_at_most_16_samples(graph: Graph) -> None:
    rings = rings_of(graph, 1, 0)
    (ring,) = rings(range(16))
    assert ring.winners().shape == (16, N)
    for samples in (range(17), range(0)):
        with pytest.raises(UsageError, match=f"{len(samples)} samples; it must have 1 to 16"):
            next(rings(samples))
