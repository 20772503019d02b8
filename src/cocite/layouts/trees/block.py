"""What one destination block does to lay out the trees of a sample, wherever the others are.

    positions    of its nodes, from its records and what the blocks before it have told;
                 tells the blocks behind where their nodes' parents stand, and sends every
                 place (position, node, label) to the range of positions that it is in
    range        the members and labels of one range of positions, from the places sent there

Rows come and go as in the walk (``engine/block.py``), by whoever carries them: spools on disk
(``external.py``), or arrays in memory between processes (``blocks.py``). Every node has one record,
one message and one place at most, so that their order does not matter.

Cost: O(1) a row. Memory: what the walk had, used again.
Source: 001, section 2.1.3 (collecting trees by sorting and merging).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cocite.codes import NOWHERE
from cocite.engine.block import Dealer, Outbox, Rooms

__all__ = ["EIGHT", "BlockTrees", "Pieces", "range_cuts"]

EIGHT = 8
"""Labels to a word: ranges of positions begin at whole words of labels."""


class Pieces(Protocol):
    """Rows that wait in buckets."""

    def pieces(
        self, bucket: int, buffer: NDArray[np.uint32]
    ) -> Iterator[tuple[int, NDArray[np.uint32]]]:
        """A bucket's rows: (tag, rows), the rows lying in ``buffer``."""


def range_cuts(nodes: int, width: int) -> NDArray[np.uint32]:
    """Where ranges of ``width`` positions begin, and the end of the last one."""
    return np.array([*range(0, nodes, width), nodes], np.uint32)


class BlockTrees:
    """Lays out the trees of a block, in the rooms and with the dealer of its walk."""

    def __init__(
        self, rooms: Rooms, cuts: NDArray[np.uint32], dealer: Dealer, ranges: NDArray[np.uint32]
    ) -> None:
        """``cuts`` are those of the blocks, ``ranges`` those of positions (:func:`range_cuts`)."""
        self._rooms, self._cuts, self._dealer = rooms, cuts, dealer
        self._ranges = Dealer(ranges, rooms.dealt)

    def positions(
        self, block: int, cursor: int, records: Pieces, told: Pieces, tell: Outbox
    ) -> tuple[int, NDArray[np.uint32]]:
        """Where the nodes of a block stand, uint32[its nodes], in the rooms; the next tree begins
        at ``cursor``, and, which is returned, behind the block. ``told`` has its messages.
        """
        from cocite.kernels import external

        first, last = self._cuts[block], self._cuts[block + 1]
        size, buffer = int(last) - int(first), self._rooms.merged
        parent, extent = self._rooms.flat[:size], self._rooms.flat[size : 2 * size]
        label, position = self._rooms.label[:size], extent
        parent.fill(NOWHERE)
        extent.fill(1)
        label.fill(0)
        for step, rows in records.pieces(2 * block, buffer):
            external.settle(rows, first, np.uint8(step), parent, extent, label)
        for _, rows in told.pieces(block, buffer):
            external.receive(rows, first, parent, extent, label)
        cursor = int(external.place(first, np.uint32(cursor), parent, extent, position))
        for step, rows in records.pieces(2 * block + 1, buffer):
            external.reply(rows, first, np.uint8(step), position)
            self._dealer.rows(tell, rows)
        return cursor, position

    def places(self, block: int) -> Iterator[NDArray[np.uint32]]:
        """The places of the block whose positions were made last, piece by piece in a room."""
        from cocite.kernels import external

        first, size = self._cuts[block], int(self._cuts[block + 1]) - int(self._cuts[block])
        position, label = self._rooms.flat[size : 2 * size], self._rooms.label[:size]
        node = 0
        while node < size:
            count, node = external.places(first, node, position, label, self._rooms.going)
            yield self._rooms.going[:count]

    def send_places(self, rows: NDArray[np.uint32], out: Outbox) -> None:
        """Send places to their ranges."""
        self._ranges.rows(out, rows)

    def range(
        self, number: int, low: int, size: int, places: Pieces
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """The members and the labels, a byte each, of the range that begins at position ``low``."""
        from cocite.kernels import external

        member, label = self._rooms.at[:size], self._rooms.flat.view(np.uint8)[:size]
        for _, rows in places.pieces(number, self._rooms.merged):
            external.collect(rows, np.uint32(low), member, label)
        return member, label
