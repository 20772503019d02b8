"""An answer that is made at once is the one that is made step by step, to the bit."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite.index.layouts import part
from cocite.index.layouts import reader as scratch
from cocite.index.layouts.reader import ListedHits
from cocite.index.layouts.trees import reader
from cocite.index.layouts.trees.reader import TreeReader
from tests.conftest import MakeGraph

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
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    index = cocite.build(make_graph(EDGES), tmp_path / "x", threads=1, **BUILT[kind])
    views = [index] if kind == "one sample" else [index, index.with_samples(11)]
    nodes = [index.nodes.name(i) for i in range(0, len(index.nodes), 9)]
    told: list[int] = []
    real = TreeReader.at_once

    def at_once(self: TreeReader, *args: Any) -> ListedHits | None:
        found = real(self, *args)
        assert found is not None
        told.append(found.ids.size)
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


def test_what_one_reader_cannot_tell_alone_is_told_step_by_step(
    make_graph: MakeGraph, tmp_path: Path
) -> None:
    """Of several parts, of several graphs, of a list that is longer than is made at once."""
    graph = make_graph(EDGES)
    both = cocite.build(graph, tmp_path / "both", direction="both", **WALKS)
    name = both.nodes.name(3)
    assert len(both.scorer.readers) == 2
    assert both.related(name, 5)
    one = cocite.build(graph, tmp_path / "one", **WALKS)
    (alone,), own = (
        one.scorer.readers,
        one.stored.parts[0].ask_settings(one.stored.ask_settings({})),
    )
    assert alone.at_once(3, 256, 1.0, (40.0, 4e-12), own) is not None
    assert alone.at_once(3, 257, 1.0, (40.0, 4e-12), own) is None
    more = make_graph([*EDGES, (1, 2), (2, 50)])
    cocite.refresh(tmp_path / "one", more, fraction=0.5, force=True)
    newer = cocite.open(tmp_path / "one")
    assert newer.scorer.readers[0].at_once(3, 5, 1.0, (40.0, 4e-12), own) is None
    assert newer.related(name, 5)


def test_scratch_is_kept_until_its_pages_are_too_many(
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = cocite.build(make_graph(EDGES), tmp_path / "x", threads=1, **BUILT["one file"])
    monkeypatch.setattr(scratch, "_MOST_SHARE", 1 << 60)

    def lent(most: int) -> tuple[list[float], bool]:
        """The scores of two questions, and whether one scratch served both."""
        monkeypatch.setattr(scratch, "_MOST_MEMORY", most)
        monkeypatch.setattr(scratch, "_local", threading.local())
        scores = [hit.score for hit in index.related(index.nodes.name(3))]
        first = scratch._local.scratch
        scores += [hit.score for hit in index.related(index.nodes.name(9))]
        return scores, scratch._local.scratch is first

    scores, one = lent(1 << 20)
    assert one
    assert lent(0) == (scores, False)
    assert lent(5000) == (scores, True)  # all sums are in one page
