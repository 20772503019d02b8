"""Samples of an index that stay when it is refreshed: linked, or written in the ids of now.

Shards of which everything stays, ids too, are linked and not written again; of others, what is left
is carried over, blob by blob, checked before it is read.

Cost: one pass over what is not linked; a blob and 8 bytes a node for each thread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.index.sharded import Kept
from cocite.index.work import Note
from cocite.layouts.blobs import Blob, Maker
from cocite.layouts.format import DIGESTS, MEMBERS, shard_file
from cocite.layouts.stored import StoredPart
from cocite.layouts.table import sampled_builder
from cocite.store import Access, advise, copy_array, disk, forget

__all__ = ["Carried"]

_MOST_LINKED = 256
"""Shards that are kept as they are; were there more, they are written anew, fuller."""


class Carried(Kept):
    """The samples of a part that stay: their shards linked, or written in the ids of now."""

    def __init__(
        self,
        part: StoredPart,
        numbers: range,
        ids: Callable[[], NDArray[np.uint32]],
        same: bool,
        nodes: int,
        shard: int,
        threads: int,
    ) -> None:
        self.numbers = numbers
        self._part, self._ids, self._nodes, self._threads = part, ids, nodes, threads
        self._base = part.freshness.numbers.start
        begins = [self._base + each.first for each in part.shards]
        found = [
            range(begin, begin + each.samples)
            for begin, each in zip(begins, part.shards, strict=True)
        ]
        whole = [each for each in found if same and each.start >= numbers.start]
        self._begins = begins
        self._linked = set(whole) if len(whole) <= _MOST_LINKED else set[range]()
        self.shards: Sequence[range] = list(_cut(numbers, self._linked, shard))

    def link(self, shard: range, path: Path) -> Note | None:
        """Link a shard that stays as it is, and say what its note would; None if it does not."""
        if shard not in self._linked:
            return None
        store, name = self._part.store, self._part.prefix + shard_file(shard.start)
        entry = store.manifest.files[name]
        store.require(name)
        disk.remove(path)
        try:
            disk.link(store.path / name, path)
        except OSError:
            copy_array(store.path / name, path, entry)
        places = slice(shard.start - self._base, shard.stop - self._base)
        counts, digests = self._part.array(MEMBERS)[places], self._part.array(DIGESTS)[places]
        note = {"members": counts.tolist(), "digests": digests.tolist()}
        return {"entry": entry.to_json(), **note}

    def makers(self) -> list[Maker]:
        """One a thread; raises :class:`Damaged` if what is to be carried over is not whole."""
        part, ids = self._part, self._ids()
        for shard, begin in zip(part.shards, self._begins, strict=True):
            numbers = range(begin, begin + shard.samples)
            if numbers.stop > self.numbers.start and numbers not in self._linked:
                advise(Access.THROUGH, shard.words)
                part.store.require(part.prefix + shard_file(begin))
        carry = sampled_builder(part.layout).carrier(ids, self._nodes, part.settings)

        def make(sample: int) -> Blob:
            number = bisect_right(self._begins, sample) - 1
            shard = part.shards[number]
            try:
                return carry(shard.words, shard.blobs[sample - self._begins[number]])
            except IndexError as error:
                raise part.damaged(shard.first) from error
            finally:
                forget(shard.words)

        return [make] * self._threads


def _cut(numbers: range, linked: set[range], shard: int) -> Iterator[range]:
    """The numbers cut into shards: those that are linked, and runs between them."""
    ends = {each.start: each.stop for each in linked}
    start = numbers.start
    while start < numbers.stop:
        after = min((first for first in ends if first > start), default=numbers.stop)
        stop = ends.get(start, min(start + shard, after))
        yield range(start, stop)
        start = stop
