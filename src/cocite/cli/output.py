"""Printing: tables that fit the terminal, JSON and CSV for programs.

A table into a pipe or file is as wide as its content: nothing is cut off.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["print_csv", "print_facts", "print_json", "print_table", "say"]

_ENDLESS = 100_000


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


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]], flexible: int) -> None:
    """A table; column number ``flexible`` is left-aligned and folds if it must."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else _ENDLESS, highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for i, title in enumerate(titles):
        if i == flexible:
            table.add_column(title, overflow="fold")
        else:
            table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    with console.capture() as captured:
        console.print(table)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def print_facts(facts: dict[str, Any], form: str, shown: dict[str, str]) -> None:
    """Named values: ``shown`` holds what a person reads, ``facts`` what a program does."""
    if form == "json":
        print_json(facts)
    elif form == "csv":
        print_csv(["fact", "value"], facts.items())
    else:
        width = max(map(len, shown))
        print("\n".join(f"{title:<{width}}  {text}" for title, text in shown.items()))
