"""Min-hashes of a partitioned graph, whose blocks may be in separate processes.

The first ring needs no messages, because every block can compute a node's position in an order.
Groups need 12 bytes of messages per node per ring: a node's block sends (winner, node) to the
winner's block, which makes the groups and responds with where they begin. The node's block then
makes the cells. Planes need no messages; if a block boundary divides a group of 512 nodes, the
coordinator merges the bits. Blobs are byte-identical to those from a build in memory. A block needs
memory for its links and rows of values (``engine/partitions.py``), 4 bytes per node per ring per
sample for winners, and 24 per node per ring for each sample being laid out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from cocite.constants import NOWHERE, Ints, Words
from cocite.engine.carriers import Traffic
from cocite.engine.partitions import BlocksScan, ScanBlock, block_scan_bytes
from cocite.engine.scan import LANES, Fold, ring_orders
from cocite.graph.partitions import BlockedLinks
from cocite.index.layouts.batch_maker import Blob, PartitionMaker, PartitionWork, SampleJob
from cocite.index.layouts.contract import PartPlan
from cocite.index.layouts.memory_plan import MemoryPlan, fit_partitions
from cocite.index.layouts.minhash.reader import BLOCK, check_words, minhash_words, ring_planes
from cocite.kernels import minhash
from cocite.measures import LENGTH, SEED
from cocite.measures.xjaccard import BITS
from cocite.resources import Resources

_AHEAD = 2
"""Number of samples to lay out at a time."""
_LAID_OUT = 24
"""Bytes for pairs, groups and cells, per node and ring of each sample that is laid out."""
_WORD = 32


class Dealt(NamedTuple):
    """A message to another block: ``pairs`` uint32[k, 2] of (winner, node), with winners counted
    from the receiver's first node; and ``counts`` int64[length], the number of pairs in each ring.
    """

    pairs: Words
    counts: Ints


class RingBlock(ScanBlock):
    """The rings of one graph block, the cells or planes of its nodes, and its winners' groups."""

    def __init__(self, work: PartitionWork, block: int) -> None:
        held = work.block(block)
        cuts = np.array(work.cuts, np.uint32)
        super().__init__(held.offsets, held.sources, held.first, cuts, LANES, np.uint32)
        self.work, self.first, self.nodes = work, held.first, held.last - held.first
        self._length = work.plan.settings[LENGTH]
        self._samples = range(0)
        self._winners = np.empty((0, 0, 0), np.uint32)
        self._begins = np.empty(self.nodes, np.uint32)
        self._dealt: dict[int, list[tuple[Ints, list[int]]]] = {}

    def neighborhoods(self, samples: range) -> tuple[object, ...]:
        """Start new samples, discarding earlier ones; send no messages."""
        work = self.work
        settings = work.plan.settings
        self._orders = ring_orders(samples, work.nodes, settings[SEED], work.plan.turn)
        minhash.places(self._orders, self.border.reads, self._values)
        self._samples, self._dealt = samples, {}
        self._winners = np.empty((self._length, len(samples), self.nodes), np.uint32)
        return self._nothing_sent()

    def ring(self, step: int, *messages: Words | None) -> tuple[object, ...]:
        """Compute a ring of all samples from ``messages``; return messages for the next ring."""
        self._combine(Fold.MIN, True, messages)
        lanes = len(self._samples)
        found = self._winners[step - 1]
        minhash.winners(self._orders[:lanes], self._own, np.uint64(0), found)
        if step == self._length:
            return self._nothing_sent()
        return self._sent(lanes)

    def winners_of(self, sample: int) -> Words:
        """Return a sample's winners, uint32[length, nodes of the block]."""
        return self._winners[:, sample - self._samples.start]

    def deal(self, sample: int) -> tuple[object, ...]:
        """Return the number of bytes for other blocks, then a message to each block."""
        blocks = self.border.cuts.size - 1
        nodes = np.arange(self.first, self.first + self.nodes, dtype=np.uint32)
        pairs: list[list[Words]] = [[] for _ in range(blocks)]
        orders: list[tuple[Ints, list[int]]] = []
        for winners in self.winners_of(sample):
            owner = np.searchsorted(self.border.cuts, winners, side="right") - 1
            order = np.argsort(owner, kind="stable")
            ends = np.searchsorted(owner[order], np.arange(blocks + 1)).tolist()
            orders.append((order, ends))
            for block in range(blocks):
                mine = order[ends[block] : ends[block + 1]]
                rows = np.empty((mine.size, 2), np.uint32)
                rows[:, 0] = winners[mine] - self.border.cuts[block]
                rows[:, 1] = nodes[mine]
                pairs[block].append(rows)
        self._dealt[sample] = orders
        dealt = [
            Dealt(np.concatenate(rows), np.array([len(each) for each in rows], np.int64))
            for rows in pairs
        ]
        sent = sum(each.pairs.nbytes for each in dealt) - dealt[self.border.block].pairs.nbytes
        return sent, *dealt

    def group(self, *dealt: Dealt) -> tuple[object, ...]:
        """Group the pairs from all blocks.

        The first item returned is a pair: int64[length], the words of each ring's groups, and the
        number of bytes for other blocks. Each ring's groups, uint32, follow. Last come, for each
        block, the words where the pairs' groups begin, counted from this block's first group in the
        ring.
        """
        length = self._length
        ends = [np.concatenate([[0], np.cumsum(each.counts)]) for each in dealt]
        begins = [np.empty(len(each.pairs), np.uint32) for each in dealt]
        groups, words = [], np.zeros(length, np.int64)
        for ring in range(length):
            parts = [slice(int(end[ring]), int(end[ring + 1])) for end in ends]
            pairs = np.concatenate([d.pairs[part] for d, part in zip(dealt, parts, strict=True)])
            cells = np.empty(len(pairs), np.uint32)
            group = np.empty(2 * len(pairs), np.uint32)  # maximum size: all in groups of two
            winners, nodes = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
            scratch = self._begins, cells.reshape(-1, 1), group, np.uint64(0)
            size = int(minhash.list_groups(winners, nodes, 0, *scratch))
            found = group[:size].copy()
            minhash.name_from(found, np.uint32(self.first))
            groups.append(found)
            words[ring], at = size, 0
            for mine, part in zip(begins, parts, strict=True):
                count = part.stop - part.start
                mine[part] = cells[at : at + count]
                at += count
        sent = sum(each.nbytes for each in begins) - begins[self.border.block].nbytes
        return (words, sent), *groups, *begins

    def cells(self, sample: int, bases: Ints, *begins: Words) -> Words:
        """Return uint32[nodes of the block, length]: where each node's group begins.

        ``begins`` are the messages from all blocks; ``bases`` int64[length, blocks] is where the
        groups of each ring and block begin.
        """
        found = np.empty((self.nodes, self._length), np.uint32)
        at = [0] * len(begins)
        for ring, (order, ends) in enumerate(self._dealt.pop(sample)):
            for block, (low, high) in enumerate(pairwise(ends)):
                mine = begins[block][at[block] : at[block] + high - low]
                whole = mine.astype(np.int64) + bases[ring, block]
                found[order[low:high], ring] = np.where(mine == NOWHERE, NOWHERE, whole)
                at[block] += high - low
        return found

    def planes(self, sample: int) -> Words:
        """Return uint32[groups of 512 nodes, length, bits, 16], for the groups that overlap the
        block, with zero bits for nodes of other blocks.
        """
        before = self.first % BLOCK
        padded = np.zeros(before + self.nodes, np.uint32)
        rings = []
        for winners in self.winners_of(sample):
            padded[before:] = winners
            rings.append(padded.copy())
        found = ring_planes(self.work.plan, sample, rings)
        found[0, :, :, : before // _WORD] = 0
        found[0, :, :, before // _WORD] &= np.uint32(2**_WORD - 2 ** (before % _WORD))
        return found


class _RingRequest(NamedTuple):
    """Handles to each block's results for a sample that is being laid out."""

    sent: list[Any]
    words: list[Any]
    groups: list[list[Any]]
    begins: list[list[Any]]


class PartitionRingMaker(PartitionMaker):
    """Makes blobs of min-hashes on a partitioned graph."""

    ahead = _AHEAD

    def __init__(self, links: BlockedLinks, job: SampleJob, fit: MemoryPlan) -> None:
        super().__init__(RingBlock, links, job, fit)
        self.scan = BlocksScan(self.crew, self.work.nodes)
        self._length = job.plan.settings[LENGTH]
        self._sent = 0

    @property
    def traffic(self) -> Traffic:
        """Return the traffic between blocks."""
        return self.scan.traffic.plus(groups=self._sent)

    def draw(self, samples: range) -> None:
        """Draw all samples with one scan per ring."""
        self.scan.begin("neighborhoods", [(samples,)] * self.crew.size, len(samples))
        for step in range(1, self._length + 1):
            self.scan.step("ring", step, samples=len(samples))

    def evict(self) -> None:
        """Release the scan's state."""
        self.scan.evict()

    def ask(self, sample: int) -> Any:
        """Start making the planes or the groups of a sample."""
        if not self.work.plan.settings[BITS]:
            return self._ask_groups(sample)
        return [self.crew.call(block, "planes", sample)[0] for block in range(self.crew.size)]

    def put_together(self, sample: int, asked: Any) -> Blob:
        """Assemble the planes or the groups."""
        if self.work.plan.settings[BITS]:
            return self.written(self._plane_pieces(asked), self.work.nodes)
        return self._groups(sample, asked)

    def _ask_groups(self, sample: int) -> _RingRequest:
        crew, length = self.crew, self._length
        blocks = range(crew.size)
        dealt = [crew.call(block, "deal", sample, answers=1 + crew.size) for block in blocks]
        found = _RingRequest([each[0] for each in dealt], [], [], [])
        for block in blocks:
            words, *rest = crew.call(
                block, "group", *(mine[1 + block] for mine in dealt), answers=1 + length + crew.size
            )
            found.words.append(words)
            found.groups.append(rest[:length])
            found.begins.append(rest[length:])
        return found

    def _groups(self, sample: int, asked: _RingRequest) -> Blob:
        """Return the blob: the cells of all blocks, then the groups of all rings."""
        replies = self.crew.take(asked.words)
        words = np.array([words for words, _ in replies]).T  # int64[length, blocks]
        ends = np.cumsum(words.reshape(-1))
        members = int(ends[-1])
        check_words(sample, members)
        bases = (ends - words.reshape(-1)).reshape(words.shape)
        nodes, length = self.work.nodes, self._length
        size = minhash_words(nodes, length, members)
        self._sent += sum(self.crew.take(asked.sent)) + sum(sent for _, sent in replies)
        padding = size - nodes * length - members
        return self.written(self._group_pieces(sample, bases, asked, padding), members)

    def _group_pieces(
        self, sample: int, bases: Ints, asked: _RingRequest, padding: int
    ) -> Iterator[Words]:
        crew, blocks = self.crew, range(self.crew.size)
        cells = [
            crew.call(b, "cells", sample, bases, *(each[b] for each in asked.begins))[0]
            for b in blocks
        ]
        for handle in cells:
            yield crew.take([handle])[0]
        for ring in range(self._length):
            for block in blocks:
                yield crew.take([asked.groups[block][ring]])[0]
        yield np.zeros(padding, np.uint32)

    def _plane_pieces(self, asked: list[Any]) -> Iterator[Words]:
        """Yield complete groups; a block's last group is completed by the next block."""
        waits: Words | None = None
        for handle, last in zip(asked, self.work.cuts[1:], strict=True):
            planes = np.array(self.crew.take([handle])[0])
            if waits is not None:
                planes[0] |= waits
            whole = len(planes) if last % BLOCK == 0 else len(planes) - 1
            waits = planes[whole] if whole < len(planes) else None
            yield planes[:whole]
        if waits is not None:
            yield waits


def fit_ring_blocks(links: BlockedLinks, part: PartPlan, means: Resources) -> MemoryPlan:
    """Plan the memory of partitions (:func:`fit_partitions`)."""
    length = part.settings[LENGTH]

    def need(samples: int, nodes: int, edges: int) -> int:
        rings = (4 * samples + _LAID_OUT * _AHEAD) * length * nodes
        return block_scan_bytes(nodes, edges, links.nodes) + rings

    return fit_partitions(links, part, means, LANES, need)
