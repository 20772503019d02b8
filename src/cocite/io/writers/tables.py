"""Tables and arrays as files: Parquet, CSV, TSV, JSON lines, Arrow IPC, and NumPy's ``.npy``.

DuckDB writes ``.parquet``, ``.csv`` and ``.tsv`` out of core, with a second copy of the rows next
to the file. The other formats need constant memory: ``.jsonl`` has one object per row, and
``.arrow`` has uncompressed batches, which can be memory-mapped. Missing values are null. A float32
is written as the shortest decimal that reads back as the same float32.

The ``safe`` form of CSV and TSV prevents spreadsheets from reading texts as formulas: an apostrophe
precedes texts that begin with one of ``= + - @``, their full-width forms, a tab, or a line break.
https://owasp.org/www-community/attacks/CSV_Injection
"""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cocite.errors import ResourceError, UsageError
from cocite.extras import need
from cocite.io.database import literal, open_duckdb
from cocite.resources import format_size
from cocite.storage import disk, staged_rows

Columns = Mapping[str, Any]
"""Some rows: arrays of equal length, by column name."""
Types = Mapping[str, str]
"""Maps a table's column names to SQL types."""


@dataclass(frozen=True)
class TableFile:
    """A file format for named columns.

    ``write(path, pieces, types)`` writes a file, and needs ``memory`` bytes; if ``twice``, it
    temporarily stores a second copy of the rows next to the file. ``text(piece, types, first)``
    returns a chunk to stream, with a header if it is the ``first``; ``text`` is None if the format
    cannot be streamed. ``ready()`` raises :class:`~cocite.errors.UsageError` if a required library
    is missing. ``safe`` is the format with formulas escaped, or None.
    """

    title: str
    write: Callable[[Path, Iterable[Columns], Types], None]
    memory: int = 0
    twice: bool = False
    text: Callable[[Columns, Types, bool], bytes] | None = None
    ready: Callable[[], object] = lambda: None
    safe: TableFile | None = None


@dataclass(frozen=True)
class ArrayFile:
    """A file format for an array; ``write(path, pieces, dtype, shape)`` writes a file."""

    title: str
    write: Callable[[Path, Iterable[NDArray[Any]], np.dtype[Any], tuple[int, ...]], None]


# -- formulas ----------------------------------------------------------------------------

_FIRST = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
_MARK = "'"


def safe_cell(value: Any) -> Any:
    """Return ``value`` escaped for a spreadsheet cell; only text changes."""
    return _MARK + value if isinstance(value, str) and value.startswith(tuple(_FIRST)) else value


def safe_columns(types: Types) -> str:
    """Return the SQL that selects a table's columns, with formulas escaped."""
    signs = ", ".join(f"chr({ord(sign)})" for sign in _FIRST)
    return ", ".join(
        f'CASE WHEN left("{title}", 1) IN ({signs}) THEN chr({ord(_MARK)}) || "{title}" '
        f'ELSE "{title}" END AS "{title}"'
        if kind == "VARCHAR"
        else f'"{title}"'
        for title, kind in types.items()
    )


ROWS = "rows"

_CONFIG = {"memory_limit": "64MB", "threads": 1}
"""DuckDB's settings, which suffice for any number of rows, because rows are streamed."""
_MEMORY = 150 << 20
"""Memory in bytes for DuckDB's library, its data, and a chunk of names."""


def _write(how: str, safe: bool, target: Path, pieces: Iterable[Columns], types: Types) -> None:
    """Write using DuckDB; ``how`` has the options of COPY, and ``safe`` escapes formulas."""
    import duckdb

    name = literal(str(target.absolute()))
    rows = f"(SELECT {safe_columns(types)} FROM {ROWS})" if safe else ROWS
    try:
        with (
            staged_rows(target) as folder,
            staged(folder / "rows.duckdb", pieces, types, target) as connection,
        ):
            connection.execute(f"COPY {rows} TO {name} ({how}, USE_TMP_FILE false)")
    except (
        duckdb.IOException,
        duckdb.OutOfMemoryException,
        duckdb.TransactionException,  # a commit without free disk space
        duckdb.FatalException,
    ) as error:
        free = shutil.disk_usage(target.parent).free
        raise ResourceError(
            f"could not write {target} (temporary files go in the same folder): {error} "
            f"({format_size(free)} free there). Free disk space or choose another output, and run "
            "the same command again"
        ) from error
    except RuntimeError as error:
        if "interrupt" in str(error).lower():
            raise KeyboardInterrupt from error
        raise


@contextmanager
def staged(path: Path, pieces: Iterable[Columns], types: Types, *files: Path) -> Iterator[Any]:
    """Open a new database that has all rows in the table ``ROWS``, and may write ``files``.

    Each chunk is one transaction, because large transactions need more memory.
    """
    may = [str(place) for file in files for place in (file.absolute(), file.resolve())]
    with open_duckdb(str(path), _CONFIG, files=may) as connection:
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
    """Return whether an object column has only None; DuckDB before 2.0 fails on such a column."""
    return column.dtype == object and not any(value is not None for value in column)


