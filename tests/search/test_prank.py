"""P-Rank: against its iteration and its walks one by one."""

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
from cocite.index.layouts.trees.reader import PathReader
from tests.conftest import MakeGraph
from tests.oracles import prank as oracle
from tests.oracles.bounds import bernstein
from tests.oracles.graphs import Edges, graphs
from tests.oracles.simrank import dense
from tests.search.test_estimates import GRAPHS, check_close, estimates, inlinks_of, union

SHARES = st.sampled_from([0.0, 0.2, 0.5, 1.0])


def build(graph: Graph, folder: Path, **options: Any) -> Index:
    """By one thread: samples of such graphs are drawn faster than they change hands."""
    return cocite.build(graph, folder, measure="prank", **{"threads": 1} | options)


@pytest.mark.statistical
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_estimates_converge(make_graph: MakeGraph, tmp_path: Path, share: float) -> None:
    """A share that is off by 0.1 is outside of what is allowed."""
    graph = make_graph(union(GRAPHS))
    samples, length, decay = 8000, 7, 0.8
    options = {"samples": samples, "length": length, "seed": 1, "in_share": share}
    index = build(graph, tmp_path / "i", shard=2000, **options)
    truth, other = (
        oracle.prank(inlinks_of(graph), decay, length, each) for each in (share, share + 0.1)
    )
    check_close(estimates(index, list(range(graph.nodes)), decay), truth, other, samples)


@settings(max_examples=40)
@given(graphs(max_nodes=9), SHARES, st.integers(1, 6), st.integers(0, 99))
def test_walks_are_those_of_the_twin(
    make_graph: MakeGraph, graph: tuple[int, Edges], share: float, length: int, seed: int
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    options = {"samples": 4, "length": length, "seed": seed, "in_share": share}
    index = build(stored, stored.path.with_suffix(".i"), layout="paths", **options)
    (reader,) = index.scorer.readers
    assert isinstance(reader, PathReader)
    ins = [sorted({a for a, b in edges if b == v}) for v in range(n)]
    outs = [sorted({b for a, b in edges if a == v}) for v in range(n)]
    for sample in range(4):
        paths = oracle.paths(ins, outs, seed, sample, length, share)
        for node in range(n):
            walk = reader.walks(node)[sample].tolist()
            assert walk == paths[node][1:] + [NOWHERE] * (length + 1 - len(paths[node]))


@pytest.mark.statistical
def test_pages_without_in_links_are_similar(make_graph: MakeGraph, tmp_path: Path) -> None:
    """u and v link to x, and have no in-links: 0.6 where walks go forwards first, half of them."""
    graph = make_graph([("u", "x"), ("v", "x")])
    index = build(graph, tmp_path / "i", samples=4000, shard=1000, in_share=0.25)
    score = index.similarity("u", "v").score
    truth = oracle.prank(dense(3, [(0, 2), (1, 2)]), 0.6, 10, 0.25)[0, 1]
    assert truth == pytest.approx(0.75 * 0.6)
    assert abs(score - truth) <= bernstein(np.array(truth), 4000, 0.6, 1)
    assert cocite.build(graph, measure="simrank").similarity("u", "v").score == 0


@pytest.mark.statistical
def test_walks_go_forth_and_back(make_graph: MakeGraph, tmp_path: Path) -> None:
    """u links to x and v to y, and w to both of these: u and v are similar as x and y are."""
    graph = make_graph([("u", "x"), ("v", "y"), ("w", "x"), ("w", "y")])
    score = build(graph, tmp_path / "i", samples=4000, shard=1000).similarity("u", "v").score
    truth = oracle.prank(inlinks_of(graph), 0.6, 10, 0.5)
    ids = [list(graph.names).index(name) for name in "uv"]
    assert abs(score - truth[tuple(ids)]) <= bernstein(truth[tuple(ids)], 4000, 0.6, 1)
    assert score > 0.01
    mean = cocite.build(graph, measure="simrank", direction="both")
    assert mean.similarity("u", "v").score == 0


@pytest.mark.parametrize("layout", ["trees", "paths"])
def test_in_steps_alone_are_simrank(make_graph: MakeGraph, tmp_path: Path, layout: str) -> None:
    graph = make_graph(np.random.default_rng(3).integers(0, 60, (300, 2)).tolist())
    options: dict[str, Any] = {"samples": 9, "layout": layout}
    classic = cocite.build(graph, tmp_path / "s", measure="simrank", **options)
    for name, more in (("both", {"in_share": 1.0}), ("in", {"direction": "in"})):
        index = build(graph, tmp_path / name, **options, **more)
        for node in list(index.nodes)[::7]:
            assert index.related(node) == classic.related(node)


def test_weights_are_refused(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([("a", "b", 2), ("b", "a", 3)], weight_column=3)
    with pytest.raises(UsageError, match="weights, which prank cannot use"):
        build(graph, tmp_path / "i")
    build(graph, tmp_path / "i", unweighted=True)
