"""Text for people: tables, facts and prose that fit the terminal.

Ways to print an answer: a file each, and the table that finds them by name.

A command hands over one :class:`Reply` and does not know how it is printed. A new way is a
function that takes a reply, and a line of ``OUTPUTS``. Kinds of graphs are those of
``io/writers``, for commands that answer with one.

Widths of text on a terminal, where some characters take two columns and others none; titles of
pages in tables, cut to what is left of the line.

A name is never cut, so that it can be copied; a title is. It stands before the name.

``--format json``: one JSON document.

``--format markdown``: the rows of the document as a table of GitHub's Markdown.

A name that is a URL is a link, called by the title of its page where there is one; else titles have
a column of their own. All signs that Markdown or HTML would read are escaped, so that what is shown
is the name. Numbers are rounded to four digits, as in the table for people; ``--format csv`` has
them whole.

``--format table``: text for people.
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import cast

from cocite.cli.messages import VOICE, as_json, shown
from cocite.measures.settings import HUBS
from cocite.results import Document, markdown

OUTPUTS = {
    "table": "cocite.cli.output:show_table",
    "json": "cocite.cli.output:show_json",
    "csv": "cocite.cli.csv:show",
    "markdown": "cocite.cli.output:show_markdown",
}
"""What ``--format`` may be, the default first -> the function that prints it."""


@dataclass(frozen=True)
class Reply:
    """What a command answers: the ``document`` for programs, and ``text()``, made when it is
    needed, for people: empty if there is nothing to print. ``graph(kind)`` is the same as a graph,
    of commands that offer it.
    """

    document: Document
    text: Callable[[], str]
    graph: Callable[[str], str] | None = None


Show = Callable[[Reply], None]

GRAPH_OUTPUTS = ["graphml", "gexf", "dot"]
"""What ``--format`` may be beside, of a command that answers with a graph: what ``io/writers`` has,
named here as nobody else waits for these."""


def output_called(name: str, *, safe: bool = False) -> Show:
    """The function that prints a reply in the format ``name``, CSV ``safe`` for spreadsheets or
    not.
    """
    if name in GRAPH_OUTPUTS:
        return partial(_show_graph, name)
    module, _, called = OUTPUTS[name].partition(":")
    show = getattr(import_module(module), called)
    return cast(Show, partial(show, safe=True) if safe and name == "csv" else show)


def _show_graph(kind: str, reply: Reply) -> None:
    """Print the graph of a reply."""
    assert reply.graph is not None
    sys.stdout.write(reply.graph(kind))


def prints_json(show: Show) -> bool:
    """Whether it is JSON that is printed."""
    return show is output_called("json")


# -- wide --------------------------------------------------------------------------------


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


# -- text --------------------------------------------------------------------------------


_INDENT = 4
_LEAST_PROSE = 20
"""Columns below which wrapping a text would make a ribbon of it."""


@contextmanager
def unsaid(name: str) -> Iterator[None]:
    """Notes of one logger are not shown: a command that builds dozens of indexes would repeat
    them.
    """
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


def reported_settings(settings: Mapping[str, object]) -> dict[str, str]:
    """Settings for people: that every link counts the same is not worth a word."""
    usual = (HUBS.name, HUBS.default)
    return {name: f"{value}" for name, value in settings.items() if (name, value) != usual}


def settings_text(settings: Mapping[str, object]) -> str:
    """``, samples 100, length 10``."""
    return "".join(f", {name} {value}" for name, value in reported_settings(settings).items())


def query_defaults_text(asks: Mapping[str, object]) -> str:
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


# -- json --------------------------------------------------------------------------------


def show_json(reply: Reply) -> None:
    """Print the document, a fact a line; no number is rounded."""
    print(as_json(json.dumps(reply.document.to_json(), ensure_ascii=False, indent=1)))


# -- markdown ----------------------------------------------------------------------------


def show_markdown(reply: Reply) -> None:
    """Print a table; the columns of numbers stand to the right."""
    print(markdown(reply.document.rows()))


# -- table -------------------------------------------------------------------------------


def show_table(reply: Reply) -> None:
    """Print what a person reads."""
    text = reply.text()
    if text:
        print(shown(text))
