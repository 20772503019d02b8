"""``--format table``: text for people."""

from __future__ import annotations

from cocite.cli.outputs import Reply
from cocite.cli.shown import shown

__all__ = ["show"]


def show(reply: Reply) -> None:
    """Print what a person reads."""
    text = reply.text()
    if text:
        print(shown(text))
