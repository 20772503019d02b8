"""The minhash layout of a graph in blocks that each live somewhere (``layouts/rings/blocks.py``).

    node's block      deals (winner, node) to the block of the winner, ring after ring
    winner's block    makes the groups of its winners, and answers where each begins
    node's block      makes the cells of its nodes, when it is known how long all groups are
    conductor         cells, block after block; then groups, ring after ring and block after block

Groups of a ring are in order of their winners, so those of a block are behind those of the blocks
before it. Blobs are those of ``build.py``, to the byte. Cost: 12 bytes are sent a node and ring.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.codes import NOWHERE
from cocite.layouts.blobs import Blob
from cocite.layouts.minhash.format import blob_words, check_words
from cocite.layouts.rings.blocks import BlocksRingMaker, RingBlock, RingWork

__all__ = ["BlocksGroupMaker", "GroupBlock"]


class Dealt(NamedTuple):
    """What goes from a block to another: ``pairs`` uint32[k, 2] of winners, counted from the
    other's first node, and nodes; so many of each ring, int64[length].
    """

    pairs: NDArray[np.uint32]
    counts: NDArray[np.int64]


class GroupBlock(RingBlock):
    """One block: its nodes' cells, and the groups of its nodes where they win."""

    def __init__(self, work: RingWork, block: int) -> None:
        """As :class:`~cocite.layouts.rings.blocks.RingBlock`."""
        super().__init__(work, block)
        self._begins = np.empty(self.nodes, np.uint32)
        self._dealt: dict[int, list[tuple[NDArray[np.int64], list[int]]]] = {}

    def rings(self, samples: range) -> tuple[object, ...]:
        """Take up samples anew."""
        self._dealt = {}
        return super().rings(samples)

    def deal(self, sample: int) -> tuple[object, ...]:
        """Bytes for other blocks; then what is dealt to each block."""
        blocks = self._cuts.size - 1
        nodes = np.arange(self.first, self.first + self.nodes, dtype=np.uint32)
        pairs: list[list[NDArray[np.uint32]]] = [[] for _ in range(blocks)]
        orders: list[tuple[NDArray[np.int64], list[int]]] = []
        for winners in self.winners_of(sample):
            owner = np.searchsorted(self._cuts, winners, side="right") - 1
            order = np.argsort(owner, kind="stable")
            ends = np.searchsorted(owner[order], np.arange(blocks + 1)).tolist()
            orders.append((order, ends))
            for block in range(blocks):
                mine = order[ends[block] : ends[block + 1]]
                rows = np.empty((mine.size, 2), np.uint32)
                rows[:, 0] = winners[mine] - self._cuts[block]
                rows[:, 1] = nodes[mine]
                pairs[block].append(rows)
        self._dealt[sample] = orders
        dealt = [
            Dealt(np.concatenate(rows), np.array([len(each) for each in rows], np.int64))
            for rows in pairs
        ]
        sent = sum(each.pairs.nbytes for block, each in enumerate(dealt) if block != self._block)
        return sent, *dealt

    def group(self, *dealt: Dealt) -> tuple[object, ...]:
        """From what all blocks have dealt: int64[length] words of the groups of each ring, and
        bytes for other blocks; the groups of each ring, uint32; then for each block where the group
        of each of its pairs begins, counted from the first of this block and ring.
        """
        from cocite.kernels import minhash_groups

        length = self.work.length
        ends = [np.concatenate([[0], np.cumsum(each.counts)]) for each in dealt]
        begins = [np.empty(len(each.pairs), np.uint32) for each in dealt]
        groups, words = [], np.zeros(length, np.int64)
        for ring in range(length):
            parts = [slice(int(end[ring]), int(end[ring + 1])) for end in ends]
            pairs = np.concatenate([d.pairs[part] for d, part in zip(dealt, parts, strict=True)])
            cells = np.empty(len(pairs), np.uint32)
            group = np.empty(2 * len(pairs), np.uint32)  # most if all are in pairs
            size = int(minhash_groups.list_pairs(pairs, self._begins, cells, group))
            found = group[:size].copy()
            minhash_groups.name_from(found, np.uint32(self.first))
            groups.append(found)
            words[ring], at = size, 0
            for mine, part in zip(begins, parts, strict=True):
                count = part.stop - part.start
                mine[part] = cells[at : at + count]
                at += count
        sent = sum(each.nbytes for block, each in enumerate(begins) if block != self._block)
        return (words, sent), *groups, *begins

    def cells(
        self, sample: int, bases: NDArray[np.int64], *begins: NDArray[np.uint32]
    ) -> NDArray[np.uint32]:
        """uint32[its nodes, length]: where the group of each node begins, from where those of each
        ring and block do, ``bases`` int64[length, blocks], and from what each block has answered.
        """
        found = np.empty((self.nodes, self.work.length), np.uint32)
        at = [0] * len(begins)
        for ring, (order, ends) in enumerate(self._dealt.pop(sample)):
            for block, (low, high) in enumerate(pairwise(ends)):
                mine = begins[block][at[block] : at[block] + high - low]
                whole = mine.astype(np.int64) + bases[ring, block]
                found[order[low:high], ring] = np.where(mine == NOWHERE, NOWHERE, whole)
                at[block] += high - low
        return found


class _Asked(NamedTuple):
    """Handles of a sample that is being laid out, of each block."""

    sent: list[Any]
    words: list[Any]
    groups: list[list[Any]]
    begins: list[list[Any]]


class BlocksGroupMaker(BlocksRingMaker):
    """Makes blobs of groups."""

    kind = GroupBlock

    def ask(self, sample: int) -> _Asked:
        """Have the groups made."""
        crew, length = self.crew, self.work.length
        blocks = range(crew.size)
        dealt = [crew.call(block, "deal", sample, answers=1 + crew.size) for block in blocks]
        found = _Asked([each[0] for each in dealt], [], [], [])
        for block in blocks:
            words, *rest = crew.call(
                block,
                "group",
                *(mine[1 + block] for mine in dealt),
                answers=1 + length + crew.size,
            )
            found.words.append(words)
            found.groups.append(rest[:length])
            found.begins.append(rest[length:])
        return found

    def put_together(self, sample: int, asked: _Asked) -> Blob:
        """Cells of all blocks, then groups of all rings."""
        told = self.crew.take(asked.words)
        words = np.array([words for words, _ in told]).T  # int64[length, blocks]
        ends = np.cumsum(words.reshape(-1))
        members = int(ends[-1])
        check_words(sample, members)
        bases = (ends - words.reshape(-1)).reshape(words.shape)
        nodes, length = self.work.nodes, self.work.length
        size = blob_words(nodes, length, members)
        digest = self.written(self._pieces(sample, bases, asked, size - nodes * length - members))
        sent = sum(self.crew.take(asked.sent)) + sum(size for _, size in told)
        self.scan.traffic = self.traffic.plus(groups=sent)
        return self.finished(size, members, digest)

    def _pieces(
        self, sample: int, bases: NDArray[np.int64], asked: _Asked, padding: int
    ) -> Iterator[NDArray[np.uint32]]:
        crew, blocks = self.crew, range(self.crew.size)
        cells = [
            crew.call(b, "cells", sample, bases, *(each[b] for each in asked.begins))[0]
            for b in blocks
        ]
        for handle in cells:
            yield crew.take([handle])[0]
        for ring in range(self.work.length):
            for block in blocks:
                yield crew.take([asked.groups[block][ring]])[0]
        yield np.zeros(padding, np.uint32)
