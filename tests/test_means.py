"""Means: made once, by one reading of the machine, and heeded wherever work is done."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph, resources
from cocite.engine import diagonal as diagonals
from cocite.errors import ResourceError, UsageError
from cocite.graph import links
from cocite.resources import Resources
from cocite.storage.spool import Scratch
from tests.conftest import MakeGraph


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(4)
    near = rng.integers(0, 300, (1500, 1)) // 10 * 10
    return make_graph((near + rng.integers(0, 12, (1500, 2))).tolist(), range(312))


@pytest.fixture(autouse=True)
def few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refined answers of sampled measures stop at 256 samples, and not at 4,096."""
    monkeypatch.setattr("cocite.search.refine.candidates.MOST_SAMPLES", 256)


# -- the value -----------------------------------------------------------------------------


def test_what_is_not_given_is_the_machine_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "available", lambda: 1001)
    monkeypatch.setattr(resources, "cores", lambda: 7)
    assert Resources.checked() == Resources(7, 500)
    assert Resources.checked(2, "2kB", 4, 3, True) == Resources(2, 2000, 4, 3, True)
    assert not Resources.checked().cut
    assert all(means.cut for means in (Resources(1, 1, 4), Resources(1, 1, None, 4)))
    assert Resources(1, 1, external=True).cut


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"threads": 0}, "threads is 0; it must be a whole number from 1 to 1,024"),
        ({"threads": 1025}, "threads is 1025; it must be a whole number from 1 to 1,024"),
        ({"threads": True}, "threads is True"),
        ({"memory": "much"}, "'much' is not a size"),
        ({"shard": 0}, "shard is 0; it must be a number of samples, 1 or more"),
        ({"shard": "4"}, "shard is '4'"),
        ({"blocks": -1}, "blocks is -1; it must be a whole number, 1 or more"),
        ({"blocks": 2.0}, "blocks is 2.0"),
    ],
)
def test_what_is_not_allowed_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Resources.checked(**given)


def test_threads_have_a_ceiling_and_no_floor() -> None:
    assert Resources(4, 10, 3).up_to(2) == Resources(2, 10, 3)
    assert Resources(4, 10, 3).up_to(9) == Resources(4, 10, 3)


# -- one reading ---------------------------------------------------------------------------


# -- they are heeded -----------------------------------------------------------------------


def test_refined_memory(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "cores", lambda: 3)
    made: list[int] = []
    real = diagonals.make_diagonal

    def counted(*ends: Any, **options: Any) -> Any:
        made.append(options["threads"])
        return real(*ends, **options)

    monkeypatch.setattr("cocite.search.refine.linear.make_diagonal", counted)
    cocite.build(graph, tmp_path / "x", measure="simrank", samples=4)

    def opened(**means: Any) -> cocite.Index:
        return cocite.open(tmp_path / "x", **means)

    whole = opened().related("11", refine=True)
    assert opened(threads=1, memory="100MB").related("11", refine=True) == whole
    assert made == [3, 1]
    with pytest.raises(ResourceError, match=r"memory; 50 kB may be used.*--memory"):
        opened(memory="50kB").related("11", refine=True)
    assert len(made) == 2
    with pytest.raises(UsageError, match="threads is 0"):
        opened(threads=0)


@pytest.mark.parametrize(
    "options",
    [
        {"measure": "simrank", "hubs": "idf"},
        {"measure": "psimrank", "direction": "out"},
        {"measure": "xjaccard", "direction": "out"},
    ],
    ids=lambda options: str(options["measure"]),
)
def test_links_that_the_memory_does_not_hold_lie_on_disk_and_answers_are_the_same(
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(links, "_PIECE", 1 << 12)
    monkeypatch.setattr(links, "_LEAST_BLOCK", 1 << 12)
    rng = np.random.default_rng(1)
    graph = make_graph(rng.integers(0, 200, (8_000, 2)).tolist(), range(200))
    cocite.build(graph, tmp_path / "x", samples=6, **options)
    real, on_disk = Scratch.zeros, [0]

    def counted(self: Scratch, *arguments: Any) -> Any:
        found = real(self, *arguments)
        on_disk.append(found.nbytes if self.on_disk else 0)
        return found

    monkeypatch.setattr(Scratch, "zeros", counted)
    whole = cocite.open(tmp_path / "x").related("11", 5, target_error=0.1)
    assert sum(on_disk) == 0
    small = cocite.open(tmp_path / "x", memory="20kB").related("11", 5, target_error=0.1)
    assert sum(on_disk) >= 4 * graph.edges
    assert small == whole
