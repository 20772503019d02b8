"""Tables of a name and a value: titles, labels, texts and weights of nodes, and pairs of names.

Tables are text (plain or compressed) or Parquet, recognized by content as for links, or database
tables; :class:`TableForm` describes how they differ. The two columns are those requested or, for
titles, those with well-known names (``Id,Label``, ``title,url``); else the first two. A header is
detected as for links, but a first row that contains a node's name is not a header. A row that lacks
a column or a label is malformed; for titles, a row wider than the first is malformed, too. Texts
may also be a folder or a tar archive, with one file per node.

Reading takes one pass, with one row or text (up to 32 Mi characters) in memory at a time.
"""

from __future__ import annotations

import csv
import io
import os
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TextIO, cast

from cocite.errors import InputError, MalformedRow, ResourceError, UsageError
from cocite.io.database import file_literal, file_pattern, open_duckdb, quoted_column
from cocite.io.readers import signs
from cocite.io.readers.contract import DELIMITERS, Progress, ReadOptions, no_progress
from cocite.io.readers.dialect import (
    column_place,
    fields,
    guess_delimiter,
    has_label_header,
    plain_title,
    sample,
)
from cocite.io.readers.formats import PARQUET, format_of
from cocite.io.readers.html.tar import tar_members
from cocite.io.readers.parquet import not_parquet
from cocite.io.readers.sources import Source
from cocite.io.readers.sql import SqlSource, table_rows
from cocite.resources import budget, database_memory, format_size

if TYPE_CHECKING:
    import duckdb

    from cocite.graph.names import Names


_TITLES = (
    *("title", "pagetitle", "label", "heading", "headline", "caption", "displayname", "fullname"),
    *("titel", "titre", "titulo", "name"),
)
_NAMES = (
    *("id", "name", "node", "nodeid", "page", "pageid", "pagename", "url", "uri", "link", "key"),
    *("slug", "path", "file", "article", "document", "site", "seite"),
)
"""Names of columns with node names, best first; next to an id column, ``name`` has titles."""
_QUOTING = ("comma", "semicolon")
_PROGRESS_ROWS = 1 << 12
_PARQUET_ROWS = 8
"""Rows per fetch: even in a file of a few kilobytes, each may have the maximum length."""
_ROW, _COPIED, _MOST_MEMORY = "file_row_number", 2048, 1 << 30
"""DuckDB's row number; rows that it copies at a time, and their maximum size in bytes."""
LONGEST = 1 << 25
"""Maximum length of a row or a text, in characters."""
_LONGEST_LABEL = 65_535
"""Maximum length of a label, as of a name in a graph."""
_EXAMPLES = 5


class TableForm(NamedTuple):
    """A kind of table: how to read it, and the words for it in messages.

    The words are ``what`` for the content, as in "titles need two columns"; ``ends`` for the two
    values of a row; ``cell`` for one of them; ``columns`` for the columns. ``advice`` is for
    doubtful columns, ``header_advice`` for a wrong header. ``flags`` are the options that determine
    how the table is read.

    With ``titled``, column names identify the columns, all rows must be as wide as the first, and
    text must be UTF-8. With ``filled``, both cells must be nonempty and no longer than a name.
    ``longest`` is the maximum length of a cell, in characters.
    """

    what: str
    ends: str
    cell: str = "name or value"
    columns: str = "columns"
    advice: str = "Put a tab between the two"
    header_advice: str = ""
    flags: str = "--delimiter, --header"
    titled: bool = False
    filled: bool = False
    longest: int = LONGEST


LABELS = TableForm(
    "labels",
    "name and label",
    "name or label",
    "label columns",
    "Choose them: --delimiter space --label-columns 1,2; or put a tab between name and label",
    "if these are a label: --header no",
    "--delimiter, --label-columns, --header",
    filled=True,
)
PAIRS = TableForm(
    "pairs",
    "the two names",
    "name",
    "pair columns",
    header_advice="if these are a pair, no nodes have these names",
    filled=True,
)
TITLES = TableForm(
    "titles",
    "name and title",
    columns="title columns",
    flags="--title-columns",
    titled=True,
    longest=1 << 20,
)
VALUES = TableForm("rows", "name and value")
"""Texts and weights: the first two columns, without a header."""


