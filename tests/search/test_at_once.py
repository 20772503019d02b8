"""Hits computed at once equal those computed step by step, to the bit."""

import csv
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite.constants import Ids
from cocite.index.layouts import part
from cocite.index.layouts.reader import ListedHits
from cocite.index.layouts.trees import reader
from cocite.index.layouts.trees.reader import TreeReader
from cocite.kernels.trees_batch import TRIED
from cocite.search.scorer import NO_BETS
from tests.conftest import MakeGraph

SITES = [
    (20 * site + a, 20 * site + b)
    for site, a, b in np.random.default_rng(3).integers(0, [9, 20, 20], (1000, 3)).tolist()
    if a != b
]
"""Links within sites, whose pages have adjacent ids."""
EDGES = [(a, b) for a, b in np.random.default_rng(7).integers(0, 60, (260, 2)).tolist() if a != b]
INDEXES: dict[str, dict[str, Any]] = {
    "one file": {"measure": "psimrank", "samples": 40, "length": 8},
    "files": {"samples": 40, "length": 8, "shard": 7, "measure": "simrank"},
    "packed": {"measure": "psimrank", "samples": 70, "length": 8, "layout": "packed", "shard": 9},
    "paths": {"measure": "psimrank", "samples": 12, "length": 3, "layout": "paths"},
    "one sample": {"measure": "psimrank", "samples": 1, "length": 5},
    "many": {"measure": "psimrank", "samples": 150, "length": 5, "shard": 70},
}
WALKS: dict[str, Any] = {"measure": "psimrank", "samples": 8, "threads": 1}
QUERIES: list[dict[str, Any]] = [
    {},
    {"k": 1},
    {"k": 5, "confidence": 0.5},
    {"k": 200, "min_score": 0.05, "confidence": 0.999},
    {"k": 9, "decay": 0.3},
    {"k": 9, "meeting_weight": "t <= 3"},
    {"k": 9, "meeting_weight": "1"},
]


