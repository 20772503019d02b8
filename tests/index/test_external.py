"""Trees made in blocks, in files, and together: the bytes of one sample alone in memory."""

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
    """Both make the same blobs, one after another."""
    for sample in samples:
        expected, found = whole(sample), maker(sample)
        assert words(found) == words(expected)
        assert (found.digest, found.nbytes) == (expected.digest, expected.nbytes)
        assert (found.members, found.live) == (expected.members, expected.live)


def maker_of(
    graph: Graph,
    step: Step,
    length: int,
    cuts: tuple[int, ...],
    together: int,
    rows: int,
    threads: int,
) -> BatchMaker:
    """Of samples that walk together, with so many rows of tokens in files, in memory if none."""
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
"""Of which both walks go on behind any step."""


@settings(max_examples=40)
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
def test_any_blocks_buffers_and_batches_make_the_same_blob(
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
    inside = tuple(sorted(cut for cut in cuts if cut < n))
    whole = TreeMaker(Walker(Mover(in_links(stored), step, 5), length), n, True)
    maker = maker_of(stored, step, length, inside, together, rows, threads)
    check_blobs(whole, maker, (0, 1, 2, 3, 4, 5, 6, 2, 1, 9, 0))


@settings(max_examples=30)
@example(LOOP, Step.UNIFORM, 15, set(), 1, 1)
@given(
    graphs(max_nodes=30),
    st.sampled_from([step for step in Step if not step.weighted]),
    st.integers(1, 15),
    st.sets(st.integers(1, 29)),
    st.integers(1, 3),
    st.integers(1, 40),
)
def test_paths_and_compact_samples_in_files_are_those_in_memory(
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
    inside = tuple(sorted(cut for cut in cuts if cut < n))
    walk = Mover(links, step, 5, inside), length
    walker = ExternalWalker(*walk, folder, rows, together, points=True)
    mover = Mover(links, Step.COMPACT, 5, inside)
    compact = ExternalCompact(links, mover, inside, rows, folder, together)
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
    """Hubs both ways, chains, self-loops that are kept, nodes alone, many components."""
    rng = np.random.default_rng(8)
    edges = [("a", f"fan{i}") for i in range(400)] + [(f"fan{i}", "b") for i in range(400)]
    edges += [(f"chain{i}", f"chain{i + 1}") for i in range(60)]
    edges += [(f"loop{i}", f"loop{i}") for i in range(30)]
    edges += [(f"pair{i}", f"pair{i}x") for i in range(200)]
    edges += [(f"p{a}", f"p{b}") for a, b in rng.integers(0, 500, (3000, 2)).tolist()]
    return make_graph(edges, (f"alone{i}" for i in range(50)), keep_self_loops=True)


def test_real_graph_has_the_same_index(data: Callable[[str], Path], tmp_path: Path) -> None:
    graph = cocite.ingest(data("web-NotreDame/web-NotreDame.txt.gz"), tmp_path / "g")
    for name, way in (
        ("a", {}),
        ("b", {"blocks": 13, "external": True}),
        ("c", {"memory": "4.2MB"}),
    ):
        options: dict[str, Any] = {"samples": 2, **way}
        cocite.build(graph, tmp_path / name, measure="psimrank", **options)
    assert files(tmp_path / "a") == files(tmp_path / "b") == files(tmp_path / "c")


def planned(
    graph: cocite.Graph, memory: int, blocks: int | None = None, external: bool = False
) -> fit.MemoryPlan:
    """What the trees layout makes of a budget, with one thread."""
    means = Resources(1, memory, None, blocks, external)
    demand = fit.Demand("trees", maker_bytes, external=1)
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
        assert (
            "blocks from disk, and the state of walks on disk: in memory it takes" in texts[memory]
        )


def test_forced_blocks_use_memory_where_they_fit(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = tangled(make_graph)
    fitting = planned(graph, 10**8, 3)
    assert not fitting.external
    assert len(fitting.cuts) == 2
    small = planned(graph, 30_000, 3)
    assert small.external
    assert small.cuts == fitting.cuts
    with pytest.raises(
        UsageError, match=r"blocks is 2,000; with the state of walks on disk, the maximum is 1,024"
    ):
        cocite.build(graph, tmp_path / "x", blocks=2000, external=True, measure="psimrank")
    ample = planned(graph, 10**9, external=True)
    assert ample.cuts == ()
    assert ample.memory < 20 * 10**6  # what it takes, not what it might have


# -- what can come between ----------------------------------------------------------------


@pytest.mark.parametrize("disk", [0, 2 * 36 * 1000 * 20, 10**12])
@pytest.mark.parametrize("external", [False, True])
def test_samples_are_the_same_bytes_whatever_the_disk_lets_walk_together(
    make_graph: MakeGraph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    external: bool,
    disk: int,
) -> None:
    graph, made = tangled(make_graph), {"samples": 40, "measure": "psimrank"}
    cocite.build(graph, tmp_path / "x", **made)
    real, seen = fit.plan_fit, []

    def limited(links: Links, means: Resources, demand: fit.Demand) -> fit.MemoryPlan:
        together = fit.samples_together(40, 1000, disk)
        seen.append(real(links, means, replace(demand, together=together, external=together)))
        return seen[-1]

    monkeypatch.setattr("cocite.index.layouts.trees.build.plan_fit", limited)
    cocite.build(graph, tmp_path / "y", blocks=3, external=external, **made)
    assert seen[-1].together == {0: 16, 10**12: 40}.get(disk, 20)
    assert files(tmp_path / "y") == files(tmp_path / "x")


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
