"""Result writers: a new format is one file and one line of a table."""

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow.ipc
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import cocite
from cocite.cli.main import cli, main
from cocite.errors import UsageError
from cocite.io import writers
from cocite.io.writers import ARRAYS, TABLES, WRITERS, Columns, TableFile, Types
from cocite.io.writers.tables import ROWS, staged
from cocite.search.batch.outputs import OUTPUTS


def write_json_rows(path: Path, pieces: Iterable[Columns], types: Types) -> None:
    """A custom format: a JSON row per line."""
    with path.open("w") as file:
        for piece in pieces:
            for row in zip(*(piece[title].tolist() for title in types), strict=True):
                print(json.dumps(dict(zip(types, row, strict=True))), file=file)


@pytest.fixture
def graph(tmp_path: Path) -> cocite.Graph:
    (tmp_path / "l.tsv").write_text("a\tb\nb\tc\nc\ta\na\tc\n")
    return cocite.ingest(tmp_path / "l.tsv", tmp_path / "g")


def test_writers_accept_new_table_file(
    graph: cocite.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WRITERS, ".rows", TableFile("rows", write_json_rows))
    assert main(["rank", str(graph.path), "-o", str(tmp_path / "r.rows")]) == 0
    rows = list(map(json.loads, (tmp_path / "r.rows").read_text().splitlines()))
    ranks = cocite.pagerank(graph).values.tolist()
    assert rows == [{"node": n, "rank": r} for n, r in zip("abc", ranks, strict=True)]
    assert main(["all-pairs", str(graph.path), "-o", str(tmp_path / "e.rows")]) == 0
    assert json.loads((tmp_path / "e.rows").read_text().splitlines()[0])["node"] == "a"


def test_write_numbers_saves_npy_array(graph: cocite.Graph, tmp_path: Path) -> None:
    values = cocite.pagerank(graph).values
    for ending in ARRAYS:
        target = writers.check_output(tmp_path / f"x{ending}", overwrite=False)
        writers.write_numbers(target, graph.names, rank=values)
    assert ARRAYS == (".npy",)
    assert np.load(tmp_path / "x.npy", mmap_mode="r").tolist() == values.tolist()
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".new"]


def test_writers_appear_in_help() -> None:
    for verb, endings in (("rank", WRITERS), ("all-pairs", WRITERS), ("related-all", TABLES)):
        help_text = CliRunner().invoke(cli, [verb, "--help-all"]).output
        assert all(ending in help_text for ending in endings), verb
    output = help_text[help_text.index("--output") : help_text.index("--output-format")]
    assert not any(ending in output for ending in ARRAYS)
    kinds = re.search(r"--output-format \[(.*)\]", help_text)
    assert kinds is not None
    assert kinds[1].split("|") == list(OUTPUTS)


def test_check_output_rejects_unknown_suffix(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ends in '\.txt'; it must end in one of \.parquet, "):
        writers.check_output(tmp_path / "x.txt", overwrite=False)


# -- one table in every format -----------------------------------------------------------

TYPES = {"node": "VARCHAR", "rank": "INTEGER", "big": "BIGINT", "score": "DOUBLE", "small": "FLOAT"}
NAMES = ["a", "tab\tand\nline", 'quo"te, comma', "é 漢", "", None, "\x00\x01 control"]


def pieces(rows: int = 20_000) -> list[dict[str, Any]]:
    """Two pieces with missing values; the second has more rows than a batch."""
    rng = np.random.default_rng(4)
    found = []
    for size in (len(NAMES), rows):
        scores, small = rng.random(size), rng.random(size).astype(np.float32)
        scores[::3] = np.nan
        small[1::3] = np.nan
        names, ranks = (NAMES * size)[:size], np.arange(size, dtype=np.int32)
        big = rng.integers(-(2**62), 2**62, size)
        values = (np.array(names, object), ranks, big, scores, small)
        found.append(dict(zip(TYPES, values, strict=True)))
    return found


def rows_in(pieces: Iterable[Columns]) -> list[tuple[Any, ...]]:
    return [
        tuple(None if isinstance(value, float) and isnan(value) else value for value in row)
        for piece in pieces
        for row in zip(*(piece[title].tolist() for title in TYPES), strict=True)
    ]


def read(path: Path) -> list[tuple[Any, ...]]:
    """The rows of a table, read by another library."""
    if path.suffix == ".parquet":
        return [tuple(row.values()) for row in pyarrow.parquet.read_table(path).to_pylist()]
    if path.suffix == ".arrow":
        with pyarrow.memory_map(str(path)) as source:
            table = pyarrow.ipc.open_file(source).read_all()
        kinds = ["string", "int32", "int64", "double", "float"]
        assert [str(field.type) for field in table.schema] == kinds
        return [tuple(row.values()) for row in table.to_pylist()]
    rows = [tuple(json.loads(line).values()) for line in path.read_bytes().splitlines()]
    return [(*row[:4], row[4] and float(np.float32(row[4]))) for row in rows]


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".jsonl"])
def test_write_table_round_trips(tmp_path: Path, ending: str) -> None:
    """All number types, all sorts of names, and missing values."""
    path = tmp_path / f"x{ending}"
    target = writers.check_output(path, overwrite=False)
    assert target.write_table(pieces(), TYPES) == path.stat().st_size
    assert read(path) == rows_in(pieces())
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize(("ending", "delimiter"), [(".csv", ","), (".tsv", "\t")])
def test_write_table_round_trips_csv_and_tsv(tmp_path: Path, ending: str, delimiter: str) -> None:
    path = tmp_path / f"x{ending}"
    writers.check_output(path, overwrite=False).write_table(pieces(), TYPES)
    with path.open(encoding="utf-8", newline="") as file:
        titles, *rows = csv.reader(file, delimiter=delimiter)
    assert titles == list(TYPES)
    for row, expected in zip(rows, rows_in(pieces()), strict=True):
        assert row[:3] == ["" if value is None else str(value) for value in expected[:3]]
        for cell, value, kind in zip(row[3:], expected[3:], (float, np.float32), strict=True):
            assert (cell == "") if value is None else kind(cell) == value


