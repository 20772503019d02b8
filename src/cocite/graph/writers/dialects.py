"""What SQLite, DuckDB and PostgreSQL are asked to do when a table is written, each in its words.

Types are given as DuckDB calls them. Rows come in pieces: SQLite takes them row by row, PostgreSQL
by ``COPY``. DuckDB keeps some bytes of every row that a transaction gets piece by piece, so they
come into a database of their own first.
"""

from __future__ import annotations

import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cocite.database import Address, connect, quoted
from cocite.errors import UsageError
from cocite.graph.writers.lines import rows_of
from cocite.graph.writers.tables import ROWS, staged
from cocite.graph.writers.writer import Columns, Types
from cocite.store import folder_beside

__all__ = ["Dialect", "Place", "opened"]

_MEMORY = 100 << 20
_PATIENCE = 60_000
"""Milliseconds that SQLite waits for who else writes."""
_PART = re.compile(r'"((?:[^"]|"")+)"')


@dataclass(frozen=True)
class Place:
    """A name of a table in its ``schema`` ("" for that of the connection); ``kind`` is what has it:
    ``table``, ``view`` for what cannot be written, or "" if it is free.
    """

    schema: str
    name: str
    kind: str = ""

    @property
    def there(self) -> bool:
        """Whether there is a table."""
        return self.kind == "table"

    @property
    def sql(self) -> str:
        """As SQL takes it."""
        return ".".join(_quoted(part) for part in (self.schema, self.name) if part)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Dialect(ABC):
    """A connection, and how it is spoken to."""

    types: dict[str, str]

    def __init__(self, connection: Any) -> None:
        self.connection, self._began = connection, False

    def begin(self) -> None:
        """Begin a transaction."""
        self.connection.execute("BEGIN")
        self._began = True

    def commit(self) -> None:
        """What was done stays."""
        self.connection.execute("COMMIT")
        self._began = False

    def rollback(self) -> None:
        """What was not committed is taken back."""
        if self._began:
            self._began = False
            self.connection.execute("ROLLBACK")

    def find(self, table: str) -> Place:
        """Where a table is, or would be, by what its address says."""
        parts = [part.replace('""', '"') for part in _PART.findall(quoted(table))]
        if len(parts) > 2:
            raise UsageError(f"{table} has more than a schema and a table: write schema.table")
        return self._found("" if len(parts) == 1 else parts[0], parts[-1])

    @abstractmethod
    def _found(self, schema: str, name: str) -> Place:
        """The place with its schema and with what has the name."""

    @staticmethod
    def beside(place: Place) -> Place:
        """A free name in the same schema."""
        return Place(place.schema, f"cocite_{secrets.token_hex(8)}")

    def create(self, place: Place, types: Types) -> None:
        """Make an empty table."""
        columns = ", ".join(f"{_quoted(title)} {self.types[kind]}" for title, kind in types.items())
        self.connection.execute(f"CREATE TABLE {place.sql} ({columns})")

    def copy(self, source: Place, target: Place, types: Types) -> None:
        """Add the rows of one table to another."""
        titles = _titles(types)
        self.connection.execute(
            f"INSERT INTO {target.sql} ({titles}) SELECT {titles} FROM {source.sql}"
        )

    def drop(self, place: Place) -> None:
        """Remove a table."""
        self.connection.execute(f"DROP TABLE {place.sql}")

    def rename(self, place: Place, new: Place) -> None:
        """Give a table another name in its schema."""
        self.connection.execute(f"ALTER TABLE {place.sql} RENAME TO {_quoted(new.name)}")

    def index(self, place: Place, column: str) -> None:  # noqa: B027 - not everywhere
        """Make questions by a column fast."""

    def size(self, place: Place) -> int | None:
        """The bytes of a table, None if they are not known."""
        return None

    @abstractmethod
    def load(self, place: Place, pieces: Iterable[Columns], types: Types) -> None:
        """Add rows to a table."""


def _titles(types: Types) -> str:
    return ", ".join(map(_quoted, types))


