"""The layouts of paths, compacted walks and min-hashes: their size and their memory."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cocite import Graph
from cocite.graph.links import in_links
from cocite.index.build import IndexBuild
from cocite.index.layouts.memory_plan import MemoryPlan
from cocite.index.layouts.reader import sampled_builder
from cocite.index.layouts.trees import build as compact
from cocite.index.layouts.trees import build as paths
from cocite.index.plan import BuildOptions
from cocite.resources import Resources
from tests.conftest import MakeGraph

KINDS = [
    ("simrank", "paths"),
    ("psimrank", "paths"),
    ("compact-simrank", "compact"),
    ("compact-simrank", "paths"),
    ("xjaccard", "minhash"),
    ("xjaccard", "sketch"),
]
kinds = pytest.mark.parametrize("kind", KINDS, ids="-".join)
SETTINGS: dict[str, Any] = {"samples": 20, "length": 6, "seed": 5}


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(3)
    return make_graph([(f"p{a}", f"p{b}") for a, b in rng.integers(0, 300, (1500, 2)).tolist()])


@kinds
def test_the_size_is_known(graph: Graph, tmp_path: Path, kind: tuple[str, str]) -> None:
    """From the first sample of each thread: two, however many cores there are."""
    options = BuildOptions.checked(kind[0], "in", kind[1], SETTINGS)
    with IndexBuild(graph, tmp_path / "x", options, Resources.checked(threads=2)) as work:
        estimate = work.estimate()
        report = work.run()
    assert abs(estimate.bytes / report.bytes - 1) < 0.05


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("kind", [KINDS[0], KINDS[2]], ids="-".join)
def test_maker_takes_planned_mem(make_graph: MakeGraph, kind: tuple[str, str], keep: bool) -> None:
    """On a ring no walks meet, which is the most that a sample can take."""
    nodes = 20_000
    links = in_links(make_graph([(i, (i + 1) % nodes) for i in range(nodes)]))
    part = BuildOptions.checked(kind[0], "in", kind[1], SETTINGS).parts[0]
    fit = MemoryPlan(0, 2 if keep else 1, ())
    sampled_builder(kind[1]).makers(links, part, fit, Path(), range(2))[0](0)  # compiles
    tracemalloc.start()
    maker = sampled_builder(kind[1]).makers(links, part, MemoryPlan(0, 1, ()), Path(), range(2))[0]
    if keep:
        maker._keep = True  # type: ignore[attr-defined]
    blob = maker(0)
    blob = maker(1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    planned = {
        "paths": paths.path_maker_bytes(6, nodes, keep),
        "compact": compact.compact_maker_bytes(nodes, keep),
    }[kind[1]]
    assert blob.members == {"paths": 6 * nodes, "compact": nodes}[kind[1]]
    assert 0.95 * planned < peak < 1.02 * planned


def test_points_are_stored_once_for_walks_that_have_met(make_graph: MakeGraph) -> None:
    """A hub that a chain leads to, and 100 pages that it links to: the pages' walks are one walk
    after the first step, so its points are there once.
    """
    chain = [(f"c{i}", f"c{i + 1}") for i in range(8)]
    graph = make_graph([*chain, *(("c8", f"leaf{i:03}") for i in range(100))])
    part = BuildOptions.checked("simrank", "in", "paths", {"length": 8}).parts[0]
    builder, fit = sampled_builder("paths"), MemoryPlan(0, 1, ())
    (maker,) = builder.makers(in_links(graph), part, fit, Path(), range(1))
    blob = maker(0)
    # One of the 100 has its eight points, the others none; of the chain, c1 .. c8 have 1 .. 8.
    assert blob.members == 8 + sum(range(1, 9))
