"""Widths of text on a terminal, where some characters take two columns and others none; titles of
pages in tables, cut to what is left of the line.

A name is never cut, so that it can be copied; a title is. It stands before the name.
"""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Sequence

__all__ = ["cut_to", "padded", "width_of", "with_titles"]

_LEAST = 16
"""Columns that titles get, however long the names behind them are."""


def width_of(text: str) -> int:
    """Columns that a text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def cut_to(text: str, room: int) -> str:
    """A text in ``room`` columns, its end left out if need be."""
    if width_of(text) <= room:
        return text
    gap = "…" if (sys.stdout.encoding or "").lower().startswith("utf") else "..."
    left, kept = room - len(gap), ""
    for letter in text:
        left -= _columns(letter)
        if left < 0:
            break
        kept += letter
    return kept.rstrip() + gap


def padded(text: str, room: int) -> str:
    """A text with blanks behind it, up to ``room`` columns."""
    return text + " " * (room - width_of(text))


def with_titles(
    titles: Sequence[str], rows: Sequence[Sequence[str]], named: Sequence[str] | None
) -> tuple[list[str], list[list[str]]]:
    """Titles of columns and rows of a table whose last column has names, with a column before it
    for the titles of pages, ``named``; None if there are none.
    """
    if named is None:
        return list(titles), [list(row) for row in rows]
    widths = [max(map(width_of, column)) for column in zip(titles, *rows, strict=True)]
    room = shutil.get_terminal_size().columns - sum(widths) - 3 * len(widths)
    widest = min(max(map(width_of, ("title", *named))), max(_LEAST, room))
    cells = [padded(cut_to(each, widest), widest) for each in ("title", *named)]
    pairs = zip((titles, *rows), cells, strict=True)
    first, *others = [[*row[:-1], cell, row[-1]] for row, cell in pairs]
    return first, others
