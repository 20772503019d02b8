"""``cocite verify``: check every byte of a stored graph or index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cocite.cli.links import refuse_links
from cocite.cli.options import format_option
from cocite.cli.outputs import Reply, Show
from cocite.cli.text import facts_text
from cocite.errors import Damaged
from cocite.memory import format_size

if TYPE_CHECKING:
    from cocite.index.verify import VerifyDocument

__all__ = ["verify"]


@click.command()
@click.argument("path", metavar="GRAPH|INDEX")
@format_option
def verify(path: str, show: Show) -> None:
    """Read every file at the path in full and compare it with its checksum.

    What the manifest tells is compared with what a graph or an index has: its own checksum is right
    wherever somebody meant to change it.
    """
    from cocite.index.verify import VerifyDocument

    refuse_links(path, "cocite verify {}")
    found = VerifyDocument.of(path)
    show(Reply(found, lambda: "" if found.faults else _whole(found)))
    if found.faults:
        left = [found.left] if found.left else []
        raise Damaged("\n  ".join([f"{found.verdict}:", *found.faults, *left]))


def _whole(found: VerifyDocument) -> str:
    size = format_size(found.bytes)
    return facts_text({found.path: f"{found.kind}, {found.files} files, {size}: {found.verdict}"})
