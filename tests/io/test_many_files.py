"""Many files at once: the graph of one file of their rows, and errors that name the file."""

import gzip
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import cocite
from cocite.errors import InputError, MalformedRow, UnrecognizedInput, UsageError
from cocite.io.pipeline import facts_of
from cocite.io.readers.contract import PagesFound
from cocite.io.readers.tables import read_values
from cocite.io.readers.text import TextInput
from tests.io.plain import links, title_of, weights_of

FILES = 120


def parquet(path: Path, rows: Iterable[tuple[Any, ...]], types: str = "s TEXT, t TEXT") -> None:
    with duckdb.cursor() as database:  # of one database: to make one takes 30 ms
        database.execute(f"CREATE TEMP TABLE links ({types})")
        database.executemany(
            f"INSERT INTO links VALUES ({', '.join('?' * types.count(','))}, ?)", rows
        )
        database.execute(f"COPY links TO '{path}' (FORMAT parquet)")


def rows_of(file: int) -> list[tuple[str, str]]:
    return [(f"p{file}", f"p{(file * 7 + i) % FILES}") for i in range(1, 4)]


def lines(rows: Iterable[tuple[Any, Any]]) -> str:
    return "".join(f"{a}\t{b}\n" for a, b in rows)


def many(folder: Path, kinds: str = "tsv csv gz parquet other") -> list[Path]:
    """Files in turn of some kinds, three links each."""
    folder.mkdir(exist_ok=True)
    paths = []
    for file in range(FILES):
        kind = kinds.split()[file % len(kinds.split())]
        rows = rows_of(file)
        path = folder / f"{file:03}.{'parquet' if kind == 'other' else kind}"
        if kind == "gz":
            path.write_bytes(gzip.compress(lines(rows).encode()))
        elif kind == "parquet":
            parquet(path, rows)
        elif kind == "other":
            parquet(path, [(b, a) for a, b in rows], "target TEXT, source TEXT")
        else:
            head, by = ("source,target\n", ",") if kind == "csv" else ("# a comment\n", "\t")
            path.write_text(head + lines(rows).replace("\t", by), "utf-8")
        paths.append(path)
    return paths


def test_many_files_of_many_kinds_are_the_graph_of_one(tmp_path: Path) -> None:
    paths = many(tmp_path / "many")
    every = [row for file in range(FILES) for row in rows_of(file)]
    (tmp_path / "one.tsv").write_text(lines(every), "utf-8")
    one = cocite.ingest(tmp_path / "one.tsv", tmp_path / "one.graph")
    found = cocite.ingest(paths, tmp_path / "many.graph")
    assert found.digest == one.digest
    assert links(found) == links(one)
    assert found.store.facts["rows"] == len(every)
    told = {
        entry["read_as"]: (entry["files"], entry["rows"]) for entry in found.store.facts["sources"]
    }
    each = FILES // 5
    assert told == {
        f"{3 * each} files, the first as 000.tsv: tab-separated, no header, 1 comment line; the "
        "first link is p0 -> p1": (3 * each, 9 * each),
        f"{2 * each} files, the first as 003.parquet: Parquet, columns 's' and 't'": (
            *(2 * each, 6 * each),
        ),
    }


def test_many_inputs_of_other_kinds_are_one_entry_too(tmp_path: Path) -> None:
    """Each was an entry of its own."""
    paths = [tmp_path / f"{file:03}.jsonl" for file in range(FILES)]
    for file, path in enumerate(paths):
        bad = "{}\n" if file == 7 else ""
        rows = "".join(f'{{"source": "{a}", "target": "{b}"}}\n' for a, b in rows_of(file))
        path.write_text(rows + bad)
    found = cocite.ingest(paths, tmp_path / "g", bad_rows="few")
    (entry,) = found.store.facts["sources"]
    assert (entry["files"], entry["rows"], sum(entry["bad_rows"].values())) == (120, 360, 1)
    assert entry["read_as"].startswith("120 files, the first as 000.jsonl: JSON lines")
    assert [example.partition(": ")[0] for example in entry["examples"]] == ["007.jsonl"]
    assert found.digest == cocite.ingest(paths[::-1], tmp_path / "h", bad_rows="few").digest


def test_what_folders_of_pages_held_is_added_up() -> None:
    sites = [
        PagesFound(
            *(f"/a/{i:03}", 3, {}, [], False, "HTML pages", ""),
            *(2, {"a": 2, "area": i % 2}, {"outside": 1}),
            site=f"http://{i}/",
        )
        for i in range(101)
    ]
    (entry,) = facts_of(sites)
    assert (entry["files"], entry["pages"], entry["rows"]) == (101, 202, 303)
    assert (entry["links"], entry["others"]) == ({"a": 202, "area": 50}, {"outside": 101})
    assert (entry["site"], entry["file"]) == ("http://0/", "000")
    assert entry["read_as"].startswith("101 files, the first as 000: 2 HTML pages of http://0/")
    assert len(facts_of(sites[:100])) == 100


