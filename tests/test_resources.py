"""Resources: sizes as text, memory and threads within all limits, and where work heeds them."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import cocite
from cocite import Graph, resources
from cocite.engine import diagonal as diagonals
from cocite.errors import ResourceError, UsageError
from cocite.graph import links
from cocite.resources import (
    Resources,
    available,
    budget,
    format_least,
    format_size,
    parse_size,
    short_of,
)
from cocite.storage.spool import Scratch
from tests.conftest import MakeGraph


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (1, 1),
        ("1", 1),
        ("600MB", 600_000_000),
        ("600 mb", 600_000_000),
        (" 4g ", 4_000_000_000),
        ("4GB", 4_000_000_000),
        ("1.5 GiB", 1_610_612_736),
        ("1.5gi", 1_610_612_736),
        ("2kB", 2000),
        ("2KiB", 2048),
        ("1TB", 10**12),
        ("1TiB", 2**40),
        ("12B", 12),
    ],
)
def test_parse_size_reads_units(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "0", 0, -1, "-1GB", "0.5", "1.GB", "1PB", "GB", "1 2", "1e9", "nan", "x", "1" * 400],
)
def test_parse_size_refuses_invalid_text(text: str | int) -> None:
    with pytest.raises(UsageError) as caught:
        parse_size(text)
    assert str(caught.value) == f"{text!r} is not a size; write a size like 600MB, 4GB or 1.5GiB"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1440, "1.44 kB"),
        (99_400, "99.4 kB"),
        (99_500, "100 kB"),
        (999_499, "999 kB"),
        (999_500, "1 MB"),
        (1_400_000_000, "1.4 GB"),
        (2 * 10**12, "2 TB"),
    ],
)
def test_format_size_keeps_three_digits(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (999, "999 B"),
        (1440, "1.44 kB"),
        (1441, "1.45 kB"),
        (12_483_456, "12.5 MB"),
        (12_524_304, "12.6 MB"),
        (999_001, "1 MB"),
    ],
)
def test_format_least_rounds_up(size: int, text: str) -> None:
    assert format_least(size) == text
    assert parse_size(text) >= size


@pytest.fixture
def cgroups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 10 GB free and no control groups yet."""
    monkeypatch.setattr(resources, "_machine_available", lambda: 10**10)
    monkeypatch.setattr(resources, "_OWN_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(resources, "_GROUPS", tmp_path / "fs")
    return tmp_path


def write_cgroup(directory: Path, **files: object) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name.replace("memory_", "memory.")).write_text(f"{content}\n")


@pytest.mark.parametrize(
    ("current", "stat", "expected"),
    [
        (4000, "anon 10\ninactive_file 3500\nactive_file 7", 4500),  # file cache counts as free
        (6000, "", 0),  # above its limit
    ],
)
def test_available_subtracts_cgroup_usage(
    cgroups: Path, current: int, stat: str, expected: int
) -> None:
    (cgroups / "cgroup").write_text("0::/\n")
    write_cgroup(cgroups / "fs", memory_max=5000, memory_current=current, memory_stat=stat)
    assert available() == expected


def test_available_reads_cgroup_version_1(cgroups: Path) -> None:
    (cgroups / "cgroup").write_text("5:devices:/\n4:cpu,memory:/job\n0::/\n")
    stat = "inactive_file 9\ntotal_inactive_file 100"
    limit = {"memory_limit_in_bytes": 5000, "memory_usage_in_bytes": 4000, "memory_stat": stat}
    write_cgroup(cgroups / "fs/memory/job", **limit)
    assert available() == 1100


def test_available_takes_tightest_cgroup(cgroups: Path) -> None:
    assert available() == 10**10  # without cgroups the machine counts
    (cgroups / "cgroup").write_text("0::/user/job\n")
    write_cgroup(
        cgroups / "fs/user", memory_max=5000, memory_current=4000, memory_stat="inactive_file 0"
    )
    write_cgroup(
        cgroups / "fs/user/job", memory_max="max", memory_current=1, memory_stat="inactive_file 0"
    )
    assert available() == 1000
    write_cgroup(cgroups / "fs/user/job", memory_max=700, memory_current=100)
    assert available() == 600


def test_available_reads_machine_memory() -> None:
    assert 10**6 < available() < 10**15


