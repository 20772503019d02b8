"""Links or titles from a database query or table.

    --sql "select src, dst from 'clicks.parquet'"             DuckDB, on files
    --database site.sqlite --table links                      a table, read-only
    --titles 'site.duckdb#pages'                              a table of names and titles

Names are integers or text. Rows of SQLite and PostgreSQL stream through the kernel for text
(``io/readers/rows.py``), at a few microseconds each; DuckDB first writes its result to a Parquet
file. Messages count rows from 1. A query must be a single, read-only statement; it can read the
database's own tables and, in DuckDB, the files that it quotes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from cocite.errors import InputError, UsageError
from cocite.io.database import (
    Address,
    address_of,
    connect,
    literal,
    matches,
    quoted,
    quoted_column,
    reported,
)
from cocite.io.readers.contract import FormatReader, Job, Read
from cocite.io.readers.dialect import OTHERS, choose_columns, columns_note, ends_of, unread_weights
from cocite.io.readers.parquet import read_file
from cocite.io.readers.rows import RowWriter
from cocite.io.readers.sources import Source
from cocite.io.readers.text import clean_relation, new_clean_file

_FETCHED = 1 << 12
_SHOWN = 10
_CURSOR = "cocite"
_EXAMPLE = "select source, target from links"
_QUOTED = re.compile(r"""'((?:[^']|'')*)'|"((?:[^"]|"")*)"|([^\s'"(),;]*\.[^\s'"(),;]*)""")
_ONE = "--sql (sql=...) must be one query that only reads, such as"
_LINKS = "Choose a table, or pass a query: --table NAME, or --sql 'select source, target from ...'"


class SqlSource(Source):
    """A query of the database ``address`` (None for files); DuckDB may use ``memory`` bytes."""

    def __init__(self, address: Address | None, sql: str, memory: int) -> None:
        label = "the query"  # queries and addresses may contain passwords
        if address is not None:
            label = address.label + (f"#{address.table}" if address.table else "")
        super().__init__(None, label)
        self.address, self.sql, self.memory = address, sql, memory
        self.reader = READER
        self.is_pipe = self.is_directory = False
        self.nbytes = 0
        self.encoding = self.packed = ""

    @classmethod
    def checked(
        cls, sql: str | None, database: str | None, table: str | None, memory: int
    ) -> SqlSource:
        """Return the source; raises :class:`~cocite.errors.UsageError` for an invalid request."""
        address = None if database is None else address_of(database, files=True)
        table = table or (address.table if address is not None else "")
        if address is not None:
            address = replace(address, table=table)
        if sql is None and address is None:
            raise UsageError(
                "--table (table=...) requires a database: pass it with --database (database=...)"
            )
        if sql is not None and table:
            raise UsageError(
                "--sql (sql=...) and --table (table=...) exclude each other: omit one of them"
            )
        if table:
            quoted(table)
        if sql is not None and not sql.strip().strip(";"):
            raise UsageError(f"--sql (sql=...) is empty; it must be a query such as: {_EXAMPLE}")
        return cls(address, (sql or "").strip().rstrip(";"), memory)


def _read(job: Job) -> Read:
    source = job.source
    assert isinstance(source, SqlSource)
    address = source.address or Address("duckdb", ":memory:")
    job.progress("reading " + source.short, 0, 0)
    memory = None if address.kind != "duckdb" else source.memory
    with closing(
        connect(
            address,
            write=source.address is None,  # DuckDB in memory
            memory=memory,
            threads=job.threads,
            spill=str(job.scratch / "spill"),
            files=[str(_result(job)), *_files_of(source.sql)] if memory is not None else (),
        )
    ) as connection:
        query, titles = source.sql, list[str]()
        if not query:
            choose = partial(_places, source, job=job)
            query, titles = _columns_query(connection, address, _LINKS, choose)
            job = _by_titles(job, titles)
        if address.kind == "duckdb":
            return _by_duckdb(
                connection, query, source, job, bool(titles) and _guessed(titles, job)
            )
        return _by_rows(connection, query, source, job)


READER = FormatReader("a database", "a query, or a table in SQLite, DuckDB or PostgreSQL", _read)


def _result(job: Job) -> Path:
    """Return the path for DuckDB's result; older versions require an absolute path."""
    return job.scratch.resolve() / "query.parquet"


