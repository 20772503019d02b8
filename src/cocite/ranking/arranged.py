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
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.ranking.lumping import Lumped
from cocite.ranking.vectors import Vector, pieces
from cocite.store import Scratch, Stream, forget

__all__ = ["Arranged", "Block", "Inner", "Outer", "arrange"]


Strip = tuple[int, int, int]


@dataclass(frozen=True)
class Block:
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

    def forget(self, first: int, last: int, begin: int, end: int) -> None:
        """Give back some rows and links."""
        forget(self.rows[first : last + 1], self.links[begin:end], self.weights[begin:end])


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

    def forget(self, begin: int, end: int) -> None:
        """Give back some words."""
        forget(self.words[begin:end], self.weights[begin:end])


@dataclass(frozen=True)
class Arranged:
    """All links of the core; ``loops`` is the weight of each row's link to itself."""

    blocks: tuple[Block, ...]
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
            forget(number[part])
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

    def deal(self, nodes: slice, rows: slice) -> Block:
        """Deal the links to one block."""
        from cocite.kernels import rank_blocks as kernels

        lumped = self._lumped
        codes, counts = self._codes(nodes, rows), np.zeros(kernels.COUNTS, np.uint64)
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
                forget(draft.rows)
            lumped.rest_links(first, last, begin, end)
            forget(self.loops)
        for (kind, rest), mine in zip(kinds, strips, strict=True):
            mine.append(self._flush(rest, counts, kind, rows))
        self.lost += int(counts[kernels.LOST])
        whole, tail = (tuple(strip for strip in mine if strip[0] < strip[2]) for mine in strips)
        return Block(nodes, rows, whole, tail)

    def _codes(self, nodes: slice, rows: slice) -> NDArray[np.uint32]:
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
