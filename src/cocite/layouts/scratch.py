"""Where a query adds up: arrays over all nodes, of which only the pages that it touches ever exist.

Related nodes have neighbouring ids, so an array beats a hash table by ten times. The scratch
belongs to a thread, is all zero between two queries, is used again, and is given back to the system
when queries have touched much of it: to have a page anew takes 2 us, as long as to add to a hundred
sums.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cocite.memory import available, cores

__all__ = ["QueryScratch", "borrowed"]

_MOST_MEMORY, _MOST_SHARE = 1 << 28, 32
"""Bytes of scratch that a thread may keep between two queries; or such a part of the memory that is
free as the first one is made, less where there are many cores, if it is more.
"""
_PAGE = 4096
_NODE = 44


class QueryScratch:
    """Sums of one thread. ``nodes`` is the most nodes of an index that it serves.

    ``totals`` float64[nodes, 2] (grains, variance) with the nodes that have one in
    ``touched[:have]``; ``sums`` uint64[nodes, 2], ``marks`` uint32[nodes] and ``used`` for a part's
    own samples, zero again when the part is done. ``touched`` and ``used`` uint32[2 nodes + 1] have
    room for as many again as there are nodes: a kernel that finds too many, as files are damaged,
    need look only now and then. Packed trees take one row more of the sums, as ``changes``, and all
    marks as ``bytes`` uint8 and ``eights`` uint64. ``below`` is whether scores below 0 are wanted,
    as others are to be added to them.
    """

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self._lent = -1
        self.have = 0
        self.wear = 0
        self.below = False
        self._most = max(_MOST_MEMORY, _free() // max(_MOST_SHARE, 4 * cores()))
        self._longest = 0
        self._pages = np.zeros(8 * nodes // _PAGE + 1, np.bool_)
        self._whole = (
            _mapped(16 * nodes).view(np.float64).reshape(-1, 2),
            _mapped(16 * (nodes + 1)).view(np.uint64).reshape(-1, 2),
            _mapped(8 * (nodes // 2 + 1)).view(np.uint32),
            _mapped(4 * (2 * nodes + 1)).view(np.uint32),
            _mapped(4 * (2 * nodes + 1)).view(np.uint32),
        )
        self.lend(nodes)

    def lend(self, nodes: int) -> None:
        """Make the arrays those of so many nodes: what goes beyond is then no node of theirs."""
        if nodes == self._lent:
            return
        self._lent = nodes
        totals, sums, marks, touched, used = self._whole
        self.totals, self.sums, self.marks = totals[:nodes], sums[:nodes], marks[:nodes]
        self.changes, self.bytes, self.eights = (
            sums[: nodes + 1],
            marks.view(np.uint8),
            marks.view(np.uint64),
        )
        self.touched, self.used = touched[: 2 * nodes + 1], used[: 2 * nodes + 1]

    def list_once(self) -> None:
        """List every node touched once: one whose total was 0 in between is there again."""
        nodes = np.unique(self.touched[: self.have])
        self.have = nodes.size
        self.touched[: nodes.size] = nodes

    def note_sums(self, count: int) -> None:
        """Of an answer that touched the nodes ``used[:count]``, in sums that are uint64[nodes]. Of
        small graphs, all of these may stay.
        """
        if 2 * _PAGE * self._pages.size > self._most:
            self._pages[self.used[:count] // (_PAGE // 8)] = True
            self._longest = max(self._longest, count)

    @property
    def worn(self) -> bool:
        """Whether its pages may have become too many to keep."""
        most = min(_NODE * self.nodes, 2 * _PAGE * self.wear)
        return most + _PAGE * int(np.count_nonzero(self._pages)) + 4 * self._longest > self._most


@cache
def _free() -> int:
    """Bytes, looked up once: it takes longer than a question."""
    return available()


def _mapped(size: int) -> NDArray[np.uint8]:
    """Zeros that exist page by page when touched: no huge pages for a few scattered cells.

    Private to this process: a forked child has its own.
    """
    area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        area.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(area, np.uint8)


_local = threading.local()


@contextmanager
def borrowed(nodes: int) -> Iterator[QueryScratch]:
    """The scratch of this thread, all zero; put back only if the query ends well."""
    found: QueryScratch | None = getattr(_local, "scratch", None)
    if found is None or found.nodes < nodes or found.worn:
        found = QueryScratch(nodes)
    found.lend(nodes)
    found.below = False
    _local.scratch = None
    yield found
    found.wear += found.have
    found.have = 0
    _local.scratch = found
