"""The work of making samples, pickled and run in another process: the bytes of the build."""

import pickle
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.errors import Damaged, NotAStore, UsageError
from cocite.index import StoredIndex
from cocite.index.build import IndexBuild
from cocite.index.cluster import SampleWork, read_note
from cocite.index.layouts.reader import LAYOUTS, is_sampled
from cocite.index.parts import ShardedPart
from cocite.index.plan import BuildOptions
from cocite.index.refresh import RefreshBuild
from cocite.options.build import RefreshOptions
from cocite.resources import Resources
from tests.builds import files, flip

CHILD = """
import pickle, sys

for work in pickle.load(open(sys.argv[1], "rb")):
    work.write()
"""
SAMPLES, SHARD = 7, 3
ONE = {"threads": 1, "memory": 10**9}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "trees": ("simrank", ONE),
    "trees-two": ("psimrank", {"threads": 2, "memory": "1GB"}),
    "trees-blocks": ("psimrank", ONE | {"blocks": 3}),
    "trees-external": ("psimrank", ONE | {"blocks": 3, "external": True}),
    "trees-hubs": ("simrank", ONE | {"hubs": "idf"}),
    "paths": ("psimrank", ONE | {"layout": "paths"}),
    "packed": ("psimrank", ONE | {"layout": "packed"}),
    "compact": ("compact-simrank", ONE | {"layout": "compact"}),
    "minhash": ("xjaccard", {"threads": 2, "memory": "1GB"}),
    "minhash-blocks": ("xjaccard", ONE | {"blocks": 2}),
    "sketch": ("xjaccard", ONE | {"bits": 3}),
    "blend": ("blend:0.7*psimrank(hubs=rare)+0.3*xjaccard(bits=2,length=3)", ONE),
    "weighted-trees": ("simrank", ONE),
    "weighted-clock": ("psimrank", {"threads": 2, "memory": "1GB"}),
    "weighted-hubs": ("simrank", ONE | {"hubs": "rare", "blocks": 2}),
    "weighted-paths": ("simrank", ONE | {"layout": "paths"}),
}
"""Measure and options of a build; weighted kinds use the graph with weights."""
CUTS = ("threads", "memory", "blocks", "external")


def run_in_process(works: list[SampleWork], folder: Path) -> None:
    """Run the work in a process and a folder of its own."""
    (folder / "work").write_bytes(pickle.dumps(works))
    command = [sys.executable, "-c", CHILD, str(folder / "work")]
    (folder / "cwd").mkdir()
    subprocess.run(command, cwd=folder / "cwd", check=True)


def works_by_shard(build: IndexBuild) -> list[SampleWork]:
    works = []
    for part in build.parts:
        assert isinstance(part, ShardedPart)
        numbers = part.work.numbers
        for low in range(0, len(numbers), SHARD):
            works.append(part.work.of(numbers[low : low + SHARD]))
    return works


def index_build(graphs: dict[bool, Graph], kind: str, output: Path) -> IndexBuild:
    measure, options = KINDS[kind]
    settings = {name: value for name, value in options.items() if name not in CUTS}
    layout = settings.pop("layout", None)
    checked = BuildOptions.checked(measure, "both", layout, {"samples": SAMPLES, **settings})
    limits = {name: options[name] for name in CUTS if name in options}
    graph = graphs[kind.startswith("weighted")]
    return IndexBuild(graph, output, checked, Resources.checked(shard=SHARD, **limits))


def ingested(folder: Path, seed: int, *weights: str) -> Graph:
    rng = np.random.default_rng(seed)
    near = rng.integers(0, 300, (1500, 1)) // 10 * 10 + rng.integers(0, 14, (1500, 2))
    rows = [f"{a}\t{b}\t{w}" for (a, b), w in zip(near, rng.integers(1, 9, 1500), strict=True)]
    (folder / "links").write_text("\n".join(rows))
    (folder / "nodes").write_text("".join(f"{node}\n" for node in range(320)))
    columns: dict[str, Any] = {"weight_column": "3"} if weights else {"columns": "1,2"}
    return cocite.ingest(
        folder / "links", folder / "graph", nodes=folder / "nodes", header="no", **columns
    )


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Graph]:
    """Return the graphs by whether their links have weights."""
    plain, heavy = (tmp_path_factory.mktemp(name) for name in ("plain", "heavy"))
    return {False: ingested(plain, 5), True: ingested(heavy, 5, "weights")}


