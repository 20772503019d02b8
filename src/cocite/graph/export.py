"""Columns to a file that other programs read: Parquet, CSV, TSV or NumPy.

The ending of the name decides. Rows go through DuckDB a piece at a time, out of core, so a file may
be larger than memory; it appears under its name when it is whole.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import OutputExists, ResourceError, UsageError
from cocite.graph.names import Names
from cocite.memory import format_size
from cocite.store import disk

__all__ = ["FORMATS", "check_output", "named_pieces", "write_columns"]

FORMATS = {".parquet": "PARQUET", ".csv": "CSV", ".tsv": "TSV", ".npy": "NumPy"}
_COPY = {
    ".parquet": "FORMAT parquet, COMPRESSION zstd",
    ".csv": "FORMAT csv, HEADER",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
}
_PIECE = 1 << 17
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": "64MB",
    "threads": 1,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
"""Rows stream through: this is enough for any number of them."""

Columns = Mapping[str, Any]


def check_output(
    output: str | os.PathLike[str], overwrite: bool, formats: Iterable[str] = FORMATS
) -> Path:
    """The path, if its ending is among ``formats`` and it may be written; before any work is done.

    Raises :class:`~cocite.errors.UsageError` or :class:`~cocite.errors.OutputExists`.
    """
    path = Path(output)
    if path.suffix not in formats:
        raise UsageError(f"{path} ends in {path.suffix!r}; it ends in one of {', '.join(formats)}")
    if path.is_dir():
        raise OutputExists(f"{path} is a directory. Name a file in it, or choose another output")
    if path.exists() and not overwrite:
        raise OutputExists(f"{path} exists. Choose another output, or pass --overwrite")
    return path


def named_pieces(names: Names, **columns: NDArray[Any]) -> Iterator[Columns]:
    """Rows by node: its name, then the given columns by id."""
    for low in range(0, len(names), _PIECE):
        ids = np.arange(low, min(low + _PIECE, len(names)))
        yield {"node": np.array(names.names(ids), dtype=object)} | {
            title: values[ids] for title, values in columns.items()
        }


def write_columns(path: Path, pieces: Iterator[Columns], types: Mapping[str, str]) -> None:
    """Write pieces of equally long columns; ``types`` names them and their SQL types.

    A ``.npy`` file gets the last column only.
    """
    beside = path.with_name(path.name + ".new")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        if path.suffix == ".npy":
            last = list(types)[-1]
            with beside.open("wb") as file:
                np.save(file, np.concatenate([piece[last] for piece in pieces]))
        else:
            _explained(beside, _COPY[path.suffix], pieces, types)
        with beside.open("rb+") as file:
            disk.sync_file(file)
        disk.rename(beside, path)
        disk.sync_directory(path.parent)
    finally:
        beside.unlink(missing_ok=True)


def _explained(target: Path, how: str, pieces: Iterator[Columns], types: Mapping[str, str]) -> None:
    """Through DuckDB, whose errors here are those of the disk."""
    import duckdb

    try:
        _through_duckdb(target, how, pieces, types)
    except (duckdb.IOException, duckdb.OutOfMemoryException, duckdb.FatalException) as error:
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
    target: Path, how: str, pieces: Iterator[Columns], types: Mapping[str, str]
) -> None:
    import duckdb

    with (
        tempfile.TemporaryDirectory(prefix=target.name, dir=target.parent) as folder,
        duckdb.connect(str(Path(folder, "rows.duckdb")), config=_CONFIG) as connection,
    ):
        columns = ", ".join(f'"{title}" {kind}' for title, kind in types.items())
        connection.execute(f"CREATE TABLE rows({columns})")
        for piece in pieces:
            connection.register("piece", dict(piece))
            connection.execute("INSERT INTO rows SELECT * FROM piece")
            connection.unregister("piece")
        name = str(target).replace("'", "''")
        connection.execute(f"COPY rows TO '{name}' ({how})")
