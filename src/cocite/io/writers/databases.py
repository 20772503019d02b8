"""Where a table goes: a file, here or at a URL, or a table of SQLite, DuckDB or PostgreSQL.

All that commands write goes to a :class:`Target`, which is made before any work is done, so that
what cannot be written is refused then.

    --to sqlite:///site.db#related      --to duckdb:///site.duckdb#related
    --to postgres://user@host/db#web.related

Types are given as DuckDB calls them. Rows come in pieces: SQLite takes them row by row, PostgreSQL
by ``COPY``. DuckDB keeps some bytes of every row that a transaction gets piece by piece, so they
come into a database of their own first.

All is one transaction: rows come into a new table under a name of its own, which takes the place of
the old one at the end, so that readers see the old rows or the new ones. What is there is replaced
(``overwrite``), or rows are added to it (``append``), or it is refused; a view always is. A table
that is replaced is dropped: its indexes and rights go with it, and a view of it is an error. A new
table with a column ``node`` has an index of it, but for DuckDB, which looks through columns.

The same is first tried without rows and taken back, which tells of a missing schema or right, or of
columns that do not fit.

Memory: a batch of rows; 250 MB with DuckDB, and the rows once more on disk, beside its file.
Cost: some microseconds a row.
"""

from __future__ import annotations

import os
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_hexdigest

from cocite.errors import OutputExists, ResourceError, StoreError, UsageError
from cocite.io.database import Address, address_of, connect, is_address, quoted, reported
from cocite.io.remote import Remote, bare, is_url
from cocite.io.writers.tables import ROWS, ArrayFile, Columns, TableFile, Types, rows_of, staged
from cocite.storage import check_file, disk, staged_file, staged_folder


class Target(ABC):
    """Where a table may go; ``label`` is what it is called in messages."""

    label: str

    @property
    @abstractmethod
    def memory(self) -> int:
        """Bytes that writing takes, whatever the size."""

    def expect(self, types: Types) -> None:  # noqa: B027 - files take any
        """See that a table of these columns can be written, before any work is done."""

    @abstractmethod
    def write_table(
        self, pieces: Iterable[Columns], types: Types, folder: Path | None = None
    ) -> int | None:
        """Write pieces of equally long columns; ``types`` names them and their SQL types.

        Nothing of it is there until all of it is. Returns its bytes, None if they are not known.
        ``folder``, on the same disk, is where a file grows.
        """