@pytest.mark.parametrize("kind", INDEXES)
def test_tree_reader_at_once_equals_stepwise(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    index = cocite.build(make_graph(EDGES), threads=1, **INDEXES[kind])
    views = [index] if kind == "one sample" else [index, index.with_samples(11)]
    nodes = [index.nodes.name(i) for i in range(0, len(index.nodes), 9)]
    sizes: list[int] = []
    original = TreeReader.at_once

    def at_once(self: TreeReader, *args: Any) -> list[ListedHits] | None:
        found = original(self, *args)
        assert found is not None
        sizes.append(found[0].ids.size)
        return found

    def query_all() -> list[Any]:
        found: list[Any] = []
        for view in views:
            for options in QUERIES:
                for node in nodes:
                    hits = view.related(node, **options)
                    # repr, as nan != nan
                    rows = [tuple(map(repr, hit)) for hit in hits]
                    found.append((rows, hits.certain_ranks))
        return found

    monkeypatch.setattr(TreeReader, "at_once", at_once)
    expected = query_all()
    assert max(sizes) >= 10
    with monkeypatch.context() as patched:  # in small pieces
        patched.setattr(part, "_AT_ONCE", 100)
        checks: list[None] = []
        patched.setattr(reader, "check", lambda: checks.append(None))
        sizes.clear()
        assert query_all() == expected
        assert len(checks) > len(sizes) or kind == "one sample"
    monkeypatch.setattr(TreeReader, "at_once", lambda *args: None)
    assert query_all() == expected
    if kind == "many":
        assert any(isinstance(row, tuple) and row[1] > 0 for row in expected)


@pytest.mark.parametrize(
    ("kind", "edges"),
    [
        *(pytest.param(kind, SITES, id=f"{kind}-sites") for kind in INDEXES),
        *(pytest.param(kind, EDGES, id=f"{kind}-mixed") for kind in ("one file", "many")),
    ],
)
def test_tree_reader_at_once_batch_equals_single(
    make_graph: MakeGraph, kind: str, edges: list[tuple[int, int]]
) -> None:
    """In any order, both by the batch kernel and as the reader chooses."""
    graph = make_graph(edges, range(200))
    index = cocite.build(graph, threads=1, **INDEXES[kind])
    views = [index] if kind == "one sample" else [index, index.with_samples(11)]
    ascending = np.arange(len(index.nodes), dtype=np.uint32)
    shuffled = np.random.default_rng(5).permutation(ascending)
    queries: list[tuple[int, float, dict[str, Any]]]
    queries = [(7, 1.0, {}), (1, 3e11, {"decay": 0.3}), (90, 5e10, {"meeting_weight": "t <= 3"})]
    for view, (k, floor, settings) in itertools.product(views, queries):
        (reader,) = view.scorer.readers
        assert isinstance(reader, TreeReader)
        part_settings = reader.part.ask_settings(view.stored.ask_settings(settings))
        query = k, floor, NO_BETS, part_settings

        def carry(nodes: Ids, reader: TreeReader = reader, query: Any = query) -> Any:
            k, floor, _, part_settings = query
            return reader._carry(nodes, k, floor, part_settings)

        def at_once(nodes: Ids, reader: TreeReader = reader, query: Any = query) -> Any:
            return reader.at_once(nodes, *query)

        batches = (reader.at_once(ascending[i : i + 1], *query) for i in range(ascending.size))
        single = [hits for (hits,) in map(list, filter(None, batches))]
        for method, nodes in itertools.product(
            (carry, at_once), (ascending, shuffled, shuffled[:9])
        ):
            found: list[ListedHits] = []
            while len(found) < nodes.size:
                part = method(nodes[len(found) :])
                assert len(part) > TRIED or len(found) + len(part) == nodes.size
                found += part
            assert list(map(exact, found)) == [exact(single[node]) for node in nodes.tolist()]


def exact(hits: ListedHits) -> tuple[list[int], bytes]:
    """Ids and numbers without intervals, as bytes because nan != nan."""
    return hits.ids.tolist(), hits.rows[:, :2].tobytes()


def test_tree_reader_at_once_declines_unsupported_queries(
    make_graph: MakeGraph, tmp_path: Path
) -> None:
    """Several parts, several graphs, and long lists."""
    graph = make_graph(EDGES)
    both = cocite.build(graph, direction="both", **WALKS)
    name = both.nodes.name(3)
    assert len(both.scorer.readers) == 2
    assert both.related(name, 5)
    index = cocite.build(graph, tmp_path / "one", **WALKS)
    (reader,) = index.scorer.readers
    settings = reader.part.ask_settings(index.stored.ask_settings({}))
    node = np.array([3], np.uint32)
    assert reader.at_once(node, 256, 1.0, (40.0, 4e-12), settings) is not None
    assert reader.at_once(node, 257, 1.0, (40.0, 4e-12), settings) is None
    larger = make_graph([*EDGES, (1, 2), (2, 50)])
    cocite.refresh(tmp_path / "one", larger, fraction=0.5, force=True)
    refreshed = cocite.open(tmp_path / "one")
    assert refreshed.scorer.readers[0].at_once(node, 5, 1.0, (40.0, 4e-12), settings) is None
    assert refreshed.related(name, 5)
    nodes = np.arange(20, dtype=np.uint32)
    assert refreshed.scorer.readers[0].at_once(nodes, 5, 1.0, NO_BETS, settings) is None
    refreshed.related_all(tmp_path / "all.csv", 5, threads=1)
    rows = (tmp_path / "all.csv").read_text().splitlines()[1:]
    expected = [
        (node, hit.node, hit.score)
        for node in refreshed.nodes
        for hit in refreshed.related(node, 5)
    ]
    assert [(row[0], row[2], float(row[3])) for row in csv.reader(rows)] == expected
