"""What a writer is: how tables, or arrays, become a file."""

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
    bytes, whatever its size.
    """

    title: str
    write: Callable[[Path, Iterable[Columns], Types], None]
    memory: int = 0


@dataclass(frozen=True)
class ArrayFile:
    """Files of one array: ``write(path, pieces, dtype, shape)`` makes one of elements in order."""

    title: str
    write: Callable[[Path, Iterable[NDArray[Any]], np.dtype[Any], tuple[int, ...]], None]
