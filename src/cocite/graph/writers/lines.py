"""``.jsonl``: JSON lines, an object a row. Constant memory.

    {"node": "Cat", "rank": 0.012}

What does not exist is null, and no number is rounded: a float32 is the shortest decimal that is
read as the same float32.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cocite.graph.writers.writer import Columns, TableFile, Types
from cocite.store import disk

__all__ = ["JSON_LINES", "rows_of"]

_ROWS = 1 << 14


def rows_of(piece: Columns, types: Types) -> Iterator[tuple[Any, ...]]:
    """The rows of a piece as Python's own values, None for what does not exist."""
    return zip(*(map(_plain, _values(piece[title])) for title in types), strict=True)


def _values(column: Any) -> list[Any]:
    if isinstance(column, np.ndarray):
        if column.dtype == np.float32:
            return [float(str(value)) for value in column]
        return list(column.tolist())
    return list(column)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _text(piece: Columns, types: Types, first: bool) -> bytes:
    rows = (dict(zip(types, row, strict=True)) for row in rows_of(piece, types))
    lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    return lines.encode(errors="surrogateescape")


def _write(path: Path, pieces: Iterable[Columns], types: Types) -> None:
    with disk.rewrite(path) as file:
        for piece in pieces:
            rows = len(next(iter(piece.values())))
            for low in range(0, rows, _ROWS):
                some = {title: values[low : low + _ROWS] for title, values in piece.items()}
                disk.write(file, _text(some, types, False))


JSON_LINES = TableFile("JSON lines", _write, text=_text)
