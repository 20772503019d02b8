"""A table of a database as a target: SQLite, DuckDB, PostgreSQL.

    --to sqlite:///site.db#related      --to duckdb:///site.duckdb#related
    --to postgres://user@host/db#web.related

All is one transaction: rows come into a new table under a name of its own, which takes the place of
the old one at the end, so that readers see the old rows or the new ones. What is there is replaced
(``overwrite``), or rows are added to it (``append``), or it is refused; a view always is. A table
that is replaced is dropped: its indexes and rights go with it, and a view of it is an error. A new
table with a column ``node`` has an index of it, but for DuckDB, which looks through columns.

Before any work is done the same is tried without rows and taken back, so that a missing schema or
right, or columns that do not fit, are told then.

Memory: a batch of rows; 250 MB with DuckDB, and the rows once more on disk, beside its file.
Cost: some microseconds a row.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from xxhash import xxh3_64_hexdigest

from cocite.database import Address, address_of, reported
from cocite.errors import OutputExists, ResourceError, StoreError, UsageError
from cocite.graph.writers.dialects import Dialect, opened
from cocite.graph.writers.targets import Target
from cocite.graph.writers.writer import Columns, Types
from cocite.store import disk

__all__ = ["DatabaseTarget", "database_target"]

_MEMORY = {"sqlite": 20 << 20, "duckdb": 250 << 20, "postgres": 40 << 20}
_INDEXED = "node"
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
        return _MEMORY[self.address.kind]

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
            place_of = database.beside(database.find(self.address.table))
            database.create(place_of, types)
            database.load(place_of, pieces, types)
            return database.size(place_of)

    def _write(self, address: Address, pieces: Iterable[Columns], types: Types) -> int | None:
        path = Path(address.place) if address.is_file else None
        made = path is not None and not path.exists()
        if path is not None:
            disk.make_folder(path.parent)
        target = DatabaseTarget(address, self.overwrite, self.append)
        try:
            with target._transaction() as database:
                size = target._fill(database, pieces, types)
                database.commit()
        except BaseException:
            if made and path is not None:
                for ending in _BESIDE:
                    disk.remove(Path(f"{path}{ending}"))
            raise
        return path.stat().st_size if made and path is not None else size

    def _fill(self, database: Dialect, pieces: Iterable[Columns], types: Types) -> int | None:
        """Make the table, within a transaction; returns its bytes, if they are known."""
        place = database.find(self.address.table)
        self._see_free(database)
        if place.there and self.append:
            empty = database.beside(place)
            database.create(empty, types)
            database.copy(empty, place, types)  # raises if columns do not fit
            database.drop(empty)
            database.load(place, pieces, types)
            return None
        new = database.beside(place)
        database.create(new, types)
        database.load(new, pieces, types)
        if place.there:
            database.drop(place)
        database.rename(new, place)
        if _INDEXED in types:
            database.index(place, _INDEXED)
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
