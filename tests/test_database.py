"""Databases by address: what is named, what is opened, and that passwords are kept."""

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
def test_address_has_kind_place_table(text: str, kind: str, place: str, table: str) -> None:
    assert is_address(text)
    assert address_of(text) == Address(kind, place, table)


@pytest.mark.parametrize("text", ["links.tsv", "C:\\links.tsv", "http://x/y", "duckdb", "-"])
def test_what_is_no_address(text: str) -> None:
    assert not is_address(text)
    with pytest.raises(UsageError, match="not a database address; valid forms are sqlite:///"):
        address_of(text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("sqlite://site.db", "three slashes"),
        ("sqlite:///", "contains no file name"),
        ("sqlite:///:memory:", "contains no file name"),
        ("duckdb:x#", "no table name follows the #"),
        ("postgres:web", "postgres://USER@HOST/DATABASE"),
        ("postgres://u:secret@[::1/web", "IPv6"),
    ],
)
def test_an_address_that_is_none_is_refused_without_its_password(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what.replace("[", r"\[")) as refused:
        address_of(text)
    assert "secret" not in str(refused.value)


def test_files_are_told_by_what_they_hold_then_by_their_endings(tmp_path: Path) -> None:
    light, duck, other = tmp_path / "a.bin", tmp_path / "b.db", tmp_path / "c.db"
    with sqlite3.connect(light) as connection:
        connection.execute("CREATE TABLE links (a, b)")
    duckdb.connect(str(duck)).close()
    other.write_text("a\tb\n")
    assert address_of(str(light), files=True).kind == "sqlite"
    assert address_of(f"{duck}#links", files=True) == Address("duckdb", str(duck), "links")
    assert address_of("new.duckdb", files=True).kind == "duckdb"
    with pytest.raises(UsageError, match=r"c\.db is not an SQLite or DuckDB database"):
        address_of(str(other), files=True)
    with pytest.raises(UsageError, match="neither an SQLite or DuckDB file nor a database address"):
        address_of("links.tsv", files=True)


def test_passwords_are_neither_shown_nor_said() -> None:
    address = address_of("postgres://me:a%2Fb@host:5432/web?password=other&sslmode=require#links")
    assert address.label == "postgres://me@host:5432/web"
    assert address_of("postgres:///web").label == "postgres:///web"
    shown = f"{address!r} {address.label} " + address.masked("a%2Fb, a/b\nor other")
    assert not any(word in shown for word in ("a%2Fb", "a/b", "other"))
    assert address.masked("a%2Fb, a/b\nor other") == "***, *** or ***"


def test_names_of_tables_are_quoted() -> None:
    assert quoted("links") == '"links"'
    assert quoted("web.links of May") == '"web"."links of May"'
    assert quoted('web."a.b ""c"""') == '"web"."a.b ""c"""'
    for name in ("", "a..b", 'a"; DROP TABLE b; --', '"a', "a\0b"):
        with pytest.raises(UsageError, match="not a valid table name"):
            quoted(name)


@pytest.mark.parametrize(("kind", "ending"), [("sqlite", "db"), ("duckdb", "duckdb")])
def test_files_are_made_only_for_writing(kind: str, ending: str, tmp_path: Path) -> None:
    address = address_of(f"{kind}:///{tmp_path}/a %41?#.{ending}#links")
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
def test_a_file_that_is_damaged_is_said(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"no database at all" * 1000)
    with pytest.raises(InputError, match=r"x: .*not a"):
        connect(address_of(f"{kind}:{path}"))


@pytest.mark.process
@pytest.mark.chosen
def test_a_server_is_written_and_read(postgres: str) -> None:
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
def test_a_server_that_refuses_is_said_without_the_password(postgres: str) -> None:
    for wrong in (
        postgres.replace("tester:", "other:"),
        postgres.replace("/postgres", "/nothing"),
        postgres + "?nothing=1",
        postgres.replace("127.0.0.1:", "127.0.0.1:1"),
    ):
        with pytest.raises(InputError, match="postgres://") as refused:
            connect(address_of(wrong))
        assert PASSWORD not in str(refused.value)
        assert "heim" not in str(refused.value)