def _files_of(query: str) -> Iterator[str]:
    """Yield the files that a query may open: all quoted texts, and words with a dot.

    Each is yielded as written, as an absolute path, and resolved; folders end in a slash.
    """
    for text, name, word in _QUOTED.findall(query):
        path = text.replace("''", "'") or name.replace('""', '"') or word
        for match in (path, *matches(path)) if "\0" not in path else ():
            home = os.path.expanduser(match)
            for each in (match, os.path.abspath(home), os.path.realpath(home)):
                yield each.rstrip("/") + "/" if os.path.isdir(home) else each


# -- tables ----------------------------------------------------------------------------


def _tables(connection: Any, address: Address) -> list[str]:
    """Return the names of a database's tables and views, for messages."""
    if address.kind == "sqlite":
        query = "SELECT '', name FROM sqlite_master WHERE type IN ('table', 'view') "
        query += "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
    else:
        query = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema "
        query += "NOT IN ('pg_catalog', 'information_schema') ORDER BY table_schema, table_name"
    with reported(address):
        found = connection.execute(query).fetchall()
    usual = ("", "main", "public")
    each = (name if "." not in name else f'"{name}"' for _, name in found)
    return [
        name if schema in usual else f"{schema}.{name}"
        for (schema, _), name in zip(found, each, strict=True)
    ]


def _table_query(connection: Any, address: Address, hint: str) -> str:
    """Return a query for the named or only table; raises :class:`UsageError` with ``hint``."""
    there = _tables(connection, address)
    table = address.table
    shown = ", ".join(there[:_SHOWN]) + (", ..." if len(there) > _SHOWN else "")
    if not table:
        if len(there) != 1:
            many = f"{len(there):,} tables" if there else "no table"
            raise UsageError(f"{address.label} has {many}{': ' + shown if there else ''}. {hint}")
        table = there[0]
    plain = table.replace('"', "")
    if plain.lower() not in {name.replace('"', "").lower() for name in there} and "." not in plain:
        raise UsageError(
            f"{address.label} has no table {table!r}" + (f"; it has {shown}" if there else "")
        )
    return f"SELECT * FROM {quoted(table)}"


def _columns_query(
    connection: Any, address: Address, hint: str, choose: Callable[[list[str]], Sequence[int]]
) -> tuple[str, list[str]]:
    """Return a query for the columns that ``choose`` selects by name, and their names."""
    query = _table_query(connection, address, hint)
    with reported(address):
        described = connection.execute(f"{query} LIMIT 0").description
    names = [str(column[0]) for column in described or ()]
    taken = [names[place] for place in choose(names)]
    return query.replace("*", ", ".join(map(quoted_column, taken)), 1), taken


def table_rows(
    source: SqlSource, choose: Callable[[list[str]], tuple[int, int]]
) -> Iterator[tuple[str | None, str | None]]:
    """Yield (name, title) for each row of a table, with None for missing values.

    ``choose`` maps the column names to the positions of the name and title columns. Raises
    :class:`InputError`, :class:`~cocite.errors.UsageError`.
    """
    address = source.address
    assert address is not None
    memory = source.memory if address.kind == "duckdb" else None
    hint = f"Add its name after a #: {address.label}#NAME"
    other = "Choose others with --title-columns NAME,TITLE (title_columns=...)"
    with closing(connect(address, memory=memory)) as connection:
        query, (named, titled) = _columns_query(connection, address, hint, choose)
        with reported(address), closing(rows_of(connection, query, address)) as rows:
            next(rows)
            for number, (name, title) in enumerate(rows, 1):
                text = cell_text(name)
                if text is None and name is not None:
                    raise InputError(
                        f"{source.label}: row {number} has {name!r} in {named!r}; node names "
                        f"must be whole numbers or text. {other}"
                    )
                if isinstance(title, bytes | bytearray | memoryview):
                    raise InputError(
                        f"{source.label}: row {number} has bytes in {titled!r}; titles must be "
                        f"text. {other}"
                    )
                yield (text or "").strip() or None, None if title is None else _escaped(str(title))


