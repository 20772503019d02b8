"""Base classes of results, shared by the command line, Python and the server.

A :class:`Document` is a frozen dataclass with two machine-readable forms:

* ``to_json()`` returns plain JSON values; NaN becomes null.
* ``rows()`` returns a table, by default with a row per fact. Nested facts are named
``outer_inner``.

:class:`Writable` adds ``write(file)`` and ``write_to(database)``.
"""

from __future__ import annotations

import json
import os
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TextIO
from urllib.parse import quote

import numpy as np

if TYPE_CHECKING:
    from cocite.io.writers import Target, Types


class ResultRows(NamedTuple):
    """A table: column names, and rows of values. Missing values are None."""

    titles: Sequence[str]
    rows: Iterable[Sequence[Any]]


@dataclass(frozen=True)
class Document:
    """A result with facts, by default its fields."""

    def facts(self) -> dict[str, Any]:
        """Return the facts by name; values may be dataclasses and named tuples."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def to_json(self) -> dict[str, Any]:
        """Return the facts as plain JSON values, for ``json.dumps``."""
        found: dict[str, Any] = plain(self.facts())
        return found

    def rows(self) -> ResultRows:
        """Return a table, by default with a row per fact and lists as JSON."""
        return ResultRows(("fact", "value"), _flat(self.to_json()))


_PLAIN = frozenset((str, int, bool, type(None)))
"""Common types that need no conversion."""


def plain(value: Any) -> Any:
    """Convert ``value`` to JSON types: dataclasses and named tuples to objects, NaN to null."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        return None if isnan(value) else value
    if kind is dict:
        return {
            key if type(key) is str else str(key): (
                inner
                if type(inner) in _PLAIN or (type(inner) is float and not isnan(inner))
                else plain(inner)
            )
            for key, inner in value.items()
        }
    if kind is list:
        return [plain(inner) for inner in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and isnan(value) else value


def _flat(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for title, value in facts.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{title}_")
        else:
            text = json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value
            yield f"{prefix}{title}", text


# -- Markdown --------------------------------------------------------------------------------------

_LINKS = ("http://", "https://")
_SIGNS = re.compile(r"[\\`*_\[\]~$]|:(?=[\w+-]+:)")
_REFERENCES = {ord(sign): f"&#{ord(sign)};" for sign in "&<>|"}
_REFERENCES |= dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029], " ")
_IN_URLS = "/:?#@!$&'+,;=-._~%[]"
_NODES = ("node", "related")