def test_a_driver_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingLibrary, match=r"psycopg, which is not installed.*\[postgres\]"):
        connect(address_of("postgres://host/web"))


# -- databases of strangers ----------------------------------------------------------------


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
def test_a_view_of_a_stranger_reads_no_file(query: str, as_titles: bool, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("root\tsecret-word\nx\ty\n")
    duckdb.sql(f"COPY (SELECT 'secret-word' AS a, 'y' AS b) TO '{tmp_path}/one.parquet'")
    (tmp_path / "links.tsv").write_text("root\tx\n")
    with duckdb.connect(str(tmp_path / "e.duckdb")) as made:
        made.execute("CREATE VIEW v AS " + query.format(file=secret, folder=tmp_path))
    what = {"titles": str(tmp_path / "e.duckdb") + "#v", "inputs": tmp_path / "links.tsv"}
    given = what if as_titles else {"database": str(tmp_path / "e.duckdb"), "table": "v"}
    with pytest.raises(InputError, match="Views may only read tables") as refused:
        cocite.ingest(output=tmp_path / "g", **given)
    assert "secret-word" not in str(refused.value)
    assert not (tmp_path / "g").exists()


def test_a_view_of_a_stranger_sees_no_variable_and_no_extension(tmp_path: Path) -> None:
    frame = {"a": ["x"], "b": ["y"]}
    address = Address("duckdb", str(tmp_path / "e.duckdb"))
    with duckdb.connect(address.place) as made:
        made.execute("CREATE TABLE t AS SELECT 'x' AS a, 'y' AS b")
        made.execute("CREATE VIEW v AS FROM t")
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


def test_a_view_of_sqlite_calls_nothing_that_acts(tmp_path: Path) -> None:
    path = tmp_path / "e.sqlite"
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE VIEW v AS SELECT name AS a, path AS b FROM dbstat")
        made.execute("CREATE VIEW w AS SELECT load_extension('x') AS a, 'y' AS b")
        made.commit()
    for view in "vw":
        with pytest.raises(InputError, match=r"e\.sqlite: "):
            cocite.ingest(database=str(path), table=view, output=tmp_path / "g")


def test_a_damaged_schema_is_refused(tmp_path: Path) -> None:
    """Python's driver fails at it with an error of its own and not of SQLite."""
    path = tmp_path / "e.sqlite"
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE links (source TEXT, target TEXT)")
        made.commit()
    path.write_bytes(path.read_bytes().replace(b"(source TEXT", b"\xff\xff\xff)urce TEXT"))
    with pytest.raises(InputError, match=r"e\.sqlite: "):
        cocite.ingest(database=str(path), table="links", output=tmp_path / "g")


def test_a_backslash_leads_duckdb_to_no_other_file(tmp_path: Path) -> None:
    """DuckDB takes a backslash behind a slash for a second slash."""
    with duckdb.connect(str(tmp_path / "x.duckdb")) as made:
        made.execute("CREATE TABLE links AS SELECT 'other' AS a, 'file' AS b")
    (tmp_path / "\\x.duckdb").write_bytes((tmp_path / "x.duckdb").read_bytes())
    with pytest.raises(InputError, match="Rename the file"):
        cocite.ingest(database=str(tmp_path / "\\x.duckdb"), output=tmp_path / "g")


@pytest.mark.parametrize("name", ["a*.x", "a?", "a[1]", "[!a]", "**", "{a,b}", "a\\b", "~", "%41"])
def test_a_path_is_no_pattern(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (name, "ab", "a1", "b"):
        (tmp_path / folder).mkdir(exist_ok=True)
        for file in (name, "ab.x", "ab", "a1", "b"):
            place = tmp_path / folder / file
            duckdb.sql(f"COPY (SELECT '{place}' AS x) TO '{place}' (FORMAT parquet)")
    wanted = Path(name, name)
    query = f"SELECT x, filename FROM read_parquet({file_literal(wanted)})"
    found = duckdb.execute(query).fetchall()
    assert found == [(str(tmp_path / wanted),) * 2]


def test_a_path_that_cannot_be_written_as_a_pattern_is_refused() -> None:
    with pytest.raises(InputError, match=r"h/a\\b\*: DuckDB cannot read .*Rename the file"):
        file_literal("h/a\\b*")
