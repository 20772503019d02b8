"""Ways to print an answer: a file each, and the table that finds them by name.

A verb hands over one :class:`Reply` and does not know how it is printed. A new way is a file in
this folder with a function ``show(reply)``, and a line of ``OUTPUTS``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from cocite.documents import Document

__all__ = ["OUTPUTS", "Reply", "Show", "output_called", "prints_json"]

OUTPUTS = {
    "table": "cocite.cli.outputs.table",
    "json": "cocite.cli.outputs.json",
    "csv": "cocite.cli.outputs.csv",
}
"""What ``--format`` may be, the default first -> the module that prints it."""


@dataclass(frozen=True)
class Reply:
    """What a verb answers: the ``document`` for programs, and ``text()``, made when it is needed,
    for people: empty if there is nothing to print.
    """

    document: Document
    text: Callable[[], str]


Show = Callable[[Reply], None]


def output_called(name: str) -> Show:
    """The function that prints a reply in the format ``name``."""
    return cast(Show, import_module(OUTPUTS[name]).show)


def prints_json(show: Show) -> bool:
    """Whether it is JSON that is printed."""
    return show is output_called("json")
