"""``cocite verify``: check every byte of a stored graph or index."""

from __future__ import annotations

from pathlib import Path

import click

from cocite.cli.options import format_option
from cocite.cli.output import print_facts
from cocite.errors import Damaged
from cocite.memory import format_size
from cocite.store import Manifest, Store, kind_of

__all__ = ["verify"]


@click.command()
@click.argument("path", metavar="GRAPH|INDEX")
@format_option
def verify(path: str, form: str) -> None:
    """Read every file at the path in full and compare it with its checksum."""
    kind = kind_of(path) or "graph"
    store = Store(Path(path), Manifest.read(Path(path), kind))
    faults = [fault for name in store.manifest.files if (fault := store.verify(name))]
    count, size = len(store.manifest.files), store.nbytes
    facts = {"path": path, "kind": kind, "files": count, "bytes": size, "faults": faults}
    verdict = f"{len(faults)} of {count} files are damaged" if faults else "all whole"
    if form != "table" or not faults:
        shown = {path: f"{kind}, {count} files, {format_size(size)}: {verdict}"}
        print_facts(facts, form, shown)
    if faults:
        raise Damaged("\n  ".join([f"{verdict}:", *faults]))
