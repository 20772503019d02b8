"""Links from databases: queries and tables of SQLite, DuckDB and a real PostgreSQL."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

import cocite
from cocite.cli.main import main
from cocite.errors import CociteError, InputError, MalformedRow, UsageError
from cocite.io.database import address_of, connect
from tests.io.plain import links, source_of, weights_of
from tests.postgres import PASSWORD

ROWS: list[tuple[Any, ...]] = [("a", "b", 1), ("b", "ä c", 2.5), ("ä c", "a", 1), ("a", "b", 4)]
EXPECTED = [("ä c", "a"), ("a", "b"), ("b", "ä c")]

CreateTable = Callable[..., str]


@pytest.fixture(params=["sqlite", "duckdb", "postgres"])
def create_table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CreateTable]:
    """Creates a table and returns its database's address."""
    created: list[tuple[str, str]] = []

    def create(
        rows: list[tuple[Any, ...]] = ROWS,
        columns: str = "id INT, src TEXT, dst TEXT, weight FLOAT",
        table: str = "links",
    ) -> str:
        if request.param == "postgres":
            address = str(request.getfixturevalue("postgres"))
        else:
            address = f"{request.param}:///{tmp_path}/site.{request.param}"
        created.append((address, table))
        placeholder = "%s" if request.param == "postgres" else "?"
        numbered = [(i, *row) for i, row in enumerate(rows)] if columns.startswith("id") else rows
        with closing(connect(address_of(address), write=True)) as connection:
            connection.execute(f"CREATE TABLE {table} ({columns})")
            values = ", ".join([placeholder] * len(numbered[0]))
            connection.cursor().executemany(f"INSERT INTO {table} VALUES ({values})", numbered)
            connection.commit()
        return address

    yield create
    for address, table in created if request.param == "postgres" else ():
        with closing(connect(address_of(address), write=True)) as connection:
            connection.execute(f"DROP TABLE {table}")
            connection.commit()


def test_ingest_table_finds_columns_by_title(create_table: CreateTable, tmp_path: Path) -> None:
    database = create_table()
    graph = cocite.ingest(database=database, table="links", output=tmp_path / "g")
    assert links(graph) == EXPECTED
    source = source_of(graph)
    assert source["rows"] == 4
    assert "columns 'src' and 'dst'" in source["read_as"]
    weighted = cocite.ingest(
        database=database + "#links", output=tmp_path / "h", weight_column="weight"
    )
    assert weights_of(weighted) == dict(zip(EXPECTED, [1.0, 5.0, 2.5], strict=True))
    swapped = cocite.ingest(database=database, columns="dst,src", output=tmp_path / "i")
    assert sorted(links(swapped)) == sorted((b, a) for a, b in EXPECTED)


def test_ingest_table_accepts_column_numbers(create_table: CreateTable, tmp_path: Path) -> None:
    rows = [(1.0, "a", 7, "b"), (2.5, "b", 8, "c")]
    address = create_table(rows, "n FLOAT, page TEXT, id INT, target TEXT")
    graph = cocite.ingest(database=address, output=tmp_path / "g", columns="4,2", weight_column=1)
    assert weights_of(graph) == {("b", "a"): 1.0, ("c", "b"): 2.5}


def test_ingest_table_skips_id_column(create_table: CreateTable, tmp_path: Path) -> None:
    address = create_table(columns="id INT, page TEXT, destination TEXT, n FLOAT")
    guessed = cocite.ingest(database=address, output=tmp_path / "g")
    named = cocite.ingest(database=address, output=tmp_path / "h", columns="page,destination")
    assert links(guessed) == links(named) == EXPECTED
    hint = " (to choose others: --columns SOURCE,TARGET)"
    assert [hint in source_of(graph)["read_as"] for graph in (guessed, named)] == [True, False]


def test_ingest_sql_reads_query(create_table: CreateTable, tmp_path: Path) -> None:
    database = create_table()
    query = "select dst, src as source, dst as target from links where weight < 3;"
    graph = cocite.ingest(sql=query, database=database, output=tmp_path / "g")
    assert sorted(links(graph)) == sorted(EXPECTED)
    numbers = "select id, id + 1 from links order by id"
    graph = cocite.ingest(sql=numbers, database=database, output=tmp_path / "h")
    assert graph.info().names == "integers 0 to n - 1"
    assert links(graph) == [(str(i), str(i + 1)) for i in range(4)]


