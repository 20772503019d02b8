"""Databases by address: how addresses are parsed and opened, and that passwords stay hidden."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

import cocite
from cocite.errors import InputError, UsageError
from cocite.extras import MissingLibrary
from cocite.io.database import (
    Address,
    address_of,
    connect,
    file_literal,
    is_address,
    quoted,
    reported,
)
from tests.postgres import PASSWORD


@pytest.mark.parametrize(
    ("text", "kind", "place", "table"),
    [
        ("sqlite:///site.db", "sqlite", "site.db", ""),
        ("sqlite:////var/site.db#related", "sqlite", "/var/site.db", "related"),
        ("sqlite:site.db", "sqlite", "site.db", ""),
        ("SQLite:a#b.db#related", "sqlite", "a#b.db", "related"),
        ("duckdb:///../x.duckdb#main.related", "duckdb", "../x.duckdb", "main.related"),
        ("duckdb:/x.duckdb", "duckdb", "/x.duckdb", ""),
        ("postgres://host/web", "postgres", "postgresql://host/web", ""),
        ("postgresql:///web?host=/tmp#a", "postgres", "postgresql:///web?host=/tmp", "a"),
    ],
)
def test_address_of_parses_kind_place_and_table(
    text: str, kind: str, place: str, table: str
) -> None:
    assert is_address(text)
    assert address_of(text) == Address(kind, place, table)


@pytest.mark.parametrize("text", ["links.tsv", "C:\\links.tsv", "http://x/y", "duckdb", "-"])
def test_address_of_refuses_other_text(text: str) -> None:
    assert not is_address(text)
    with pytest.raises(UsageError, match="not a database address; valid forms are sqlite:///"):
        address_of(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sqlite://site.db", "three slashes"),
        ("sqlite:///", "contains no file name"),
        ("sqlite:///:memory:", "contains no file name"),
        ("duckdb:x#", "no table name follows the #"),
        ("postgres:web", "postgres://USER@HOST/DATABASE"),
        ("postgres://u:secret@[::1/web", "IPv6"),
    ],
)
def test_address_of_error_hides_password(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("[", r"\[")) as refused:
        address_of(text)
    assert "secret" not in str(refused.value)


def test_address_of_detects_kind_by_content_then_suffix(tmp_path: Path) -> None:
    lite, duck, other = tmp_path / "a.bin", tmp_path / "b.db", tmp_path / "c.db"
    with sqlite3.connect(lite) as connection:
        connection.execute("CREATE TABLE links (a, b)")
    duckdb.connect(str(duck)).close()
    other.write_text("a\tb\n")
    assert address_of(str(lite), files=True).kind == "sqlite"
    assert address_of(f"{duck}#links", files=True) == Address("duckdb", str(duck), "links")
    assert address_of("new.duckdb", files=True).kind == "duckdb"
    with pytest.raises(UsageError, match=r"c\.db is not an SQLite or DuckDB database"):
        address_of(str(other), files=True)
    with pytest.raises(UsageError, match="neither an SQLite or DuckDB file nor a database address"):
        address_of("links.tsv", files=True)


def test_address_masks_password() -> None:
    address = address_of("postgres://me:a%2Fb@host:5432/web?password=other&sslmode=require#links")
    assert address.label == "postgres://me@host:5432/web"
    assert address_of("postgres:///web").label == "postgres:///web"
    output = f"{address!r} {address.label} " + address.masked("a%2Fb, a/b\nor other")
    assert not any(word in output for word in ("a%2Fb", "a/b", "other"))
    assert address.masked("a%2Fb, a/b\nor other") == "***, *** or ***"


def test_quoted_quotes_table_names() -> None:
    assert quoted("links") == '"links"'
    assert quoted("web.links of May") == '"web"."links of May"'
    assert quoted('web."a.b ""c"""') == '"web"."a.b ""c"""'
    for name in ("", "a..b", 'a"; DROP TABLE b; --', '"a', "a\0b"):
        with pytest.raises(UsageError, match="not a valid table name"):
            quoted(name)


@pytest.mark.parametrize(("kind", "suffix"), [("sqlite", "db"), ("duckdb", "duckdb")])
def test_connect_creates_file_only_for_writing(kind: str, suffix: str, tmp_path: Path) -> None:
    address = address_of(f"{kind}:///{tmp_path}/a %41?#.{suffix}#links")
    with pytest.raises(InputError, match="no such file"):
        connect(address)
    connection = connect(address, write=True, memory=1 << 28, threads=1)
    connection.execute("CREATE TABLE links (a TEXT, b TEXT)")
    connection.execute("INSERT INTO links VALUES ('x', 'y')")
    connection.commit()
    connection.close()
    assert Path(address.place).is_file()
    connection = connect(address)
    assert connection.execute("SELECT * FROM links").fetchall() == [("x", "y")]
    with (
        pytest.raises(InputError, match=r"\.(db|duckdb): .*(readonly|read-only)"),
        reported(address),
    ):
        connection.execute("INSERT INTO links VALUES ('y', 'z')")
    connection.close()


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_connect_reports_damaged_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"no database at all" * 1000)
    with pytest.raises(InputError, match=r"x: .*not a"):
        connect(address_of(f"{kind}:{path}"))


@pytest.mark.process
@pytest.mark.chosen
def test_postgres_round_trips_table(postgres: str) -> None:
    address = address_of(postgres + "#links")
    assert PASSWORD not in address.label
    connection = connect(address, write=True)
    connection.execute("CREATE TABLE links (a TEXT, b TEXT)")
    connection.execute("INSERT INTO links VALUES ('x', 'y')")
    connection.commit()
    connection.close()
    connection = connect(address)
    assert connection.execute("SELECT * FROM links").fetchall() == [("x", "y")]
    with pytest.raises(InputError, match=r"postgres://tester@127.*read-only"), reported(address):
        connection.execute("DROP TABLE links")
    connection.close()
    connection = connect(address, write=True)
    connection.execute("DROP TABLE links")
    connection.commit()
    connection.close()


