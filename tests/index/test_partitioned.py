"""Partitioned graphs: the bytes of one machine, even if workers are lost."""

import json
import pickle
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph
from cocite.cluster.threads import Alone
from cocite.engine.carriers import Traffic
from cocite.engine.partitions import VALUE_BYTES
from cocite.errors import Damaged, NotAStore, OutputExists, ResourceError, UsageError, WorkerLost
from cocite.graph.partitions import BlockedGraph, GraphBlock, is_blocked
from cocite.index.build import IndexBuild
from cocite.index.layouts.contract import PartPlan
from cocite.index.layouts.trees.assemble import fit_blocks
from cocite.index.plan import BuildOptions
from cocite.io.partitions import split
from cocite.options.ingest import IngestOptions
from cocite.resources import Resources
from tests.builds import files, flip
from tests.conftest import MakeGraph, Shell, with_psimrank
from tests.index.test_external import tangled
from tests.oracles.graphs import Edges, graphs


class Posted(Alone):
    """A crew in this process that pickles all arguments and answers."""

    def call(self, block: int, method: str, *arguments: Any, answers: int = 1) -> list[Any]:
        sent = pickle.loads(pickle.dumps(arguments))
        return list(pickle.loads(pickle.dumps(super().call(block, method, *sent, answers=answers))))


class Lossy(Posted):
    """A crew that loses the object of a block at given calls, counted over all blocks."""

    def __init__(
        self, kind: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], memory: int = 0
    ) -> None:
        super().__init__(kind, arguments, memory)
        self._kind, self._arguments, self._calls = kind, arguments, 0
        self._dead: set[int] = set()
        self.losses = 0
        self.lost: set[int] = set()

    def call(self, block: int, method: str, *arguments: Any, answers: int = 1) -> list[Any]:
        self._calls += 1
        if self._calls in self.lost:
            self._dead.add(block)
            self.losses += 1
        if block in self._dead or any(each is WorkerLost for each in arguments):
            return [WorkerLost] * answers
        return super().call(block, method, *arguments, answers=answers)

    def take(self, handles: Sequence[Any]) -> list[Any]:
        if any(each is WorkerLost for each in handles):
            raise WorkerLost("somebody was lost")
        return list(handles)

    def again(self) -> None:
        for block in self._dead:
            self._objects[block] = self._kind(*self._arguments[block])
        self._dead = set()


def in_blocks(graph: Graph, folder: Path, blocks: int, crew: Any = Posted) -> BlockedGraph:
    """Split a graph under its own name, so that the indexes of both name the same graph."""
    split(graph, folder / graph.path.name, blocks)
    return BlockedGraph.open(folder / graph.path.name, crew=crew)


def built(graph: Graph, output: Path, measure: str, **more: Any) -> dict[str, bytes]:
    options: dict[str, Any] = {"measure": measure, "samples": 9, "shard": 4, "seed": 3} | more
    cocite.build(graph, output, **with_psimrank(options))
    return files(output)


def content(graph: Graph, output: Path, measure: str, **options: Any) -> dict[str, bytes]:
    """Return all files but the manifest, which contains the path from the index to the graph."""
    contents = built(graph, output, measure, **options)
    del contents["manifest.json"]
    return contents


@pytest.fixture(scope="module")
def graph(module_graph: MakeGraph) -> Graph:
    return tangled(module_graph)


XJACCARD: list[dict[str, Any]] = [{"measure": "xjaccard", "bits": bits} for bits in (0, 3)]


def part_of(measure: str) -> PartPlan:
    return BuildOptions.checked(measure, settings={"samples": 4}).parts[0]


@pytest.mark.parametrize(
    ("options", "weighted"),
    [
        *(({"measure": m}, weighted) for m in ("simrank", "psimrank") for weighted in (0, 1)),
        *((options, 0) for options in XJACCARD),
    ],
)
def test_blocked_graph_index_equals_whole_graph_index(
    graph: Graph, make_graph: MakeGraph, tmp_path: Path, options: dict[str, Any], weighted: int
) -> None:
    if weighted:
        rng = np.random.default_rng(2)
        rows = [(f"p{a}", f"p{b}", f"{1 + a % 7}") for a, b in rng.integers(0, 90, (700, 2))]
        graph = make_graph(rows, [], weight_column=3)
    whole = content(graph, tmp_path / "one" / "x.index", threads=2, **options)
    for blocks in (1, 5):
        folder = tmp_path / f"b{blocks}"
        blocked = in_blocks(graph, folder, blocks)
        assert content(blocked, folder / "x.index", **options) == whole


def test_blocked_graph_index_has_same_manifest(graph: Graph, tmp_path: Path) -> None:
    blocked = in_blocks(graph, tmp_path / "split", 3)
    folder = graph.path.parent
    whole = built(graph, folder / "x.index", "psimrank")
    assert built(blocked, tmp_path / "split" / "x.index", "psimrank") == whole


