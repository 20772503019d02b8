"""Sweeps over the links of the core, in memory or in blocks on disk.

On disk, a block is a range of nodes; each has about the same number of nodes plus rows. The sums of
its rows and its own contributions z are in memory, its links in scratch files:

    inner    between rows of one block    by row: those from rows above, those from rows below
    outer    from rows of other blocks    by source, as words (``engine/arrangement.py``)

Links to the block's dangling nodes, its *tails*, are stored in the same way. The order of the sums
is the same in memory and on disk, so ranks are bit-identical.

Arranging takes 60 to 100 ns per outer link and 5 per inner link. Each sweep reads all of z once per
block. Scratch files take 4 bytes per inner link, up to 8 per outer link (8 and 16 with weights), 16
per row and 8 per node. Source: Haveliwala, *Efficient computation of PageRank*, section 3.2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.cluster.threads import Team
from cocite.engine.arrangement import SourceWords, Strip, sorted_links, words_of
from cocite.kernels import rank, rank_blocks
from cocite.ranking.core import Lumped
from cocite.ranking.vectors import Vector, pieces, scale, stretches
from cocite.storage import evict, is_mapped
from cocite.storage.spool import Scratch, Stream

_ZERO = np.uint64(0)

Rows = tuple[
    NDArray[np.uint64] | None, NDArray[np.uint64], NDArray[np.uint32], NDArray[np.float32] | None
]
"""Starts of the rows' links (None: each starts where the previous row's end), ends, sources and
weights.
"""


class CoreLinks(ABC):
    """The links of a core, for repeated sweeps.

    ``loops`` has the weight of each row's self-loop. ``sent`` counts the bytes of values that
    partitions exchanged.
    """

    _lumped: Lumped
    blocks: int = 1
    loops: NDArray[Any]
    sent: int | None = None

    @abstractmethod
    def sweep(
        self, z: NDArray[Any], facts: Vector, damping: float, sums: Vector, cut: int, team: Team
    ) -> None:
        """Update ``z`` in place with a Gauss-Seidel sweep over the rows before ``cut`` and one over
        the others, which uses the old values of the rows before ``cut``. A cut of 0 means one sweep
        over all rows.

        Each half adds to a row of ``sums`` float64[2, 4] (``rank.sweep``).
        """

    @abstractmethod
    def gathered(self, z: NDArray[Any], all_rows: bool) -> Iterator[tuple[slice, Vector]]:
        """Yield (nodes of a block, what they receive from ``z`` along links). Unless ``all_rows``,
        only dangling nodes are computed. The next block may reuse the array.
        """

    def crossing(self, z: NDArray[Any], cut: int) -> Vector:
        """Return what the rows from ``cut`` on receive from the rows before it, float64[rows].
        ``z`` must be 0 from ``cut`` on.
        """
        lumped = self._lumped
        found: Vector = lumped.scratch.zeros(lumped.core, np.float64)
        for nodes, sums in self.gathered(z, all_rows=True):
            for part in pieces(nodes.start, nodes.stop, lumped.number, beside=(found,)):
                rows = lumped.number[part]
                inside = rows < lumped.core
                here = sums[part.start - nodes.start : part.stop - nodes.start]
                found[rows[inside]] = here[inside]
        return found[cut:]

    def scale(self, z: NDArray[Any], factor: float) -> None:
        """Multiply ``z`` by ``factor``, wherever it is stored."""
        scale(z, factor)

    def fetch(self, z: NDArray[Any]) -> None:
        """Copy the values of the previous sweep to ``z`` from wherever they are."""
        return

    def replaced(self, z: NDArray[Any]) -> None:
        """Record that the caller changed ``z``, from which the next sweep starts."""
        return


class MemoryBlock:
    """The links to ``rows`` of the core and to dangling nodes, in memory.

    ``links`` contains the offsets, sources and weights of the in-links of all nodes in ``number``;
    the weights are empty if the graph is unweighted. ``lost`` counts the links from nodes outside
    the core.
    """

    def __init__(
        self,
        links: tuple[NDArray[Any], ...],
        degrees: NDArray[np.uint32],
        number: NDArray[np.uint32],
        core: int,
        rows: slice,
    ) -> None:
        edges, weighted = int(links[0][-1]), links[2].size > 0

        def room(rows: int) -> tuple[NDArray[Any], ...]:
            """Allocate space for all links. Unwritten pages take no memory."""
            begins = np.zeros(rows + 1, np.uint64)
            return begins, np.empty(edges, np.uint32), np.empty(edges * weighted, np.float32)

        begins, *found = room(core)
        middles = np.empty(core, np.uint64)
        loops = np.empty(core, np.float32 if weighted else np.uint8)
        tails = room(number.size - core)
        out = begins, middles, *found
        self.lost = int(rank.compact(links, degrees, number, out, tails, loops))
        self._degrees, self._number, self.loops = degrees, number, loops[rows]
        self._tails = (*tails[:2], tails[2] if weighted else None)
        here = begins[rows.start : rows.stop + 1]
        columns = found[0], found[1] if weighted else None
        self._last, self._rows = begins[-1], (here, *columns)
        self.whole: Rows = None, here[1:], *columns
        self.above: Rows = here[:-1], middles[rows], *columns
        self.below: Rows = middles[rows], here[1:], *columns

    def collect_above(self, z: NDArray[Any], sums: Vector) -> None:
        """Add what each row receives from rows above it to ``sums``."""
        rank.collect(self.above, _ZERO, self._last, z, sums)

    def collect_below(self, z: NDArray[Any], first: int) -> Vector:
        """Return what each row from ``first`` on receives from rows below it."""
        begins, ends, *columns = self.below
        sums = np.zeros(ends.size - first)
        assert begins is not None
        rank.collect((begins[first:], ends[first:], *columns), _ZERO, self._last, z, sums)
        return sums

    def gather(self, nodes: slice, z: NDArray[Any], all_rows: bool) -> Vector:
        """Return what nodes, or only dangling ones, receive along links, float64[nodes]."""
        sums = np.empty(nodes.stop - nodes.start)
        ends = self._number[nodes], self._degrees[nodes], z, all_rows
        rank.gather(self._tails, self._rows, self.loops, *ends, sums)
        return sums


class Resident(CoreLinks):
    """Links in memory."""

    def __init__(self, lumped: Lumped) -> None:
        self._lumped = lumped
        self._nodes, links = slice(0, lumped.nodes), lumped.links_of(0, lumped.nodes)
        core = lumped.core
        self._block = MemoryBlock(links, lumped.degrees, lumped.number, core, slice(0, core))
        lumped.check_sources(self._block.lost)
        self.core, self.loops = self._block.whole, self._block.loops
        self._so_far = np.zeros(core)
        self._other: NDArray[Any] = np.empty(0)
        self._cut = 0

    def sweep(
        self, z: NDArray[Any], facts: Vector, damping: float, sums: Vector, cut: int, team: Team
    ) -> None:
        """Sweep both halves in parallel. The second half works on a copy of ``z``, which holds its
        new values until they are scaled.
        """
        self._cut = cut or z.size
        if not cut:
            self._sweep(slice(0, z.size), z, facts, damping, sums[0])
            return
        if self._other.size != z.size or self._other.dtype != z.dtype:
            self._other = np.empty_like(z)
        other = self._other
        other[:cut] = z[:cut]

        def work(low: int, high: int) -> None:
            if low == 0:
                self._sweep(slice(0, cut), z, facts, damping, sums[0])
            if high == 2:
                other[cut:] = z[cut:]
                self._sweep(slice(cut, z.size), other, facts, damping, sums[1])

        team.split(work, 2, aligned=1)

    def scale(self, z: NDArray[Any], factor: float) -> None:
        """Multiply ``z``; its second half is read from ``self._other``."""
        cut = self._cut
        scale(z[:cut], factor)
        np.multiply(self._other[cut:], np.float64(factor), z[cut:], casting="same_kind")

    def _sweep(
        self, rows: slice, z: NDArray[Any], facts: Vector, damping: float, sums: Vector
    ) -> None:
        _, ends, *columns = self.core
        first = np.uint64(rows.start)
        at = ends[rows.start - 1] if rows.start else _ZERO, first, first
        core = None, ends[rows], *columns
        rank.sweep(core, at, self._so_far[rows], z, facts[rows], damping, sums)

    def crossing(self, z: NDArray[Any], cut: int) -> Vector:
        """Return what each row from ``cut`` on receives from rows below it."""
        return self._block.collect_below(z, cut)

    def gathered(self, z: NDArray[Any], all_rows: bool) -> Iterator[tuple[slice, Vector]]:
        """Yield all nodes at once."""
        yield self._nodes, self._block.gather(self._nodes, z, all_rows)


# -- arranging links on disk -------------------------------------------------------------


class Outer(NamedTuple):
    """Strips of links from rows below a block, and from rows above it."""

    below: list[Strip]
    above: list[Strip]


@dataclass(frozen=True)
class CoreBlock:
    """A block's nodes, its core rows, and the outer links to its rows and to its tails."""

    nodes: slice
    rows: slice
    outer: Outer
    outer_tails: Outer


