"""Scans over blocks that each live somewhere: the values of one machine, to the bit."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite.engine.partitions import BlocksScan, ScanBlock
from cocite.engine.scan import Fold
from cocite.graph.blocks import Links
from cocite.graph.links import in_links
from tests.conftest import MakeGraph
from tests.engine.test_scan import MOST, scan_of, values
from tests.index.test_in_blocks import Posted
from tests.oracles.graphs import Edges, graphs


def conductor(links: Links, cuts: list[int], lanes: int, dtype: str) -> BlocksScan:
    """Blocks of these links, to which all comes by post."""
    arguments = []
    for first, last in pairwise(cuts):
        begin, end = (int(links.offsets[node]) for node in (first, last))
        offsets = links.offsets[first : last + 1] - np.uint64(begin)
        offsets.flags.writeable = False
        own = offsets, links.neighbors[begin:end], first
        arguments.append((*own, np.array(cuts, np.uint32), lanes, dtype))
    return BlocksScan(Posted(ScanBlock, arguments), links.nodes)


@settings(max_examples=60)
@given(
    graphs(max_nodes=30),
    st.sampled_from(sorted(MOST)),
    st.sampled_from([1, 3, 16]),
    st.sampled_from(list(Fold)),
    st.booleans(),
    st.lists(st.integers(1, 29), max_size=5),
    st.integers(0, 99),
)
def test_scans_are_those_of_one_machine(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    dtype: str,
    lanes: int,
    fold: Fold,
    itself: bool,
    cuts: list[int],
    seed: int,
) -> None:
    """Three of them, as each begins with what the one before it has sent."""
    n, edges = graph
    lanes = min(lanes, MOST[dtype])
    links = in_links(make_graph(edges, range(n)))
    bounds = [0, *sorted({cut for cut in cuts if cut < n}), n]
    here = scan_of(links, lanes=lanes, dtype=dtype)
    x: Any = here.vector()
    x[:] = values(here.shape, dtype, seed)
    there = conductor(links, bounds, lanes, dtype)
    there.begin("begin", [(x[a:b],) for a, b in pairwise(bounds)])
    blocks = range(len(bounds) - 1)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(3):
            x = here(x, fold, start=x if itself else None)
            there.step("scan", fold.value, itself)
            found = [there.crew.take(there.crew.call(b, "values"))[0] for b in blocks]
            assert np.concatenate(found).reshape(x.shape).tobytes() == x.tobytes()
    assert there.traffic.steps == 3


def test_a_value_is_sent_once_to_each_block_that_reads_it(make_graph: MakeGraph) -> None:
    graph = make_graph([(0, 2), (0, 3), (1, 3), (0, 4), (5, 4), (4, 0), (4, 5)], range(6))
    there = conductor(in_links(graph), [0, 2, 4, 6], 2, "uint32")
    names = [int(graph.names.name(node)) for node in range(6)]
    read = set()
    for a, b in [(0, 2), (0, 3), (1, 3), (0, 4), (5, 4), (4, 0), (4, 5)]:
        source, target = names.index(a), names.index(b)
        if source // 2 != target // 2:
            read.add((source, target // 2))
    there.begin("begin", [(np.zeros((2, 2), np.uint32),)] * 3)
    assert there.traffic.values == 8 * len(read) > 0


@pytest.mark.parametrize("dtype", ["uint32", "float64"])
def test_one_block_sends_nothing(make_graph: MakeGraph, dtype: str) -> None:
    graph = make_graph([(0, 1), (1, 2)], range(3))
    there = conductor(in_links(graph), [0, 3], 1, dtype)
    there.begin("begin", [(np.ones(3, dtype),)])
    there.step("scan", "max", True)
    assert there.traffic.values == 0
