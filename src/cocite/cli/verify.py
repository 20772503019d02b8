"""``cocite verify``: check every byte of a stored graph or index."""

from __future__ import annotations

import click

from cocite.cli.options import format_option
from cocite.cli.outputs import Reply, Show
from cocite.cli.text import facts_text
from cocite.errors import Damaged
from cocite.memory import format_size
from cocite.store.verify import VerifyDocument

__all__ = ["verify"]


@click.command()
@click.argument("path", metavar="GRAPH|INDEX")
@format_option
def verify(path: str, show: Show) -> None:
    """Read every file at the path in full and compare it with its checksum."""
    found = VerifyDocument.of(path)
    show(Reply(found, lambda: "" if found.faults else _whole(found)))
    if found.faults:
        verdict = f"{len(found.faults)} of {found.files} files are damaged:"
        raise Damaged("\n  ".join([verdict, *found.faults]))


def _whole(found: VerifyDocument) -> str:
    size = format_size(found.bytes)
    return facts_text({found.path: f"{found.kind}, {found.files} files, {size}: all whole"})
