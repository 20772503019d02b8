"""``cocite verify``: check every byte of a stored graph or index."""

from __future__ import annotations

import click

from cocite.cli.options import format_option
from cocite.cli.output import print_facts
from cocite.errors import Damaged
from cocite.memory import format_size
from cocite.store import Store, kind_of

__all__ = ["verify"]


@click.command()
@click.argument("path", metavar="GRAPH|INDEX")
@format_option
def verify(path: str, form: str) -> None:
    """Read every file at the path in full and compare it with its checksum."""
    store = Store.open(path, kind_of(path) or "graph")
    faults = [fault for name in store.manifest.files if (fault := store.verify(name))]
    if faults:
        raise Damaged(
            "\n  ".join([f"{len(faults)} of {len(store.manifest.files)} files:", *faults])
        )
    count = len(store.manifest.files)
    print_facts(
        {"path": path, "kind": store.manifest.kind, "files": count, "bytes": store.nbytes},
        form,
        {path: f"{store.manifest.kind}, {count} files, {format_size(store.nbytes)}: all whole"},
    )
