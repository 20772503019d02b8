"""Titles of nodes: read from tables, stored, kept by indexes, and searched."""

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph
from cocite.cli.main import main
from cocite.errors import Damaged, InputError, MalformedRow, UnrecognizedInput, UsageError
from cocite.index.verify import VerifyDocument
from cocite.io.readers import text as text_reader
from cocite.io.readers.contract import Job, RowBatch
from cocite.io.readers.sources import Source
from tests.conftest import Shell
from tests.io.plain import TURNS, titles_of

LINKS = "a\tb\nb\tc\nc\ta\nb\ta\nc\tb\n"


def titled(tmp_path: Path, content: str | bytes, file: str = "t.tsv", **options: Any) -> Graph:
    """A graph of a, b and c with titles from a file of this content."""
    (tmp_path / "links.tsv").write_text(LINKS)
    path = tmp_path / file
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    output = tmp_path / "out.graph"
    return cocite.ingest(tmp_path / "links.tsv", output, titles=path, overwrite=True, **options)


@pytest.mark.parametrize(
    ("content", "file"),
    [
        ("a\tAlpha\nb\tBeta, the second\n", "t.tsv"),
        ("\ufeffa\tAlpha\r\nb\tBeta, the second\r\n", "t.txt"),
        ("name\ttitle\na\tAlpha\nb\tBeta, the second\n", "t.tsv"),
        ('a,Alpha\nb,"Beta, the second"\n', "t.csv"),
        ('id,title\na,"Alpha"\nb,"Beta,\n the   second "\n', "t.csv"),
        ('title,url,date\nAlpha,a,x\n"Beta, the second",b,y\n', "t.csv"),
        (',page,title\n0,a,Alpha\n1,b,"Beta, the second"\n', "t.csv"),
        ("Id;Label\na;Alpha\nb;Beta, the second\n", "t.txt"),
        ("# pages\n\na\tAlpha\n\nb\tBeta, the second\nc\t\n", "t.tsv"),
        ("a\t  Alpha \nb\tBeta,\x07 the\u00a0second\nc\t \n", "t.tsv"),
        (gzip.compress(b"a\tAlpha\nb\tBeta, the second\n", mtime=0), "t.gz"),
    ],
)
def test_titles_are_read_from_detected_format(
    tmp_path: Path, content: str | bytes, file: str
) -> None:
    graph = titled(tmp_path, content, file)
    assert titles_of(graph) == ["Alpha", "Beta, the second", None]
    facts = graph.store.facts["titles"]
    assert (facts["nodes"], facts["unknown"], facts["others"]) == (2, 0, 0)
    assert VerifyDocument.of(graph.path).faults == []


def test_title_columns_select_columns(tmp_path: Path) -> None:
    content = "name,title,id\nAlpha,x,a\nBeta,y,b\n"
    assert titles_of(titled(tmp_path, content, "t.csv", title_columns="id,name"))[0] == "Alpha"
    assert titles_of(titled(tmp_path, content, "t.csv", title_columns=(3, 2)))[1] == "y"
    assert titles_of(titled(tmp_path, content, "t.csv"))[:2] == ["x", "y"]
    for columns, message in (
        ("id,nobody", "has no column 'nobody'; its columns are 'name', 'tit"),
        ("1,1", "are the same column"),
        ("id", "it must be two columns, name and title"),
    ):
        with pytest.raises(UsageError, match=message):
            titled(tmp_path, content, "t.csv", title_columns=columns)
    with pytest.raises(UsageError, match="requires a table of titles"):
        cocite.ingest(tmp_path / "links.tsv", tmp_path / "g", title_columns="id,name")


