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
from cocite.index.stored import damaged
from cocite.query.scores import grains_of

__all__ = ["find_related"]

_MOST_MEMORY = 1 << 28
"""Bytes of scratch that a thread may keep between two queries."""
_PAGE = 4096


class _Scratch:
    """Sums of one thread: all zero between two queries."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.touched = 0
        self.sums = _mapped(16 * nodes).view(np.uint64).reshape(-1, 2)
        self.used = _mapped(4 * (nodes + 1)).view(np.uint32)

    @property
    def worn(self) -> bool:
        """Whether its pages may have become too many to keep."""
        return min(20 * self.nodes, _PAGE * self.touched) > _MOST_MEMORY


def _mapped(size: int) -> NDArray[np.uint8]:
    """Zeros that exist page by page when touched: no huge pages for a few scattered cells.

    Private to this process: a forked child has its own.
    """
    area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        area.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(area, np.uint8)


_local = threading.local()


def _scratch(nodes: int) -> _Scratch:
    found: _Scratch | None = getattr(_local, "scratch", None)
    if found is None or found.nodes < nodes or found.worn:
        found = _Scratch(nodes)
    _local.scratch = None  # put back when it is all zero again, not if interrupted
    return found


def find_related(
    index: StoredIndex, node: int, k: int, weights: NDArray[np.uint64], floor: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """The k nodes most related to ``node``: ids uint32[h], and uint64[h, 2], h <= k.

    The latter are scores in grains (``scores.py``), at least ``floor``, and sums of squares. Sorted
    by score descending, then id ascending.
    """
    from cocite.kernels import lookup

    scratch = _scratch(index.nodes)
    sums, used, me, count = scratch.sums, scratch.used, np.uint32(node), 0
    for shard in index.shards:
        count = int(lookup.gather(shard.words, shard.blobs, me, weights, sums, used, count))
        if count == lookup.DAMAGED:
            raise damaged(index, shard.first)
    room = min(k, count)
    nodes, best = np.empty(room, np.uint32), np.empty((room, 2), np.uint64)
    grain = grains_of(index.samples)
    found = int(lookup.top(sums, used, count, grain, np.uint64(floor), nodes, best))
    scratch.touched += count
    _local.scratch = scratch
    return nodes[:found], best[:found]
