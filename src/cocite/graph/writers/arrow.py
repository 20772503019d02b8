"""``.arrow``: Arrow IPC, as pyarrow, pandas (``read_feather``), polars, DuckDB and R read it.

A file has Arrow's file format, in batches that are not compressed, so that it can be mapped. A
stream has Arrow's streaming format: the schema, then a batch a piece. What does not exist is null.

Memory: a batch. Source: https://arrow.apache.org/docs/format/Columnar.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from cocite.errors import UsageError
from cocite.extras import need
from cocite.graph.writers.writer import Columns, TableFile, Types
from cocite.store import disk

__all__ = ["ARROW"]

_ROWS = 1 << 14
"""Of a batch: with the longest names there are, that is half of what a column of text may hold."""
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


def _schema(arrow: Any, types: Types) -> Any:
    return arrow.schema([(title, getattr(arrow, _TYPES[kind])()) for title, kind in types.items()])


def _batches(arrow: Any, schema: Any, piece: Columns) -> Iterator[Any]:
    rows = len(next(iter(piece.values())))
    for low in range(0, rows, _ROWS):
        try:
            columns = [
                arrow.array(piece[field.name][low : low + _ROWS], field.type, from_pandas=True)
                for field in schema
            ]
        except UnicodeEncodeError as error:
            raise UsageError(
                f"a name is no text in UTF-8, which Arrow needs: {error.object!r}. Choose .jsonl"
            ) from error
        yield arrow.record_batch(columns, schema=schema)


class _Sink:
    """A file as pyarrow writes to it, whose errors are those of the store."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.closed = file, False

    def write(self, data: Any) -> int:
        """All of it, or an error that says how full the disk is."""
        disk.write(self._file, memoryview(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """The file is closed by whoever opened it."""
        self.closed = True


def _write(path: Path, pieces: Iterable[Columns], types: Types) -> None:
    arrow = _arrow()
    schema = _schema(arrow, types)
    with (
        disk.rewrite(path) as file,
        arrow.ipc.new_file(arrow.PythonFile(_Sink(file), "w"), schema) as out,
    ):
        for piece in pieces:
            for batch in _batches(arrow, schema, piece):
                out.write_batch(batch)


def _text(piece: Columns, types: Types, first: bool) -> bytes:
    arrow = _arrow()
    schema = _schema(arrow, types)
    parts = [schema.serialize()] if first else []
    parts += [batch.serialize() for batch in _batches(arrow, schema, piece)]
    return b"".join(part.to_pybytes() for part in parts)


ARROW = TableFile("Arrow IPC", _write, text=_text, ready=_arrow)
