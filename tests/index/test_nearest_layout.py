"""The ``nearest`` layout: the same bytes in any memory, from strips of ids and scratch files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cocite import Graph
from cocite.graph import links
from cocite.index.build import IndexBuild
from cocite.index.layouts.rows import neighbors as nearest
from cocite.index.plan import BuildOptions
from cocite.resources import Resources
from tests.conftest import MakeGraph

NODES = 500


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    """Nearby pages link to each other, and all to a few hubs, so that many scores are equal."""
    rng = np.random.default_rng(5)
    sources = rng.integers(0, NODES, 4 * NODES)
    targets = (sources + rng.integers(1, 40, sources.size)) % NODES
    targets = np.where(rng.random(sources.size) < 0.05, rng.integers(0, 4, sources.size), targets)
    return make_graph([(f"p{a}", f"p{b}") for a, b in zip(sources, targets, strict=True)])


def build_files(graph: Graph, path: Path, memory: int, **settings: Any) -> dict[str, bytes]:
    options = BuildOptions.checked("snn", settings.pop("direction", None), None, settings)
    with IndexBuild(graph, path, options, Resources(1, memory)) as work:
        work.estimate()
        work.run()
    return {file.name: file.read_bytes() for file in path.iterdir()}


@pytest.mark.parametrize("direction", ["in", "out", "both"])
def test_nearest_builder_strips_and_files_keep_bytes(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direction: str
) -> None:
    """Without a fixed reserve even this build is cut finely, with 12 bytes per node."""
    whole = build_files(graph, tmp_path / "whole", 1 << 30, direction=direction, neighbors=7)
    monkeypatch.setattr(nearest, "_LEAST_LEAN", 0)
    monkeypatch.setattr(nearest, "_READ", 4096)
    monkeypatch.setattr(nearest, "_MOST_ENTRIES", 64)
    widths = []
    lister = nearest.NearestBuilder.lister

    def record_width(builder: nearest.NearestBuilder) -> Any:
        widths.append(builder.width)
        return lister(builder)

    monkeypatch.setattr(nearest.NearestBuilder, "lister", record_width)
    # Transpose links in small pieces, too.
    monkeypatch.setattr(links, "_PIECE", 1024)
    monkeypatch.setattr(links, "_LEAST_BLOCK", 1024)
    lean = build_files(
        graph, tmp_path / "lean", 12 * NODES + 4096, direction=direction, neighbors=7
    )
    assert lean == whole
    assert max(widths) <= NODES // 2
