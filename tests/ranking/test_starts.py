"""Ranks that start from those of an older graph, by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite.errors import InputError, UsageError
from cocite.ranking import Ranks, WeightsFile, pagerank
from tests.conftest import MakeGraph
from tests.oracles import pagerank as oracle

Edges = list[tuple[str, str]]


@pytest.fixture(scope="module")
def edges() -> Edges:
    rng = np.random.default_rng(5)
    return [(f"n{a}", f"n{b}") for a, b in rng.zipf(1.6, (3000, 2)).tolist() if b < 400]


@pytest.fixture
def old(make_graph: MakeGraph, edges: Edges) -> Ranks:
    """Of a graph with other first nodes, so ids differ."""
    return pagerank(make_graph([*edges, ("a", "n1"), ("n1", "a")]), tolerance=1e-12)


@pytest.fixture
def graph(make_graph: MakeGraph, edges: Edges) -> cocite.Graph:
    return make_graph([*edges, ("zz", "n2"), ("n3", "zz")])


def test_pagerank_start_matches_older_graph_by_name(old: Ranks, graph: cocite.Graph) -> None:
    cold = pagerank(graph, tolerance=1e-10)
    warm = pagerank(graph, tolerance=1e-10, start=old)
    assert warm.convergence.sweeps < cold.convergence.sweeps
    assert warm.started == graph.nodes - 1
    assert cold.started is None
    sources = graph.in_sources.tolist()
    targets = np.repeat(np.arange(graph.nodes), np.diff(graph.in_offsets).astype(np.int64))
    links = list(zip(sources, targets.tolist(), strict=True))
    truth = oracle.pagerank(graph.nodes, links, 0.85)
    assert np.abs(warm.values - truth).sum() <= warm.convergence.error_bound + 1e-13


def test_pagerank_start_gives_new_node_jump_share(old: Ranks, graph: cocite.Graph) -> None:
    """Equal to the bit to an explicit vector."""
    vector = np.zeros(graph.nodes)
    known = dict(zip(old, old.values.tolist(), strict=True))
    for node, name in enumerate(graph.names):
        vector[node] = known.get(name, np.nan)
    new = np.isnan(vector)
    vector[new] = (1 - 0.85) * float(np.nansum(vector)) * (1 / graph.nodes)
    by_vector, by_name = pagerank(graph, start=vector), pagerank(graph, start=old)
    assert by_name.values.tobytes() == by_vector.values.tobytes()
    assert by_vector.started == graph.nodes


@pytest.mark.parametrize(
    ("ending", "room"), [("parquet", {}), ("csv", {"blocks": 3}), ("tsv", {"memory": "20MB"})]
)
def test_pagerank_start_accepts_rank_file(
    old: Ranks, graph: cocite.Graph, tmp_path: Path, ending: str, room: dict[str, Any]
) -> None:
    file = tmp_path / f"old.{ending}"
    old.write(file)
    truth = pagerank(graph, start=dict(WeightsFile(file).items()))
    for start in (file, str(file), WeightsFile(file)):
        found = pagerank(graph, start=start, **room)
        assert found.values.tobytes() == truth.values.tobytes()
        assert found.started == graph.nodes - 1


def test_pagerank_start_accepts_npy_file(graph: cocite.Graph, tmp_path: Path) -> None:
    first = pagerank(graph, tolerance=1e-10)
    file = tmp_path / "old.npy"
    first.write(file)
    warm = pagerank(graph, tolerance=1e-9, start=file)
    assert warm.convergence.sweeps <= 2
    assert warm.values.tobytes() == pagerank(graph, tolerance=1e-9, start=first).values.tobytes()


def test_pagerank_start_matches_integer_names() -> None:
    old = pagerank([(7, 9), (9, 7), (8, 9)])
    links = [(9, 7), (7, 9), (8, 9), (5, 8)]
    assert pagerank(links, start=old).started == 3
    assert pagerank(links, start={5: 0.5, 9: 0.5}).started == 2


@pytest.mark.parametrize(
    ("start", "error", "message"),
    [
        ({"nobody": 1.0}, UsageError, "--start \\(start=\\.\\.\\.\\) names no node of"),
        ({"n1": -1.0}, UsageError, "start must be"),
        ({"n1": float("nan")}, UsageError, "start has a value that is not a number"),
        ("old.jsonl", InputError, r"must be in a \.parquet, \.csv, \.tsv or \.npy"),
        ("missing.npy", InputError, "missing.npy cannot be read"),
    ],
)
def test_pagerank_refuses_invalid_start(
    graph: cocite.Graph, start: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        pagerank(graph, start=start)
