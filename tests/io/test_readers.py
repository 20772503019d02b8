"""Link readers: a new one is one file and one line of a table."""

import gzip
import os
import re
import shutil
import sys
import threading
from collections import Counter
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cocite
from cocite.cli.main import cli, main
from cocite.errors import InputError, MalformedRow, UsageError
from cocite.io import readers
from cocite.io.readers import (
    FORMATS,
    Format,
    Job,
    ReadOptions,
    Source,
    clean_rows,
    formats,
    reader_of,
)
from cocite.io.readers.contract import no_progress
from cocite.io.readers.signs import begins
from tests.io.plain import assert_stored, graph_of, links, nothing_left, source_of, weights_of

db = duckdb.connect()

TOY = '''
"""Arrows: a header line, then rows such as a>b, or a>b>2.5 with a weight."""

from cocite.io.readers import Job, Read, FormatReader, clean_rows


def read(job: Job) -> Read:
    columns = job.wanted + bool(job.options.weight)
    with job.source.reading() as (stream, _):
        stream.readline()
        rows = (line.decode().rstrip("\\n").split(">")[:columns] for line in stream)
        return clean_rows(job, "arrows", rows)


READER = FormatReader("arrows", "arrows (a>b)", read)
'''


@pytest.fixture
def arrows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of arrows, and its reader: one module, and one line before the other formats."""
    (tmp_path / "toy_arrows.py").write_text(TOY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "toy_arrows", raising=False)
    line = Format("arrows", begins(b"ARROWS"), reader="toy_arrows:READER", called="arrows")
    monkeypatch.setattr(formats, "FORMATS", (line, *FORMATS))
    (tmp_path / "links.arrows").write_text("ARROWS\na>b>2\nb>c>0.5\na>b>1\nc>>3\nc>c>1\n")
    return tmp_path / "links.arrows"


def test_format_registers_new_reader(arrows: Path) -> None:
    output = arrows.with_name("g")
    graph = cocite.ingest(arrows, output, bad_rows="few")
    assert_stored(graph, [("a", "b"), ("b", "c"), ("a", "b"), ("c", "c")])
    assert source_of(graph) == {
        "file": "links.arrows",
        "format": "arrows",
        "rows": 4,
        "bad_rows": {"empty name": 1},
        "examples": ["row 4: an empty name: 'c\\t'"],
        "integers": False,
        "read_as": "links.arrows: arrows",
    }
    graph = cocite.ingest(arrows, output, weight_column=3, bad_rows="few", overwrite=True)
    assert weights_of(graph) == {("a", "b"): 3, ("b", "c"): 0.5}
    with pytest.raises(MalformedRow, match=r"links\.arrows:4: an empty name: 'c\\t'"):
        cocite.ingest(arrows, arrows.with_name("out.graph"))
    assert nothing_left(arrows.parent)


def test_ingest_combines_inputs_of_several_formats(arrows: Path) -> None:
    arrows.write_text("ARROWS\n7>8\n")
    (arrows.parent / "more.tsv").write_text("8\t9\n")
    (arrows.parent / "nodes").write_text("ARROWS\n5\n")
    graph = cocite.ingest(
        [arrows, arrows.parent / "more.tsv"], arrows.with_name("g"), nodes=arrows.parent / "nodes"
    )
    assert links(graph) == [("7", "8"), ("8", "9")]
    assert list(graph.names) == ["5", "7", "8", "9"]
    assert graph.info().names == "integers"


def test_input_format_selects_reader(arrows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Even if the first line does not look like arrows."""
    arrows.write_text("anything\na>b\n")
    assert links(graph_of(arrows, input_format="arrows")) == [("a", "b")]
    arrows.write_text("ARROWS\tb\n")
    assert links(graph_of(arrows, input_format="text")) == [("ARROWS", "b")]
    shutil.rmtree(arrows.with_name("out.graph"))
    with pytest.raises(UsageError, match="input_format is 'arows'; it must be one of auto, ar"):
        graph_of(arrows, input_format="arows")
    arrows.write_bytes(gzip.compress(b"a\tb\n"))
    with pytest.raises(InputError, match=r"is Parquet \(packed by gzip\)"):
        graph_of(arrows, input_format="parquet")
    assert nothing_left(arrows.parent)
    command = ["ingest", str(arrows), "-o", str(arrows.with_name("i"))]
    assert main([*command, "--input-format", "TEXT"]) == 0
    assert capsys.readouterr().err.startswith(f"read {arrows.name}: tab-separated")


