"""Matrix Market: an entry of a square matrix is a link from its row to its column.

Nodes are numbered from 1, like rows and columns. An entry of a symmetric matrix is a link in both
directions. Rectangular matrices, which have two kinds of nodes, are refused. With column 3 or
``value`` as the weight column, an entry's value is the link's weight.

The kernel for text (``io/readers/text.py``) reads the entries, as fast as text. Boisvert, Pozo,
Remington, "The Matrix Market exchange formats", NISTIR 5935, 1996.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, replace
from typing import Any

from cocite.errors import InputError, MalformedRow, ResourceError, UnrecognizedInput, UsageError
from cocite.io.readers.contract import FormatReader, Found, Job, Read
from cocite.io.readers.sources import Pieces, Source, rejoined
from cocite.io.readers.text import Cleaner, TextInput, clean_relation, new_clean_file
from cocite.resources import format_least, short_of

_HEAD = 1 << 20
_MOST = 2**32 - 1
_ROW = 16
"""Bytes that a node without links takes in a graph's arrays."""
_BANNER = re.compile(r"%%MatrixMarket\s+matrix\s+(\w+)\s+(\w+)\s+([\w-]+)\s*", re.I)
_VALUES = {"pattern": 0, "integer": 1, "real": 1, "double": 1, "complex": 2}
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


@dataclass(frozen=True)
class _MatrixHeader:
    """A header of ``lines`` lines: ``size`` rows and columns, and ``entries``."""

    field: str
    symmetry: str
    lines: int
    size: int
    entries: int


def _read(job: Job) -> Read:
    """Read the entries as links, and all rows as nodes."""
    label = job.source.label
    with job.source.reading() as (stream, raw):
        head = stream.read(_HEAD)
        header, rest = _header(job.source, head)
        _check_weight(job, header)
        _check_rows(job, header)
        entries = io.BufferedReader(Pieces(rejoined(rest, stream), stream))
        cleaner = _EntryCleaner(job.source, replace(job.options, comment="%"), header)
        with new_clean_file(job) as out:
            read = cleaner.run(entries, raw.tell, out, job.progress)
    nodes = f"SELECT range::UBIGINT AS a FROM range(1, {header.size + 1})"
    found = read.read_as(READER.title, "rows link to columns, and are numbered from 1")
    every = read.rows + read.bad
    if every != header.entries:
        raise InputError(
            f"{label} has {every:,} entries, but line {header.lines} says "
            f"{header.entries:,}: the file is truncated or was changed"
        )
    job.database.execute(
        f"CREATE TABLE reading.links AS {clean_relation(replace(job, wanted=2), read.integers)}"
    )
    _check_range(job, header, found)
    weight = ", w" if job.options.weight else ""
    rows = f"SELECT a::UBIGINT AS a, b::UBIGINT AS b{weight} FROM reading.links"
    if header.symmetry != "general":
        found.note += "; the matrix is symmetric, so all links go both ways"
        if not job.options.undirected:
            other = "FROM reading.links WHERE a != b"
            found.rows += job.count(f"SELECT count(*) {other}")
            rows += f" UNION ALL SELECT b::UBIGINT AS a, a::UBIGINT AS b{weight} {other}"
    return Read(rows, found, nodes)


READER = FormatReader(
    "Matrix Market",
    "a square matrix in coordinate format: a link from each entry's row to its column, both ways "
    "if symmetric; nodes are numbered from 1; --weight-column value uses the values as weights",
    _read,
)


def _header(source: Source, head: bytes) -> tuple[_MatrixHeader, bytes]:
    lines, banner, head = 0, None, head.removeprefix(b"\xef\xbb\xbf")
    for line in re.finditer(rb"([^\r\n]*)(?:\r\n|\n|\r|$)", head):
        text, lines = line[1].decode("utf-8", "replace").strip(), lines + 1
        if banner is None:
            banner = _BANNER.fullmatch(text)
            if banner is None:
                raise InputError(
                    f"{source.label}:1: {text[:60]!r} is not a Matrix Market header, such as "
                    "'%%MatrixMarket matrix coordinate pattern general'"
                )
            form, field, symmetry = (word.lower() for word in banner.groups())
            if form != "coordinate" or field not in _VALUES or symmetry not in _SYMMETRIES:
                raise UnrecognizedInput(
                    f"{source.label} is a matrix with the qualifiers {form}, {field} and "
                    f"{symmetry}. cocite reads coordinate matrices; the field must be one of "
                    f"{', '.join(_VALUES)}, and the symmetry one of {', '.join(_SYMMETRIES)}"
                )
        elif text and not text.startswith("%"):
            return _sized(source, text, lines, field, symmetry), head[line.end() :]
        if line.end() == len(head):
            break
    raise InputError(f"{source.label}:{lines}: the line with rows, columns and entries is missing")