def test_titles_are_read_from_parquet(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "t.parquet"
    duckdb.execute(
        "COPY (SELECT * FROM (VALUES ('Beta', 'b', 1), ('Alpha', 'a', 2), (NULL, 'c', 3)) "
        f"t(label, page, n)) TO '{path}'"
    )
    graph = titled(tmp_path, path.read_bytes(), "t.parquet")
    assert titles_of(graph) == ["Alpha", "Beta", None]
    (source,) = graph.store.facts["titles"]["sources"]
    assert source["read_as"] == (
        "t.parquet: 2 titles, Parquet, in column 'label' for the names in 'page' (to choose "
        "others: --title-columns NAME,TITLE), 1 row without a title"
    )


def test_titles_keep_first_of_duplicates(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "more.tsv").write_text("a\tAnother\nc\tGamma\nb\tBeta\n")
    (tmp_path / "links.tsv").write_text(LINKS)
    content = "a\tAlpha\nx\tStranger\nb\tBeta\na\tAleph\ny\tStranger\nx\tAgain\n"
    (tmp_path / "t.tsv").write_text(content)
    graph, titles = tmp_path / "g", [("--titles", tmp_path / f"{n}.tsv") for n in ("t", "more")]
    out, err = shell(["ingest", tmp_path / "links.tsv", "-o", graph, *titles[0], *titles[1]])
    assert err.splitlines()[1:] == [
        "read t.tsv: 6 titles, tab-separated",
        "read more.tsv: 3 titles, tab-separated",
        "  skipped titles of 2 names without a node: 'x', 'y'",
        "  skipped 3 extra titles: each node keeps its first title",
    ]
    counts = "3 nodes; skipped 2 with unknown names; skipped 3 extra titles of these nodes"
    assert f"titles             {counts}\n" in out
    assert titles_of(Graph.open(graph)) == ["Alpha", "Beta", "Gamma"]


@pytest.mark.parametrize(
    ("content", "file", "error", "message"),
    [
        ("alpha\nbeta\n", "t.tsv", InputError, "has one column, as in"),
        ("a The first one\nb Another\n", "t.txt", InputError, "has one column, as in"),
        ("a,Alpha\nb,Beta, the second\n", "t.csv", MalformedRow, "t.csv:2: 3 comma-separated col"),
        (b"a\tAlpha\nb\tB\xe9ta\nc\t\xc3\xa9\n", "t.tsv", MalformedRow, "2: bytes that are not"),
        ("x\tAlpha\ny\tBeta\n", "t.tsv", InputError, "none of the 2 titles belongs to a node: no "),
        ("", "t.tsv", InputError, "contains no titles"),
        ("a\t" + "x" * 65_536 + "\n", "t.tsv", InputError, "65,536 bytes; the maximum is 65,535"),
        ('{"a": "Alpha"}', "t.json", UnrecognizedInput, "is JSON"),
        ("PAR1xxxx", "t.parquet", InputError, "cannot be read as Parquet"),
    ],
)
def test_titles_refuse_invalid_table(
    tmp_path: Path, content: str | bytes, file: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        titled(tmp_path, content, file)
    assert not (tmp_path / "out.graph").exists()


def test_titles_skip_bad_rows_on_request(tmp_path: Path) -> None:
    content = "a,Alpha\nb,Beta, the second\nc,Gamma\n"
    graph = titled(tmp_path, content, "t.csv", bad_rows="few")
    assert titles_of(graph) == ["Alpha", None, "Gamma"]
    assert graph.store.facts["titles"]["sources"][0]["bad_rows"] == {"columns": 1}


@settings(max_examples=10)
@given(
    st.dictionaries(
        st.integers(0, 400),
        st.text(
            st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from("\n\x9b" + TURNS),
            max_size=60,
        ),
        max_size=60,
    ),
    st.booleans(),
)
def test_titles_round_trip_except_blanks(
    tmp_path: Path, titles: dict[int, str], numbers: bool
) -> None:
    """Runs of blanks, control characters and direction controls become one blank."""
    name = str if numbers else "n{}".format
    rows = [(name(i), name((i * 7 + 1) % 401)) for i in range(401)]
    (tmp_path / "l.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    blank = dict.fromkeys([*range(32), *range(127, 160), *map(ord, TURNS)], " ")
    expected = {name(i): " ".join(title.translate(blank).split()) for i, title in titles.items()}
    quoted = {name(i): '"' + t.replace('"', '""') + '"' for i, t in titles.items()}
    content = "id,title\n" + "".join(f"{n},{t}\n" for n, t in quoted.items())
    (tmp_path / "t.csv").write_bytes(content.encode())
    options: dict[str, Any] = {"titles": tmp_path / "t.csv", "comment": "", "overwrite": True}
    if not any(expected.values()):
        with pytest.raises(InputError, match="contains no titles"):
            cocite.ingest(tmp_path / "l.tsv", tmp_path / "g", **options)
        return
    graph = cocite.ingest(tmp_path / "l.tsv", tmp_path / "g", **options)
    found = dict(zip(graph.names, titles_of(graph), strict=True))
    assert {n: t for n, t in found.items() if t} == {n: t for n, t in expected.items() if t}


def test_digest_ignores_titles(tmp_path: Path) -> None:
    """A graph without titles has no trace of them, and the same digest."""
    with_titles = titled(tmp_path, "a\tAlpha\n")
    plain = cocite.ingest(tmp_path / "links.tsv", tmp_path / "plain")
    assert plain.titles is None
    assert "titles" not in plain.store.facts
    files = with_titles.store.manifest.files
    assert files.keys() - plain.store.manifest.files.keys() == {"titles.data", "titles.blocks"}
    assert with_titles.digest == plain.digest


def test_link_reader_passes_titles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Titles of a table come first; titles of unknown nodes alone are no error."""
    reader = text_reader.READER

    def read_with_titles(job: Job, sources: Sequence[Source]) -> Iterator[RowBatch]:
        for name, title in (("a", "Met"), ("b", "Beta\nmet"), ("x", "Nobody"), ("b", "Second")):
            job.titles.add(name, title)
        assert reader.read_many is not None
        yield from reader.read_many(job, sources)

    monkeypatch.setattr(text_reader, "READER", replace(reader, read_many=read_with_titles))
    assert titles_of(titled(tmp_path, "a\tGiven\n")) == ["Given", "Beta met", None]
    graph = cocite.ingest(tmp_path / "links.tsv", tmp_path / "g")
    assert titles_of(graph) == ["Met", "Beta met", None]
    assert graph.store.facts["titles"]["unknown"] == 1
    (tmp_path / "others.tsv").write_text("p\tq\n")
    assert cocite.ingest(tmp_path / "others.tsv", tmp_path / "h").titles is None


def test_index_keeps_titles_of_nodes(tmp_path: Path) -> None:
    graph = titled(tmp_path, "a\tAlpha\nc\tGamma\n")
    options: dict[str, Any] = {"measure": "psimrank", "samples": 4}
    full = cocite.build(graph, tmp_path / "whole", **options)
    assert full.titles is not None
    assert full.titles.of(np.arange(4)) == ["Alpha", "", "Gamma", ""]  # a draft has no title
    selected = cocite.build(graph, tmp_path / "some", only_nodes=["c", "b"], **options)
    assert selected.titles is not None
    assert [selected.titles[node] for node in range(2)] == [None, "Gamma"]
    for path in ("whole", "some"):
        assert VerifyDocument.of(tmp_path / path).faults == []


def test_exclude_nodes_keeps_other_titles(tmp_path: Path) -> None:
    graph = titled(tmp_path, "a\tAlpha\nb\tBeta\n")
    remaining = cocite.ingest(graph.path, tmp_path / "less", exclude_nodes=["a"])
    assert titles_of(remaining) == ["Beta", None]
    assert remaining.store.facts["titles"]["nodes"] == 1
    assert VerifyDocument.of(remaining.path).faults == []
    with pytest.raises(UsageError, match="pages can be excluded from it, but options"):
        cocite.ingest(graph.path, tmp_path / "h", exclude_nodes=["a"], titles=tmp_path / "t.tsv")
    direct = titled(tmp_path, "a\tAlpha\nb\tBeta\n", exclude_nodes=["a"])
    assert titles_of(direct) == ["Beta", None]
    assert direct.store.facts["titles"]["unknown"] == 0


def test_refresh_takes_new_titles(tmp_path: Path) -> None:
    graph = titled(tmp_path, "a\tAlpha\nc\tGamma\n")
    cocite.build(graph, tmp_path / "i", measure="psimrank", samples=4)
    (tmp_path / "new.tsv").write_text(LINKS + "d\ta\n")
    (tmp_path / "new-titles.tsv").write_text("a\tAleph\nd\tDelta\n")
    new = cocite.ingest(
        tmp_path / "new.tsv", tmp_path / "new.graph", titles=tmp_path / "new-titles.tsv"
    )
    assert main(["refresh", str(tmp_path / "i"), str(new.path)]) == 0
    index = cocite.open(tmp_path / "i")
    assert index.titles is not None
    assert index.titles.of(np.arange(4)) == ["Aleph", "", "", "Delta"]
    assert VerifyDocument.of(tmp_path / "i").faults == []


def test_merge_keeps_first_titles(tmp_path: Path) -> None:
    """Indexes of equal links but different titles merge; the first titles win."""
    first = titled(tmp_path, "a\tAlpha\n")
    options: dict[str, Any] = {"measure": "psimrank"}
    cocite.build(first, tmp_path / "i", numbers=range(4), **options)
    second = titled(tmp_path, "a\tAleph\nb\tBeth\n")
    cocite.build(second, tmp_path / "j", numbers=range(4, 8), **options)
    plain = cocite.ingest(tmp_path / "links.tsv", tmp_path / "plain")
    cocite.build(plain, tmp_path / "k", numbers=range(8, 12), **options)
    for order, title in (("ijk", "Alpha"), ("jik", "Aleph"), ("kij", "Alpha")):
        paths = [str(tmp_path / name) for name in order]
        assert main(["merge", *paths, "-o", str(tmp_path / order)]) == 0
        index = cocite.open(tmp_path / order)
        assert index.titles is not None
        assert index.titles[0] == title


def test_verify_reports_damaged_titles(tmp_path: Path) -> None:
    graph = titled(tmp_path, "a\tAlpha\n")
    path = Path(graph.path) / "titles.data"
    original = path.read_bytes()
    path.write_bytes(b"\xff" * len(original))
    with pytest.raises(Damaged, match=r"its titles are damaged [(]see: cocite verify"):
        titles_of(Graph.open(graph.path))
    assert any("titles.data" in fault for fault in VerifyDocument.of(graph.path).faults)


def test_titles_containing_finds_text(tmp_path: Path) -> None:
    titles = titled(tmp_path, "a\tAlpha_one\nc\tDER ALPHA\n").titles
    assert titles is not None
    assert titles.containing("alpha").tolist() == [0, 2]
    assert titles.containing("alpha one").tolist() == [0]
    assert titles.containing("beta").tolist() == []
    assert repr(titles) == "<titles of 3 nodes>"
    assert len(titles) == 3
    with pytest.raises(UsageError):
        titles[3]
