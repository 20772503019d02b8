"""Means: made once, by one reading of the machine, and heeded wherever work is done."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph, resources
from cocite.cli.main import main
from cocite.engine import diagonal as diagonals
from cocite.errors import ResourceError, UsageError
from cocite.graph import links
from cocite.resources import Resources
from cocite.storage.spool import Scratch
from tests.conftest import MakeGraph

Readings = list[str]


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(4)
    near = rng.integers(0, 300, (1500, 1)) // 10 * 10
    return make_graph((near + rng.integers(0, 12, (1500, 2))).tolist(), range(312))


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> Readings:
    """What was read of the machine, in its order."""
    found: Readings = []

    def read(what: str, real: Callable[[], int]) -> int:
        found.append(what)
        return real()

    for what in ("available", "cores"):
        real = getattr(resources, what)
        monkeypatch.setattr(resources, what, lambda what=what, real=real: read(what, real))
    return found


ONCE = ["cores", "available"]


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


@pytest.mark.parametrize(
    "options",
    [
        {"measure": "psimrank", "direction": "both"},
        {"measure": "simrank", "direction": "both", "refine": True},
        {"measure": "xjaccard", "direction": "out"},
        {"measure": "xjaccard", "bits": 4, "blocks": 2},
        {"measure": "pagesim"},
        {"measure": "snn", "direction": "both"},
        {"measure": "cocitation", "direction": "out"},
        {"measure": "blend:psimrank+cocitation", "external": True},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_the_machine_is_read_once_for_a_build_and_all_its_answers(
    graph: Graph, tmp_path: Path, readings: Readings, options: dict[str, Any]
) -> None:
    sampled = options["measure"] not in ("pagesim", "snn", "cocitation")
    chosen = options | ({"samples": 8} if sampled else {})
    index = cocite.build(graph, tmp_path / "x", **chosen)
    assert readings == ONCE
    first, second = index.nodes.names(np.array([11, 12], np.uint32))
    index.related(first, refine=True)
    index.similarity(first, second, refine=True)
    if "bits" not in options:
        index.why(first, second)
    if sampled:
        index.with_samples(4).related(first, refine=True)
    index.related_all(tmp_path / "all.csv", 3)
    assert readings == ONCE


@pytest.mark.parametrize("measure", ["psimrank", "simrank", "xjaccard", "cocitation"])
def test_one_machine_read(graph: Graph, tmp_path: Path, readings: Readings, measure: str) -> None:
    more: dict[str, Any] = {"refine": True} if measure == "simrank" else {}
    cocite.build(graph, tmp_path / "x", measure=measure, direction="both", **more)
    readings.clear()
    cocite.refresh(tmp_path / "x", graph, fraction=0.1, force=True).related("11", refine=True)
    assert readings == ONCE


@pytest.mark.parametrize("measure", ["psimrank", "simrank", "cocitation"])
@pytest.mark.parametrize("direction", ["in", "out"])
def test_the_machine_is_read_once_for_refined_answers(
    graph: Graph, tmp_path: Path, readings: Readings, measure: str, direction: str
) -> None:
    options = {"measure": measure, "direction": direction}
    cocite.build(graph, tmp_path / "x", **options)
    readings.clear()
    index = cocite.open(tmp_path / "x")
    assert readings == ONCE
    index.related("11", refine=True)
    index.similarity("11", "12", refine=True)
    index.why("11", "12")
    assert readings == ONCE


def test_the_machine_is_read_once_for_a_plan(graph: Graph, readings: Readings) -> None:
    cocite.plan_index(graph, samples=4, measure="psimrank")
    assert readings == ONCE


@pytest.mark.parametrize(
    "command",
    [
        ["index", "g", "-o", "y", "--measure", "simrank", "--samples", "4"],
        ["index", "g", "-o", "y", "--measure", "simrank", "--samples", "4", "--refine"],
        ["refresh", "x", "g"],
        ["related", "x", "11", "--refine"],
        ["related", "g", "11", "--refine", "--measure", "simrank"],
        ["similarity", "x", "11", "12", "--refine"],
        ["why", "x", "11", "12"],
        ["related-all", "x", "-o", "all.csv", "--refine"],
        ["evaluate", "x", "x", "--labels", "labels.tsv"],
    ],
    ids=" ".join,
)
def test_verbs_read_the_machine_once_and_not_at_all_if_told(
    graph: Graph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    readings: Readings,
    command: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g").symlink_to(graph.path)
    (tmp_path / "labels.tsv").write_text("11\ta.b\n12\ta.b\n13\ta.c\n")
    cocite.build(graph, tmp_path / "x", measure="simrank", samples=4, direction="out")
    readings.clear()
    assert main(command) == 0
    assert readings == ONCE
    readings.clear()
    again = ["--overwrite"] if command[0] in ("index", "related-all") else []
    assert main([*command, *again, "--memory", "100MB"]) == 0
    assert readings == ["cores"]


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
