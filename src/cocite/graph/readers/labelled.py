"""Tables of nodes and labels: how one is read is found out as for links, said, and then done.

Text (plain or packed) or Parquet. Delimiter and header, where they are not given, are those that
``dialect.py`` finds; a first row that names a node is none of titles. The columns of name and label
are the first two unless others are named, by title or number. Rows that lack a column, or have an
empty one, are malformed: the first is refused, or they are left out and counted.

Cost: one look at the beginning, then one pass, a row at a time.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from cocite.errors import InputError, MalformedRow, UsageError
from cocite.graph.readers.columns import LONGEST, Lines, parquet_rows, parquet_titles
from cocite.graph.readers.dialect import (
    fields,
    guess_delimiter,
    has_label_header,
    sample,
)
from cocite.graph.readers.ends import plain_title
from cocite.graph.readers.options import DELIMITERS, ReadOptions
from cocite.graph.readers.recognise import PARQUET, format_of
from cocite.graph.readers.sources import Source, unpack_errors

__all__ = ["Labelled", "PairRows"]

_FIRST = ("1", "2")
_KEPT_EXAMPLES = 3
_LONGEST_LABEL = 65_535
"""Characters of a name, as in a graph, and of a label."""
_QUOTING = ("comma", "semicolon")


class Labelled:
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
                yield from self._read(Lines(text, self.label, self._options.comment))
        except unpack_errors() as error:
            raise InputError(f"{self.path} cannot be read: {error}") from error
        if self._options.skip_bad_rows is True and self.bad_rows > self.rows:
            raise InputError(
                f"{self.path}: {self.bad_rows:,} of {self.bad_rows + self.rows:,} rows are bad, "
                f"more than half, such as {self.examples[0]}: this may be no table of labels, or "
                "one that is to be read in another way (--delimiter, --label-columns, --header). "
                "--skip-all-bad-rows (skip_bad_rows='all') leaves them out all the same"
            )

    def _read(self, lines: Lines) -> Iterator[tuple[str, str]]:
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


class PairRows(Labelled):
    """A table of pairs of names, read in the same way."""

    form = "pairs are rows of two names"
    ends, columns = "the two names", "pair columns"
    advice = "Put a tab between the two"
    header_advice = "if these are a pair, no node is called so"
    cells = "name"
