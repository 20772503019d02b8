"""Options that several verbs share, so that they read the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from cocite.errors import UsageError
from cocite.memory import parse_size

__all__ = ["format_option", "memory_option", "overwrite_option", "threads_option"]

Decorator = Callable[[Any], Any]

format_option: Decorator = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="How to print: for people, or for programs.",
)

overwrite_option: Decorator = click.option(
    "--overwrite",
    is_flag=True,
    help="Replace the output if it is a store; the old one stays until the new one is whole.",
)

threads_option: Decorator = click.option(
    "--threads", type=click.IntRange(1), help="How many cores to use.  [default: all]"
)


def _size(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    try:
        return None if value is None else parse_size(value)
    except UsageError as error:
        raise click.BadParameter(str(error)) from error


memory_option: Decorator = click.option(
    "--memory",
    metavar="SIZE",
    callback=_size,
    help="Memory for the data, such as 600MB or 4GiB, beside some 150 MB for Python.  "
    "[default: half of what is available]",
)
