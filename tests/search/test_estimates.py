"""Estimates against the exact twins, with tolerances that follow from the number of samples.

By one thread each: samples of graphs as small as these are made faster than they change hands.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.index.layouts.trees.reader import TreeReader
from tests.conftest import MakeGraph
from tests.oracles import compact as compacted
from tests.oracles import simrank as exact
from tests.oracles.bounds import bernstein

TWINS = {"simrank": exact.simrank, "psimrank": exact.psimrank}


def estimates(index: cocite.Index, nodes: list[int], decay: float) -> np.ndarray:
    """Rows of scores for ``nodes`` (ids), by ``related`` with every hit."""
    ids = {name: i for i, name in enumerate(index.nodes)}
    rows = np.zeros((len(nodes), len(ids)))
    for row, node in zip(rows, nodes, strict=True):
        row[node] = 1
        # Its intervals are not looked at, and Bernstein's take no time.
        hits = index.related(index.nodes.name(node), len(ids), decay=decay, interval="bernstein")
        for hit in hits:
            row[ids[hit.node]] = hit.score
    return rows


def inlinks_of(graph: Graph) -> np.ndarray:
    edges = [(int(u), v) for v in range(graph.nodes) for u in graph.in_neighbors(v)]
    return exact.dense(graph.nodes, edges)


GRAPHS = {
    "random": [(a, b) for a, b in np.random.default_rng(4).integers(0, 25, (90, 2)).tolist()],
    "ring with chords": [(i, (i + d) % 20) for i in range(20) for d in (1, 3, 7)],
    "two hubs": [(i, j) for i in range(2, 22) for j in (0, 1)] + [(0, i) for i in range(2, 22)],
}


def union(graphs: dict[str, list[tuple[int, int]]]) -> list[tuple[int, int]]:
    """Their disjoint union, nodes of the i-th from 100 i on: one index takes the steps of all."""
    return [(100 * i + a, 100 * i + b) for i, g in enumerate(graphs.values()) for a, b in g]


def check_close(found: np.ndarray, truth: np.ndarray, other: np.ndarray, samples: int) -> None:
    """Within what a decay of 0.8 allows, exactly 0 where truth is, and far from ``other``."""
    pairs = int(np.count_nonzero(np.triu(truth, 1)))
    allowed = bernstein(truth, samples, 0.8, pairs)
    np.fill_diagonal(allowed, 1e-12)
    allowed[truth == 0] = 1e-12
    assert (np.abs(found - truth) <= allowed).all()
    assert (np.abs(other - truth) > 2 * allowed).any()  # the test can fail


@pytest.mark.statistical
@pytest.mark.parametrize("measure", TWINS)
def test_small_graphs_converge(make_graph: MakeGraph, measure: str) -> None:
    graph = make_graph(union(GRAPHS))
    samples, length, decay = 8000, 7, 0.8
    options = {"samples": samples, "length": length, "seed": 1, "shard": 2000, "threads": 1}
    index = cocite.build(graph, measure=measure, **options)
    truths = {name: twin(inlinks_of(graph), decay, length) for name, twin in TWINS.items()}
    truth, found = truths.pop(measure), estimates(index, list(range(graph.nodes)), decay)
    (other,) = truths.values()
    check_close(found, truth, other, samples)


def test_walks_in_both_directions_are_independent(make_graph: MakeGraph) -> None:
    """On an undirected graph both directions are the same links: equal draws would be seen.

    The correlation of n independent pairs of values has a standard error of about 1 / sqrt(n).
    """
    graph = make_graph(GRAPHS["random"], undirected=True)
    index = cocite.build(graph, direction="both", samples=2500, shard=500, measure="psimrank")
    values = []
    for reader in index.scorer.readers:
        assert isinstance(reader, TreeReader)
        times = reader.meeting_times(1, 2)
        values.append(np.where(times == 255, 0, 0.6 ** times.astype(float)))
    assert values[0].std() > 0.1
    assert abs(np.corrcoef(values)[0, 1]) < 6 / np.sqrt(2500)


@pytest.mark.statistical
@pytest.mark.parametrize("measure", TWINS)
def test_polblogs_converges(data: Callable[[str], Path], tmp_path: Path, measure: str) -> None:
    graph = cocite.ingest(data("polblogs") / "edges.tsv", tmp_path / "g")
    samples, length, decay = 400, 5, 0.6
    index = cocite.build(graph, measure=measure, samples=samples, length=length)
    truth = TWINS[measure](inlinks_of(graph), decay, length)
    nodes = np.flatnonzero(np.diff(graph.in_offsets.astype(int)))[::20].tolist()
    found = estimates(index, nodes, decay)
    allowed = bernstein(truth[nodes], samples, decay, found.size)
    allowed[range(len(nodes)), nodes] = 1e-12
    assert (np.abs(found - truth[nodes]) <= allowed).all()
    assert np.median(allowed) < 0.06


@pytest.mark.statistical
def test_compacted_scores_converge(make_graph: MakeGraph) -> None:
    """These graphs tell it from SimRank, which is outside of what is allowed. Other layouts give
    the same bits (``test_layouts.py``).
    """
    graph = make_graph(union(compacted.GRAPHS))
    samples, length, decay = 8000, 7, 0.8
    index = cocite.build(
        graph,
        measure="compact-simrank",
        layout="compact",
        samples=samples,
        length=length,
        seed=1,
        shard=2000,
        threads=1,
    )
    truth = np.zeros((graph.nodes, graph.nodes))
    for i, edges in enumerate(compacted.GRAPHS.values()):
        near = [[a for a, b in edges if b == v] for v in range(6)]
        near = near[: 1 + max(map(max, edges))]
        ids = index.nodes.ids([str(100 * i + v) for v in range(len(near))])
        truth[np.ix_(ids, ids)] = compacted.compact_simrank(near, decay, length)
    found = estimates(index, list(range(graph.nodes)), decay)
    check_close(found, truth, exact.simrank(inlinks_of(graph), decay, length), samples)


@pytest.mark.statistical
@pytest.mark.parametrize("k", [1, 2, 5, 50])
def test_common_neighbors_closed_forms(make_graph: MakeGraph, k: int) -> None:
    """Two nodes with the same k in-neighbors, unrelated themselves: c/k and c."""
    graph = make_graph([(f"w{i}", node) for i in range(k) for node in ("u", "v")])
    samples, decay = 5000, 0.6
    options = {"samples": samples, "length": 10, "shard": 1000, "threads": 1}
    plain = cocite.build(graph, measure="simrank", **options)
    coupled = cocite.build(graph, measure="psimrank", **options)
    score = plain.similarity("u", "v", decay=decay).score
    assert abs(score - decay / k) <= (bernstein(decay / k, samples, decay, 4) if k > 1 else 1e-12)
    assert coupled.similarity("u", "v", decay=decay)[:2] == (decay, 0)
