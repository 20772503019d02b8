"""An answer that is made at once is the one that is made step by step, to the bit."""

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
    for site, a, b in np.random.default_rng(3).integers(0, 20, (2000, 3)).tolist()
    if a != b
]
"""Links within sites of pages next to each other."""
EDGES = [(a, b) for a, b in np.random.default_rng(7).integers(0, 60, (260, 2)).tolist() if a != b]
BUILT: dict[str, dict[str, Any]] = {
    "one file": {"measure": "psimrank", "samples": 40, "length": 8},
    "files": {"samples": 40, "length": 8, "shard": 7, "measure": "simrank"},
    "packed": {"measure": "psimrank", "samples": 70, "length": 8, "layout": "packed", "shard": 9},
    "paths": {"measure": "psimrank", "samples": 12, "length": 3, "layout": "paths"},
    "one sample": {"measure": "psimrank", "samples": 1, "length": 5},
    "many": {"measure": "psimrank", "samples": 150, "length": 5, "shard": 70},
}
WALKS: dict[str, Any] = {"measure": "psimrank", "samples": 8, "threads": 1}
ASKED: list[dict[str, Any]] = [
    {},
    {"k": 1},
    {"k": 5, "confidence": 0.5},
    {"k": 200, "min_score": 0.05, "confidence": 0.999},
    {"k": 9, "decay": 0.3},
    {"k": 9, "meeting_weight": "t <= 3"},
    {"k": 9, "meeting_weight": "1"},
]


@pytest.mark.parametrize("kind", BUILT)
def test_answers_are_those_made_step_by_step(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    index = cocite.build(make_graph(EDGES), threads=1, **BUILT[kind])
    views = [index] if kind == "one sample" else [index, index.with_samples(11)]
    nodes = [index.nodes.name(i) for i in range(0, len(index.nodes), 9)]
    told: list[int] = []
    real = TreeReader.at_once

    def at_once(self: TreeReader, *args: Any) -> list[ListedHits] | None:
        found = real(self, *args)
        assert found is not None
        told.append(found[0].ids.size)
        return found

    def answers() -> list[Any]:
        found: list[Any] = []
        for view in views:
            for asked in ASKED:
                for node in nodes:
                    hits = view.related(node, **asked)
                    # nan is not equal to itself
                    rows = [tuple(map(repr, hit)) for hit in hits]
                    found.append((rows, hits.certain_ranks))
        return found

    monkeypatch.setattr(TreeReader, "at_once", at_once)
    quick = answers()
    assert max(told) >= 10
    with monkeypatch.context() as patched:  # a few members at a time
        patched.setattr(part, "_AT_ONCE", 100)
        checks: list[None] = []
        patched.setattr(reader, "check", lambda: checks.append(None))
        told.clear()
        assert answers() == quick
        assert len(checks) > len(told) or kind == "one sample"
    monkeypatch.setattr(TreeReader, "at_once", lambda *args: None)
    assert answers() == quick
    if kind == "many":
        assert any(isinstance(each, tuple) and each[1] > 0 for each in quick)


@pytest.mark.parametrize("edges", [SITES, EDGES], ids=["sites", "mixed"])
@pytest.mark.parametrize("kind", BUILT)
def test_many_at_once_is_told_as_each_alone(
    make_graph: MakeGraph, kind: str, edges: list[tuple[int, int]]
) -> None:
    """In any order; with sums that go on from one to the next, and as the reader chooses."""
    graph = make_graph(edges, range(430))
    index = cocite.build(graph, threads=1, **BUILT[kind])
    views = [index] if kind == "one sample" else [index, index.with_samples(11)]
    ascending = np.arange(len(index.nodes), dtype=np.uint32)
    mixed = np.random.default_rng(5).permutation(ascending)
    asked: list[tuple[int, float, dict[str, Any]]]
    asked = [(7, 1.0, {}), (1, 3e11, {"decay": 0.3}), (90, 5e10, {"meeting_weight": "t <= 3"})]
    for view, (k, floor, chosen) in itertools.product(views, asked):
        (alone,) = view.scorer.readers
        assert isinstance(alone, TreeReader)
        own = alone.part.ask_settings(view.stored.ask_settings(chosen))
        question = k, floor, NO_BETS, own

        def carried(nodes: Ids, reader: TreeReader = alone, question: Any = question) -> Any:
            k, floor, _, own = question
            return reader._carry(nodes, k, floor, own)

        def chosen_way(nodes: Ids, reader: TreeReader = alone, question: Any = question) -> Any:
            return reader.at_once(nodes, *question)

        each = (alone.at_once(ascending[i : i + 1], *question) for i in range(ascending.size))
        single = [hits for (hits,) in map(list, filter(None, each))]
        for way, nodes in itertools.product((carried, chosen_way), (ascending, mixed, mixed[:9])):
            found: list[ListedHits] = []
            while len(found) < nodes.size:
                more = way(nodes[len(found) :])
                assert len(more) > TRIED or len(found) + len(more) == nodes.size
                found += more
            assert list(map(exact, found)) == [exact(single[node]) for node in nodes.tolist()]


def exact(hits: ListedHits) -> tuple[list[int], bytes]:
    """What is told without intervals; nan is not equal to itself."""
    return hits.ids.tolist(), hits.rows[:, :2].tobytes()


def test_several_parts_answer_step_by_step(make_graph: MakeGraph, tmp_path: Path) -> None:
    """Of several parts, of several graphs, of a list that is longer than is made at once."""
    graph = make_graph(EDGES)
    both = cocite.build(graph, direction="both", **WALKS)
    name = both.nodes.name(3)
    assert len(both.scorer.readers) == 2
    assert both.related(name, 5)
    one = cocite.build(graph, tmp_path / "one", **WALKS)
    (alone,) = one.scorer.readers
    own = alone.part.ask_settings(one.stored.ask_settings({}))
    third = np.array([3], np.uint32)
    assert alone.at_once(third, 256, 1.0, (40.0, 4e-12), own) is not None
    assert alone.at_once(third, 257, 1.0, (40.0, 4e-12), own) is None
    more = make_graph([*EDGES, (1, 2), (2, 50)])
    cocite.refresh(tmp_path / "one", more, fraction=0.5, force=True)
    newer = cocite.open(tmp_path / "one")
    assert newer.scorer.readers[0].at_once(third, 5, 1.0, (40.0, 4e-12), own) is None
    assert newer.related(name, 5)
    few = np.arange(20, dtype=np.uint32)
    assert newer.scorer.readers[0].at_once(few, 5, 1.0, NO_BETS, own) is None
    newer.related_all(tmp_path / "all.csv", 5, threads=1)
    rows = (tmp_path / "all.csv").read_text().splitlines()[1:]
    asked = [(node, hit.node, hit.score) for node in newer.nodes for hit in newer.related(node, 5)]
    assert [(row[0], row[2], float(row[3])) for row in csv.reader(rows)] == asked
