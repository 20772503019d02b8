"""Options that say where an answer goes: a file, or a table of a database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from cocite.io.database import FORMS

Decorator = Callable[[Any], Any]


def kind_option(kinds: Sequence[str], default: str = "by the name") -> Decorator:
    """Add ``--kind``, what an output is whose name does not say it."""
    return click.option(
        "--kind",
        type=click.Choice(kinds, case_sensitive=False),
        help=f"What to write, whatever the name.  [default: {default}]",
    )


_TO = click.option(
    "--to",
    metavar="DATABASE#TABLE",
    help=f"Write to a table of a database instead of a file: {FORMS}, and #TABLE. All rows are "
    "there at once, or none.",
)
_APPEND = click.option(
    "--append", is_flag=True, help="Add to the rows that the table of --to has, if it is there."
)


def _add(command: Any) -> Any:
    return _TO(_APPEND(command))


to_options: Decorator = _add
"""Adds ``--to`` and ``--append``."""
