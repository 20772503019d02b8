"""Samples that walk together: the bytes of those that walk alone, one scan of the links a step."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph
from cocite.engine.walk import Walker
from cocite.engine.walk_batch import STATE_NODE, WalkerGroup
from cocite.engine.walk_blocks import tables
from cocite.engine.weights import Step
from cocite.errors import ResourceError
from cocite.graph.blocks import Links
from cocite.graph.links import in_links
from cocite.index.build import IndexBuild
from cocite.index.layouts import memory_plan
from cocite.index.layouts.memory_plan import Demand, MemoryPlan, plan_fit
from cocite.index.layouts.trees.build import TreeMaker, group_maker
from cocite.index.layouts.trees.build import tree_maker_bytes as maker_bytes
from cocite.index.plan import BuildOptions
from cocite.resources import Resources
from tests.conftest import MakeGraph, by_walks
from tests.index.test_external import files, tangled, words
from tests.oracles.graphs import Edges, graphs


@settings(max_examples=30)
@given(
    graphs(max_nodes=30),
    st.sampled_from([step for step in Step if not step.weighted]),
    st.integers(1, 15),
    st.sets(st.integers(1, 29)),
    st.integers(1, 5),
    st.integers(1, 3),
)
def test_any_blocks_and_any_company_make_the_same_blob(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    step: Step,
    length: int,
    cuts: set[int],
    together: int,
    threads: int,
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    links, inside = in_links(stored), tuple(sorted(cut for cut in cuts if cut < n))
    whole = TreeMaker(Walker(links, step, length, 5), n, True)
    group = WalkerGroup(
        links, step, length, 5, inside, together=together, threads=threads, folder=stored.path
    )
    fit = MemoryPlan(0, threads, inside, together=together)
    maker = group_maker(group, range(7), fit.together, n, fit.keep)
    for sample in (0, 1, 2, 3, 4, 5, 6, 2, 1, 9, 0):
        expected, found = whole(sample), maker(sample)
        assert words(found) == words(expected)
        assert found.digest == expected.digest
        assert (found.members, found.live) == (expected.members, expected.live)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("measure", ["simrank", "psimrank"])
def test_an_index_is_the_same_to_the_byte(
    make_graph: MakeGraph, tmp_path: Path, measure: str, threads: int
) -> None:
    graph = tangled(make_graph)
    for hubs in ("plain", "idf"):
        options: dict[str, Any] = {"measure": measure, "samples": 37, "seed": 3, "hubs": hubs}
        whole = tmp_path / hubs
        cocite.build(graph, whole, shard=4, **by_walks(options))
        for blocks in (2, 7, 64):
            path = tmp_path / f"{hubs}{blocks}"
            cocite.build(graph, path, blocks=blocks, threads=threads, shard=4, **by_walks(options))
            assert files(path) == files(whole)


@pytest.mark.parametrize("external", [False, True])
def test_a_step_of_all_samples_together_reads_the_links_once(
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, external: bool
) -> None:
    """Alone each sample gives every block back at every step."""
    graph = tangled(make_graph)
    real, given_back = Links.evict, 0

    def counted(links: Links) -> None:
        nonlocal given_back
        given_back += 1
        real(links)

    monkeypatch.setattr(Links, "evict", counted)
    cocite.build(
        graph,
        tmp_path / "x",
        blocks=5,
        external=external,
        samples=40,
        length=10,
        measure="psimrank",
    )
    groups, steps, blocks = 3, 10 + external, 5  # tokens in files are counted once more
    assert given_back <= groups * steps * blocks


def test_a_build_goes_on_behind_its_shards(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = tangled(make_graph)
    options: dict[str, Any] = {"samples": 40, "shard": 3, "seed": 3, "length": 5}
    cocite.build(graph, tmp_path / "whole", **by_walks(options))

    def stop(done: int, total: int) -> None:
        if done == 20:
            raise KeyboardInterrupt

    for first, then in ((3, None), (None, 3), (3, 3)):
        output = tmp_path / f"{first}{then}"
        with pytest.raises(KeyboardInterrupt):
            cocite.build(graph, output, blocks=first, threads=2, progress=stop, **by_walks(options))
        built = BuildOptions.checked("psimrank", settings={"samples": 40, "seed": 3, "length": 5})
        with IndexBuild(graph, output, built, Resources.checked(2, shard=3, blocks=then)) as work:
            assert work.run().units == 22
        assert files(output) == files(tmp_path / "whole")


def test_what_is_estimated_is_not_made_again(
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sample to warm up, a group that is timed, and kept for the build."""
    graph, walked = tangled(make_graph), []
    real = WalkerGroup.__call__

    def counted(group: WalkerGroup, samples: range) -> None:
        walked.append((samples.start, samples.stop))
        real(group, samples)

    monkeypatch.setattr(WalkerGroup, "__call__", counted)
    options = BuildOptions.checked("simrank", settings={"samples": 20})
    with IndexBuild(graph, tmp_path / "x", options, Resources.checked(blocks=3)) as work:
        work.estimate()
        work.run()
    assert walked == [(20, 21), (0, 16), (16, 20)]


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
        cocite.build(graph, tmp_path / "x", samples=2, blocks=3, threads=2, measure="psimrank")
    assert not [*tmp_path.glob("x*")]