@pytest.fixture(scope="module")
def elsewhere(graphs: dict[bool, Graph], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with shards of each kind, made by one other process."""
    top, works = tmp_path_factory.mktemp("elsewhere"), []
    for kind in KINDS:
        (top / kind).mkdir()
        with index_build(graphs, kind, top / f"{kind}.index") as build:
            works += [replace(work, folder=top / kind) for work in works_by_shard(build)]
    assert all(len(pickle.dumps(work)) < 3000 for work in works)
    run_in_process(works, top)
    return top


def test_sample_work_kinds_cover_sampled_layouts() -> None:
    layouts = set()
    for measure, options in KINDS.values():
        settings = {"bits": options["bits"]} if "bits" in options else {}
        checked = BuildOptions.checked(measure, "both", options.get("layout"), settings)
        layouts |= {part.layout for part in checked.parts}
    assert layouts == {layout for layout in LAYOUTS if is_sampled(layout)}


@pytest.mark.process
@pytest.mark.chosen
@pytest.mark.parametrize("kind", KINDS)
def test_sample_work_in_other_process_keeps_bytes(
    graphs: dict[bool, Graph], elsewhere: Path, tmp_path: Path, kind: str
) -> None:
    with index_build(graphs, kind, tmp_path / "x") as build:
        directions = {part.plan.direction for part in build.parts}
        build.run()
    assert directions == {"in", "out"}
    index = StoredIndex.open(tmp_path / "x")
    for part in index.parts:
        digests, members = [], []
        for low in range(0, SAMPLES, SHARD):
            name = f"{part.prefix}samples-{low:06d}"
            note = read_note(elsewhere / kind / name, min(SHARD, SAMPLES - low))
            assert note is not None
            assert (elsewhere / kind / name).read_bytes() == (tmp_path / "x" / name).read_bytes()
            digests += note["digests"]
            members += note["members"]
        assert digests == part.array("digests").tolist()
        assert members == part.array("members").tolist()


@pytest.mark.process
@pytest.mark.chosen
def test_index_build_continues_after_foreign_shards(
    graphs: dict[bool, Graph], tmp_path: Path
) -> None:
    """Another process made all shards but two."""
    with index_build(graphs, "trees-two", tmp_path / "whole") as build:
        build.run()
    with index_build(graphs, "trees-two", tmp_path / "x") as build:
        works = works_by_shard(build)
    run_in_process([*works[:2], works[3], works[5]], tmp_path)
    with index_build(graphs, "trees-two", tmp_path / "x") as build:
        assert build.run().units == len(works[2].numbers) + len(works[4].numbers)
    assert files(tmp_path / "x") == files(tmp_path / "whole")


@pytest.mark.process
@pytest.mark.chosen
def test_refresh_build_splits_work_by_sample_number(
    graphs: dict[bool, Graph], tmp_path: Path
) -> None:
    newer = ingested(tmp_path, 6)
    resources = Resources.checked(1, shard=SHARD)

    def refresh_build(name: str) -> RefreshBuild:
        return RefreshBuild(
            tmp_path / name, newer, resources, RefreshOptions(fraction=0.5, date="2026-11-21")
        )

    for name in ("x", "whole"):
        cocite.build(graphs[False], tmp_path / name, samples=9, shard=SHARD, measure="psimrank")
    with refresh_build("whole") as build:
        assert build.run().units == 6  # three are linked, unchanged
    with refresh_build("x") as build:
        works = works_by_shard(build)
    assert [list(each.numbers) for each in works] == [[9, 10, 11], [12, 13]]
    run_in_process(works, tmp_path)
    with refresh_build("x") as build:
        assert build.run().units == 1  # rewritten, as its shard lost others
    assert files(tmp_path / "x") == files(tmp_path / "whole")


def test_sample_work_refuses_other_graph(graphs: dict[bool, Graph], tmp_path: Path) -> None:
    with index_build(graphs, "trees", tmp_path / "x") as build:
        work = works_by_shard(build)[0]
    with pytest.raises(
        UsageError, match=r" on .* is not the graph that this build started with: its checksum"
    ):
        replace(work, graph=graphs[True].path).links()
    with pytest.raises(NotAStore):
        replace(work, graph=tmp_path / "nowhere").links()


def copy_with_changed_link(graph: Graph, path: Path) -> Path:
    """Copy a graph and change a link, so that it still points inside the graph."""
    shutil.copytree(graph.path, path)
    links = bytearray((path / "in_sources").read_bytes())
    rows = np.frombuffer(links, np.uint32)
    at = int(np.flatnonzero(np.diff(rows.astype(np.int64)) > 2)[0])
    rows[at] += 1
    (path / "in_sources").write_bytes(links)
    return path


def test_sample_work_verifies_graph_once(
    graphs: dict[bool, Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with index_build(graphs, "trees", tmp_path / "x") as build:
        works = works_by_shard(build)
    assert all(work.verify for work in works)
    damaged = replace(works[0], graph=copy_with_changed_link(graphs[False], tmp_path / "damaged"))
    with pytest.raises(Damaged, match="in_sources has checksum"):
        damaged.links()
    assert replace(damaged, verify=False).links().nodes == graphs[False].nodes
    checked, check = [], Graph.check

    def counted(graph: Graph) -> None:
        checked.append(graph.path)
        check(graph)

    monkeypatch.setattr(Graph, "check", counted)
    copy = shutil.copytree(graphs[False].path, tmp_path / "copy")
    for work in works:
        if work.plan.direction == "in":  # transposing out-links always checks the graph
            replace(work, graph=copy).links()
    assert checked == [copy]
    shutil.rmtree(copy)
    shutil.copytree(graphs[True].path, copy)
    with pytest.raises(UsageError, match="is not the graph"):
        replace(works[0], graph=copy).links()


def test_sample_work_inherits_unverified_graph(graphs: dict[bool, Graph], tmp_path: Path) -> None:
    plain = Graph.open(graphs[False].path, verify=False)
    with index_build({False: plain}, "trees", tmp_path / "x") as build:
        assert not any(work.verify for work in works_by_shard(build))


def test_read_note_rejects_incomplete_shard(graphs: dict[bool, Graph], tmp_path: Path) -> None:
    with index_build(graphs, "trees", tmp_path / "x") as build:
        work = works_by_shard(build)[0]
    work.write()
    assert read_note(work.shard, SHARD) is not None
    assert read_note(work.shard, SHARD + 1) is None
    flip(work.shard, 100)
    assert read_note(work.shard, SHARD) is None
