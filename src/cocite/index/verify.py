"""Checking every byte of a store: each file is read in full and compared with its checksum, and
what its manifest tells with what a store of its kind has. What is in its directory and no part of
it is told, too: nothing reads it, so it is no fault, but nothing of ours leaves it there either.

Cost: one pass over all files, in constant memory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from cocite.documents import Document
from cocite.errors import Damaged, StoreError
from cocite.graph.graph import check_graph
from cocite.index.facts import IndexFacts
from cocite.index.files import check_files
from cocite.index.stored import StoredIndex
from cocite.layouts.format import is_shard
from cocite.store import Manifest, Store, kind_of

__all__ = ["VerifiedLinks", "VerifyDocument"]

_NAMED = 5
"""Surplus files that are named."""


@dataclass(frozen=True)
class VerifyDocument(Document):
    """What was found: the ``faults`` of ``files`` files, none if all are whole, behind that of the
    manifest, which has one unless it is ``sound``; and of an index that lacks nothing but samples,
    what is ``left`` of it, in words. ``surplus`` is what lies in it and is no part of it.
    """

    path: str
    kind: str
    files: int
    bytes: int
    sound: bool
    faults: Sequence[str]
    left: str = ""
    surplus: Sequence[str] = ()

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Self:
        """Read the store at ``path``; raises a :class:`~cocite.errors.StoreError` if none is."""
        name = os.fspath(path)
        kind = "index" if kind_of(name) == "index" else "graph"
        store = Store(Path(name), Manifest.read(Path(name), kind))
        found = {file: store.verify(file) for file in store.manifest.files}
        faults = {file: fault for file, fault in found.items() if fault}
        told = _told(store)
        size = len(store.manifest.files), store.nbytes
        left = "" if told else _left(store, faults)
        surplus = store.surplus()
        return cls(name, kind, *size, not told, [*told, *faults.values()], left, surplus)

    def facts(self) -> dict[str, Any]:
        """Without what there is nothing to say of."""
        facts, spare = super().facts(), {"left": self.left, "surplus": self.surplus}
        return {name: facts[name] for name in facts if spare.get(name, True)}

    @property
    def beside(self) -> str:
        """What lies in it and is no part of it, in words; "" if nothing does."""
        if not self.surplus:
            return ""
        more = len(self.surplus) - _NAMED
        named = ", ".join(self.surplus[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
        return f"{self.path} holds what is no part of it: {named}"

    @property
    def verdict(self) -> str:
        """All of it in a few words."""
        damaged = len(self.faults) - (not self.sound)
        files = [f"{damaged} of {self.files} files are damaged"] if damaged else []
        if self.sound:
            return files[0] if files else "all whole"
        return " and ".join(["the manifest", *files]) + ("" if files else " is damaged")


@dataclass(frozen=True)
class VerifiedLinks(Document):
    """The same of all ``stores`` that are kept of the file of links ``path``."""

    path: str
    stores: Sequence[VerifyDocument]

    def facts(self) -> dict[str, Any]:
        """What is said of each."""
        return {"path": self.path, "stores": [each.facts() for each in self.stores]}


def _left(store: Store, faults: dict[str, str]) -> str:
    """What is to be said of an index of which samples are damaged and nothing else."""
    if store.manifest.kind != "index" or not faults or not all(map(is_shard, faults)):
        return ""
    try:
        whole = Store.open(store.path, "index", spare=faults.__contains__)
        return StoredIndex(replace(whole, lost=faults)).loss
    except StoreError as error:
        return str(error)


def _told(store: Store) -> list[str]:
    """What is wrong with the manifest of a store, if anything is."""
    try:
        if store.manifest.kind == "index":
            facts = IndexFacts.read(store.path, store.facts)
            check_files(store.path, store.manifest, facts)
        else:
            check_graph(store)
    except Damaged as error:
        return [str(error)]
    return []
