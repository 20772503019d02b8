"""Unsupported files: errors name the format and say what to do, also if compressed."""

import bz2
import gzip
import io
import lzma
import pickle
import re
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cocite
from cocite.errors import InputError, UnrecognizedInput
from cocite.io.readers import ReadOptions, Source, reader_of
from cocite.io.readers.formats import FORMATS, reader_at, readers
from cocite.io.readers.sources import encoding_of, expand
from tests.io.known_formats import AMBIGUOUS, NOT_TABLES, REFUSED
from tests.io.plain import links, read, refused

HTML = """<!DOCTYPE html>
<html><head><title>Zebra</title></head>
<body>
<a href="lion.html">Lion and</a> others
<a href="horse.html">Horse</a>
</body></html>
"""


def database() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE links (source, target)")
    return connection.serialize()


def array() -> bytes:
    out = io.BytesIO()
    np.save(out, np.arange(6))
    return out.getvalue()


NOISE = np.random.default_rng(7).integers(0, 256, 70_000).astype(np.uint8).tobytes()

UNSUPPORTED: list[tuple[str, bytes | str]] = [
    ("an HTML page", HTML),
    ("an HTML page", "\ufeff\n<!-- made\nby hand -->\n<HTML lang=en>\n<p>a b</p>\n"),
    ("an HTML page", "<ul>\n<li><a href='x'>y</a></li>\n</ul>\n"),
    ("an HTML page", '<?xml version="1.0"?>\n<!DOCTYPE html>\n<html xmlns="x"><head/></html>'),
    ("a dump of a wiki's texts (XML)", '<mediawiki xml:lang="en">\n<page>\n</page>\n'),
    ("XML", '<links>\n<link from="a" to="b"/>\n</links>\n'),
    ("JSON", "[" * 100_000),
    ("Pajek", '% made\n*Network x\n*vertices 2\n1 "a"\n2 "b"\n*edges\n1 2\n'),
    ("Graphviz (DOT)", 'strict graph "my web" {\n a -- b\n}\n'),
    ("a DIMACS, GDF, graph6 or UCINET graph", "c roads\np sp 3 2\na 1 2 5\na 2 3 6\n"),
    ("a DIMACS, GDF, graph6 or UCINET graph", "nodedef>name VARCHAR\na\nb\n"),
    ("a DIMACS, GDF, graph6 or UCINET graph", ">>graph6<<A_\n"),
    ("a PDF", "%!PS-Adobe-3.0\nshow page\n"),
    ("Python or MATLAB data", array()),
    ("an SQLite database", database()),
    ("Python or MATLAB data", pickle.dumps([("a", "b")])),
    ("an image", b"\xff\xd8\xff\xe0\0\x10JFIF\0"),
    ("binary data", b"\x7fELF\2\1\1" + bytes(100)),
    ("binary data", NOISE),
    ("text in an encoding other than UTF-8", "Köln\tZürich\nMünchen\tKöln\n".encode("latin-1")),
    ("text with columns separated by characters of code 1", "a\x01b\nc\x01d\n"),
]


