"""Titles of nodes during ingest.

Titles come from tables, from objects in memory (a mapping of names to titles, pairs, or a table
with two columns), and from readers of links. Tables and objects take precedence over readers; if a
name has several titles, the first counts. Titles of unknown names are counted, and rows without a
name or a title are skipped. In a series, or a data frame with one column, the index has the names.

Titles in memory take a few microseconds each, and tables in memory are converted to lists.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cocite.errors import InputError, UnrecognizedInput, UsageError
from cocite.graph.name_files import write_titles
from cocite.graph.names import text_of
from cocite.io.database import database_named
from cocite.io.objects import columns_of, is_missing, kind_of_object, split_objects
from cocite.io.readers import NameTable, ReadOptions, Source, expand, reader_of
from cocite.io.readers.contract import Progress, TitleSink
from cocite.io.readers.formats import PARQUET, TEXT, reader_at
from cocite.io.readers.sql import SqlSource
from cocite.io.readers.tables import TITLES, places_of
from cocite.storage import Entry

if TYPE_CHECKING:
    from cocite.io.tables import Tables

_BEHIND = 1 << 40
"""Position of the first title from a reader of links: after all given titles."""
_DATABASES = ("SQLite", "DuckDB", "PostgreSQL")


class Titling:
    """The titles of one run: those ``given`` to :func:`cocite.ingest`, as ``sources`` or as
    objects, and those found by readers. ``columns`` are a table's columns for names and titles.
    Raises :class:`UsageError`, and :class:`UnrecognizedInput` for a file that is not a table.
    """

    def __init__(
        self, given: Any, columns: tuple[str, ...], options: ReadOptions, memory: int
    ) -> None:
        files, pairs = split_titles(given, columns)
        self.sources = [source for file in files for source in _source_of(file, memory)]
        self.any = bool(self.sources) or pairs is not None
        self._pairs = pairs or ()
        self._read: list[dict[str, Any]] = []
        if len(columns) not in (0, 2):
            raise UsageError(
                f"title_columns is {','.join(columns)}; it must be two columns, name and title, "
                "such as 1,2"
            )
        if columns and not self.any:
            raise UsageError(
                "--title-columns (title_columns=...) requires a table of titles: pass it with "
                "--titles (titles=...)"
            )
        for source in self.sources:
            if not source.is_pipe:
                _check(source, options)
        columns = columns if self.sources else ()
        self._options = ReadOptions(
            columns=columns, comment=options.comment, bad_rows=options.bad_rows
        )

    def read(self, tables: Tables, called: Callable[[str], str], progress: Progress) -> None:
        """Read the given titles; ``called`` maps a name in the input to a node name."""
        self._given = TitleSink(tables.add_titles, called=called)
        self.met = TitleSink(tables.add_titles, _BEHIND, called)
        """Sink for the titles that readers of links find."""
        with tables.reading() as database:
            for name, title in self._pairs:
                self._given.add(name, title)
            for source in self.sources:
                _check(source, self._options)
                count, empty = self._given.count, self._given.empty
                table = NameTable(
                    source, TITLES, self._options, database=database, progress=progress
                )
                for name, title in table:
                    self._given.add(name, title)
                without = self._given.empty - empty + table.without
                self._read.append(_facts(table, self._given.count - count, without))
        self._given.flush()

    def store(self, directory: Path, tables: Tables) -> tuple[dict[str, Any], dict[str, Entry]]:
        """Write the nodes' titles; return (facts for the manifest, files), empty if no titles."""
        self.met.flush()
        if not self._given.count + self.met.count:
            if self.sources:
                raise InputError(f"{self.sources[0].label} contains no titles")
            return {}, {}
        facts = tables.load_titles()
        if self._given.count and not facts["nodes"]:
            raise InputError(
                f"none of the {facts['unknown']:,} titles belongs to a node: no node is named "
                f"{facts['strangers'][0]!r}. To choose other columns: --title-columns NAME,TITLE "
                "(title_columns=...)"
            )
        if not facts["nodes"]:
            return {}, {}
        titles = facts | {"sources": self._read}
        return {"titles": titles}, write_titles(directory, tables.titles())


