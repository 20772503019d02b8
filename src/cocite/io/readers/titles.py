"""Tables of names and titles: text (plain or packed) or Parquet, recognized as links are, or out of
a database (``io/readers/titles.py``).

* Columns are separated by tabs, commas, semicolons or bars, as the first lines say; never by
  blanks, as titles have some. CSV may be quoted, and a quoted title may have line ends in it.
* The two columns are those asked for, by title or number; else those whose titles say so (``name,
  title``, ``Id,Label``, ``title,url``); else the first two. Titles in the first row are a header
  where columns are found or asked for by them.
* A line, and a quoted title, has at most 32 Mi characters; a cell of Parquet, 1 Mi.
* A row without a title is passed over and counted; one with more or fewer columns than the first is
  malformed, as its title may be cut.

A header that is not known as one is a title of a node that there is not, and does no harm.

Cost: some microseconds a row, constant memory.

Titles out of a table, or a view, of a database:

    --titles 'sqlite:///site.db#pages'        what there is behind the #; without it the only table
    --titles 'site.duckdb#pages'              a file of SQLite or DuckDB needs no address
    --titles 'postgres://user@host/web#pages'

Which of its columns are names and titles is told as of any table of titles
(``io/readers/titles.py``). Names are whole numbers or text, titles whatever can be written as text;
a row without a name or a title is passed over and counted. Connections are read-only
(``io/database.py``).

Cost: some microseconds a row; of DuckDB what it may take, else memory for some thousand rows.
"""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, cast

from cocite.errors import InputError, MalformedRow, UnrecognizedInput, UsageError
from cocite.io.database import connect, database_named, file_literal, reported
from cocite.io.readers.contract import DELIMITERS, Progress, ReadOptions, TitleFile
from cocite.io.readers.dialect import fields, guess_delimiter, plain_title, sample
from cocite.io.readers.formats import PARQUET, TEXT, reader_at, reader_of
from cocite.io.readers.sources import Source, expand, unpack_errors
from cocite.io.readers.sql import SqlSource, cell_text, rows_of, table_query
from cocite.io.readers.tables import LONGEST, PARQUET_ROWS, TableLines, bounded_text

if TYPE_CHECKING:
    import duckdb


_FETCHED = 1 << 12
_HINT = "Name one behind a #: {label}#NAME"


