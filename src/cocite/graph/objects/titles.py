"""Titles that are in memory: a mapping of names to titles, pairs, or a table with two columns.

Of a table those columns are name and title that are chosen, or whose titles say so, such as
``name`` and ``title``; else the first two. Of a data frame with one column, and of a series, names
are the index. Rows without a name or a title are passed over.

Cost: some microseconds a title; a table is turned into lists.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cocite.errors import UsageError
from cocite.graph.labelled import text_of
from cocite.graph.objects.given import is_missing
from cocite.graph.objects.kinds import kind_of_object, told_apart
from cocite.graph.readers import ReadOptions
from cocite.graph.readers.title_table import title_sources
from cocite.graph.readers.titles import title_places
from cocite.graph.titles.titling import Titling

__all__ = ["titles_apart", "titling_of"]

_ALLOWED = (
    "titles are a mapping of names to titles, pairs of the two, a table with a column for each, or "
    "names of files"
)


def titles_apart(
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
    in_memory, titles = told_apart(titles)
    if not in_memory:
        return titles, None
    return None, tuple(_checked(_rows(titles, columns)))


def titling_of(titles: Any, columns: tuple[str, ...], memory: int) -> Callable[[Path], Titling]:
    """The titles of links that are in memory, files or in memory, too: made in a directory.
    ``memory`` is what DuckDB may take.

    Raises what :meth:`Titling.checked` does.
    """
    files, pairs = titles_apart(titles, columns)
    sources = title_sources(files, memory)
    options = ReadOptions()
    named = () if pairs is not None else Titling.checked(sources, columns, options)
    return lambda work: Titling(sources, named, options, work, pairs=pairs or ())


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
        from cocite.extras import need

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