class Inner:
    """Links within blocks. ``rows`` uint64[core + 1], or [nodes + 1] for tails, are row offsets;
    ``links`` uint32 are sources, numbered within the block. Until :meth:`finish` is called,
    ``links`` and ``weights`` hold only one stretch.
    """

    def __init__(self, lumped: Lumped, rows: int) -> None:
        self.rows: NDArray[np.uint64] = lumped.scratch.zeros(rows + 1, np.uint64)
        self._streams = _streams(lumped.scratch)
        most = _stretch(lumped)
        self.links: NDArray[np.uint32] = np.empty(most, np.uint32)
        self.weights: NDArray[np.float32] = np.empty(most * lumped.weighted, np.float32)

    @property
    def written(self) -> int:
        """Return the number of links written so far."""
        return self._streams[0].size

    def part(self, rows: slice) -> tuple[NDArray[Any], ...]:
        """Return the arrays that ``deal`` fills for a block."""
        return self.rows[rows.start : rows.stop + 1], self.links, self.weights

    def append(self, count: int) -> None:
        """Write the first ``count`` links of a stretch."""
        self._streams[0].append(self.links[:count])
        self._streams[1].append(self.weights[:count])
        evict(self.rows)

    def finish(self) -> None:
        """Map the written links and weights."""
        self.links, self.weights = (stream.finish() for stream in self._streams)

    def of(self, first: int, last: int) -> Rows:
        """Return rows [first, last) for a kernel."""
        weights = self.weights if self.weights.size else None
        return None, self.rows[first + 1 : last + 1], self.links, weights

    def evict(self, first: int, last: int, begin: int, end: int) -> None:
        """Release the memory of rows [first, last) and links [begin, end)."""
        evict(self.rows[first : last + 1], self.links[begin:end], self.weights[begin:end])


