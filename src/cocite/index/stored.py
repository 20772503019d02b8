"""An index on disk, opened: shards of samples, the names, and what it was built from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import Damaged
from cocite.graph.names import NAME_FILES, Names, open_names
from cocite.index.trees import blob_words, place_blobs
from cocite.store import Store

__all__ = ["DIGESTS", "MEMBERS", "Shard", "StoredIndex", "shard_file"]

MEMBERS, DIGESTS = "sample_members", "sample_digests"
_SHARD = "samples-"


def shard_file(first: int) -> str:
    """The file of the shard that begins with sample ``first``."""
    return f"{_SHARD}{first:06d}"


@dataclass(frozen=True)
class Shard:
    """A run of samples: its words, and where each sample's parts begin in them."""

    first: int
    words: NDArray[np.uint32]
    blobs: NDArray[np.uint64]

    @property
    def samples(self) -> int:
        """How many samples it holds."""
        return len(self.blobs)


def damaged(index: StoredIndex, first: int) -> Damaged:
    """What to raise when a query meets a shard that points outside of itself."""
    path = index.store.path
    return Damaged(
        f"{path / shard_file(first)} is damaged; see: cocite verify {path}. Copy the index again "
        "from where it was whole, or build it again"
    )


class StoredIndex:
    """The directory of an index. Opening it reads the manifest and maps the shards."""

    def __init__(self, store: Store) -> None:
        self.store = store
        facts = store.facts
        try:
            self.nodes: int = facts["nodes"]
            self.measure: str = facts["measure"]
            self.samples: int = facts["samples"]
            self.length: int = facts["length"]
            self.seed: int = facts["seed"]
            self.graph: dict[str, Any] = facts["graph"]
        except KeyError as error:
            raise Damaged(f"{store.path}: the manifest does not say {error}") from error
        numbers = (self.nodes, self.samples, self.length, self.seed)
        if not all(type(n) is int and n >= 0 for n in numbers) or type(self.measure) is not str:
            raise Damaged(f"{store.path}: the manifest's facts are not of their kind")

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> StoredIndex:
        """Open the directory ``path``; raises a :class:`~cocite.errors.StoreError`."""
        return cls(Store.open(os.fspath(path), "index"))

    @cached_property
    def names(self) -> Names:
        """The names of the nodes, from the index's own copy."""
        return open_names(self.store)

    @cached_property
    def digest(self) -> str:
        """A checksum of samples and names: the same wherever the shards are cut."""
        return self.store.manifest.digest(MEMBERS, DIGESTS, NAME_FILES)

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """All shards, in order of their samples."""
        members = self.store.array(MEMBERS)
        files = sorted(name for name in self.store.manifest.files if name.startswith(_SHARD))
        firsts = [int(name.removeprefix(_SHARD)) for name in files]
        if firsts[:1] != [0] or members.size != self.samples:
            raise Damaged(f"{self.store.path}: its shards do not hold {self.samples} samples")
        shards = []
        for name, first, end in zip(files, firsts, [*firsts[1:], self.samples], strict=True):
            words = self.store.array(name)
            counts = members[first:end].tolist()
            if sum(blob_words(self.nodes, count) for count in counts) != words.size:
                raise Damaged(f"{self.store.path / name} does not hold samples {first} to {end}")
            shards.append(Shard(first, words, place_blobs(self.nodes, counts)))
        return tuple(shards)