def _check(source: Source, options: ReadOptions) -> None:
    """Raise :class:`UnrecognizedInput` for anything but a table."""
    readable = reader_at(TEXT), reader_at(PARQUET.reader)
    known = isinstance(source, SqlSource)
    if not known and reader_of(source, options.for_nodes(), 1) not in readable:
        raise UnrecognizedInput(
            f"{source.label} is not a table of names and titles; it must be text with tabs or "
            "commas, Parquet, or a database table"
        )


def _facts(table: NameTable, titles: int, without: int) -> dict[str, Any]:
    """Return a table's manifest entry, with only the base name of its path."""
    name = Path(table.file).name
    kind = f"a table in {table.delimiter}" if table.delimiter in _DATABASES else table.separated
    text = f"{name}: {titles:,} title{'s' * (titles != 1)}, {kind}"
    place, other = table.places
    if table.header:
        text += f", in column {table.header[other]!r} for the names in {table.header[place]!r}"
    elif table.width > 2 or table.places != (0, 1):
        text += f", in column {other + 1} for the names in column {place + 1}"
    if table.header or table.width > 2:
        text += " (to choose others: --title-columns NAME,TITLE)"
    rows = f"{without:,} row{'s' * (without > 1)}"
    return {
        "file": name,
        "titles": titles,
        "without": without,
        "bad_rows": dict(table.bad_rows),
        "examples": table.examples,
        "read_as": text + (f", {rows} without a title" if without else ""),
    }


def _source_of(named: Any, memory: int) -> list[Source]:
    """Return the sources of a file, a glob or a database; ``memory`` is DuckDB's limit."""
    text = os.fspath(named) if isinstance(named, str | os.PathLike) else ""
    if database_named(text) is None:
        return expand([named])
    return [SqlSource.checked(None, text, None, memory)]


# -- in memory ---------------------------------------------------------------------------


_ALLOWED = (
    "titles must be a mapping of names to titles, pairs (name, title), a table with these two "
    "columns, or file paths"
)


def split_titles(
    titles: Any, columns: tuple[str, ...]
) -> tuple[Sequence[Any], tuple[tuple[str, str], ...] | None]:
    """Return (file names, pairs in memory or None); raises :class:`UsageError`."""
    if titles is None or isinstance(titles, str | os.PathLike):
        return [] if titles is None else [titles], None
    if callable(getattr(titles, "items", None)) and not hasattr(titles, "columns"):
        if columns:
            raise UsageError("title_columns applies to tables only: omit it for a mapping")
        return [], tuple(_checked(titles.items()))
    in_memory, titles = split_objects(titles)
    return ([], tuple(_checked(_rows(titles, columns)))) if in_memory else (titles, None)


def _rows(titles: Any, columns: tuple[str, ...]) -> Iterable[Any]:
    """Return the (name, title) rows of a table, array or other iterable."""
    kind = kind_of_object(titles)
    if isinstance(titles, np.ndarray):
        return titles.tolist()  # type: ignore[no-any-return]
    if kind is None and isinstance(titles, Iterable):
        return titles
    if kind is None or not kind.table:
        what = type(titles).__name__ if kind is None else kind.name
        raise UsageError(f"{what} contains no titles: {_ALLOWED}")
    if hasattr(titles, "iloc") and len(titles.columns) == 1:  # the index has the names
        titles = titles.rename_axis(titles.index.name or "name").reset_index()
    named, column = columns_of(titles)
    (first, second), _ = places_of(TITLES, "the table of titles", list(map(str, named)), columns)
    pair = (column(first), column(second))
    return zip(
        *(c.tolist() if isinstance(c, np.ndarray) else c.to_pylist() for c in pair), strict=True
    )


def _checked(rows: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Yield (name, title) as text; skip incomplete rows."""
    for row in rows:
        if not isinstance(row, Sequence) or isinstance(row, str | bytes) or len(row) != 2:
            raise UsageError(f"{row!r} is not a pair (name, title): {_ALLOWED}")
        name, title = row
        if is_missing(name) or is_missing(title):
            continue
        if not isinstance(title, str | int | float | np.generic):
            raise UsageError(f"the title of {name!r} is {title!r}; titles must be text")
        yield text_of(name), str(title)