class _LinkSorter:
    """Sorts outer links into strips; ``keys`` and ``weights`` hold one strip."""

    def __init__(self, lumped: Lumped) -> None:
        self._lumped, self.lost = lumped, 0
        self._words, self._weights = _streams(lumped.scratch)
        most = lumped.room.strip(lumped.weighted)
        self.keys = np.empty(most, np.uint64)
        self.weights = np.empty(most * lumped.weighted, np.float32)

    def flush(self, count: int, split: int, found: Outer) -> None:
        """Sort the first ``count`` keys into strips below and above the source row ``split``."""
        keys, weights = sorted_links(self.keys[:count], self.weights[:count])
        self.lost += (lost := self._rename(keys))
        middle = int(np.searchsorted(keys, np.uint64(split << 32))) if not lost else 0
        for part, strips in ((slice(middle), found.below), (slice(middle, None), found.above)):
            begin = self._words.size
            words, beside = words_of(keys[part], weights[part])
            self._words.append(words)
            self._weights.append(beside)
            if words.size:
                strips.append((begin, self._words.size))

    def _rename(self, keys: NDArray[np.uint64]) -> int:
        number, lost, at = self._lumped.number, np.zeros(1, np.uint64), np.uint64(0)
        for part in pieces(0, number.size, size=max(1, self._lumped.room.piece // 4)):
            at = np.uint64(rank_blocks.rename(keys, at, np.uint64(part.stop), number, lost))
            evict(number[part])
            if at == keys.size:
                break
        return int(lost[0])

    def finish(self) -> SourceWords:
        """Map the written words and weights."""
        return SourceWords(self._words.finish(), self._weights.finish())


class _Dealer:
    """Deals the links of each block to ``inner`` (from above, from below, to tails) and ``outer``
    (to rows, to tails).
    """

    def __init__(self, lumped: Lumped) -> None:
        self._lumped, self._lost = lumped, 0
        self.inner = tuple(Inner(lumped, n) for n in (lumped.core, lumped.core, lumped.nodes))
        self.outer = _LinkSorter(lumped), _LinkSorter(lumped)
        kind = np.float32 if lumped.weighted else np.uint8
        self.loops: NDArray[Any] = lumped.scratch.zeros(lumped.core, kind)

    @property
    def lost(self) -> int:
        """Return the number of links whose source has out-degree 0."""
        return self._lost + sum(sorter.lost for sorter in self.outer)

    def deal(self, nodes: slice, rows: slice) -> CoreBlock:
        """Deal the links to a block."""
        lumped, found = self._lumped, CoreBlock(nodes, rows, Outer([], []), Outer([], []))
        codes, counts = self._local_rows(nodes, rows), np.zeros(rank_blocks.COUNTS, np.uint64)
        kinds = (rank_blocks.OUTER, found.outer), (rank_blocks.OUTER_TAILS, found.outer_tails)
        outer = [array for sorter in self.outer for array in (sorter.keys, sorter.weights)]

        def flush(links: int) -> None:
            """Write the strips that have no space for ``links`` more links."""
            for sorter, (kind, strips) in zip(self.outer, kinds, strict=True):
                if int(counts[kind]) + links > sorter.keys.size:
                    sorter.flush(int(counts[kind]), rows.start, strips)
                    counts[kind] = 0

        above, below, tails = self.inner
        for first, last, begin, end in lumped.stretches(nodes.start, nodes.stop, _stretch(lumped)):
            flush(end - begin)
            counts[:3], counts[-3:] = 0, [each.written for each in self.inner]
            rank_blocks.deal(
                lumped.links_of(first, last),
                tuple(np.uint64(n) for n in (begin, end, first, nodes.start)),
                codes,
                counts,
                (above.part(rows), below.part(rows)),
                tails.part(nodes),
                tuple(outer),
                self.loops[rows],
            )
            for each, count in zip(self.inner, counts[:3].tolist(), strict=True):
                each.append(count)
            lumped.rest_links(first, last, begin, end)
            evict(self.loops)
        flush(self.outer[0].keys.size + 1)
        self._lost += int(counts[rank_blocks.LOST])
        return found

    def _local_rows(self, nodes: slice, rows: slice) -> NDArray[np.uint32]:
        """Return the codes of a block's nodes for ``rank_blocks.deal``."""
        lumped = self._lumped
        codes = np.empty(nodes.stop - nodes.start, np.uint32)
        for part in pieces(nodes.start, nodes.stop, lumped.number, lumped.degrees):
            number, degrees = lumped.number[part], lumped.degrees[part]
            piece = codes[part.start - nodes.start : part.stop - nodes.start]
            np.subtract(number, np.uint32(rows.start), out=piece)
            outside = number == rank.NO_NODE
            piece[outside] = np.where(degrees[outside] == 0, rank_blocks.TAIL, rank_blocks.LEFT_OUT)
        return codes


def _cut(lumped: Lumped) -> list[tuple[slice, slice]]:
    """Return the nodes and rows of each block."""
    count, size = lumped.room.blocks - lumped.room.halves + 1, lumped.nodes + lumped.core
    goals = [-(-size * i // count) for i in range(1, count)]
    cuts, row = [(0, 0)], 0
    for part in pieces(0, lumped.nodes, lumped.number):
        inside = lumped.number[part] != rank.NO_NODE
        rows = row + np.cumsum(inside)
        sizes, found = np.arange(part.start + 1, part.stop + 1) + rows, []
        while goals and goals[0] <= sizes[-1]:
            found.append(int(np.searchsorted(sizes, goals.pop(0))))
        if row < lumped.cut <= rows[-1]:
            found.append(int(np.searchsorted(rows, lumped.cut)))
        for at in sorted(found):
            cut = part.start + at + 1, int(rows[at])
            if cuts[-1][0] < cut[0] < lumped.nodes:
                cuts.append(cut)
        row = int(rows[-1])
    cuts.append((lumped.nodes, row))
    return [(slice(a, b), slice(low, high)) for (a, low), (b, high) in pairwise(cuts)]


def _streams(scratch: Scratch) -> tuple[Stream, Stream]:
    """Return streams for node numbers and for weights."""
    assert scratch.directory is not None
    return Stream(scratch.directory, np.uint32), Stream(scratch.directory, np.float32)


def _stretch(lumped: Lumped) -> int:
    """Return how many links to deal at a time: few enough that strips are nearly full."""
    room = lumped.room
    return max(1, min(room.piece // 8, room.strip(lumped.weighted) // 4, lumped.graph.edges))


# -- sweeps on disk ----------------------------------------------------------------------


class Blocked(CoreLinks):
    """Links on disk, with one block in memory at a time. No block has rows of both halves."""

    def __init__(self, lumped: Lumped) -> None:
        self._lumped = lumped
        dealer = _Dealer(lumped)
        self._blocks = [dealer.deal(nodes, rows) for nodes, rows in _cut(lumped)]
        lumped.check_sources(dealer.lost)
        for inner in dealer.inner:
            inner.finish()
        self._upper, self._lower, self._tails = dealer.inner
        self._outer, self._outer_tails = (sorter.finish() for sorter in dealer.outer)
        self.loops, self.blocks = dealer.loops, len(self._blocks)
        self._old: NDArray[Any] = np.empty(0)

    def sweep(
        self, z: NDArray[Any], facts: Vector, damping: float, sums: Vector, cut: int, team: Team
    ) -> None:
        """Sweep the blocks in order. The second half does not use the first half's new values."""
        if not cut:
            self._sweep(self._blocks, z, facts, damping, sums[0])
            return
        if self._old.size != cut or self._old.dtype != z.dtype:
            self._old = self._lumped.contributions(z.dtype, cut)
        old = self._old
        for part in pieces(0, cut, z, old):
            old[part] = z[part]
        halves: tuple[list[CoreBlock], list[CoreBlock]] = [], []
        for block in self._blocks:
            halves[block.rows.start >= cut].append(block)
        self._sweep(halves[0], z, facts, damping, sums[0])
        for part in pieces(0, cut, z, old):
            new = z[part].copy()
            z[part] = old[part]
            old[part] = new
        self._sweep(halves[1], z, facts, damping, sums[1])
        for part in pieces(0, cut, z, old):
            z[part] = old[part]

    def _sweep(
        self, blocks: list[CoreBlock], z: NDArray[Any], facts: Vector, damping: float, sums: Vector
    ) -> None:
        lower = self._lower
        for block in blocks:
            rows, mine = block.rows, _copied(z, block.rows)
            so_far = np.zeros(mine.size)
            self._add_others(block, z, mine, so_far)
            for first, last, begin, end in self._stretches(lower, rows):
                whole = last - (int(lower.rows[last]) > end)
                here = first - rows.start
                if whole > first:
                    at = tuple(np.uint64(n) for n in (begin, here, first))
                    part = so_far[here : whole - rows.start]
                    its = facts[first:whole]
                    rank.sweep(lower.of(first, whole), at, part, mine, its, damping, sums)
                if whole < last:  # the stretch ends within a row
                    part = so_far[whole - rows.start : last - rows.start]
                    behind = max(begin, int(lower.rows[whole]))
                    _collect(lower, whole, last, behind, end, mine, part)
                lower.evict(first, last, begin, end)
                evict(facts[first:last])
            _write(mine, z, rows)

    def gathered(self, z: NDArray[Any], all_rows: bool) -> Iterator[tuple[slice, Vector]]:
        """Yield one block after another."""
        for block in self._blocks:
            sums, mine = np.zeros(block.nodes.stop - block.nodes.start), _copied(z, block.rows)
            if all_rows:
                self._gather_rows(block, z, mine, sums)
            words, strips, rows = self._outer_tails, block.outer_tails, block.rows
            self._push(words, strips.below, slice(0, rows.start), z, sums)
            self._add_inner(self._tails, block.nodes, mine, sums)
            self._push(words, strips.above, slice(rows.stop, z.size), z, sums)
            del mine  # frees memory before the caller runs
            yield block.nodes, sums

    def _gather_rows(
        self, block: CoreBlock, z: NDArray[Any], mine: NDArray[Any], sums: Vector
    ) -> None:
        """Compute what a block's rows receive, at the positions of their nodes."""
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
        """Add the terms that precede those from rows below in the same block."""
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
        """Push the z of ``sources`` along strips of words, a window at a time."""
        words.push(strips, sources, max(1, self._lumped.room.window // z.itemsize), z, into)

    def _stretches(self, inner: Inner, rows: slice) -> Iterator[tuple[int, int, int, int]]:
        room, each = self._lumped.room, 8 if self._lumped.weighted else 4
        return stretches(
            inner.rows, rows.start, rows.stop, max(1, room.piece // each), max(1, room.piece // 48)
        )


def _collect(
    inner: Inner, first: int, last: int, begin: int, end: int, mine: NDArray[Any], part: Vector
) -> None:
    rank.collect(inner.of(first, last), np.uint64(begin), np.uint64(end), mine, part)


def _copied(z: NDArray[Any], rows: slice) -> NDArray[Any]:
    """Return the ``rows`` of z: a copy if z is mapped, otherwise a view."""
    if not is_mapped(z):
        return z[rows]
    mine = np.empty(rows.stop - rows.start, z.dtype)
    for part in pieces(rows.start, rows.stop, z):
        mine[part.start - rows.start : part.stop - rows.start] = z[part]
    return mine


def _write(mine: NDArray[Any], z: NDArray[Any], rows: slice) -> None:
    for part in pieces(rows.start, rows.stop, z) if is_mapped(z) else ():
        z[part] = mine[part.start - rows.start : part.stop - rows.start]
