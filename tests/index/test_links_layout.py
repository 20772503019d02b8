"""The ``links`` layout: links in both directions, in the same bytes however they were built."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.errors import ResourceError
from cocite.graph import links as graph_links
from cocite.index import StoredIndex
from cocite.index.layouts.links import build as links
from tests.builds import files
from tests.conftest import MakeGraph

MEASURES = ["cocitation", "coupling", "ppr"]


@pytest.fixture(scope="module")
def graph(module_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(3)
    return module_graph([(f"p{a}", f"p{b}") for a, b in rng.integers(0, 300, (1500, 2)).tolist()])


@pytest.mark.parametrize("direction", ["in", "out"])
@pytest.mark.parametrize("measure", MEASURES)
def test_links_layout_stores_both_directions(
    graph: Graph, tmp_path: Path, measure: str, direction: str
) -> None:
    cocite.build(graph, tmp_path / "x", measure=measure, direction=direction)
    part = StoredIndex.open(tmp_path / "x").parts[0]
    links_by_way = {way: part.links(way) for way in ("in", "out")}
    pairs = {
        way: [
            (node, int(other))
            for node, (low, high) in enumerate(pairwise(links_by_way[way].offsets.tolist()))
            for other in links_by_way[way].neighbors[low:high]
        ]
        for way in links_by_way
    }
    assert pairs["in"] == [(v, int(u)) for v in range(graph.nodes) for u in graph.in_neighbors(v)]
    assert pairs["out"] == sorted((u, v) for v, u in pairs["in"])
    assert (f"{direction}.norms" in part.store.manifest.files) == (measure != "ppr")


@pytest.mark.parametrize("measure", MEASURES)
def test_links_layout_threads_and_memory_keep_bytes(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measure: str
) -> None:
    cocite.build(graph, tmp_path / "a", measure=measure, direction="both", threads=1)
    cocite.build(graph, tmp_path / "b", measure=measure, direction="both", threads=3)
    monkeypatch.setattr(graph_links, "_LEAST_BLOCK", 512)
    monkeypatch.setattr(graph_links, "_PIECE", 512)
    monkeypatch.setattr(links, "_PIECE", 512)
    options: dict[str, Any] = {"measure": measure, "direction": "both", "memory": 8 * 300 + 2048}
    cocite.build(graph, tmp_path / "c", **options)
    assert files(tmp_path / "a") == files(tmp_path / "b") == files(tmp_path / "c")


def test_links_layout_reports_too_little_memory(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match=r"transposing .* links takes .* Raise the limit"):
        cocite.build(graph, tmp_path / "x", measure="ppr", direction="in", memory=1000)
