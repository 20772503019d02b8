"""How walk samples are laid out block by block, on disk or in one process per block.

    position[node] = position[parent] + offset,    for a root: where the tree before it ends

A parent is smaller than its children, so one ascending pass over the blocks gives all positions: a
parent is in the same block, or in an earlier block, which has sent a message (node, position,
label). Each (position, node, label) then goes to its range of positions. Blobs are byte-identical
to those from a build in memory. A process needs 36 bytes per node per walking sample. Scratch files
need 33 bytes per node, and 36 per node per walking sample. Source: Fogaras, Racz, *Scaling
link-based similarity search*, section 2.1.3, which makes one pass per step; with offsets, one pass
suffices.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cocite.constants import NOWHERE, Ints, Labels, Words
from cocite.engine.carriers import (
    TOKENS,
    BlocksWalk,
    BlockWalker,
    MemorySpool,
    Message,
    Traffic,
    pack,
    placed_links,
    unpack,
)
from cocite.engine.row_groups import RowGroups
from cocite.engine.walk import Mover
from cocite.engine.walk_batch import TOGETHER
from cocite.engine.walk_blocks import (
    BLOCK_NODE,
    ROW_ROOM,
    BlockPart,
    Dealer,
    ExternalWalker,
    Meetings,
    Rooms,
    RowSpool,
)
from cocite.engine.weights import step_weights
from cocite.graph.blocks import Links
from cocite.graph.partitions import BlockedLinks
from cocite.index.layouts.batch_maker import (
    PIECE,
    Blob,
    FileWords,
    PartitionMaker,
    PartitionWork,
    SampleJob,
)
from cocite.index.layouts.contract import PartPlan
from cocite.index.layouts.memory_plan import MemoryPlan, fit_partitions
from cocite.index.layouts.trees.format import (
    GROUP,
    check_points,
    compact_words,
    eighths,
    group_trees,
    path_words,
    tree_words,
)
from cocite.kernels import trees, walk_blocks
from cocite.measures import LENGTH, SEED
from cocite.resources import Resources
from cocite.storage.spool import ScratchFile, Spool


def range_cuts(nodes: int, width: int) -> Words:
    """Return where ranges of ``width`` positions begin, and where the last range ends."""
    return np.array([*range(0, nodes, width), nodes], np.uint32)


class BlockTrees:
    """Lays out a block's trees, reusing the buffers and the dealer of its walk."""

    def __init__(self, rooms: Rooms, cuts: Words, dealer: Dealer, ranges: Words) -> None:
        """Prepare the buffers. ``cuts`` are the first nodes of blocks, ``ranges`` the cuts of
        positions (:func:`range_cuts`).
        """
        self._rooms, self._cuts, self._dealer = rooms, cuts, dealer
        self._ranges = Dealer(ranges, rooms.dealt)

    def positions(
        self, block: int, cursor: int, records: RowSpool, received: RowSpool, tell: RowSpool
    ) -> tuple[int, Words]:
        """Return where the next block's first tree begins, and the positions of the block's nodes,
        uint32[nodes], in a buffer.

        The block's first tree begins at ``cursor``; ``received`` contains the block's messages.
        """
        first, last = self._cuts[block], self._cuts[block + 1]
        size, buffer = int(last) - int(first), self._rooms.merged
        parent, extent = self._rooms.flat[:size], self._rooms.flat[size : 2 * size]
        label, position = self._rooms.label[:size], extent
        parent.fill(NOWHERE)
        extent.fill(1)
        label.fill(0)
        for step, rows in records.pieces(2 * block, buffer):
            walk_blocks.settle(rows, first, np.uint8(step), parent, extent, label)
        for _, rows in received.pieces(block, buffer):
            walk_blocks.receive(rows, first, parent, extent, label)
        cursor = int(walk_blocks.place(first, np.uint32(cursor), parent, extent, position))
        for step, rows in records.pieces(2 * block + 1, buffer):
            walk_blocks.reply(rows, first, np.uint8(step), position)
            self._dealer.rows(tell, rows)
        return cursor, position

    def send_places(
        self, block: int, out: RowSpool, name: Callable[[Words], Words] = lambda rows: rows
    ) -> None:
        """Send the (position, node, label) rows from :meth:`positions` to their ranges. ``name``
        renames the nodes.
        """
        first, size = self._cuts[block], int(self._cuts[block + 1]) - int(self._cuts[block])
        position, label = self._rooms.flat[size : 2 * size], self._rooms.label[:size]
        node = 0
        while node < size:
            count, node = walk_blocks.places(first, node, position, label, self._rooms.going)
            self._ranges.rows(out, name(self._rooms.going[:count]))

    def range(self, number: int, low: int, size: int, places: RowSpool) -> tuple[Words, Labels]:
        """Return the members and one-byte labels of the range that begins at ``low``."""
        member, label = self._rooms.at[:size], self._rooms.flat.view(np.uint8)[:size]
        for _, rows in places.pieces(number, self._rooms.merged):
            walk_blocks.collect(rows, np.uint32(low), member, label)
        return member, label