def places_of(
    form: TableForm, label: str, first: Sequence[str], columns: Sequence[str] = ()
) -> tuple[tuple[int, int], bool]:
    """Return the positions of name and value, and whether column names determined them.

    ``first`` is the first row. Requested ``columns``, names or numbers from 1, have priority, then
    well-known names if the form is ``titled``, then the first two columns. Raises
    :class:`UsageError` and :class:`InputError` for missing columns.
    """
    if len(columns) not in (0, 2):
        raise UsageError(f"there must be two {form.columns}: {form.ends}")
    known = _titled(first) if form.titled and not columns else None
    named, found = known is not None, known or (0, 1)
    if columns:
        named = not all(map(str.isdecimal, columns))
        titles = list(first) if named else [str(i) for i, _ in enumerate(first, 1)]
        one, other = (column_place(label, titles, each, folded=True) for each in columns)
        found = one, other
    if max(found) >= len(first):
        raise InputError(
            f"{label} has {len(first)} column{'s' * (len(first) > 1)}, but {form.what} need two: "
            f"{form.ends}, separated by a tab"
        )
    if found[0] == found[1]:
        raise UsageError(f"{form.columns} {','.join(columns)} are the same column")
    return found, named


def _titled(first: Sequence[str]) -> tuple[int, int] | None:
    """Return the positions of name and title by the column names, or None."""
    plain = [plain_title(title) for title in first]
    title = next((word for word in _TITLES if plain.count(word) == 1), None)
    name = next((word for word in _NAMES if word != title and plain.count(word) == 1), None)
    return None if title is None or name is None else (plain.index(name), plain.index(title))


