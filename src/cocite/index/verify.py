"""Checking every byte of a store: each file is read in full and compared with its checksum, and
what its manifest tells with what a store of its kind has.

Cost: one pass over all files, in constant memory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cocite.documents import Document
from cocite.errors import Damaged
from cocite.graph.graph import check_graph
from cocite.index.facts import IndexFacts
from cocite.store import Manifest, Store, kind_of

__all__ = ["VerifyDocument"]


@dataclass(frozen=True)
class VerifyDocument(Document):
    """What was found: the ``faults`` of ``files`` files, none if all are whole, behind that of the
    manifest, which has one unless it is ``sound``.
    """

    path: str
    kind: str
    files: int
    bytes: int
    sound: bool
    faults: Sequence[str]

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Self:
        """Read the store at ``path``; raises a :class:`~cocite.errors.StoreError` if none is."""
        name = os.fspath(path)
        kind = "index" if kind_of(name) == "index" else "graph"
        store = Store(Path(name), Manifest.read(Path(name), kind))
        faults = [fault for file in store.manifest.files if (fault := store.verify(file))]
        told = _told(store)
        size = len(store.manifest.files), store.nbytes
        return cls(name, kind, *size, not told, told + faults)

    @property
    def verdict(self) -> str:
        """All of it in a few words."""
        damaged = len(self.faults) - (not self.sound)
        files = [f"{damaged} of {self.files} files are damaged"] if damaged else []
        if self.sound:
            return files[0] if files else "all whole"
        return " and ".join(["the manifest", *files]) + ("" if files else " is damaged")


def _told(store: Store) -> list[str]:
    """What is wrong with the facts of a store, if anything is."""
    try:
        if store.manifest.kind == "index":
            IndexFacts.read(store.path, store.facts)
        else:
            check_graph(store)
    except Damaged as error:
        return [str(error)]
    return []
