"""What a writer is: how a table, an array or a graph becomes a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ArrayFile", "Columns", "TableFile", "Types"]

Columns = Mapping[str, Any]
"""Some rows: arrays of equal length by title."""
Types = Mapping[str, str]
"""The titles of a table and their SQL types."""


@dataclass(frozen=True)
class TableFile:
    """Files of columns with titles: ``write(path, pieces, types)`` makes one, and takes ``memory``
    bytes, whatever its size; ``twice`` if its rows lie beside it once more while it is made.

    ``text(piece, types, first)`` is what a stream begins with, if the piece is the ``first``, or
    goes on with; None for a kind that is no stream. ``ready()`` raises
    :class:`~cocite.errors.UsageError` if a library that it needs is missing. ``safe`` writes the
    same so that no spreadsheet takes a name for a formula (``formulas.py``); None where none does.
    """

    title: str
    write: Callable[[Path, Iterable[Columns], Types], None]
    memory: int = 0
    twice: bool = False
    text: Callable[[Columns, Types, bool], bytes] | None = None
    ready: Callable[[], object] = lambda: None
    safe: TableFile | None = None


@dataclass(frozen=True)
class ArrayFile:
    """Files of one array: ``write(path, pieces, dtype, shape)`` makes one of elements in order."""

    title: str
    write: Callable[[Path, Iterable[NDArray[Any]], np.dtype[Any], tuple[int, ...]], None]
