"""Printing: tables for people, JSON and CSV for programs."""

from __future__ import annotations

import csv
import json
import math
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["fitting", "print_csv", "print_facts", "print_json", "print_table", "say"]


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


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table: columns to the right, but for the last one, which is text of any length.

    The rule under the titles fits the terminal; a name that does not is left to the terminal to
    wrap, so that it can be copied whole.
    """
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    lines = [
        "   ".join([*(cell.rjust(w) for cell, w in zip(row[:-1], widths, strict=False)), row[-1]])
        for row in (titles, *rows)
    ]
    plain = not (sys.stdout.encoding or "").lower().startswith("utf")
    rule = ("-" if plain else "─") * min(max(map(len, lines)), shutil.get_terminal_size().columns)
    print("\n".join([lines[0], rule, *lines[1:]]))


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