def _cell(how: str, safe: bool, piece: Columns, types: Types, first: bool) -> bytes:
    """Return a chunk as text, with the header only if it is the ``first``."""
    with tempfile.TemporaryDirectory(prefix="cocite-") as folder:
        path = Path(folder, "piece")
        _write(how, safe, path, [piece], types)
        content = path.read_bytes()
    return content if first else content[content.index(b"\n") + 1 :]


def _table(title: str, how: str, *, text: bool = True, safe: bool = False) -> TableFile:
    """Return a format; a ``text`` format can be streamed, and has a ``safe`` form."""
    plain = TableFile(title, partial(_write, how, safe), _MEMORY, twice=True)
    if not text:
        return plain
    other = None if safe else _table(title, how, safe=True)
    return replace(plain, text=partial(_cell, how, safe), safe=other)


PARQUET = _table("Parquet", "FORMAT parquet, COMPRESSION zstd", text=False)
CSV = _table("CSV", "FORMAT csv, HEADER")
TSV = _table("TSV", "FORMAT csv, HEADER, DELIMITER '\t'")


# -- numpy -------------------------------------------------------------------------------


def _write_numpy(
    path: Path, pieces: Iterable[NDArray[Any]], dtype: np.dtype[Any], shape: tuple[int, ...]
) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with disk.rewrite(path) as file:
        begin = BytesIO()
        np.lib.format.write_array_header_1_0(begin, header)
        disk.write(file, begin.getvalue())
        for piece in pieces:
            disk.write(file, np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)


NPY = ArrayFile("NumPy", _write_numpy)


# -- lines -------------------------------------------------------------------------------


_ROWS = 1 << 14
"""Rows per batch: if all names have the maximum length, they fill half of an Arrow column."""


def rows_of(piece: Columns, types: Types) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a chunk as Python values, None for missing ones."""
    return zip(*(map(_plain, _values(piece[title])) for title in types), strict=True)


def _values(column: Any) -> list[Any]:
    if isinstance(column, np.ndarray):
        if column.dtype == np.float32:
            return [float(str(value)) for value in column]
        return list(column.tolist())
    return list(column)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _some_rows(piece: Columns) -> Iterator[Columns]:
    """Yield a chunk in batches of _ROWS rows."""
    for low in range(0, len(next(iter(piece.values()))), _ROWS):
        yield {title: values[low : low + _ROWS] for title, values in piece.items()}


def _line(piece: Columns, types: Types, first: bool) -> bytes:
    rows = (dict(zip(types, row, strict=True)) for row in rows_of(piece, types))
    lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    return lines.encode(errors="surrogateescape")


def _write_lines(path: Path, pieces: Iterable[Columns], types: Types) -> None:
    with disk.rewrite(path) as file:
        for some in chain.from_iterable(map(_some_rows, pieces)):
            disk.write(file, _line(some, types, False))


JSON_LINES = TableFile("JSON lines", _write_lines, text=_line)


# -- arrow -------------------------------------------------------------------------------


_TYPES = {
    "VARCHAR": "string",
    "BIGINT": "int64",
    "INTEGER": "int32",
    "DOUBLE": "float64",
    "FLOAT": "float32",
    "BOOLEAN": "bool_",
}


def _arrow() -> Any:
    need("pyarrow.ipc", "an Arrow file", "arrow")
    return need("pyarrow", "an Arrow file", "arrow")


def _schema(types: Types) -> Any:
    arrow = _arrow()
    return arrow.schema([(title, getattr(arrow, _TYPES[kind])()) for title, kind in types.items()])


def _batches(schema: Any, piece: Columns) -> Iterator[Any]:
    arrow = _arrow()
    for some in _some_rows(piece):
        try:
            columns = [arrow.array(some[f.name], f.type, from_pandas=True) for f in schema]
        except UnicodeEncodeError as error:
            raise UsageError(
                f"a name is not valid UTF-8, which Arrow requires: {error.object!r}. Choose .jsonl"
            ) from error
        yield arrow.record_batch(columns, schema=schema)


class _Sink:
    """A file for pyarrow that raises this library's errors."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.closed = file, False

    def write(self, data: Any) -> int:
        disk.write(self._file, memoryview(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: writes are not buffered."""

    def close(self) -> None:
        """Do nothing: the caller closes the file."""
        self.closed = True


def _write_arrow(path: Path, pieces: Iterable[Columns], types: Types) -> None:
    arrow, schema = _arrow(), _schema(types)
    with (
        disk.rewrite(path) as file,
        arrow.ipc.new_file(arrow.PythonFile(_Sink(file), "w"), schema) as out,
    ):
        for piece in pieces:
            for batch in _batches(schema, piece):
                out.write_batch(batch)


def _arrow_text(piece: Columns, types: Types, first: bool) -> bytes:
    schema = _schema(types)
    parts = [schema.serialize()] if first else []
    parts += [batch.serialize() for batch in _batches(schema, piece)]
    return b"".join(part.to_pybytes() for part in parts)


ARROW = TableFile("Arrow IPC", _write_arrow, text=_arrow_text, ready=_arrow)
