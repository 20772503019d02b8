"""Estimates against exact oracles, with tolerances that follow from the number of samples.

Builds use one thread: on graphs this small, threads cost more than they save.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph, Index
from cocite.constants import NOWHERE
from cocite.errors import UsageError
from cocite.index.layouts.trees.reader import PathReader, TreeReader
from tests.conftest import MakeGraph
from tests.oracles import compact as compacted
from tests.oracles import prank as prank_oracle
from tests.oracles import simrank as exact
from tests.oracles.bounds import bernstein
from tests.oracles.graphs import Edges, graphs
from tests.oracles.simrank import dense

ORACLES = {"simrank": exact.simrank, "psimrank": exact.psimrank}


def estimates(index: cocite.Index, nodes: list[int], decay: float) -> np.ndarray:
    """Score rows of ``nodes`` (ids), from ``related`` with all hits."""
    ids = {name: i for i, name in enumerate(index.nodes)}
    rows = np.zeros((len(nodes), len(ids)))
    for row, node in zip(rows, nodes, strict=True):
        row[node] = 1
        # Intervals are not used here, and Bernstein's are the fastest.
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
    """The disjoint union, with nodes of graph i from 100 i on, so that one index covers all."""
    return [(100 * i + a, 100 * i + b) for i, g in enumerate(graphs.values()) for a, b in g]


def check_close(estimated: np.ndarray, truth: np.ndarray, other: np.ndarray, samples: int) -> None:
    """Check the bound for a decay of 0.8, exact zeros, and the distance from ``other``."""
    pairs = int(np.count_nonzero(np.triu(truth, 1)))
    allowed = bernstein(truth, samples, 0.8, pairs)
    np.fill_diagonal(allowed, 1e-12)
    allowed[truth == 0] = 1e-12
    assert (np.abs(estimated - truth) <= allowed).all()
    assert (np.abs(other - truth) > 2 * allowed).any()  # the test can fail


@pytest.mark.statistical
@pytest.mark.parametrize("measure", ORACLES)
def test_simrank_estimates_converge_on_small_graphs(make_graph: MakeGraph, measure: str) -> None:
    graph = make_graph(union(GRAPHS))
    samples, length, decay = 5000, 7, 0.8
    options = {"samples": samples, "length": length, "seed": 1, "shard": 2000, "threads": 1}
    index = cocite.build(graph, measure=measure, **options)
    truths = {name: oracle(inlinks_of(graph), decay, length) for name, oracle in ORACLES.items()}
    truth, found = truths.pop(measure), estimates(index, list(range(graph.nodes)), decay)
    (other,) = truths.values()
    check_close(found, truth, other, samples)


@pytest.mark.statistical
def test_direction_both_draws_independent_walks(make_graph: MakeGraph) -> None:
    """In an undirected graph both directions have the same links, so equal draws would correlate.

    The correlation of n independent pairs of values has a standard error of about 1 / sqrt(n).
    """
    graph = make_graph(GRAPHS["random"], undirected=True)
    index = cocite.build(graph, direction="both", samples=1000, shard=500, measure="psimrank")
    values = []
    for reader in index.scorer.readers:
        assert isinstance(reader, TreeReader)
        times = reader.meeting_times(1, 2)
        values.append(np.where(times == 255, 0, 0.6 ** times.astype(float)))
    assert values[0].std() > 0.1
    assert abs(np.corrcoef(values)[0, 1]) < 6 / np.sqrt(1000)


@pytest.mark.statistical
@pytest.mark.parametrize("measure", ORACLES)
def test_simrank_estimates_converge_on_polblogs(
    data: Callable[[str], Path], tmp_path: Path, measure: str
) -> None:
    graph = cocite.ingest(data("polblogs") / "edges.tsv", tmp_path / "g")
    samples, length, decay = 400, 5, 0.6
    index = cocite.build(graph, measure=measure, samples=samples, length=length)
    truth = ORACLES[measure](inlinks_of(graph), decay, length)
    nodes = np.flatnonzero(np.diff(graph.in_offsets.astype(int)))[::20].tolist()
    found = estimates(index, nodes, decay)
    allowed = bernstein(truth[nodes], samples, decay, found.size)
    allowed[range(len(nodes)), nodes] = 1e-12
    assert (np.abs(found - truth[nodes]) <= allowed).all()
    assert np.median(allowed) < 0.06


@pytest.mark.statistical
def test_compact_simrank_estimates_converge(make_graph: MakeGraph) -> None:
    """On these graphs SimRank is outside the tolerance. Other layouts give the same bits
    (``test_layouts.py``).
    """
    graph = make_graph(union(compacted.GRAPHS))
    samples, length, decay = 8000, 7, 0.8
    options = {"samples": samples, "length": length, "seed": 1, "shard": 2000, "threads": 1}
    index = cocite.build(graph, measure="compact-simrank", layout="compact", **options)
    truth = np.zeros((graph.nodes, graph.nodes))
    for i, edges in enumerate(compacted.GRAPHS.values()):
        neighbors = [[a for a, b in edges if b == v] for v in range(6)]
        neighbors = neighbors[: 1 + max(map(max, edges))]
        ids = index.nodes.ids([str(100 * i + v) for v in range(len(neighbors))])
        truth[np.ix_(ids, ids)] = compacted.compact_simrank(neighbors, decay, length)
    found = estimates(index, list(range(graph.nodes)), decay)
    check_close(found, truth, exact.simrank(inlinks_of(graph), decay, length), samples)


@pytest.mark.statistical
def test_simrank_common_neighbors_match_closed_forms(make_graph: MakeGraph) -> None:
    """Pairs of nodes with the same k in-neighbors, unrelated themselves: c/k and c."""
    sizes, samples, decay = (1, 2, 5, 50), 3000, 0.6
    graph = make_graph([(f"w{i} {k}", f"{x}{k}") for k in sizes for i in range(k) for x in "uv"])
    options = {"samples": samples, "length": 10, "shard": 1000, "threads": 1}
    simrank = cocite.build(graph, measure="simrank", **options)
    psimrank = cocite.build(graph, measure="psimrank", **options)
    for k in sizes:
        score, truth = simrank.similarity(f"u{k}", f"v{k}", decay=decay).score, decay / k
        assert abs(score - truth) <= (bernstein(truth, samples, decay, 4) if k > 1 else 1e-12)
        assert psimrank.similarity(f"u{k}", f"v{k}", decay=decay)[:2] == (decay, 0)


IN_SHARES = st.sampled_from([0.0, 0.2, 0.5, 1.0])


def prank_of(graph: Graph, **options: Any) -> Index:
    """Build with one thread, the fastest for graphs this small."""
    return cocite.build(graph, measure="prank", **{"threads": 1} | options)


@pytest.mark.statistical
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_prank_estimates_converge(make_graph: MakeGraph, share: float) -> None:
    """An ``in_share`` that is off by 0.1 is outside the tolerance."""
    graph = make_graph(union(GRAPHS))
    samples, length, decay = 8000, 7, 0.8
    options = {"samples": samples, "length": length, "seed": 1, "in_share": share}
    index = prank_of(graph, shard=2000, **options)
    truth, other = (
        prank_oracle.prank(inlinks_of(graph), decay, length, in_share)
        for in_share in (share, share + 0.1)
    )
    check_close(estimates(index, list(range(graph.nodes)), decay), truth, other, samples)


@settings(max_examples=20)
@given(graphs(max_nodes=9), IN_SHARES, st.integers(1, 6), st.integers(0, 99))
def test_prank_walks_match_oracle(
    make_graph: MakeGraph, graph: tuple[int, Edges], share: float, length: int, seed: int
) -> None:
    n, edges = graph
    options = {"samples": 4, "length": length, "seed": seed, "in_share": share}
    index = prank_of(make_graph(edges, range(n)), layout="paths", **options)
    (reader,) = index.scorer.readers
    assert isinstance(reader, PathReader)
    ins = [sorted({a for a, b in edges if b == v}) for v in range(n)]
    outs = [sorted({b for a, b in edges if a == v}) for v in range(n)]
    for sample in range(4):
        paths = prank_oracle.paths(ins, outs, seed, sample, length, share)
        for node in range(n):
            walk = reader.walks(node)[sample].tolist()
            assert walk == paths[node][1:] + [NOWHERE] * (length + 1 - len(paths[node]))


@pytest.mark.statistical
def test_prank_compares_pages_without_in_links(make_graph: MakeGraph) -> None:
    """u and v link to x and have no in-links: the score is 0.6 times the share of out-steps."""
    graph = make_graph([("u", "x"), ("v", "x")])
    index = prank_of(graph, samples=4000, shard=1000, in_share=0.25)
    score = index.similarity("u", "v").score
    truth = prank_oracle.prank(dense(3, [(0, 2), (1, 2)]), 0.6, 10, 0.25)[0, 1]
    assert truth == pytest.approx(0.75 * 0.6)
    assert abs(score - truth) <= bernstein(np.array(truth), 4000, 0.6, 1)
    assert cocite.build(graph, measure="simrank").similarity("u", "v").score == 0


@pytest.mark.statistical
def test_prank_walks_mix_in_and_out_links(make_graph: MakeGraph) -> None:
    """u links to x, v to y, and w to both, so u and v are similar because x and y are."""
    graph = make_graph([("u", "x"), ("v", "y"), ("w", "x"), ("w", "y")])
    score = prank_of(graph, samples=4000, shard=1000).similarity("u", "v").score
    truth = prank_oracle.prank(inlinks_of(graph), 0.6, 10, 0.5)
    ids = [list(graph.names).index(name) for name in "uv"]
    assert abs(score - truth[tuple(ids)]) <= bernstein(truth[tuple(ids)], 4000, 0.6, 1)
    assert score > 0.01
    simrank = cocite.build(graph, measure="simrank", direction="both")
    assert simrank.similarity("u", "v").score == 0


@pytest.mark.parametrize("layout", ["trees", "paths"])
def test_prank_in_share_1_equals_simrank(make_graph: MakeGraph, layout: str) -> None:
    graph = make_graph(np.random.default_rng(3).integers(0, 60, (300, 2)).tolist())
    options: dict[str, Any] = {"samples": 9, "layout": layout}
    simrank = cocite.build(graph, measure="simrank", **options)
    for extra in ({"in_share": 1.0}, {"direction": "in"}):
        index = prank_of(graph, **options, **extra)
        for node in list(index.nodes)[::7]:
            assert index.related(node) == simrank.related(node)


def test_prank_rejects_weights(make_graph: MakeGraph) -> None:
    graph = make_graph([("a", "b", 2), ("b", "a", 3)], weight_column=3)
    with pytest.raises(UsageError, match="weights, which prank cannot use"):
        prank_of(graph)
    prank_of(graph, unweighted=True)
