"""Titles while a graph is made: read, given to the nodes that there are, and counted.

Titles come from tables that are given for them, from what is in memory (a mapping of names to
titles, pairs, or a table with two columns), and from readers of links that meet some on their way
(``io/readers/contract.py``); those that are given go first, and the first one of a node stands.
Those of names that no node has are counted.

Of a table in memory the columns are name and title that are chosen, or whose titles say so, such as
``name`` and ``title``; else the first two. Of a data frame with one column, and of a series, names
are the index. Rows without a name or a title are passed over.

Cost: a pass over the titles; some microseconds for one in memory, and a table is turned into lists.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cocite.errors import InputError, UsageError
from cocite.extras import need
from cocite.graph.name_files import text_of, write_titles
from cocite.io.object_kinds import kind_of_object, split_objects
from cocite.io.objects import is_missing
from cocite.io.readers import ReadOptions, Source
from cocite.io.readers.contract import Progress, TitleFile
from cocite.io.readers.titles import TitlesFound, check_titles, read_titles, title_places
from cocite.storage import Entry

if TYPE_CHECKING:
    from cocite.io.tables import Tables

_BEHIND = 1 << 40
"""The place of the first title that is not out of a table."""


class Titling:
    """The titles of one run; its files are in ``work``."""

    def __init__(
        self,
        sources: list[Source],
        columns: tuple[str, ...],
        options: ReadOptions,
        work: Path,
        called: Callable[[str], str] = str,
        pairs: Iterable[tuple[str, str]] = (),
    ) -> None:
        """``pairs`` are names and titles that are in memory."""
        self._sources, self._columns, self._options = sources, columns, options
        self._pairs = pairs
        self._given = TitleFile(work / "titles.given", called=called)
        self.met = TitleFile(work / "titles.met", _BEHIND, called)
        """Takes the titles that readers of links meet."""
        self._read: list[TitlesFound] = []

    @staticmethod
    def checked(
        sources: list[Source], columns: tuple[str, ...], options: ReadOptions
    ) -> tuple[str, ...]:
        """The columns; raises :class:`UsageError` for those that are none, or for no table, and
        :class:`~cocite.errors.UnrecognizedInput` for what is no table.
        """
        if len(columns) not in (0, 2):
            raise UsageError(
                f"title_columns is {','.join(columns)}; it takes two, name and title, as in 1,2"
            )
        if columns and not sources:
            raise UsageError(
                "title_columns (--title-columns) are those of a table of titles: give that, too "
                "(--titles)"
            )
        for source in sources:
            if not source.is_pipe:
                check_titles(source, options)
        return columns

    def read(self, tables: Tables, progress: Progress) -> None:
        """Read the tables."""
        with self._given, tables.reading() as database:
            for name, title in self._pairs:
                self._given.add(name, title)
            for source in self._sources:
                found = read_titles(
                    source, self._columns, self._options, database, self._given, progress
                )
                self._read.append(found)

    def store(self, directory: Path, tables: Tables) -> tuple[dict[str, Any], dict[str, Entry]]:
        """Write the titles of the nodes that ``tables`` has numbered; returns what the manifest
        says of them and the files, nothing if there are none and none were given.
        """
        with self.met:  # which writes what is left of them
            pass
        files = [file for file in (self._given, self.met) if file.count]
        if not files:
            if self._sources:
                raise InputError(f"{self._sources[0].label} has no title")
            return {}, {}
        kept = tables.load_titles(files)
        known = kept.names - kept.unknown
        if self._given.count and not known:
            raise InputError(
                f"none of the {kept.names:,} titles is of a node: {kept.strangers[0]!r} is no name "
                "of one. If the columns are others: --title-columns NAME,TITLE (title_columns=)"
            )
        if not known:
            return {}, {}
        facts = {
            "nodes": known,
            "unknown": kept.unknown,
            "others": kept.others,
            "strangers": kept.strangers,
            "sources": [self._reported(found) for found in self._read],
        }
        return {"titles": facts}, write_titles(directory, tables.titles())

    @staticmethod
    def _reported(found: TitlesFound) -> dict[str, Any]:
        """As of an input of links: its base name, not where it lay on this machine."""
        name = Path(found.file).name
        return asdict(found) | {
            "file": name,
            "read_as": found.describe().replace(found.file, name, 1),
        }


# -- in memory ---------------------------------------------------------------------------


_ALLOWED = (
    "titles are a mapping of names to titles, pairs of the two, a table with a column for each, or "
    "names of files"
)


def split_titles(
    titles: Any, columns: tuple[str, ...]
) -> tuple[Any, tuple[tuple[str, str], ...] | None]:
    """What was given as titles: names of files, and those that are in memory, one of both None.

    Raises :class:`UsageError` for what holds no titles.
    """
    if titles is None or isinstance(titles, str | os.PathLike):
        return titles, None
    if isinstance(titles, Mapping) or _is_series(titles):
        if columns:
            raise UsageError("title_columns are those of a table: leave them out for a mapping")
        return None, tuple(_checked(titles.items()))
    in_memory, titles = split_objects(titles)
    if not in_memory:
        return titles, None
    return None, tuple(_checked(_rows(titles, columns)))


def _is_series(value: Any) -> bool:
    return kind_of_object(value) is None and callable(getattr(value, "items", None))


def _rows(titles: Any, columns: tuple[str, ...]) -> Iterable[Any]:
    """The pairs of a table, or the rows of anything else."""
    kind = kind_of_object(titles)
    if kind is not None and not kind.table:
        raise UsageError(f"{kind.name} holds no titles: {_ALLOWED}")
    if kind is None and not hasattr(titles, "__arrow_c_stream__"):
        if not isinstance(titles, Iterable):
            raise UsageError(f"{type(titles).__name__} holds no titles: {_ALLOWED}")
        return titles
    if isinstance(titles, np.ndarray):
        return titles.tolist()  # type: ignore[no-any-return]
    named, cells = _columns(titles)
    first, second = title_places(named, columns)
    return zip(cells[first](), cells[second](), strict=True)


def _columns(table: Any) -> tuple[list[str], list[Any]]:
    """The titles of columns, and what gives each as a list."""
    if hasattr(table, "iloc"):  # pandas
        named = [str(title) for title in table.columns]
        cells = [lambda i=i: table.iloc[:, i].tolist() for i in range(len(named))]
        if len(named) == 1:
            index = "name" if table.index.name is None else str(table.index.name)
            return [index, *named], [table.index.tolist, *cells]
        return named, cells
    if hasattr(table, "get_columns"):  # polars
        return list(table.columns), [column.to_list for column in table.get_columns()]
    if hasattr(table, "read_all"):
        table = table.read_all()
    if not hasattr(table, "column_names") and not hasattr(table, "schema"):
        table = need("pyarrow", "a table of Arrow", "arrow").table(table)
    named = [str(field.name) for field in table.schema]
    return named, [table.column(i).to_pylist for i in range(len(named))]


def _checked(rows: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """(name, title) as text."""
    for row in rows:
        if not isinstance(row, Sequence) or isinstance(row, str | bytes) or len(row) != 2:
            raise UsageError(f"{row!r} is no name and its title: {_ALLOWED}")
        name, title = row
        if is_missing(name) or is_missing(title):
            continue
        if not isinstance(title, str | int | float | np.generic):
            raise UsageError(f"the title of {name!r} is {title!r}; a title is text")
        yield text_of(name), str(title)
