"""Destinations of tables: a file, local or at a URL, or an SQLite, DuckDB or PostgreSQL table.

To detect errors early, a write without rows is tried before any other work. Each write is one
transaction: rows go into a temporary table, which replaces the old table at the end. An existing
table is replaced (``overwrite``), extended (``append``), or refused; a view is always refused. A
replaced table loses its indexes and permissions; if a view depends on the table, the write fails. A
new table gets an index on its column ``node``, except in DuckDB, which scans columns.

SQLite and PostgreSQL need memory for a batch of rows. DuckDB needs 250 MB, and disk space for a
temporary copy of the rows next to its file.
"""

from __future__ import annotations

import os
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_hexdigest

from cocite.errors import OutputExists, ResourceError, StoreError, UsageError
from cocite.io.database import (
    Address,
    address_of,
    connect,
    literal,
    quoted,
    quoted_column,
    reported,
)
from cocite.io.remote import Remote, bare
from cocite.io.writers.tables import ROWS, ArrayFile, Columns, TableFile, Types, rows_of, staged
from cocite.storage import disk, staged_file, staged_folder


@dataclass(frozen=True)
class FileTarget:
    """A file and its writer; with a ``url``, the file is written locally, then uploaded."""

    path: Path
    writer: TableFile | ArrayFile
    url: str | None = None

    @property
    def label(self) -> str:
        """Return the path, or the URL without its password."""
        return str(self.path) if self.url is None else bare(self.url)

    @property
    def is_array(self) -> bool:
        """Return whether the file is an array by id, without names."""
        return isinstance(self.writer, ArrayFile)

    @property
    def memory(self) -> int:
        """Return the writer's memory in bytes."""
        return self.writer.memory if isinstance(self.writer, TableFile) else 0

    def expect(self, types: Types) -> None:
        """Accept any columns."""

    def write_table(self, pieces: Iterable[Columns], types: Types) -> int:
        """Write chunks of rows; return the file's size in bytes."""
        assert isinstance(self.writer, TableFile)
        with self._staged() as path:
            self.writer.write(path, pieces, types)
            return path.stat().st_size

    def write_array(
        self, pieces: Iterable[NDArray[Any]], dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> None:
        """Write an array of type ``dtype`` and ``shape``; ``pieces`` are its elements in order."""
        assert isinstance(self.writer, ArrayFile)
        with self._staged() as path:
            self.writer.write(path, pieces, dtype, shape)

    @contextmanager
    def _staged(self) -> Iterator[Path]:
        """Yield a temporary path, which is then renamed or uploaded."""
        if self.url is None:
            with staged_file(self.path) as file:
                yield Path(file.name)
            return
        with TemporaryDirectory(prefix="cocite-") as directory:
            path = Path(directory, self.path.name)
            yield path
            folder_at(self.url).put(path, self.path.name)


def folder_at(url: str) -> Remote:
    """Return the remote folder of the file at ``url``."""
    return Remote(url.rpartition("/")[0])


# -- dialects ----------------------------------------------------------------------------

_CONNECTION_MEMORY = 100 << 20
_PATIENCE = 60_000
"""Milliseconds that SQLite waits for other writers."""
_PART = re.compile(r'"((?:[^"]|"")+)"')


@dataclass(frozen=True)
class TablePlace:
    """A table name in a ``schema`` ("" for the connection's default).

    ``kind`` is what exists under that name: ``table``, ``view`` (anything not writable), or "".
    """

    schema: str
    name: str
    kind: str = ""

    @property
    def sql(self) -> str:
        """Return the name quoted for SQL."""
        return ".".join(quoted_column(part) for part in (self.schema, self.name) if part)

    def temporary(self) -> TablePlace:
        """Return an unused name in the same schema."""
        return TablePlace(self.schema, f"cocite_{secrets.token_hex(8)}")


def _titles(types: Types) -> str:
    return ", ".join(map(quoted_column, types))


class Dialect(ABC):
    """A connection in a transaction, which is rolled back on closing unless committed."""

    memory: ClassVar[int]
    """Memory of the driver, in bytes."""
    types: ClassVar[dict[str, str]] = {}
    """Maps DuckDB's column types to those of this database, where they differ."""
    begins: ClassVar[tuple[str, ...]] = ("BEGIN",)

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        for statement in self.begins:
            connection.execute(statement)

    def find(self, table: str) -> TablePlace:
        """Return a table's place, even if the table does not exist."""
        parts = [part.replace('""', '"') for part in _PART.findall(quoted(table))]
        if len(parts) > 2:
            raise UsageError(f"{table} has {len(parts)} parts; it must be TABLE or SCHEMA.TABLE")
        return self._found("" if len(parts) == 1 else parts[0], parts[-1])

    @abstractmethod
    def _found(self, schema: str, name: str) -> TablePlace:
        """Return the place for a name, with its schema, and what exists there."""

    def create(self, place: TablePlace, types: Types) -> None:
        """Create an empty table."""
        columns = ", ".join(
            f"{quoted_column(title)} {self.types.get(kind, kind)}" for title, kind in types.items()
        )
        self.connection.execute(f"CREATE TABLE {place.sql} ({columns})")

    def index(self, place: TablePlace, column: str) -> None:  # noqa: B027 - not everywhere
        """Create an index on a column."""

    def size(self, place: TablePlace) -> int | None:
        """Return a table's size in bytes, or None if unknown."""
        return None

    @abstractmethod
    def load(self, place: TablePlace, pieces: Iterable[Columns], types: Types) -> None:
        """Add rows to a table."""


class _SQLite(Dialect):
    memory = 20 << 20
    types: ClassVar = {"VARCHAR": "TEXT", "BIGINT": "INTEGER", "DOUBLE": "REAL", "FLOAT": "REAL"}
    # Lock for writing immediately, because upgrading a read lock can fail.
    begins: ClassVar[tuple[str, ...]] = (f"PRAGMA busy_timeout = {_PATIENCE}", "BEGIN IMMEDIATE")

    def __init__(self, connection: Any) -> None:
        connection.isolation_level = None
        super().__init__(connection)

    def _found(self, schema: str, name: str) -> TablePlace:
        master = f"{quoted_column(schema or 'main')}.sqlite_master"
        row = self.connection.execute(
            f"SELECT type, name FROM {master} WHERE lower(name) = lower(?)", [name]
        ).fetchone()
        kind = "" if row is None else "table" if row[0] == "table" else "view"
        return TablePlace(schema or "main", name if row is None else row[1], kind)

    def index(self, place: TablePlace, column: str) -> None:
        """Create an index named after the table and column, with a suffix if that name exists."""
        name = f"{place.name}_{column}"
        if self._found(place.schema, name).kind:
            name += f"_{secrets.token_hex(4)}"
        named = TablePlace(place.schema, name).sql
        self.connection.execute(
            f"CREATE INDEX {named} ON {quoted_column(place.name)} ({quoted_column(column)})"
        )

    def load(self, place: TablePlace, pieces: Iterable[Columns], types: Types) -> None:
        """Add rows, one statement each."""
        marks = ", ".join("?" * len(types))
        insert = f"INSERT INTO {place.sql} ({_titles(types)}) VALUES ({marks})"
        for piece in pieces:
            self.connection.executemany(insert, rows_of(piece, types))


class _DuckDB(Dialect):
    memory = 250 << 20

    def _found(self, schema: str, name: str) -> TablePlace:
        row = self.connection.execute(
            "SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE "
            "table_catalog = current_database() AND lower(table_name) = lower($name) AND "
            "lower(table_schema) = lower(coalesce($schema, current_schema()))",
            {"name": name, "schema": schema or None},
        ).fetchone()
        if row is None:
            return TablePlace(schema, name)
        return TablePlace(row[0], row[1], "table" if row[2] == "BASE TABLE" else "view")

    def load(self, place: TablePlace, pieces: Iterable[Columns], types: Types) -> None:
        """Add rows in one statement, from a temporary database next to this one."""
        (file,) = self.connection.execute(
            "SELECT path FROM duckdb_databases() WHERE database_name = current_database()"
        ).fetchone()
        titles = _titles(types)
        with staged_folder(Path(file)) as folder:
            path = folder / "rows.duckdb"
            with staged(path, pieces, types):
                pass
            alias = f"cocite_{secrets.token_hex(8)}"
            self.connection.execute(f"ATTACH {literal(str(path))} AS {alias} (READ_ONLY)")
            self.connection.execute(
                f"INSERT INTO {place.sql} ({titles}) SELECT {titles} FROM {alias}.{ROWS}"
            )


class _Postgres(Dialect):
    memory = 40 << 20
    types: ClassVar = {"VARCHAR": "text", "DOUBLE": "double precision", "FLOAT": "real"}
    begins: ClassVar[tuple[str, ...]] = ()  # the driver begins with the first statement

    def _found(self, schema: str, name: str) -> TablePlace:
        row = self.connection.execute(
            "SELECT nspname, relname, relkind FROM pg_class JOIN pg_namespace n ON n.oid = "
            "relnamespace WHERE pg_class.oid = to_regclass(%s)",
            [TablePlace(schema, name).sql],
        ).fetchone()
        if row is not None:
            return TablePlace(row[0], row[1], "table" if row[2] in ("r", "p") else "view")
        (first,) = self.connection.execute("SELECT current_schema()").fetchone()
        return TablePlace(schema or first or "", name)

    def index(self, place: TablePlace, column: str) -> None:
        """Create an index whose name the server chooses."""
        self.connection.execute(f"CREATE INDEX ON {place.sql} ({quoted_column(column)})")

    def size(self, place: TablePlace) -> int | None:
        """Return a table's size in bytes, including indexes."""
        row = self.connection.execute(
            "SELECT pg_total_relation_size(%s::regclass)", [place.sql]
        ).fetchone()
        return int(row[0])

    def load(self, place: TablePlace, pieces: Iterable[Columns], types: Types) -> None:
        """Add rows using COPY."""
        cursor = self.connection.cursor()
        with cursor.copy(f"COPY {place.sql} ({_titles(types)}) FROM STDIN") as out:
            for piece in pieces:
                for row in rows_of(piece, types):
                    out.write_row(row)


_DIALECTS: dict[str, type[Dialect]] = {"sqlite": _SQLite, "duckdb": _DuckDB, "postgres": _Postgres}
_BESIDE = ("", "-journal", "-wal", "-shm", ".wal")


@dataclass(frozen=True)
class DatabaseTarget:
    """A database table, and what to do if it exists."""

    address: Address
    overwrite: bool = False
    append: bool = False

    @property
    def label(self) -> str:
        """Return the address without its password."""
        return f"{self.address.label}#{self.address.table}"

    @property
    def plain(self) -> str:
        """Return the table's name in a form that is valid as a file name."""
        table = re.sub(r"[^\w.-]", "_", self.address.table)
        if self.address.is_file:
            return f"{Path(self.address.place).name}#{table}"
        return f"{table}-{xxh3_64_hexdigest(self.label.encode())[:8]}"

    @property
    def memory(self) -> int:
        """Return the driver's memory in bytes."""
        return _DIALECTS[self.address.kind].memory

    def expect(self, types: Types) -> None:
        """Try to write the table without rows, and roll back."""
        if self.address.is_file and not os.path.exists(self.address.place):
            _check_writable(Path(self.address.place))
            return
        with self._transaction() as database:
            self._fill(database, [], types)

    def write_table(self, pieces: Iterable[Columns], types: Types) -> int | None:
        """Write chunks of rows in one transaction; return the size in bytes, or None."""
        made = None
        if self.address.is_file:
            path = Path(self.address.place)
            disk.make_folder(path.parent)
            made = None if path.exists() else path
        try:
            with self._transaction() as database:
                size = self._fill(database, pieces, types)
                database.connection.commit()
        except BaseException:
            for ending in _BESIDE if made else ():
                disk.remove(Path(f"{made}{ending}"))
            raise
        return made.stat().st_size if made else size

    def trial(self, pieces: Iterable[Columns], types: Types, folder: Path) -> int | None:
        """Write some rows to a temporary table; return its size in bytes, or None if unknown."""
        if self.address.is_file:
            place = folder / "trial"
            disk.remove(place)
            trial = replace(self, address=Address(self.address.kind, str(place), "trial"))
            return trial.write_table(pieces, types)
        with self._transaction() as database:
            table = database.find(self.address.table).temporary()
            database.create(table, types)
            database.load(table, pieces, types)
            return database.size(table)

    def _fill(self, database: Dialect, pieces: Iterable[Columns], types: Types) -> int | None:
        """Fill the table within a transaction; return its size in bytes, if known."""
        place, execute = database.find(self.address.table), database.connection.execute
        if place.kind == "view":
            raise OutputExists(f"{self.label} is not a writable table: choose another table")
        if place.kind and not (self.overwrite or self.append):
            raise OutputExists(
                f"{self.label} exists. Choose another table, or pass --overwrite (overwrite=True) "
                "to replace it, or --append (append=True) to add rows to it"
            )
        new, titles = place.temporary(), _titles(types)
        database.create(new, types)
        if place.kind and self.append:
            # Fails if the columns do not match.
            execute(f"INSERT INTO {place.sql} ({titles}) SELECT {titles} FROM {new.sql}")
            execute(f"DROP TABLE {new.sql}")
            database.load(place, pieces, types)
            return None
        database.load(new, pieces, types)
        if place.kind:
            execute(f"DROP TABLE {place.sql}")
        execute(f"ALTER TABLE {new.sql} RENAME TO {quoted_column(place.name)}")
        if "node" in types:
            database.index(place, "node")
        return database.size(place)

    @contextmanager
    def _transaction(self) -> Iterator[Dialect]:
        """Open a transaction, rolled back unless committed; convert its errors."""
        address = self.address
        try:
            with (
                reported(address, StoreError),
                closing(
                    connect(address, write=True, memory=_CONNECTION_MEMORY, threads=1)
                ) as connection,
            ):
                yield _DIALECTS[address.kind](connection)
        except UnicodeEncodeError as error:
            raise UsageError(
                f"{address.label}: a name cannot be encoded as {error.encoding}: {error.object!r}. "
                "Write a file of JSON lines (.jsonl)"
            ) from None
        except StoreError as error:
            message = str(error).lower()
            if any(sign in message for sign in ("disk is full", "no space left", "file too large")):
                raise ResourceError(
                    f"{error}. Free disk space, and run the same command again"
                ) from None
            raise


def database_target(
    to: str, *, overwrite: bool = False, append: bool = False, types: Types | None = None
) -> DatabaseTarget:
    """Check that the table at an address can be written, with these column types if known; return
    the target. Raises :class:`~cocite.errors.UsageError`, :class:`~cocite.errors.OutputExists`, and
    :class:`~cocite.errors.InputError` if the database cannot be opened.
    """
    if overwrite and append:
        raise UsageError(
            "a table is either replaced or extended: choose --overwrite (overwrite=True) or "
            "--append (append=True)"
        )
    address = address_of(to, files=True)
    if not address.table:
        raise UsageError(
            f"{address.label} has no table: add one after a #, as in sqlite:///site.db#related"
        )
    found = DatabaseTarget(address, overwrite, append)
    if types is not None or not append:
        found.expect(types or {"node": "VARCHAR"})
    return found


def _check_writable(path: Path) -> None:
    """Raise :class:`StoreError` unless a file can be created at ``path``."""
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise StoreError(f"{path} cannot be created: {folder} is not writable. Choose another path")


Target = FileTarget | DatabaseTarget
"""Destination of a table; ``label`` is its name in messages."""
