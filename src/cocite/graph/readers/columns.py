"""Two columns of a table: names of nodes and something about them, such as texts or weights.

Text (plain or packed) or Parquet, recognised by content as for links. Labels, which come in more
dialects, are read by ``labelled.py``. Text is cut at tabs,
or by the rules of CSV if the file's name ends in ``.csv``; lines that begin with ``#`` and blank
ones are passed over. A row that lacks a column is malformed.

Cost: one pass, a row at a time; nothing but the rows asked for is kept. A row has at most 32 Mi
characters, as it is in memory whole: a few megabytes that are packed may be gigabytes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from cocite.errors import InputError, MalformedRow, ResourceError, UsageError
from cocite.graph.readers.damage import not_parquet
from cocite.graph.readers.recognise import PARQUET
from cocite.graph.readers.sources import Source, unpack_errors
from cocite.memory import budget, database_memory, format_size

__all__ = [
    "LONGEST",
    "PARQUET_ROWS",
    "Lines",
    "bounded_text",
    "parquet_rows",
    "parquet_titles",
    "read_columns",
]

_COMMENT = "#"
PARQUET_ROWS = 8
"""That Python has at a time: each may be as long as a row can be, of a file of a few kilobytes."""
_ROW, _COPIED, _MOST_MEMORY = "file_row_number", 2048, 1 << 30
"""Rows that DuckDB copies at a time, and bytes that these may be."""
LONGEST = 1 << 25
"""Characters of a row, or of a text."""


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
            yield from _rows(source, Lines(text, source.label), columns)
    except unpack_errors() as error:
        raise InputError(f"{source.label} cannot be read: {error}") from error


def _rows(source: Source, lines: Lines, columns: tuple[int, int]) -> Iterator[tuple[str, str]]:
    comma = ".csv" in (Path(source.label).suffixes[-2:])
    before = csv.field_size_limit(LONGEST)
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
    """Lines that are neither comments (``indented`` or not) nor blank, and the number of the last
    one. Raises :class:`~cocite.errors.InputError` for one that is longer than any row.
    """

    def __init__(
        self, lines: TextIO, label: str, comment: str = _COMMENT, indented: bool = False
    ) -> None:
        self._lines, self._label, self._indented = lines, label, indented
        self._marks = (comment,) if comment else ()
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        while line := self._lines.readline(LONGEST + 1):
            self.number += 1
            if len(line) > LONGEST:
                raise InputError(
                    f"{self._label}:{self.number}: a line of more than {LONGEST:,} characters, the "
                    "most that a row has. Give a table with a row a line"
                )
            begin = line.lstrip() if self._indented else line
            if line.strip() and not begin.startswith(self._marks):
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
    wanted = ", ".join(bounded_text(titles[place]) for place in places)
    _see_pieces(source, [titles[place] for place in places])
    for name, value in _asked(source, f"SELECT {wanted} FROM {{file}}"):
        if name is not None and value is not None:
            yield name, value


def _see_pieces(source: Source, columns: list[str]) -> None:
    """See that no piece that DuckDB copies at a time is larger than memory: a text that is there
    once in a file of some kilobytes may be meant in every row. Raises :class:`ResourceError`.
    """
    lengths = " + ".join(f"coalesce(strlen({_text_of(column)}), 0)" for column in columns)
    each = f"SELECT sum({lengths}) AS size FROM {{file}} GROUP BY {_ROW} // {_COPIED}"
    most = max(row[0] or 0 for row in _asked(source, f"SELECT max(size) FROM ({each})"))
    if most > _MOST_MEMORY:
        raise ResourceError(
            f"{source.label} has {_COPIED:,} rows with {format_size(int(most))} of text, which are "
            f"read at a time; they may have {format_size(_MOST_MEMORY)}. Cut long texts, or give a "
            "table as text, with a row a line"
        )


def _text_of(column: str) -> str:
    return 'CAST("' + column.replace('"', '""') + '" AS VARCHAR)'


def bounded_text(column: str, most: int = LONGEST) -> str:
    """The expression of DuckDB of a column as text, which ends with an error where it is longer."""
    text = _text_of(column)
    long = f"a value of more than {most:,} bytes"
    return f"CASE WHEN strlen({text}) > {most} THEN error('{long}') ELSE {text} END"


def _asked(source: Source, query: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a query of a Parquet file."""
    import duckdb

    file = "read_parquet('" + str(source.path).replace("'", "''") + "', hive_partitioning = false)"
    try:
        limit = min(_MOST_MEMORY, database_memory(budget(None)))
        config: dict[str, Any] = {"memory_limit": f"{limit}B", "threads": 1}
        config["autoload_known_extensions"] = False
        with duckdb.connect(config=config) as connection:
            found = connection.execute(query.replace("{file}", file))
            while rows := found.fetchmany(PARQUET_ROWS):
                yield from rows
    except duckdb.Error as error:
        raise not_parquet(source, error) from error
