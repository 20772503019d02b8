"""Sweeps over the links of the core, in memory or on disk in blocks of destinations.

In memory (:class:`Resident`), links are by row, in the order in which a row's sum is made. On disk
(:class:`Blocked`), a block is a range of nodes. In memory are then its rows' sums, as far as they
are made, and their own contributions z; all else is read in order, as streams in scratch:

    inner    between rows of one block    by row: those from rows above, those from rows below
    outer    from rows of other blocks    by source, as words (``engine/arrangement.py``)

and the links to the block's dangling nodes, its *tails*, likewise. Outer links are read by source,
so that z is read in order too, a window at a time. A row's sum has the order that it has in memory
(``kernels/rank_blocks.py``), so the ranks are the same to the bit, whatever the blocks.

Blocks are cut so that their nodes and rows, 8 bytes each, take about the same.

Cost: arranging takes 60 to 100 ns an outer link, 5 an inner one; each block reads all of z once a
sweep. Disk: 4 bytes an inner link, 8 an outer one at most (8 and 16 with weights), 16 a row and 8 a
node.
Source: Haveliwala, *Efficient computation of PageRank*, 3.2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.engine.arrangement import SourceWords, Strip, sorted_links, words_of
from cocite.ranking.core import Lumped
from cocite.ranking.vectors import Vector, pieces, scale, stretches
from cocite.storage import Scratch, Stream, evict

_ZERO = np.uint64(0)


Rows = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.float32] | None]
"""Where the links of each row begin, the rows that they come from, and weights, as kernels take
them.
"""


class CoreLinks(ABC):
    """The links of one core, in ``blocks``, for as many sweeps as needed.

    ``loops`` is the weight of the link that each row has to itself; ``sent`` is how many bytes of
    values blocks have sent each other, where they live apart.
    """

    blocks: int = 1
    loops: NDArray[Any]
    sent: int | None = None

    @abstractmethod
    def sweep(self, z: NDArray[Any], facts: Vector, damping: float, sums: Vector) -> None:
        """Gauss-Seidel over all rows, ``z`` in place; what is added to ``sums``: ``rank.sweep``."""

    @abstractmethod
    def gathered(self, z: NDArray[Any], all_rows: bool) -> Iterator[tuple[slice, Vector]]:
        """(nodes of a block, what their in-neighbors contribute by ``z``): all, or dangling ones.

        The array may be the same for several blocks.
        """

    def scale(self, z: NDArray[Any], factor: float) -> None:
        """Multiply all of ``z`` by ``factor``, wherever it is."""
        scale(z, factor)

    def fetch(self, z: NDArray[Any]) -> None:
        """Write to ``z`` what the last sweep left, if the values are elsewhere."""
        return

    def replaced(self, z: NDArray[Any]) -> None:
        """Note that the caller changed ``z``: the next sweep begins with it."""
        return


def compacted(
    links: tuple[NDArray[Any], ...],
    degrees: NDArray[np.uint32],
    number: NDArray[np.uint32],
    core: int,
) -> tuple[Rows, Rows, NDArray[Any], int]:
    """Write the links of ``core`` rows in the order of their sums.

    ``links`` are (offsets, sources, weights or an empty array) of all nodes. Returns those to rows,
    those to dangling nodes, the weight of each row's link to itself, and how many links come from
    nodes outside of the core.
    """
    from cocite.kernels import rank

    edges, weighted = int(links[0][-1]), links[2].size > 0
    loops: NDArray[Any] = np.empty(core, np.float32 if weighted else np.uint8)
    rows = _room(core, edges, weighted)
    lost = int(rank.compact(links, number, rows, loops))
    tails = _room(number.size - core, edges - int(rows[0][-1]), weighted)
    lost += int(rank.compact_tails(links, degrees, number, tails))
    to_rows, to_tails = ((*each[:2], each[2] if weighted else None) for each in (rows, tails))
    return to_rows, to_tails, loops, lost


def _room(
    rows: int, links: int, weighted: bool
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.float32]]:
    """For so many links, at most: what is not written takes no memory."""
    begins = np.empty(rows + 1, np.uint64)
    begins[0] = 0
    return begins, np.empty(links, np.uint32), np.empty(links * weighted, np.float32)


class Resident(CoreLinks):
    """In memory; ``core`` has the links to its rows."""

    def __init__(self, lumped: Lumped) -> None:
        self._lumped = lumped
        links = lumped.links_of(0, lumped.nodes)
        self.core, self._tails, self.loops, lost = compacted(
            links, lumped.degrees, lumped.number, lumped.core
        )
        lumped.check_sources(lost)
        self._so_far = np.zeros(lumped.core)

    def sweep(self, z: NDArray[Any], facts: Vector, damping: float, sums: Vector) -> None:
        """One pass over the links."""
        from cocite.kernels import rank

        rank.sweep(self.core, (_ZERO, _ZERO, _ZERO), self._so_far, z, facts, damping, sums)

    def gathered(self, z: NDArray[Any], all_rows: bool) -> Iterator[tuple[slice, Vector]]:
        """All nodes at once."""
        from cocite.kernels import rank

        lumped = self._lumped
        sums = np.empty(lumped.nodes)
        rank.gather_tails(self._tails, lumped.degrees, z, sums)
        if all_rows:
            rank.gather_rows(self.core, lumped.number, self.loops, z, sums)
        yield slice(0, lumped.nodes), sums


# -- arranged ----------------------------------------------------------------------------


_Sides = tuple[Strip, Strip]
"""A strip of sources below a block, and one of sources above it."""


@dataclass(frozen=True)
class Outer:
    """The strips of links from rows below a block, and of those from rows above it."""

    below: tuple[Strip, ...]
    above: tuple[Strip, ...]


@dataclass(frozen=True)
class CoreBlock:
    """``nodes`` and, of the core, ``rows``; the outer links to them, and those to its tails."""

    nodes: slice
    rows: slice
    outer: Outer
    outer_tails: Outer


@dataclass(frozen=True)
class Inner:
    """``rows`` uint64[core + 1], or [nodes + 1] for tails; ``links`` uint32, rows numbered within
    the block; ``weights``.
    """

    rows: NDArray[np.uint64]
    links: NDArray[np.uint32]
    weights: NDArray[np.float32]

    def of(self, first: int, last: int) -> tuple[NDArray[Any] | None, ...]:
        """What kernels take for some rows."""
        weights = self.weights if self.weights.size else None
        return self.rows[first : last + 1], self.links, weights

    def evict(self, first: int, last: int, begin: int, end: int) -> None:
        """Give back some rows and links."""
        evict(self.rows[first : last + 1], self.links[begin:end], self.weights[begin:end])


def _cut(lumped: Lumped) -> list[tuple[slice, slice]]:
    """Nodes and rows of each block."""
    from cocite.kernels import rank

    count, size = lumped.room.blocks, lumped.nodes + lumped.core
    goals = [-(-size * i // count) for i in range(1, count)]
    cuts, row = [(0, 0)], 0
    for part in pieces(0, lumped.nodes, lumped.number):
        inside = lumped.number[part] != rank.NO_NODE
        rows = row + np.cumsum(inside)
        sizes = np.arange(part.start + 1, part.stop + 1) + rows
        while goals and goals[0] <= sizes[-1]:
            at = int(np.searchsorted(sizes, goals.pop(0)))
            cut = part.start + at + 1, int(rows[at])
            if cuts[-1][0] < cut[0] < lumped.nodes:
                cuts.append(cut)
        row = int(rows[-1])
    cuts.append((lumped.nodes, row))
    return [(slice(a, b), slice(low, high)) for (a, low), (b, high) in pairwise(cuts)]


class _InnerDraft:
    """What an :class:`Inner` is written to; ``links`` and ``weights`` are of one stretch."""

    def __init__(self, lumped: Lumped, rows: int) -> None:
        self.rows: NDArray[np.uint64] = lumped.scratch.zeros(rows + 1, np.uint64)
        self._links, self._weights = _streams(lumped.scratch)
        most = _stretch(lumped)
        self.links = np.empty(most, np.uint32)
        self.weights = np.empty(most if lumped.weighted else 0, np.float32)

    @property
    def written(self) -> int:
        return self._links.size

    def part(self, rows: slice) -> tuple[NDArray[Any], ...]:
        """What ``deal`` takes for a block."""
        return self.rows[rows.start : rows.stop + 1], self.links, self.weights

    def append(self, count: int) -> None:
        self._links.append(self.links[:count])
        self._weights.append(self.weights[:count])

    def finish(self) -> Inner:
        return Inner(self.rows, self._links.finish(), self._weights.finish())


class _OuterDraft:
    """What an :class:`Outer` is written to; ``keys`` and ``weights`` are of one strip."""

    def __init__(self, lumped: Lumped) -> None:
        self._lumped = lumped
        self._words, self._weights = _streams(lumped.scratch)
        most = lumped.room.strip(lumped.weighted)
        self.keys = np.empty(most, np.uint64)
        self.weights = np.empty(most if lumped.weighted else 0, np.float32)

    def append(self, count: int, split: int) -> tuple[Strip, Strip, int]:
        """Sort and write the first ``count`` keys: the strip of the sources below row ``split``,
        that of the others, and how many of the sources have no number.
        """
        keys, weights = sorted_links(self.keys[:count], self.weights[:count])
        lost = self._rename(keys)
        middle = int(np.searchsorted(keys, np.uint64(split << 32))) if not lost else 0
        begin = self._words.size
        self._write(keys[:middle], weights[:middle])
        between = self._words.size
        self._write(keys[middle:], weights[middle:])
        return (begin, between), (between, self._words.size), lost

    def _rename(self, keys: NDArray[np.uint64]) -> int:
        from cocite.kernels import rank_blocks

        number, lost, at = self._lumped.number, np.zeros(1, np.uint64), np.uint64(0)
        for part in pieces(0, number.size, size=max(1, self._lumped.room.piece // 4)):
            at = np.uint64(rank_blocks.rename(keys, at, np.uint64(part.stop), number, lost))
            evict(number[part])
            if at == keys.size:
                break
        return int(lost[0])

    def _write(self, keys: NDArray[np.uint64], weights: NDArray[np.float32]) -> None:
        words, beside = words_of(keys, weights)
        self._words.append(words)
        self._weights.append(beside)

    def finish(self) -> SourceWords:
        return SourceWords(self._words.finish(), self._weights.finish())


class _Dealer:
    """Deals the links of block after block to ``inner`` (from above, from below, to tails) and
    ``outer`` (to rows, to tails).
    """

    def __init__(self, lumped: Lumped) -> None:
        self._lumped, self.lost = lumped, 0
        self.inner = tuple(_InnerDraft(lumped, n) for n in (lumped.core, lumped.core, lumped.nodes))
        self.outer = _OuterDraft(lumped), _OuterDraft(lumped)
        kind = np.float32 if lumped.weighted else np.uint8
        self.loops: NDArray[Any] = lumped.scratch.zeros(lumped.core, kind)

    def deal(self, nodes: slice, rows: slice) -> CoreBlock:
        """Deal the links to one block."""
        from cocite.kernels import rank_blocks as kernels

        lumped = self._lumped
        codes, counts = self._encoded(nodes, rows), np.zeros(kernels.COUNTS, np.uint64)
        above, below, tails = self.inner
        full: tuple[list[_Sides], list[_Sides]] = ([], [])
        kinds = list(zip((kernels.OUTER, kernels.OUTER_TAILS), self.outer, full, strict=True))
        for first, last, begin, end in lumped.stretches(nodes.start, nodes.stop, _stretch(lumped)):
            for kind, draft, strips in kinds:
                if int(counts[kind]) + end - begin > draft.keys.size:
                    strips.append(self._flush(draft, counts, kind, rows))
            counts[:3], counts[-3:] = 0, [draft.written for draft in self.inner]
            links = lumped.links_of(first, last)
            at = tuple(np.uint64(n) for n in (begin, end, first, nodes.start))
            to_rows, to_tails = ((draft.keys, draft.weights) for draft in self.outer)
            inner = above.part(rows), below.part(rows)
            kernels.deal_rows(links, at, codes, counts, *inner, to_rows, self.loops[rows])
            kernels.deal_tails(links, at, codes, counts, tails.part(nodes), to_tails)
            for rest, count in zip(self.inner, counts[:3].tolist(), strict=True):
                rest.append(count)
                evict(rest.rows)
            lumped.rest_links(first, last, begin, end)
            evict(self.loops)
        for kind, draft, strips in kinds:
            strips.append(self._flush(draft, counts, kind, rows))
        self.lost += int(counts[kernels.LOST])
        return CoreBlock(nodes, rows, *map(_outer, full))

    def _encoded(self, nodes: slice, rows: slice) -> NDArray[np.uint32]:
        """What ``deal`` has for each node of a block."""
        from cocite.kernels import rank
        from cocite.kernels.rank_blocks import LEFT_OUT, TAIL

        lumped = self._lumped
        codes = np.empty(nodes.stop - nodes.start, np.uint32)
        for part in pieces(nodes.start, nodes.stop, lumped.number, lumped.degrees):
            number, degrees = lumped.number[part], lumped.degrees[part]
            piece = codes[part.start - nodes.start : part.stop - nodes.start]
            np.subtract(number, np.uint32(rows.start), out=piece)
            outside = number == rank.NO_NODE
            piece[outside] = np.where(degrees[outside] == 0, TAIL, LEFT_OUT)
        return codes

    def _flush(
        self, draft: _OuterDraft, counts: NDArray[np.uint64], kind: int, rows: slice
    ) -> _Sides:
        below, above, lost = draft.append(int(counts[kind]), rows.start)
        counts[kind] = 0
        self.lost += lost
        return below, above


def _outer(strips: list[_Sides]) -> Outer:
    below, above = (tuple(s for s in side if s[0] < s[1]) for side in zip(*strips, strict=True))
    return Outer(below, above)


def _streams(scratch: Scratch) -> tuple[Stream, Stream]:
    """For numbers of nodes, and for weights."""
    assert scratch.directory is not None
    return Stream(scratch.directory, np.uint32), Stream(scratch.directory, np.float32)


def _stretch(lumped: Lumped) -> int:
    """Links that are dealt at a time: at most half a strip, so that strips become long."""
    room = lumped.room
    return max(1, min(room.piece // 8, room.strip(lumped.weighted) // 4, lumped.graph.edges))


# -- blocked -----------------------------------------------------------------------------


class Blocked(CoreLinks):
    """On disk, all but one block."""

    def __init__(self, lumped: Lumped) -> None:
        self._lumped = lumped
        dealer = _Dealer(lumped)
        self._blocks = [dealer.deal(nodes, rows) for nodes, rows in _cut(lumped)]
        lumped.check_sources(dealer.lost)
        self._upper, self._lower, self._tails = (draft.finish() for draft in dealer.inner)
        self._outer, self._outer_tails = (draft.finish() for draft in dealer.outer)
        self.loops, self.blocks = dealer.loops, len(self._blocks)

    def sweep(self, z: NDArray[Any], facts: Vector, damping: float, sums: Vector) -> None:
        """Block after block."""
        from cocite.kernels import rank

        lower = self._lower
        for block in self._blocks:
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
                lower.evict(first, last, begin, end)
                evict(facts[first:last])
            _write(mine, z, rows)

    def gathered(self, z: NDArray[Any], all_rows: bool) -> Iterator[tuple[slice, Vector]]:
        """Block after block; the array is the same for all blocks of one size."""
        for block in self._blocks:
            sums, mine = np.zeros(block.nodes.stop - block.nodes.start), _copied(z, block.rows)
            if all_rows:
                self._gather_rows(block, z, mine, sums)
            words, strips, rows = self._outer_tails, block.outer_tails, block.rows
            self._push(words, strips.below, slice(0, rows.start), z, sums)
            self._add_inner(self._tails, block.nodes, mine, sums)
            self._push(words, strips.above, slice(rows.stop, z.size), z, sums)
            del mine  # or it would be there while the sums are looked at
            yield block.nodes, sums

    def _gather_rows(
        self, block: CoreBlock, z: NDArray[Any], mine: NDArray[Any], sums: Vector
    ) -> None:
        """What the rows of a block get, at the places of their nodes."""
        from cocite.kernels import rank_blocks

        rows, so_far = block.rows, sums[: mine.size]
        self._add_others(block, z, mine, so_far)
        self._add_inner(self._lower, rows, mine, so_far)
        for part in pieces(rows.start, rows.stop, self.loops):
            here = slice(part.start - rows.start, part.stop - rows.start)
            so_far[here] += self.loops[part].astype(np.float64) * mine[here].astype(np.float64)
        number, nodes = self._lumped.number, block.nodes
        for part in reversed(list(pieces(nodes.start, nodes.stop))):
            place = np.uint64(part.start - nodes.start)
            rank_blocks.spread(number[part], np.uint64(rows.start), place, sums)
            evict(number[part])

    def _add_others(
        self, block: CoreBlock, z: NDArray[Any], mine: NDArray[Any], so_far: Vector
    ) -> None:
        """All of a row's sum that comes before the rows of its own block below it."""
        words, strips, rows = self._outer, block.outer, block.rows
        self._add_inner(self._upper, rows, mine, so_far)
        self._push(words, strips.above, slice(rows.stop, z.size), z, so_far)
        self._push(words, strips.below, slice(0, rows.start), z, so_far)

    def _add_inner(self, inner: Inner, rows: slice, mine: NDArray[Any], so_far: Vector) -> None:
        for first, last, begin, end in self._stretches(inner, rows):
            part = so_far[first - rows.start : last - rows.start]
            _collect(inner, first, last, begin, end, mine, part)
            inner.evict(first, last, begin, end)

    def _push(
        self,
        words: SourceWords,
        strips: Sequence[Strip],
        sources: slice,
        z: NDArray[Any],
        into: Vector,
    ) -> None:
        """Pass z of the ``sources`` on along strips of words, a window of it at a time."""
        words.push(strips, sources, max(1, self._lumped.room.window // z.itemsize), z, into)

    def _stretches(self, inner: Inner, rows: slice) -> Iterator[tuple[int, int, int, int]]:
        room, each = self._lumped.room, 8 if self._lumped.weighted else 4
        return stretches(
            inner.rows, rows.start, rows.stop, max(1, room.piece // each), max(1, room.piece // 48)
        )


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
