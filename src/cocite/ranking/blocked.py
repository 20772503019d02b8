"""The core on disk, in blocks of destinations: one is in memory, all others pass by.

A block is a range of nodes. In memory are its rows' sums, as far as they are made, and their own
contributions z; all else is read in order. What a row gets from rows of its own block is read by
row, as in memory; what comes from elsewhere by source, so that z is read in order too, a window at
a time (``arranged.py`` makes both). A row's sum has the order that it has in memory
(``kernels/rank_blocks.py``), so the ranks are the same to the bit, whatever the blocks.

Cost: each block reads all of z once a sweep.
Source: Haveliwala, *Efficient computation of PageRank*, 3.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.ranking.arranged import Block, Inner, Outer, Strip, arrange
from cocite.ranking.lumping import Lumped
from cocite.ranking.vectors import Vector, pieces, scale, stretches
from cocite.store import forget

__all__ = ["Blocked"]


class Blocked:
    """Sweeps over the links of one graph from disk; ``resident.Resident`` does so in memory."""

    sent = None

    def __init__(self, lumped: Lumped) -> None:
        self._lumped = lumped
        self._arranged = arrange(lumped)
        self.loops = self._arranged.loops
        self.blocks = len(self._arranged.blocks)

    def sweep(self, z: NDArray[Any], facts: Vector, damping: float, sums: Vector) -> None:
        """Gauss-Seidel over all rows, ``z`` in place; what is added to ``sums``: ``rank.sweep``."""
        from cocite.kernels import rank

        lower = self._arranged.lower
        for block in self._arranged.blocks:
            rows, mine = block.rows, _copied(z, block.rows)
            so_far = np.zeros(mine.size)
            self._add_others(block, z, mine, so_far)
            for first, last, begin, end in self._stretches(lower, rows):
                whole = last - (int(lower.rows[last]) > end)
                here = first - rows.start
                if whole > first:
                    rank.sweep(
                        lower.of(first, whole),
                        (np.uint64(begin), np.uint64(here), np.uint64(first)),
                        so_far[here : whole - rows.start],
                        mine,
                        facts[first:whole],
                        damping,
                        sums,
                    )
                if whole < last:  # a row's links are cut here
                    its = max(begin, int(lower.rows[whole]))
                    part = so_far[whole - rows.start : last - rows.start]
                    _collect(lower, whole, last, its, end, mine, part)
                lower.forget(first, last, begin, end)
                forget(facts[first:last])
            _write(mine, z, rows)

    def scale(self, z: NDArray[Any], factor: float) -> None:
        """Multiply all of ``z`` by ``factor``."""
        scale(z, factor)

    def bring(self, z: NDArray[Any]) -> None:
        """Have ``z`` here as the last sweep left it, which it is."""

    def replaced(self, z: NDArray[Any]) -> None:
        """Hear that ``z`` is another one, which the next sweep begins with anyway."""

    def gathered(self, z: NDArray[Any], all_rows: bool) -> Iterator[tuple[slice, Vector]]:
        """(nodes of a block, what their in-neighbours contribute by ``z``): all, or dangling ones.

        The array is the same for all blocks of one size.
        """
        for block in self._arranged.blocks:
            sums, mine = np.zeros(block.nodes.stop - block.nodes.start), _copied(z, block.rows)
            if all_rows:
                self._gather_rows(block, z, mine, sums)
            arranged, rows = self._arranged, block.rows
            self._push(arranged.outer_tails, _below(block.tails), (0, rows.start), z, sums)
            self._add_inner(arranged.tails, block.nodes, mine, sums)
            above = rows.stop, self._lumped.core
            self._push(arranged.outer_tails, _above(block.tails), above, z, sums)
            del mine  # or it would be there while the sums are looked at
            yield block.nodes, sums

    def _gather_rows(self, block: Block, z: NDArray[Any], mine: NDArray[Any], sums: Vector) -> None:
        """What the rows of a block get, at the places of their nodes."""
        from cocite.kernels import rank_blocks

        rows, so_far = block.rows, sums[: mine.size]
        self._add_others(block, z, mine, so_far)
        self._add_inner(self._arranged.lower, rows, mine, so_far)
        for part in pieces(rows.start, rows.stop, self.loops):
            here = slice(part.start - rows.start, part.stop - rows.start)
            so_far[here] += self.loops[part].astype(np.float64) * mine[here].astype(np.float64)
        number, nodes = self._lumped.number, block.nodes
        for part in reversed(list(pieces(nodes.start, nodes.stop))):
            place = np.uint64(part.start - nodes.start)
            rank_blocks.spread(number[part], np.uint64(rows.start), place, sums)
            forget(number[part])

    def _add_others(
        self, block: Block, z: NDArray[Any], mine: NDArray[Any], so_far: Vector
    ) -> None:
        """All of a row's sum that comes before the rows of its own block below it."""
        arranged, rows = self._arranged, block.rows
        self._add_inner(arranged.upper, rows, mine, so_far)
        above = rows.stop, self._lumped.core
        self._push(arranged.outer, _above(block.strips), above, z, so_far)
        self._push(arranged.outer, _below(block.strips), (0, rows.start), z, so_far)

    def _add_inner(self, inner: Inner, rows: slice, mine: NDArray[Any], so_far: Vector) -> None:
        for first, last, begin, end in self._stretches(inner, rows):
            part = so_far[first - rows.start : last - rows.start]
            _collect(inner, first, last, begin, end, mine, part)
            inner.forget(first, last, begin, end)

    def _push(
        self,
        outer: Outer,
        strips: Sequence[tuple[int, int]],
        sources: tuple[int, int],
        z: NDArray[Any],
        into: Vector,
    ) -> None:
        """Pass z of the ``sources`` on along strips of words, a window of it at a time."""
        at = [begin for begin, _ in strips]
        window = max(1, self._lumped.room.window // z.itemsize)
        for part in pieces(*sources, size=window) if strips else ():
            for i, (_, end) in enumerate(strips):
                begin, at[i] = at[i], outer.push(at[i], end, z, part.stop, into)
                outer.forget(begin, at[i])
            forget(z[part])

    def _stretches(self, inner: Inner, rows: slice) -> Iterator[tuple[int, int, int, int]]:
        room, each = self._lumped.room, 8 if self._lumped.weighted else 4
        return stretches(
            inner.rows, rows.start, rows.stop, max(1, room.piece // each), max(1, room.piece // 48)
        )


def _above(strips: Sequence[Strip]) -> list[tuple[int, int]]:
    """Where the words of sources above the block are."""
    return [(split, end) for _, split, end in strips]


def _below(strips: Sequence[Strip]) -> list[tuple[int, int]]:
    return [(begin, split) for begin, split, _ in strips]


def _collect(
    inner: Inner, first: int, last: int, begin: int, end: int, mine: NDArray[Any], part: Vector
) -> None:
    from cocite.kernels import rank

    rank.collect(inner.of(first, last), np.uint64(begin), np.uint64(end), mine, part)


def _copied(z: NDArray[Any], rows: slice) -> NDArray[Any]:
    """The block's part of z; z itself, if the block is all there is."""
    if rows.stop - rows.start == z.size:
        return z
    mine = np.empty(rows.stop - rows.start, z.dtype)
    for part in pieces(rows.start, rows.stop, z):
        mine[part.start - rows.start : part.stop - rows.start] = z[part]
    return mine


def _write(mine: NDArray[Any], z: NDArray[Any], rows: slice) -> None:
    for part in pieces(rows.start, rows.stop, z) if mine is not z else ():
        z[part] = mine[part.start - rows.start : part.stop - rows.start]
