"""The trees layout of a graph in blocks that each live somewhere, in a process of its own or not.

    TreeBlock       holds the rows of one block, walks with it and lays its trees out; and collects
                    one range of positions of every sample
    BlocksMaker     conducts: steps of walks, then the trees, and puts blobs together

Trees need one ascending pass over the blocks (``index/layouts/trees/assemble.py``), so blocks lay
out a sample one after another; they are asked for several samples ahead, and while one block lays
out a sample the one before it lays out the next. Positions and ranges come to the conductor piece
by piece, who writes them to a scratch file. The blob is that of ``index/layouts/trees/build.py``,
to the byte.

What is done if somebody is lost: ``index/layouts/batch_maker.py``.

Memory of a block: its rows, 21 bytes a node, 64 for each of ``rows`` rows under way, and of each
sample that walks 36 a node at most. Of the conductor: a piece of a blob.
Source: 001, section 2.1.3.

What one destination block does to lay out the trees of a sample, wherever the others are.

    positions    of its nodes, from its records and what the blocks before it have told;
                 tells the blocks behind where their nodes' parents stand, and sends every
                 place (position, node, label) to the range of positions that it is in
    range        the members and labels of one range of positions, from the places sent there

Rows come and go as in the walk (``engine/walk_blocks.py``), by whoever carries them: spools on disk
(``index/layouts/trees/assemble.py``), or arrays in memory between processes
(``index/layouts/trees/assemble.py``). Every node has one record, one message and one place at most,
so that their order does not matter.

Cost: O(1) a row. Memory: what the walk had, used again.
Source: 001, section 2.1.3 (collecting trees by sorting and merging).

The trees layout in constant memory: block after block, from the records of an external walk.

    position[node] = position[parent] + offset,    of a root: where the tree before it ends

A parent is smaller than its children, so one ascending pass over the blocks gives all positions. A
block's nodes have their parents in the block, or in one before it, which has sent a message
(node, position, label) by then. Every place (position, node, label) is then dealt to its range of
positions, and the ranges are collected one after another: members and labels in order.

The blob grows in a scratch file, and what reads it reads pieces. It is the one that
``index/layouts/trees/build.py`` makes, to the byte.

Of pages that are wanted only, ranges of positions are cut down to them as they are collected
(``kernels/trees.py``, ``select``); where each of them stands is kept in memory.

Memory: what the walk had (``engine/walk_blocks.py``), used again; 12 bytes a page that is wanted.
Scratch: the walk's, 12 bytes for each message and each place, and the blob: at most 33 bytes a
node, and 36 for each sample that walks.

Source: 001, section 2.1.3 (collecting trees by sorting and merging); there it takes a pass for each
step, with offsets one pass is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.constants import NOWHERE
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
from cocite.graph.partitions import BlockedLinks, GraphBlock
from cocite.index.layouts.batch_maker import (
    Blob,
    Maker,
    PartitionMaker,
    PartitionWork,
    TogetherMaker,
)
from cocite.index.layouts.contract import PartPlan
from cocite.index.layouts.memory_plan import MemoryPlan, check_partitions, too_little
from cocite.index.layouts.trees.format import tree_words
from cocite.measures import LENGTH, SEED
from cocite.resources import Resources
from cocite.storage import ScratchFile, Spool

EIGHT = 8
"""Labels to a word: ranges of positions begin at whole words of labels."""


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
        self, block: int, cursor: int, records: RowSpool, told: RowSpool, tell: RowSpool
    ) -> tuple[int, NDArray[np.uint32]]:
        """Where the nodes of a block stand, uint32[its nodes], in the rooms; the next tree begins
        at ``cursor``, and, which is returned, behind the block. ``told`` has its messages.
        """
        from cocite.kernels import walk_blocks

        first, last = self._cuts[block], self._cuts[block + 1]
        size, buffer = int(last) - int(first), self._rooms.merged
        parent, extent = self._rooms.flat[:size], self._rooms.flat[size : 2 * size]
        label, position = self._rooms.label[:size], extent
        parent.fill(NOWHERE)
        extent.fill(1)
        label.fill(0)
        for step, rows in records.pieces(2 * block, buffer):
            walk_blocks.settle(rows, first, np.uint8(step), parent, extent, label)
        for _, rows in told.pieces(block, buffer):
            walk_blocks.receive(rows, first, parent, extent, label)
        cursor = int(walk_blocks.place(first, np.uint32(cursor), parent, extent, position))
        for step, rows in records.pieces(2 * block + 1, buffer):
            walk_blocks.reply(rows, first, np.uint8(step), position)
            self._dealer.rows(tell, rows)
        return cursor, position

    def places(self, block: int) -> Iterator[NDArray[np.uint32]]:
        """The places of the block whose positions were made last, piece by piece in a room."""
        from cocite.kernels import walk_blocks

        first, size = self._cuts[block], int(self._cuts[block + 1]) - int(self._cuts[block])
        position, label = self._rooms.flat[size : 2 * size], self._rooms.label[:size]
        node = 0
        while node < size:
            count, node = walk_blocks.places(first, node, position, label, self._rooms.going)
            yield self._rooms.going[:count]

    def send_places(self, rows: NDArray[np.uint32], out: RowSpool) -> None:
        """Send places to their ranges."""
        self._ranges.rows(out, rows)

    def range(
        self, number: int, low: int, size: int, places: RowSpool
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """The members and the labels, a byte each, of the range that begins at position ``low``."""
        from cocite.kernels import walk_blocks

        member, label = self._rooms.at[:size], self._rooms.flat.view(np.uint8)[:size]
        for _, rows in places.pieces(number, self._rooms.merged):
            walk_blocks.collect(rows, np.uint32(low), member, label)
        return member, label


# -- external ----------------------------------------------------------------------------


_PIECE = 1 << 16


class TreeWords:
    """Words of a scratch file, read in pieces each time they are gone over."""

    def __init__(self, file: ScratchFile, begin: int, end: int) -> None:
        self._file, self._begin, self._end = file, begin, end

    def __iter__(self) -> Iterator[NDArray[np.uint32]]:
        for low in range(self._begin, self._end, _PIECE):
            piece = np.empty(min(_PIECE, self._end - low), np.uint32)
            self._file.read(4 * low, piece)
            yield piece


class ExternalTreeMaker(TogetherMaker):
    """Makes blobs from the samples of an external walker; they last until the next one is made."""

    def __init__(self, walker: ExternalWalker, nodes: int, directory: Path, numbers: range) -> None:
        super().__init__(numbers, walker.together)
        self._walker, self._nodes = walker, nodes
        self._rooms, self._cuts = walker.rooms, walker.cuts
        self._width = self._rooms.at.size // EIGHT * EIGHT
        ranges = range_cuts(nodes, self._width)
        self._block = BlockTrees(self._rooms, self._cuts, walker.dealer, ranges)
        self._messages = Spool(directory, self._cuts.size - 1)
        self._places = Spool(directory, ranges.size - 1)
        self._blob = ScratchFile(directory)

    def _make(self, samples: range) -> None:
        self._walker.walk(samples)

    def _layers(self) -> list[Maker]:
        return [self._lay_out]

    def _lay_out(self, sample: int) -> Blob:
        met = self._walker(sample)
        digest = xxhash.xxh3_64()
        members = self._write_positions(met, digest)
        labels = self._write_members(members, digest)
        words = tree_words(self._nodes, members)
        for piece in TreeWords(self._blob, labels, words):
            digest.update(piece.view(np.uint8).data)
        return Blob(TreeWords(self._blob, 0, words), members, met.live, digest.intdigest())

    def _write_positions(self, met: Meetings, digest: xxhash.xxh3_64) -> int:
        """Block after block; returns the number of members."""
        self._messages.clear()
        self._places.clear()
        cursor, messages = 0, self._messages
        for block in range(self._cuts.size - 1):
            made = self._block.positions(block, cursor, met.records, messages, messages)
            cursor, position = made
            for rows in self._block.places(block):
                self._block.send_places(self._named(rows), self._places)
            self._store(self._cuts[block], position, digest)
        return cursor

    def _store(
        self, first: np.uint32, position: NDArray[np.uint32], digest: xxhash.xxh3_64
    ) -> None:
        """Write the positions of a block."""
        self._blob.write(4 * int(first), position)
        digest.update(position.view(np.uint8).data)

    def _named(self, rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Places as they are dealt."""
        return rows

    def _write_members(self, members: int, digest: xxhash.xxh3_64) -> int:
        """Range after range of positions; returns where the labels begin, in words."""
        from cocite.kernels import trees

        labels = self._nodes + members
        for low, member, label in self._collected(members):
            size = member.size
            packed = np.zeros(-(-size // EIGHT), np.uint32)
            trees.pack_labels(label, packed.view(np.uint8))
            self._blob.write(4 * (self._nodes + low), member)
            self._blob.write(4 * (labels + low // EIGHT), packed)
            digest.update(member.view(np.uint8).data)
        end = labels + -(-members // EIGHT)
        self._blob.write(4 * end, np.zeros(tree_words(self._nodes, members) - end, np.uint32))
        return labels

    def _collected(
        self, members: int
    ) -> Iterator[tuple[int, NDArray[np.uint32], NDArray[np.uint8]]]:
        """The members and labels of each range of positions, and where it begins."""
        for number, low in enumerate(range(0, members, self._width)):
            size = min(self._width, members - low)
            member, label = self._block.range(number, low, size, self._places)
            yield low, member, label


class SelectingTreeMaker(ExternalTreeMaker):
    """The same for the nodes that are ``wanted``, uint32[m], ascending."""

    def __init__(
        self,
        walker: ExternalWalker,
        nodes: int,
        directory: Path,
        numbers: range,
        wanted: NDArray[np.uint32],
    ) -> None:
        super().__init__(walker, nodes, directory, numbers)
        self._requested = wanted
        self._labels = ScratchFile(directory)
        self._standing = np.empty(wanted.size, np.uint32)

    def _lay_out(self, sample: int) -> Blob:
        met = self._walker(sample)
        members = self._select(self._write_positions(met, xxhash.xxh3_64()))
        words = self._pack(members)
        parts = _Parts(self._standing, TreeWords(self._blob, 0, words))
        digest = xxhash.xxh3_64()
        for part in parts:
            digest.update(part.view(np.uint8).data)
        return Blob(parts, members, met.live, digest.intdigest())

    def _store(
        self, first: np.uint32, position: NDArray[np.uint32], digest: xxhash.xxh3_64
    ) -> None:
        """Positions among all nodes are not those among some."""

    def _named(self, rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """By the number of the node among those that are wanted, NOWHERE for none."""
        if rows.size:
            low, high = np.searchsorted(self._requested, rows[[0, -1], 1])
            near = self._requested[low : high + 1]
            places = np.searchsorted(near, rows[:, 1])
            near = np.append(near, np.uint32(NOWHERE))
            there = near[places] == rows[:, 1]
            rows[:, 1] = np.where(there, places + low, NOWHERE)
        return rows

    def _select(self, members: int) -> int:
        """Write the members that are wanted, and their labels, a byte each; returns how many."""
        from cocite.kernels import trees

        state, done = np.zeros(4, np.int64), 0
        self._standing.fill(NOWHERE)
        # What is filled begins behind the labels that are collected, in the same room.
        free = self._rooms.flat[-(-self._width // 4) :]
        joined, node = free.view(np.uint8)[: self._width + 1], free[self._width // 4 + 1 :]
        for _, member, label in self._collected(members):
            label[member != NOWHERE] |= trees.MARK
            size = int(trees.select(member, label, state, node, joined))
            self._blob.write(4 * done, node[:size])
            self._labels.write(done, joined[:size])
            self._standing[node[:size]] = np.arange(done, done + size, dtype=np.uint32)
            done += size
        return done

    def _pack(self, members: int) -> int:
        """Write the labels behind the members, packed; returns how many words there are."""
        from cocite.kernels import trees

        at = members
        for low in range(0, members, _PIECE):
            label = np.empty(min(_PIECE, members - low), np.uint8)
            self._labels.read(low, label)
            packed = np.zeros(-(-label.size // EIGHT), np.uint32)
            trees.pack_labels(label, packed.view(np.uint8))
            self._blob.write(4 * at, packed)
            at += packed.size
        words = tree_words(self._standing.size, members) - self._standing.size
        self._blob.write(4 * at, np.zeros(words - at, np.uint32))
        return words


class _Parts:
    """Where nodes stand, then the rest of a sample; gone over again and again."""

    def __init__(self, standing: NDArray[np.uint32], rest: TreeWords) -> None:
        self._standing, self._rest = standing, rest

    def __iter__(self) -> Iterator[NDArray[np.uint32]]:
        yield self._standing
        yield from self._rest


# -- blocks ------------------------------------------------------------------------------


_ROWS = 1 << 16
_SAMPLE_NODE = 36
"""Bytes a node of a block, of each sample that walks: tokens come and go, and records."""
_AHEAD = 3
"""Samples that are laid out at a time."""


@dataclass(frozen=True)
class BlockWork(PartitionWork):
    """What a :class:`TreeBlock` is to do, with so many ``rows`` under way."""

    rows: int

    @property
    def width(self) -> int:
        """Positions in a range: there is one range a block at most."""
        blocks = len(self.cuts) - 1
        return -(-self.nodes // (blocks * EIGHT)) * EIGHT


class TreeBlock(BlockWalker):
    """One block of a graph: its walks and its trees."""

    def __init__(self, work: BlockWork, block: int) -> None:
        """Open the block of that number, and check it. Raises
        :class:`~cocite.errors.StoreError`.
        """
        held = GraphBlock(work.folder, block, work.digest)
        plan, cuts = work.plan, np.array(work.cuts, np.uint32)
        own = Links(held.offsets, held.sources, held.weights if plan.weighted else None)
        weights = step_weights(own, plan.step) if plan.step.weighted else None
        rows = held.offsets, own.neighbors, own.weights
        part = BlockPart(
            placed_links(*rows, held.first, work.nodes),
            plan.step,
            plan.settings[LENGTH],
            plan.settings[SEED],
            cuts,
            work.rows,
            plan.turn,
            largest=max(held.last - held.first, work.width),
            weights=weights,
        )
        super().__init__(part, block)
        self._ranges = range_cuts(work.nodes, work.width)
        self._trees = BlockTrees(part.rooms, cuts, part.dealer, self._ranges)
        self._own_places: dict[int, Message] = {}

    def begin(self, samples: range) -> None:
        """Take up samples anew."""
        super().begin(samples)
        self._own_places = {}

    def lay_out(self, sample: int, cursor: int, *told: Message) -> tuple[object, ...]:
        """Where the block's nodes stand: where the next tree begins, and bytes sent; uint32[nodes]
        positions; then what it tells each block behind it, and the places of each range.
        """
        messages, tell = MemorySpool(self._blocks), MemorySpool(self._blocks)
        for _, _, tag, rows in unpack(told):
            messages.put(self._block, tag, rows)
        records = self.records[sample]
        found = self._trees.positions(self._block, cursor, records, messages, tell)
        cursor, positions = found[0], found[1].copy()
        places = MemorySpool(self._ranges.size - 1)
        for piece in self._trees.places(self._block):
            self._trees.send_places(piece, places)
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
        return cursor, sent, positions, *behind, *ranges

    def collect(self, sample: int, members: int, *places: Message | None) -> tuple[object, ...]:
        """The range of the block's number: its members uint32[size], and their labels packed, whole
        words of them. ``members`` is how many the sample has.
        """
        from cocite.kernels import trees

        number = self._block
        low, high = (min(int(cut), members) for cut in self._ranges[number : number + 2])
        box = MemorySpool(self._ranges.size - 1)
        for _, _, tag, rows in unpack([self._own_places.pop(sample), *places]):
            box.put(number, tag, rows)
        member, label = self._trees.range(number, low, high - low, box)
        packed = np.zeros(-(-(high - low) // EIGHT), np.uint32)
        trees.pack_labels(label, packed.view(np.uint8))
        return member.copy(), packed


def _letter(sample: int, letters: MemorySpool, bucket: int) -> Message:
    return pack([(sample, TOKENS, letters.take(bucket))])


@dataclass
class _LaidOut:
    """Handles of a sample that is being laid out."""

    members: Any
    sent: list[Any]
    positions: list[Any]
    places: list[list[Any]]  # by range, from each block


class BlocksMaker(PartitionMaker[BlockWork]):
    """Makes blobs of a graph in blocks."""

    ahead = _AHEAD

    def __init__(
        self, links: BlockedLinks, part: PartPlan, fit: MemoryPlan, folder: Path, numbers: range
    ) -> None:
        graph = links.whole
        work = BlockWork(
            str(graph.path.absolute()), graph.digest, tuple(graph.cuts), part, fit.rows
        )
        super().__init__(TreeBlock, work, graph, fit, folder, numbers)
        self._ranges = range_cuts(work.nodes, work.width)
        self._walk = BlocksWalk(self.crew, work.nodes, part.settings[LENGTH])
        self._live: dict[int, tuple[int, ...]] = {}

    @property
    def traffic(self) -> Traffic:
        """What blocks have sent each other."""
        return self._walk.traffic

    def draw(self, samples: range) -> None:
        """All walks of them."""
        self._live = self._walk.walk(samples)

    def ask(self, sample: int) -> _LaidOut:
        """Have a sample laid out, block after block, as soon as each can."""
        crew, blocks = self.crew, self.crew.size
        told: list[list[Any]] = [[] for _ in range(blocks)]
        ranges = self._ranges.size - 1
        found = _LaidOut(0, [], [], [[] for _ in range(ranges)])
        for block in range(blocks):
            behind = blocks - 1 - block
            cursor, sent, positions, *rest = crew.call(
                block, "lay_out", sample, found.members, *told[block], answers=3 + behind + ranges
            )
            found.members = cursor
            found.sent.append(sent)
            found.positions.append(positions)
            for other, parcel in enumerate(rest[:behind], block + 1):
                told[other].append(parcel)
            for number, parcel in enumerate(rest[behind:]):
                found.places[number].append(parcel)
        return found

    def put_together(self, sample: int, asked: _LaidOut) -> Blob:
        """Positions, then members and labels."""
        crew = self.crew
        members = int(crew.take([asked.members])[0])
        digest, at = xxhash.xxh3_64(), 0
        for handle in asked.positions:
            at = self._write(crew.take([handle])[0], at, digest)
        parts = [
            crew.call(number, "collect", sample, members, *places, answers=2)
            for number, places in enumerate(asked.places)
        ]
        labels = at + members
        last = labels
        for member, packed in parts:
            at = self._write(crew.take([member])[0], at, digest)
            last = self._write(crew.take([packed])[0], last, None)
        words = tree_words(self.work.nodes, members)
        self.blob.write(4 * last, np.zeros(words - last, np.uint32))
        for piece in TreeWords(self.blob, labels, words):
            digest.update(piece.view(np.uint8).data)
        self._walk.traffic = self.traffic.plus(trees=sum(crew.take(asked.sent)))
        live = self._live[sample]
        return Blob(TreeWords(self.blob, 0, words), members, live, digest.intdigest())

    def _write(self, words: NDArray[np.uint32], at: int, digest: xxhash.xxh3_64 | None) -> int:
        """Write words of the blob; returns where the next are."""
        words = np.ascontiguousarray(words)
        self.blob.write(4 * at, words)
        if digest is not None:
            digest.update(words.view(np.uint8).data)
        return at + words.size


def fit_blocks(links: BlockedLinks, part: PartPlan, means: Resources) -> MemoryPlan:
    """How the blocks fit the memory that each of them may take: as many samples at a time as that
    has room for. Raises :class:`ResourceError` if it has none for one.
    """
    check_partitions(links, part)
    graph, offsets = links.whole, links.offsets
    need = 0
    for count in range(TOGETHER, 0, -1):
        need = max(
            (8 + BLOCK_NODE + 8 + _SAMPLE_NODE * count) * (last - first)
            + (12 if part.weighted else 4) * int(offsets[last] - offsets[first])
            for first, last in pairwise(graph.cuts)
        )
        need += ROW_ROOM * _ROWS
        if need <= means.memory:
            return MemoryPlan(need, 1, tuple(graph.cuts[1:-1]), 0, _ROWS, 0, count, 0, graph.blocks)
    raise too_little("trees", links.nodes, need, means.memory, f"in {graph.blocks} blocks")
