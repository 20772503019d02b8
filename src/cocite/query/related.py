"""The nodes most related to one: a walk outwards from its place in each sample's tree.

Every other member of the tree has met the node; the largest label on the way to it is the step at
which it did. Sums are kept in an array of all nodes, 20 bytes each, of which only the
pages that a query touches ever exist: related nodes have neighbouring ids, so an array
beats a hash table by ten times. The scratch belongs to a thread, is used again, and is given back
to the system when queries have touched much of it.

Cost: about 3 ns a member of the trees read, and their number is what matters.
"""

from __future__ import annotations

import mmap
import threading

import numpy as np
from numpy.typing import NDArray

from cocite.index import StoredIndex

__all__ = ["find_related"]

_MOST_TOUCHED = 1 << 22
"""Hits gathered before the scratch is given back: at worst 16 GB of pages, mostly far less."""


class _Scratch:
    """Sums of one thread: all zero between two queries."""

    def __init__(self, nodes: int) -> None:
        # Mapped and not allocated: no zeroing, no huge pages for a few scattered cells.
        self.nodes = nodes
        self.touched = 0
        self.sums = np.frombuffer(mmap.mmap(-1, 16 * nodes), np.uint64).reshape(-1, 2)
        self.used = np.frombuffer(mmap.mmap(-1, 4 * (nodes + 1)), np.uint32)


_local = threading.local()


def _scratch(nodes: int) -> _Scratch:
    found: _Scratch | None = getattr(_local, "scratch", None)
    if found is None or found.nodes < nodes or found.touched > _MOST_TOUCHED:
        found = _Scratch(nodes)
    _local.scratch = None  # put back when it is all zero again, not if interrupted
    return found


def find_related(
    index: StoredIndex, node: int, k: int, weights: NDArray[np.uint64], floor: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """The k nodes most related to ``node``: ids uint32[h], sums uint64[h, 2], h <= k.

    ``floor`` is the least sum that counts. Sorted by score descending, then id ascending.
    """
    from cocite.kernels import lookup

    scratch = _scratch(index.nodes)
    sums, used, me, count = scratch.sums, scratch.used, np.uint32(node), 0
    for shard in index.shards:
        count = int(lookup.gather(shard.words, shard.blobs, me, weights, sums, used, count))
    room = min(k, count)
    nodes, best = np.empty(room, np.uint32), np.empty((room, 2), np.uint64)
    found = int(lookup.top(sums, used, count, np.uint64(floor), nodes, best))
    scratch.touched += count
    _local.scratch = scratch
    return nodes[:found], best[:found]
