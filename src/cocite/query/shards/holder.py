"""What a server of samples holds: a shard of an index, which it tells of when it is asked.

A shard is a stretch of the samples of every part, one of ``shards`` that are as even as can be. Of
a refreshed index it has every so many of them instead, so that each shard knows all nodes as well
as the whole does. Files are mapped, and only those pages are ever read that its samples lie in.

What a question finds to be damaged is left out, and the other samples of the shard go on telling.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cocite.errors import Damaged
from cocite.index import StoredIndex
from cocite.layouts.heard import Told, Wanted, refuse_layout, tell
from cocite.layouts.reader import Reader, SummingReader
from cocite.layouts.stored import DamagedShard, StoredPart
from cocite.layouts.table import is_sampled, reader_of

__all__ = ["Holds", "SampleHolder", "held_by", "marked", "spread_parts"]


def spread_parts(stored: StoredIndex) -> list[int]:
    """Which parts of an index have samples that are elsewhere; raises :class:`UsageError`."""
    found = [i for i, part in enumerate(stored.parts) if is_sampled(part.layout)]
    for i in found:
        refuse_layout(stored.parts[i].layout)
    return found


def held_by(part: StoredPart, shard: int, shards: int) -> NDArray[np.int64]:
    """int64[s], ascending: the numbers of the samples of a part that a shard has."""
    held = part.freshness.held
    if len(part.freshness.generations) > 1:
        return held[shard::shards]
    return held[shard * held.size // shards : (shard + 1) * held.size // shards]


def marked(stored: StoredIndex) -> str:
    """What tells an index from another that takes its place."""
    return f"{stored.store.manifest.digest()} {sorted(stored.store.lost)}"


@dataclass(frozen=True)
class Holds:
    """What a server says of itself: which shard of which index it holds, how many samples of the
    part that has the fewest, what questions found to be damaged since, and its process.
    """

    shard: int
    mark: str
    samples: int
    lost: tuple[str, ...]
    process: int


class SampleHolder:
    """A shard, opened. Its methods are asked from elsewhere, one at a time."""

    def __init__(self, path: str, shard: int, shards: int) -> None:
        """Opens the index at ``path``; raises a :class:`~cocite.errors.StoreError`."""
        stored = StoredIndex.open(path)
        self._mark, self._shard = marked(stored), shard
        self._numbers = {i: held_by(stored.parts[i], shard, shards) for i in spread_parts(stored)}
        self._lost: tuple[str, ...] = ()
        self._open(stored)
        if stored.nodes:  # loads what every question needs, so that the first takes no longer
            self.tell(Wanted(rows=(0,), pairs=((0, stored.nodes - 1),), ways=True))

    def _open(self, stored: StoredIndex) -> None:
        self._stored, self._readers = stored, dict[int, Reader]()
        for i, numbers in self._numbers.items():
            part = stored.parts[i]
            left = np.intersect1d(numbers, part.freshness.held)
            if not left.size:
                raise Damaged(f"shard {self._shard} of {stored.store.path} has lost all samples")
            self._readers[i] = reader_of(part.of(left))
        self._asked = stored.ask_settings({})

    def holds(self) -> Holds:
        """What it holds: the answer to whether it is there."""
        counts = [reader.part.samples for reader in self._readers.values()]
        return Holds(self._shard, self._mark, min(counts), self._lost, os.getpid())

    def tell(self, wanted: Wanted) -> tuple[str, dict[int, Told]]:
        """What its samples tell, of each part, and of which index they are."""
        while True:
            try:
                return self._mark, {i: self._of(r, wanted) for i, r in self._readers.items()}
            except DamagedShard as found:
                self._lost = *self._lost, found.file
                self._open(self._stored.without(found.file, str(found)))

    def _of(self, reader: Reader, wanted: Wanted) -> Told:
        assert isinstance(reader, SummingReader)
        return tell(reader, wanted, reader.part.ask_settings(self._asked))