def test_ingest_sql_is_read_only_and_hides_password(
    create_table: CreateTable, tmp_path: Path
) -> None:
    database = create_table()
    for query in (
        "delete from links",
        "drop table links",
        "insert into links values (1, 'a', 'b')",
    ):
        with pytest.raises(CociteError) as caught:
            cocite.ingest(sql=query, database=database, output=tmp_path / "g")
        assert PASSWORD not in str(caught.value)
    graph = cocite.ingest(database=database, table="links", output=tmp_path / "g")
    assert graph.edges == 3
    for file in (tmp_path / "g").iterdir():
        content = file.read_bytes()
        assert PASSWORD.encode() not in content
        assert b"ge%3Aheim" not in content
        assert str(tmp_path).encode() not in content


def test_ingest_table_reports_bad_rows(create_table: CreateTable, tmp_path: Path) -> None:
    rows = [("a", "b"), (None, "c"), ("b", "c"), ("", "c"), ("b", "c\nd"), ("x", "y")]
    database = create_table(rows, "src TEXT, dst TEXT")
    with pytest.raises(MalformedRow, match="#links:2: "):
        cocite.ingest(database=database, output=tmp_path / "g", table="links")
    assert not list(tmp_path.glob("g*"))
    graph = cocite.ingest(database=database, table="links", output=tmp_path / "g", bad_rows="few")
    assert graph.store.facts["dropped"]["bad_rows"] == 3
    examples = source_of(graph)["examples"]
    assert [text.split(":")[0] for text in examples] == ["row 2", "row 4", "row 5"]
    assert links(graph) == [("a", "b"), ("b", "c"), ("x", "y")]


def test_ingest_table_rejects_fractional_names(create_table: CreateTable, tmp_path: Path) -> None:
    database = create_table([("a", 1.5), ("b", 2.5)], "src TEXT, dst FLOAT")
    with pytest.raises(InputError, match=r"1\.5|FLOAT"):
        cocite.ingest(database=database, table="links", output=tmp_path / "g")


def test_ingest_database_reports_missing_table_or_column(
    create_table: CreateTable, tmp_path: Path
) -> None:
    database = create_table()
    create_table([("a", "b")], "x TEXT, y TEXT", "others")
    out = tmp_path / "g"
    for options, message in (
        ({"table": "pages"}, "has no table 'pages'; it has links, others"),
        ({}, r"has 2 tables: links, others\. Choose a table, or pass a query"),
        (
            {"table": "others", "columns": "from,y"},
            "has no column 'from'; its columns are 'x', 'y'",
        ),
    ):
        with pytest.raises(UsageError, match=message):
            cocite.ingest(database=database, output=out, **options)
    for query, pattern in (
        ("select a, b from nothing", r"site\.|postgres://tester@127"),
        ("selec a", None),
        ("select 1 as a, 2 as b; select 3", None),
    ):
        with pytest.raises(CociteError, match=pattern) as caught:
            cocite.ingest(database=database, sql=query, output=out)
        assert PASSWORD not in str(caught.value)
    assert not list(tmp_path.glob("g*"))


def test_ingest_table_accepts_quoted_names(create_table: CreateTable, tmp_path: Path) -> None:
    database = create_table([("a", "b")], '"from ""x""" TEXT, "to" TEXT', '"web.links"')
    graph = cocite.ingest(database=database, table='"web.links"', output=tmp_path / "g")
    assert links(graph) == [("a", "b")]


