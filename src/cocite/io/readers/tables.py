"""Tables of nodes and labels: how one is read is found out as for links, said, and then done.

Text (plain or packed) or Parquet. Delimiter and header, where they are not given, are those that
``io/readers/dialect.py`` finds; a first row that names a node is none of titles. The columns of
name and label are the first two unless others are named, by title or number. Rows that lack a
column, or have an empty one, are malformed: the first is refused, or they are left out and counted.

Cost: one look at the beginning, then one pass, a row at a time.

Two columns of a table: names of nodes and something about them, such as texts or weights.

Text (plain or packed) or Parquet, recognized by content as for links. Labels, which come in more
dialects, are read by ``io/readers/tables.py``. Text is cut at tabs,
or by the rules of CSV if the file's name ends in ``.csv``; lines that begin with ``#`` and blank
ones are passed over. A row that lacks a column is malformed.

Cost: one pass, a row at a time; nothing but the rows asked for is kept. A row has at most 32 Mi
characters, as it is in memory whole: a few megabytes that are packed may be gigabytes.

Texts of pages: a folder, a tar archive or a table, each text under the name of its node.

A text at a time is in memory; the order is that of the files' names, of the archive or the table.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, TextIO, cast

from cocite.errors import InputError, MalformedRow, ResourceError, UsageError
from cocite.io.database import file_literal, file_pattern, open_duckdb
from cocite.io.readers import signs
from cocite.io.readers.contract import DELIMITERS, ReadOptions
from cocite.io.readers.dialect import fields, guess_delimiter, has_label_header, plain_title, sample
from cocite.io.readers.formats import PARQUET, format_of
from cocite.io.readers.parquet import not_parquet
from cocite.io.readers.sources import Source, unpack_errors
from cocite.io.readers.tar import TarError, tar_members
from cocite.resources import budget, database_memory, format_size

if TYPE_CHECKING:
    from cocite.graph.names import Names


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
            yield from _rows(source, TableLines(text, source.label), columns)
    except unpack_errors() as error:
        raise InputError(f"{source.label} cannot be read: {error}") from error


def _rows(source: Source, lines: TableLines, columns: tuple[int, int]) -> Iterator[tuple[str, str]]:
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


class TableLines:
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

    assert source.path is not None
    file = f"read_parquet({file_literal(source.path)}, hive_partitioning = false)"
    may = [str(source.path.absolute()), file_pattern(source.path), os.path.realpath(source.path)]
    try:
        limit = min(_MOST_MEMORY, database_memory(budget(None)))
        config: dict[str, Any] = {"memory_limit": f"{limit}B", "threads": 1}
        with open_duckdb(":memory:", config, files=may) as connection:
            found = connection.execute(query.replace("{file}", file))
            while rows := found.fetchmany(PARQUET_ROWS):
                yield from rows
    except duckdb.Error as error:
        raise not_parquet(source, error) from error


# -- labeled ----------------------------------------------------------------------------


_FIRST = ("1", "2")
_KEPT_EXAMPLES = 3
_LONGEST_LABEL = 65_535
"""Characters of a name, as in a graph, and of a label."""
_QUOTING = ("comma", "semicolon")


class Labeled:
    """A table of names and labels: iterate over it for (name, label), row by row.

    ``options.columns`` are the two columns, the first two if there are none; ``is_name`` tells
    whether a node is called so. ``bad_rows`` and ``examples`` are known when all is read.

    Raises :class:`~cocite.errors.InputError`, :class:`~cocite.errors.MalformedRow`,
    :class:`~cocite.errors.UsageError`.
    """

    form = "labels are rows of a name and a label"
    ends, columns = "name and label", "label columns"
    advice = "Name them: --delimiter space --label-columns 1,2; or put a tab between name and label"
    header_advice = "if these are a label: --header no"
    cells = "name or label"
    """What messages call these rows and their two cells."""

    def __init__(
        self, path: Path, options: ReadOptions, is_name: Callable[[str], bool] = lambda name: False
    ) -> None:
        if not path.is_file():
            raise InputError(f"{path} is not a file")
        self.path, self._options, self._source = path, options, Source(path)
        self.rows = self.bad_rows = 0
        self.examples: list[str] = []
        self.header, self.first = False, ("", "")
        beginning = self._source.beginning()
        self.delimiter = "Parquet" if PARQUET.sign(beginning) else ""
        if self.delimiter:
            self.places = self._places(parquet_titles(self._source), titled=True)
            return
        found = format_of(self._source)
        if found is not None:
            raise UsageError(
                f"{path} is {found.name}; {self.form}, as text (tabs, commas, semicolons, bars or "
                "blanks) or Parquet"
            )
        lines = sample(beginning.content, options.comment)
        self.delimiter = options.delimiter
        if self.delimiter == "auto":
            self.delimiter = guess_delimiter(lines, 2, ".csv" in path.suffixes)
            self._see_clear(lines)
        cells = [fields(line, self.delimiter) for line in lines]
        self._wide = len(cells[0]) if cells else 0
        titled = options.header != "no" and not all(map(str.isdecimal, options.columns))
        self.places = self._places(cells[0] if cells else [], titled)
        if cells and len(cells[0]) > max(self.places):
            self.first = tuple(cells[0][i].strip() for i in self.places)  # type: ignore[assignment]
        guessed = has_label_header(cells, self.places) and not is_name(self.first[0])
        self.header = titled or (guessed if options.header == "auto" else options.header == "yes")

    def _see_clear(self, lines: list[str]) -> None:
        """Ask which columns are meant, where blanks cut lines into more than two."""
        counts = {len(fields(line, self.delimiter)) for line in lines}
        named = self._options.columns not in ((), _FIRST)
        if self.delimiter == "space" and counts != {2} and not named and lines:
            raise UsageError(
                f"{self.path} has {min(counts)} to {max(counts)} columns between blanks, such as "
                f"{lines[0].strip()[:60]!r}; which are {self.ends} is not clear. {self.advice}"
            )

    def _places(self, first: list[str], titled: bool) -> tuple[int, int]:
        """Where name and label stand, from 0 on."""
        columns = self._options.columns or _FIRST
        if len(columns) != 2:
            raise UsageError(f"{self.columns} are two: those of {self.ends}")
        titles = [plain_title(title) for title in first] if titled else []
        places = []
        for column in columns:
            if plain_title(column) in titles:
                places.append(titles.index(plain_title(column)))
            elif not column.isdecimal():
                found = ", ".join(repr(title.strip()) for title in first) or "nothing"
                raise UsageError(f"{self.path} has no column {column!r}; its first row is {found}")
            elif int(column) < 1:
                raise UsageError(f"column {column}: columns are numbered from 1")
            else:
                places.append(int(column) - 1)
        if self.delimiter == "Parquet" and max(places) >= len(first):
            raise InputError(
                f"{self.path} has {len(first)} columns; column {max(places) + 1} was asked for"
            )
        if places[0] == places[1]:
            raise UsageError(f"{self.columns} {','.join(columns)} are one column twice")
        return places[0], places[1]

    @property
    def label(self) -> str:
        """What messages call it: as seen from here, if it is below."""
        here = os.path.relpath(self.path)
        return str(self.path) if here.startswith(os.pardir) else here

    def describe(self) -> str:
        """One line for people, when it is read: how, and what was left out."""
        kind = {"space": "blank-separated", "Parquet": "Parquet"}.get(
            self.delimiter, f"{self.delimiter}-separated"
        )
        text = f"{self.label}: {kind}"
        if self.header:
            title, other = self.first
            text += f", a header ({title!r}, {other!r}; {self.header_advice})"
        elif self.delimiter != "Parquet":
            text += ", no header"
        if self.places != (0, 1):
            text += f", {self.ends} in columns {self.places[0] + 1} and {self.places[1] + 1}"
        if self.bad_rows:
            s = "s" * (self.bad_rows != 1)
            text += f"; left out {self.bad_rows:,} bad row{s}, such as {self.examples[0]}"
        return text

    def __iter__(self) -> Iterator[tuple[str, str]]:
        if self.delimiter == "Parquet":
            for name, label in parquet_rows(self._source, self.places):
                self.rows += 1
                yield name, label
            return
        stream, _ = self._source.open()
        try:
            with io.TextIOWrapper(
                cast(BinaryIO, stream), "utf-8-sig", errors="surrogateescape", newline=""
            ) as text:
                yield from self._read(TableLines(text, self.label, self._options.comment))
        except unpack_errors() as error:
            raise InputError(f"{self.path} cannot be read: {error}") from error
        if self._options.skip_bad_rows is True and self.bad_rows > self.rows:
            raise InputError(
                f"{self.path}: {self.bad_rows:,} of {self.bad_rows + self.rows:,} rows are bad, "
                f"more than half, such as {self.examples[0]}: this may be no table of labels, or "
                "one that is to be read in another way (--delimiter, --label-columns, --header). "
                "--skip-all-bad-rows (skip_bad_rows='all') leaves them out all the same"
            )

    def _read(self, lines: TableLines) -> Iterator[tuple[str, str]]:
        name, label = self.places
        titles = self.header
        for row in self._cut(lines):
            if titles:
                titles = False
                continue
            wrong = self._wrong(row)
            if wrong:
                self._refuse(lines.number, wrong, row)
            else:
                self.rows += 1
                yield row[name].strip(), row[label].strip()

    def _wrong(self, row: list[str]) -> str:
        """What is wrong with a row, if anything is."""
        if len(row) <= max(self.places):
            return f"{len(row)} columns, where {max(self.places) + 1} are needed"
        if self.delimiter == "space" and len(row) != self._wide:
            return f"not {self._wide} blank-separated columns"
        if max(len(row[place]) for place in self.places) > _LONGEST_LABEL:
            return f"a {self.cells} of more than {_LONGEST_LABEL:,} characters"
        return "" if all(row[place].strip() for place in self.places) else f"an empty {self.cells}"

    def _refuse(self, line: int, what: str, row: list[str]) -> None:
        self.bad_rows += 1
        content = DELIMITERS[self.delimiter].join(row)[:200]
        if not self._options.skip_bad_rows:
            raise MalformedRow(str(self.path), line, what, content)
        if len(self.examples) < _KEPT_EXAMPLES:
            self.examples.append(f"line {line}: {what}: {content!r}")

    def _cut(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """The rows; a quoted cell may have breaks of lines in it."""
        if self.delimiter not in _QUOTING:
            yield from (fields(line.rstrip("\r\n"), self.delimiter) for line in lines)
            return
        before = csv.field_size_limit(LONGEST)
        try:
            yield from csv.reader(
                lines, delimiter=DELIMITERS[self.delimiter], skipinitialspace=True
            )
        except csv.Error as error:
            raise InputError(f"{self.path} cannot be read: {error}") from error
        finally:
            csv.field_size_limit(before)


class PairRows(Labeled):
    """A table of pairs of names, read in the same way."""

    form = "pairs are rows of two names"
    ends, columns = "the two names", "pair columns"
    advice = "Put a tab between the two"
    header_advice = "if these are a pair, no node is called so"
    cells = "name"


# -- texts -------------------------------------------------------------------------------


def texts_of(
    path: Path,
    names: Names,
    progress: Callable[[int, int], None] = lambda done, total: None,
    stranger: Callable[[str], None] = lambda name: None,
) -> Iterator[tuple[int, str]]:
    """The texts of nodes, with their ids.

    Parameters
    ----------
    path
        A folder or a tar archive (packed or not) with one file a text, which is called as the node
        is, with or without an ending such as ``.txt``; or a table of names and texts (tabs, commas
        in ``.csv``, or Parquet).
    names
        Of the graph's nodes; texts of others are passed over.
    progress
        Called with (texts found, 0).
    stranger
        Called with what each text is called that is passed over.

    Raises
    ------
    InputError
        If it cannot be read, or has no text of any node.
    """
    found = 0
    for name, text in _named_texts(path):
        node = names.find(name)
        if node is None and "." in name:
            node = names.find(name.rsplit(".", 1)[0])
        if node is not None:
            found += 1
            yield node, text
            progress(found, 0)
        else:
            stranger(name)
    if not found:
        raise InputError(f"{path} has no text that is called as a node of the graph is")


def _named_texts(path: Path) -> Iterator[tuple[str, str]]:
    if path.is_dir():
        top = path.resolve()
        for file in sorted(path.rglob("*")):
            if file.is_file():
                if not file.resolve().is_relative_to(top):
                    raise InputError(
                        f"{file} is a link out of the folder {path}, and such links are not "
                        "followed. Copy the file there, or leave it out"
                    )
                with file.open("rb") as opened:
                    yield file.name, _cell_text(opened, str(file))
        return
    if not path.is_file():
        raise InputError(f"{path} is not there; texts are a folder, a tar archive or a table")
    source = Source(path)
    if not signs.tar(source.beginning()):
        yield from read_columns(path)
        return
    wrong: tuple[type[Exception], ...] = (TarError, *unpack_errors())
    stream, raw = source.open()
    try:
        with raw, stream:
            for member in tar_members(stream):
                if member.kind == "file":
                    name = member.name.rsplit("/", 1)[-1]
                    yield name, _cell_text(member.content, f"{member.name} in {path}")
    except wrong as error:
        raise InputError(f"{path} cannot be read to its end: {error}") from error


def _cell_text(file: IO[bytes], label: str) -> str:
    """All of a file; raises :class:`InputError` for one that is longer than any text."""
    content = file.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise InputError(
            f"{label} has more than {LONGEST:,} bytes, the most that a text has. Cut it, or leave "
            "it out"
        )
    return content.decode("utf-8", errors="replace")
