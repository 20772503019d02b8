"""Replies on standard output: one function per format, and text that fits the terminal.

To add a format, write a function that takes a :class:`Reply`, and add it to ``OUTPUTS``.

Names are never truncated, so that they can be copied; the titles before them may be truncated.
Widths are in terminal columns: a character occupies none, one or two.
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
from typing import TYPE_CHECKING

from cocite.cli.console import printable, printable_json
from cocite.measures.settings import HUBS
from cocite.results import Document, markdown, write_csv

if TYPE_CHECKING:
    from cocite.index.layouts.snapshots import LocalRefresh


@dataclass(frozen=True)
class Reply:
    """A command's answer: the ``document`` for programs, ``text()`` for people ("" prints nothing),
    and optionally ``graph(kind)``, the answer as a graph.
    """

    document: Document
    text: Callable[[], str]
    graph: Callable[[str], str] | None = None


Show = Callable[[Reply], None]


def show_table(reply: Reply) -> None:
    """Print the text for people."""
    if text := reply.text():
        print(printable(text))


def show_json(reply: Reply) -> None:
    """Print the document as indented JSON with unrounded numbers."""
    print(printable_json(json.dumps(reply.document.to_json(), ensure_ascii=False, indent=1)))


def show_csv(reply: Reply, safe: bool = False) -> None:
    """Print the rows as CSV; ``safe`` escapes text that spreadsheets would run as formulas."""
    write_csv(reply.document.rows(), sys.stdout, safe)


def show_markdown(reply: Reply) -> None:
    """Print the rows as a GitHub Markdown table."""
    print(markdown(reply.document.rows()))


def _show_graph(kind: str, reply: Reply) -> None:
    assert reply.graph is not None
    sys.stdout.write(reply.graph(kind))


OUTPUTS: dict[str, Show] = {
    "table": show_table,
    "json": show_json,
    "csv": show_csv,
    "markdown": show_markdown,
}
"""Values of ``--format`` with their functions, the default first."""
GRAPH_OUTPUTS = ["graphml", "gexf", "dot"]
"""More values, for graphs. They repeat ``io/writers``, which is slow to import."""


def output_called(name: str, *, safe: bool = False) -> Show:
    """Return the function that prints a reply in the format ``name``."""
    if name in GRAPH_OUTPUTS:
        return partial(_show_graph, name)
    return partial(show_csv, safe=True) if safe and name == "csv" else OUTPUTS[name]


# -- tables and facts --------------------------------------------------------------------


_LEAST = 16
"""Minimum width of titles, regardless of the names after them."""
_INDENT = 4
_LEAST_PROSE = 20


def width_of(text: str) -> int:
    """Return the width of a text in terminal columns."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def terminal_width() -> int:
    """Return the width of the terminal."""
    return shutil.get_terminal_size().columns


def writes_unicode() -> bool:
    """Return whether standard output can encode all characters."""
    return (sys.stdout.encoding or "").lower().startswith("utf")


def cut_to(text: str, room: int) -> str:
    """Truncate a text to ``room`` columns, with an ellipsis."""
    if width_of(text) <= room:
        return text
    gap = "…" if writes_unicode() else "..."
    left, shown = room - len(gap), ""
    for letter in text:
        left -= _columns(letter)
        if left < 0:
            break
        shown += letter
    return shown.rstrip() + gap


def padded(text: str, room: int) -> str:
    """Pad a text with blanks to ``room`` columns."""
    return text + " " * (room - width_of(text))


def _widths(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(width_of, column)) for column in zip(titles, *rows, strict=True)]


def names_text(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    named: Sequence[str] | None = None,
    optional: Sequence[Sequence[str]] = (),
    least: int = _LEAST,
) -> str:
    """Return a table whose last column holds names; it gets at least ``least`` terminal columns.

    ``named`` are the titles of pages, shown before their names. On a narrow terminal, ``optional``
    columns are dropped in order, and a note lists them.
    """
    widths = dict(zip(titles, _widths(titles, rows), strict=True))
    widths[titles[-1]] = min(widths[titles[-1]], least)
    room = terminal_width() - (0 if named is None else _LEAST + 3) + 3
    left: list[str] = []
    for some in optional:
        if sum(width + 3 for width in widths.values()) <= room:
            break
        left += [title for title in some if widths.pop(title, None) is not None]
    shown = [i for i, title in enumerate(titles) if title in widths]
    titles, rows = [titles[i] for i in shown], [[row[i] for i in shown] for row in rows]
    if named is not None:
        taken = _widths(titles, rows)
        most = max(_LEAST, terminal_width() - sum(taken) - 3 * len(taken))
        widest = min(max(map(width_of, ("title", *named))), most)
        cells = [padded(cut_to(each, widest), widest) for each in ("title", *named)]
        pairs = zip((titles, *rows), cells, strict=True)
        titles, *rows = [[*row[:-1], cell, row[-1]] for row, cell in pairs]
    text = table_text(titles, rows)
    if left:
        text += f"\nomitted on this narrow terminal: {', '.join(left)}; --format csv shows all"
    return text


