"""Trees built in blocks, in files, and in groups: the bytes of one sample alone in memory."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph
from cocite.constants import Step
from cocite.engine.walk import Mover, Walker
from cocite.engine.walk_batch import WalkerGroup
from cocite.engine.walk_blocks import ExternalWalker
from cocite.errors import UsageError
from cocite.graph.blocks import Links
from cocite.graph.links import in_links
from cocite.index.build import IndexBuild
from cocite.index.layouts import memory_plan as fit
from cocite.index.layouts.batch_maker import BatchMaker, Blob, Maker
from cocite.index.layouts.memory_plan import MemoryPlan
from cocite.index.layouts.trees.assemble import ExternalCompact, ExternalPaths, ExternalTrees
from cocite.index.layouts.trees.build import CompactMaker, PathMaker, TreeMaker
from cocite.index.layouts.trees.build import tree_maker_bytes as maker_bytes
from cocite.index.plan import BuildOptions
from cocite.resources import Resources
from tests.builds import files
from tests.conftest import MakeGraph
from tests.oracles.graphs import Edges, graphs


def words(blob: Blob) -> list[int]:
    return [word for part in blob.parts for word in part.tolist()]


def check_blobs(whole: Maker, maker: Maker, samples: tuple[int, ...]) -> None:
    """Check that both make the same blobs, one after another."""
    for sample in samples:
        expected, actual = whole(sample), maker(sample)
        assert words(actual) == words(expected)
        assert (actual.digest, actual.nbytes) == (expected.digest, expected.nbytes)
        assert (actual.members, actual.live) == (expected.members, expected.live)


def batch_maker(
    graph: Graph,
    step: Step,
    length: int,
    cuts: tuple[int, ...],
    together: int,
    rows: int,
    threads: int,
) -> BatchMaker:
    """Make groups of samples, with ``rows`` rows of tokens per file, or in memory if 0."""
    mover = Mover(in_links(graph), step, 5, cuts)
    if rows:
        walker = ExternalWalker(mover, length, graph.path, rows, together)
        trees = ExternalTrees(walker, graph.nodes, graph.path)
        return BatchMaker(range(7), walker.together, walker.walk, [trees])
    group = WalkerGroup(mover, length, together=together, threads=threads, folder=graph.path)
    keep = MemoryPlan(0, threads, cuts, together=together).keep
    layers = [TreeMaker(each, graph.nodes, keep) for each in group.walkers]
    return BatchMaker(range(7), together, group, layers)


LOOP = 2, [(0, 1), (1, 0)]
"""A graph whose walks never end."""


@pytest.mark.long
@settings(max_examples=25)
@example(LOOP, Step.UNIFORM, 15, set(), 1, 1, 1)
@given(
    graphs(max_nodes=30),
    st.sampled_from([step for step in Step if not step.weighted]),
    st.integers(1, 15),
    st.sets(st.integers(1, 29)),
    st.integers(1, 5),
    st.sampled_from([0, 0, 0, *range(1, 10)]),
    st.integers(1, 3),
)
def test_batch_maker_blocks_and_batches_keep_blobs(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    step: Step,
    length: int,
    cuts: set[int],
    together: int,
    rows: int,
    threads: int,
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    bounds = tuple(sorted(cut for cut in cuts if cut < n))
    whole = TreeMaker(Walker(Mover(in_links(stored), step, 5), length), n, True)
    maker = batch_maker(stored, step, length, bounds, together, rows, threads)
    check_blobs(whole, maker, (0, 1, 2, 3, 4, 5, 6, 2, 1, 9, 0))


@settings(max_examples=20)
@example(LOOP, Step.UNIFORM, 15, set(), 1, 1)
@given(
    graphs(max_nodes=30),
    st.sampled_from([step for step in Step if not step.weighted]),
    st.integers(1, 15),
    st.sets(st.integers(1, 29)),
    st.integers(1, 3),
    st.integers(1, 40),
)
def test_external_paths_and_compact_match_memory(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    step: Step,
    length: int,
    cuts: set[int],
    together: int,
    rows: int,
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    links, folder = in_links(stored), stored.path
    bounds = tuple(sorted(cut for cut in cuts if cut < n))
    walk = Mover(links, step, 5, bounds), length
    walker = ExternalWalker(*walk, folder, rows, together, points=True)
    mover = Mover(links, Step.COMPACT, 5, bounds)
    compact = ExternalCompact(links, mover, bounds, rows, folder, together)
    for whole, maker in (
        (
            PathMaker(Walker(Mover(links, step, 5), length), n, length, True),
            BatchMaker(
                range(5), walker.together, walker.walk, [ExternalPaths(walker, n, rows, folder)]
            ),
        ),
        (CompactMaker(mover, n), BatchMaker(range(5), together, compact.make, [compact])),
    ):
        check_blobs(whole, maker, (0, 1, 2, 3, 4, 2, 9))


def tangled(make_graph: MakeGraph) -> Graph:
    """Hubs in both directions, chains, kept self-loops, isolated nodes, many components."""
    rng = np.random.default_rng(8)
    edges = [("a", f"fan{i}") for i in range(400)] + [(f"fan{i}", "b") for i in range(400)]
    edges += [(f"chain{i}", f"chain{i + 1}") for i in range(60)]
    edges += [(f"loop{i}", f"loop{i}") for i in range(30)]
    edges += [(f"pair{i}", f"pair{i}x") for i in range(200)]
    edges += [(f"p{a}", f"p{b}") for a, b in rng.integers(0, 500, (3000, 2)).tolist()]
    return make_graph(edges, (f"alone{i}" for i in range(50)), keep_self_loops=True)


@pytest.fixture(scope="module")
def graph(module_graph: MakeGraph) -> Graph:
    return tangled(module_graph)


@pytest.mark.long
def test_external_build_of_real_graph_keeps_bytes(
    data: Callable[[str], Path], tmp_path: Path
) -> None:
    graph = cocite.ingest(data("web-NotreDame/web-NotreDame.txt.gz"), tmp_path / "g")
    for name, way in (
        ("a", {}),
        ("b", {"blocks": 13, "external": True}),
        ("c", {"memory": "4.2MB"}),
    ):
        options: dict[str, Any] = {"samples": 2, **way}
        cocite.build(graph, tmp_path / name, measure="psimrank", **options)
    assert files(tmp_path / "a") == files(tmp_path / "b") == files(tmp_path / "c")


def plan_trees(
    graph: cocite.Graph, memory: int, blocks: int | None = None, external: bool = False
) -> fit.MemoryPlan:
    """Return the trees layout's plan for a memory limit, with one thread."""
    resources = Resources(1, memory, None, blocks, external)
    demand = fit.Demand("trees", maker_bytes, external=1)
    return fit.plan_fit(in_links(graph), resources, demand)


