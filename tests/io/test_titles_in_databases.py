"""Titles from database tables."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pytest

import cocite
from cocite import Graph
from cocite.cli.main import main
from cocite.errors import InputError, UsageError
from cocite.search.cache import cached_stores
from tests.io.plain import titles_of
from tests.postgres import PASSWORD

PAGES = [("a", "Ä page"), ("b", None), ("c", " The\n last  one "), (None, "nobody"), ("d", "x")]
EXPECTED = ["Ä page", None, "The last one"]


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path("links.tsv").write_text("a\tb\nc\tb\na\tc\n")
    with sqlite3.connect("site.db") as sqlite:
        sqlite.execute("create table pages (n integer, title text, url text)")
        sqlite.executemany("insert into pages (url, title) values (?, ?)", PAGES)
        sqlite.execute("create table others (x text)")
    sqlite.close()
    with duckdb.connect("site.duckdb") as database:
        database.execute("create table pages (id text, label text)")
        database.executemany("insert into pages values (?, ?)", PAGES)
    return tmp_path


@pytest.mark.parametrize(
    "titles", ["sqlite:///site.db#pages", "site.db#pages", "duckdb:///site.duckdb", "site.duckdb"]
)
def test_titles_option_reads_database_table(workdir: Path, titles: str) -> None:
    graph = cocite.ingest("links.tsv", "g", header="no", titles=titles)
    assert titles_of(graph) == EXPECTED
    kind = "SQLite" if "site.db" in titles else "DuckDB"
    facts = graph.store.facts["titles"]
    (source,) = facts["sources"]
    file, column = ("site.db", "title") if kind == "SQLite" else ("site.duckdb", "label")
    assert source["read_as"].startswith(
        f"{file}{'#pages' * ('#' in titles)}: 3 titles, a table in {kind}, in column {column!r} "
        "for the names in "
    )
    assert (source["without"], facts["unknown"], facts["strangers"]) == (2, 1, ["d"])
    assert str(workdir) not in json.dumps(facts)
    in_memory = cocite.ingest([("a", "b"), ("c", "b"), ("a", "c")], titles=titles)
    assert titles_of(in_memory) == EXPECTED


@pytest.mark.process
def test_titles_option_reads_postgres_table(
    workdir: Path, postgres: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import psycopg

    with psycopg.connect(postgres) as connection:
        connection.execute("create table pages (url text, headline text, n integer)")
        with connection.cursor() as cursor:
            cursor.executemany("insert into pages values (%s, %s)", PAGES)
    graph = cocite.ingest("links.tsv", "g", header="no", titles=f"{postgres}#pages")
    with psycopg.connect(postgres) as connection:
        connection.execute("drop table pages")
    assert titles_of(graph) == EXPECTED
    facts = json.dumps(graph.store.facts)
    assert PASSWORD not in facts
    assert "pages: 3 titles, a table in PostgreSQL, in column 'headline'" in facts
    assert main(["related", "links.tsv", "a", "--titles", f"{postgres}#pages"]) == 2
    assert "cannot be detected: store the titles with a graph" in capsys.readouterr().err
    assert not cached_stores("links.tsv")


def test_titles_option_takes_several_sources_and_columns(
    workdir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("more.tsv").write_text("b\tFrom a file\na\tToo late\n")
    sources = ["site.db#pages", "more.tsv"]
    graph = cocite.ingest("links.tsv", "g", header="no", titles=sources)
    assert titles_of(graph) == ["Ä page", "From a file", "The last one"]
    command = ["ingest", "links.tsv", "-o", "h", "--header", "no", "--titles", "site.db#pages"]
    assert main([*command, "--title-columns", "url,url"]) == 2
    assert main([*command, "--title-columns", "URL,title"]) == 0
    captured = capsys.readouterr()
    assert "read site.db#pages: 3 titles, a table in SQLite, in column 'title'" in captured.err
    assert titles_of(Graph.open("h")) == EXPECTED


def test_titles_option_is_cached_until_links_change(
    workdir: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    def shown_title(*options: str) -> Any:
        assert main(["nodes", "links.tsv", "a", *options, "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)["nodes"][0].get("title")

    assert shown_title("--titles", "site.db#pages") == "Ä page"
    assert shown_title() == "Ä page"
    with sqlite3.connect("site.db") as sqlite:
        sqlite.execute("update pages set title = 'Another, which is longer' where url = 'a'")
    sqlite.close()
    assert shown_title() == "Ä page"  # site.db is not checked for changes
    assert shown_title("--titles", "site.db#pages") == "Another, which is longer"
    Path("site.db").unlink()
    assert shown_title() == "Another, which is longer"
    with Path("links.tsv").open("a") as file:
        file.write("a\tnew\n")
    with caplog.at_level("WARNING", "cocite"):
        assert shown_title() is None
    warning = "has changed, so titles must be read again: pass them with --titles sqlite:"
    assert warning in caplog.text


@pytest.mark.parametrize(
    ("titles", "error", "message"),
    [
        ("sqlite:///site.db", UsageError, "2 tables: others, pages. Add its name after a #: site"),
        ("site.db#page", UsageError, "has no table 'page'; it has others, pages"),
        ("site.db#others", InputError, "has 1 column, but titles need two"),
        ("sqlite:///none.db#pages", InputError, "none.db: no such file"),
        ("sqlite://host/none.db", UsageError, "takes three slashes"),
        ("none.db#pages", InputError, "no such file"),
        ("blobs.db", InputError, "row 1 has bytes in 'title'; titles must be text"),
        ("floats.db", InputError, "row 1 has 1.5 in 'name'; node names must be whole numbers"),
        ("cut.db#pages", InputError, "cut.db"),
    ],
)
def test_titles_option_rejects_wrong_table(
    workdir: Path, titles: str, error: type[Exception], message: str
) -> None:
    for file, row in (("blobs.db", ("a", b"\xff")), ("floats.db", (1.5, "x"))):
        with sqlite3.connect(file) as sqlite:
            sqlite.execute("create table t (name, title)")
            sqlite.execute("insert into t values (?, ?)", row)
        sqlite.close()
    Path("cut.db").write_bytes(Path("site.db").read_bytes()[:1000])
    with pytest.raises(error, match=message):
        cocite.ingest("links.tsv", "g", header="no", titles=titles)
    assert not Path("g").exists()
