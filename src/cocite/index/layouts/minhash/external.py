"""Min-hashes laid out in files, to the byte those that are laid out in memory.

Groups: of each ring, rows (winner, node) are grouped by winner, and rows (node, begin) wait by node
until all rings are done. Planes are made for some blocks of nodes at a time.

Memory: 256 bytes for each of ``rows`` rows under way. Scratch: 12 bytes a node, 12 a node and ring,
and the blob.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.constants import NOWHERE
from cocite.engine.row_groups import RowGroups
from cocite.index.layouts.batch_maker import Blob, FileWords
from cocite.index.layouts.contract import PartPlan
from cocite.index.layouts.minhash.format import BLOCK, check_words, minhash_words, ring_planes
from cocite.measures import LENGTH
from cocite.measures.xjaccard import BITS
from cocite.storage import evict
from cocite.storage.spool import ScratchFile

Nodes = NDArray[np.uint32]


class ExternalLayer:
    """Lays a sample out in a scratch file; a blob lasts until the next one is made."""

    def __init__(self, part: PartPlan, nodes: int, rows: int, folder: Path) -> None:
        """``nodes`` is the number of nodes of the graph."""
        self._part, self._stored = part, part.stored_nodes(nodes)
        self._length = part.settings[LENGTH]
        self._requested = None if part.wanted is None else part.wanted.ids()
        self._blob = ScratchFile(folder)
        self._rows = max(1, rows // BLOCK) * BLOCK
        self._groups, self._cells = RowGroups(nodes, rows), RowGroups(self._stored, rows)
        self._winning = self._groups.spool(folder)
        self._beginning = self._cells.spool(folder)

    def __call__(self, sample: int, rings: Sequence[Nodes]) -> Blob:
        """Return the blob of a sample, from the winners of its rings, uint32[nodes] each."""
        if self._part.settings[BITS]:
            at = 0
            for low in range(0, self._stored, self._rows):
                some = [self._winners(ring, low, self._rows) for ring in rings]
                planes = ring_planes(self._part, sample, some)
                self._blob.write(at, planes)
                at += planes.nbytes
                evict(*rings)
            return Blob.of(FileWords(self._blob, at // 4), self._stored)
        at = 0
        self._beginning.clear()
        for ring, winners in enumerate(rings):
            self._winning.clear()
            for low in range(0, self._stored, self._groups.rows):
                mine = self._winners(winners, low, self._groups.rows)
                nodes = np.arange(low, low + mine.size, dtype=np.uint32)
                self._groups.add(self._winning, mine, nodes)
                evict(winners)
            at = self._write_groups(sample, ring, at)
        self._write_cells()
        used, end = self._stored * self._length + at, minhash_words(self._stored, self._length, at)
        self._blob.write(4 * used, np.zeros(end - used, np.uint32))
        return Blob.of(FileWords(self._blob, end), at)

    def _winners(self, winners: Nodes, low: int, count: int) -> Nodes:
        """Return the winners of some of the nodes that are stored."""
        if self._requested is None:
            return winners[low : low + count]
        return winners[self._requested[low : low + count]]

    def _write_groups(self, sample: int, ring: int, at: int) -> int:
        """Write the groups of a ring from word ``at`` of all groups on; return their end."""
        for low, counts, pieces in self._groups.groups(self._winning):
            sizes = np.where(counts > 1, counts + 2, 0)
            ends, begins = np.cumsum(counts), at + np.cumsum(sizes) - sizes
            at += int(sizes.sum())
            check_words(sample, at)
            done = 0
            for piece in pieces:
                index = np.arange(done, done + piece.size)
                done += piece.size
                key = np.searchsorted(ends, index, side="right")
                shared = counts[key] > 1
                nodes, key, index = piece[shared], key[shared], index[shared]
                if nodes.size:
                    rank = index - ends[key] + counts[key]
                    self._write_nodes(low, nodes, key, rank, begins, counts)
                    self._cells.add(self._beginning, nodes, begins[key], ring)
        return at

    def _write_nodes(
        self,
        low: int,
        nodes: Nodes,
        key: NDArray[np.int64],
        rank: NDArray[np.int64],
        begins: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> None:
        """Write nodes into their groups, before the first of a group its winner and its size."""
        place = begins[key] + 2 + rank
        first = rank == 0
        begin = int(place[0]) - 2 * int(first[0])
        words = np.empty(int(place[-1]) + 1 - begin, np.uint32)
        words[place - begin] = nodes
        heads = place[first] - begin - 2
        words[heads] = self._named((low + key[first]).astype(np.uint32))
        words[heads + 1] = counts[key[first]]
        self._blob.write(4 * (self._stored * self._length + begin), words)

    def _named(self, winners: Nodes) -> Nodes:
        """Return winners by their number among the nodes that are stored, NOWHERE for others."""
        if self._requested is None:
            return winners
        places = np.searchsorted(self._requested, winners)
        near = self._requested[np.minimum(places, self._stored - 1)]
        return np.where(near == winners, places, NOWHERE).astype(np.uint32)

    def _write_cells(self) -> None:
        """Write where the group of each node begins, node after node, ring after ring."""
        for low, high, pieces in self._cells.ranges(self._beginning):
            cells = np.full((high - low, self._length), NOWHERE, np.uint32)
            for ring, rows in pieces:
                cells[rows[:, 0] - np.uint32(low), ring] = rows[:, 1]
            self._blob.write(4 * low * self._length, cells)
