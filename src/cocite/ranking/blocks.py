"""The links of the core on disk, arranged for sweeps over one block of destinations at a time.

    inner    between rows of one block    by row: those from rows above, those from rows below
    outer    from rows of other blocks    by source, as words (``kernels/scan.py``)

and those to the block's dangling nodes, its *tails*, likewise. All are streams in scratch, written
in one pass over the stored links. Links by source are sorted in *strips*, as many as fit in memory;
strips are never merged: whoever reads them goes through all those of a block side by side. A row's
terms still come in order of source, as a strip holds links of consecutive rows, and those of a row
that is cut ascend from strip to strip.

Blocks are cut so that their nodes and rows, 8 bytes each, take about the same.

Cost: 60 to 100 ns an outer link, 5 an inner one. Disk: 4 bytes an inner link, 8 an outer one at
most (8 and 16 with weights), 16 a row and 8 a node.
Source: Haveliwala, *Efficient computation of PageRank*, 3.2.

The core in memory: its links by row, in the order in which a row's sum is made.

The core on disk, in blocks of destinations: one is in memory, all others pass by.

A block is a range of nodes. In memory are its rows' sums, as far as they are made, and their own
contributions z; all else is read in order. What a row gets from rows of its own block is read by
row, as in memory; what comes from elsewhere by source, so that z is read in order too, a window at
a time (``ranking/blocks.py`` makes both). A row's sum has the order that it has in memory
(``kernels/rank_blocks.py``), so the ranks are the same to the bit, whatever the blocks.

Cost: each block reads all of z once a sweep.
Source: Haveliwala, *Efficient computation of PageRank*, 3.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.ranking.core import Lumped
from cocite.ranking.vectors import Vector, pieces, scale, stretches
from cocite.storage import Scratch, Stream, evict

_ZERO = np.uint64(0)


class Resident:
    """Sweeps over the links of one graph in memory; ``blocked.Blocked`` does the same on disk.

    ``core`` is (rows, links, weights), as ``kernels/rank.py`` has them; ``loops`` the weight of the
    link that each row of the core has to itself.
    """

    blocks = 1
    sent = None

    def __init__(self, lumped: Lumped) -> None:
        from cocite.kernels import rank

        self._lumped = lumped
        edges, weighted = lumped.graph.edges, lumped.weighted
        links = lumped.links_of(0, lumped.nodes)
        self.loops: NDArray[Any] = np.empty(lumped.core, np.float32 if weighted else np.uint8)
        core = _room(lumped.core, edges, weighted)
        lost = rank.compact(links, lumped.number, core, self.loops)
        tails = _room(lumped.nodes - lumped.core, edges - int(core[0][-1]), weighted)
        lost += rank.compact_tails(links, lumped.degrees, lumped.number, tails)
        lumped.check_sources(int(lost))
        self.core, self._tails = (
            (rows, nodes, weights if weighted else None) for rows, nodes, weights in (core, tails)
        )
        self._so_far = np.zeros(lumped.core)

    def sweep(self, z: NDArray[Any], facts: Vector, damping: float, sums: Vector) -> None:
        """Gauss-Seidel over all rows, ``z`` in place; what is added to ``sums``: ``rank.sweep``."""
        from cocite.kernels import rank

        rank.sweep(self.core, (_ZERO, _ZERO, _ZERO), self._so_far, z, facts, damping, sums)

    def scale(self, z: NDArray[Any], factor: float) -> None:
        """Multiply all of ``z`` by ``factor``."""
        scale(z, factor)

    def bring(self, z: NDArray[Any]) -> None:
        """Have ``z`` here as the last sweep left it, which it is."""

    def replaced(self, z: NDArray[Any]) -> None:
        """Hear that ``z`` is another one, which the next sweep begins with anyway."""

    def gathered(self, z: NDArray[Any], all_rows: bool) -> Iterator[tuple[slice, Vector]]:
        """(nodes, what their in-neighbors contribute by ``z``): of all, or of dangling ones."""
        from cocite.kernels import rank

        lumped = self._lumped
        sums = np.empty(lumped.nodes)
        rank.gather_tails(self._tails, lumped.degrees, z, sums)
        if all_rows:
            rank.gather_rows(self.core, lumped.number, self.loops, z, sums)
        yield slice(0, lumped.nodes), sums


def _room(rows: int, links: int, weighted: bool) -> tuple[NDArray[Any], ...]:
    """For so many links, at most: what is not written takes no memory."""
    begins = np.empty(rows + 1, np.uint64)
    begins[0] = 0
    return begins, np.empty(links, np.uint32), np.empty(links * weighted, np.float32)


# -- arranged ----------------------------------------------------------------------------


Strip = tuple[int, int, int]


@dataclass(frozen=True)
class RankBlock:
    """``nodes`` and, of the core, ``rows``; the strips of outer links, each (begin, where sources
    above the block begin, end) in the words, and those of links to its tails.
    """

    nodes: slice
    rows: slice
    strips: tuple[Strip, ...]
    tails: tuple[Strip, ...]


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


@dataclass(frozen=True)
class Outer:
    """``words`` uint32, and for each the weight of its link, if there are any."""

    words: NDArray[np.uint32]
    weights: NDArray[np.float32]

    def push(self, begin: int, end: int, z: NDArray[Any], stop: int, into: Vector) -> int:
        """Add z of the sources below ``stop`` to their targets; returns how far it came."""
        from cocite.kernels import rank_blocks, scan

        here, last, words = np.uint64(begin), np.uint64(stop), self.words[:end]
        if self.weights.size:
            return int(rank_blocks.push_weighted(words, self.weights, here, z, last, into))
        return int(scan.push(words, here, z, last, scan.SUM, (0.0,), into))

    def evict(self, begin: int, end: int) -> None:
        """Give back some words."""
        evict(self.words[begin:end], self.weights[begin:end])


@dataclass(frozen=True)
class Arranged:
    """All links of the core; ``loops`` is the weight of each row's link to itself."""

    blocks: tuple[RankBlock, ...]
    upper: Inner
    lower: Inner
    tails: Inner
    outer: Outer
    outer_tails: Outer
    loops: NDArray[Any]


