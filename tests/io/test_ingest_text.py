"""Well-formed text: every dialect gives the same links."""

import bz2
import fcntl
import gzip
import lzma
import os
import termios
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite.errors import UnrecognizedInput
from cocite.io.readers import text as reader
from tests.clock import wait_for
from tests.io.plain import cleaned, links, nothing_left, read, refused, zstd

AB = [("a", "b"), ("c", "d")]


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("# Directed graph\n# FromNodeId\tToNodeId\na\tb\nc\td\n", {}),
        ("a\tb\nc\td", {}),
        ("a,b\nc,d\n", {}),
        ("source,target\na,b\nc,d\n", {}),
        ("Source;Target\na;b\nc;d\n", {}),
        ("a;b\nc;d\n", {"delimiter": "semicolon"}),
        ("a|b\nc|d\n", {}),
        ("a b\nc   d\n", {}),
        ("  a \t b  \nc d\n", {"delimiter": "space"}),
        (" a \t b \nc\t d\n", {}),
        ('"a","b"\nc,"d"\n', {}),
        ('"a" , "b"\nc, "d"\n', {}),
        ("a\tb\r\nc\td\r\n", {}),
        ("a\tb\rc\td\r", {}),
        ("a\tb\r\n\r\r\nc\td\r", {}),
        ("\ufeffa\tb\nc\td\n", {}),
        ("\ufefffrom\tto\na\tb\nc\td\n", {}),
        ("\n\na\tb\n  \n\t\nc\td\n\n\n", {}),
        ("% x\na\tb\n  % y\nc\td\n", {"comment": "%"}),
        ("x\ty\na\tb\nc\td\n", {"header": "yes"}),
    ],
)
def test_text_dialects_give_equal_links(
    tmp_path: Path, content: str, options: dict[str, Any]
) -> None:
    assert cleaned(tmp_path, content, **options)[0] == AB


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('"a,b","c"\n', [("a,b", "c")]),
        ('"a ""b""",c\n', [('a "b"', "c")]),
        ('"a", "b,c"\n"d", "e,f"\n', [("a", "b,c"), ("d", "e,f")]),
        ('a"b,c\n', [('a"b', "c")]),
    ],
)
def test_csv_unquotes_fields(tmp_path: Path, content: str, expected: list[Any]) -> None:
    assert cleaned(tmp_path, content, "links.csv", header="no")[0] == expected


def test_text_keeps_names_verbatim(tmp_path: Path) -> None:
    rows = [
        ("New York, N.Y.", "Los Angeles"),
        ('"Heroes"', '5" gun'),
        ("Österreich", "日本語 🎉"),
        ("\ufeffmark", "b"),
        ("a b\u2028c", "d\u2029e"),
        ("\u00a0", "back\\slash"),
        ("NULL", "nan"),
        ("e\u0301", "\u00e9"),
    ]
    content = "".join(f"{a}\t{b}\n" for a, b in rows)
    assert sorted(links(read(tmp_path, "#c\n" + content, header="no"))) == sorted(rows)


@pytest.mark.parametrize("file", ["links.tsv", "links.gz", "links.zst"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd.compress, bz2.compress, lzma.compress])
def test_compression_is_detected_by_content(tmp_path: Path, file: str, pack: Any) -> None:
    assert cleaned(tmp_path, pack(b"a\tb\nc\td\n"), file)[0] == AB


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compression_reads_concatenated_members(tmp_path: Path, pack: Any) -> None:
    packed = pack(b"a\tb\nc\t") + pack(b"d\n")
    assert cleaned(tmp_path, packed)[0] == AB


