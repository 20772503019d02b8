"""``.parquet``, ``.csv`` and ``.tsv``: rows go through DuckDB a piece at a time, out of core.

So a file may be larger than memory. Disk: its rows once more beside it while it is made.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from cocite.database import open_duckdb
from cocite.errors import ResourceError
from cocite.graph.writers.formulas import safe_columns
from cocite.graph.writers.writer import Columns, TableFile, Types
from cocite.memory import format_size
from cocite.store import rows_beside

__all__ = ["CSV", "PARQUET", "ROWS", "TSV", "staged"]

ROWS = "rows"

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": "64MB",
    "threads": 1,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
"""Rows stream through: this is enough for any number of them."""
_MEMORY = 150 << 20
"""That, the library and a piece of names."""


def _write(how: str, safe: bool, target: Path, pieces: Iterable[Columns], types: Types) -> None:
    """Through DuckDB, whose errors here are those of the disk; ``how`` is the end of its COPY, and
    ``safe`` is without formulas.
    """
    import duckdb

    try:
        _through_duckdb(target, how, safe, pieces, types)
    except (
        duckdb.IOException,
        duckdb.OutOfMemoryException,
        duckdb.TransactionException,  # a commit that finds no room
        duckdb.FatalException,
    ) as error:
        free = shutil.disk_usage(target.parent).free
        raise ResourceError(
            f"could not write {target}, with its temporary files beside it: {error} "
            f"({format_size(free)} free there). Free some room or choose another output, and run "
            "the same command again"
        ) from error
    except RuntimeError as error:
        if "interrupt" in str(error).lower():
            raise KeyboardInterrupt from error
        raise


def _through_duckdb(
    target: Path, how: str, safe: bool, pieces: Iterable[Columns], types: Types
) -> None:
    with (
        rows_beside(target) as folder,
        staged(folder / "rows.duckdb", pieces, types) as connection,
    ):
        name = str(target).replace("'", "''")
        rows = f"(SELECT {safe_columns(types)} FROM {ROWS})" if safe else ROWS
        connection.execute(f"COPY {rows} TO '{name}' ({how}, USE_TMP_FILE false)")


@contextmanager
def staged(path: Path, pieces: Iterable[Columns], types: Types) -> Iterator[Any]:
    """A new database with all rows in a table ``ROWS``, each piece by itself: many rows in one
    transaction of DuckDB take memory.
    """
    with open_duckdb(str(path), _CONFIG) as connection:
        columns = ", ".join(f'"{title}" {kind}' for title, kind in types.items())
        connection.execute(f"CREATE TABLE {ROWS}({columns})")
        for piece in pieces:
            known = {title: column for title, column in piece.items() if not _is_empty(column)}
            chosen = ", ".join(f'"{title}"' if title in known else "NULL" for title in types)
            connection.register("piece", known)
            connection.execute(f"INSERT INTO {ROWS} SELECT {chosen} FROM piece")
            connection.unregister("piece")
        yield connection


def _is_empty(column: NDArray[Any]) -> bool:
    """Whether it is of objects of which none is there: DuckDB before 2.0 fails at them."""
    return column.dtype == object and not any(value is not None for value in column)


def _text(how: str, safe: bool, piece: Columns, types: Types, first: bool) -> bytes:
    """What a file of that piece has, without its titles unless it is the first."""
    with tempfile.TemporaryDirectory(prefix="cocite-") as folder:
        path = Path(folder, "piece")
        _write(how, safe, path, [piece], types)
        content = path.read_bytes()
    return content if first else content[content.index(b"\n") + 1 :]


def _table(title: str, how: str) -> TableFile:
    return TableFile(title, partial(_write, how, False), _MEMORY, twice=True)


def _text_table(title: str, how: str) -> TableFile:
    """A kind that is text, and may be streamed; with its safe form."""
    safe, plain = (
        replace(
            _table(title, how), write=partial(_write, how, form), text=partial(_text, how, form)
        )
        for form in (True, False)
    )
    return replace(plain, safe=safe)


PARQUET = _table("Parquet", "FORMAT parquet, COMPRESSION zstd")
CSV = _text_table("CSV", "FORMAT csv, HEADER")
TSV = _text_table("TSV", "FORMAT csv, HEADER, DELIMITER '\t'")
