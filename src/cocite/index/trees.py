"""The trees layout: one sample as one blob of 32-bit words.

    position[nodes]          where each node stands, 2**32 - 1 if it met nobody
    member[p]                the nodes in dendrogram order, tree behind tree
    label[ceil(p / 8)]       the labels, eight half-bytes to a word, low first
    padding                  zeros, to a multiple of 16 words (a cache line)

p is the number of nodes that met another one. From ``nodes`` and p everything follows, so a
shard, which is nothing but its samples' blobs one behind the other, needs no table of its own:
shards of any size hold the same bytes in the same order.

Size: 8.5 bytes a node and sample at most. Memory to make one: 26.5 bytes a node, and 8.5 for each
that waits to be written; ``index/external_trees.py`` makes the same in less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.engine import Walker, walker_bytes

__all__ = ["Blob", "TreeMaker", "blob_words", "maker_bytes", "place_blobs"]

_LINE = 16


@dataclass(frozen=True)
class Blob:
    """One sample: its parts in order, how many members it has, live tokens a step, XXH3-64.

    ``parts`` can be gone over again and again, and may come from a file piece by piece.
    """

    parts: Iterable[NDArray[np.uint32]]
    members: int
    live: tuple[int, ...]
    digest: int

    @property
    def nbytes(self) -> int:
        """Its size on disk."""
        return sum(part.nbytes for part in self.parts)


def blob_words(nodes: int, members: int) -> int:
    """32-bit words of a blob."""
    words = nodes + members + -(-members // 8)
    return -(-words // _LINE) * _LINE


def place_blobs(nodes: int, members: Sequence[int]) -> NDArray[np.uint64]:
    """uint64[samples, 4] for the kernels: where position, member and label begin, and p."""
    blobs = np.empty((len(members), 4), np.uint64)
    base = 0
    for sample, count in enumerate(members):
        blobs[sample] = base, base + nodes, base + nodes + count, count
        base += blob_words(nodes, count)
    return blobs


class TreeMaker:
    """Makes blobs; owns a walker and scratch memory, so one for each thread.

    With ``keep`` a blob lives on while the next one is made; without, it lies in the scratch.
    """

    def __init__(self, walker: Walker, nodes: int, keep: bool) -> None:
        self._walker = walker
        self._keep = keep
        self._joined = np.empty(nodes, np.uint8)

    def __call__(self, sample: int) -> Blob:
        """The blob of sample number ``sample``."""
        from cocite.kernels import trees

        found = self._walker(sample)
        nodes = self._joined.size
        position, member = found.spare
        members = int(
            trees.lay_out(found.parent, found.label, found.extent, position, member, self._joined)
        )
        tail = np.zeros(blob_words(nodes, members) - nodes - members, np.uint32)
        trees.pack_labels(self._joined[:members], tail.view(np.uint8))
        parts: tuple[NDArray[np.uint32], ...] = (position, member[:members], tail)
        if self._keep:
            parts = tuple(part.copy() for part in parts)
        digest = xxhash.xxh3_64()
        for part in parts:
            digest.update(part.view(np.uint8).data)
        return Blob(parts, members, found.live, digest.intdigest())


def maker_bytes(nodes: int, keep: bool) -> int:
    """The memory that one :class:`TreeMaker` takes, with its blob, and one that waits if kept."""
    blob = 4 * blob_words(nodes, nodes)
    return walker_bytes(nodes) + nodes + (2 * blob if keep else blob - 8 * nodes)