@dataclass(frozen=True)
class FileTarget(Target):
    """A file, and what writes it; with a ``url``, it is written here and sent there whole."""

    path: Path
    writer: TableFile | ArrayFile
    url: str | None = None

    @property
    def label(self) -> str:  # type: ignore[override]
        """Its path, or its URL without a password."""
        return str(self.path) if self.url is None else bare(self.url)

    @property
    def is_array(self) -> bool:
        """Whether it holds numbers by id, and no names."""
        return isinstance(self.writer, ArrayFile)

    @property
    def memory(self) -> int:
        """Of its writer."""
        return self.writer.memory if isinstance(self.writer, TableFile) else 0

    def write_table(
        self, pieces: Iterable[Columns], types: Types, folder: Path | None = None
    ) -> int | None:
        """The file has its name when it is whole."""
        assert isinstance(self.writer, TableFile)
        with self._staged(folder) as path:
            self.writer.write(path, pieces, types)
            return path.stat().st_size

    def write_array(
        self, pieces: Iterable[NDArray[Any]], dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> None:
        """Write an array of that type and shape; the pieces are its elements in their order."""
        assert isinstance(self.writer, ArrayFile)
        with self._staged() as path:
            self.writer.write(path, pieces, dtype, shape)

    @contextmanager
    def _staged(self, folder: Path | None = None) -> Iterator[Path]:
        """Yield a path to write to; what it then holds gets the file's name."""
        if self.url is None:
            with staged_file(self.path, folder) as file:
                yield Path(file.name)
            return
        with TemporaryDirectory(prefix="cocite-") as directory:
            path = Path(directory, self.path.name)
            yield path
            _folder_of(self.url).put_whole(path, self.path.name)


def _folder_of(url: str) -> Remote:
    return Remote(url.rpartition("/")[0])


def name_at(url: str) -> str:
    """The name of the file at a URL; raises :class:`UsageError` for one that leads elsewhere."""
    name = url.rpartition("/")[2]
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        raise UsageError(
            f"{bare(url)} names no file that could be written: of a URL a name has letters, "
            "digits, -, _ and . only"
        )
    return name


def file_target(
    output: str | os.PathLike[str],
    writers: dict[str, TableFile | ArrayFile],
    *,
    kind: str | None = None,
    overwrite: bool = False,
    safe: bool = False,
) -> FileTarget:
    """A file of the ``kind`` that is named, or by the ending of its name, among ``writers`` by
    ending; ``safe`` for spreadsheets or not; before any work is done.

    Raises :class:`~cocite.errors.UsageError` or :class:`~cocite.errors.OutputExists`.
    """
    url = os.fspath(output)
    path = Path(name_at(url)) if is_url(url) and not is_address(url) else Path(output)
    if is_address(os.fspath(output)):
        raise UsageError("a database is no file: name it by --to (to=), and no --output")
    ending = path.suffix if kind is None else f".{kind.lower()}"
    writer = writers.get(ending)
    if writer is None and kind is not None:
        kinds = ", ".join(each.removeprefix(".") for each in writers)
        raise UsageError(f"kind is {kind!r}; it is one of {kinds}")
    if writer is None:
        raise UsageError(
            f"{path} ends in {path.suffix!r}; it ends in one of {', '.join(writers)}. Or say what "
            "it is with --output-format (kind=)"
        )
    if isinstance(writer, TableFile):
        writer.ready()
        writer = writer.safe or writer if safe else writer
    if not is_url(url):
        return FileTarget(check_file(path, overwrite), writer)
    if not overwrite and _folder_of(url).has(path.name):
        raise OutputExists(
            f"{bare(url)} exists. Choose another output, or pass --overwrite (overwrite=True) to "
            "replace it when the new one is complete"
        )
    return FileTarget(path, writer, url)


# -- dialects ----------------------------------------------------------------------------

_MEMORY = 100 << 20
_PATIENCE = 60_000
"""Milliseconds that SQLite waits for who else writes."""
_PART = re.compile(r'"((?:[^"]|"")+)"')


@dataclass(frozen=True)
class TablePlace:
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

    def find(self, table: str) -> TablePlace:
        """Where a table is, or would be, by what its address says."""
        parts = [part.replace('""', '"') for part in _PART.findall(quoted(table))]
        if len(parts) > 2:
            raise UsageError(f"{table} has more than a schema and a table: write schema.table")
        return self._found("" if len(parts) == 1 else parts[0], parts[-1])

    @abstractmethod
    def _found(self, schema: str, name: str) -> TablePlace:
        """The place with its schema and with what has the name."""

    @staticmethod
    def free_place(place: TablePlace) -> TablePlace:
        """A free name in the same schema."""
        return TablePlace(place.schema, f"cocite_{secrets.token_hex(8)}")

    def create(self, place: TablePlace, types: Types) -> None:
        """Make an empty table."""
        columns = ", ".join(f"{_quoted(title)} {self.types[kind]}" for title, kind in types.items())
        self.connection.execute(f"CREATE TABLE {place.sql} ({columns})")

    def copy(self, source: TablePlace, target: TablePlace, types: Types) -> None:
        """Add the rows of one table to another."""
        titles = _titles(types)
        self.connection.execute(
            f"INSERT INTO {target.sql} ({titles}) SELECT {titles} FROM {source.sql}"
        )

    def drop(self, place: TablePlace) -> None:
        """Remove a table."""
        self.connection.execute(f"DROP TABLE {place.sql}")

    def rename(self, place: TablePlace, new: TablePlace) -> None:
        """Give a table another name in its schema."""
        self.connection.execute(f"ALTER TABLE {place.sql} RENAME TO {_quoted(new.name)}")

    def index(self, place: TablePlace, column: str) -> None:  # noqa: B027 - not everywhere
        """Make questions by a column fast."""

    def size(self, place: TablePlace) -> int | None:
        """The bytes of a table, None if they are not known."""
        return None

    @abstractmethod
    def load(self, place: TablePlace, pieces: Iterable[Columns], types: Types) -> None:
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

    def _found(self, schema: str, name: str) -> TablePlace:
        master = f"{_quoted(schema or 'main')}.sqlite_master"
        row = self.connection.execute(
            f"SELECT type, name FROM {master} WHERE lower(name) = lower(?)", [name]
        ).fetchone()
        kind = "" if row is None else "table" if row[0] == "table" else "view"
        return TablePlace(schema or "main", name if row is None else row[1], kind)

    def index(self, place: TablePlace, column: str) -> None:
        """Under a name of the table's, or, if that is taken, under another one."""
        name = f"{place.name}_{column}"
        if self._found(place.schema, name).kind:
            name += f"_{secrets.token_hex(4)}"
        named = TablePlace(place.schema, name).sql
        self.connection.execute(
            f"CREATE INDEX {named} ON {_quoted(place.name)} ({_quoted(column)})"
        )

    def load(self, place: TablePlace, pieces: Iterable[Columns], types: Types) -> None:
        """Row by row."""
        marks = ", ".join("?" * len(types))
        insert = f"INSERT INTO {place.sql} ({_titles(types)}) VALUES ({marks})"
        for piece in pieces:
            self.connection.executemany(insert, rows_of(piece, types))


class _DuckDB(Dialect):
    types = {kind: kind for kind in ("VARCHAR", "BIGINT", "INTEGER", "DOUBLE", "FLOAT")}  # noqa: RUF012

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
        """From a file beside that of the database, by one statement, which takes no memory."""
        (file,) = self.connection.execute(
            "SELECT path FROM duckdb_databases() WHERE database_name = current_database()"
        ).fetchone()
        titles = _titles(types)
        with staged_folder(Path(file)) as folder:
            path = folder / "rows.duckdb"
            with staged(path, pieces, types):
                pass
            name, alias = str(path).replace("'", "''"), f"cocite_{secrets.token_hex(8)}"
            self.connection.execute(f"ATTACH '{name}' AS {alias} (READ_ONLY)")
            self.connection.execute(
                f"INSERT INTO {place.sql} ({titles}) SELECT {titles} FROM {alias}.{ROWS}"
            )


class _Postgres(Dialect):
    types = _DuckDB.types | {"VARCHAR": "text", "DOUBLE": "double precision", "FLOAT": "real"}

    def begin(self) -> None:
        """The driver does, with the first statement."""

    def commit(self) -> None:
        """Keep what was done."""
        self.connection.commit()

    def rollback(self) -> None:
        """What was not committed is taken back; a connection that broke has done so."""
        if not self.connection.closed:
            self.connection.rollback()

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
        """Under a name that the server finds."""
        self.connection.execute(f"CREATE INDEX ON {place.sql} ({_quoted(column)})")

    def size(self, place: TablePlace) -> int | None:
        """With its indexes."""
        row = self.connection.execute(
            "SELECT pg_total_relation_size(%s::regclass)", [place.sql]
        ).fetchone()
        return int(row[0])

    def load(self, place: TablePlace, pieces: Iterable[Columns], types: Types) -> None:
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


# -- databases ---------------------------------------------------------------------------

_DATABASES_MEMORY = {"sqlite": 20 << 20, "duckdb": 250 << 20, "postgres": 40 << 20}
_BESIDE = ("", "-journal", "-wal", "-shm", ".wal")


@dataclass(frozen=True)
class DatabaseTarget(Target):
    """A table of a database, and what to do if it is there."""

    address: Address
    overwrite: bool = False
    append: bool = False

    @property
    def label(self) -> str:  # type: ignore[override]
        """Its address, without the password."""
        return f"{self.address.label}#{self.address.table}"

    @property
    def plain(self) -> str:
        """Its name as one of a file, beside that of a file that holds the database."""
        table = re.sub(r"[^\w.-]", "_", self.address.table)
        if self.address.is_file:
            return f"{Path(self.address.place).name}#{table}"
        return f"{table}-{xxh3_64_hexdigest(self.label.encode())[:8]}"

    @property
    def memory(self) -> int:
        """Of its driver."""
        return _DATABASES_MEMORY[self.address.kind]

    def expect(self, types: Types) -> None:
        """Try without rows, and take it back."""
        if self.address.is_file and not os.path.exists(self.address.place):
            _see_room(Path(self.address.place))
            return
        with self._transaction() as database:
            self._fill(database, [], types)

    def write_table(
        self, pieces: Iterable[Columns], types: Types, folder: Path | None = None
    ) -> int | None:
        """All rows are there at once, or none."""
        return self._write(self.address, pieces, types)

    def trial(self, pieces: Iterable[Columns], types: Types, folder: Path) -> int | None:
        """The bytes that some rows take, which are taken back."""
        if self.address.is_file:
            kind, place = self.address.kind, folder / "trial"
            disk.remove(place)
            return self._write(Address(kind, str(place), "trial"), pieces, types)
        with self._transaction() as database:
            place_of = database.free_place(database.find(self.address.table))
            database.create(place_of, types)
            database.load(place_of, pieces, types)
            return database.size(place_of)

    def _write(self, address: Address, pieces: Iterable[Columns], types: Types) -> int | None:
        made = None
        if address.is_file:
            disk.make_folder(Path(address.place).parent)
            made = None if os.path.exists(address.place) else Path(address.place)
        target = DatabaseTarget(address, self.overwrite, self.append)
        try:
            with target._transaction() as database:
                size = target._fill(database, pieces, types)
                database.commit()
        except BaseException:
            for ending in _BESIDE if made else ():
                disk.remove(Path(f"{made}{ending}"))
            raise
        return made.stat().st_size if made else size

    def _fill(self, database: Dialect, pieces: Iterable[Columns], types: Types) -> int | None:
        """Make the table, within a transaction; returns its bytes, if they are known."""
        place = database.find(self.address.table)
        self._see_free(database)
        if place.there and self.append:
            empty = database.free_place(place)
            database.create(empty, types)
            database.copy(empty, place, types)  # raises if columns do not fit
            database.drop(empty)
            database.load(place, pieces, types)
            return None
        new = database.free_place(place)
        database.create(new, types)
        database.load(new, pieces, types)
        if place.there:
            database.drop(place)
        database.rename(new, place)
        if "node" in types:
            database.index(place, "node")
        return database.size(place)

    def _see_free(self, database: Dialect) -> None:
        place = database.find(self.address.table)
        if place.kind == "view":
            raise OutputExists(f"{self.label} is no table that could be written: choose another")
        if place.there and not (self.overwrite or self.append):
            raise OutputExists(
                f"{self.label} exists. Choose another table, or pass --overwrite to replace it, or "
                "--append to add rows to it"
            )

    @contextmanager
    def _transaction(self) -> Iterator[Dialect]:
        """A transaction that is taken back unless it is committed."""
        with _explained(self.address), opened(self.address) as database:
            database.begin()
            try:
                yield database
            finally:
                database.rollback()


def database_target(
    to: str, *, overwrite: bool = False, append: bool = False, types: Types | None = None
) -> DatabaseTarget:
    """The table that an address names behind its ``#``, if it may be written as asked, with
    ``types`` if they are known; before any work is done.

    Raises :class:`~cocite.errors.UsageError`, :class:`~cocite.errors.OutputExists`, and
    :class:`~cocite.errors.InputError` if the database cannot be opened.
    """
    if overwrite and append:
        raise UsageError("a table is replaced or added to: choose --overwrite or --append")
    address = address_of(to, files=True)
    if not address.table:
        raise UsageError(
            f"{address.label} names no table: write it behind a #, as in sqlite:///site.db#related"
        )
    found = DatabaseTarget(address, overwrite, append)
    if types is not None or not append:
        found.expect(types or {"node": "VARCHAR"})
    return found


def _see_room(path: Path) -> None:
    """See that a file could be made there."""
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise StoreError(f"{path} cannot be made: {folder} cannot be written. Choose another place")


@contextmanager
def _explained(address: Address) -> Iterator[None]:
    """What goes wrong, in words that name the database."""
    try:
        with reported(address, StoreError):
            yield
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{address.label}: a name is no text in {error.encoding}: {error.object!r}. Write a "
            "file of JSON lines (.jsonl)"
        ) from None
    except StoreError as error:
        said = str(error).lower()
        if any(sign in said for sign in ("disk is full", "no space left", "file too large")):
            raise ResourceError(
                f"{error}. Free some room there, and run the same command again"
            ) from None
        raise
