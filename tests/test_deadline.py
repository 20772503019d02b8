"""Queries end at their deadline, whatever they read; before it, their answers do not change."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite.deadline import check, limited
from cocite.errors import QueryTimeout
from cocite.index.layouts import part
from cocite.index.layouts.trees import reader as trees
from cocite.kernels import trees as kernels
from cocite.options.query import QueryOptions
from cocite.search.scorer import Filter, ScoreQuery
from tests.clock import Clock

LINKS = [(f"h{i}", f"p{(i * j) % 17}") for i in range(40) for j in range(1, 5)]
INDEXES: dict[str, dict[str, Any]] = {
    "psimrank": {"measure": "psimrank", "samples": 40, "shard": 16},
    "simrank": {"measure": "simrank", "samples": 40},
    "paths": {"measure": "psimrank", "samples": 40, "layout": "paths"},
    "compact": {"measure": "compact-simrank", "samples": 40},
    "xjaccard": {"measure": "xjaccard", "samples": 40},
    "sketch": {"measure": "xjaccard", "samples": 40, "bits": 4},
    "ppr": {"measure": "ppr"},
    "companion": {"measure": "companion"},
    "neighborhood": {"measure": "neighborhood"},
    "fusion": {},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("deadline")
    graph = cocite.ingest(LINKS, path / "graph")
    for name, options in INDEXES.items():
        cocite.build(graph, path / name, **options)
    return path


def answers(index: Any) -> list[Any]:
    """The answers of an index."""
    results = [index.related("p3", 10), index.similarity("p3", "p5")]
    if index.samples is not None:
        results.append(results[0].certain_ranks)
    return results


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A fake clock for all deadlines."""
    fake = Clock()
    monkeypatch.setattr("cocite.deadline._now", fake)
    return fake


def test_limited_applies_within_block_and_thread(clock: Clock) -> None:
    check()
    with limited(0.01):
        check()
        clock.sleep(0.02)
        with pytest.raises(QueryTimeout, match=r"0.01 s"):
            check()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(check).result()  # another thread has no deadline
        with limited(10), pytest.raises(QueryTimeout, match=r"0.01 s"):
            check()  # the earlier deadline
    check()
    with limited(10):
        with limited(0.0):
            clock.sleep(0.001)
            with pytest.raises(QueryTimeout, match="0 s"):
                check()
        check()


@pytest.mark.parametrize("name", INDEXES)
def test_limited_stops_every_query(folder: Path, name: str) -> None:
    index = cocite.open(folder / name)
    expected = answers(index)
    queries: list[Callable[[], object]] = [
        lambda: index.related("p3", 10),
        lambda: index.related(["p3", "p4"], 10, aggregate="min"),
        lambda: index.similarity("p3", "p5"),
    ]
    if name in ("psimrank", "simrank", "xjaccard"):
        queries += [
            lambda: index.related("p3", 3, refine=True),
            lambda: index.similarity("p3", "p5", refine=True),
        ]
    if name in ("psimrank", "simrank", "paths", "compact", "xjaccard"):
        queries.append(lambda: index.why("p3", "p5"))
    for query in queries:
        query()
        with limited(0.0), pytest.raises(QueryTimeout):
            query()
    assert answers(index) == expected  # interrupted queries leave nothing behind


@pytest.mark.parametrize("name", INDEXES)
def test_part_reads_large_files_in_pieces(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = answers(cocite.open(folder / name))
    monkeypatch.setattr(part, "_AT_ONCE", 3 * 60)
    assert answers(cocite.open(folder / name)) == expected


def test_tree_reader_checks_deadline_every_few_samples(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here after every few of 40 samples."""
    index, checks = cocite.open(folder / "psimrank"), []
    progress = np.array([0, 0, 1], np.uint64)
    monkeypatch.setattr(trees.TreeReader, "_progress", lambda reader: progress.copy())
    monkeypatch.setattr(trees, "check", lambda: checks.append(1))
    settings = index.stored.ask_settings({})
    passing = Filter.checked(index.nodes, (0,), QueryOptions())
    index.scorer.top(index.nodes.id("p3"), ScoreQuery(5, passing, settings))
    assert len(checks) == -(-40 // kernels._FEW)
