"""The quicker of two ways is gone, the other one tried now and then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cocite
from cocite.layouts.trees.reader import TreeReader
from cocite.query.batch import quicker
from cocite.query.batch.quicker import Quicker
from tests.conftest import MakeGraph


def gone(seconds: dict[int, float], runs: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ways that are gone where each takes so many seconds a node."""
    now, found, choice = [0.0], [], Quicker()
    monkeypatch.setattr(quicker, "perf_counter", lambda: now[0])
    for _ in range(runs):
        begin = now[0]
        found.append(choice.way())
        now[0] += 5 * seconds[found[-1]]
        choice.took(found[-1], 5, begin)
    return found


def test_the_way_that_takes_less_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    for best in (0, 1):
        found = gone({best: 1.0, 1 - best: 3.0}, 2000, monkeypatch)
        assert found[:2] == [0, 1]
        assert 15 <= found.count(1 - best) <= 30  # each 96 runs or so


def test_after_a_change_it_is_the_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now, choice = [0.0], Quicker()
    monkeypatch.setattr(quicker, "perf_counter", lambda: now[0])
    ways = []
    for run in range(600):
        begin, way = now[0], choice.way()
        now[0] += 1.0 if (way == 0) == (run < 300) else 2.0
        choice.took(way, 1, begin)
        ways.append(way)
    assert ways[250:300].count(0) >= 45
    assert ways[-50:].count(1) >= 45


def test_either_way_gives_the_same_bytes(
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = np.random.default_rng(5).integers(0, 90, (500, 2)).tolist()
    graph = make_graph([(a, b) for a, b in edges if a != b])
    index = cocite.build(graph, tmp_path / "x", measure="psimrank", samples=60, threads=1)
    asked: list[int] = []
    real = TreeReader.at_once

    def at_once(self: TreeReader, node: int, *args: object) -> object:
        asked.append(node)
        return real(self, node, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(TreeReader, "at_once", at_once)
    files = []
    for way in (0, 1):
        monkeypatch.setattr(Quicker, "way", lambda self, way=way: way)
        for k, least in ((7, 0.0), (300, 0.0), (40, 0.2)):
            file = tmp_path / f"{way}-{k}.csv"
            index.related_all(file, k, min_score=least, threads=1)
            files.append(file.read_bytes())
        assert (len(asked) >= 2 * len(index.nodes)) == (way == 1)
    assert files[:3] == files[3:]
