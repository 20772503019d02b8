"""Nothing that is no list of links is read as one: a table of the formats that people have."""

from pathlib import Path

import pytest

from cocite.errors import InputError, UnrecognizedInput
from cocite.io.readers import ReadOptions, Source
from cocite.io.readers.formats import reader_at, reader_of, readers
from tests.io.known_formats import ASKED, NO_TABLES, REFUSED
from tests.io.plain import nothing_left, refused

CASES = [
    pytest.param(name, content, id=f"{name} {number}")
    for name, contents in REFUSED.items()
    for number, content in enumerate(contents)
]


@pytest.mark.parametrize(("name", "content"), CASES)
@pytest.mark.parametrize("file", ["links.tsv", "links.csv"])
def test_known_format_is_named(tmp_path: Path, name: str, content: str | bytes, file: str) -> None:
    """However lines end, and whatever becomes of bad rows."""
    forms = [content] if isinstance(content, bytes) else [content, content.replace("\n", "\r\n")]
    for form in forms:
        for bad_rows in ("stop", "all"):
            error = refused(tmp_path, UnrecognizedInput, form, file, bad_rows=bad_rows)
            begin = f"{tmp_path / file} is {name}, which cocite does not read. "
            assert str(error).startswith(begin)
            assert len(str(error)) > len(begin) + 15
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("message", ASKED)
def test_ingest_asks_about_what_is_not_clear(tmp_path: Path, message: str) -> None:
    refused(tmp_path, UnrecognizedInput, ASKED[message], bad_rows="all", match=message)


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
    ],
)
def test_links_with_names_like_these_are_links(tmp_path: Path, content: str) -> None:
    path = tmp_path / "l.txt"
    path.write_text(content)
    reader = reader_of(Source(path), ReadOptions())
    assert reader in {reader_at(readers()[called]) for called in ("text", "adjacency")}


@pytest.mark.parametrize("content", NO_TABLES)
def test_text_that_is_no_table_is_refused(tmp_path: Path, content: str) -> None:
    refused(tmp_path, InputError, content)