class _SQLite(Dialect):
    types = {  # noqa: RUF012 - a table, which nobody changes
        "VARCHAR": "TEXT",
        "BIGINT": "INTEGER",
        "INTEGER": "INTEGER",
        "DOUBLE": "REAL",
        "FLOAT": "REAL",
    }

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {_PATIENCE}")

    def begin(self) -> None:
        """As the one that writes: waiting for it later could fail."""
        self.connection.execute("BEGIN IMMEDIATE")

    def rollback(self) -> None:
        """SQLite itself takes back what went wrong in some cases."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def _found(self, schema: str, name: str) -> Place:
        master = f"{_quoted(schema or 'main')}.sqlite_master"
        row = self.connection.execute(
            f"SELECT type, name FROM {master} WHERE lower(name) = lower(?)", [name]
        ).fetchone()
        kind = "" if row is None else "table" if row[0] == "table" else "view"
        return Place(schema or "main", name if row is None else row[1], kind)

    def index(self, place: Place, column: str) -> None:
        """Under a name of the table's, or, if that is taken, under another one."""
        name = f"{place.name}_{column}"
        if self._found(place.schema, name).kind:
            name += f"_{secrets.token_hex(4)}"
        named = Place(place.schema, name).sql
        self.connection.execute(
            f"CREATE INDEX {named} ON {_quoted(place.name)} ({_quoted(column)})"
        )

    def load(self, place: Place, pieces: Iterable[Columns], types: Types) -> None:
        """Row by row."""
        marks = ", ".join("?" * len(types))
        insert = f"INSERT INTO {place.sql} ({_titles(types)}) VALUES ({marks})"
        for piece in pieces:
            self.connection.executemany(insert, rows_of(piece, types))


class _DuckDB(Dialect):
    types = {kind: kind for kind in ("VARCHAR", "BIGINT", "INTEGER", "DOUBLE", "FLOAT")}  # noqa: RUF012

    def _found(self, schema: str, name: str) -> Place:
        row = self.connection.execute(
            "SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE "
            "table_catalog = current_database() AND lower(table_name) = lower($name) AND "
            "lower(table_schema) = lower(coalesce($schema, current_schema()))",
            {"name": name, "schema": schema or None},
        ).fetchone()
        if row is None:
            return Place(schema, name)
        return Place(row[0], row[1], "table" if row[2] == "BASE TABLE" else "view")

    def load(self, place: Place, pieces: Iterable[Columns], types: Types) -> None:
        """From a file beside that of the database, by one statement, which takes no memory."""
        (file,) = self.connection.execute(
            "SELECT path FROM duckdb_databases() WHERE database_name = current_database()"
        ).fetchone()
        titles = _titles(types)
        with folder_beside(Path(file)) as folder:
            path = folder / "rows.duckdb"
            with staged(path, pieces, types):
                pass
            name, alias = str(path).replace("'", "''"), f"cocite_{secrets.token_hex(8)}"
            self.connection.execute(f"ATTACH '{name}' AS {alias} (READ_ONLY)")
            self.connection.execute(
                f"INSERT INTO {place.sql} ({titles}) SELECT {titles} FROM {alias}.{ROWS}"
            )


class _Postgres(Dialect):
    types = {  # noqa: RUF012
        "VARCHAR": "text",
        "BIGINT": "bigint",
        "INTEGER": "integer",
        "DOUBLE": "double precision",
        "FLOAT": "real",
    }

    def begin(self) -> None:
        """The driver does, with the first statement."""

    def commit(self) -> None:
        """What was done stays."""
        self.connection.commit()

    def rollback(self) -> None:
        """What was not committed is taken back; a connection that broke has done so."""
        if not self.connection.closed:
            self.connection.rollback()

    def _found(self, schema: str, name: str) -> Place:
        row = self.connection.execute(
            "SELECT nspname, relname, relkind FROM pg_class JOIN pg_namespace n ON n.oid = "
            "relnamespace WHERE pg_class.oid = to_regclass(%s)",
            [Place(schema, name).sql],
        ).fetchone()
        if row is not None:
            return Place(row[0], row[1], "table" if row[2] in ("r", "p") else "view")
        (first,) = self.connection.execute("SELECT current_schema()").fetchone()
        return Place(schema or first or "", name)

    def index(self, place: Place, column: str) -> None:
        """Under a name that the server finds."""
        self.connection.execute(f"CREATE INDEX ON {place.sql} ({_quoted(column)})")

    def size(self, place: Place) -> int | None:
        """With its indexes."""
        row = self.connection.execute(
            "SELECT pg_total_relation_size(%s::regclass)", [place.sql]
        ).fetchone()
        return int(row[0])

    def load(self, place: Place, pieces: Iterable[Columns], types: Types) -> None:
        """By COPY."""
        cursor = self.connection.cursor()
        with cursor.copy(f"COPY {place.sql} ({_titles(types)}) FROM STDIN") as out:
            for piece in pieces:
                for row in rows_of(piece, types):
                    out.write_row(row)


_DIALECTS: dict[str, type[Dialect]] = {
    "sqlite": _SQLite,
    "duckdb": _DuckDB,
    "postgres": _Postgres,
}


@contextmanager
def opened(address: Address) -> Iterator[Dialect]:
    """A connection for writing, closed afterwards."""
    connection = connect(address, write=True, memory=_MEMORY, threads=1)
    try:
        yield _DIALECTS[address.kind](connection)
    finally:
        connection.close()
