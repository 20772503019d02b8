"""Widths of text on a terminal, where some characters take two columns and others none; titles of
pages in tables, cut to what is left of the line.

A name is never cut, so that it can be copied; a title is. It stands before the name.
"""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Sequence

__all__ = ["cut_to", "left_out", "narrowed", "padded", "width_of", "with_titles"]

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


def narrowed(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    give_way: Sequence[Sequence[str]],
    named: Sequence[str] | None,
) -> tuple[list[str], list[list[str]], list[str]]:
    """Titles of columns and rows of a table of names without what does not fit the terminal: first
    of ``give_way`` is what is told least; and what was left out. Short names fit whole, and the
    titles of pages, if they are ``named``, have room.
    """
    widths = dict(
        zip(titles, [max(map(width_of, c)) for c in zip(titles, *rows, strict=True)], strict=True)
    )
    widths[titles[-1]] = min(widths[titles[-1]], _LEAST)
    room = shutil.get_terminal_size().columns - (0 if named is None else _LEAST + 3) + 3
    left: list[str] = []
    for some in give_way:
        if sum(width + 3 for width in widths.values()) <= room:
            break
        left += [title for title in some if widths.pop(title, None) is not None]
    kept = [i for i, title in enumerate(titles) if title in widths]
    return [titles[i] for i in kept], [[row[i] for i in kept] for row in rows], left


def left_out(left: Sequence[str]) -> str:
    """A line on columns that were left out, behind a line end; nothing if none were."""
    told = f"\nleft out, for want of width: {', '.join(left)}; --format csv has all"
    return told if left else ""


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
