"""The quicker of two ways is gone, the other one tried now and then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cocite
from cocite.index.layouts.trees.reader import TreeReader
from cocite.search.batch import question
from cocite.search.batch.question import Quicker
from tests.clock import Clock
from tests.conftest import MakeGraph

Cost = Callable[[int, int], float]
"""Seconds that so many nodes take, at so many nodes from the first."""


def gone(
    costs: tuple[Cost, Cost], nodes: int, monkeypatch: pytest.MonkeyPatch, threads: int = 1
) -> list[int]:
    """Of each node, the way that was gone: in runs that grow from one node on in each piece, as
    long as they are soon done, as pieces have them; ``threads`` begin before the first one ends.
    """
    clock, found, choice = Clock(), list[int](), Quicker()
    monkeypatch.setattr(question, "time", clock)
    size, piece = 1, 0.0
    while len(found) < nodes:
        ways = [choice.way(size) for _ in range(threads)]
        begin = clock.now
        ends = sorted((begin + costs[way](size, len(found)), way) for way in ways)
        for clock.now, way in ends:
            choice.took(way, size, begin)
            found += [way] * size
        piece += clock.now - begin
        size = min(2 * size, 1024) if clock.now - begin < 0.125 else size
        if piece > 3.0:
            size, piece = 1, 0.0
    return found


def linear(once: float, each: float) -> Cost:
    return lambda size, at: once + each * size


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_way_that_takes_less_is_gone(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its first node takes long, and where nodes take so long that runs stay short."""
    for unit in (1e-4, 3e-3, 0.07):
        shared, single = linear(3 * unit, unit), linear(0.0, 1.5 * unit)
        nodes = 100_000 if unit < 0.01 else 3000
        if unit < 0.01:
            assert gone((shared, single), nodes, monkeypatch, threads).count(0) > 0.75 * nodes
        assert gone((single, shared), nodes, monkeypatch, threads).count(unit < 0.01) > 0.75 * nodes
        quick = linear(0.0, unit / 3)
        assert gone((shared, quick), nodes, monkeypatch, threads).count(1) > 0.9 * nodes


def test_after_a_change_it_is_the_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = (
        lambda size, at: size * (1e-3 if at < 50_000 else 3e-3),
        lambda size, at: size * (2e-3 if at < 50_000 else 1e-3),
    )
    found = gone(costs, 200_000, monkeypatch)
    assert found[10_000:50_000].count(0) > 37_000
    assert found[-50_000:].count(1) > 45_000


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
        monkeypatch.setattr(Quicker, "way", lambda self, nodes, way=way: way)
        for k, least in ((7, 0.0), (300, 0.0), (40, 0.2)):
            file = tmp_path / f"{way}-{k}.csv"
            index.related_all(file, k, min_score=least, threads=1)
            files.append(file.read_bytes())
        assert (len(asked) >= 2 * len(index.nodes)) == (way == 1)
    assert files[:3] == files[3:]
