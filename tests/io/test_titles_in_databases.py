"""Titles out of tables of databases."""

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
WANTED = ["Ä page", None, "The last one"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
    "named", ["sqlite:///site.db#pages", "site.db#pages", "duckdb:///site.duckdb", "site.duckdb"]
)
def test_titles_of_a_table(here: Path, named: str) -> None:
    graph = cocite.ingest("links.tsv", "g", header="no", titles=named)
    assert titles_of(graph) == WANTED
    kind = "SQLite" if "site.db" in named else "DuckDB"
    facts = graph.store.facts["titles"]
    (source,) = facts["sources"]
    file, column = ("site.db", "title") if kind == "SQLite" else ("site.duckdb", "label")
    assert source["read_as"].startswith(
        f"{file}{'#pages' * ('#' in named)}: 3 titles, a table in {kind}, in column {column!r} "
        "for the names in "
    )
    assert (source["without"], facts["unknown"], facts["strangers"]) == (2, 1, ["d"])
    assert str(here) not in json.dumps(facts)
    in_memory = cocite.ingest([("a", "b"), ("c", "b"), ("a", "c")], titles=named)
    assert titles_of(in_memory) == WANTED


@pytest.mark.process
def test_titles_of_a_server(here: Path, postgres: str, capsys: pytest.CaptureFixture[str]) -> None:
    import psycopg

    with psycopg.connect(postgres) as connection:
        connection.execute("create table pages (url text, headline text, n integer)")
        with connection.cursor() as cursor:
            cursor.executemany("insert into pages values (%s, %s)", PAGES)
    graph = cocite.ingest("links.tsv", "g", header="no", titles=f"{postgres}#pages")
    with psycopg.connect(postgres) as connection:
        connection.execute("drop table pages")
    assert titles_of(graph) == WANTED
    told = json.dumps(graph.store.facts)
    assert PASSWORD not in told
    assert "pages: 3 titles, a table in PostgreSQL, in column 'headline'" in told
    assert main(["related", "links.tsv", "a", "--titles", f"{postgres}#pages"]) == 2
    assert "cannot be detected: store the titles with a graph" in capsys.readouterr().err
    assert not cached_stores("links.tsv")


def test_columns_and_several_tables(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("more.tsv").write_text("b\tFrom a file\na\tToo late\n")
    named = ["site.db#pages", "more.tsv"]
    graph = cocite.ingest("links.tsv", "g", header="no", titles=named)
    assert titles_of(graph) == ["Ä page", "From a file", "The last one"]
    command = ["ingest", "links.tsv", "-o", "h", "--header", "no", "--titles", "site.db#pages"]
    assert main([*command, "--title-columns", "url,url"]) == 2
    assert main([*command, "--title-columns", "URL,title"]) == 0
    said = capsys.readouterr()
    assert "read site.db#pages: 3 titles, a table in SQLite, in column 'title'" in said.err
    assert titles_of(Graph.open("h")) == WANTED


def test_titles_of_a_file_of_links_are_read_when_they_are_named(
    here: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    def told(*more: str) -> Any:
        assert main(["nodes", "links.tsv", "a", *more, "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)["nodes"][0].get("title")

    assert told("--titles", "site.db#pages") == "Ä page"
    assert told() == "Ä page"
    with sqlite3.connect("site.db") as sqlite:
        sqlite.execute("update pages set title = 'Another, which is longer' where url = 'a'")
    sqlite.close()
    assert told() == "Ä page"  # the cache names nothing that is read
    assert told("--titles", "site.db#pages") == "Another, which is longer"
    Path("site.db").unlink()
    assert told() == "Another, which is longer"
    with Path("links.tsv").open("a") as file:
        file.write("a\tnew\n")
    with caplog.at_level("WARNING", "cocite"):
        assert told() is None
    assert "has changed, so titles are read again: pass them with --titles sqlite:" in caplog.text


@pytest.mark.parametrize(
    ("named", "error", "said"),
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
def test_wrong_table_refused(here: Path, named: str, error: type[Exception], said: str) -> None:
    for file, row in (("blobs.db", ("a", b"\xff")), ("floats.db", (1.5, "x"))):
        with sqlite3.connect(file) as sqlite:
            sqlite.execute("create table t (name, title)")
            sqlite.execute("insert into t values (?, ?)", row)
        sqlite.close()
    Path("cut.db").write_bytes(Path("site.db").read_bytes()[:1000])
    with pytest.raises(error, match=said):
        cocite.ingest("links.tsv", "g", header="no", titles=named)
    assert not Path("g").exists()
