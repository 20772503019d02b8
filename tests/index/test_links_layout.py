"""The layout ``links``: the graph from both ends, in the same bytes whatever made them."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.errors import Damaged, ResourceError, UsageError
from cocite.graph import links as graph_links
from cocite.index import StoredIndex
from cocite.index.layouts.links import build as links
from cocite.storage import disk
from tests.conftest import MakeGraph
from tests.storage.enemy import Killed, KilledAt

MEASURES = ["cocitation", "coupling", "ppr"]


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(3)
    return make_graph([(f"p{a}", f"p{b}") for a, b in rng.integers(0, 300, (1500, 2)).tolist()])


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


@pytest.mark.parametrize("direction", ["in", "out"])
@pytest.mark.parametrize("measure", MEASURES)
def test_links_by_both_ends(graph: Graph, tmp_path: Path, measure: str, direction: str) -> None:
    cocite.build(graph, tmp_path / "x", measure=measure, direction=direction)
    part = StoredIndex.open(tmp_path / "x").parts[0]
    both = {way: part.links(way) for way in ("in", "out")}
    found = {
        way: [
            (node, int(other))
            for node, (low, high) in enumerate(pairwise(both[way].offsets.tolist()))
            for other in both[way].neighbors[low:high]
        ]
        for way in both
    }
    assert found["in"] == [(v, int(u)) for v in range(graph.nodes) for u in graph.in_neighbors(v)]
    assert found["out"] == sorted((u, v) for v, u in found["in"])
    assert (f"{direction}.norms" in part.store.manifest.files) == (measure != "ppr")


@pytest.mark.parametrize("measure", MEASURES)
def test_threads_memory_and_pieces_do_not_change_a_byte(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measure: str
) -> None:
    cocite.build(graph, tmp_path / "a", measure=measure, direction="both", threads=1)
    cocite.build(graph, tmp_path / "b", measure=measure, direction="both", threads=3)
    monkeypatch.setattr(graph_links, "_LEAST_BLOCK", 512)
    monkeypatch.setattr(graph_links, "_PIECE", 512)
    monkeypatch.setattr(links, "_PIECE", 512)
    options: dict[str, Any] = {"measure": measure, "direction": "both", "memory": 8 * 300 + 2048}
    cocite.build(graph, tmp_path / "c", **options)
    assert contents(tmp_path / "a") == contents(tmp_path / "b") == contents(tmp_path / "c")


def test_too_little_memory_is_said(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match=r"to turn .* links round takes .* Give more"):
        cocite.build(graph, tmp_path / "x", measure="ppr", direction="in", memory=1000)


@pytest.mark.parametrize("option", ["shard", "blocks"])
def test_it_takes_no_shards(graph: Graph, tmp_path: Path, option: str) -> None:
    with pytest.raises(UsageError, match="built in one go"):
        cocite.build(graph, tmp_path / "x", measure="cocitation", **{option: 2})


def test_killed_build_bytes(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(name: str) -> None:
        cocite.build(graph, tmp_path / name, measure="cocitation", direction="both")

    build("whole")
    real = disk.sync_file
    for fatal in (1, 3, 7, 8, 11, 15):
        dying = KilledAt(real, fatal)
        with monkeypatch.context() as patch:
            patch.setattr(disk, "sync_file", dying)
            with pytest.raises(Killed):
                build(f"x{fatal}")
        build(f"x{fatal}")
        assert contents(tmp_path / f"x{fatal}") == contents(tmp_path / "whole")


@pytest.mark.parametrize("measure", MEASURES)
def test_files_that_point_outside_are_errors(graph: Graph, tmp_path: Path, measure: str) -> None:
    """Content that fits no checksum, or a false one: no query may read beyond it all the same."""
    index = cocite.build(graph, tmp_path / "x", measure=measure, direction="in")
    nodes = list(index.nodes)[::6]
    for name in ("in_offsets", "in_neighbours", "out_offsets", "out_neighbours"):
        path = tmp_path / "x" / f"in.{name}"
        whole = path.read_bytes()
        width = np.uint64 if "offsets" in name else np.uint32
        for value in (0, 301, 2**31 - 1, 2**32 - 1, 2**63, 2**64 - 1):
            broken = np.frombuffer(whole, width).copy()
            bad = value % 2 ** (8 * broken.itemsize)
            broken[1::3] = bad
            path.write_bytes(broken.tobytes())
            again = cocite.open(tmp_path / "x", verify=False)
            messages = set()
            for node in nodes:
                for idf in (False, True) if measure != "ppr" else (None,):
                    asked: dict[str, Any] = {} if idf is None else {"idf": idf}
                    try:
                        again.similarity(node, nodes[0], **asked)
                        again.related(node, 5, **asked)
                    except Damaged as error:
                        messages.add(str(error))
            unread = measure == "ppr" and name.startswith("out")
            assert unread or bad == 0 or any("see: cocite verify" in text for text in messages)
        path.write_bytes(whole)
    assert cocite.open(tmp_path / "x").related(nodes[0]) == index.related(nodes[0])