def title_sources(
    named: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None, memory: int
) -> list[Source]:
    """Files and databases of titles, in the order in which they are named; ``memory`` is what
    DuckDB may take.

    Raises what :func:`~cocite.io.readers.sources.expand` raises, and
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


# -- titles ------------------------------------------------------------------------------


_ROWS = 1 << 12
_LONGEST_CELL = 1 << 20
_DATABASES = ("SQLite", "DuckDB", "PostgreSQL")
_EXAMPLES = 5
_TITLES = (
    *("title", "pagetitle", "label", "heading", "headline", "caption", "displayname", "fullname"),
    *("titel", "titre", "titulo", "name"),
)
_NAMES = (
    *("id", "name", "node", "nodeid", "page", "pageid", "pagename", "url", "uri", "link", "key"),
    *("slug", "path", "file", "article", "document", "site", "seite"),
)
"""Titles of columns, those that say it best first; ``name`` is a title beside an id."""


@dataclass
class TitlesFound:
    """How one table of titles was read and what was found: goes into the manifest."""

    file: str
    format: str = "tab"
    header: tuple[str, ...] = ()
    columns: int = 2
    taken: tuple[int, int] = (0, 1)
    titles: int = 0
    without: int = 0
    bad_rows: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)

    def describe(self) -> str:
        """One line for people."""
        known = self.format in ("Parquet", *_DATABASES)
        kind = self.format if known else f"{self.format}-separated"
        kind = f"a table of {kind}" if self.format in _DATABASES else kind
        text = f"{self.file}: {self.titles:,} title{'s' * (self.titles != 1)}, {kind}"
        if self.header:
            name, title = (self.header[i] for i in self.taken)
            text += f", of column {title!r} for the names in {name!r}"
        elif self.columns > 2 or self.taken != (0, 1):
            text += f", of column {self.taken[1] + 1} for the names in {self.taken[0] + 1}"
        if self.header or self.columns > 2:
            text += " (if others are: --title-columns NAME,TITLE)"
        rows = f"{self.without:,} row{'s' * (self.without > 1)}"
        return text + (f", {rows} without a title" if self.without else "")


def check_titles(source: Source, options: ReadOptions) -> None:
    """Raises :class:`UnrecognizedInput` for what is no table; ``options`` are those of links."""
    if isinstance(source, SqlSource):
        return
    readable = reader_at(TEXT), reader_at(PARQUET.reader)
    if reader_of(source, options.for_nodes(), 1) not in readable:
        raise UnrecognizedInput(
            f"{source.label} is no table of names and titles: text with tabs or commas, Parquet, "
            "or a table of a database"
        )


def read_titles(
    source: Source,
    columns: tuple[str, ...],
    options: ReadOptions,
    database: duckdb.DuckDBPyConnection,
    out: TitleFile,
    progress: Progress,
) -> TitlesFound:
    """Hand all titles in ``source`` over to ``out``. ``columns`` are those of name and title as
    titles or numbers, none to find them out; of ``options``, ``comment`` and ``skip_bad_rows`` go
    for titles, too.

    Raises :class:`MalformedRow`, :class:`InputError`, :class:`UsageError`,
    :class:`UnrecognizedInput`.
    """
    check_titles(source, options)
    found = TitlesFound(source.label)
    before = out.count, out.empty
    rows: Iterable[tuple[str | None, str | None]]
    if isinstance(source, SqlSource):
        progress("reading " + source.short, 0, 0)
        rows = _stored(source, columns, found)
    elif PARQUET.sign(source.beginning()):
        rows = _parquet(source, columns, database, found)
    else:
        rows = _TitleText(source, columns, options, found, progress)
    for name, title in rows:
        out.add(name or "", title or "")
    found.titles, found.without = out.count - before[0], out.empty - before[1]
    if sum(found.bad_rows.values()) > found.titles and options.skip_bad_rows != "all":
        raise InputError(
            f"{source.label} has {sum(found.bad_rows.values()):,} bad rows and {found.titles:,} "
            f"titles. The first is {found.examples[0]}. To leave them out all the same: "
            "--skip-all-bad-rows (skip_bad_rows='all')"
        )
    return found


def _choose(
    found: TitlesFound, columns: tuple[str, ...], first: Sequence[str], header: bool
) -> None:
    """Fix the columns and the header; ``header`` says that ``first`` are titles for certain."""
    named = False
    found.columns = len(first)
    if columns:
        named = not all(column.isdecimal() for column in columns)
        lower = [title.strip().lower() for title in first]
        found.taken = tuple(_place(found, column, lower if named else []) for column in columns)  # type: ignore[assignment]
    elif (places := _titled(first)) is not None:
        named, found.taken = True, places
    if max(found.taken) >= len(first):
        raise InputError(
            f"{found.file} has {len(first)} column{'s' * (len(first) > 1)} where titles need two: "
            "the name of a node, a tab, its title"
        )
    if found.taken[0] == found.taken[1]:
        raise UsageError(f"title_columns {','.join(columns)} names one column twice")
    found.header = tuple(title.strip() for title in first) if named or header else ()


def _titled(first: Sequence[str]) -> tuple[int, int] | None:
    """The columns of name and title, if titles of columns say so."""
    plain = [plain_title(title) for title in first]
    title = next((word for word in _TITLES if plain.count(word) == 1), None)
    name = next((word for word in _NAMES if word != title and plain.count(word) == 1), None)
    return None if title is None or name is None else (plain.index(name), plain.index(title))


def title_places(first: Sequence[str], columns: tuple[str, ...] = ()) -> tuple[int, int]:
    """Where name and title are in a table with these titles of columns: where ``columns`` say, as
    titles or numbers from 1, or their titles do, else the first two.

    Raises :class:`UsageError` and :class:`InputError` if there are no such columns.
    """
    found = TitlesFound("the table of titles")
    _choose(found, columns, first, header=True)
    return found.taken


def _place(found: TitlesFound, column: str, titles: list[str]) -> int:
    if column.lower() in titles:
        return titles.index(column.lower())
    if column.isdecimal() and 1 <= int(column) <= found.columns:
        return int(column) - 1
    has = f"its first row is {', '.join(map(repr, titles))}" if titles else "it has less columns"
    raise UsageError(f"{found.file} has no column {column!r}; {has}")


# -- text ------------------------------------------------------------------------------


class _TitleText:
    """The rows of a text."""

    def __init__(
        self,
        source: Source,
        columns: tuple[str, ...],
        options: ReadOptions,
        found: TitlesFound,
        progress: Progress,
    ) -> None:
        self._source, self._options, self._found = source, options, found
        self._progress = progress
        beginning = source.beginning()
        head = beginning.content.removeprefix(b"\xef\xbb\xbf")
        if not beginning.whole:  # the last line is cut
            head = head[: head.rfind(b"\n") + 1] or head
        lines = sample(head, options.comment)
        first = source.path is not None and ".csv" in source.path.suffixes
        found.format = guess_delimiter(lines, 2, first)
        if lines and (found.format == "space" or len(fields(lines[0], found.format)) < 2):
            raise InputError(
                f"{source.label} has one column where titles need two, such as "
                f"{lines[0].strip()[:60]!r}: write the name of a node, a tab, its title"
            )
        if lines:
            _choose(found, columns, fields(lines[0], found.format), header=False)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        stream, raw = self._source.open()
        try:
            with io.TextIOWrapper(
                cast(BinaryIO, stream), "utf-8-sig", errors="surrogateescape", newline=""
            ) as text:
                for row, line in enumerate(self._rows(text)):
                    yield line
                    if row % _ROWS == 0:
                        at, size = raw.tell(), self._source.nbytes
                        self._progress("reading " + self._source.short, at, size)
        except unpack_errors() as error:
            raise InputError(f"{self._source.label} cannot be read to its end: {error}") from error
        finally:
            raw.close()

    def _rows(self, text: TextIO) -> Iterator[tuple[str, str]]:
        found = self._found
        lines = TableLines(text, found.file, self._options.comment, indented=True)
        quoted = found.format in ("comma", "semicolon")
        rows = csv.reader(
            lines,
            delimiter=DELIMITERS[found.format],
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
            skipinitialspace=quoted,
        )
        before = csv.field_size_limit(LONGEST)
        name, title = found.taken
        try:
            for number, row in enumerate(rows):
                if number == 0 and found.header:
                    continue
                if len(row) != found.columns:
                    what = f"{len(row)} {found.format}-separated columns, not {found.columns}"
                    self._refuse(lines.number, "columns", what, row)
                elif not _utf8(row[name]) or not _utf8(row[title]):
                    what = "bytes that are not UTF-8"
                    self._refuse(lines.number, "encoding", what, row)
                else:
                    yield row[name].strip(), row[title]
        except csv.Error as error:
            raise InputError(f"{found.file}:{lines.number}: {error}") from error
        finally:
            csv.field_size_limit(before)

    def _refuse(self, line: int, kind: str, what: str, row: Sequence[str]) -> None:
        """A bad row: an error, or an example if such rows are to be skipped."""
        found = self._found
        content = DELIMITERS[found.format].join(row).encode("utf-8", "surrogateescape")
        shown = content.decode("utf-8", "backslashreplace")[:100]
        if not self._options.skip_bad_rows:
            raise MalformedRow(found.file, line, what, shown)
        found.bad_rows = dict(Counter(found.bad_rows) + Counter([kind]))
        if len(found.examples) < _EXAMPLES:
            found.examples.append(f"line {line}: {what}: {shown!r}")


def _utf8(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


# -- databases -------------------------------------------------------------------------


def _stored(
    source: SqlSource, columns: tuple[str, ...], found: TitlesFound
) -> Iterator[tuple[str, str]]:
    def choose(titles: list[str]) -> tuple[int, int]:
        _choose(found, columns, titles, header=True)
        return found.taken

    assert source.address is not None
    found.format = source.address.title
    return table_rows(source, choose)


# -- Parquet ---------------------------------------------------------------------------


def _parquet(
    source: Source,
    columns: tuple[str, ...],
    database: duckdb.DuckDBPyConnection,
    found: TitlesFound,
) -> Iterator[tuple[str | None, str | None]]:
    import duckdb

    assert source.path is not None
    file = f"read_parquet({file_literal(source.path)}, hive_partitioning = false)"
    found.format = "Parquet"
    try:
        with database.cursor() as cursor:
            names = [str(row[0]) for row in cursor.execute(f"DESCRIBE FROM {file}").fetchall()]
            _choose(found, columns, names, header=True)
            wanted = ", ".join(bounded_text(names[i], _LONGEST_CELL) for i in found.taken)
            result = cursor.execute(f"SELECT {wanted} FROM {file}")
            while rows := result.fetchmany(PARQUET_ROWS):
                yield from rows
    except duckdb.Error as error:
        raise InputError(f"{source.label} cannot be read as Parquet: {error}") from error