def test_files_that_are_read_in_very_many_ways_are_one_entry() -> None:
    ways = [
        TextInput(f"{i}.csv", 2, delimiter="comma", header=True, columns=2 + i) for i in range(300)
    ]
    (entry,) = facts_of(ways)
    assert (entry["files"], entry["rows"]) == (300, 600)
    assert entry["read_as"].startswith("300 files, the first as 0.csv: comma-separated")


def test_a_hundred_files_are_told_each_in_their_order(tmp_path: Path) -> None:
    paths = many(tmp_path / "many")[:100]
    facts = cocite.ingest(paths, tmp_path / "g").store.facts
    assert [entry["file"] for entry in facts["sources"]] == [path.name for path in paths]
    assert {entry["rows"] for entry in facts["sources"]} == {3}
    assert not any("files" in entry for entry in facts["sources"])


@pytest.mark.parametrize("kinds", ["tsv", "parquet", "tsv parquet"])
def test_numbers_stay_numbers_until_a_file_has_names(kinds: str, tmp_path: Path) -> None:
    def write(file: int, rows: list[tuple[int, int]]) -> Path:
        kind = kinds.split()[file % len(kinds.split())]
        path = tmp_path / f"{file}.{kind}"
        if kind == "parquet":
            parquet(path, rows, "s BIGINT, t BIGINT")
        else:
            path.write_text(lines(rows), "utf-8")
        return path

    paths = [write(file, [(file, (file + 1) % 120)]) for file in range(120)]
    assert cocite.ingest(paths, tmp_path / "g").store.facts["names"] == "dense"
    write(60, [(-7, 3)])
    graph = cocite.ingest(paths, tmp_path / "h")
    assert graph.store.facts["names"] == "text"
    assert ("-7", "3") in links(graph)
    assert ("119", "0") in links(graph)


@pytest.mark.parametrize("ending", ["tsv", "parquet"])
def test_a_bad_row_is_named_by_its_file_and_line(ending: str, tmp_path: Path) -> None:
    paths = many(tmp_path / "many", ending)
    for file in (60, 90):
        path = paths[file]
        if ending == "parquet":
            parquet(path, [("a", "b"), ("", "d")])
        else:
            path.write_text("a\tb\n\td\n", "utf-8")
    with pytest.raises(MalformedRow, match=f"060.{ending}:2: ") as refused:
        cocite.ingest(paths, tmp_path / "g")
    assert refused.value.file == str(paths[60])
    assert not list(tmp_path.glob("g*"))
    facts = cocite.ingest(paths, tmp_path / "g", bad_rows="few").store.facts
    assert facts["dropped"]["bad_rows"] == 2
    (entry,) = (entry for entry in facts["sources"] if entry["bad_rows"])
    assert sum(entry["bad_rows"].values()) == 2
    assert [example.split(": ")[0] for example in entry["examples"]] == [
        f"060.{ending}",
        f"090.{ending}",
    ]
    assert all("2: " in example for example in entry["examples"])
    if ending == "parquet":
        parquet(paths[70], [("", "b"), ("", "d")])
    else:
        paths[70].write_text("a\nb\n", "utf-8")
    with pytest.raises(InputError, match=f"070.{ending} has 2 bad rows and 0 good ones"):
        cocite.ingest(paths, tmp_path / "h", bad_rows="few", delimiter="tab")


def test_a_file_that_is_damaged_is_named(tmp_path: Path) -> None:
    paths = many(tmp_path / "many", "parquet")
    content = paths[77].read_bytes()
    paths[77].write_bytes(content[:-20])
    with pytest.raises(InputError, match=r"077\.parquet cannot be read as Parquet"):
        cocite.ingest(paths, tmp_path / "g")
    third = len(content) // 3
    paths[77].write_bytes(content[:4] + b"\xff" * third + content[4 + third :])
    with pytest.raises(InputError, match=r"077\.parquet"):
        cocite.ingest(paths, tmp_path / "g")
    paths = many(tmp_path / "more", "gz")
    paths[78].write_bytes(paths[78].read_bytes()[:-12])
    with pytest.raises(InputError, match=r"078\.gz cannot be read to its end"):
        cocite.ingest(paths, tmp_path / "g")
    assert not list(tmp_path.glob("g*"))


def test_a_column_that_one_file_lacks_is_named_with_it(tmp_path: Path) -> None:
    paths = many(tmp_path / "many", "parquet")
    parquet(paths[66], rows_of(66), "x TEXT, y TEXT")
    with pytest.raises(
        UsageError, match=r"066\.parquet has no column 's'; its columns are 'x', 'y'"
    ):
        cocite.ingest(paths, tmp_path / "g", columns="s,t")


