"""Min-hashes of graphs in blocks that each live somewhere: the bytes of one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite.engine.partitions import VALUE_BYTES
from cocite.errors import ResourceError, UsageError, WorkerLost
from cocite.index.build import IndexBuild
from cocite.index.layouts.minhash.partitions import fit_ring_blocks
from cocite.index.plan import BuildOptions
from cocite.resources import Resources
from tests.conftest import MakeGraph
from tests.index.test_external import files, tangled
from tests.index.test_in_blocks import Lossy, in_blocks
from tests.oracles.graphs import Edges, graphs

XJACCARD: dict[str, Any] = {"measure": "xjaccard", "samples": 9, "shard": 4, "seed": 3}


def built(graph: Any, output: Path, **more: Any) -> dict[str, bytes]:
    """All files but the manifest, which tells how the graph lies to the index."""
    cocite.build(graph, output, **(XJACCARD | more))
    found = files(output)
    del found["manifest.json"]
    return found


@pytest.mark.parametrize("bits", [0, 3])
def test_an_index_is_the_same_to_the_byte(make_graph: MakeGraph, tmp_path: Path, bits: int) -> None:
    graph = tangled(make_graph)
    whole = built(graph, tmp_path / "one" / "x.index", bits=bits, threads=2)
    for blocks in (1, 2, 5):
        folder = tmp_path / f"b{blocks}"
        assert built(in_blocks(graph, folder, blocks), folder / "x.index", bits=bits) == whole


@settings(max_examples=15)
@given(graphs(max_nodes=30), st.integers(1, 6), st.integers(1, 9), st.sampled_from([0, 1, 16]))
def test_any_blocks_make_the_same_blob(
    make_graph: MakeGraph,
    tmp_path_factory: pytest.TempPathFactory,
    graph: tuple[int, Edges],
    length: int,
    blocks: int,
    bits: int,
) -> None:
    n, edges = graph
    stored, folder = make_graph(edges, range(n)), tmp_path_factory.mktemp("blocks")
    options: dict[str, Any] = {"samples": 18, "length": length, "bits": bits, "shard": 5}
    found = built(in_blocks(stored, folder, blocks), folder / "x.index", **options)
    assert found == built(stored, folder / "whole.index", **options)


@pytest.mark.parametrize("bits", [0, 8])
def test_blocks_that_begin_among_512_nodes_share_their_planes(tmp_path: Path, bits: int) -> None:
    graph = cocite.generate_web(tmp_path / "web.graph", nodes=2600, links=9000, seed=3)
    whole = built(graph, tmp_path / "whole.index", bits=bits)
    assert built(in_blocks(graph, tmp_path / "b", 7), tmp_path / "x.index", bits=bits) == whole


@pytest.mark.parametrize("bits", [0, 3])
@pytest.mark.parametrize("lost", [{2}, {9}, {17, 18, 30}, set(range(20, 500, 60))])
def test_whoever_is_lost_the_bytes_are_the_same(
    make_graph: MakeGraph, tmp_path: Path, lost: set[int], bits: int
) -> None:
    graph, crews = tangled(make_graph), []

    def hire(*arguments: Any) -> Lossy:
        crews.append(Lossy(*arguments))
        crews[-1].lost = lost
        return crews[-1]

    whole = built(graph, tmp_path / "x.index", bits=bits)
    blocked = in_blocks(graph, tmp_path / "split", 3, hire)
    assert built(blocked, tmp_path / "split" / "x.index", bits=bits) == whole
    assert sum(crew.losses for crew in crews) >= 1


def test_who_is_lost_again_and_again_ends_the_build(make_graph: MakeGraph, tmp_path: Path) -> None:
    def hire(*arguments: Any) -> Lossy:
        crew = Lossy(*arguments)
        crew.lost = set(range(3, 10_000))
        return crew

    blocked = in_blocks(tangled(make_graph), tmp_path / "split", 3, hire)
    with pytest.raises(WorkerLost, match="somebody was lost"):
        built(blocked, tmp_path / "x.index")


def test_what_is_sent_is_told_and_bounded(make_graph: MakeGraph, tmp_path: Path) -> None:
    """A min-hash a node and step for each other block at most; 12 bytes a node and ring to lay
    out.
    """
    graph = tangled(make_graph)
    blocked = in_blocks(graph, tmp_path / "split", 3)
    options = BuildOptions.checked("xjaccard", settings={"samples": 9, "length": 4})
    means = Resources.checked(1, "1GB", shard=4)
    with IndexBuild(blocked, tmp_path / "x.index", options, means) as work:
        assert "3 blocks apart" in str(work.estimate())
        report = work.run()
    sent = report.traffic
    assert sent is not None
    assert (sent.tokens, sent.records, sent.trees) == (0, 0, 0)
    assert 0 < sent.each <= VALUE_BYTES * 2
    rings = sent.steps
    assert 0 < sent.groups <= 12 * graph.nodes * rings
    assert set(sent.facts()) == {"bytes_of_values", "bytes_of_groups", "bytes_per_node_and_step"}


def test_samples_at_a_time_are_those_that_fit(make_graph: MakeGraph, tmp_path: Path) -> None:
    blocked = in_blocks(tangled(make_graph), tmp_path / "split", 2)
    links = blocked.links("in", False)
    part = BuildOptions.checked("xjaccard").parts[0]
    most = fit_ring_blocks(links, part, Resources(1, 1 << 30))
    assert most.together == 16
    fewer = fit_ring_blocks(links, part, Resources(1, most.memory - 1))
    assert 0 < fewer.together < 16
    whole = built(tangled(make_graph), tmp_path / "whole.index")
    assert built(blocked, tmp_path / "x.index", memory=fewer.memory) == whole
    with pytest.raises(ResourceError, match="in 2 blocks"):
        fit_ring_blocks(links, part, Resources(1, 1000))
    with pytest.raises(UsageError, match="--only-nodes takes the whole graph"):
        cocite.build(blocked, tmp_path / "k.index", measure="xjaccard", only_nodes=["p1"])