def traffic_of(blocked: BlockedGraph, output: Path, measure: str, **settings: int) -> Traffic:
    """Return the traffic between three blocks of a build after its estimate."""
    options = BuildOptions.checked(measure, settings={"samples": 9, **settings})
    with IndexBuild(blocked, output, options, Resources.checked(1, "1GB", shard=4)) as work:
        assert "3 separate blocks" in str(work.estimate())
        report = work.run()
    assert report.traffic is not None
    return report.traffic


def test_blocked_graph_estimate_keeps_bytes(graph: Graph, tmp_path: Path) -> None:
    blocked = in_blocks(graph, tmp_path / "split", 3)
    traffic = traffic_of(blocked, tmp_path / "split" / "x.index", "psimrank", seed=3)
    assert traffic.each > 0
    assert traffic.facts()["most_of_tokens_per_node_and_step"] == 12
    contents = files(tmp_path / "split" / "x.index")
    del contents["manifest.json"]
    assert contents == content(graph, tmp_path / "x.index", "psimrank")


@pytest.mark.long
@settings(max_examples=15)
@given(
    graphs(max_nodes=30),
    st.sampled_from(
        [{"measure": "psimrank"}, *({"measure": "xjaccard", "bits": b} for b in (0, 1, 16))]
    ),
    st.integers(1, 15),
    st.integers(1, 9),
)
def test_blocked_graph_any_block_count_keeps_bytes(
    make_graph: MakeGraph,
    tmp_path_factory: pytest.TempPathFactory,
    graph: tuple[int, Edges],
    options: dict[str, Any],
    length: int,
    blocks: int,
) -> None:
    n, edges = graph
    stored, folder = make_graph(edges, range(n)), tmp_path_factory.mktemp("blocks")
    rings = options["measure"] == "xjaccard"
    chosen = options | ({"samples": 18, "length": 1 + length % 6} if rings else {"length": length})
    contents = content(in_blocks(stored, folder, blocks), folder / "x.index", **chosen)
    assert contents == content(stored, folder / "whole.index", **chosen)


def lossy_hire(lost: set[int]) -> tuple[Callable[..., Lossy], list[Lossy]]:
    """Return a function that hires crews with lost workers, and the list of these crews."""
    crews: list[Lossy] = []

    def hire(*arguments: Any) -> Lossy:
        crews.append(Lossy(*arguments))
        crews[-1].lost = lost
        return crews[-1]

    return hire, crews


WALKS = {7}, {30}, {45, 46, 90}, set(range(40, 400, 60))
RINGS = {2}, {9}, {17, 18, 30}, set(range(20, 500, 60))


@pytest.mark.parametrize(
    ("options", "lost"),
    [
        *(({"measure": "psimrank"}, lost) for lost in WALKS),
        *zip(XJACCARD * 2, RINGS, strict=True),
    ],
)
def test_blocked_graph_lost_workers_keep_bytes(
    graph: Graph, tmp_path: Path, options: dict[str, Any], lost: set[int]
) -> None:
    hire, crews = lossy_hire(lost)
    whole = content(graph, tmp_path / "x.index", **options)
    blocked = in_blocks(graph, tmp_path / "split", 3, hire)
    assert content(blocked, tmp_path / "split" / "x.index", **options) == whole
    assert sum(crew.losses for crew in crews) >= 1


@pytest.mark.parametrize("measure", ["simrank", "xjaccard"])
def test_blocked_graph_build_ends_after_repeated_losses(
    graph: Graph, tmp_path: Path, measure: str
) -> None:
    hire, _ = lossy_hire(set(range(3, 10_000)))
    blocked = in_blocks(graph, tmp_path / "split", 3, hire)
    with pytest.raises(WorkerLost, match="somebody was lost"):
        built(blocked, tmp_path / "x.index", measure)


@pytest.mark.parametrize("bits", [0, 8])
def test_blocked_graph_unaligned_blocks_keep_bytes(tmp_path: Path, bits: int) -> None:
    graph = cocite.generate_web(tmp_path / "web.graph", nodes=2600, links=9000, seed=3)
    whole = content(graph, tmp_path / "whole.index", "xjaccard", bits=bits)
    blocked = in_blocks(graph, tmp_path / "b", 7)
    assert content(blocked, tmp_path / "x.index", "xjaccard", bits=bits) == whole


def test_traffic_of_min_hashes_is_bounded(graph: Graph, tmp_path: Path) -> None:
    """At most one min-hash per node, step and other block, and 12 bytes per node and ring."""
    blocked = in_blocks(graph, tmp_path / "split", 3)
    traffic = traffic_of(blocked, tmp_path / "x.index", "xjaccard", length=4)
    assert (traffic.tokens, traffic.records, traffic.trees) == (0, 0, 0)
    assert 0 < traffic.each <= VALUE_BYTES * 2
    rings = traffic.steps
    assert 0 < traffic.groups <= 12 * graph.nodes * rings
    assert set(traffic.facts()) == {"bytes_of_values", "bytes_of_groups", "bytes_per_node_and_step"}


