"""What the tables of ``ingest`` are asked, and how they go out: a piece at a time, as NumPy arrays.

A question that is interrupted is a KeyboardInterrupt; memory or disk that do not suffice are told
with what there is of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError, ResourceError
from cocite.memory import format_size

__all__ = ["NAMES_PIECE", "NO_ROOM", "Streams", "unwritable"]

_PIECE = 1 << 19
NAMES_PIECE = 1 << 17
"""Rows of a piece of names; a block of names on disk divides it."""


NO_ROOM = duckdb.IOException, duckdb.TransactionException, duckdb.FatalException
"""What DuckDB raises where files cannot be written, a commit where it finds no room."""


def unwritable(directory: Path, error: Exception) -> ResourceError:
    """What to raise when the files of a database in ``directory`` cannot be written."""
    return ResourceError(
        f"temporary files in {directory} cannot be written or read, where "
        f"{format_size(shutil.disk_usage(directory).free)} are free: {error}. Make room there, or "
        "choose an output on another disk"
    )


class Streams:
    """An open database, and what is streamed out of its tables (``tables.py``)."""

    def __init__(self, database: duckdb.DuckDBPyConnection, directory: Path) -> None:
        self._db, self._directory = database, directory

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()

    def _run(self, query: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._execute(query, lambda result: result.fetchall())
        return rows

    def _execute(
        self,
        query: str,
        fetch: Callable[[duckdb.DuckDBPyConnection], Any],
        values: Sequence[str] = (),
    ) -> Any:
        try:
            return fetch(self._db.execute(query, list(values)))
        except (duckdb.InterruptException, RuntimeError) as error:
            if "interrupt" in str(error).lower():
                raise KeyboardInterrupt from error
            raise
        except duckdb.OutOfMemoryException as error:
            raise ResourceError(
                f"the links do not fit the memory given, even spilling to disk: {error}. Give "
                "more with --memory"
            ) from error
        except NO_ROOM as error:
            raise unwritable(self._directory, error) from error

    def _stream(self, table: str, column: str, piece: int) -> Iterator[NDArray[Any]]:
        return (values for (values,) in self._stream_rows(table, (column,), piece))

    def _stream_rows(
        self, table: str, columns: tuple[str, ...], piece: int
    ) -> Iterator[tuple[NDArray[Any], ...]]:
        count = int(self._run(f"SELECT count(*) FROM {table}")[0][0])
        for low in range(0, count, piece):
            values = self._execute(
                f"SELECT {', '.join(columns)} FROM {table} "
                f"WHERE rowid >= {low} AND rowid < {low + piece}",
                lambda result: result.fetchnumpy(),
            )
            found = tuple(np.asarray(values[column]) for column in columns)
            if len(found[0]) != min(piece, count - low):
                raise InputError(f"table {table} lost rows at {low}: a fault of cocite, report it")
            yield found

    def link_keys(self) -> Iterator[NDArray[np.uint64]]:
        """The keys in ascending order, piece by piece."""
        return self._stream("links", "key", _PIECE)

    def weighted_links(self) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.float64]]]:
        """The keys in ascending order with their weights, piece by piece."""
        return ((key, w) for key, w in self._stream_rows("links", ("key", "w"), _PIECE))

    def integer_names(self) -> Iterator[NDArray[np.uint64]]:
        """The names in order of id, as integers."""
        return self._stream("names", "name", _PIECE)

    def text_names(self) -> Iterator[list[str]]:
        """The names in order of id, as text, in pieces whose length a block of names divides."""
        return (piece.tolist() for piece in self._stream("names", "name", NAMES_PIECE))

    def ids_by_name(self) -> Iterator[NDArray[np.uint32]]:
        """The ids in the order of their names' bytes."""
        self._run("CREATE TABLE by_name AS SELECT rowid::UINTEGER AS id FROM names ORDER BY name")
        return self._stream("by_name", "id", _PIECE)

    def sort_hashes(self, pieces: Iterator[NDArray[np.uint32]]) -> Iterator[NDArray[np.uint64]]:
        """Sort the names' hashes, given in order of id: pieces of hash * 2**32 + id."""
        self._run("CREATE TABLE hashes(key UBIGINT)")
        base = 0
        for hashes in pieces:
            ids = np.arange(base, base + hashes.size, dtype=np.uint64)
            self._db.register("piece", {"key": (hashes.astype(np.uint64) << np.uint64(32)) | ids})
            self._run("INSERT INTO hashes SELECT key FROM piece")
            self._db.unregister("piece")
            base += hashes.size
        self._run("CREATE TABLE by_hash AS SELECT key FROM hashes ORDER BY key")
        self._run("DROP TABLE hashes")
        return self._stream("by_hash", "key", _PIECE)
