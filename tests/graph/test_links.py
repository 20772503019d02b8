"""Links by their other end: the same links, in any memory, and nothing for a damaged graph."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite.errors import Damaged
from cocite.graph import links as rooms
from cocite.graph.blocks import Links
from cocite.graph.links import in_links, links_of, transpose
from tests.conftest import MakeGraph
from tests.oracles.graphs import Edges, graphs, in_neighbors


def rows(links: Links) -> list[list[int]]:
    bounds = links.offsets.tolist()
    return [links.neighbors[a:b].tolist() for a, b in pairwise(bounds)]


def compressed(n: int, edges: Edges) -> Links:
    """In-links with a weight that names its link."""
    neighbors = in_neighbors(n, edges)
    offsets = np.cumsum([0, *map(len, neighbors)], dtype=np.uint64)
    sources = np.array([u for row in neighbors for u in row], np.uint32)
    targets = np.repeat(np.arange(n), np.diff(offsets).astype(np.int64))
    return Links(offsets, sources, (1000.0 * sources + targets).astype(np.float32))


def degrees(links: Links) -> np.ndarray:
    return np.bincount(links.neighbors, minlength=links.nodes).astype(np.uint32)


@pytest.fixture(autouse=True)
def every_graph_is_ingested() -> None:
    """Not here: it is there, and what is tested is how its links are turned."""


@settings(max_examples=30)
@given(graphs(), st.booleans())
def test_out_links_exact(make_graph: MakeGraph, graph: tuple[int, Edges], loops: bool) -> None:
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
def test_any_rows_are_both(make_graph: MakeGraph, graph: tuple[int, Edges], loops: bool) -> None:
    n, edges = graph
    edges = edges + [(v, v) for v in range(0, n, 2)] if loops else edges
    stored = make_graph(edges, range(n), keep_self_loops=True)
    ins, outs = in_neighbors(n, edges), in_neighbors(n, [(b, a) for a, b in edges])
    wanted = [sorted(a + b) for a, b in zip(ins, outs, strict=True)]
    assert rows(links_of(stored, "any")) == wanted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rooms, "_LEAST_BLOCK", 1)
        patch.setattr(rooms, "_PIECE", 16)
        cut = links_of(stored, "any", 8 * n + 40)
    assert rows(cut) == wanted
    assert sorted(stored.path.iterdir()) == sorted(
        stored.path / name for name in [*stored.store.manifest.files, "manifest.json"]
    )


def test_taken_either_way_each_link_keeps_its_weight(tmp_path: Path) -> None:
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
def test_double_transpose(tmp_path: Path, graph: tuple[int, Edges], room: int, piece: int) -> None:
    links = compressed(*graph)
    whole = transpose(links, degrees(links), 2**40, tmp_path)
    assert whole.weights is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rooms, "_LEAST_BLOCK", 1)
        patch.setattr(rooms, "_PIECE", piece)
        cut = transpose(links, degrees(links), 8 * links.nodes + piece + room, tmp_path)
    again = transpose(cut, degrees(cut), 2**40, tmp_path)
    for one, other in ((whole, cut), (links, again)):
        assert one.weights is not None
        assert other.weights is not None
        assert np.array_equal(one.offsets, other.offsets)
        assert np.array_equal(one.neighbors, other.neighbors)
        assert np.array_equal(one.weights, other.weights)
    sources = np.repeat(np.arange(whole.nodes), np.diff(whole.offsets).astype(np.int64))
    assert np.array_equal(whole.weights, (1000.0 * sources + whole.neighbors).astype(np.float32))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", [[(0, 2), (1, -2)], [(0, -1), (2, 1)], [(0, 1)]])
def test_out_degrees_that_are_not_those_of_the_links_are_damage(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch, change: list[tuple[int, int]]
) -> None:
    """The counts say where rows begin: wrong ones must not write anywhere else."""
    graph = make_graph([(0, 1), (0, 2), (1, 2), (1, 0)])
    wrong = graph.out_degrees.copy()
    for node, by in change:
        wrong[node] = int(wrong[node]) + by
    monkeypatch.setattr(graph, "out_degrees", wrong)
    with pytest.raises(Damaged, match="its out-degrees do not match its links"):
        links_of(graph, "out")