# -- choice of the form -------------------------------------------------------------------


def test_index_build_memory_limit_selects_form(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        assert (
            "blocks from disk, and the state of walks on disk: in memory, it would take"
            in texts[memory]
        )


def test_plan_fit_keeps_forced_blocks_in_memory(graph: Graph, tmp_path: Path) -> None:
    in_memory = plan_trees(graph, 10**8, 3)
    assert not in_memory.external
    assert len(in_memory.cuts) == 2
    small = plan_trees(graph, 30_000, 3)
    assert small.external
    assert small.cuts == in_memory.cuts
    with pytest.raises(
        UsageError, match=r"blocks is 2,000; with the state of walks on disk, the maximum is 1,024"
    ):
        cocite.build(graph, tmp_path / "x", blocks=2000, external=True, measure="psimrank")
    ample = plan_trees(graph, 10**9, external=True)
    assert ample.cuts == ()
    assert ample.memory < 20 * 10**6  # what it needs, not the limit


# -- groups of samples --------------------------------------------------------------------


@pytest.mark.parametrize("disk", [0, 2 * 36 * 1000 * 20, 10**12])
@pytest.mark.parametrize("external", [False, True])
def test_plan_fit_group_size_keeps_bytes(
    graph: Graph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    external: bool,
    disk: int,
) -> None:
    options = {"samples": 40, "measure": "psimrank"}
    cocite.build(graph, tmp_path / "x", **options)
    real, plans = fit.plan_fit, []

    def limited(links: Links, resources: Resources, demand: fit.Demand) -> fit.MemoryPlan:
        together = fit.samples_together(40, 1000, disk)
        plans.append(real(links, resources, replace(demand, together=together, external=together)))
        return plans[-1]

    monkeypatch.setattr("cocite.index.layouts.trees.build.plan_fit", limited)
    cocite.build(graph, tmp_path / "y", blocks=3, external=external, **options)
    assert plans[-1].together == {0: 16, 10**12: 40}.get(disk, 20)
    assert files(tmp_path / "y") == files(tmp_path / "x")


def test_index_build_reuses_estimated_samples(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sample warms up; the timed group is kept for the build."""
    walked = []
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