def arrange(lumped: Lumped) -> Arranged:
    """Arrange the links of ``lumped``, in as many blocks as its room has.

    Raises :class:`~cocite.errors.Damaged`, :class:`~cocite.errors.ResourceError`.
    """
    dealer = _Dealer(lumped)
    blocks = tuple(dealer.deal(nodes, rows) for nodes, rows in _cut(lumped))
    lumped.check_sources(dealer.lost)
    above, below, tails = (draft.finish() for draft in dealer.inner)
    outer, outer_tails = (draft.finish() for draft in dealer.outer)
    return Arranged(blocks, above, below, tails, outer, outer_tails, dealer.loops)


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

    def append(self, count: int, split: int) -> tuple[tuple[int, int, int], int]:
        """Sort and write the first ``count`` keys: (begin, where the sources from row ``split`` on
        begin, end), and how many of them have no number.
        """
        keys, weights = self.keys[:count], self.weights[:count]
        if weights.size:
            order = np.argsort(keys)
            keys, weights = keys[order], weights[order]
        else:
            keys.sort()
        lost = self._rename(keys)
        middle = int(np.searchsorted(keys, np.uint64(split << 32))) if not lost else 0
        begin = self._words.size
        self._write(keys[:middle], weights[:middle])
        between = self._words.size
        self._write(keys[middle:], weights[middle:])
        return (begin, between, self._words.size), lost

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
        from cocite.kernels import rank_blocks, scan

        words = np.empty(2 * keys.size, np.uint32)
        count = int(scan.arrange(keys, words))
        self._words.append(words[:count])
        if weights.size:
            beside = np.empty(count, np.float32)
            rank_blocks.arrange_weights(keys, weights, beside)
            self._weights.append(beside)

    def finish(self) -> Outer:
        return Outer(self._words.finish(), self._weights.finish())


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

    def deal(self, nodes: slice, rows: slice) -> RankBlock:
        """Deal the links to one block."""
        from cocite.kernels import rank_blocks as kernels

        lumped = self._lumped
        codes, counts = self._encoded(nodes, rows), np.zeros(kernels.COUNTS, np.uint64)
        above, below, tails = self.inner
        kinds = ((kernels.OUTER, self.outer[0]), (kernels.OUTER_TAILS, self.outer[1]))
        strips: tuple[list[Strip], list[Strip]] = ([], [])
        for first, last, begin, end in lumped.stretches(nodes.start, nodes.stop, _stretch(lumped)):
            for (kind, full), mine in zip(kinds, strips, strict=True):
                if int(counts[kind]) + end - begin > full.keys.size:
                    mine.append(self._flush(full, counts, kind, rows))
            counts[:3], counts[-3:] = 0, [draft.written for draft in self.inner]
            links = lumped.links_of(first, last)
            at = tuple(np.uint64(n) for n in (begin, end, first, nodes.start))
            to_rows, to_tails = ((draft.keys, draft.weights) for draft in self.outer)
            inner = above.part(rows), below.part(rows)
            kernels.deal_rows(links, at, codes, counts, *inner, to_rows, self.loops[rows])
            kernels.deal_tails(links, at, codes, counts, tails.part(nodes), to_tails)
            for draft, count in zip(self.inner, counts[:3].tolist(), strict=True):
                draft.append(count)
                evict(draft.rows)
            lumped.rest_links(first, last, begin, end)
            evict(self.loops)
        for (kind, rest), mine in zip(kinds, strips, strict=True):
            mine.append(self._flush(rest, counts, kind, rows))
        self.lost += int(counts[kernels.LOST])
        whole, tail = (tuple(strip for strip in mine if strip[0] < strip[2]) for mine in strips)
        return RankBlock(nodes, rows, whole, tail)

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
    ) -> Strip:
        strip, lost = draft.append(int(counts[kind]), rows.start)
        counts[kind] = 0
        self.lost += lost
        return strip