def test_ingest_sql_reads_parquet_without_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with duckdb.connect() as database:
        database.execute("copy (select 'a' as src, 'b' as dst, 7 as clicks) to 'clicks.parquet'")
    query = "select src, dst, clicks from 'clicks.parquet' where clicks > 5"
    assert main(["ingest", "--sql", query, "-o", "g", "--format", "json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["edges"] == 1
    assert "read the query: a DuckDB query, columns 'src' and 'dst'" in captured.err
    for bad_query in (
        "copy (select 1) to 'x.csv'",
        "select 1) to 'x.csv' --",
        "create table x (a int)",
    ):
        assert main(["ingest", "--sql", bad_query, "-o", "h"]) in (1, 2)
        assert not Path("x.csv").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sql": "select 1", "inputs": "links.tsv"}, "omit one of the two"),
        ({"table": "links"}, "requires a database"),
        ({"sql": " ; "}, "is empty"),
        ({"sql": "select 1, 2", "database": "a.db", "table": "b"}, "omit one of them"),
        ({"sql": "select 1, 2", "delimiter": "tab"}, "delimiter applies to files"),
        ({"database": "links.tsv"}, "neither an SQLite or DuckDB file"),
    ],
)
def test_ingest_database_rejects_contradictory_options(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        cocite.ingest(output=tmp_path / "g", **options)


def test_ingest_database_reports_missing_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=r"none\.db: no such file"):
        cocite.ingest(database=str(tmp_path / "none.db"), output=tmp_path / "g")
    assert not list(tmp_path.iterdir())
    assert main(["ingest", "-o", str(tmp_path / "g")]) == 2
    assert "LINKS..." in capsys.readouterr().err


def test_ingest_database_rejects_bytes_as_names(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE links (a, b)")
        connection.execute("INSERT INTO links VALUES ('a', 'b'), ('a', CAST(X'ff61' AS TEXT))")
        connection.execute("INSERT INTO links VALUES ('a', X'6162')")
    with pytest.raises(MalformedRow, match=r"x\.db:2: bytes that are not UTF-8"):
        cocite.ingest(database=str(tmp_path / "x.db"), output=tmp_path / "g")
    with pytest.raises(MalformedRow, match=r"x\.db:1: a name of type bytes"):
        cocite.ingest(
            database=str(tmp_path / "x.db"),
            sql="select * from links where rowid = 3",
            output=tmp_path / "g",
        )


def test_ingest_reads_database_as_input(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE links (a, b)")
    with pytest.raises(InputError, match=r"there are no links: .*x\.db is empty"):
        cocite.ingest(tmp_path / "x.db", tmp_path / "g")
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("INSERT INTO links VALUES ('a', 'b')")
    assert links(cocite.ingest(tmp_path / "x.db", tmp_path / "g")) == [("a", "b")]


@pytest.mark.long
def test_ingest_sql_opens_quoted_files_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    for name in ("d/a", "d/b", "it's"):
        quoted = name.replace("'", "''")
        duckdb.sql(f"COPY (SELECT '{quoted}' AS a, 'x' AS b) TO '{quoted}.parquet'")
    duckdb.sql("COPY (SELECT 'c' AS a, 'x' AS b) TO 'c.csv'")
    for query, expected in (
        ("from 'd/*.parquet'", ["d/a", "d/b"]),
        ("from './d/../d/a.parquet'", ["d/a"]),
        ("from read_parquet(['d/a.parquet', 'it''s.parquet'])", ["d/a", "it's"]),
        (f"from '{tmp_path}/d/b.parquet'", ["d/b"]),
        ('from "c.csv"', ["c"]),
        ("from c.csv", ["c"]),
        ("from read_csv('*.csv')", ["c"]),
    ):
        graph = cocite.ingest(sql=query, output=tmp_path / "g", overwrite=True)
        assert sorted(a for a, _ in links(graph)) == expected, query
    with duckdb.connect("e.duckdb") as database:
        database.execute("CREATE VIEW v AS FROM 'd/a.parquet'")
        database.execute("CREATE TABLE t AS SELECT 'd/a' AS a, 'z' AS b")
    join = "select t.a, c.b from t, 'c.csv' c"
    assert links(cocite.ingest(sql=join, database="e.duckdb", output=tmp_path / "h")) == [
        ("d/a", "x")
    ]
    for query in ("from v", "select v.a, c.b from v, 'c.csv' c", "from read_csv('c' || '.csv')"):
        with pytest.raises(
            InputError, match=r"queries .--sql. may also read the files that they quote"
        ):
            cocite.ingest(sql=query, database="e.duckdb", output=tmp_path / "i")