@pytest.mark.process
def test_postgres_error_hides_password(postgres: str) -> None:
    for address in (
        postgres.replace("tester:", "other:"),
        postgres.replace("/postgres", "/nothing"),
        postgres + "?nothing=1",
        postgres.replace("127.0.0.1:", "127.0.0.1:1"),
    ):
        with pytest.raises(InputError, match="postgres://") as refused:
            connect(address_of(address))
        assert PASSWORD not in str(refused.value)
        assert "heim" not in str(refused.value)


def test_postgres_names_missing_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingLibrary, match=r"psycopg, which is not installed.*\[postgres\]"):
        connect(address_of("postgres://host/web"))


# -- untrusted databases -------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "SELECT content AS a, content AS b FROM read_text('{file}')",
        "SELECT * FROM read_csv('{file}', names = ['a', 'b'])",
        "SELECT file AS a, file AS b FROM glob('{folder}/*')",
        "SELECT a, b FROM '{folder}/one.parquet'",
    ],
)
@pytest.mark.parametrize("as_titles", [False, True], ids=["links", "titles"])
def test_duckdb_view_reads_no_file(query: str, as_titles: bool, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("root\tsecret-word\nx\ty\n")
    duckdb.sql(f"COPY (SELECT 'secret-word' AS a, 'y' AS b) TO '{tmp_path}/one.parquet'")
    (tmp_path / "links.tsv").write_text("root\tx\n")
    with duckdb.connect(str(tmp_path / "e.duckdb")) as database:
        database.execute("CREATE VIEW v AS " + query.format(file=secret, folder=tmp_path))
    titled = {"titles": str(tmp_path / "e.duckdb") + "#v", "inputs": tmp_path / "links.tsv"}
    options = titled if as_titles else {"database": str(tmp_path / "e.duckdb"), "table": "v"}
    with pytest.raises(InputError, match="Views may only read tables") as refused:
        cocite.ingest(output=tmp_path / "g", **options)
    assert "secret-word" not in str(refused.value)
    assert not (tmp_path / "g").exists()


def test_duckdb_view_reaches_no_variable_or_extension(tmp_path: Path) -> None:
    frame = {"a": ["x"], "b": ["y"]}
    address = Address("duckdb", str(tmp_path / "e.duckdb"))
    with duckdb.connect(address.place) as database:
        database.execute("CREATE TABLE t AS SELECT 'x' AS a, 'y' AS b")
        database.execute("CREATE VIEW v AS FROM t")
    with connect(address) as connection:
        assert connection.execute("FROM v").fetchall() == [("x", "y")]
        for query in (
            "FROM frame",
            "LOAD httpfs",
            "INSTALL httpfs",
            "SET threads = 1",
            f"ATTACH '{tmp_path}/f.duckdb'",
            "FROM 'http://127.0.0.1:9/x.parquet'",
        ):
            with pytest.raises(InputError, match=r"e\.duckdb: "), reported(address):
                connection.execute(query)
    assert frame


def test_sqlite_view_calls_no_unsafe_function(tmp_path: Path) -> None:
    path = tmp_path / "e.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE VIEW v AS SELECT name AS a, path AS b FROM dbstat")
        database.execute("CREATE VIEW w AS SELECT load_extension('x') AS a, 'y' AS b")
        database.commit()
    for view in "vw":
        with pytest.raises(InputError, match=r"e\.sqlite: "):
            cocite.ingest(database=str(path), table=view, output=tmp_path / "g")


def test_sqlite_refuses_damaged_schema(tmp_path: Path) -> None:
    """Python's driver raises an error of its own for it, not one of SQLite."""
    path = tmp_path / "e.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE links (source TEXT, target TEXT)")
        database.commit()
    path.write_bytes(path.read_bytes().replace(b"(source TEXT", b"\xff\xff\xff)urce TEXT"))
    with pytest.raises(InputError, match=r"e\.sqlite: "):
        cocite.ingest(database=str(path), table="links", output=tmp_path / "g")


def test_duckdb_refuses_path_with_backslash(tmp_path: Path) -> None:
    """DuckDB takes a backslash after a slash for a second slash."""
    with duckdb.connect(str(tmp_path / "x.duckdb")) as database:
        database.execute("CREATE TABLE links AS SELECT 'other' AS a, 'file' AS b")
    (tmp_path / "\\x.duckdb").write_bytes((tmp_path / "x.duckdb").read_bytes())
    with pytest.raises(InputError, match="Rename the file"):
        cocite.ingest(database=str(tmp_path / "\\x.duckdb"), output=tmp_path / "g")


@pytest.mark.parametrize("name", ["a*.x", "a?", "a[1]", "[!a]", "**", "{a,b}", "a\\b", "~", "%41"])
def test_file_literal_escapes_pattern_characters(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (name, "ab", "a1", "b"):
        (tmp_path / folder).mkdir(exist_ok=True)
        for file in (name, "ab.x", "ab", "a1", "b"):
            target = tmp_path / folder / file
            duckdb.sql(f"COPY (SELECT '{target}' AS x) TO '{target}' (FORMAT parquet)")
    path = Path(name, name)
    query = f"SELECT x, filename FROM read_parquet({file_literal(path)})"
    found = duckdb.execute(query).fetchall()
    assert found == [(str(tmp_path / path),) * 2]


def test_file_literal_refuses_backslash_with_wildcard() -> None:
    with pytest.raises(InputError, match=r"h/a\\b\*: DuckDB cannot read .*Rename the file"):
        file_literal("h/a\\b*")