# -- external ----------------------------------------------------------------------------


class ExternalTrees:
    """Lays out an external walker's samples; a blob is valid until the next one is made."""

    def __init__(
        self, walker: ExternalWalker, nodes: int, directory: Path, wanted: Words | None = None
    ) -> None:
        """Prepare scratch files. ``wanted`` uint32[m], ascending, contains the selected nodes, or
        is None for all nodes.
        """
        self._walker, self._nodes, self._requested = walker, nodes, wanted
        self._rooms, self._cuts = walker.rooms, walker.cuts
        self._width = self._rooms.at.size
        ranges = range_cuts(nodes, self._width)
        self._block = BlockTrees(self._rooms, self._cuts, walker.dealer, ranges)
        self._messages = Spool(directory, self._cuts.size - 1)
        self._places = Spool(directory, ranges.size - 1)
        self._blob, self._members = ScratchFile(directory), ScratchFile(directory)
        self._labels = ScratchFile(directory)

    def __call__(self, sample: int) -> Blob:
        """Return the blob of a sample."""
        met = self._walker(sample)
        members = self._write_members(self._send_places(met))
        self._write_trees(members)
        return Blob.of(FileWords(self._blob, tree_words(members)), members, met.live)

    def _send_places(self, met: Meetings, positions: ScratchFile | None = None) -> int:
        """Send rows to their ranges and write ``positions``, block by block; return the member
        count among all nodes.
        """
        self._messages.clear()
        self._places.clear()
        cursor, messages = 0, self._messages
        for block in range(self._cuts.size - 1):
            given = cursor, met.records, messages, messages
            cursor, position = self._block.positions(block, *given)
            if positions is not None:
                positions.write(4 * int(self._cuts[block]), position)
            self._block.send_places(block, self._places, self._named)
        return cursor

    def _named(self, rows: Words) -> Words:
        """Replace nodes in ``rows`` by their index among the selected nodes, or NOWHERE."""
        if self._requested is not None and rows.size:
            low, high = np.searchsorted(self._requested, rows[[0, -1], 1])
            near = self._requested[low : high + 1]
            places = np.searchsorted(near, rows[:, 1])
            near = np.append(near, np.uint32(NOWHERE))
            there = near[places] == rows[:, 1]
            rows[:, 1] = np.where(there, places + low, NOWHERE)
        return rows

    def _write_members(self, members: int) -> int:
        """Write members and one-byte labels, range by range; return the selected member count."""
        done, state = 0, np.zeros(4, np.int64)
        for number, low in enumerate(range(0, members, self._width)):
            size = min(self._width, members - low)
            member, label = self._block.range(number, low, size, self._places)
            if self._requested is not None:
                member, label = self._selected(member, label, state)
            self._members.write(4 * done, member)
            self._labels.write(done, label)
            done += member.size
        return done

    def _selected(self, member: Words, label: Labels, state: Ints) -> tuple[Words, Labels]:
        """Return the selected members and their labels; ``state`` persists between ranges."""
        # The arrays to fill follow the collected labels in the same scratch.
        free = self._rooms.flat[-(-self._width // 4) :]
        joined, node = free.view(np.uint8)[: self._width + 1], free[self._width // 4 + 1 :]
        label[member != NOWHERE] |= trees.MARK
        size = int(trees.select(member, label, state, node, joined))
        return node[:size], joined[:size]

    def _write_trees(self, members: int, at: int = 0) -> None:
        """Write members and labels in groups to the blob, beginning at word ``at``."""
        for low in range(0, members, PIECE):
            size = min(PIECE, members - low)
            member, label = np.empty(size, np.uint32), np.empty(size, np.uint8)
            self._members.read(4 * low, member)
            self._labels.read(low, label)
            words = group_trees(member, label)
            self._blob.write(4 * at, words)
            at += words.size


# -- blocks ------------------------------------------------------------------------------


_ROWS = 1 << 16
_SAMPLE_NODE = 36
"""Bytes per sample per node of a block, for incoming and outgoing tokens, and records."""
_AHEAD = 3
"""Number of samples to lay out at a time."""


def _ranges_of(work: PartitionWork) -> tuple[int, Words]:
    """Return the number of positions per range, and the cuts of at most one range per block."""
    whole = 2 * GROUP  # whole cache lines
    width = -(-work.nodes // ((len(work.cuts) - 1) * whole)) * whole
    return width, range_cuts(work.nodes, width)


class TreeBlock(BlockWalker):
    """The walks and the trees of one graph block."""

    def __init__(self, work: PartitionWork, block: int) -> None:
        held, (width, self._ranges) = work.block(block), _ranges_of(work)
        plan, cuts = work.plan, np.array(work.cuts, np.uint32)
        own = Links(held.offsets, held.sources, held.weights if plan.weighted else None)
        weights = step_weights(own, plan.step) if plan.step.weighted else None
        rows = held.offsets, own.neighbors, own.weights
        links, blocks = placed_links(*rows, held.first, work.nodes), work.cuts[1:-1]
        mover = Mover(links, plan.step, plan.settings[SEED], blocks, plan.turn, weights)
        largest = max(held.last - held.first, width)
        part = BlockPart(mover, plan.settings[LENGTH], work.rows, largest)
        super().__init__(part, block)
        self._trees = BlockTrees(part.rooms, cuts, part.dealer, self._ranges)
        self._own_places: dict[int, Message] = {}

    def begin(self, samples: range) -> None:
        """Start drawing new samples."""
        super().begin(samples)
        self._own_places = {}

    def lay_out(self, sample: int, cursor: int, *received: Message) -> tuple[object, ...]:
        """Lay out the block's nodes. Returns where the next block's first tree begins, the number
        of bytes sent, a message to each later block, and the rows for each range.
        """
        messages, tell = MemorySpool(self._blocks), MemorySpool(self._blocks)
        for _, _, tag, rows in unpack(received):
            messages.put(self._block, tag, rows)
        records = self.records[sample]
        cursor, _ = self._trees.positions(self._block, cursor, records, messages, tell)
        places = MemorySpool(self._ranges.size - 1)
        self._trees.send_places(self._block, places)
        behind = [_letter(sample, tell, block) for block in range(self._block + 1, self._blocks)]
        ranges: list[Message | None] = []
        for number in range(self._ranges.size - 1):
            parcel = _letter(sample, places, number)
            if number == self._block:
                self._own_places[sample] = parcel
                ranges.append(None)
            else:
                ranges.append(parcel)
        sent = sum(parcel.nbytes for parcel in [*behind, *ranges] if parcel is not None)
        return cursor, sent, *behind, *ranges

    def collect(self, sample: int, members: int, *places: Message | None) -> Words:
        """Return the trees in the block's range, for a sample with ``members`` members."""
        number = self._block
        low, high = (min(int(cut), members) for cut in self._ranges[number : number + 2])
        box = MemorySpool(self._ranges.size - 1)
        for _, _, tag, rows in unpack([self._own_places.pop(sample), *places]):
            box.put(number, tag, rows)
        return group_trees(*self._trees.range(number, low, high - low, box))


def _letter(sample: int, letters: MemorySpool, bucket: int) -> Message:
    return pack([(sample, TOKENS, letters.take(bucket))])


class BlocksMaker(PartitionMaker):
    """Makes blobs of trees on a partitioned graph."""

    ahead = _AHEAD

    def __init__(self, links: BlockedLinks, job: SampleJob, fit: MemoryPlan) -> None:
        super().__init__(TreeBlock, links, job, fit)
        self._ranges = _ranges_of(self.work)[1].size - 1
        self._walk = BlocksWalk(self.crew, self.work.nodes, job.plan.settings[LENGTH])
        self._live: dict[int, tuple[int, ...]] = {}
        self._trees = 0

    @property
    def traffic(self) -> Traffic:
        """Return the traffic between blocks."""
        return self._walk.traffic.plus(trees=self._trees)

    def draw(self, samples: range) -> None:
        """Draw the walks of all samples."""
        self._live = self._walk.walk(samples)

    def ask(self, sample: int) -> tuple[Any, list[Any], list[list[Any]]]:
        """Start laying out a sample, block by block, each block as soon as possible. Return handles
        to the member count, the bytes sent, and the rows of each range from each block.
        """
        crew, blocks = self.crew, self.crew.size
        received: list[list[Any]] = [[] for _ in range(blocks)]
        cursor, sent, places = 0, list[Any](), [list[Any]() for _ in range(self._ranges)]
        for block in range(blocks):
            behind = blocks - 1 - block
            given, answers = (sample, cursor, *received[block]), 2 + behind + self._ranges
            cursor, size, *rest = crew.call(block, "lay_out", *given, answers=answers)
            sent.append(size)
            for other, parcel in enumerate(rest[:behind], block + 1):
                received[other].append(parcel)
            for number, parcel in enumerate(rest[behind:]):
                places[number].append(parcel)
        return cursor, sent, places

    def put_together(self, sample: int, asked: tuple[Any, list[Any], list[list[Any]]]) -> Blob:
        """Collect and write the ranges in order."""
        crew, (cursor, sent, places) = self.crew, asked
        members = int(crew.take([cursor])[0])
        parts = [
            crew.call(number, "collect", sample, members, *rows)[0]
            for number, rows in enumerate(places)
        ]
        pieces = (crew.take([part])[0] for part in parts)
        blob = self.written(pieces, members, self._live[sample])
        self._trees += sum(crew.take(sent))
        return blob


def fit_blocks(links: BlockedLinks, part: PartPlan, means: Resources) -> MemoryPlan:
    """Plan the memory of partitions (:func:`fit_partitions`)."""
    link = 12 if part.weighted else 4

    def need(samples: int, nodes: int, edges: int) -> int:
        return (16 + BLOCK_NODE + _SAMPLE_NODE * samples) * nodes + link * edges + ROW_ROOM * _ROWS

    return fit_partitions(links, part, means, TOGETHER, need, _ROWS)


# -- paths and compact samples in files --------------------------------------------------


class ExternalPaths(ExternalTrees):
    """Lays out paths of an external walker that records points."""

    def __init__(self, walker: ExternalWalker, nodes: int, rows: int, directory: Path) -> None:
        super().__init__(walker, nodes, directory)
        self._groups = RowGroups(nodes, rows)
        self._points = self._groups.spool(directory)

    def __call__(self, sample: int) -> Blob:
        """Return the blob of a sample."""
        met, nodes = self._walker(sample), self._nodes
        assert met.points is not None
        members = self._write_members(self._send_places(met, self._blob))
        self._seat(members, met.points)
        self._write_trees(nodes, nodes)
        steps = nodes + tree_words(nodes)
        begin, first = steps + eighths(nodes), 0
        at = begin + eighths(nodes)
        for place, counts, pieces in self._groups.groups(self._points):
            ends = first + np.cumsum(counts)
            check_points(sample, int(ends[-1]))
            packed = np.zeros(-(-counts.size // 8), np.uint32)
            trees.pack_labels(counts.astype(np.uint8), packed.view(np.uint8))
            self._blob.write(4 * (steps + place // 8), packed)
            self._blob.write(4 * (begin + place // 8), (ends - counts)[::8].astype(np.uint32))
            for piece in pieces:
                self._blob.write(4 * at, piece)
                at += piece.size
            first = int(ends[-1])
        words = path_words(nodes, first)
        self._blob.write(4 * at, np.zeros(words - at, np.uint32))
        return Blob.of(FileWords(self._blob, words), first, met.live)

    def _seat(self, place: int, points: Spool) -> None:
        """Assign positions from ``place`` on to nodes that meet no other node, and group all points
        by the positions of their nodes.
        """
        self._points.clear()
        for block, (first, last) in enumerate(pairwise(self._cuts.tolist())):
            position = self._rooms.at[: last - first]
            self._blob.read(4 * first, position)
            alone = np.flatnonzero(position == NOWHERE).astype(np.uint32)
            position[alone] = np.arange(place, place + alone.size, dtype=np.uint32)
            self._blob.write(4 * first, position)
            self._members.write(4 * place, alone + np.uint32(first))
            self._labels.write(place, np.zeros(alone.size, np.uint8))
            place += alone.size
            for _, rows in points.pieces(block, self._rooms.merged[: self._groups.rows]):
                self._groups.add(self._points, position[rows[:, 0] - np.uint32(first)], rows[:, 1])


class ExternalCompact:
    """Makes compact samples in files; ``together`` samples share a scan of the links."""

    def __init__(
        self,
        links: Links,
        mover: Mover,
        cuts: tuple[int, ...],
        rows: int,
        folder: Path,
        together: int,
    ) -> None:
        self._links, self._mover, self._cuts = links, mover, (0, *cuts, links.nodes)
        self._groups = RowGroups(links.nodes, rows)
        self._files = [(ScratchFile(folder), self._groups.spool(folder)) for _ in range(together)]
        self._ready: dict[int, tuple[ScratchFile, Spool]] = {}

    def make(self, samples: range) -> None:
        """Move every node once in each of ``samples``; earlier samples become invalid."""
        self._ready = dict(zip(samples, self._files, strict=False))
        moves = {sample: self._mover.kernel(sample, 1) for sample in self._ready}
        for _, spool in self._ready.values():
            spool.clear()
        for first, last in pairwise(self._cuts):
            self._links.fetch(first, last)
            for sample, (file, spool) in self._ready.items():
                for low in range(first, last, self._groups.rows):
                    at = np.arange(low, min(low + self._groups.rows, last), dtype=np.uint32)
                    moved = np.empty_like(at)
                    moves[sample](at, moved, np.uint32(first), np.uint32(last))
                    file.write(4 * low, moved)
                    there = moved != NOWHERE
                    self._groups.add(spool, moved[there], at[there])
            self._links.evict()

    def __call__(self, sample: int) -> Blob:
        """Return the blob of a sample."""
        file, spool = self._ready[sample]
        nodes, members = self._links.nodes, 0
        child = 2 * nodes + 1
        for low, counts, pieces in self._groups.groups(spool):
            begins = members + np.cumsum(counts) - counts
            file.write(4 * (nodes + low), begins.astype(np.uint32))
            for piece in pieces:
                file.write(4 * (child + members), piece)
                members += piece.size
        file.write(4 * (child - 1), np.array([members], np.uint32))
        words = compact_words(nodes, members)
        file.write(4 * (child + members), np.zeros(words - child - members, np.uint32))
        return Blob.of(FileWords(file, words), members, (members,))
