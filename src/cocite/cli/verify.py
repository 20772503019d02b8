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
    """Read every file at the path in full and compare it with its checksum.

    What the manifest tells of them is checked, too: a checksum can be right and the file another.
    """
    kind = "index" if kind_of(path) == "index" else "graph"
    store = Store(Path(path), Manifest.read(Path(path), kind))
    faults = [fault for name in store.manifest.files if (fault := store.verify(name))]
    count, size = len(store.manifest.files), store.nbytes
    verdict = f"{len(faults)} of {count} files are damaged" if faults else ""
    try:
        _check(store)
    except Damaged as error:
        faults.insert(0, str(error))
        verdict = "the manifest and " + verdict if verdict else "the manifest is damaged"
    facts = {"path": path, "kind": kind, "files": count, "bytes": size, "faults": faults}
    verdict = verdict or "all whole"
    if form != "table" or not faults:
        shown = {path: f"{kind}, {count} files, {format_size(size)}: {verdict}"}
        print_facts(facts, form, shown)
    if faults:
        raise Damaged("\n  ".join([f"{verdict}:", *faults]))


def _check(store: Store) -> None:
    """See that what a manifest tells is what its kind of store has."""
    if store.manifest.kind == "graph":
        from cocite.graph.graph import check_graph

        check_graph(store)
    else:
        from cocite.index.facts import IndexFacts

        IndexFacts.read(store.path, store.facts)
