"""PageRank of a graph in blocks that each live somewhere: the ranks of one machine, to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite import Graph
from cocite.errors import WorkerLost
from cocite.graph.partitions import BlockedGraph
from cocite.ranking import TopOrder, pagerank
from cocite.ranking.figures import RankDocument
from cocite.ranking.pagerank import set_up
from cocite.ranking.partitions import PartitionedLinks
from tests.conftest import MakeGraph
from tests.index.test_external import tangled
from tests.index.test_in_blocks import Lossy, Posted, in_blocks
from tests.oracles.graphs import Edges, graphs

OPTIONS: list[dict[str, Any]] = [
    {},
    {"damping": 0.99, "precision": "single", "max_sweeps": 30},
    {"dangling": "uniform", "personalization": ["p1", "a", "chain3"]},
    {"dangling": "remove", "removals": 3},
    {"stop": TopOrder(20)},
    {"memory": "8MB"},
]


def same(found: Any, expected: Any) -> None:
    assert found.values.tobytes() == expected.values.tobytes()
    assert found.convergence == expected.convergence
    assert found.removed == expected.removed


def weighted(make_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(2)
    rows = [(f"p{a}", f"p{b}", f"{1 + a % 7}.3") for a, b in rng.integers(0, 90, (700, 2))]
    rows += [("a", f"p{i}", "0.1") for i in range(30)]
    rows += [("chain3", "a", "2"), *((f"p{i}", f"end{i}", "1.7") for i in range(20))]
    return make_graph(rows, [], weight_column=3, keep_self_loops=True)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "plain")
@pytest.mark.parametrize("by_weight", [False, True])
def test_ranks_are_the_same_to_the_bit(
    make_graph: MakeGraph, tmp_path: Path, options: dict[str, Any], by_weight: bool
) -> None:
    graph = weighted(make_graph) if by_weight else tangled(make_graph)
    expected = pagerank(graph, **options)
    for blocks in (1, 2, 5):
        blocked = in_blocks(graph, tmp_path / f"b{blocks}", blocks)
        found = pagerank(blocked, **options)
        same(found, expected)
        assert found.blocks == blocked.blocks


@settings(max_examples=20)
@given(graphs(max_nodes=30), st.integers(1, 9))
def test_any_blocks_have_the_same_ranks(
    make_graph: MakeGraph,
    tmp_path_factory: pytest.TempPathFactory,
    graph: tuple[int, Edges],
    blocks: int,
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    blocked = in_blocks(stored, tmp_path_factory.mktemp("blocks"), blocks)
    same(pagerank(blocked), pagerank(stored))


@pytest.mark.parametrize("lost", [{40}, {100, 130}, {61, 62, 200, 300}, set(range(25, 900, 125))])
def test_whoever_is_lost_ranks_are_the_same(
    make_graph: MakeGraph, tmp_path: Path, lost: set[int]
) -> None:
    graph, crews = tangled(make_graph), []

    def hire(*arguments: Any) -> Lossy:
        crews.append(Lossy(*arguments))
        crews[-1].lost = lost
        return crews[-1]

    for options in ({}, {"stop": TopOrder(20)}, {"dangling": "remove"}):
        name = "-".join(options)
        blocked = in_blocks(graph, tmp_path / f"split{name}", 3, hire)
        same(pagerank(blocked, **options), pagerank(graph, **options))
        assert crews[-1].losses >= 1


def test_who_is_lost_again_and_again_ends_it(make_graph: MakeGraph, tmp_path: Path) -> None:
    def hire(*arguments: Any) -> Lossy:
        crew = Lossy(*arguments)
        crew.lost = set(range(60, 100_000))
        return crew

    with pytest.raises(WorkerLost, match="somebody was lost"):
        pagerank(in_blocks(tangled(make_graph), tmp_path / "split", 3, hire))


def test_a_value_is_sent_once_to_a_block_that_reads_it(
    make_graph: MakeGraph, tmp_path: Path
) -> None:
    graph = tangled(make_graph)
    blocked: BlockedGraph = in_blocks(graph, tmp_path / "split", 4, Posted)
    system, where, _ = set_up(
        blocked, damping=0.85, personalization=None, dangling="spread", removals=0, memory=1 << 30
    )
    assert isinstance(system.links, PartitionedLinks)
    pairs = set()
    for number, block in enumerate(blocked.each_block()):
        for source in block.sources.tolist():
            if not block.first <= source < block.last:
                pairs.add((number, source))
    assert system.links.values == len(pairs)
    sweeps = system.sweeps(where, None)
    for _ in range(3):
        next(sweeps)
    assert system.links.sent == 3 * 8 * len(pairs)
    found = pagerank(blocked)
    assert found.sent == found.convergence.sweeps * 8 * len(pairs)
    assert RankDocument.of(blocked, found).facts()["bytes_of_values"] == found.sent
    assert "bytes_of_values" not in RankDocument.of(graph, pagerank(graph)).facts()
