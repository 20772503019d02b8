"""Titles out of a table, or a view, of a database:

    --titles 'sqlite:///site.db#pages'        what there is behind the #; without it the only table
    --titles 'site.duckdb#pages'              a file of SQLite or DuckDB needs no address
    --titles 'postgres://user@host/web#pages'

Which of its columns are names and titles is told as of any table of titles (``titles.py``). Names
are whole numbers or text, titles whatever can be written as text; a row without a name or a title
is passed over and counted. Connections are read-only (``database.py``).

Cost: some microseconds a row; of DuckDB what it may take, else memory for some thousand rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from cocite.database import Address, address_of, connect, is_address, reported
from cocite.errors import InputError
from cocite.graph.readers.sources import Source, expand
from cocite.graph.readers.sql import SqlSource, cell_text, rows_of, table_query

__all__ = ["database_named", "file_of_titles", "table_rows", "title_sources"]

_FETCHED = 1 << 12
_HINT = "Name one behind a #: {label}#NAME"


def database_named(text: str) -> Address | None:
    """The database that is named as titles: by an address, or as a file of SQLite or DuckDB, with a
    table behind a # or without; None for any other file.

    Raises :class:`~cocite.errors.UsageError` for an address that is wrong.
    """
    if is_address(text):
        return address_of(text)
    place = text if os.path.isfile(text) else text.rpartition("#")[0]
    try:
        with open(place, "rb") as file:
            begins = file.read(16)
    except (OSError, ValueError):
        return None
    stored = begins.startswith(b"SQLite format 3\0") or begins[8:12] == b"DUCK"
    return address_of(text, files=True) if stored else None


def title_sources(
    named: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None, memory: int
) -> list[Source]:
    """Files and databases of titles, in the order in which they are named; ``memory`` is what
    DuckDB may take.

    Raises what :func:`~cocite.graph.readers.sources.expand` raises, and
    :class:`~cocite.errors.UsageError`.
    """
    if named is None:
        return []
    each = [named] if isinstance(named, str | os.PathLike) else list(named)
    texts = [os.fspath(one) if isinstance(one, str | os.PathLike) else "" for one in each]
    if not any(database_named(text) for text in texts):
        return expand(each)
    found: list[Source] = []
    for one, text in zip(each, texts, strict=True):
        if database_named(text) is None:
            found += expand([one])
        else:
            found.append(SqlSource.checked(None, text, None, memory))
    return found


def table_rows(
    source: SqlSource, choose: Callable[[list[str]], tuple[int, int]]
) -> Iterator[tuple[str, str]]:
    """Names and titles, "" for one that is not there; ``choose`` tells by the titles of all columns
    which two are taken. Raises :class:`InputError`, :class:`~cocite.errors.UsageError`.
    """
    address = source.address
    assert address is not None
    duckdb = address.kind == "duckdb"
    with closing(connect(address, memory=source.memory if duckdb else None)) as connection:
        query = table_query(connection, address, _HINT.format(label=address.label))
        with reported(address):
            described = connection.execute(f"{query} LIMIT 0").description
        titles = [str(column[0]) for column in described or ()]
        taken = choose(titles)
        columns = ('"' + titles[i].replace('"', '""') + '"' for i in taken)
        query = query.replace("*", ", ".join(columns), 1)
        read = _fetched(connection, query) if duckdb else rows_of(connection, query, address)
        with reported(address), closing(read) as rows:
            next(rows)
            for number, (name, title) in enumerate(rows, 1):
                text = cell_text(name)
                if text is None and name is not None:
                    raise InputError(
                        f"{source.label}: row {number} has {name!r} in {titles[taken[0]]!r}, and "
                        "names of nodes are whole numbers or text. Choose others with "
                        "--title-columns NAME,TITLE (title_columns=)"
                    )
                if isinstance(title, bytes | bytearray | memoryview):
                    raise InputError(
                        f"{source.label}: row {number} has bytes in {titles[taken[1]]!r}, and "
                        "titles are text. Choose others with --title-columns NAME,TITLE "
                        "(title_columns=)"
                    )
                there = bool(text) and title is not None
                yield (text or "").strip(), _sound(str(title)) if there else ""


def _fetched(connection: Any, query: str) -> Generator[Any, None, None]:
    """The names of the columns, then row after row, of DuckDB."""
    cursor = connection.execute(query)
    yield [str(column[0]) for column in cursor.description]
    while rows := cursor.fetchmany(_FETCHED):
        yield from rows


def _sound(text: str) -> str:
    """A text with bytes of SQLite that are not UTF-8 shown as such."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def file_of_titles(text: str) -> tuple[str, Path | None]:
    """What is named as titles with its whole path, and the file that it is in; None for a server,
    whose titles nobody can tell from those of before.
    """
    address = database_named(text)
    if address is None:
        return os.path.abspath(text), Path(text)
    if not address.is_file:
        return address.label, None
    table = f"#{address.table}" if address.table else ""
    return f"{address.kind}:///{os.path.abspath(address.place)}{table}", Path(address.place)
