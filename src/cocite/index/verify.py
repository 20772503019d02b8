"""Checking every byte of a store: each file is read in full and compared with its checksum, and
what its manifest tells with what a store of its kind has. If all fit, what is in the files is
compared with what the format says (``graph/sound.py``, ``layouts/sound.py``): checksums tell
chance, and not an enemy who signs. What is in the directory and no part of the store is told, too:
nothing reads it, so it is no fault.

Cost: two or three passes over all files, in pieces, and a sample of walks at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from cocite.documents import Document
from cocite.errors import Damaged, StoreError
from cocite.graph.graph import Graph, check_graph
from cocite.graph.in_blocks import BLOCK, BLOCKED, BlockedGraph, check_block, check_head
from cocite.graph.sound import graph_faults, name_faults, title_faults
from cocite.index.facts import IndexFacts
from cocite.index.files import check_files
from cocite.index.refined import DIAGONAL, read_diagonal
from cocite.index.stored import StoredIndex
from cocite.layouts.format import is_shard
from cocite.layouts.freshness import SINCE
from cocite.layouts.sound import Fault, part_faults
from cocite.layouts.wanted import WANTED
from cocite.store import MANIFEST, Manifest, Store, kind_of

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
        found_kind = kind_of(name)
        kind = found_kind if found_kind in ("index", BLOCKED, BLOCK) else "graph"
        store = Store(Path(name), Manifest.read(Path(name), kind))
        found = {file: store.verify(file) for file in store.manifest.files}
        faults = {file: fault for file, fault in found.items() if fault}
        told = _told(store)
        if not told and not faults:
            faults = _content(store)
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
    """The same of all ``stores`` that are kept of the file of links ``path``, or that a graph in
    blocks has there.
    """

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


def _content(store: Store) -> dict[str, str]:
    """What is wrong with what is in the files of a store whose checksums all fit, by file."""
    try:
        if store.manifest.kind == BLOCK:
            check_block(store.path)
            found = {}
        elif store.manifest.kind in ("graph", BLOCKED):
            blocked = store.manifest.kind == BLOCKED
            graph = BlockedGraph.open(store.path.parent) if blocked else Graph.open(store.path)
            found = {file: what for faults in _of_graph(graph) for file, what in faults}
        else:
            index = StoredIndex.open(store.path)
            found = {file: what for faults in _of_index(index) for file, what in faults}
    except StoreError as error:
        return {MANIFEST: str(error)}
    return {
        file: f"{store.path / file} fits its checksum, and not the format: {what}"
        for file, what in found.items()
    }


def _of_graph(graph: Graph) -> Iterator[Iterable[Fault]]:
    if isinstance(graph, BlockedGraph):
        graph.check_links()
    else:
        yield graph_faults(graph)
    yield name_faults(graph.names)
    yield title_faults(graph.titles)


def _of_index(index: StoredIndex) -> Iterator[Iterable[Fault]]:
    yield name_faults(index.names)
    yield title_faults(index.titles)
    if index.wanted is not None:
        ids = index.wanted
        if int(ids[-1]) >= index.graph_nodes or (ids[1:] <= ids[:-1]).any():
            yield [(WANTED, "ids of pages do not ascend, or are of none")]
    since = index.freshness.since
    if since is not None and int(since.max()) >= index.freshness.numbers.stop:
        yield [(SINCE, "there are nodes that no sample knows")]
    for part in index.parts:
        yield [(part.prefix + name, what) for name, what in part_faults(part)]
        if index.refined:
            table = read_diagonal(part.array(DIAGONAL), index.refined[part.prefix + DIAGONAL])
            if not table.sound:
                yield [(part.prefix + DIAGONAL, "it is not within its bounds")]


def _told(store: Store) -> list[str]:
    """What is wrong with the manifest of a store, if anything is."""
    try:
        if store.manifest.kind == "index":
            facts = IndexFacts.read(store.path, store.facts)
            check_files(store.path, store.manifest, facts)
        elif store.manifest.kind == BLOCKED:
            check_head(store)
        elif store.manifest.kind == "graph":
            check_graph(store)
    except Damaged as error:
        return [str(error)]
    return []