# -- stored blocks -----------------------------------------------------------------------


def test_split_stores_rows_of_each_block(graph: Graph, tmp_path: Path) -> None:
    reports: list[tuple[int, int]] = []
    split(graph, tmp_path / "x", 4, progress=lambda done, total: reports.append((done, total)))
    blocked = BlockedGraph.open(tmp_path / "x")
    assert (blocked.nodes, blocked.edges, blocked.blocks) == (graph.nodes, graph.edges, 4)
    assert blocked.digest == graph.digest
    assert reports[-1] == (graph.edges, graph.edges)
    assert is_blocked(tmp_path / "x")
    assert not is_blocked(graph.path)
    blocked.check()
    end = 0
    for number in range(blocked.blocks):
        block = GraphBlock(tmp_path / "x", number, blocked.digest)
        assert block.first == end
        end = block.last
        for node in range(block.first, block.last):
            begin, stop = block.offsets[node - block.first : node - block.first + 2].tolist()
            assert block.sources[begin:stop].tolist() == graph.in_neighbors(node).tolist()
        assert block.degrees.tolist() == graph.out_degrees[block.first : block.last].tolist()
    assert end == graph.nodes
    assert blocked.names.name(3) == graph.names.name(3)


def test_split_replaces_output_with_overwrite(graph: Graph, tmp_path: Path) -> None:
    split(graph, tmp_path / "x", 2)
    with pytest.raises(OutputExists, match="pass --overwrite"):
        split(graph, tmp_path / "x", 3)
    split(graph, tmp_path / "x", 3, overwrite=True)
    assert BlockedGraph.open(tmp_path / "x").blocks == 3
    (tmp_path / "x" / "mine.txt").write_text("mine")
    with pytest.raises(OutputExists, match=r"mine\.txt"):
        split(graph, tmp_path / "x", 2, overwrite=True)
    (tmp_path / "other").mkdir()
    with pytest.raises(NotAStore, match="not a graph stored in blocks"):
        split(graph, tmp_path / "other", 2, overwrite=True)
    for partitions in (0, 1025):
        with pytest.raises(UsageError, match=r"partitions is .* from 1 to 1024"):
            IngestOptions(partitions=partitions)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] == ".") == []


def test_graph_block_refuses_changed_or_foreign_block(graph: Graph, tmp_path: Path) -> None:
    blocked = in_blocks(graph, tmp_path / "split", 2)
    with pytest.raises(Damaged, match=r"is not block . of this graph"):
        GraphBlock(blocked.path, 1, "0" * 32)
    file = blocked.path / "block-0001" / "in_sources"
    flip(file, 5)
    with pytest.raises(Damaged, match="in_sources"):
        GraphBlock(blocked.path, 1, graph.digest)
    with pytest.raises(Damaged, match="in_sources"):
        built(blocked, tmp_path / "x.index", "simrank")


def test_info_and_verify_cover_all_blocks(graph: Graph, tmp_path: Path, shell: Shell) -> None:
    def output(verb: str, *more: str, code: int = 0) -> str:
        result = shell([verb, str(folder), *more], code)
        return result.err if code else result.out

    folder = split(graph, tmp_path / "x", 3)
    size = sum(file.stat().st_size for file in folder.glob("*/[!m]*"))
    described = json.loads(output("info", "--format", "json"))
    assert described["blocks"]["count"] == described["blocks"]["here"] == 3
    assert described["bytes"] == size
    assert len(json.loads(output("verify", "--format", "json"))["stores"]) == 4
    file = folder / "block-0001" / "in_sources"
    flip(file, -1)
    assert str(file) in output("verify", code=1)
    shutil.rmtree(folder / "block-0001")
    assert "1 are missing here" in output("verify", code=1)
    assert "2 of them here" in output("info")
    shutil.copytree(folder / "block-0002", folder / "block-0001")
    assert "is not the folder of that block" in output("verify", code=1)


def test_blocked_graph_refuses_unsupported_options(graph: Graph, tmp_path: Path) -> None:
    blocked = in_blocks(graph, tmp_path / "split", 2)
    cases: list[dict[str, Any]] = [
        {"measure": "cocitation"},
        {"measure": "simrank", "direction": "out"},
        {"measure": "simrank", "layout": "paths"},
        {"measure": "simrank", "hubs": "idf"},
    ]
    for options in cases:
        with pytest.raises(UsageError, match="partitioned"):
            cocite.build(blocked, tmp_path / "x.index", **options)
    links = blocked.links("in", False)
    part = part_of("simrank")
    with pytest.raises(ResourceError, match="in its 2 blocks"):
        fit_blocks(links, part, Resources(1, 1000))
