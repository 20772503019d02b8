"""Malformed input: reported with file, line and content, or skipped and counted."""

import bz2
import gzip
import lzma
from pathlib import Path
from typing import Any

import duckdb
import pytest

import cocite
from cocite.errors import InputError, MalformedRow, ResourceError, UsageError
from cocite.io.readers import text as reader
from cocite.storage import disk
from tests.io.plain import cleaned, links, nothing_left, read, refused, source_of, zstd

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


@pytest.mark.parametrize(("content", "line", "kind", "problem", "excerpt"), BAD)
def test_text_reports_or_skips_bad_row(
    tmp_path: Path, content: bytes, line: int, kind: str, problem: str, excerpt: str
) -> None:
    with pytest.raises(MalformedRow) as caught:
        cleaned(tmp_path, content)
    file = tmp_path / "links.tsv"
    assert str(caught.value) == (
        f"{file}:{line}: {problem}: {excerpt!r}. Fix the row, or pass --bad-rows few "
        "(bad_rows='few') to skip such rows and count them"
    )
    assert (caught.value.file, caught.value.line) == (str(file), line)
    rows, found = cleaned(tmp_path, content, bad_rows="few")
    assert rows == [("a", "b")]
    assert found.bad_rows == {kind: 1}
    assert found.examples == [f"line {line}: {problem}: {excerpt!r}"]


def test_bad_rows_are_counted_by_reason(tmp_path: Path) -> None:
    content = "a\tb\n" + "c\n" * 4 + "\td\n" * 3
    refused(tmp_path, MalformedRow, content, match=r"links\.tsv:2: ")
    graph = read(tmp_path, content, bad_rows="all")
    source = source_of(graph)
    assert (graph.info().rows, graph.info().bad_rows) == (1, 7)
    assert source["bad_rows"] == {"columns": 4, "empty name": 3}
    assert [text.split(":")[0] for text in source["examples"]] == [f"line {i}" for i in range(2, 7)]


def test_text_accepts_longest_name(tmp_path: Path) -> None:
    name = "é" * 32_767 + "x"
    assert links(read(tmp_path, f"a\t{name}\n")) == [("a", name)]


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("piece", [1, 2, 3, 7, 100])
def test_text_counts_overlong_line_as_one_bad_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, piece: int
) -> None:
    monkeypatch.setattr(reader, "_MAX_LINE", 20)
    monkeypatch.setattr(reader, "_PIECE", piece)
    content = end.join(["a\tb", "x" * 200, "c\td", "y", "e\tf"])
    options: dict[str, Any] = {"delimiter": "tab", "header": "no"}
    rows, found = cleaned(tmp_path, content, bad_rows="few", **options)
    assert rows == [("a", "b"), ("c", "d"), ("e", "f")]
    assert found.bad == 2
    assert [text.split(":")[0] for text in found.examples] == ["line 2", "line 4"]
    with pytest.raises(MalformedRow, match=r"links\.tsv:2: a line of more than 20 bytes: 'xxx"):
        cleaned(tmp_path, content, **options)


def test_text_accepts_lone_carriage_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_MAX_LINE", 20)
    monkeypatch.setattr(reader, "_PIECE", 64)
    rows, _ = cleaned(tmp_path, "# made by hand\n" + "a\tb\r" * 40 + "c\td\r")
    assert rows == [("a", "b")] * 40 + [("c", "d")]


def _zstd(data: bytes) -> Any:
    return zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})


@pytest.mark.parametrize("pack", [gzip.compress, _zstd, bz2.compress, lzma.compress])
def test_compression_reports_truncated_file(tmp_path: Path, pack: Any) -> None:
    packed = pack(b"".join(b"%d\t%d\n" % (i, i * i) for i in range(500)))
    for size in range(10, len(packed), len(packed) // 15):
        with pytest.raises(InputError, match=r"links\.tsv cannot be read to its end: "):
            cleaned(tmp_path, packed[:size])


@pytest.mark.parametrize("pack", [gzip.compress, _zstd, bz2.compress, lzma.compress])
def test_clean_text_reports_damaged_compression(tmp_path: Path, pack: Any) -> None:
    packed = pack(b"a\tb\nc\td\n")
    expected = cleaned(tmp_path, packed)
    for offset in range(4, len(packed)):
        damaged = bytearray(packed)
        damaged[offset] ^= 0x55
        try:
            found = cleaned(tmp_path, bytes(damaged))
        except InputError:
            continue
        assert offset < 12  # header fields without effect
        assert found == expected


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
def test_ingest_reports_invalid_option(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
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
def test_ingest_reports_invalid_input(
    tmp_path: Path, inputs: Any, error: type[Exception], message: str
) -> None:
    paths = tmp_path / inputs if isinstance(inputs, str) else inputs
    with pytest.raises(error, match=message):
        cocite.ingest(paths, tmp_path / "out.graph")
    assert nothing_left(tmp_path)


def test_ingest_refuses_too_small_memory(tmp_path: Path) -> None:
    error = refused(tmp_path, ResourceError, "a\tb\n", memory="100MB")
    assert str(error).startswith("ingest needs 284 MB of memory; the limit is 100 MB, and ")


def test_ingest_does_not_blame_input_for_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: Any, data: Any) -> None:
        raise ResourceError("full")

    monkeypatch.setattr(disk, "write", full)
    refused(tmp_path, ResourceError, "a\tb\n", match="full")


def test_parquet_reports_damaged_file(tmp_path: Path) -> None:
    """With the problem, a remedy, and one line from DuckDB."""
    path = tmp_path / "links.parquet"
    rows = "SELECT 'page ' || i AS a, 'page ' || i * 7 % 1000 AS b FROM range(1000) t(i)"
    duckdb.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    original = path.read_bytes()
    half, step = len(original) // 2, len(original) // 6
    for content, problem in (
        *((original[:size], "") for size in range(4, len(original), step)),
        (original[:7] + bytes([original[7] ^ 0xFF]) + original[8:], ""),
        (
            original[:half],
            "its end is missing: it is truncated, or still being written. Copy it again",
        ),
        (original[:half] + b"\xff" * 300 + original[half + 300 :], "it is damaged. Copy it again"),
    ):
        error = refused(tmp_path, InputError, content, "links.parquet")
        assert f"{path} cannot be read as Parquet: {problem}" in str(error)
        assert "\n" not in str(error)
    assert nothing_left(tmp_path)
