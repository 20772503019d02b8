r"""Tables in a dump of MySQL or MariaDB (``mysqldump``): some columns of some, as clean files.

    CREATE TABLE `page` (
      `page_id` int(8) unsigned NOT NULL AUTO_INCREMENT,      the columns, in their order
      ...
    INSERT INTO `page` VALUES (1,0,'It\'s',...),(2,...);      rows, on one line

A statement begins a line: dumps write line ends in strings as ``\n``. Rows are read by a kernel
(``kernels/sql_rows.py``), some MiB at a time; what is no row ends with its statement. Tables may
have a prefix (``wiki_page``). Any number of tables may be in a file, and of files in a table.

Cost: about three nanoseconds a byte, unpacked; memory for two pieces of 4 MiB, and for a row.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError, MalformedRow
from cocite.graph.readers.sources import Source, unpack_errors
from cocite.store import disk

__all__ = ["Table", "read_tables"]

_PIECE = 1 << 22
_LONGEST = 1 << 24
"""Bytes within which a row, or what creates a table, ends."""
_HEAD = 1 << 16
_EXAMPLES = 5
_STATEMENT = re.compile(
    rb"\n[ \t\r]*(?:(?P<create>CREATE)\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?|(?:INSERT|REPLACE)\s+"
    rb"(?:IGNORE\s+)?INTO\s+)(?:[`\"]?\w+[`\"]?\.)?[`\"]?(?P<table>\w+)[`\"]?\s*"
    rb"(?(create)\(|(?P<columns>\([^()']*\))?\s*VALUES\b)",
    re.I,
)
_COLUMN = re.compile(rb"^\s*[`\"](\w+)[`\"]\s+\w", re.M)
_NAME = re.compile(rb"\w+")


@dataclass
class Table:
    """A table that is wanted: ``kinds`` are the columns to take, if they are there, and what they
    are (TEXT or INTEGER); ``found`` are those that are, in their order.
    """

    kinds: Mapping[str, int]
    out: BinaryIO
    every: tuple[str, ...] = ()
    rows: int = 0
    read: bool = False
    found: tuple[str, ...] = field(default=())

    def begin(self, columns: list[str], label: str, name: str) -> None:
        """The columns that a file says it has: always the same ones."""
        self.read = True
        taken = tuple(column for column in columns if column in self.kinds)
        if self.found and taken != self.found:
            raise InputError(
                f"{label}: the table {name} has other columns than in the files before: "
                f"{', '.join(taken)}, and not {', '.join(self.found)}. Name the dump of one wiki, "
                "of one day"
            )
        self.every, self.found = tuple(columns), taken

    @property
    def take(self) -> NDArray[np.uint8]:
        """What is done with each column."""
        return np.array([self.kinds.get(column, 0) for column in self.every], np.uint8)


def read_tables(
    source: Source,
    tables: Mapping[str, Table],
    skip: bool,
    progress: Callable[[str, int, int], None],
) -> tuple[Counter[str], list[str]]:
    """Write the rows of those ``tables`` that are in a file; returns rows that are left out, by
    what is wrong with them, and the first of them, as text, if they are to be skipped.

    Raises :class:`MalformedRow` and :class:`InputError`.
    """
    reading = _Reading(source, tables, skip, progress)
    stream, raw = source.open()
    try:
        with raw, stream:
            reading.run(stream, raw)
    except unpack_errors() as error:
        raise InputError(
            f"{source.label} cannot be read beyond line {reading.line:,}, as it is cut or damaged: "
            f"{error}"
        ) from error
    return reading.bad, reading.examples


class _Reading:
    """One file."""

    def __init__(
        self,
        source: Source,
        tables: Mapping[str, Table],
        skip: bool,
        progress: Callable[[str, int, int], None],
    ) -> None:
        from cocite.kernels import sql_rows

        self._k = sql_rows
        self._source, self._tables = source, tables
        self._skip, self._progress = skip, progress
        self._columns: dict[str, list[str]] = {}
        self._buffer = b"\n"
        self._room = np.empty(0, np.uint8)
        self._tally = np.zeros(sql_rows.TALLY, np.int64)
        self._wrong = np.zeros((_EXAMPLES, sql_rows.BAD_FIELDS), np.int64)
        self.line = 0
        self.bad: Counter[str] = Counter()
        self.examples: list[str] = []

    def run(self, stream: IO[bytes], raw: BinaryIO) -> None:
        """Read it to its end."""
        self._stream, self._raw = stream, raw
        while True:
            found = _STATEMENT.search(self._buffer)
            if found is None:
                # What may be the beginning of a statement stays.
                keep = self._buffer.rfind(b"\n")
                self._drop(len(self._buffer) if len(self._buffer) - keep > _HEAD else max(keep, 0))
                if not self._more():
                    return
                continue
            name = found["table"].decode()
            table = next((t for n, t in self._tables.items() if name.endswith(f"_{n}")), None)
            table = self._tables.get(name, table)
            if found["create"]:
                self._create(name, table, found.end())
            elif table is None:
                self._drop(found.end())
            else:
                columns = self._columns.get(name)
                if found["columns"]:
                    columns = [part.decode() for part in _NAME.findall(found["columns"])]
                if not columns:
                    raise InputError(
                        f"{self._source.label}: no CREATE TABLE says which columns {name} has. "
                        "Dump it with its structure"
                    )
                table.begin(columns, self._source.label, name)
                self._drop(found.end())
                self._insert(table)

    def _more(self) -> bool:
        """Read on, if there is more."""
        piece = self._stream.read(_PIECE)
        self._progress("reading " + self._source.short, self._raw.tell(), self._source.nbytes)
        self._buffer += piece
        return bool(piece)

    def _drop(self, count: int) -> None:
        """Be done with the first bytes."""
        self.line += self._buffer.count(b"\n", 0, count)
        self._buffer = self._buffer[count:]

    def _create(self, name: str, table: Table | None, start: int) -> None:
        """Learn the columns of a table."""
        while (end := self._buffer.find(b";", start)) < 0:
            if len(self._buffer) > _LONGEST or not self._more():
                raise InputError(
                    f"{self._source.label}:{self.line:,}: what creates the table {name} does not "
                    "end: the file is cut"
                )
        self._columns[name] = [c.decode() for c in _COLUMN.findall(self._buffer[start:end])]
        if table is not None:
            table.begin(self._columns[name], self._source.label, name)
        self._drop(end)

    def _insert(self, table: Table) -> None:
        """The rows of one statement."""
        k, take = self._k, table.take
        while True:
            text = np.frombuffer(self._buffer, np.uint8)
            if self._room.size < text.size + take.size:
                self._room = np.empty(text.size + take.size + _PIECE, np.uint8)
            end = int(k.rows(text, take, self._room, self._wrong, self._tally))
            _, written, state, bad = self._tally.tolist()
            disk.write(table.out, self._room[:written].data)
            table.rows += int(self._tally[k.T_ROWS])
            for low, high, reason in self._wrong[:bad].tolist():
                self._refuse(k.REASONS[reason], low, high)
            more = bad - min(bad, _EXAMPLES)
            if more:
                self.bad["rows of names that are none"] += more
            self._drop(end)
            if state == k.ENDED:
                return
            if state == k.BROKEN or len(self._buffer) > _LONGEST:
                self._refuse("what is no row of as many columns as the table has", 0, 200)
                return
            if not self._more():
                self._refuse("the file ends within a row: it is cut", 0, 200)
                return

    def _refuse(self, what: str, low: int, high: int) -> None:
        content = self._buffer[low : min(high, low + 200)].decode("utf-8", "backslashreplace")
        line = self.line + self._buffer.count(b"\n", 0, low)
        if not self._skip:
            raise MalformedRow(self._source.label, line, what, content)
        self.bad[what] += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append(f"{self._source.label}:{line}: {what}: {content!r}")
