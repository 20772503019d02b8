"""Sizes in words, and how much memory there is."""

from pathlib import Path
from typing import Any

import duckdb
import pytest

import cocite
from cocite import resources
from cocite.errors import UsageError
from cocite.resources import (
    Resources,
    available,
    budget,
    format_least,
    format_size,
    parse_size,
    short_of,
)


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
def test_sizes_are_read(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "0", 0, -1, "-1GB", "0.5", "1.GB", "1PB", "GB", "1 2", "1e9", "nan", "x", "1" * 400],
)
def test_what_is_no_size_is_refused(text: str | int) -> None:
    with pytest.raises(UsageError) as caught:
        parse_size(text)
    assert str(caught.value) == f"{text!r} is not a size; write it like 600MB, 4GB or 1.5GiB"


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
def test_sizes_are_written(size: int, text: str) -> None:
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
def test_what_is_needed_is_rounded_up(size: int, text: str) -> None:
    assert format_least(size) == text
    assert parse_size(text) >= size


def test_a_budget_is_half_of_what_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "available", lambda: 1001)
    assert budget(None) == 500
    assert budget("2kB") == 2000


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 10 GB free and no control groups yet."""
    monkeypatch.setattr(resources, "_machine_available", lambda: 10**10)
    monkeypatch.setattr(resources, "_OWN_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(resources, "_GROUPS", tmp_path / "fs")
    return tmp_path


def put(directory: Path, **files: object) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name.replace("memory_", "memory.")).write_text(f"{content}\n")


def test_without_control_groups_it_is_the_machine(groups: Path) -> None:
    assert available() == 10**10


def test_the_tightest_group_around_counts(groups: Path) -> None:
    (groups / "cgroup").write_text("0::/user/job\n")
    put(groups / "fs/user", memory_max=5000, memory_current=4000, memory_stat="inactive_file 0")
    put(groups / "fs/user/job", memory_max="max", memory_current=1, memory_stat="inactive_file 0")
    assert available() == 1000
    put(groups / "fs/user/job", memory_max=700, memory_current=100)
    assert available() == 600


def test_file_cache_counts_as_free(groups: Path) -> None:
    (groups / "cgroup").write_text("0::/\n")
    stat = "anon 10\ninactive_file 3500\nactive_file 7"
    put(groups / "fs", memory_max=5000, memory_current=4000, memory_stat=stat)
    assert available() == 4500


def test_groups_of_version_1_are_read(groups: Path) -> None:
    (groups / "cgroup").write_text("5:devices:/\n4:cpu,memory:/job\n0::/\n")
    put(
        groups / "fs/memory/job",
        memory_limit_in_bytes=5000,
        memory_usage_in_bytes=4000,
        memory_stat="inactive_file 9\ntotal_inactive_file 100",
    )
    assert available() == 1100


def test_a_group_over_its_limit_leaves_nothing(groups: Path) -> None:
    (groups / "cgroup").write_text("0::/\n")
    put(groups / "fs", memory_max=5000, memory_current=6000, memory_stat="")
    assert available() == 0


def test_the_machine_has_memory() -> None:
    assert 10**6 < available() < 10**15


@pytest.mark.parametrize("threads", [0, -1, 1025, 99_999_999_999, 2.0, True, "2"])
def test_threads_have_an_end(threads: Any) -> None:
    with pytest.raises(UsageError, match="it must be a whole number from 1 to 1,024"):
        resources.checked_threads(threads)


def test_a_machine_of_any_size_is_one_that_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "cores", lambda: 5000)
    assert (resources.checked_threads(None), resources.checked_threads(1024)) == (1024, 1024)


def test_ingest_threads_follow_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB starts all of them at once, whatever there is to do."""
    real, asked = duckdb.connect, []

    def connect(path: str, config: dict[str, Any]) -> Any:
        asked.append(config["threads"])
        return real(path, config=config)

    monkeypatch.setattr(duckdb, "connect", connect)
    (tmp_path / "small.tsv").write_text("a\tb\n")
    (tmp_path / "large.tsv").write_text("a\tb\n" * 200_000)
    cocite.ingest(tmp_path / "small.tsv", tmp_path / "small", threads=1000)
    cocite.ingest(tmp_path / "large.tsv", tmp_path / "large", threads=1000)
    cocite.ingest(tmp_path / "large.tsv", tmp_path / "few", threads=2)
    assert asked == [1, 4, 2]


def test_what_is_given_is_for_the_whole_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "PROCESS_MEMORY", 52_000_000)
    assert budget("60MB") == 8_000_000
    assert Resources.checked(1, "60MB").total == 60_000_000
    assert budget("5MB") == 0  # and whatever takes memory refuses that
    assert format_least(7_990_000) == "60 MB"
    assert short_of(8_000_000).startswith("60 MB may be used")