def test_ingest_combines_files_and_globs(tmp_path: Path) -> None:
    (tmp_path / "x1.tsv").write_text("a\tb\n")
    (tmp_path / "x2.csv").write_text("source,target\nc,d\n")
    (tmp_path / "y[1].tsv").write_text("a\tb\n")
    graph = cocite.ingest([tmp_path / "x*", tmp_path / "y[1].tsv"], tmp_path / "g")
    assert links(graph) == AB
    files = [source["file"] for source in graph.store.facts["sources"]]
    assert files == ["x1.tsv", "x2.csv", "y[1].tsv"]
    assert graph.info().duplicates == 1


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_ingest_reads_whole_pipe(tmp_path: Path, pack: Any) -> None:
    """Longer than the sample, and with the first bytes one at a time."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    packed = pack(b"a\tb\n" * 50_000 + b"c\td\n")

    def is_drained(pipe: int) -> bool:
        return fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)) == bytes(4)

    def write() -> None:
        with pipe.open("wb", buffering=0) as out:
            for byte in packed[:20]:
                out.write(bytes([byte]))
                wait_for(partial(is_drained, out.fileno()))
            out.write(packed[20:])

    writer = threading.Thread(target=write)
    writer.start()
    graph = cocite.ingest(pipe, tmp_path / "g")
    writer.join()
    assert links(graph) == AB
    assert graph.info().rows == 50_001


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("\ufeff", "is empty"),
        ("# nothing\n", "has only 1 comment line"),
        ("# a\n# b\nsource,target\n", "has only 2 comment lines and 1 header row"),
    ],
)
def test_ingest_refuses_input_without_links(tmp_path: Path, content: str, problem: str) -> None:
    error = refused(tmp_path, UnrecognizedInput, content)
    file = tmp_path / "links.tsv"
    assert str(error) == (f"there are no links: {file} {problem}. Pass files with one link per row")
    assert nothing_left(tmp_path)


def test_ingest_accepts_empty_part(tmp_path: Path) -> None:
    """As clusters write them; with a file of nodes, there may be no links at all."""
    (tmp_path / "part-0").write_text("")
    (tmp_path / "part-1").write_text("a\tb\n")
    assert links(cocite.ingest(tmp_path / "part-*", tmp_path / "g")) == [("a", "b")]
    (tmp_path / "nodes").write_text("a\nb\n")
    graph = cocite.ingest(tmp_path / "part-0", tmp_path / "h", nodes=tmp_path / "nodes")
    assert (graph.nodes, graph.edges) == (2, 0)


def test_read_as_describes_guesses(tmp_path: Path) -> None:
    _, found = cleaned(tmp_path, "# c\nid,from,to\n\n1,2,3\n", columns=("from", "to"))
    assert found.describe().endswith(
        "links.tsv: comma-separated, a header, 1 comment line, 3 columns, with links from column "
        "2 to column 3"
    )
    assert (found.rows, found.comments, found.blank_lines) == (1, 1, 1)


NAME = st.text(st.sampled_from('ab é"7'), min_size=1, max_size=6).filter(
    lambda name: name == name.strip()
)
LINE = st.one_of(
    st.tuples(NAME, NAME).map("\t".join),
    st.sampled_from(["", "# note", " ", "only one", "a\tb\tc", "x" * 30]),
)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(LINE, st.sampled_from(["\n", "\r\n", "\r"])), max_size=12),
    st.booleans(),
    st.integers(2, 9),
)
def test_text_is_independent_of_piece_size(
    tmp_path: Path, lines: list[tuple[str, str]], ended: bool, piece: int
) -> None:
    content = "a\tb\n" + "".join(line + end for line, end in lines) + "c\td" * (not ended)
    options: dict[str, Any] = {"delimiter": "tab", "header": "no", "bad_rows": "all"}
    with pytest.MonkeyPatch.context() as patch:
        # The first piece decides the columns: fix them, whatever its size.
        patch.setattr(reader.Cleaner, "_choose_columns", _two_columns)
        whole = cleaned(tmp_path, content, **options)
        patch.setattr(reader, "_PIECE", piece)
        assert cleaned(tmp_path, content, **options) == whole


def _two_columns(cleaner: reader.Cleaner, first: list[str], ends: object) -> None:
    cleaner.found.columns, cleaner.found.taken = 2, (0, 1)


def test_nodes_file_has_one_name_per_line(tmp_path: Path) -> None:
    """Names may contain blanks, and a first line `page` is not a header."""
    (tmp_path / "l.tsv").write_text("a\tb\n")
    (tmp_path / "n.txt").write_text("page\nNew York\nLos Angeles, CA\n")
    graph = cocite.ingest(tmp_path / "l.tsv", tmp_path / "g", nodes=tmp_path / "n.txt")
    assert list(graph.names) == ["Los Angeles, CA", "New York", "a", "b", "page"]


def test_nodes_table_uses_first_column(tmp_path: Path) -> None:
    (tmp_path / "l.tsv").write_text("1\t2\n")
    (tmp_path / "n.csv").write_text("id,label\n7,seven\n8,eight\n")
    graph = cocite.ingest(tmp_path / "l.tsv", tmp_path / "g", nodes=tmp_path / "n.csv")
    assert list(graph.names) == ["1", "2", "7", "8"]
