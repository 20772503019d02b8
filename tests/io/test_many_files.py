"""Many files at once give the graph of one file with their rows; errors name the file."""

import gzip
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest

import cocite
from cocite.errors import InputError, MalformedRow, UnrecognizedInput, UsageError
from cocite.io.pipeline import facts_of
from cocite.io.readers.contract import PagesFound
from cocite.io.readers.tables import read_values
from tests.io.plain import links, title_of, weights_of

FILES = 110
"""More than the 100 whose facts are listed one by one."""
KINDS = "tsv csv gz parquet other"
Many = Callable[[str], list[Path]]


def write_parquet(
    path: Path, rows: Iterable[tuple[Any, ...]], types: str = "s TEXT, t TEXT"
) -> None:
    with duckdb.cursor() as database:  # creating a database takes 30 ms
        database.execute(f"CREATE TEMP TABLE links ({types})")
        database.executemany(
            f"INSERT INTO links VALUES ({', '.join('?' * types.count(','))}, ?)", rows
        )
        database.execute(f"COPY links TO '{path}' (FORMAT parquet)")


def rows_of(file: int) -> list[tuple[str, str]]:
    return [(f"p{file}", f"p{(file * 7 + i) % FILES}") for i in range(1, 4)]


def lines(rows: Iterable[tuple[Any, Any]]) -> str:
    return "".join(f"{a}\t{b}\n" for a, b in rows)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Written once for all tests: Parquet takes long."""
    return cache(lambda kinds: write_many(tmp_path_factory.mktemp("many"), kinds))


@pytest.fixture
def many(originals: Callable[[str], Path], tmp_path: Path) -> Many:
    """Copies of files of these kinds in turn, with three links each."""
    return lambda kinds: sorted(shutil.copytree(originals(kinds), tmp_path / "many").iterdir())


def write_many(folder: Path, kinds: str) -> Path:
    for file in range(FILES):
        kind = kinds.split()[file % len(kinds.split())]
        rows = rows_of(file)
        path = folder / f"{file:03}.{'parquet' if kind == 'other' else kind}"
        if kind == "gz":
            path.write_bytes(gzip.compress(lines(rows).encode()))
        elif kind == "parquet":
            write_parquet(path, rows)
        elif kind == "other":
            write_parquet(path, [(b, a) for a, b in rows], "target TEXT, source TEXT")
        else:
            head, by = ("source,target\n", ",") if kind == "csv" else ("# a comment\n", "\t")
            path.write_text(head + lines(rows).replace("\t", by), "utf-8")
    return folder


def test_ingest_many_files_equals_single_file(tmp_path: Path, many: Many) -> None:
    paths = many(KINDS)
    rows = [row for file in range(FILES) for row in rows_of(file)]
    (tmp_path / "one.tsv").write_text(lines(rows), "utf-8")
    single = cocite.ingest(tmp_path / "one.tsv", tmp_path / "one.graph")
    graph = cocite.ingest(paths, tmp_path / "many.graph")
    assert graph.digest == single.digest
    assert links(graph) == links(single)
    assert graph.store.facts["rows"] == len(rows)
    described = {
        entry["read_as"]: (entry["files"], entry["rows"]) for entry in graph.store.facts["sources"]
    }
    per_kind = FILES // 5
    assert described == {
        f"{3 * per_kind} files, the first as 000.tsv: tab-separated, no header, 1 comment line; "
        "the first link is p0 -> p1": (3 * per_kind, 9 * per_kind),
        f"{2 * per_kind} files, the first as 003.parquet: Parquet, columns 's' and 't'": (
            *(2 * per_kind, 6 * per_kind),
        ),
    }


@pytest.mark.long
def test_ingest_many_json_lines_share_one_entry(tmp_path: Path) -> None:
    paths = [tmp_path / f"{file:03}.jsonl" for file in range(FILES)]
    for file, path in enumerate(paths):
        bad = "{}\n" if file == 7 else ""
        rows = "".join(f'{{"source": "{a}", "target": "{b}"}}\n' for a, b in rows_of(file))
        path.write_text(rows + bad)
    graph = cocite.ingest(paths, tmp_path / "g", bad_rows="few")
    (entry,) = graph.store.facts["sources"]
    assert (entry["files"], entry["rows"], sum(entry["bad_rows"].values())) == (FILES, 3 * FILES, 1)
    assert entry["read_as"].startswith(f"{FILES} files, the first as 000.jsonl: JSON lines")
    assert [example.partition(": ")[0] for example in entry["examples"]] == ["007.jsonl"]
    assert graph.digest == cocite.ingest(paths[::-1], tmp_path / "h", bad_rows="few").digest


def test_facts_of_sums_page_folders() -> None:
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


def test_ingest_lists_up_to_100_files_in_order(tmp_path: Path, many: Many) -> None:
    paths = many(KINDS)[:100]
    facts = cocite.ingest(paths, tmp_path / "g").store.facts
    assert [entry["file"] for entry in facts["sources"]] == [path.name for path in paths]
    assert {entry["rows"] for entry in facts["sources"]} == {3}
    assert not any("files" in entry for entry in facts["sources"])


@pytest.mark.parametrize("kinds", ["tsv", "parquet", "tsv parquet"])
def test_ingest_many_files_detects_integer_names(kinds: str, tmp_path: Path) -> None:
    def write(file: int, rows: list[tuple[int, int]]) -> Path:
        kind = kinds.split()[file % len(kinds.split())]
        path = tmp_path / f"{file}.{kind}"
        if kind == "parquet":
            write_parquet(path, rows, "s BIGINT, t BIGINT")
        else:
            path.write_text(lines(rows), "utf-8")
        return path

    paths = [write(file, [(file, (file + 1) % FILES)]) for file in range(FILES)]
    assert cocite.ingest(paths, tmp_path / "g").store.facts["names"] == "dense"
    write(60, [(-7, 3)])
    graph = cocite.ingest(paths, tmp_path / "h")
    assert graph.store.facts["names"] == "text"
    assert ("-7", "3") in links(graph)
    assert (f"{FILES - 1}", "0") in links(graph)


@pytest.mark.parametrize("ending", ["tsv", "parquet"])
def test_ingest_many_files_reports_place_of_bad_row(
    ending: str, tmp_path: Path, many: Many
) -> None:
    paths = many(ending)
    for file in (60, 90):
        path = paths[file]
        if ending == "parquet":
            write_parquet(path, [("a", "b"), ("", "d")])
        else:
            path.write_text("a\tb\n\td\n", "utf-8")
    with pytest.raises(MalformedRow, match=f"060.{ending}:2: ") as caught:
        cocite.ingest(paths, tmp_path / "g")
    assert caught.value.file == str(paths[60])
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
        write_parquet(paths[70], [("", "b"), ("", "d")])
    else:
        paths[70].write_text("a\nb\n", "utf-8")
    with pytest.raises(InputError, match=f"070.{ending} has 2 bad rows and 0 good ones"):
        cocite.ingest(paths, tmp_path / "h", bad_rows="few", delimiter="tab")


@pytest.mark.long
def test_ingest_many_files_reports_damaged_file(tmp_path: Path, many: Many) -> None:
    paths = many("gz parquet")
    content, packed = paths[77].read_bytes(), paths[78].read_bytes()
    third = len(content) // 3
    for path, damaged, message in (
        (paths[77], content[:-20], r"077\.parquet cannot be read as Parquet"),
        (paths[77], content[:4] + b"\xff" * third + content[4 + third :], r"077\.parquet"),
        (paths[78], packed[:-12], r"078\.gz cannot be read to its end"),
    ):
        whole = path.read_bytes()
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=message):
            cocite.ingest(paths, tmp_path / "g")
        path.write_bytes(whole)
    assert not list(tmp_path.glob("g*"))


def test_ingest_many_files_reports_missing_column(tmp_path: Path, many: Many) -> None:
    paths = many("parquet")
    write_parquet(paths[66], rows_of(66), "x TEXT, y TEXT")
    with pytest.raises(
        UsageError, match=r"066\.parquet has no column 's'; its columns are 'x', 'y'"
    ):
        cocite.ingest(paths, tmp_path / "g", columns="s,t")


def test_ingest_many_files_refuses_ambiguous_header(tmp_path: Path, many: Many) -> None:
    paths = many("tsv")
    rows = "".join(f"p{i}\tp{i + 1}\n" for i in range(500))
    paths[50].write_text("source\ttarget\n" + rows, "utf-8")
    cocite.ingest(paths, tmp_path / "g")
    paths[50].write_text("source\ttarget\n" + rows + "p3\tsource\n", "utf-8")
    with pytest.raises(
        UnrecognizedInput, match=r"050\.tsv: the first row, .* 'source' is also a node in other"
    ):
        cocite.ingest(paths, tmp_path / "h")


def test_ingest_many_files_progress_is_one_stage(tmp_path: Path, many: Many) -> None:
    steps: list[tuple[str, int, int]] = []
    paths = many("tsv parquet")
    cocite.ingest(paths, tmp_path / "g", progress=lambda *step: steps.append(step))
    reading = [step for step in steps if step[0].startswith("reading")]
    assert {stage for stage, _, _ in reading} == {f"reading {FILES // 2} files"}
    assert all(done <= total for _, done, total in reading)
    assert {total for _, _, total in reading} == {
        sum(path.stat().st_size for path in paths[first::2]) for first in (0, 1)
    }


def test_ingest_many_files_sums_weights(tmp_path: Path) -> None:
    paths = [tmp_path / f"{file}.{'tsv' if file % 2 else 'parquet'}" for file in range(FILES)]
    for file, path in enumerate(paths):
        if file % 2 or not file:
            path.write_text(f"source\ttarget\tweight\na\tb\t{file or 1}\n", "utf-8")
        else:
            write_parquet(path, [("a", "b", file)], "source TEXT, target TEXT, weight DOUBLE")
    graph = cocite.ingest(paths, tmp_path / "g", weight_column="weight")
    assert weights_of(graph) == {("a", "b"): sum(range(FILES)) + 1}


def run_python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run ``python -c code``, which DuckDB takes for an interactive session."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
    )


@pytest.mark.process
def test_ingest_stays_within_memory_limit(tmp_path: Path) -> None:
    """The whole process, with links and names that exceed it; DuckDB draws no progress bar."""
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
        "threads=2); status = open('/proc/self/status').read(); "  # not of the parent
        "print(1024 * int(re.search(r'VmHWM:\\s*(\\d+)', status)[1]))"
    )
    write_parquet(tmp_path / "few.parquet", rows_of(1))
    run_python(code, tmp_path / "few.parquet", tmp_path / "f")  # fills the compilation cache
    process = run_python(code, tmp_path / "links.parquet", tmp_path / "g")
    assert int(process.stdout) < 1.05 * 336e6
    assert "█" not in process.stderr


@pytest.mark.parametrize(
    ("folder", "names"),
    [("h", ["b*", "bcd", "a[1]", "a1", "c?", "cc"]), ("h[1]", ["a*", "ab", "it's", "~"])],
)
def test_parquet_file_names_are_not_globs(folder: str, names: list[str], tmp_path: Path) -> None:
    place = tmp_path / folder
    place.mkdir()
    for name in names:
        quoted = str(place / name).replace("'", "''")
        rows = f"SELECT '{name.replace(chr(39), chr(39) * 2)}' AS name, 'x' AS title"
        duckdb.sql(f"COPY ({rows}) TO '{quoted}.parquet'")
    files = [place / f"{name}.parquet" for name in names]
    expected = sorted((name, "x") for name in names)
    assert sorted(links(cocite.ingest(files, place / "g", header="no"))) == expected
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
