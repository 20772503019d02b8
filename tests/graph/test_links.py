"""Out-links and links either way: equal to the in-links, in any memory; damage is reported."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite.errors import Damaged
from cocite.graph import links as links_module
from cocite.graph.blocks import Links
from cocite.graph.links import in_links, links_of, transpose
from tests.conftest import MakeGraph
from tests.oracles.graphs import Edges, graphs, in_neighbors


def rows(links: Links) -> list[list[int]]:
    bounds = links.offsets.tolist()
    return [links.neighbors[a:b].tolist() for a, b in pairwise(bounds)]


def compressed(n: int, edges: Edges) -> Links:
    """In-links whose weights identify them."""
    neighbors = in_neighbors(n, edges)
    offsets = np.cumsum([0, *map(len, neighbors)], dtype=np.uint64)
    sources = np.array([u for row in neighbors for u in row], np.uint32)
    targets = np.repeat(np.arange(n), np.diff(offsets).astype(np.int64))
    return Links(offsets, sources, (1000.0 * sources + targets).astype(np.float32))


def degrees(links: Links) -> np.ndarray:
    return np.bincount(links.neighbors, minlength=links.nodes).astype(np.uint32)


@pytest.fixture(autouse=True)
def every_graph_is_ingested() -> None:
    """Override the folder's fixture: ingest is not what these tests test."""


@settings(max_examples=30)
@given(graphs(), st.booleans())
def test_links_of_out_equals_transposed_edges(
    make_graph: MakeGraph, graph: tuple[int, Edges], loops: bool
) -> None:
    n, edges = graph
    edges = edges + [(v, v) for v in range(0, n, 2)] if loops else edges
    stored = make_graph(edges, range(n), keep_self_loops=True)
    assert rows(in_links(stored)) == in_neighbors(n, edges)
    found = links_of(stored, "out")
    assert rows(found) == in_neighbors(n, [(b, a) for a, b in edges])
    assert (found.nodes, found.edges) == (stored.nodes, stored.edges)
    assert (found.offsets.dtype.str, found.neighbors.dtype.str) == ("<u8", "<u4")
    assert found.weights is None


@settings(max_examples=30)
@given(graphs(), st.booleans())
def test_links_of_any_merges_in_and_out_links(
    make_graph: MakeGraph, graph: tuple[int, Edges], loops: bool
) -> None:
    n, edges = graph
    edges = edges + [(v, v) for v in range(0, n, 2)] if loops else edges
    stored = make_graph(edges, range(n), keep_self_loops=True)
    ins, outs = in_neighbors(n, edges), in_neighbors(n, [(b, a) for a, b in edges])
    expected = [sorted(a + b) for a, b in zip(ins, outs, strict=True)]
    assert rows(links_of(stored, "any")) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(links_module, "_LEAST_BLOCK", 1)
        patch.setattr(links_module, "_PIECE", 16)
        in_pieces = links_of(stored, "any", 8 * n + 40)
    assert rows(in_pieces) == expected
    assert sorted(stored.path.iterdir()) == sorted(
        stored.path / name for name in [*stored.store.manifest.files, "manifest.json"]
    )


def test_links_of_any_keeps_weights(tmp_path: Path) -> None:
    import cocite

    (tmp_path / "l").write_text("a b 1\nb a 2\nc a 3\na a 4\n")
    graph = cocite.ingest(
        tmp_path / "l", tmp_path / "g", weight_column="3", header="no", keep_self_loops=True
    )
    found = links_of(graph, "any", weighted=True)
    assert found.weights is not None
    bounds = list(pairwise(found.offsets.tolist()))
    by_name = {
        name: [
            (graph.names.name(int(v)), float(w))
            for v, w in zip(found.neighbors[a:b], found.weights[a:b], strict=True)
        ]
        for name, (a, b) in zip(graph.names, bounds, strict=True)
    }
    assert sorted(by_name["a"]) == [("a", 4), ("a", 4), ("b", 1), ("b", 2), ("c", 3)]
    assert sorted(by_name["b"]) == [("a", 1), ("a", 2)]
    assert by_name["c"] == [("a", 3)]


@given(graphs(), st.integers(1, 60), st.integers(1, 60))
def test_transpose_twice_returns_links(
    tmp_path: Path, graph: tuple[int, Edges], memory: int, piece: int
) -> None:
    links = compressed(*graph)
    at_once = transpose(links, degrees(links), 2**40, tmp_path)
    assert at_once.weights is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(links_module, "_LEAST_BLOCK", 1)
        patch.setattr(links_module, "_PIECE", piece)
        in_pieces = transpose(links, degrees(links), 8 * links.nodes + piece + memory, tmp_path)
    twice = transpose(in_pieces, degrees(in_pieces), 2**40, tmp_path)
    for first, second in ((at_once, in_pieces), (links, twice)):
        assert first.weights is not None
        assert second.weights is not None
        assert np.array_equal(first.offsets, second.offsets)
        assert np.array_equal(first.neighbors, second.neighbors)
        assert np.array_equal(first.weights, second.weights)
    sources = np.repeat(np.arange(at_once.nodes), np.diff(at_once.offsets).astype(np.int64))
    assert np.array_equal(
        at_once.weights, (1000.0 * sources + at_once.neighbors).astype(np.float32)
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", [[(0, 2), (1, -2)], [(0, -1), (2, 1)], [(0, 1)]])
def test_links_of_reports_wrong_out_degrees(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch, change: list[tuple[int, int]]
) -> None:
    """Out-degrees tell where rows begin: wrong ones must not make it write elsewhere."""
    graph = make_graph([(0, 1), (0, 2), (1, 2), (1, 0)])
    wrong = graph.out_degrees.copy()
    for node, by in change:
        wrong[node] = int(wrong[node]) + by
    monkeypatch.setattr(graph, "out_degrees", wrong)
    with pytest.raises(Damaged, match="its out-degrees do not match its links"):
        links_of(graph, "out")
