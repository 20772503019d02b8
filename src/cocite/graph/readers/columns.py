"""Two columns of a table: names of nodes and something about them, such as texts or weights.

Text (plain or packed) or Parquet, recognised by content as for links. Labels, which come in more
dialects, are read by ``labelled.py``. Text is cut at tabs,
or by the rules of CSV if the file's name ends in ``.csv``; lines that begin with ``#`` and blank
ones are passed over. A row that lacks a column is malformed.

Cost: one pass, a row at a time; nothing but the rows asked for is kept.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from cocite.errors import InputError, MalformedRow, UsageError
from cocite.graph.readers.damage import not_parquet
from cocite.graph.readers.recognise import PARQUET
from cocite.graph.readers.sources import Source, unpack_errors

__all__ = ["Lines", "parquet_rows", "parquet_titles", "read_columns"]

_COMMENT = "#"
_ROWS = 1 << 12


def read_columns(path: Path, columns: tuple[int, int] = (1, 2)) -> Iterator[tuple[str, str]]:
    """The two columns, numbered from 1, row by row, as text.

    Raises :class:`~cocite.errors.InputError`, :class:`~cocite.errors.MalformedRow`,
    :class:`~cocite.errors.UsageError`.
    """
    if min(columns) < 1:
        raise UsageError(f"columns are {columns[0]} and {columns[1]}; they are numbered from 1")
    source = Source(path)
    if not path.is_file():
        raise InputError(f"{path} is not a file")
    parquet = PARQUET.sign(source.beginning())
    return _parquet(source, columns) if parquet else _text(source, columns)


def _text(source: Source, columns: tuple[int, int]) -> Iterator[tuple[str, str]]:
    stream, _ = source.open()
    try:
        with io.TextIOWrapper(
            cast(BinaryIO, stream), "utf-8-sig", errors="surrogateescape", newline=""
        ) as text:
            yield from _rows(source, Lines(text), columns)
    except unpack_errors() as error:
        raise InputError(f"{source.label} cannot be read: {error}") from error


def _rows(source: Source, lines: Lines, columns: tuple[int, int]) -> Iterator[tuple[str, str]]:
    comma = ".csv" in (Path(source.label).suffixes[-2:])
    before = csv.field_size_limit(sys.maxsize)
    try:
        for row in (
            csv.reader(lines)
            if comma
            else csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        ):
            if len(row) < max(columns):
                what = f"{len(row)} columns, where {max(columns)} are needed"
                content = ("," if comma else "\t").join(row)[:200]
                raise MalformedRow(source.label, lines.number, what, content)
            yield row[columns[0] - 1], row[columns[1] - 1]
    except csv.Error as error:
        raise InputError(f"{source.label}:{lines.number}: {error}") from error
    finally:
        csv.field_size_limit(before)


class Lines:
    """Lines that are neither comments nor blank, and the number of the last one."""

    def __init__(self, lines: Iterable[str], comment: str = _COMMENT) -> None:
        self._lines, self._marks = enumerate(lines, 1), (comment,) if comment else ()
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        for number, line in self._lines:
            self.number = number
            if line.strip() and not line.startswith(self._marks):
                yield line


def _parquet(source: Source, columns: tuple[int, int]) -> Iterator[tuple[str, str]]:
    titles = parquet_titles(source)
    if max(columns) > len(titles):
        raise InputError(
            f"{source.label} has {len(titles)} columns; column {max(columns)} was asked for"
        )
    yield from parquet_rows(source, (columns[0] - 1, columns[1] - 1))


def parquet_titles(source: Source) -> list[str]:
    """The titles of the columns of a Parquet file; raises :class:`InputError`."""
    return [row[0] for row in _asked(source, "DESCRIBE FROM {file}")]


def parquet_rows(source: Source, places: tuple[int, int]) -> Iterator[tuple[str, str]]:
    """Two columns of a Parquet file, numbered from 0, as text, without rows that lack one."""
    titles = parquet_titles(source)
    wanted = ", ".join(
        'CAST("' + titles[place].replace('"', '""') + '" AS VARCHAR)' for place in places
    )
    for name, value in _asked(source, f"SELECT {wanted} FROM {{file}}"):
        if name is not None and value is not None:
            yield name, value


def _asked(source: Source, query: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a query of a Parquet file."""
    import duckdb

    file = "read_parquet('" + str(source.path).replace("'", "''") + "', hive_partitioning = false)"
    try:
        with duckdb.connect(config={"autoload_known_extensions": False}) as connection:
            found = connection.execute(query.replace("{file}", file))
            while rows := found.fetchmany(_ROWS):
                yield from rows
    except duckdb.Error as error:
        raise not_parquet(source, error) from error
