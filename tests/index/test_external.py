"""Indexing in constant memory: the bytes of the form in memory, whatever is cut where."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph
from cocite.engine.walk import Walker
from cocite.engine.walk_blocks import BLOCK_NODE, ROW_ROOM, ExternalWalker
from cocite.engine.weights import Step
from cocite.errors import ResourceError, UsageError
from cocite.graph.blocks import cut_evenly
from cocite.graph.links import in_links
from cocite.index.build import IndexBuild
from cocite.index.layouts import memory_plan as fit
from cocite.index.layouts.batch_maker import BatchMaker, Blob
from cocite.index.layouts.trees.assemble import external_maker
from cocite.index.layouts.trees.build import TreeMaker
from cocite.index.layouts.trees.build import tree_maker_bytes as maker_bytes
from cocite.index.plan import BuildOptions
from cocite.resources import Resources
from tests.conftest import MakeGraph, by_walks
from tests.oracles.graphs import Edges, graphs


def words(blob: Blob) -> list[int]:
    return [word for part in blob.parts for word in part.tolist()]


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def maker_of(
    graph: Graph, step: Step, length: int, cuts: tuple[int, ...], rows: int, together: int
) -> BatchMaker:
    walker = ExternalWalker(
        in_links(graph), step, length, 5, cuts, graph.path, rows, together=together
    )
    return external_maker(walker, graph.nodes, graph.path, range(7))


@settings(max_examples=60)
@given(
    graphs(max_nodes=30),
    st.sampled_from([step for step in Step if not step.weighted]),
    st.integers(1, 15),
    st.sets(st.integers(1, 29)),
    st.integers(1, 9),
    st.integers(1, 4),
)
def test_any_blocks_and_any_buffers_make_the_same_blob(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    step: Step,
    length: int,
    cuts: set[int],
    rows: int,
    together: int,
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    inside = tuple(sorted(cut for cut in cuts if cut < n))
    whole = TreeMaker(Walker(in_links(stored), step, length, 5), n, True)
    maker = maker_of(stored, step, length, inside, rows, together)
    for sample in (0, 3, 4, 6, 0, 8):
        expected, found = whole(sample), maker(sample)
        assert words(found) == words(expected)
        assert found.digest == expected.digest
        assert (found.members, found.live) == (expected.members, expected.live)
        assert found.nbytes == expected.nbytes


def tangled(make_graph: MakeGraph) -> Graph:
    """Hubs both ways, chains, self-loops that are kept, nodes alone, many components."""
    rng = np.random.default_rng(8)
    edges = [("a", f"fan{i}") for i in range(400)] + [(f"fan{i}", "b") for i in range(400)]
    edges += [(f"chain{i}", f"chain{i + 1}") for i in range(60)]
    edges += [(f"loop{i}", f"loop{i}") for i in range(30)]
    edges += [(f"pair{i}", f"pair{i}x") for i in range(200)]
    edges += [(f"p{a}", f"p{b}") for a, b in rng.integers(0, 500, (3000, 2)).tolist()]
    return make_graph(edges, (f"alone{i}" for i in range(50)), keep_self_loops=True)


@pytest.mark.parametrize("measure", ["simrank", "psimrank"])
def test_an_index_is_the_same_to_the_byte(
    make_graph: MakeGraph, tmp_path: Path, measure: str
) -> None:
    graph = tangled(make_graph)
    options: dict[str, Any] = {"measure": measure, "samples": 9, "shard": 4, "seed": 3}
    cocite.build(graph, tmp_path / "whole", threads=2, **by_walks(options))
    for blocks in (1, 2, 7, 64):
        path = tmp_path / f"b{blocks}"
        cocite.build(graph, path, blocks=blocks, external=True, threads=2, **by_walks(options))
        assert files(path) == files(tmp_path / "whole")
    cocite.build(graph, tmp_path / "free", external=True, **by_walks(options))
    assert files(tmp_path / "free") == files(tmp_path / "whole")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("wikispeedia/links.tsv", {}),
        ("cnr-2000/cnr-2000.edges.txt.gz", {}),
        ("web-NotreDame/web-NotreDame.txt.gz", {}),
    ],
)
@pytest.mark.parametrize("measure", ["simrank", "psimrank"])
def test_real_graphs_have_the_same_index(
    data: Callable[[str], Path], tmp_path: Path, name: str, options: dict[str, Any], measure: str
) -> None:
    graph = cocite.ingest(data(name), tmp_path / "g", **options)
    cocite.build(graph, tmp_path / "a", measure=measure, samples=2)
    cocite.build(graph, tmp_path / "b", measure=measure, samples=2, blocks=13, external=True)
    cocite.build(graph, tmp_path / "c", measure=measure, samples=2, memory="4.2MB")
    assert files(tmp_path / "a") == files(tmp_path / "b") == files(tmp_path / "c")


def planned(
    graph: cocite.Graph, memory: int, blocks: int | None = None, external: bool = False
) -> fit.MemoryPlan:
    """What the trees layout makes of a budget, with one thread."""
    means = Resources(1, memory, None, blocks, external)
    demand = fit.Demand("trees", maker_bytes, has_external=True)
    return fit.plan_fit(in_links(graph), means, demand)


# -- which form is chosen -----------------------------------------------------------------


def test_the_budget_decides_the_form(
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = tangled(make_graph)
    monkeypatch.setattr(fit, "_LEAST_BLOCK", 4096)
    monkeypatch.setattr(fit, "_LEAST_MEMORY", 1024)
    tokens = int(26.5 * graph.nodes)
    cocite.build(graph, tmp_path / "whole", samples=4, measure="psimrank")
    texts = {}
    for memory in (10**8, tokens + 8192, tokens - 1, 20_000):
        options = BuildOptions.checked("psimrank", settings={"samples": 4})
        output = tmp_path / f"m{memory}"
        with IndexBuild(graph, output, options, Resources(2, memory)) as work:
            texts[memory] = str(work.estimate())
            work.run()
        assert files(output) == files(tmp_path / "whole")
    assert "on 2 threads, about" in texts[10**8]
    assert "blocks of the graph one after another" in texts[tokens + 8192]
    for memory in (tokens - 1, 20_000):
        assert "blocks from disk, tokens too: in memory they take" in texts[memory]


def test_forced_blocks_keep_tokens_in_memory_only_where_they_fit(
    make_graph: MakeGraph, tmp_path: Path
) -> None:
    graph = tangled(make_graph)
    fitting = planned(graph, 10**8, 3)
    assert not fitting.external
    assert len(fitting.cuts) == 2
    small = planned(graph, 30_000, 3)
    assert small.external
    assert small.cuts == fitting.cuts
    with pytest.raises(UsageError, match=r"blocks is 2,000; with tokens on disk .* 1,024 at most"):
        cocite.build(graph, tmp_path / "x", blocks=2000, external=True, measure="psimrank")
    ample = planned(graph, 10**9, external=True)
    assert ample.cuts == ()
    assert ample.memory < 20 * 10**6  # what it takes, not what it might have


def test_there_are_no_more_blocks_than_nodes(make_graph: MakeGraph) -> None:
    graph = tangled(make_graph)
    cuts = cut_evenly(in_links(graph), 10**12)
    assert cuts == cut_evenly(in_links(graph), graph.nodes)
    assert len(cuts) < graph.nodes


def test_memory_is_what_it_says(make_graph: MakeGraph) -> None:
    graph = tangled(make_graph)
    cuts = cut_evenly(in_links(graph), 7)
    rows = 100
    walker = ExternalWalker(in_links(graph), Step.ARGMIN, 5, 0, cuts, graph.path, rows)
    owned = vars(walker.rooms).values()
    largest = int(np.diff([0, *cuts, graph.nodes]).max())
    assert sum(array.nbytes for array in owned) == BLOCK_NODE * largest + ROW_ROOM * rows


def test_blocks_fit_what_is_left_beside_the_buffers(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "_LEAST_MEMORY", 1024)
    graph = make_graph([(i % 97, (i * i) % 1000) for i in range(5000)], range(1000))
    for memory in (3000, 10_000, 50_000):
        found = planned(graph, memory, external=True)
        bounds = [0, *found.cuts, graph.nodes]
        room_for_blocks = (memory - ROW_ROOM * found.rows) / 2
        for first, last in pairwise(bounds):
            links = int(graph.in_offsets[last] - graph.in_offsets[first])
            taken = (8 + BLOCK_NODE) * (last - first) + 4 * links
            assert taken <= room_for_blocks or last == first + 1


# -- what can come between ----------------------------------------------------------------


def test_a_build_goes_on_in_another_form(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = tangled(make_graph)

    def stop(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"samples": 9, "shard": 2, "seed": 3}
    cocite.build(graph, tmp_path / "whole", **by_walks(options))
    for first, then in ((True, False), (False, True), (True, True)):
        output = tmp_path / f"{first}{then}"
        with pytest.raises(KeyboardInterrupt):
            cocite.build(
                graph, output, external=first, blocks=3, progress=stop, **by_walks(options)
            )
        left = {file.name for file in output.with_name(output.name + ".building").iterdir()}
        shards = {"in.samples-000000", "in.samples-000002"}
        notes = {f"{name}.json" for name in shards}
        assert left == {".cocite-draft", "plan.json"} | shards | notes
        with IndexBuild(
            graph,
            output,
            BuildOptions.checked("psimrank", settings={"samples": 9, "seed": 3}),
            Resources.checked(shard=2, external=then),
        ) as work:
            assert work.run().units == 5
        assert files(output) == files(tmp_path / "whole")


@pytest.mark.parametrize("nth", [1, 2, 5, 20])
def test_a_full_disk_is_an_error_that_leaves_nothing(
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    graph = tangled(make_graph)
    pwrite, calls = os.pwrite, 0

    def filling(*arguments: Any) -> int:
        nonlocal calls
        calls += 1
        if calls >= nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return pwrite(*arguments)

    monkeypatch.setattr(os, "pwrite", filling)
    with pytest.raises(ResourceError, match=r"bytes of scratch in .*x.building: No space left"):
        cocite.build(graph, tmp_path / "x", samples=1, blocks=3, external=True, measure="psimrank")
    assert not [*tmp_path.glob("x*")]