class NameTable:
    """A table of a name and a value: an iterable of (name, value).

    ``options.columns`` are the two columns; ``is_name`` returns whether a node has a given name.
    ``database`` is the DuckDB connection for Parquet, by default a new one. The layout is known
    after the first row. After the last, ``rows`` and ``without`` count rows with and without a
    value, and ``bad_rows`` and ``examples`` describe the others.

    Raises :class:`~cocite.errors.InputError`, :class:`~cocite.errors.MalformedRow`,
    :class:`~cocite.errors.UsageError`.
    """

    def __init__(
        self,
        source: Source | Path,
        form: TableForm,
        options: ReadOptions,
        is_name: Callable[[str], bool] = lambda name: False,
        *,
        database: duckdb.DuckDBPyConnection | None = None,
        progress: Progress = no_progress,
    ) -> None:
        if isinstance(source, Path) and not source.is_file():
            raise InputError(f"{source} is not a file")
        self.source = Source(source) if isinstance(source, Path) else source
        self.form, self._options, self._is_name = form, options, is_name
        self._database, self._progress = database, progress
        self.file = self.source.label
        self.delimiter, self.places, self.width = "tab", (0, 1), 2
        self.header: tuple[str, ...] = ()
        self.rows = self.without = self._line = 0
        self.bad_rows: Counter[str] = Counter()
        self.examples: list[str] = []

    def __iter__(self) -> Iterator[tuple[str, str]]:
        rows: Iterator[tuple[str | None, str | None]]
        if isinstance(self.source, SqlSource):
            self._progress("reading " + self.source.short, 0, 0)
            self.delimiter = cast(Any, self.source.address).title
            rows = table_rows(self.source, self._choose)
        elif PARQUET.sign(self.source.beginning()):
            self.delimiter = "Parquet"
            rows = self._parquet()
        else:
            rows = self._text()
        for name, value in rows:
            if name is None or value is None:
                self.without += 1
                continue
            self.rows += 1
            yield name, value
        bad = self.bad_rows.total()
        if bad > self.rows and self._options.bad_rows != "all":
            raise InputError(
                f"{self.file}: {bad:,} of {bad + self.rows:,} rows are bad, more than half, such "
                f"as {self.examples[0]}: this may not be a table of {self.form.what}, or may need "
                f"other options ({self.form.flags}). To skip all bad rows: --bad-rows all "
                "(bad_rows='all')"
            )

    def _choose(self, titles: Sequence[str]) -> tuple[int, int]:
        """Return the positions of the two columns of a table, given the column names."""
        self.width, self.header = len(titles), tuple(title.strip() for title in titles)
        self.places, _ = places_of(self.form, self.file, titles, self._options.columns)
        return self.places

    @property
    def separated(self) -> str:
        """Return the format: Parquet, a database system, or the separator."""
        if self.delimiter not in DELIMITERS:
            return self.delimiter
        return f"{'blank' if self.delimiter == 'space' else self.delimiter}-separated"

    def describe(self) -> str:
        """Return a line of text on how the table was read, and what was skipped."""
        text = f"{self.label}: {self.separated}"
        if self.delimiter in DELIMITERS:
            titles = ", ".join(repr(self.header[i]) for i in self.places) if self.header else ""
            text += f", a header ({titles}; {self.form.header_advice})" if titles else ", no header"
        if self.places != (0, 1):
            name, value = self.places
            text += f", {self.form.ends} in columns {name + 1} and {value + 1}"
        if bad := self.bad_rows.total():
            text += f"; left out {bad:,} bad row{'s' * (bad != 1)}, such as {self.examples[0]}"
        return text

    @property
    def label(self) -> str:
        """Return the name for notes: a file's path, relative if below the current folder."""
        if isinstance(self.source, SqlSource):
            return self.file
        here = os.path.relpath(self.file)
        return self.file if here.startswith(os.pardir) else here

    # -- text ---------------------------------------------------------------------------

    def _text(self) -> Iterator[tuple[str | None, str | None]]:
        self._look()
        before = csv.field_size_limit(LONGEST)
        try:
            with (
                self.source.reading() as (stream, raw),
                io.TextIOWrapper(
                    cast(BinaryIO, stream), "utf-8-sig", errors="surrogateescape", newline=""
                ) as text,
            ):
                for number, row in enumerate(self._cut(self._lines(text))):
                    if (number > 0 or not self.header) and self._is_good(row):
                        yield row[self.places[0]].strip(), row[self.places[1]].strip()
                    if number % _PROGRESS_ROWS == 0:
                        at, size = raw.tell(), self.source.nbytes
                        self._progress("reading " + self.source.short, at, size)
        except csv.Error as error:
            raise InputError(f"{self.file}:{self._line}: {error}") from error
        finally:
            csv.field_size_limit(before)

    def _lines(self, text: TextIO) -> Iterator[str]:
        """Yield the lines that are neither blank nor comments; count all lines."""
        mark = self._options.comment or None
        while line := text.readline(LONGEST + 1):
            self._line += 1
            if len(line) > LONGEST:
                raise InputError(
                    f"{self.file}:{self._line}: the line is longer than {LONGEST:,} characters, "
                    "the maximum for a row. Pass a table with one row per line"
                )
            bare = line.lstrip()
            if bare and not (mark and bare.startswith(mark)):
                yield line

    def _cut(self, lines: Iterator[str]) -> Iterator[list[str]]:
        """Yield rows of cells; quoted cells may contain line breaks."""
        if self.delimiter == "space":
            return map(str.split, lines)
        quoted = self.delimiter in _QUOTING
        return csv.reader(
            lines,
            delimiter=DELIMITERS[self.delimiter],
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
            skipinitialspace=quoted,
        )

    def _look(self) -> None:
        form, options, beginning = self.form, self._options, self.source.beginning()
        other = None if form.titled else format_of(self.source)
        if other is not None:
            raise UsageError(
                f"{self.file} is {other.name}; {form.what} must be rows of {form.ends}, as text "
                "(tabs, commas, semicolons, bars or blanks) or Parquet"
            )
        head = beginning.content.removeprefix(b"\xef\xbb\xbf")
        if not beginning.whole:  # drop the last, incomplete line
            head = head[: head.rfind(b"\n") + 1] or head
        lines, path = sample(head, options.comment), self.source.path
        self.delimiter = options.delimiter
        if self.delimiter == "auto":
            self.delimiter = guess_delimiter(lines, 2, path is not None and ".csv" in path.suffixes)
            self._see_clear(lines)
        cells = [fields(line, self.delimiter) for line in lines]
        if form is VALUES or not cells:
            return
        self.width = len(cells[0])
        self.places, named = places_of(form, self.file, cells[0], options.columns)
        if named and options.header == "no":
            titles = ",".join(options.columns)
            raise UsageError(
                f"columns {titles} are column names, but header is no: use numbers, from 1"
            )
        first = tuple(cell.strip() for cell in cells[0])
        guessed = not form.titled and has_label_header(cells, self.places)
        if options.header == "auto":
            named = named or (guessed and not self._is_name(first[self.places[0]]))
        self.header = first if named or options.header == "yes" else ()

    def _see_clear(self, lines: list[str]) -> None:
        """Raise an error if the first lines do not clearly have two columns."""
        blanks, counts = self.delimiter == "space", [len(fields(x, self.delimiter)) for x in lines]
        if self.form.titled and lines and (blanks or counts[0] < 2):
            raise InputError(
                f"{self.file} has one column, as in {lines[0].strip()[:60]!r}, but "
                f"{self.form.what} need two: write {self.form.ends}, separated by a tab"
            )
        if blanks and {*counts, 2} != {2} and self._options.columns in ((), ("1", "2")):
            raise UsageError(
                f"{self.file} has {min(counts)} to {max(counts)} columns separated by blanks, as "
                f"in {lines[0].strip()[:60]!r}; it is unclear which are {self.form.ends}. "
                f"{self.form.advice}"
            )

    def _is_good(self, row: list[str]) -> bool:
        """Return whether a row is valid; if not, raise an error or count the row."""
        kind, what = self._wrong(row)
        if not kind:
            return True
        content = DELIMITERS[self.delimiter].join(row).encode("utf-8", "surrogateescape")
        shown = content.decode("utf-8", "backslashreplace")[:100]
        if self._options.bad_rows == "stop":
            raise MalformedRow(self.file, self._line, what, shown)
        self.bad_rows[kind] += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append(f"line {self._line}: {what}: {shown!r}")
        return False

    def _wrong(self, row: list[str]) -> tuple[str, str]:
        """Return the kind and the description of a row's fault, "" for a valid row."""
        if (self.form.titled or self.delimiter == "space") and len(row) != self.width:
            return "columns", f"{len(row)} {self.separated} columns, not {self.width}"
        if len(row) <= max(self.places):
            return "columns", f"only {len(row)} of {max(self.places) + 1} columns"
        cells = [row[place] for place in self.places]
        if self.form.titled and not all(map(_utf8, cells)):
            return "encoding", "bytes that are not UTF-8"
        if self.form.filled and not all(map(str.strip, cells)):
            return "cells", f"an empty {self.form.cell}"
        if self.form.filled and max(map(len, cells)) > _LONGEST_LABEL:
            return "cells", f"a {self.form.cell} of more than {_LONGEST_LABEL:,} characters"
        return "", ""

    # -- Parquet ------------------------------------------------------------------------

    def _parquet(self) -> Iterator[tuple[str | None, str | None]]:
        import duckdb

        path = self.source.path
        assert path is not None
        file = f"read_parquet({file_literal(path)}, hive_partitioning = false)"
        try:
            with self._connected(path) as connection:
                titles = [row[0] for row in connection.execute(f"DESCRIBE FROM {file}").fetchall()]
                columns = [titles[place] for place in self._choose(titles)]
                if self._database is None:
                    self._see_pieces(connection, file, columns)
                wanted = ", ".join(_bounded_text(column, self.form.longest) for column in columns)
                found = connection.execute(f"SELECT {wanted} FROM {file}")
                while rows := found.fetchmany(_PARQUET_ROWS):
                    yield from rows
        except duckdb.Error as error:
            raise not_parquet(self.source, error) from error

    def _connected(self, path: Path) -> duckdb.DuckDBPyConnection:
        if self._database is not None:
            return self._database.cursor()
        may = [str(path.absolute()), file_pattern(path), os.path.realpath(path)]
        limit = min(_MOST_MEMORY, database_memory(budget(None)))
        config = {"memory_limit": f"{limit}B", "threads": 1}
        found: duckdb.DuckDBPyConnection = open_duckdb(":memory:", config, files=may)
        return found

    def _see_pieces(
        self, connection: duckdb.DuckDBPyConnection, file: str, columns: list[str]
    ) -> None:
        """Raise :class:`ResourceError` if rows that DuckDB copies together exceed memory."""
        lengths = " + ".join(f"coalesce(strlen({_text_of(column)}), 0)" for column in columns)
        each = f"SELECT sum({lengths}) AS size FROM {file} GROUP BY {_ROW} // {_COPIED}"
        ((most,),) = connection.execute(f"SELECT max(size) FROM ({each})").fetchall()
        if (most or 0) > _MOST_MEMORY:
            raise ResourceError(
                f"{self.file} has {format_size(int(most))} of text in {_COPIED:,} rows, which are "
                f"read together; the limit is {format_size(_MOST_MEMORY)}. Shorten the texts, or "
                "use a text table with one row per line"
            )


