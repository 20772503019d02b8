"""Text for people: tables, facts and prose that fit the terminal."""

from __future__ import annotations

import logging
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from cocite.cli.voice import VOICE
from cocite.cli.wide import width_of
from cocite.measures.settings import HUBS

__all__ = [
    "and_of",
    "asks_text",
    "counted",
    "facts_text",
    "fitting",
    "held",
    "or_of",
    "prose_text",
    "say",
    "settings_text",
    "settings_told",
    "table_text",
    "texts_in_words",
    "unsaid",
]

_INDENT = 4
_LEAST_PROSE = 20
"""Columns below which wrapping a text would make a ribbon of it."""


@contextmanager
def unsaid(name: str) -> Iterator[None]:
    """Notes of one logger are not shown: a verb that builds dozens of indexes would repeat them."""
    log = logging.getLogger(name)
    before = log.level
    log.setLevel(logging.WARNING)
    try:
        yield
    finally:
        log.setLevel(before)


@contextmanager
def held(name: str) -> Iterator[list[str]]:
    """Notes of one logger are kept, for who says them when their turn comes."""
    log, notes = logging.getLogger(name), list[str]()

    def keep(record: logging.LogRecord) -> bool:
        notes.append(record.getMessage())
        return False

    log.addFilter(keep)
    try:
        yield notes
    finally:
        log.removeFilter(keep)


def and_of(words: Sequence[str], joined: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *most, last = words
    return f"{', '.join(most)} {joined} {last}" if most else last


def counted(count: int, what: str) -> str:
    """``1 page``, ``2,000 pages``."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def or_of(words: Sequence[str]) -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    return and_of(words, "or")


def settings_told(settings: Mapping[str, object]) -> dict[str, str]:
    """Settings for people: that every link counts the same is not worth a word."""
    usual = (HUBS.name, HUBS.default)
    return {name: f"{value}" for name, value in settings.items() if (name, value) != usual}


def settings_text(settings: Mapping[str, object]) -> str:
    """``, samples 100, length 10``."""
    return "".join(f", {name} {value}" for name, value in settings_told(settings).items())


def asks_text(asks: Mapping[str, object]) -> str:
    """What an index keeps for its questions, in words."""
    chosen = ", ".join(f"{name} {value}" for name, value in asks.items())
    return f"{chosen}, unless a question says otherwise"


def say(message: str) -> None:
    """A note on standard error, for the person or the program that called."""
    VOICE.say(message)


def texts_in_words(texts: Mapping[str, int], nodes: int) -> str:
    """Of how many of the ``nodes`` there are texts, and how many words are in them."""
    return f"of {texts['pages']:,} of the {nodes:,} pages, {texts['words']:,} words"


def fitting(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Which columns fit the terminal: the first ones, as many as do, and the last one always."""
    widths = [max(map(width_of, column)) for column in zip(titles, *rows, strict=True)]
    last, room = len(titles) - 1, shutil.get_terminal_size().columns
    kept = list(range(last))
    while len(kept) > 1 and sum(widths[i] + 3 for i in kept) + widths[last] > room:
        kept.pop()
    return [*kept, last]


def table_text(titles: Sequence[str], rows: Sequence[Sequence[str]], prose: bool = False) -> str:
    """A table: columns to the right, but for the last one, which is text of any length.

    The rule under the titles fits the terminal; a name that does not is left to the terminal to
    wrap, so that it can be copied whole. ``prose`` is wrapped in its column.
    """
    widths = [max(map(width_of, column)) for column in zip(titles, *rows, strict=True)]
    columns = shutil.get_terminal_size().columns
    before = sum(widths[:-1]) + 3 * len(widths[:-1])
    lines = [
        "   ".join([*map(_right, row[:-1], widths), row[-1]])  # the last one is as long as it is
        for row in (titles, *rows)
    ]
    if prose and columns - before >= _LEAST_PROSE:
        lines = [_wrapped(line, " " * before) for line in lines]
    elif prose and columns < before + widths[-1]:  # below its row, as there is no place beside it
        indent = " " * _INDENT
        cells = ["   ".join(map(_right, row[:-1], widths)) for row in (titles, *rows)]
        told = [_wrapped(f"{indent}{row[-1]}", indent) for row in (titles, *rows)]
        lines = [f"{cell}\n{text}" for cell, text in zip(cells, told, strict=True)]
    longest = max(width_of(part) for line in lines for part in line.split("\n"))
    plain = not (sys.stdout.encoding or "").lower().startswith("utf")
    rule = ("-" if plain else "─") * min(longest, columns)
    return "\n".join([lines[0], rule, *lines[1:]])


def _right(cell: str, width: int) -> str:
    return " " * (width - width_of(cell)) + cell


def prose_text(text: str) -> str:
    """A paragraph as wide as the terminal."""
    return _wrapped(text, "")


def _wrapped(line: str, indent: str) -> str:
    """A line in the width of the terminal, what follows its first part indented; words stay."""
    return "\n".join(
        textwrap.wrap(
            line,
            shutil.get_terminal_size().columns,
            subsequent_indent=indent,
            drop_whitespace=True,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def facts_text(shown: Mapping[str, str]) -> str:
    """Named values, a line each."""
    width = max(map(len, shown))
    return "\n".join(f"{title:<{width}}  {text}" for title, text in shown.items())