def test_titles_that_are_nodes_behind_what_is_looked_at_are_asked_about(tmp_path: Path) -> None:
    paths = many(tmp_path / "many", "tsv")
    rows = "".join(f"p{i}\tp{i + 1}\n" for i in range(500))
    paths[50].write_text("source\ttarget\n" + rows, "utf-8")
    cocite.ingest(paths, tmp_path / "g")
    paths[50].write_text("source\ttarget\n" + rows + "p3\tsource\n", "utf-8")
    with pytest.raises(
        UnrecognizedInput, match=r"050\.tsv: the first row, .* 'source' is also a node in other"
    ):
        cocite.ingest(paths, tmp_path / "h")


def test_progress_of_many_files_is_one_stage(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    paths = many(tmp_path / "many", "tsv parquet")
    cocite.ingest(paths, tmp_path / "g", progress=lambda *step: told.append(step))
    reading = [step for step in told if step[0].startswith("reading")]
    assert {stage for stage, _, _ in reading} == {f"reading {FILES // 2} files"}
    assert all(done <= total for _, done, total in reading)
    assert {total for _, _, total in reading} == {
        sum(path.stat().st_size for path in paths[first::2]) for first in (0, 1)
    }


def test_weights_of_many_files_are_added(tmp_path: Path) -> None:
    paths = [tmp_path / f"{file}.{'tsv' if file % 2 else 'parquet'}" for file in range(110)]
    for file, path in enumerate(paths):
        if file % 2 or not file:
            path.write_text(f"source\ttarget\tweight\na\tb\t{file or 1}\n", "utf-8")
        else:
            parquet(path, [("a", "b", file)], "source TEXT, target TEXT, weight DOUBLE")
    graph = cocite.ingest(paths, tmp_path / "g", weight_column="weight")
    assert weights_of(graph) == {("a", "b"): sum(range(110)) + 1}


def in_a_process(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Code that is given to Python in a line, so that DuckDB takes it for typed at a prompt."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
    )


@pytest.mark.process
def test_no_more_memory_is_taken_than_was_told(tmp_path: Path) -> None:
    """By the whole process, libraries included, where links and names do not fit; and DuckDB draws
    nothing, though it works for seconds.
    """
    name = "'https://www.site' || {0} % 997 || '.example.org/page/' || {0}"
    ends = ", ".join(
        f"{name.format(f'(hash(i, {side}) % 150000)')} AS {title}"
        for side, title in enumerate(("source", "target"))
    )
    with duckdb.connect() as database:
        database.execute(
            f"COPY (SELECT {ends} FROM range(2000000) t(i)) TO '{tmp_path}/links.parquet'"
        )
    code = (
        "import re, sys, cocite; cocite.ingest(sys.argv[1], sys.argv[2], memory='336MB', "
        "threads=2); status = open('/proc/self/status').read(); "  # not what the starter had
        "print(1024 * int(re.search(r'VmHWM:\\s*(\\d+)', status)[1]))"
    )
    parquet(tmp_path / "few.parquet", rows_of(1))
    in_a_process(code, tmp_path / "few.parquet", tmp_path / "f")  # compiling takes memory, too
    found = in_a_process(code, tmp_path / "links.parquet", tmp_path / "g")
    assert int(found.stdout) < 1.05 * 336e6
    assert "█" not in found.stderr


@pytest.mark.parametrize("folder", ["h", "h[1]"])
def test_names_of_parquet_files_are_no_patterns(folder: str, tmp_path: Path) -> None:
    place = tmp_path / folder
    place.mkdir()
    names = ["b*", "bcd", "a[1]", "a1", "c?", "cc", "it's", "~"]
    for name in names:
        quoted = str(place / name).replace("'", "''")
        rows = f"SELECT '{name.replace(chr(39), chr(39) * 2)}' AS name, 'x' AS title"
        duckdb.sql(f"COPY ({rows}) TO '{quoted}.parquet'")
    files = [place / f"{name}.parquet" for name in names]
    wanted = sorted((name, "x") for name in names)
    assert sorted(links(cocite.ingest(files, place / "g", header="no"))) == wanted
    for name, file in zip(names, files, strict=True):
        graph = cocite.ingest(file, place / "one", titles=file, nodes=file, overwrite=True)
        assert links(graph) == [(name, "x")]
        assert title_of(graph, name) == "x"
        assert list(read_values(file)) == [(name, "x")]


def test_parquet_file_named_twice_is_read_twice(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    duckdb.sql(f"COPY (SELECT 'a' AS source, 'b' AS target) TO '{path}' (FORMAT parquet)")
    graph = cocite.ingest([path, path], tmp_path / "g", count_duplicates=True)
    assert weights_of(graph) == {("a", "b"): 2.0}