def as_bytes(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content


@pytest.mark.parametrize(("name", "content"), UNSUPPORTED, ids=[name for name, _ in UNSUPPORTED])
def test_reader_of_names_unsupported_format(
    tmp_path: Path, name: str, content: bytes | str
) -> None:
    """Also if packed, if bad rows are skipped, and with the suffix of an edge list."""
    path, plain = tmp_path / "links.tsv", as_bytes(content)
    for packed, data, bad_rows in (
        *(("", plain, "stop"), ("", plain, "all")),
        (" (packed by gzip)", gzip.compress(plain), "all"),
    ):
        path.write_bytes(data)
        with pytest.raises(UnrecognizedInput) as caught:
            reader_of(Source(path), ReadOptions(bad_rows=bad_rows))
        prefix = f"{path} is {name}{packed}, which cocite does not read. "
        assert str(caught.value).startswith(prefix)
        assert caught.value.exit_code == 2
        advice = str(caught.value).removeprefix(prefix)
        assert len(advice) > 15
        assert "{" not in advice.replace("{ ", "")


def test_formats_without_reader_have_cases() -> None:
    untested = (
        {line.name for line in FORMATS if not line.reader}
        - {name for name, _ in UNSUPPORTED}
        - set(REFUSED)
    )
    assert untested == {
        "packed by 7z, rar, lz4, compress or lzip",
        "an Arrow, ORC, Avro or HDF5 table",
        "a DuckDB database",
    }


@pytest.mark.process
def test_ingest_rejects_unsupported_stdin(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cocite", "ingest", "-", "-o", str(tmp_path / "g")]
    result = subprocess.run(
        command, input=gzip.compress(HTML.encode()), capture_output=True, check=False
    )
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.startswith(
        b"Error: standard input is an HTML page (packed by gzip), which"
    )
    result = subprocess.run(command, input=b"a\x01b\n", capture_output=True, check=False)
    assert b"cat FILE | tr '\\001' '\\t' | cocite ingest - -o DIR" in result.stderr
    assert not list(tmp_path.iterdir())


def test_ingest_rejects_doubly_compressed_input(tmp_path: Path) -> None:
    twice, message = bz2.compress(gzip.compress(b"a\tb\n")), r"is binary data \(packed by bzip2\), "
    refused(tmp_path, UnrecognizedInput, twice, match=message)


def test_ingest_rejects_compressed_parquet(tmp_path: Path) -> None:
    packed = lzma.compress(b"PAR1" + bytes(50) + b"PAR1")
    message = r"is Parquet \(packed by xz\), .* unpacked first: xz -dc "
    refused(tmp_path, UnrecognizedInput, packed, match=message)


def test_ingest_rejects_stored_graph_and_index(tmp_path: Path) -> None:
    graph = read(tmp_path, "a\tb\nc\tb\na\td\nc\td\n")
    path = graph.store.path
    cocite.build(graph, tmp_path / "i", measure="cocitation")
    with pytest.raises(UnrecognizedInput, match=r"is already a stored graph\. Index it"):
        cocite.ingest(path, tmp_path / "h")
    with pytest.raises(
        UnrecognizedInput, match=r"i is a stored cocite index\. Query it: cocite related"
    ):
        cocite.ingest(tmp_path / "i", tmp_path / "h")
    with pytest.raises(UnrecognizedInput, match="is JSON"):
        cocite.ingest(path / "manifest.json", tmp_path / "h")


ZURICH = "Köln\tZürich\nZürich\tKöln\n"


@pytest.mark.process
@pytest.mark.parametrize(
    ("content", "expected"),
    [(ZURICH.encode("latin-1"), "Köln>Zürich Zürich>Köln"), ("a\x01b\nb\x01c\n", "a>b b>c")],
)
def test_unrecognized_input_suggests_working_command(
    tmp_path: Path, content: bytes | str, expected: str
) -> None:
    """The suggested shell command works as is; the file name needs quotes."""
    path = tmp_path / "it's links.txt"
    path.write_bytes(gzip.compress(as_bytes(content)))
    with pytest.raises(UnrecognizedInput) as caught:
        cocite.ingest(path, tmp_path / "g")
    found = re.search(r"(gzip -dc .* \| )cocite (ingest - -o )DIR", str(caught.value))
    assert found
    program, graph = shlex.quote(sys.executable), shlex.quote(str(tmp_path / "g"))
    shell_command = f"{found[1]}{program} -m cocite {found[2]}{graph}"
    subprocess.run(["sh", "-c", shell_command], capture_output=True, check=True)
    stored = {f"{a}>{b}".replace(" ", "_") for a, b in links(cocite.Graph.open(tmp_path / "g"))}
    assert stored == set(expected.split())


@pytest.mark.parametrize(
    "content",
    [
        "a b 1\nb c 2\nc d 1\n",
        "a,b\nb,c\nc,d,e\nd,e\n",
        "1 2\n1 3\n2 3\n3 4\n4 4 4\n",
        "1,2,x\n2,3,y\n3,4,z\n5,6\n",
    ],
)
def test_edge_list_with_bad_rows_is_not_adjacent_lists(tmp_path: Path, content: str) -> None:
    error = refused(tmp_path, InputError, content)
    assert "adjacency" not in str(error)


@settings(max_examples=25)
@given(
    st.one_of(
        st.binary(max_size=60),
        st.lists(
            st.sampled_from(
                [b"a", b"b", b"12", b"\t", b",", b" ", b"\n", b"\xc3", b"\0", b'"', b"{"]
            ),
            max_size=30,
        ).map(b"".join),
    ),
    st.booleans(),
)
@example(b"a b\n", False)
@example(b"\xff\xfea\0\t\0b\0\n\0", True)
def test_ingest_handles_random_bytes(tmp_path: Path, content: bytes, skip: bool) -> None:
    """A graph is made only if some delimiter splits most rows into two or more fields."""
    try:
        graph = read(tmp_path, content, bad_rows="few" if skip else "stop")
    except InputError:
        return
    if "format" in graph.store.facts["sources"][0]:
        return  # an adjacency list
    encoding = encoding_of(content)
    content = content.decode(encoding, "replace").encode() if encoding else content
    rows = [line for line in content.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
    good = 0
    for row in rows:
        try:
            text = row.decode("utf-8").strip()
        except UnicodeDecodeError:
            continue
        parts = max((text.split(delimiter) for delimiter in ("\t", ",", ";", "|", None)), key=len)
        good += len(parts) >= 2 and not any(ord(char) < 32 for char in text.replace("\t", ""))
    assert graph.nodes > 0
    assert good * 2 >= len([row for row in rows if not row.strip().startswith(b"#")])
    assert good >= graph.info().rows


def test_expand_shows_paths_of_duplicate_names(tmp_path: Path) -> None:
    for name in ("a/links.tsv", "b/links.tsv", "b/more.tsv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\ty\n")
    found = expand([str(tmp_path / "*" / "*.tsv")])
    assert [source.short for source in found] == [
        str(tmp_path / "a" / "links.tsv"),
        str(tmp_path / "b" / "links.tsv"),
        "more.tsv",
    ]


# -- a table of common formats --------------------------------------------------------------

CASES = [
    pytest.param(name, content, id=f"{name} {number}")
    for name, contents in REFUSED.items()
    for number, content in enumerate(contents)
]


@pytest.mark.parametrize(("name", "content"), CASES)
def test_ingest_names_known_format(tmp_path: Path, name: str, content: str | bytes) -> None:
    """With any line ends, suffix and choice of bad rows: each two of them together."""
    other = content if isinstance(content, bytes) else content.replace("\n", "\r\n")
    for form, file, bad_rows in (
        *((content, "links.tsv", "stop"), (content, "links.csv", "all")),
        *((other, "links.csv", "stop"), (other, "links.tsv", "all")),
    ):
        error = refused(tmp_path, UnrecognizedInput, form, file, bad_rows=bad_rows)
        prefix = f"{tmp_path / file} is {name}, which cocite does not read. "
        assert str(error).startswith(prefix)
        assert len(str(error)) > len(prefix) + 15


@pytest.mark.parametrize("message", AMBIGUOUS)
def test_ingest_rejects_ambiguous_json_lines(tmp_path: Path, message: str) -> None:
    refused(tmp_path, UnrecognizedInput, AMBIGUOUS[message], bad_rows="all", match=message)


@pytest.mark.parametrize(
    "content",
    [
        "import\tos\nfrom\tsys\nclass\tdef\n",
        "# links\n\n1 2\n2 3\n",
        "# FromNodeId\tToNodeId\n0\t1\n1\t2\n",
        "%0 not one\n1 2\n2 3\n",
        "name: a\nb: c\nc: name\n",
        "a: b c\nb: c\nc: a\n",
        "2024-05-01 10:00:00,a\n2024-05-01 10:00:01,b\n",
        "From: a\tTo: b\nSubject: x\tDate: y\n",
        "select\tfrom\nwith\tfrom\n",
        "body {\tmargin: 0;}\na\tb\n",
        "[core]\tb\nname = x\ty\n",
        "d41d8cd98f00b204e9800998ecf8427e 900150983cd24fb0d6963f7d28e17f72\n" * 2,
        "Long names of things,others. Quoted or not\nAnd so it is,again. It is\n",
        '@a\t"b"\n@media {\tc\n',
        ">a\tb\n>b\tc\n",
        "graph\tTD\nTD\tgraph\n",
        *("[1]\t[2]\n[2]\t[3]\n", "[[Main Page]]\t{{Stub}}\n", "{a}\t{b}\n", "<b>\t<i>\n"),
        *("<http://a/>\t<http://b/>\n", "graph\ttree\ngraph\tnode\n", "graph of {x}\ttree\n"),
        *("digraph\tgraph\n", "*Arcs\t*Edges\n", "ORC\tElf\n", "RIFF\tDUCK\n", "BZh9\tgz\n"),
        *("insert into\ttable\n", "p sp 1\tq\n", "%PDX\tb\n", "\ufeff日本\t中国\n"),
        "Köln\tZürich\n",
    ],
)
def test_reader_of_accepts_links_resembling_formats(tmp_path: Path, content: str) -> None:
    path = tmp_path / "l.txt"
    path.write_text(content)
    reader = reader_of(Source(path), ReadOptions())
    assert reader in {reader_at(readers()[name]) for name in ("text", "adjacency")}


@pytest.mark.parametrize("content", NOT_TABLES)
def test_ingest_rejects_text_without_table(tmp_path: Path, content: str) -> None:
    refused(tmp_path, InputError, content)
