"""Printing: tables for people, JSON and CSV for programs."""

from __future__ import annotations

import csv
import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = [
    "fitting",
    "print_csv",
    "print_facts",
    "print_json",
    "print_prose",
    "print_table",
    "say",
]

_LEAST_PROSE = 20
"""Columns below which wrapping a text would make a ribbon of it."""


def say(message: str) -> None:
    """A line for the person at the terminal, on standard error."""
    print(message, file=sys.stderr, flush=True)


def _plain(value: Any) -> Any:
    """JSON has no nan: what does not exist is null."""
    return None if isinstance(value, float) and math.isnan(value) else value


def print_json(value: dict[str, Any]) -> None:
    """One JSON document."""

    def clean(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: clean(inner) for key, inner in item.items()}
        if isinstance(item, list | tuple):
            return [clean(inner) for inner in item]
        return _plain(item)

    print(json.dumps(clean(value), ensure_ascii=False, indent=1))


def print_csv(titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """RFC 4180, with a header."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(titles)
    writer.writerows([["" if _plain(v) is None else v for v in row] for row in rows])


def fitting(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Which columns fit the terminal: the first ones, as many as do, and the last one always."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    last, room = len(titles) - 1, shutil.get_terminal_size().columns
    kept = list(range(last))
    while len(kept) > 1 and sum(widths[i] + 3 for i in kept) + widths[last] > room:
        kept.pop()
    return [*kept, last]


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]], prose: bool = False) -> None:
    """A table: columns to the right, but for the last one, which is text of any length.

    The rule under the titles fits the terminal; a name that does not is left to the terminal to
    wrap, so that it can be copied whole. ``prose`` is wrapped in its column.
    """
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    columns = shutil.get_terminal_size().columns
    before = sum(widths[:-1]) + 3 * len(widths[:-1])
    lines = [
        "   ".join([*(cell.rjust(w) for cell, w in zip(row[:-1], widths, strict=False)), row[-1]])
        for row in (titles, *rows)
    ]
    if prose and columns - before >= _LEAST_PROSE:
        lines = [_wrapped(line, " " * before) for line in lines]
    longest = max(len(part) for line in lines for part in line.split("\n"))
    plain = not (sys.stdout.encoding or "").lower().startswith("utf")
    rule = ("-" if plain else "─") * min(longest, columns)
    print("\n".join([lines[0], rule, *lines[1:]]))


def print_prose(text: str) -> None:
    """A paragraph as wide as the terminal."""
    print(_wrapped(text, ""))


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


def _flat(facts: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Facts within facts as ``outer_inner``; lists as JSON."""
    found: dict[str, Any] = {}
    for title, value in facts.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{title}_")
        else:
            text = json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value
            found[f"{prefix}{title}"] = text
    return found


def print_facts(facts: dict[str, Any], form: str, shown: dict[str, str]) -> None:
    """Named values: ``shown`` holds what a person reads, ``facts`` what a program does."""
    if form == "json":
        print_json(facts)
    elif form == "csv":
        print_csv(["fact", "value"], _flat(facts).items())
    else:
        width = max(map(len, shown))
        print("\n".join(f"{title:<{width}}  {text}" for title, text in shown.items()))