def read_values(path: Path) -> NameTable:
    """Return a table's names and values, from its first two columns.

    The table is Parquet, or text with tabs, or with commas if it is ``.csv``. Raises like
    :class:`NameTable`.
    """
    delimiter = "comma" if ".csv" in path.suffixes[-2:] else "tab"
    return NameTable(path, VALUES, ReadOptions(delimiter=delimiter, header="no"))


def _utf8(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _text_of(column: str) -> str:
    return f"CAST({quoted_column(column)} AS VARCHAR)"


def _bounded_text(column: str, most: int) -> str:
    """Return an SQL expression that casts a column to text, and fails for overlong values."""
    text = _text_of(column)
    long = f"a value of more than {most:,} bytes"
    return f"CASE WHEN strlen({text}) > {most} THEN error('{long}') ELSE {text} END"


def texts_of(
    path: Path,
    names: Names,
    progress: Callable[[int, int], None] = lambda done, total: None,
    stranger: Callable[[str], None] = lambda name: None,
) -> Iterator[tuple[int, str]]:
    """Yield (id, text) for the nodes in ``names`` that have a text.

    ``path`` is a folder or a tar archive (compressed or not), or a table of names and texts
    (Parquet, or text with tabs, or with commas in ``.csv``). A folder or archive contains one file
    per text, named like the node, optionally with an extension such as ``.txt``.

    ``progress`` is called with (texts found, 0), and ``stranger`` with the name of each skipped
    text. Raises :class:`InputError` if the input cannot be read, or contains no node's text.
    """
    found = 0
    for name, text in _named_texts(path):
        node = names.find(name)
        if node is None and "." in name:
            node = names.find(name.rsplit(".", 1)[0])
        if node is None:
            stranger(name)
            continue
        found += 1
        yield node, text
        progress(found, 0)
    if not found:
        raise InputError(f"{path} contains no text with the name of a node")


def _named_texts(path: Path) -> Iterator[tuple[str, str]]:
    if path.is_dir():
        top = path.resolve()
        for file in sorted(path.rglob("*")):
            if file.is_file():
                if not file.resolve().is_relative_to(top):
                    raise InputError(
                        f"{file} is a symbolic link to a file outside {path}; such links are not "
                        f"followed. Copy the file into {path}, or remove the link"
                    )
                with file.open("rb") as opened:
                    yield file.name, _cell_text(opened.read, str(file))
        return
    if not path.is_file():
        raise InputError(f"{path} does not exist; texts must be a folder, a tar archive or a table")
    source = Source(path)
    if not signs.tar(source.beginning()):
        yield from read_values(path)
        return
    try:
        with source.reading() as (stream, _):
            for member in tar_members(stream):
                if member.kind == "file":
                    name = member.name.rsplit("/", 1)[-1]
                    yield name, _cell_text(member.read, f"{member.name} in {path}")
    except tarfile.TarError as error:
        raise InputError(f"{path} cannot be read to its end: {error}") from error


def _cell_text(read: Callable[[int], bytes], label: str) -> str:
    """Read a file as text; raises :class:`InputError` for more than :data:`LONGEST` bytes."""
    content = read(LONGEST + 1)
    if len(content) > LONGEST:
        raise InputError(
            f"{label} has more than {LONGEST:,} bytes, the limit for a text. Shorten the text, "
            "or omit it"
        )
    return content.decode("utf-8", errors="replace")