def _sized(source: Source, text: str, line: int, field: str, symmetry: str) -> _MatrixHeader:
    words = text.split()
    if len(words) != 3 or not all(w.isascii() and w.isdecimal() and len(w) < 19 for w in words):
        raise InputError(
            f"{source.label}:{line}: {text[:60]!r} is not three numbers: rows, columns, entries"
        )
    rows, columns, entries = map(int, words)
    if rows != columns:
        raise UnrecognizedInput(
            f"{source.label} is a matrix of {rows:,} rows and {columns:,} columns: row 1 and "
            "column 1 are not the same node. Links must be entries of a square matrix; for two "
            "kinds of nodes, write an edge list with rows such as user1,item1"
        )
    if rows > _MOST:
        raise ResourceError(f"{source.label} has {rows:,} rows; the maximum is {_MOST:,}")
    return _MatrixHeader(field, symmetry, line, rows, entries)


def _check_rows(job: Job, header: _MatrixHeader) -> None:
    """Check that rows without entries fit in memory: a small file can declare billions of rows."""
    need = _ROW * (header.size - 2 * header.entries)
    if need > job.memory:
        raise ResourceError(
            f"{job.source.label}:{header.lines}: {header.size:,} rows, and {header.entries:,} "
            f"entries: the nodes without links alone need {format_least(need)} of memory; "
            f"{short_of(job.memory)}, or correct the number of rows"
        )


def _check_weight(job: Job, header: _MatrixHeader) -> None:
    weight = job.options.weight
    if not weight:
        return
    if weight.lower() not in ("3", "value", "weight"):
        raise UsageError(
            f"{job.source.label} has no column {weight!r}; the values of entries are in column "
            "3, named value"
        )
    if _VALUES[header.field] != 1 or header.symmetry not in ("general", "symmetric"):
        raise UsageError(
            f"{job.source.label} is a {header.field} {header.symmetry} matrix, which has no values "
            "to use as weights. Omit --weight-column (weight_column=...)"
        )


def _check_range(job: Job, header: _MatrixHeader, found: Found) -> None:
    """Check that all entries are within the matrix; skip or refuse others."""
    within = " AND ".join(
        f"coalesce(TRY_CAST({end} AS UBIGINT) BETWEEN 1 AND {header.size}, false)" for end in "ab"
    )
    outside = job.database.execute(
        f"SELECT rowid + 1, a, b FROM reading.links WHERE NOT ({within}) ORDER BY rowid"
    ).fetchmany(5)
    if outside:
        what = f"an entry outside {header.size:,} rows and columns"
        number, a, b = outside[0]
        if job.options.bad_rows == "stop":
            where = f"{job.source.label}, entry"
            raise MalformedRow(where, number, what, f"{a} {b}")
        count = job.count(f"DELETE FROM reading.links WHERE NOT ({within})")
        found.rows -= count
        examples = (f"entry {n}: {what}: '{a} {b}'" for n, a, b in outside)
        found.leave_out("outside", count, examples)
    found.integers = True


class _EntryCleaner(Cleaner):
    """Cleans lines of row, column and values."""

    def __init__(self, source: Source, options: Any, header: _MatrixHeader) -> None:
        super().__init__(source, 2, options)
        self._tally[self._k.T_LINES] = header.lines
        self._values = _VALUES[header.field]

    def decide(self, head: bytes) -> None:
        self.found = TextInput(self.found.file, delimiter="space", columns=2 + self._values)
        self.found.weight = 2 if self.options.weight else None
