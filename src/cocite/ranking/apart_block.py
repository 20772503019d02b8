"""What one block does in PageRank over blocks that live apart (``apart.py``).

It reads values of its own nodes and of those of others that link into it, and numbers them by
ascending id: below it, its own, above it. By these numbers its links are arranged as all links are
in memory (``kernels/rank.py``: those from above, then those from below, each ascending), so that a
row's sum has the same terms in the same order.

Cost: a pass over the links of the block a sweep. Memory: 8 bytes a link and 60 a node, and 12 for
each node of another block that it reads, or that reads it.
Source: Haveliwala, *Efficient computation of PageRank*, 3.2.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.graph.in_blocks import GraphBlock
from cocite.ranking.lumping import NO_WEIGHTS
from cocite.ranking.vectors import Vector

__all__ = ["RankBlock"]

_Rows = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.float32] | None]
_ZERO = np.uint64(0)


class RankBlock:
    """The links of one block, and the values that it reads."""

    def __init__(self, folder: str, digest: str, block: int, weighted: bool) -> None:
        """Open and check the block."""
        held = GraphBlock(folder, block, digest)
        self._first, self._last = held.first, held.last
        self._offsets, self._sources = held.offsets, held.sources
        weights = held.weights if weighted else None
        self._weights: NDArray[np.float32] = NO_WEIGHTS if weights is None else weights
        self._weighted = weights is not None
        # All nodes that are read, ascending: those below, the block's own, those above.
        border = np.unique(self._sources)
        below = border[border < self._first]
        above = border[border >= self._last]
        own = np.arange(self._first, self._last, dtype=np.uint32)
        self._read = np.concatenate([below, own, above])
        self._here = slice(below.size, below.size + own.size)

    # -- what links are counted for -----------------------------------------------------

    def border(self) -> NDArray[np.uint32]:
        """The nodes whose values it reads, ascending, its own among them."""
        return self._read

    def count(self, taken: NDArray[np.uint8], values: NDArray[Any], weights: bool) -> NDArray[Any]:
        """What ``rank.count_links``, or ``add_weights``, makes of the ``values`` of the nodes that
        it reads, by its rows that are ``taken``.
        """
        from cocite.kernels import rank

        found, taken = values.copy(), taken.copy()
        counted = rank.add_weights if weights else rank.count_links
        links = self._offsets, self._places(), self._weights
        counted(links, _ZERO, self._offsets[-1], taken, _ZERO, found)
        return found

    def _places(self) -> NDArray[np.uint32]:
        """The sources of all links, by their places among the nodes that are read."""
        return _sealed(np.searchsorted(self._read, self._sources).astype(np.uint32))

    # -- the core, arranged ----------------------------------------------------------------

    def arrange(self, degrees: NDArray[np.uint32]) -> tuple[NDArray[Any], int]:
        """Write the links of its core in the order of their sums, by the ``degrees`` of the nodes
        that it reads: the weights of the rows' links to themselves, and how many links come from
        nodes outside of the core.
        """
        from cocite.kernels import rank

        inside = (degrees != 0) & (degrees != rank.GONE)
        number = np.where(inside, np.cumsum(inside, dtype=np.uint32) - 1, rank.NO_NODE)
        number = number.astype(np.uint32)
        self._core_read: NDArray[np.uint32] = self._read[inside]
        begin = int(np.count_nonzero(inside[: self._here.start]))
        rows = int(np.count_nonzero(inside[self._here]))
        self._rows = slice(begin, begin + rows)
        self._own = number[self._here].copy()
        self._degrees = _sealed(degrees[self._here].copy())
        # Offsets of all nodes that are read, as if those of other blocks had no links.
        offsets = np.zeros(self._read.size + 1, np.uint64)
        offsets[self._here.start : self._here.stop + 1] = self._offsets
        offsets[self._here.stop + 1 :] = self._offsets[-1]
        links, edges = (_sealed(offsets), self._places(), self._weights), int(self._offsets[-1])
        loops = np.zeros(self._core_read.size, np.float32 if self._weighted else np.uint8)
        core = self._room(self._core_read.size, edges)
        lost = int(rank.compact(links, number, core, loops))
        self._loops = loops[self._rows].copy()
        self._upper, self._lower = self._parted(core)
        tails = np.full(self._read.size, rank.GONE, np.uint32)
        tails[self._here] = self._degrees
        found = self._room(int(np.count_nonzero(self._degrees == 0)), edges)
        lost += int(rank.compact_tails(links, tails, number, found))
        self._tails = found[0], found[1], found[2] if self._weighted else None
        return self._loops, lost

    def _room(self, rows: int, links: int) -> tuple[NDArray[Any], ...]:
        begins = np.empty(rows + 1, np.uint64)
        begins[0] = 0
        return begins, np.empty(links, np.uint32), np.empty(links * self._weighted, np.float32)

    def _parted(self, core: tuple[NDArray[Any], ...]) -> tuple[_Rows, _Rows]:
        """The rows' links from above, and those from below, each in order."""
        begins, links, weights = core
        begins = begins[self._rows.start : self._rows.stop + 1]
        size = int(begins[-1])
        row = np.repeat(np.arange(begins.size - 1), np.diff(begins).astype(np.int64))
        above = links[:size] > row + self._rows.start
        found = []
        for taken in (above, ~above):
            ends = np.zeros(begins.size, np.uint64)
            np.cumsum(np.bincount(row[taken], minlength=begins.size - 1), out=ends[1:])
            kept = weights[:size][taken] if self._weighted else None
            found.append((ends, links[:size][taken], kept))
        return found[0], found[1]

    # -- whom it sends values to ------------------------------------------------------------

    def wants(self, cuts: NDArray[np.uint32]) -> tuple[object, ...]:
        """How many nodes of other blocks' cores it reads; which, of each block, of its own none."""
        ends = np.searchsorted(self._core_read, cuts)
        found = [self._core_read[a:b] for a, b in pairwise(ends.tolist())]
        self._slots = [slice(a, b) for a, b in pairwise(ends.tolist())]
        own = int(np.searchsorted(cuts, self._first, side="right")) - 1
        found[own] = found[own][:0]
        return sum(nodes.size for nodes in found), *found

    def serves(self, *wanted: NDArray[np.uint32]) -> None:
        """Hear which of its nodes each block reads."""
        own = self._core_read[self._rows]
        self._served = [np.searchsorted(own, nodes).astype(np.uint32) for nodes in wanted]

    # -- sweeps -----------------------------------------------------------------------------

    def core(self) -> NDArray[np.uint32]:
        """The nodes of the core that it reads."""
        return self._core_read

    def begin(self, z: NDArray[Any], facts: Vector | None) -> None:
        """Take the values of :meth:`core`, and the facts of its rows if there are to be sweeps."""
        self._z, self._facts = z.copy(), None if facts is None else facts.copy()

    def _hear(self, values: tuple[NDArray[Any] | None, ...]) -> None:
        for slot, its in zip(self._slots, values, strict=True):
            if its is not None:
                self._z[slot] = its

    def settle(self, factor: float, *values: NDArray[Any] | None) -> None:
        """End a sweep: hear of other blocks' values; then all are multiplied by the ``factor``."""
        self._hear(values)
        if factor != 1.0:
            np.multiply(self._z, np.float64(factor), out=self._z, casting="same_kind")

    def above(self) -> None:
        """Begin a sweep: what rows get from above, by the values of the last one."""
        self._so_far = self._gathered(self._upper, np.zeros(self._loops.size))

    def sweep(
        self, first: int, damping: float, sums: Vector, *values: NDArray[Any] | None
    ) -> tuple[object, ...]:
        """The rest of a sweep, when blocks below are done: its sums float64[4], and its values for
        each block. ``first`` is the number of its first row in the whole core.
        """
        from cocite.kernels import rank

        self._hear(values)
        at = _ZERO, np.uint64(self._rows.start), np.uint64(first)
        found = sums.copy()
        rank.sweep(self._lower, at, self._so_far, self._z, self._facts, damping, found)
        own = self._z[self._rows]
        sent = [own[rows] if rows.size else None for rows in self._served]
        return found, *sent

    def _gathered(self, links: _Rows, sums: Vector) -> Vector:
        from cocite.kernels import rank

        rank.collect(links, _ZERO, links[0][-1], self._z, sums)
        return sums

    # -- what came of it ---------------------------------------------------------------------

    def own(self) -> NDArray[Any]:
        """The values of its rows."""
        return self._z[self._rows].copy()

    def gather(self, all_rows: bool) -> Vector:
        """float64[its nodes]: what they get by links, all of them or the dangling ones."""
        from cocite.kernels import rank

        sums = np.empty(self._degrees.size)
        rank.gather_tails(self._tails, self._degrees, self._z, sums)
        if all_rows:
            got = self._gathered(
                self._lower, self._gathered(self._upper, np.zeros(self._loops.size))
            )
            got += self._loops.astype(np.float64) * self._z[self._rows].astype(np.float64)
            sums[(self._degrees != 0) & (self._degrees != rank.GONE)] = got
        return sums


def _sealed(array: NDArray[Any]) -> NDArray[Any]:
    """No longer to be written to, as stored arrays are: to Numba these are other types."""
    array.flags.writeable = False
    return array
