"""Questions end when they were given no more time, whatever they read; and say the same if not."""

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
from cocite.search.scorer import ScoreQuery
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
    place = tmp_path_factory.mktemp("deadline")
    graph = cocite.ingest(LINKS, place / "graph")
    for name, options in INDEXES.items():
        cocite.build(graph, place / name, **options)
    return place


def asked(index: Any) -> list[Any]:
    """What an index says, in full."""
    found = [index.related("p3", 10), index.similarity("p3", "p5")]
    if index.samples is not None:
        found.append(found[0].certain_ranks)
    return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of all deadlines."""
    found = Clock()
    monkeypatch.setattr("cocite.deadline._now", found)
    return found


def test_a_limit_holds_within_its_block_in_its_thread_alone(clock: Clock) -> None:
    check()
    with limited(0.01):
        check()
        clock.sleep(0.02)
        with pytest.raises(QueryTimeout, match=r"0.01 s"):
            check()
        with ThreadPoolExecutor(1) as others:
            others.submit(check).result()  # another thread has no deadline
        with limited(10), pytest.raises(QueryTimeout, match=r"0.01 s"):
            check()  # the one that ends first
    check()
    with limited(10):
        with limited(0.0):
            clock.sleep(0.001)
            with pytest.raises(QueryTimeout, match="0 s"):
                check()
        check()


@pytest.mark.parametrize("name", INDEXES)
def test_every_question_looks_at_the_clock(folder: Path, name: str) -> None:
    index = cocite.open(folder / name)
    whole = asked(index)
    questions: list[Callable[[], object]] = [
        lambda: index.related("p3", 10),
        lambda: index.related(["p3", "p4"], 10, aggregate="min"),
        lambda: index.similarity("p3", "p5"),
    ]
    if name in ("psimrank", "simrank", "xjaccard"):
        questions += [
            lambda: index.related("p3", 3, refine=True),
            lambda: index.similarity("p3", "p5", refine=True),
        ]
    if name in ("psimrank", "simrank", "paths", "compact", "xjaccard"):
        questions.append(lambda: index.why("p3", "p5"))
    for question in questions:
        question()
        with limited(0.0), pytest.raises(QueryTimeout):
            question()
    assert asked(index) == whole  # nothing is left behind of what was given up


@pytest.mark.parametrize("name", INDEXES)
def test_large_files_in_pieces(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = asked(cocite.open(folder / name))
    monkeypatch.setattr(part, "_AT_ONCE", 3 * 60)
    assert asked(cocite.open(folder / name)) == whole


def test_how_often_a_question_looks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it has read so much; at most every few of 40 samples."""
    index, looks = cocite.open(folder / "psimrank"), []
    least = np.array([0, 0, 1], np.uint64)
    monkeypatch.setattr(trees.TreeReader, "_progress", lambda reader: least.copy())
    monkeypatch.setattr(trees, "check", lambda: looks.append(1))
    settings = index.stored.ask_settings({})
    index.scorer.top(index.nodes.id("p3"), ScoreQuery(5, index_filter(index), settings))
    assert len(looks) == -(-40 // kernels._FEW)


def index_filter(index: Any) -> Any:
    from cocite.options.query import QueryOptions
    from cocite.search.scorer import Filter

    return Filter.checked(index.nodes, (0,), QueryOptions())
