"""``cocite verify``: check every byte of a stored graph or index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cocite.cli.links import stored_of
from cocite.cli.options import format_option
from cocite.cli.outputs import Reply, Show
from cocite.cli.text import facts_text, say
from cocite.errors import Damaged
from cocite.memory import format_size

if TYPE_CHECKING:
    from cocite.index.verify import VerifyDocument

__all__ = ["verify"]


@click.command()
@click.argument("path", metavar="GRAPH|INDEX|LINKS")
@format_option
def verify(path: str, show: Show) -> None:
    """Read every file at the path in full and compare it with its checksum; of a graph in blocks
    all that are here; of a file of LINKS the graph and the indexes that are kept of it.

    What the manifest tells is compared with what a graph or an index has: its own checksum is right
    wherever somebody meant to change it. Files that lie there and are no part of it are named.
    """
    from cocite.index.verify import VerifiedLinks, VerifyDocument

    kept = stored_of(path)
    each = [VerifyDocument.of(store) for store in kept]
    found = each[0] if kept == [path] else VerifiedLinks(path, each)
    show(Reply(found, lambda: "\n".join(_whole(one) for one in each if not one.faults)))
    for one in each:
        if one.beside:
            say(f"{one.beside}. Nothing reads it: it may be removed")
        if one.faults:
            left = [one.left] if one.left else []
            where = "" if kept == [path] else f"{one.path}: "
            raise Damaged("\n  ".join([f"{where}{one.verdict}:", *one.faults, *left]))


def _whole(found: VerifyDocument) -> str:
    size = format_size(found.bytes)
    return facts_text({found.path: f"{found.kind}, {found.files} files, {size}: {found.verdict}"})
