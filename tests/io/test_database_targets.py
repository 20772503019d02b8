"""Database tables as outputs: SQLite, DuckDB, and a real PostgreSQL server."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite.cli.main import main
from cocite.errors import OutputExists, StoreError, UsageError
from cocite.io.database import address_of, connect
from cocite.io.writers import Columns
from cocite.io.writers.databases import DatabaseTarget, database_target
from tests.clock import HOLD, wait_for
from tests.io.test_writers import TYPES, rows_in
from tests.postgres import PASSWORD

KINDS = ("sqlite", "duckdb", pytest.param("postgres", marks=pytest.mark.process))
NAMES = ["a", "tab\tand\nline\\N", 'it\'s "quoted", $1 %s', "é 漢", "", None]


@pytest.fixture(params=KINDS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database that is empty before and after."""
    if request.param != "postgres":
        yield f"{request.param}:///{tmp_path}/x.{request.param}"
        return
    server = request.getfixturevalue("postgres")
    yield server
    execute(server, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")


def execute(address: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements on a separate connection; return the rows of the last."""
    with closing(connect(address_of(address), write=True)) as connection:
        for statement in statements:
            result = connection.execute(statement)
        rows = result.fetchall() if getattr(result, "description", None) else []
        connection.commit()
    return [tuple(row) for row in rows]


def piece(rows: int = len(NAMES), start: int = 0) -> Columns:
    scores, small = np.arange(rows) / 3 + start, np.arange(rows, dtype=np.float32) / 7
    scores[1::4], small[2::4] = np.nan, np.nan
    return {
        "node": np.array((NAMES * rows)[:rows], object),
        "rank": np.arange(rows, dtype=np.int32) + start,
        "big": np.arange(rows) * 2**40,
        "score": scores,
        "small": small,
    }


def rows_of(*pieces: Columns) -> list[tuple[Any, ...]]:
    return rows_in(pieces)


def read(address: str, table: str = "related") -> list[tuple[Any, ...]]:
    """The rows of a table, with single-precision values rounded."""
    rows = execute(address, f"SELECT * FROM {table}")
    return [(*row[:4], row[4] and float(np.float32(row[4]))) for row in rows]


def tables(address: str) -> list[str]:
    """The names of all tables."""
    query = (
        "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        if address.startswith("sqlite")
        else "SELECT table_name FROM information_schema.tables WHERE table_schema IN ('main', "
        "'public') AND table_type = 'BASE TABLE' ORDER BY table_name"
    )
    return [name for (name,) in execute(address, query)]


def test_database_target_writes_all_rows(address: str) -> None:
    target = database_target(f"{address}#related")
    size = target.write_table([piece(), piece(5000, 10)], TYPES)
    assert read(address) == rows_of(piece(), piece(5000, 10))
    assert size is not None
    assert size > 5000 * 20
    assert tables(address) == ["related"]


def test_database_target_uses_native_types(address: str) -> None:
    database_target(f"{address}#related").write_table([piece()], TYPES)
    expected = {
        "sqlite": ["TEXT", "INTEGER", "INTEGER", "REAL", "REAL"],
        "duckdb": list(TYPES.values()),
        "postgres": ["text", "integer", "bigint", "double precision", "real"],
    }
    query = (
        "SELECT type FROM pragma_table_info('related') ORDER BY cid"
        if address.startswith("sqlite")
        else "SELECT data_type FROM information_schema.columns WHERE table_name = 'related' "
        "ORDER BY ordinal_position"
    )
    assert [kind for (kind,) in execute(address, query)] == expected[address_of(address).kind]


def test_database_target_indexes_node_column(address: str) -> None:
    if address.startswith("duckdb"):
        pytest.skip("DuckDB looks through columns")
    explain = "EXPLAIN QUERY PLAN" if address.startswith("sqlite") else "EXPLAIN"
    for _ in range(2):  # also after the table is replaced
        database_target(f"{address}#related", overwrite=True).write_table([piece(20_000)], TYPES)
        if not address.startswith("sqlite"):
            execute(address, "ANALYZE related")
        rows = execute(address, f"{explain} SELECT * FROM related WHERE node = 'none such'")
        assert "related_node" in str(rows)


def test_database_target_handles_existing_table(address: str) -> None:
    table = f"{address}#related"
    database_target(table).write_table([piece()], TYPES)
    with pytest.raises(OutputExists, match=r"#related exists.*--overwrite.*--append"):
        database_target(table)
    database_target(table, append=True, types=TYPES).write_table([piece(9, 100)], TYPES)
    assert read(address) == rows_of(piece(), piece(9, 100))
    database_target(table, overwrite=True).write_table([piece(3)], {**TYPES})
    assert read(address) == rows_of(piece(3))
    database_target(f"{address}#new", append=True, types=TYPES).write_table([piece(2)], TYPES)
    assert read(address, "new") == rows_of(piece(2))
    with pytest.raises(UsageError, match=r"choose --overwrite .* or --append"):
        database_target(table, overwrite=True, append=True)
    assert tables(address) == ["new", "related"]


def test_database_target_appends_by_column_name(address: str) -> None:
    """In another order, next to a user's own columns."""
    execute(address, "CREATE TABLE related (score REAL, remark TEXT, node TEXT)")
    types = {"node": "VARCHAR", "score": "DOUBLE"}
    columns = {"node": np.array(["a"], object), "score": np.array([0.5])}
    database_target(f"{address}#related", append=True, types=types).write_table([columns], types)
    assert execute(address, "SELECT node, score, remark FROM related") == [("a", 0.5, None)]
    with pytest.raises(StoreError, match="rank"):
        database_target(f"{address}#related", append=True, types=TYPES)
    assert tables(address) == ["related"]


def test_database_target_refuses_view(address: str) -> None:
    execute(address, "CREATE TABLE t (node TEXT)", "CREATE VIEW related AS SELECT * FROM t")
    for options in ({}, {"overwrite": True}, {"append": True, "types": {"node": "VARCHAR"}}):
        with pytest.raises(OutputExists, match="is not a writable table"):
            database_target(f"{address}#related", **options)


@pytest.mark.parametrize("mode", ["new", "overwrite", "append"])
def test_database_target_rolls_back_on_interrupt(address: str, mode: str) -> None:
    """On Ctrl-C after half of the rows."""
    table = f"{address}#related"
    if mode != "new":
        database_target(table).write_table([piece()], TYPES)

    def interrupted() -> Iterator[Columns]:
        yield piece(5000)
        raise KeyboardInterrupt

    options = {} if mode == "new" else {mode: True}
    target = DatabaseTarget(address_of(table), **options)
    with pytest.raises(KeyboardInterrupt):
        target.write_table(interrupted(), TYPES)
    if mode == "new" and address_of(address).is_file:
        assert not os.listdir(Path(address_of(address).place).parent)
    else:
        assert tables(address) == ([] if mode == "new" else ["related"])
    if mode != "new":
        assert read(address) == rows_of(piece())


WRITER = f"""
import sys
import numpy as np
from cocite.io.database import address_of
from cocite.io.writers.databases import DatabaseTarget
piece = {{"node": np.array(["a"] * 50_000, object)}}
{HOLD}
def pieces():
    yield piece
    yield piece
    hold()
DatabaseTarget(address_of(sys.argv[1]), overwrite=True).write_table(pieces(), {{"node": "VARCHAR"}})
"""


@pytest.mark.process
def test_database_target_keeps_old_rows_if_killed(address: str) -> None:
    database_target(f"{address}#related").write_table([piece()], TYPES)
    command = [sys.executable, "-c", WRITER, f"{address}#related"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        process.send_signal(signal.SIGKILL)

    def has_old_rows() -> bool:
        """A server takes a moment to see that its client has gone."""
        with suppress(cocite.errors.CociteError):
            return read(address) == rows_of(piece()) and tables(address) == ["related"]
        return False

    wait_for(has_old_rows)


@pytest.mark.process
def test_postgres_readers_see_old_rows_until_commit(postgres: str) -> None:
    database_target(f"{postgres}#related").write_table([piece()], TYPES)
    counts = []

    def pieces() -> Iterator[Columns]:
        yield piece(1000)
        counts.append(len(read(postgres)))
        yield piece(1000)

    database_target(f"{postgres}#related", overwrite=True).write_table(pieces(), TYPES)
    assert counts == [len(NAMES)]
    assert len(read(postgres)) == 2000
    execute(postgres, "DROP TABLE related")


@pytest.mark.process
def test_postgres_target_fails_before_writing(postgres: str) -> None:
    with pytest.raises(StoreError, match='schema "web" does not exist') as caught:
        database_target(f"{postgres}#web.related")
    assert PASSWORD not in str(caught.value)
    execute(postgres, "CREATE SCHEMA web")
    database_target(f"{postgres}#web.related").write_table([piece()], TYPES)
    assert read(postgres, "web.related") == rows_of(piece())
    execute(postgres, "CREATE VIEW seen AS SELECT * FROM web.related")
    with pytest.raises(StoreError, match="other objects depend on it"):
        database_target(f"{postgres}#web.related", overwrite=True)
    execute(postgres, "DROP SCHEMA web CASCADE", "DROP ROLE IF EXISTS reader")
    execute(postgres, "CREATE ROLE reader LOGIN PASSWORD 'secret'")
    reader = postgres.replace("tester:ge%3Aheim%2F%231", "reader:secret")
    with pytest.raises(StoreError, match="permission denied for schema public"):
        database_target(f"{reader}#public.related")
    execute(postgres, "DROP ROLE reader")


@pytest.mark.process
def test_postgres_target_refuses_nul_and_surrogates(postgres: str) -> None:
    nul = {"node": np.array(["a\0b"], object)}
    with pytest.raises(StoreError, match="NUL"):
        database_target(f"{postgres}#related").write_table([nul], {"node": "VARCHAR"})
    surrogate = {"node": np.array(["a\udcff"], object)}
    with pytest.raises(UsageError, match=r"cannot be encoded as utf-8.*Write a file of JSON lines"):
        database_target(f"{postgres}#related").write_table([surrogate], {"node": "VARCHAR"})
    assert tables(postgres) == []


def test_database_target_reports_bad_address(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no table: add one after a #"):
        database_target(f"sqlite:///{tmp_path}/x.db")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot be created: .*file is not writable"):
        database_target(f"sqlite:///{tmp_path}/file/x.db#t")
    database_target(f"sqlite:///{tmp_path}/new/x.db#t").write_table([piece()], TYPES)
    with pytest.raises(UsageError, match=r"has 3 parts; it must be TABLE or SCHEMA\.TABLE"):
        database_target(f"sqlite:///{tmp_path}/new/x.db#a.b.c")
    with sqlite3.connect(tmp_path / "new" / "x.db") as connection:
        connection.execute("PRAGMA user_version = 1")
    assert sorted(os.listdir(tmp_path)) == ["file", "new"]


# -- commands ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> cocite.Index:
    folder = tmp_path_factory.mktemp("databases")
    rng = np.random.default_rng(3)
    links = [(f"page {a}", f"it's {b}") for a, b in rng.integers(0, 30, (150, 2)).tolist()]
    graph = cocite.ingest(links, folder / "g")
    return cocite.build(graph, folder / "i", samples=9, seed=5, measure="psimrank")


def test_related_all_to_database_matches_related(index: cocite.Index, address: str) -> None:
    report = index.related_all(to=f"{address}#related", k=3)
    expected = [
        (node, rank, hit.node, hit.score, hit.stderr)
        for node in index.nodes
        for rank, hit in enumerate(index.related(node, 3), 1)
    ]
    assert execute(address, "SELECT * FROM related") == expected
    assert report.rows == len(expected) > 50
    assert report.bytes is not None
    with pytest.raises(OutputExists):
        index.related_all(to=f"{address}#related", k=3)
    assert index.related_all(to=f"{address}#related", k=2, overwrite=True).rows < len(expected)
    if address.startswith("postgres"):  # the others convert between numbers and text
        index.related_all(to=f"{address}#ids", k=1, ids=True)
        with pytest.raises(StoreError, match="is of type bigint but expression is of type text"):
            index.related_all(to=f"{address}#ids", k=1, append=True)


def test_related_all_to_database_resumes(
    index: cocite.Index, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queried = list(index.nodes)
    index.related_all(to=f"{address}#whole", k=3)
    with monkeypatch.context() as patched:

        def interrupted(self: DatabaseTarget, *arguments: Any) -> int:
            raise KeyboardInterrupt

        patched.setattr(DatabaseTarget, "write_table", interrupted)
        with pytest.raises(KeyboardInterrupt) as caught:
            index.related_all(to=f"{address}#related", k=3)
    place = address_of(address)
    folder = Path(place.place if place.is_file else index.stored.store.path).parent
    (unfinished,) = folder.glob("*.building")
    assert str(unfinished) in " ".join(caught.value.__notes__)
    assert PASSWORD not in str(unfinished)
    report = index.related_all(to=f"{address}#related", k=3)
    assert report.nodes == 0
    assert len(queried) > 25
    whole = execute(address, "SELECT * FROM whole")
    assert execute(address, "SELECT * FROM related") == whole
    assert not list(folder.glob("*.building"))


def test_to_option_works_in_every_command(
    index: cocite.Index, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = str(index.stored.store.path.with_name("g"))
    ranks = cocite.pagerank(cocite.Graph.open(graph))
    for command, table in (
        (["related-all", str(index.stored.store.path), "-k", "2"], "related"),
        (["rank", graph], "ranks"),
        (["rank", graph, "--score", "hubs"], "hubs"),
        (["all-pairs", graph, "--top", "2", "--precision", "double"], "pairs"),
    ):
        assert main([*command, "--to", f"{address}#{table}"]) == 0
        captured = capsys.readouterr()
        assert PASSWORD not in captured.out + captured.err
        assert main([*command, "--to", f"{address}#{table}"]) == 1
        assert f"#{table} exists. Choose another table" in capsys.readouterr().err
        count = len(execute(address, f"SELECT * FROM {table}"))
        if table == "hubs":  # as ranks
            continue
        assert main([*command, "--to", f"{address}#{table}", "--append"]) == 0
        assert len(execute(address, f"SELECT * FROM {table}")) == 2 * count
        assert main([*command, "--to", f"{address}#{table}", "--overwrite"]) == 0
    names = list(cocite.Graph.open(graph).names)
    expected = list(zip(names, ranks.values.tolist(), strict=True))
    assert execute(address, "SELECT node, rank FROM ranks") == expected
    assert tables(address) == ["hubs", "pairs", "ranks", "related"]


REFUSED = {
    "rank G --to sqlite:///x.db#t -o x.csv": "choose --output or --to",
    "rank G -o x.csv --append": "--append needs a database table",
    "rank G -o sqlite:///x.db#t": "a database is not a file: pass it with --to",
    "rank G --to sqlite:///x.db#t --output-format csv": "a database table has no format",
    "all-pairs G": "an output is required: pass --output or --to",
    "related-all G": "an output is required: pass --output or --to",
    "related-all G -o sqlite:///x.db#t": "a database is not a file: pass it with --to",
    "related-all G -o x.csv --to sqlite:///x.db#t": "to a file or to a database",
    "related-all G -o - --to sqlite:///x.db#t": "do not apply to standard output",
    "related-all G -o x.csv --append": "--append needs a database table",
    "related-all G --to nothing#t": "nor a database address",
}


@pytest.mark.parametrize("command", REFUSED)
def test_to_option_refuses_conflicting_options(
    index: cocite.Index,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = str(index.stored.store.path.with_name("g"))
    assert main([graph if word == "G" else word for word in command.split()]) == 2
    assert REFUSED[command] in " ".join(capsys.readouterr().err.split())
    assert os.listdir(tmp_path) == []