def test_ingest_detects_format_of_pipe(arrows: Path) -> None:
    pipe = arrows.with_name("pipe")
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"ARROWS\na>b\n"))
    writer.start()
    graph = cocite.ingest(pipe, arrows.with_name("g"))
    writer.join()
    assert links(graph) == [("a", "b")]


def test_ingest_rejects_parquet_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"PAR1...."))
    writer.start()
    with pytest.raises(InputError, match="pipe is Parquet, which cannot be read as a stream: pass"):
        cocite.ingest(pipe, tmp_path / "out.graph")
    writer.join()
    assert nothing_left(tmp_path)


def test_ingest_checks_inputs_before_reading(tmp_path: Path) -> None:
    """A directory stands for an unreadable file, since root can read any file."""
    stages: list[str] = []
    (tmp_path / "links.tsv").write_text("a\tb\n")
    with pytest.raises(InputError, match="is a directory"):
        cocite.ingest(
            [tmp_path / "links.tsv", tmp_path],
            tmp_path / "out.graph",
            progress=lambda stage, done, total: stages.append(stage),
        )
    assert stages == []


def test_readers_appear_in_help_and_documentation() -> None:
    help_text = " ".join(CliRunner().invoke(cli, ["ingest", "--help-all"]).output.split())
    folder = Path(readers.__file__).parent
    rows = (Path(__file__).parents[2] / "docs" / "input.md").read_text("utf-8")
    for name, module in readers.readers().items():
        reader = formats.reader_at(module)
        assert " ".join(reader.described.split()) in help_text
        assert name in ("text", "parquet") or re.search(rf"^\| `.*\b{name}`.* \|$", rows, re.M)
        parts = module.partition(":")[0].removeprefix(readers.__name__ + ".").split(".")
        assert folder.joinpath(*parts).with_suffix(".py").is_file()


def test_reader_of_falls_back_to_text(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a b\n")
    text = formats.reader_at(formats.TEXT)
    assert reader_of(Source(tmp_path / "x"), ReadOptions()) is text
    assert list(readers.readers())[-1] == "text"


NAMES = st.sampled_from(
    [
        *("a", " b ", "0", "17", "01", "18446744073709551616", "", " ", "-", "#c", '"q"'),
        *("\ufeffx", "x\ty", "x\ny", "\x00", "\x7f", "\x9b", "\u202e", "x\u2069", "\u200f"),
        *("\udc80", "\ud800", "z" * 65_535, "é" * 32_768),
    ]
)


@given(st.lists(st.tuples(NAMES, NAMES), max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_clean_rows_counts_bad_names(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    """Compared with a plain implementation; ``io/tables.py`` strips the blanks."""
    job = Job(Source(tmp_path / "x"), 2, ReadOptions(bad_rows="few"), tmp_path, db, no_progress)
    (tmp_path / "x").touch()
    relation, found, _ = clean_rows(job, "rows", rows)
    expected, bad = [], Counter[str]()
    for row in rows:
        kinds = [kind for name in row if (kind := fault(name.strip(" ")))]
        if kinds:
            bad[kinds[0]] += 1
        else:
            expected.append(row)
    assert [tuple(map(str, row)) for row in db.execute(relation).fetchall()] == expected
    assert (found.rows, found.bad_rows) == (len(expected), bad)
    plain = re.compile("0|[1-9][0-9]*")
    assert found.integers == all(
        plain.fullmatch(name) and int(name) < 2**64 for row in expected for name in row
    )


def fault(name: str) -> str | None:
    """The first fault of a name, in the order of the checks."""
    if not name:
        return "empty name"
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "not UTF-8"
    if re.search("[\\x00-\\x1f\\x7f-\\x9f]", name):
        return "control character"
    if re.search("[\\u202a-\\u202e\\u2066-\\u2069]", name):
        return "turned direction"
    return "name over 65535 bytes" if size > 65_535 else None
