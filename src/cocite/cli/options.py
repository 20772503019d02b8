"""Options that several verbs share, so that they read the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cocite.cli.outputs import OUTPUTS, output_called
from cocite.errors import InputError, UsageError
from cocite.memory import parse_size

__all__ = [
    "Sectioned",
    "SectionedVerb",
    "format_option",
    "memory_option",
    "names_in",
    "overwrite_option",
    "threads_option",
]

Decorator = Callable[[Any], Any]


class Sectioned(click.Option):
    """An option that stands under a title of its own in the help of a :class:`SectionedVerb`."""

    def __init__(self, *declarations: Any, section: str, **more: Any) -> None:
        super().__init__(*declarations, **more)
        self.section = section


class SectionedVerb(click.Command):
    """A verb with many options: those that are always there first, then a section a title."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write all options, each under its title."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and record is not None:
                title = parameter.section if isinstance(parameter, Sectioned) else "Options"
                sections.setdefault(title, []).append(record)
        for title in sorted(sections, key=lambda title: title != "Options"):
            with formatter.section(title):
                formatter.write_dl(sections[title])


format_option: Decorator = click.option(
    "--format",
    "show",
    type=click.Choice(list(OUTPUTS)),
    default=next(iter(OUTPUTS)),
    show_default=True,
    callback=lambda context, parameter, name: output_called(name),
    help="How to print: for people, or for programs.",
)
"""Gives the verb ``show``, the function that prints its reply."""

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


def names_in(path: Path) -> list[str]:
    """The names in a file, one a line, empty lines left out; raises :class:`InputError`."""
    try:
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not text in UTF-8 (byte {error.start:,}); it is to hold names, one a line"
        ) from error
    return [name for name in (line.removesuffix("\r") for line in lines) if name]
