"""Spreadsheets: the rows of a sheet of an .xlsx, .xlsb, .xls or .ods file, read as those of a text.

A sheet becomes text with commas and quotes, so header, columns and weights are found out, or told,
as of any text (``text.py``), and a row that is malformed is named by its number in the sheet. Whole
numbers are written without a point; a line end in a cell is a blank. The sheet is the one that is
named (``--sheet``), or the only one with rows.

Cost: calamine parses some 5 million cells a second, and holds a sheet in memory, some 50 bytes a
cell beside its text; a sheet has 1,048,576 rows at most.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from cocite.errors import InputError, NotLinks, UsageError
from cocite.extras import need
from cocite.graph.readers.clean import clean_relation, new_clean_file
from cocite.graph.readers.options import no_progress
from cocite.graph.readers.reader import Job, Read
from cocite.graph.readers.rows import RowsFound
from cocite.graph.readers.sources import Source
from cocite.graph.readers.text import Cleaner

__all__ = ["READER", "SpreadsheetReader"]


class SpreadsheetReader:
    """One sheet."""

    title = "a spreadsheet"
    described = (
        "a sheet of a spreadsheet (xlsx, xlsb, xls, ods), as rows of a text; --sheet names it"
    )
    streams = False

    def read(self, job: Job) -> Read:
        """Its rows as text, cleaned as such."""
        source = job.source
        calamine = need("python_calamine", "a spreadsheet", "excel")
        job.progress("reading " + source.short, 0, 0)
        with (
            _readable(source),
            closing(calamine.CalamineWorkbook.from_path(str(source.path))) as book,
        ):
            sheet = _sheet(source, book, job.options.sheet)
            name = sheet.name
            with new_clean_file(job) as out:
                options = replace(job.options, delimiter="comma")
                text = _Text(sheet.iter_rows())
                found = Cleaner(source, job.wanted, options).run(text, out, no_progress)
        note = found.describe().removeprefix(f"{found.file}: comma-separated, ")
        told = RowsFound.of(found, f"the sheet {name!r} of a spreadsheet", note)
        return Read(clean_relation(job, found.integers), told)


READER = SpreadsheetReader()


@contextmanager
def _readable(source: Source) -> Iterator[None]:
    """Say of which file it is what calamine finds wrong."""
    calamine = need("python_calamine", "a spreadsheet", "excel")
    try:
        yield
    except calamine.PasswordError as error:
        raise InputError(
            f"{source.label} is a spreadsheet with a password. Save it without one"
        ) from error
    except calamine.CalamineError as error:
        raise InputError(f"{source.label} cannot be read as a spreadsheet: {error}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # calamine's own faults are none of Python's
            raise
        raise InputError(f"{source.label} cannot be read as a spreadsheet: {error}") from error


def _sheet(source: Source, book: Any, named: str) -> Any:
    """The sheet that is named, or the only one with rows."""
    shown = ", ".join(map(repr, book.sheet_names))
    if named:
        if named not in book.sheet_names:
            raise UsageError(f"{source.label} has no sheet {named!r}; it has {shown}")
        return book.get_sheet_by_name(named)
    full = []
    for name in book.sheet_names:
        sheet = book.get_sheet_by_name(name)
        if sheet.height:
            full.append(name)
    if not full:
        raise NotLinks(f"{source.label} has only empty sheets: {shown}")
    if len(full) > 1:
        raise NotLinks(
            f"{source.label} has {len(full)} sheets with rows: {', '.join(map(repr, full))}. Say "
            f"which holds the links: --sheet {full[0]!r}"
        )
    return book.get_sheet_by_name(full[0])


class _Text:
    """Rows as text with commas, a line each; a row without anything in it is a blank line."""

    def __init__(self, rows: Iterable[Sequence[Any]]) -> None:
        self._rows = iter(rows)  # those above the first with anything in it are among them
        self._given = 0

    def read(self, size: int) -> bytes:
        """Some whole lines, at least ``size`` bytes where there are as many."""
        out = io.StringIO()
        write = csv.writer(out, lineterminator="\n").writerow
        for row in self._rows:
            cells = [_written(value) for value in row]
            if any(cells):
                write(cells)
            else:
                out.write("\n")
            if out.tell() >= size:
                break
        data = out.getvalue().encode("utf-8", "surrogatepass")
        self._given += len(data)
        return data

    def tell(self) -> int:
        """How much was given."""
        return self._given


def _written(value: Any) -> str:
    """A cell as a text would have it."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return " ".join(str(value).splitlines()) if isinstance(value, str) else str(value)