# -- how it is planned ----------------------------------------------------------------------


def test_threads_are_as_many_as_fit_beside_a_block(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_plan, "_LEAST_BLOCK", 4096)
    rng = np.random.default_rng(4)
    graph = make_graph(rng.integers(0, 1000, (50_000, 2)).tolist(), range(1000))
    links = in_links(graph)
    one, each = maker_bytes(1000, False), maker_bytes(1000, True)
    demand = Demand("trees", maker_bytes, has_external=True, together=16)
    for memory, threads in (
        (one + 4096, 1),
        (2 * each + 4095, 1),
        (2 * each + 4096, 2),
        (3 * each + 4096, 3),
    ):
        assert memory < links.nbytes + one  # not all of it fits
        found = plan_fit(links, Resources(3, memory), demand)
        assert (found.threads, found.together, found.memory) == (threads, 16, memory)
        assert found.cuts
        assert f"16 samples at once, which take at most {STATE_NODE * 16} kB" in str(found)


def test_as_many_walk_together_in_files_as_have_room_for_their_tables(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_plan, "_LEAST_MEMORY", 1024)
    graph = make_graph([(i % 997, (i * i) % 1000) for i in range(5000)], range(1000))
    demand = Demand("trees", maker_bytes, has_external=True, together=16)
    found = []
    for memory in (10_000, 100_000, 400_000, 1_000_000, 10**8):
        fit = plan_fit(in_links(graph), Resources(1, memory, external=True), demand)
        taken = tables(1000, len(fit.cuts) + 1, fit.rows, fit.together)
        assert fit.together == 1 or taken <= memory / 6
        assert fit.memory <= memory
        found.append(fit.together)
    assert found[0] == 1
    assert sorted(found) == found
    assert found[-1] == 16
    assert 1 < found[2] < 16


def test_scratch_is_within_what_is_told(make_graph: MakeGraph) -> None:
    """Where all walks go on for a step, and then most of them meet."""
    nodes = 3000
    edges = [(i, (i + 1) % nodes) for i in range(nodes)]
    rng = np.random.default_rng(2)
    for graph in (edges, rng.integers(0, nodes, (4 * nodes, 2)).tolist()):
        stored = make_graph(graph, range(nodes))
        group = WalkerGroup(
            in_links(stored),
            Step.UNIFORM,
            15,
            0,
            (1000, 2000),
            together=3,
            threads=1,
            folder=stored.path,
        )
        group(range(3))
        sizes = [os.fstat(state.file._file).st_size for state in group._spare]
        assert max(sizes) <= STATE_NODE * nodes


def test_memory_of_a_walker_is_that_of_one_that_walks_alone(make_graph: MakeGraph) -> None:
    graph: Graph = tangled(make_graph)
    links = in_links(graph)
    group = WalkerGroup(
        links, Step.ARGMIN, 5, 0, (100, 700), together=2, threads=1, folder=graph.path
    )
    alone = Walker(links, Step.ARGMIN, 5, 0)

    def owned(walker: object) -> int:
        arrays = [value for value in vars(walker).values() if isinstance(value, np.ndarray)]
        return sum(array.nbytes for array in arrays if array.size >= graph.nodes)

    assert owned(group.walkers[0]) - group.walkers[0]._home.nbytes == owned(alone)