def markdown(table: ResultRows) -> str:
    """Return a table in GitHub's Markdown.

    URLs become links; if all nodes are URLs, titles become the link texts. Markdown and HTML are
    escaped, floats are rounded to four significant digits, and missing values are blank.
    """
    titles, rows = list(table.titles), [[plain(value) for value in row] for row in table.rows]
    node = next((titles.index(name) for name in _NODES if name in titles), -1)
    numbers = [
        any(isinstance(row[i], int | float) for row in rows)
        and not any(isinstance(row[i], str) for row in rows)
        for i in range(len(titles))
    ]
    called = titles.index("title") if "title" in titles and node >= 0 else -1
    if called >= 0 and not all(_is_url(row[node]) for row in rows):
        called = -1
    kept = [i for i in range(len(titles)) if i != called]
    lines = [[_escaped(titles[i]) for i in kept], ["---:" if numbers[i] else "---" for i in kept]]
    for row in rows:
        text = row[called] if called >= 0 else None
        lines.append([_cell(row[i], text if i == node else None) for i in kept])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(value: Any, text: str | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if not _is_url(value):
        return _escaped(str(value))
    url = quote(value, safe=_IN_URLS, errors="surrogateescape").replace("&", "&amp;")
    return f"[{_escaped(text or value)}]({url})"


def _is_url(value: object) -> bool:
    return isinstance(value, str) and value.startswith(_LINKS)


def _escaped(text: str) -> str:
    return _SIGNS.sub(r"\\\g<0>", text).translate(_REFERENCES)


def write_csv(table: ResultRows, file: TextIO, safe: bool = False) -> None:
    """Write a table (RFC 4180, but LF line ends); ``safe`` escapes formulas for spreadsheets."""
    import csv

    from cocite.io.writers.tables import safe_cell

    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(table.titles)
    for row in table.rows:
        cells = ["" if (cell := plain(value)) is None else cell for value in row]
        writer.writerow(map(safe_cell, cells) if safe else cells)


class Writable:
    """A result that can be written as a table, or as an array by id (``_arrays``)."""

    _arrays = False

    def write(
        self,
        output: str | os.PathLike[str],
        *,
        kind: str | None = None,
        overwrite: bool = False,
        safe: bool = False,
    ) -> Path:
        """Write the result to a file. The file appears once it is complete.

        The extension or ``kind`` selects the format: ``.parquet``, ``.csv``, ``.tsv``, ``.jsonl``
        or ``.arrow``, and ``.npy`` for values by id. In CSV and TSV, ``safe`` puts an apostrophe
        before text that a spreadsheet would evaluate as a formula.

        Raises :class:`~cocite.errors.UsageError` or :class:`~cocite.errors.OutputExists`.
        """
        from cocite.io.writers import ARRAYS, TABLES, check_output

        endings = (*TABLES, *ARRAYS) if self._arrays else TABLES
        self._write(check_output(output, overwrite, endings, kind, safe=safe))
        return Path(output)

    def write_to(self, to: str, *, overwrite: bool = False, append: bool = False) -> None:
        """Write the result to a database table, such as ``"sqlite:///site.db#related"``.

        All rows appear at once. ``overwrite`` replaces an existing table; ``append`` adds to it.

        Raises the errors of :func:`~cocite.io.writers.databases.database_target`.
        """
        from cocite.io.writers.databases import database_target

        types = self._types()
        self._write(database_target(to, overwrite=overwrite, append=append, types=types))

    @abstractmethod
    def _types(self) -> Types:
        """Return the columns with their SQL types."""

    @abstractmethod
    def _write(self, target: Target) -> None:
        """Write all rows."""


def columns_of(lists: dict[str, list[Any]], types: Types) -> dict[str, Any]:
    """Return the columns as NumPy arrays with the dtypes of their SQL types."""
    kinds = {"VARCHAR": object, "BIGINT": np.int64, "INTEGER": np.int32, "DOUBLE": np.float64}
    return {title: np.array(lists[title], kinds[kind]) for title, kind in types.items()}


_PIECE = 1 << 14


class NodeTable(Writable):
    """A result that is a table of names and numbers."""

    _named: ClassVar[tuple[str, ...]]
    """Names of the columns that hold node names."""

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_")]

    @abstractmethod
    def _columns(self) -> dict[str, Any]:
        """Return the columns by name, as lists or arrays."""

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame``."""
        from cocite.extras import need

        return need("pandas", "a pandas table", "pandas").DataFrame(self._columns())

    def to_polars(self) -> Any:
        """Return a ``polars.DataFrame``, with names as in :meth:`to_arrow`."""
        from cocite.extras import need

        return need("polars", "a polars table", "polars").DataFrame(self._plain())

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table``; names are text unless all are integers."""
        from cocite.extras import need

        return need("pyarrow", "an Arrow table", "arrow").table(self._plain())

    def to_markdown(self) -> str:
        """Return a Markdown table, with URLs as links."""
        columns = self._columns()
        return markdown(ResultRows(list(columns), zip(*columns.values(), strict=True)))

    def _plain(self) -> dict[str, Any]:
        """Return the columns; in each, names become text unless all names are integers."""
        columns = self._columns()
        for title in self._named:
            if set(map(type, columns[title])) not in ({str}, {int}):
                columns[title] = list(map(str, columns[title]))
        return columns

    def _types(self) -> Types:
        return self._types_of(self._plain())

    def _types_of(self, columns: dict[str, Any]) -> Types:
        types = dict.fromkeys(columns, "DOUBLE")
        types |= {title: "INTEGER" for title in ("rank",) if title in columns}
        types |= {title: "VARCHAR" for title in ("title",) if title in columns}
        for title in self._named:
            whole = len(columns[title]) and type(columns[title][0]) is int
            types[title] = "BIGINT" if whole else "VARCHAR"
        return types

    def _write(self, target: Target) -> None:
        columns = self._plain()
        types, rows = self._types_of(columns), len(columns[self._named[0]])
        pieces = (
            columns_of({t: each[low : low + _PIECE] for t, each in columns.items()}, types)
            for low in range(0, max(1, rows), _PIECE)
        )
        target.write_table(pieces, types)