def table_text(titles: Sequence[str], rows: Sequence[Sequence[str]], prose: bool = False) -> str:
    """Return a table of right-aligned columns; the last is left-aligned text of any length.

    The terminal wraps long names, so that they can be copied whole. With ``prose``, the last column
    is wrapped here.
    """
    widths, columns = _widths(titles, rows), terminal_width()
    before = sum(widths[:-1]) + 3 * len(widths[:-1])
    lines = []
    for *cells, last in (titles, *rows):
        start = "".join(
            " " * (width - width_of(cell)) + cell + "   "
            for cell, width in zip(cells, widths, strict=False)
        )
        if prose and columns - before >= _LEAST_PROSE:
            lines.append(_wrapped(start + last, " " * before))
        elif prose and columns < before + widths[-1]:  # too narrow: wrap the text below its row
            indent = " " * _INDENT
            lines.append(f"{start.rstrip(' ')}\n{_wrapped(indent + last, indent)}")
        else:
            lines.append(start + last)
    longest = max(width_of(part) for line in lines for part in line.split("\n"))
    rule = ("─" if writes_unicode() else "-") * min(longest, columns)
    return "\n".join([lines[0], rule, *lines[1:]])


def prose_text(text: str) -> str:
    """Wrap a paragraph to the terminal's width."""
    return _wrapped(text, "")


def _wrapped(line: str, indent: str) -> str:
    return "\n".join(
        textwrap.wrap(
            line,
            terminal_width(),
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def facts_text(facts: Mapping[str, str | None]) -> str:
    """Format named values, one per line; omit empty ones."""
    shown = {title: text for title, text in facts.items() if text}
    width = max(map(len, shown))
    return "\n".join(f"{title:<{width}}  {text}" for title, text in shown.items())


# -- words -------------------------------------------------------------------------------


def and_of(words: Sequence[str], joined: str = "and") -> str:
    """Join words: ``a``, ``a and b``, ``a, b and c``."""
    *most, last = words
    return f"{', '.join(most)} {joined} {last}" if most else last


def or_of(words: Sequence[str]) -> str:
    """Join words: ``a``, ``a or b``, ``a, b or c``."""
    return and_of(words, "or")


def counted(count: int, what: str) -> str:
    """Return a count with its noun: ``1 page``, ``2,000 pages``."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def reported_settings(settings: Mapping[str, object]) -> dict[str, str]:
    """Return settings as text, without ``hubs`` at its default."""
    usual = (HUBS.name, HUBS.default)
    return {name: f"{value}" for name, value in settings.items() if (name, value) != usual}


def settings_text(settings: Mapping[str, object]) -> str:
    """Format settings: ``, samples 100, length 10``."""
    return "".join(f", {name} {value}" for name, value in reported_settings(settings).items())


def defaults_text(found: object) -> dict[str, str]:
    """Describe the query defaults of an index or a build."""
    weight = getattr(found, "meeting_weight", None)
    chosen = ", ".join(f"{n} {v}" for n, v in getattr(found, "query_defaults", {}).items())
    more = ", unless a query overrides it"
    return {
        "meeting_weight": f"{weight}{more}" if weight else "",
        "defaults": f"{chosen}{more}" if chosen else "",
    }


def texts_in_words(texts: Mapping[str, int] | None, nodes: int) -> str:
    """Describe how many ``nodes`` have texts, and how many words the texts have."""
    if not texts:
        return ""
    return f"of {texts['pages']:,} of the {nodes:,} pages, {texts['words']:,} words"


def staleness_in_words(local: LocalRefresh) -> tuple[str, str]:
    """Describe how many nodes a local refresh recomputed, and how stale the rest is."""
    if not local.checked:
        return f"{local.nodes:,} nodes", "none"
    return f"{local.nodes:,} nodes", (
        f"{local.differ:.1%} of {local.checked:,} top-10 lists would change, and scores would "
        f"change by at most {local.largest_difference:.4f}"
    )


@contextmanager
def held(name: str) -> Iterator[list[str]]:
    """Collect a logger's notes instead of printing them; let warnings pass."""
    log, notes = logging.getLogger(name), list[str]()

    def collect(record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING:
            return True
        notes.append(record.getMessage())
        return False

    log.addFilter(collect)
    try:
        yield notes
    finally:
        log.removeFilter(collect)