def test_ingest_threads_follow_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB starts all of its threads at once, however little there is to do."""
    real, threads = duckdb.connect, []

    def connect(path: str, config: dict[str, Any]) -> Any:
        threads.append(config["threads"])
        return real(path, config=config)

    monkeypatch.setattr(duckdb, "connect", connect)
    (tmp_path / "small.tsv").write_text("a\tb\n")
    (tmp_path / "large.tsv").write_text("a\tb\n" * 200_000)
    cocite.ingest(tmp_path / "small.tsv", tmp_path / "small", threads=1000)
    cocite.ingest(tmp_path / "large.tsv", tmp_path / "large", threads=1000)
    cocite.ingest(tmp_path / "large.tsv", tmp_path / "few", threads=2)
    assert threads == [1, 4, 2]


def test_budget_counts_process_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "PROCESS_MEMORY", 52_000_000)
    assert budget("60MB") == 8_000_000
    assert Resources.checked(1, "60MB").total == 60_000_000
    assert budget("5MB") == 0  # too little for any work
    assert format_least(7_990_000) == "60 MB"
    assert short_of(8_000_000).startswith("the limit is 60 MB")


# -- the value -----------------------------------------------------------------------------


def test_resources_default_to_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "available", lambda: 1001)
    monkeypatch.setattr(resources, "cores", lambda: 7)
    assert Resources.checked() == Resources(7, 500)
    assert (budget(None), budget("2kB")) == (500, 2000)
    assert Resources.checked(2, "2kB", 4, 3, True) == Resources(2, 2000, 4, 3, True)
    assert not Resources.checked().cut
    assert all(each.cut for each in (Resources(1, 1, 4), Resources(1, 1, None, 4)))
    assert Resources(1, 1, external=True).cut
    monkeypatch.setattr(resources, "cores", lambda: 5000)
    assert (resources.checked_threads(None), resources.checked_threads(1024)) == (1024, 1024)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            ({"threads": bad}, f"threads is {bad!r}; it must be a whole number from 1 to 1,024")
            for bad in (0, -1, 1025, 99_999_999_999, 2.0, True, "2")
        ),
        ({"memory": "much"}, "'much' is not a size"),
        ({"shard": 0}, "shard is 0; it must be a number of samples, 1 or more"),
        ({"shard": "4"}, "shard is '4'"),
        ({"blocks": -1}, "blocks is -1; it must be a whole number, 1 or more"),
        ({"blocks": 2.0}, "blocks is 2.0"),
    ],
)
def test_resources_refuse_invalid_values(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Resources.checked(**options)


def test_resources_up_to_caps_threads() -> None:
    assert Resources(4, 10, 3).up_to(2) == Resources(2, 10, 3)
    assert Resources(4, 10, 3).up_to(9) == Resources(4, 10, 3)


# -- use of limits -------------------------------------------------------------------------


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(4)
    near = rng.integers(0, 300, (1500, 1)) // 10 * 10
    return make_graph((near + rng.integers(0, 12, (1500, 2))).tolist(), range(312))


@pytest.fixture(autouse=True)
def few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refined answers of sampled measures stop at 256 samples instead of 4,096."""
    monkeypatch.setattr("cocite.search.refine.candidates.MOST_SAMPLES", 256)


def test_refine_heeds_memory_and_threads(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "cores", lambda: 3)
    threads: list[int] = []
    real = diagonals.make_diagonal

    def counting(*ends: Any, **options: Any) -> Any:
        threads.append(options["threads"])
        return real(*ends, **options)

    monkeypatch.setattr("cocite.search.refine.linear.make_diagonal", counting)
    cocite.build(graph, tmp_path / "x", measure="simrank", samples=4)

    def reopen(**limits: Any) -> cocite.Index:
        return cocite.open(tmp_path / "x", **limits)

    expected = reopen().related("11", refine=True)
    assert reopen(threads=1, memory="100MB").related("11", refine=True) == expected
    assert threads == [3, 1]
    with pytest.raises(ResourceError, match=r"memory; the limit is 50 kB.*--memory"):
        reopen(memory="50kB").related("11", refine=True)
    assert len(threads) == 2
    with pytest.raises(UsageError, match="threads is 0"):
        reopen(threads=0)


@pytest.mark.parametrize(
    "options",
    [
        {"measure": "simrank", "hubs": "idf"},
        {"measure": "psimrank", "direction": "out"},
        {"measure": "xjaccard", "direction": "out"},
    ],
    ids=lambda options: str(options["measure"]),
)
def test_links_spill_to_disk_without_changing_answers(
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(links, "_PIECE", 1 << 12)
    monkeypatch.setattr(links, "_LEAST_BLOCK", 1 << 12)
    rng = np.random.default_rng(1)
    graph = make_graph(rng.integers(0, 200, (8_000, 2)).tolist(), range(200))
    cocite.build(graph, tmp_path / "x", samples=6, **options)
    real, on_disk = Scratch.zeros, [0]

    def counting(self: Scratch, *arguments: Any) -> Any:
        found = real(self, *arguments)
        on_disk.append(found.nbytes if self.on_disk else 0)
        return found

    monkeypatch.setattr(Scratch, "zeros", counting)
    expected = cocite.open(tmp_path / "x").related("11", 5, target_error=0.1)
    assert sum(on_disk) == 0
    limited = cocite.open(tmp_path / "x", memory="20kB").related("11", 5, target_error=0.1)
    assert sum(on_disk) >= 4 * graph.edges
    assert limited == expected