def test_write_table_arrow_opens_in_pandas_and_polars(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    writers.check_output(path, overwrite=False).write_table(pieces(9), TYPES)
    expected = [row[0] for row in rows_in(pieces())[: len(NAMES) + 9]]
    assert pandas.read_feather(path)["node"].astype(object).tolist()[:5] == expected[:5]
    assert polars.read_ipc(path)["node"].to_list() == expected


@pytest.mark.parametrize("ending", TABLES)
def test_write_table_writes_header_without_rows(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x{ending}"
    writers.check_output(path, overwrite=False).write_table([], TYPES)
    if ending in (".csv", ".tsv"):
        assert path.read_text().replace("\t", ",") == "node,rank,big,score,small\n"
    else:
        assert read(path) == []


@pytest.mark.parametrize("ending", TABLES)
def test_write_table_is_atomic(tmp_path: Path, ending: str) -> None:
    """An interrupt midway leaves no file, or the existing one unchanged."""

    def interrupted() -> Iterator[Columns]:
        yield pieces()[1]
        raise KeyboardInterrupt

    path = tmp_path / f"x{ending}"
    for existing in (None, b"before"):
        if existing is not None:
            path.write_bytes(existing)
        with pytest.raises(KeyboardInterrupt):
            writers.check_output(path, overwrite=True).write_table(interrupted(), TYPES)
        assert [each.read_bytes() for each in tmp_path.iterdir()] == (
            [existing] if existing else []
        )


@pytest.mark.process
@pytest.mark.parametrize("ending", [".jsonl", ".arrow", ".csv"])
def test_write_table_reports_full_disk(tmp_path: Path, ending: str) -> None:
    """By a limit on file sizes, in a separate process."""
    code = (
        "import resource, signal, sys; import numpy as np; from cocite.io import writers;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000));"
        "from cocite.errors import ResourceError\n"
        "piece = {'node': np.array(['name'] * 40_000, object), 'score': np.random.rand(40_000)}\n"
        "try: writers.check_output(sys.argv[1], False).write_table([piece] * 9, "
        "{'node': 'VARCHAR', 'score': 'DOUBLE'})\n"
        "except ResourceError as error: print(error)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / f"x{ending}")]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "could not write" in result.stdout
    assert "free there" in result.stdout
    assert os.listdir(tmp_path) == []


def test_table_file_text_matches_file(tmp_path: Path) -> None:
    """Arrow uses its stream format; the text of other formats equals their files."""
    for ending in TABLES:
        writer = WRITERS[ending]
        assert isinstance(writer, TableFile)
        assert (writer.text is None) == (ending == ".parquet")
        if writer.text is None:
            continue
        first, second = pieces(9)
        content = writer.text(first, TYPES, True) + writer.text(second, TYPES, False)
        if ending == ".arrow":
            table = pyarrow.ipc.open_stream(content).read_all()
            found = [tuple(row.values()) for row in table.to_pylist()]
            assert found == rows_in([first, second])
            continue
        path = tmp_path / f"x{ending}"
        writers.check_output(path, overwrite=False).write_table([first, second], TYPES)
        assert path.read_bytes() == content


def test_output_format_replaces_suffix(
    graph: cocite.Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for verb in ("rank", "all-pairs"):
        command = [verb, str(graph.path), "-o", str(tmp_path / verb), "--output-format", "JSONL"]
        assert main(command) == 0
        assert json.loads((tmp_path / verb).read_text().splitlines()[0])["node"] == "a"
        assert main(command) == 1
        assert "exists. Choose another output, or pass --overwrite" in capsys.readouterr().err
    assert main(["rank", str(graph.path), "--output-format", "csv"]) == 2
    assert "--output-format needs a file" in capsys.readouterr().err


def test_check_output_requires_pyarrow_for_arrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.ipc", None)
    with pytest.raises(UsageError, match=r"an Arrow file needs pyarrow.*arrow\]"):
        writers.check_output(tmp_path / "x.arrow", overwrite=False)


def test_staged_handles_long_empty_column(tmp_path: Path) -> None:
    empty = np.full(5_000, None, object)
    rows = [{"node": np.array([f"n{i}" for i in range(5_000)], object), "title": empty}]
    with staged(tmp_path / "x", rows, {"node": "VARCHAR", "title": "VARCHAR"}) as found:
        counted = found.execute(f"SELECT count(node), count(title), count(*) FROM {ROWS}")
        assert counted.fetchall() == [(5_000, 0, 5_000)]
