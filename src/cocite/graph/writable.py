"""What an answer in Python has beside its values: ``write(file)`` and ``write_to(database)``.

The writers (``writers/``) are loaded when something is written, so that a question does without.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from cocite.graph.writers import Target, Types

__all__ = ["Writable", "columns_of"]


class Writable:
    """Answers that are tables: ``_types()`` are the columns, ``_write(target)`` writes them. By id
    they may be arrays, too (``_arrays``).
    """

    _arrays = False

    def write(
        self,
        output: str | os.PathLike[str],
        *,
        kind: str | None = None,
        overwrite: bool = False,
        safe: bool = False,
    ) -> Path:
        """Write it to a file, by the ending of its name (``.parquet``, ``.csv``, ``.tsv``,
        ``.jsonl``, ``.arrow``; numbers by id as ``.npy``, too) or by ``kind``. It has its name when
        it is whole. ``safe``: names and titles that a spreadsheet would take for formulas have an
        apostrophe before them, in CSV and TSV.

        Raises :class:`~cocite.errors.UsageError` or :class:`~cocite.errors.OutputExists`.
        """
        from cocite.graph.writers import ARRAYS, TABLES, check_output

        endings = (*TABLES, *ARRAYS) if self._arrays else TABLES
        self._write(check_output(output, overwrite, endings, kind, safe=safe))
        return Path(output)

    def write_to(self, to: str, *, overwrite: bool = False, append: bool = False) -> None:
        """Write it to a table of a database, such as ``"sqlite:///site.db#related"``: all rows at
        once, in the place of the table that is there (``overwrite``), or behind its rows
        (``append``).

        Raises as :func:`~cocite.graph.writers.databases.database_target` does.
        """
        from cocite.graph.writers.databases import database_target

        types = self._types()
        self._write(database_target(to, overwrite=overwrite, append=append, types=types))

    @abstractmethod
    def _types(self) -> Types:
        """The columns, and what they hold in SQL."""

    @abstractmethod
    def _write(self, target: Target) -> None:
        """Write all rows."""


def columns_of(lists: dict[str, list[Any]], types: Types) -> dict[str, Any]:
    """Columns as writers take them."""
    kinds = {"VARCHAR": object, "BIGINT": np.int64, "INTEGER": np.int32, "DOUBLE": np.float64}
    return {title: np.array(lists[title], kinds[kind]) for title, kind in types.items()}