def _streams(scratch: Scratch) -> tuple[Stream, Stream]:
    """For numbers of nodes, and for weights."""
    assert scratch.directory is not None
    return Stream(scratch.directory, np.uint32), Stream(scratch.directory, np.float32)


def _stretch(lumped: Lumped) -> int:
    """Links that are dealt at a time: at most half a strip, so that strips become long."""
    room = lumped.room
    return max(1, min(room.piece // 8, room.strip(lumped.weighted) // 4, lumped.graph.edges))


# -- blocked -----------------------------------------------------------------------------


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
                lower.evict(first, last, begin, end)
                evict(facts[first:last])
            _write(mine, z, rows)

    def scale(self, z: NDArray[Any], factor: float) -> None:
        """Multiply all of ``z`` by ``factor``."""
        scale(z, factor)

    def bring(self, z: NDArray[Any]) -> None:
        """Have ``z`` here as the last sweep left it, which it is."""

    def replaced(self, z: NDArray[Any]) -> None:
        """Hear that ``z`` is another one, which the next sweep begins with anyway."""

    def gathered(self, z: NDArray[Any], all_rows: bool) -> Iterator[tuple[slice, Vector]]:
        """(nodes of a block, what their in-neighbors contribute by ``z``): all, or dangling ones.

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

    def _gather_rows(
        self, block: RankBlock, z: NDArray[Any], mine: NDArray[Any], sums: Vector
    ) -> None:
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
            evict(number[part])

    def _add_others(
        self, block: RankBlock, z: NDArray[Any], mine: NDArray[Any], so_far: Vector
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
            inner.evict(first, last, begin, end)

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
                outer.evict(begin, at[i])
            evict(z[part])

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
