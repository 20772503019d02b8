"""Input that is not as it should be: named with file, line and content, or left out and counted."""

import bz2
import gzip
import io
import lzma
from pathlib import Path
from typing import Any

import duckdb
import pytest

import cocite
from cocite.errors import InputError, MalformedRow, ResourceError, UsageError
from cocite.io.readers import ReadOptions, Source
from cocite.io.readers import text as reader
from cocite.storage import disk
from tests.io.plain import links, nothing_left, read, refused, source_of, zstd

BAD = [
    (b"a\tb\nc\n", 2, "columns", "not 2 tab-separated columns", "c"),
    (b"a\tb\nc\td\te\n", 2, "columns", "not 2 tab-separated columns", "c\td\te"),
    (b"#\n\na\tb\r\nc\t\n", 4, "empty name", "an empty name", "c\t"),
    (b"a\tb\nc\td\x00\n", 2, "control character", "a control character in a name", "c\td\x00"),
    (b"a\tb\nc\x7f\td\n", 2, "control character", "a control character in a name", "c\x7f\td"),
    (
        "a\tb\nc\x9b0m\td\n".encode(),
        2,
        "control character",
        "a control character in a name",
        "c\x9b0m\td",
    ),
    (
        "a\tb\nc\td\u202efdp\n".encode(),
        2,
        "turned direction",
        "a name with U+202E, which changes the text direction",
        "c\td\u202efdp",
    ),
    (b"a\tb\nc\t\xff\n", 2, "not UTF-8", "bytes that are not UTF-8", "c\t\\xff"),
    (
        b"a\tb\nc\t\xed\xa0\x80\n",
        2,
        "not UTF-8",
        "bytes that are not UTF-8",
        r"c" "\t" r"\xed\xa0\x80",
    ),
    (b"a\tb\nc\t\xc3\n", 2, "not UTF-8", "bytes that are not UTF-8", "c\t\\xc3"),
    (b'a,b\n"c,d\n', 2, "quotes", "a quote that is not closed at the end of its field", '"c,d'),
    (b'a,b\n"c"x,d\n', 2, "quotes", "a quote that is not closed at the end of its field", '"c"x,d'),
    (b"a,b\n,d\n", 2, "empty name", "an empty name", ",d"),
    (
        b"a\tb\nc\t" + b"x" * 65_536 + b"\n",
        2,
        "name over 65535 bytes",
        "a name of more than 65535 bytes",
        "c\t" + "x" * 98 + "...",
    ),
]


@pytest.mark.parametrize(("content", "line", "kind", "what", "shown"), BAD)
def test_a_bad_row_is_named_or_left_out(
    tmp_path: Path, content: bytes, line: int, kind: str, what: str, shown: str
) -> None:
    error = refused(tmp_path, MalformedRow, content)
    file = tmp_path / "links.tsv"
    assert str(error) == (
        f"{file}:{line}: {what}: {shown!r}. Fix the row, or pass --bad-rows few (bad_rows='few') "
        "to skip such rows and count them"
    )
    assert (error.file, error.line) == (str(file), line)
    assert nothing_left(tmp_path)
    graph = read(tmp_path, content, bad_rows="few")
    source = source_of(graph)
    assert links(graph) == [("a", "b")]
    assert source["bad_rows"] == {kind: 1}
    assert source["examples"] == [f"line {line}: {what}: {shown!r}"]
    assert (graph.info().rows, graph.info().bad_rows) == (1, 1)


def test_bad_rows_are_counted_by_reason_and_five_are_shown(tmp_path: Path) -> None:
    graph = read(tmp_path, "a\tb\n" + "c\n" * 4 + "\td\n" * 3, bad_rows="all")
    source = source_of(graph)
    assert source["bad_rows"] == {"columns": 4, "empty name": 3}
    assert [text.split(":")[0] for text in source["examples"]] == [f"line {i}" for i in range(2, 7)]


def test_the_longest_name_is_kept(tmp_path: Path) -> None:
    name = "é" * 32_767 + "x"
    assert links(read(tmp_path, f"a\t{name}\n")) == [("a", name)]


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("piece", [1, 2, 3, 7, 100])
def test_an_over_long_line_is_one_bad_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, piece: int
) -> None:
    monkeypatch.setattr(reader, "_MAX_LINE", 20)
    monkeypatch.setattr(reader, "_PIECE", piece)
    content = end.join(["a\tb", "x" * 200, "c\td", "y", "e\tf"])
    options: dict[str, Any] = {"delimiter": "tab", "header": "no"}
    graph = read(tmp_path, content, bad_rows="few", **options)
    assert links(graph) == [("a", "b"), ("c", "d"), ("e", "f")]
    source = source_of(graph)
    assert sum(source["bad_rows"].values()) == 2
    assert [text.split(":")[0] for text in source["examples"]] == ["line 2", "line 4"]
    refused(tmp_path, MalformedRow, content, **options, match=r"links\.tsv:2: ")


def test_an_over_long_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_MAX_LINE", 20)
    monkeypatch.setattr(reader, "_PIECE", 10)
    with pytest.raises(MalformedRow, match=r"links\.tsv:2: a line of more than 20 bytes: 'xxx"):
        read(tmp_path, "a\tb\n" + "x" * 99)


