"""The trees layout in constant memory: block after block, from the records of an external walk.

    position[node] = position[parent] + offset,    of a root: where the tree before it ends

A parent is smaller than its children, so one ascending pass over the blocks gives all positions. A
block's nodes have their parents in the block, or in one before it, which has sent a message
(node, position, label) by then. Every place (position, node, label) is then dealt to its range of
positions, and the ranges are collected one after another: members and labels in order.

The blob grows in a scratch file, and what reads it reads pieces. It is the one that
``layouts/trees/build.py`` makes, to the byte.

Of pages that are wanted only, ranges of positions are cut down to them as they are collected
(``kernels/trees.py``, ``select``); where each of them stands is kept in memory.

Memory: what the walk had (``engine/external.py``), used again; 12 bytes a page that is wanted.
Scratch: the walk's, 12 bytes for each message and each place, and the blob: at most 33 bytes a
node, and 36 for each sample that walks.

Source: 001, section 2.1.3 (collecting trees by sorting and merging); there it takes a pass for each
step, with offsets one pass is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.codes import NOWHERE
from cocite.engine.external import ExternalWalker, Meetings
from cocite.layouts.blobs import Blob, Maker
from cocite.layouts.together import TogetherMaker
from cocite.layouts.trees.block import EIGHT, BlockTrees, range_cuts
from cocite.layouts.trees.format import blob_words
from cocite.store import ScratchFile, Spool

__all__ = ["ExternalTreeMaker", "SelectingTreeMaker", "Words"]

_PIECE = 1 << 16


class Words:
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
        words = blob_words(self._nodes, members)
        for piece in Words(self._blob, labels, words):
            digest.update(piece.view(np.uint8).data)
        return Blob(Words(self._blob, 0, words), members, met.live, digest.intdigest())

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
        self._blob.write(4 * end, np.zeros(blob_words(self._nodes, members) - end, np.uint32))
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
        self._wanted = wanted
        self._labels = ScratchFile(directory)
        self._standing = np.empty(wanted.size, np.uint32)

    def _lay_out(self, sample: int) -> Blob:
        met = self._walker(sample)
        members = self._select(self._write_positions(met, xxhash.xxh3_64()))
        words = self._pack(members)
        parts = _Parts(self._standing, Words(self._blob, 0, words))
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
            low, high = np.searchsorted(self._wanted, rows[[0, -1], 1])
            near = self._wanted[low : high + 1]
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
        words = blob_words(self._standing.size, members) - self._standing.size
        self._blob.write(4 * at, np.zeros(words - at, np.uint32))
        return words


class _Parts:
    """Where nodes stand, then the rest of a sample; gone over again and again."""

    def __init__(self, standing: NDArray[np.uint32], rest: Words) -> None:
        self._standing, self._rest = standing, rest

    def __iter__(self) -> Iterator[NDArray[np.uint32]]:
        yield self._standing
        yield from self._rest