def _escaped(text: str) -> str:
    """Return a text from SQLite with invalid UTF-8 escaped."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _places(source: SqlSource, names: list[str], job: Job) -> list[int]:
    """Return the positions of the ends and, if requested, of the weight."""
    named, weight, sides = job.options.columns, job.options.weight, job.options.sides
    found = choose_columns(source.label, names, job.wanted, named, weight, sides, folded=True)
    return [*found.ends, *([] if found.weight is None else [found.weight])]


def _by_titles(job: Job, titles: Sequence[str]) -> Job:
    """Return the job with columns given by name, because numbers refer to the whole table."""
    columns = tuple(titles[: job.wanted]) if job.options.columns else ()
    weight = titles[-1] if job.options.weight else job.options.weight_column
    return replace(job, options=replace(job.options, columns=columns, weight_column=weight))


# -- queries ---------------------------------------------------------------------------


def _by_duckdb(connection: Any, query: str, source: SqlSource, job: Job, guessed: bool) -> Read:
    """Read a query's result via a Parquet file."""
    import duckdb

    address = source.address or Address("duckdb", "the query")
    path = _result(job)
    with reported(address):
        statements = duckdb.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise UsageError(f"{_ONE}: {_EXAMPLE}")
        connection.execute(
            f"COPY ({query}\n) TO {literal(str(path))} (FORMAT parquet, USE_TMP_FILE false)"
        )
    rows, found = read_file(job, source, path)
    return Read(rows, found.read_as("a DuckDB query", found.note + OTHERS * guessed))


def _by_rows(connection: Any, query: str, source: SqlSource, job: Job) -> Read:
    address = source.address
    assert address is not None
    weighted = bool(job.options.weight)
    with (
        new_clean_file(job) as out,
        reported(address),
        closing(rows_of(connection, query, address)) as rows,
    ):
        writer = RowWriter(job, out, job.wanted, weighted=weighted, unit="row")
        names = next(rows)
        places = _places(source, names, job)
        for number, row in enumerate(rows, 1):
            values = [cell_text(row[place]) for place in places]
            if weighted:
                values[-1] = str(row[places[-1]])
            if None in values:
                shown = ", ".join(str(row[place]) for place in places)
                what = _no_name(row[places[values.index(None)]])
                writer.leave_out("no name", number, what, shown[:100])
            else:
                writer.add([str(value) for value in values], number)
        read = writer.finish()
    titles = [names[place] for place in places]
    ends = titles[: job.wanted]
    unread = "" if weighted or job.wanted != 2 else unread_weights(names, titles)
    note = columns_note(ends, titles[-1] if weighted else "", _guessed(ends, job), unread)
    found = read.read_as(f"a {'query' if source.sql else 'table'} of {address.title}", note)
    return Read(clean_relation(job, read.integers), found)


def _guessed(titles: Sequence[str], job: Job) -> bool:
    """Return whether the columns of links were selected only by position."""
    known = job.options.columns or ends_of(titles[: job.wanted], job.options.sides)
    return job.wanted == 2 and not known


def rows_of(connection: Any, query: str, address: Address) -> Generator[Any, None, None]:
    """Yield the column names, then the rows, fetched in batches."""
    if address.kind == "sqlite":
        connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        cursor = connection.execute(query)
    elif address.kind == "duckdb":
        cursor = connection.cursor().execute(query)
    else:
        cursor = connection.cursor(name=_CURSOR)  # server-side
        cursor.itersize = _FETCHED
        try:
            cursor.execute(query)
        except Exception:
            cursor.close()
            raise
    try:
        if cursor.description is None:
            raise UsageError(f"{_ONE}: {_EXAMPLE}")
        yield [str(column[0]) for column in cursor.description]
        if address.kind == "duckdb":
            while some := cursor.fetchmany(_FETCHED):
                yield from some
        else:
            yield from cursor
    finally:
        cursor.close()


def cell_text(value: Any) -> str | None:
    """Return a value as a node name, or None if its type is not allowed."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        return str(int(value))
    return str(value) if isinstance(value, UUID) else None


def _no_name(value: Any) -> str:
    if value is None:
        return "a null instead of a name"
    return (
        f"a name of type {type(value).__name__}: node names must be whole numbers or text, so "
        "convert it in the query, as in cast(x as text)"
    )
