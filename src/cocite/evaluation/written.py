"""Where the figures of a study go: a report, or a table of all of them.

    report.html                      a page, and its tables as .md and .csv beside it (``pages.py``)
    figures.parquet, .csv, ...       a row a figure (``graph/writers/``), or a table of a database

Columns of a table are text, but for estimate, low and high, which are numbers; what does not exist
is null. They are the same for every study, so that tables can be put together.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cocite.documents import Document
from cocite.errors import UsageError
from cocite.evaluation.pages import check_report
from cocite.graph.writers import TABLES, Columns, Target, check_output, kinds_of, target_of

__all__ = ["KINDS", "REPORT", "Written", "figures_target"]

REPORT = "html"
KINDS = (REPORT, *kinds_of(TABLES))
"""What figures may become."""

_NUMBERS = ("estimate", "low", "high")


def figures_target(
    output: str | os.PathLike[str] | None,
    *,
    to: str | None = None,
    kind: str | None = None,
    overwrite: bool = False,
    append: bool = False,
    safe: bool = False,
) -> Path | Target | None:
    """The path of a report, or where a table goes, by the ``kind`` or the ending of the name, or
    the table ``to`` of a database; None if nothing is named; ``safe`` for spreadsheets or not
    (:func:`~cocite.graph.writers.check_output`). Before any work is done.

    Raises :class:`~cocite.errors.UsageError` or :class:`~cocite.errors.OutputExists`.
    """
    if output is None or to is not None or append:
        return target_of(output, to, kind=kind, overwrite=overwrite, append=append, safe=safe)
    path = Path(output)
    if kind is None and path.suffix not in (f".{REPORT}", *TABLES):
        raise UsageError(
            f"{path} ends in {path.suffix!r}; a report ends in .{REPORT}, a table of all figures "
            f"in one of {', '.join(TABLES)}"
        )
    if (kind or path.suffix.removeprefix(".")).lower() == REPORT:
        return check_report(path, overwrite)
    return check_output(path, overwrite, TABLES, kind, safe=safe)


@dataclass(frozen=True)
class Written(Document):
    """A document that can be written as a report or as a table."""

    def write(
        self,
        output: str | os.PathLike[str],
        *,
        kind: str | None = None,
        overwrite: bool = False,
        command: str = "",
        safe: bool = False,
    ) -> Path:
        """Write a report (``.html``), a page that needs nothing else, and its tables as .md and
        .csv beside it; or a table with a row a figure (``.parquet``, ``.csv``, ``.tsv``,
        ``.jsonl``, ``.arrow``). ``kind`` says what it is where the name does not; ``command`` is
        what a report says to have come of; ``safe``: texts that a spreadsheet would take for
        formulas have an apostrophe before them, in a table of CSV or TSV.

        Raises :class:`~cocite.errors.OutputExists`, and :class:`~cocite.errors.UsageError` for
        another ending, or for a report without matplotlib.
        """
        target = figures_target(output, kind=kind, overwrite=overwrite, safe=safe)
        if isinstance(target, Path):
            return self._write_report(target, overwrite, command)
        assert target is not None
        self.write_table(target)
        return Path(output)

    def write_to(self, to: str, *, overwrite: bool = False, append: bool = False) -> None:
        """Write all figures to a table of a database, such as ``"sqlite:///site.db#figures"``.

        Raises as :func:`~cocite.graph.writers.databases.database_target` does.
        """
        target = figures_target(None, to=to, overwrite=overwrite, append=append)
        assert isinstance(target, Target)
        self.write_table(target)

    def write_table(self, target: Target) -> None:
        """Write all figures as a table."""
        titles, rows = self.rows()
        types = {title: "DOUBLE" if title in _NUMBERS else "VARCHAR" for title in titles}
        target.write_table([_columns(types, rows)], types)

    @abstractmethod
    def _write_report(self, path: Path, overwrite: bool, command: str) -> Path:
        """Write the page and its companions."""


def _columns(types: dict[str, str], rows: Iterable[Iterable[Any]]) -> Columns:
    columns: list[list[Any]] = [[] for _ in types]
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    found: dict[str, Any] = {}
    for (title, kind), column in zip(types.items(), columns, strict=True):
        if kind == "DOUBLE":
            found[title] = np.array([np.nan if v is None else v for v in column], np.float64)
        else:
            found[title] = np.array([None if v in (None, "") else str(v) for v in column], object)
    return found