def test_lone_returns_end_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_MAX_LINE", 20)
    monkeypatch.setattr(reader, "_PIECE", 64)
    graph = read(tmp_path, "# made by hand\n" + "a\tb\r" * 40 + "c\td\r")
    assert links(graph) == [("a", "b"), ("c", "d")]
    assert graph.info().rows == 41


def _zstd(data: bytes) -> Any:
    return zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})


@pytest.mark.parametrize("pack", [gzip.compress, _zstd, bz2.compress, lzma.compress])
def test_a_cut_archive_is_no_traceback(tmp_path: Path, pack: Any) -> None:
    packed = pack(b"".join(b"%d\t%d\n" % (i, i * i) for i in range(500)))
    for size in range(10, len(packed), len(packed) // 15):
        with pytest.raises(InputError, match=r"links\.tsv cannot be read to its end: "):
            read(tmp_path, packed[:size])
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("pack", [gzip.compress, _zstd, bz2.compress, lzma.compress])
def test_a_damaged_archive_is_no_traceback(tmp_path: Path, pack: Any) -> None:
    packed = pack(b"a\tb\nc\td\n")
    for place in range(4, len(packed)):
        broken = bytearray(packed)
        broken[place] ^= 0x55
        try:
            clean(tmp_path, bytes(broken))
        except InputError:
            continue
        assert place < 12  # fields of the header that change nothing


def clean(tmp_path: Path, content: bytes) -> bytes:
    path = tmp_path / "links.tsv"
    path.write_bytes(content)
    out = io.BytesIO()
    options = ReadOptions()
    source = Source(path)
    reader.clean_text(source, 2, options, out, lambda stage, done, total: None)
    return out.getvalue()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ("a", "b")}, "links.tsv has no column 'a'; its columns are 'x', 'y'"),
        ({"columns": (1, 3)}, "links.tsv has no column '3'; its columns are '1', '2'"),
        ({"columns": (0, 1)}, "links.tsv has no column '0'; its columns are '1', '2'"),
        (
            {"columns": ("x",)},
            "columns is x; it must be two columns, source and target, such as 1,2",
        ),
        ({"columns": ("x", "x")}, "columns x,x contains the same column twice"),
        (
            {"columns": ("x", "X")},
            "links.tsv: one column is used twice. Links are read from 'x' and 'x'",
        ),
        (
            {"columns": ("1", "01")},
            "links.tsv: one column is used twice. Links are read from '1' and '1'",
        ),
        ({"delimiter": ":"}, "delimiter is ':'; it must be auto or tab or comma or "),
        ({"header": "maybe"}, "header is 'maybe'; it must be auto or yes or no"),
        ({"comment": "//"}, "comment is '//'; it must be one ASCII character, or empty"),
        ({"memory": "soon"}, "'soon' is not a size; write a size like 600MB, 4GB or 1.5GiB"),
    ],
)
def test_a_wrong_option_is_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    error = refused(tmp_path, UsageError, "x,y\n1,2\n", **options)
    assert message in str(error)


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ("none", InputError, "none: no such file, and no file matches it as a"),
        ("x" * 300, InputError, "no such file"),
        (".", InputError, r"without HTML pages or notes; pass its edge lists, such as '.*/\*'"),
        ([], UsageError, "there is no input: pass edge lists"),
        (["-", "-"], UsageError, r"standard input \(-\) is given twice"),
    ],
)
def test_inputs_that_cannot_be(
    tmp_path: Path, inputs: Any, error: type[Exception], message: str
) -> None:
    given = tmp_path / inputs if isinstance(inputs, str) else inputs
    with pytest.raises(error, match=message):
        cocite.ingest(given, tmp_path / "out.graph")
    assert nothing_left(tmp_path)


def test_too_small_a_budget_is_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, ResourceError, "a\tb\n", memory="100MB")
    assert str(error).startswith("ingest needs 284 MB of memory; the limit is 100 MB, and ")


def test_full_disk_is_not_blamed_on_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: Any, data: Any) -> None:
        raise ResourceError("full")

    monkeypatch.setattr(disk, "write", full)
    refused(tmp_path, ResourceError, "a\tb\n", match="full")


def test_a_broken_parquet_file_is_told_in_our_words(tmp_path: Path) -> None:
    """What has become of the file, what to do, and one line of what DuckDB says."""
    path = tmp_path / "links.parquet"
    rows = "SELECT 'page ' || i AS a, 'page ' || i * 7 % 1000 AS b FROM range(1000) t(i)"
    duckdb.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    whole = path.read_bytes()
    half, few = len(whole) // 2, len(whole) // 20
    for content, told in (
        *((whole[:size], "") for size in range(4, len(whole), few)),
        (whole[:7] + bytes([whole[7] ^ 0xFF]) + whole[8:], ""),
        (
            whole[:half],
            "its end is missing: it is truncated, or still being written. Copy it again",
        ),
        (whole[:half] + b"\xff" * 300 + whole[half + 300 :], "it is damaged. Copy it again"),
    ):
        error = refused(tmp_path, InputError, content, "links.parquet")
        assert f"{path} cannot be read as Parquet: {told}" in str(error)
        assert "\n" not in str(error)
    assert nothing_left(tmp_path)
