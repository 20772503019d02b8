"""Min-hashes of a graph in blocks that each live somewhere, in a process of its own or not.

    RingBlock         holds the rows of one block, scans them, and keeps the winners of its nodes
    BlocksRingMaker   conducts: one scan a ring for all samples together, then one sample after the
                      other is laid out: ``layouts/minhash/blocks.py``, ``layouts/sketch/blocks.py``

Before the first ring nothing is sent: what place a node has in an order, everybody can draw. What a
sample is laid out from comes to the conductor piece by piece, who writes it to a scratch file; what
is done if somebody is lost: ``layouts/apart.py``. Blobs are those of one machine, to the byte.

Memory of a block: its links and rows of values (``engine/blocks_scan.py``), and 4 bytes a node,
ring and sample for the winners, 24 a node and ring for a sample that is laid out. Of the conductor:
a piece of a blob.
Source: 001, section 2.3.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.engine.blocks_scan import BlocksScan, ScanBlock, block_scan_bytes
from cocite.engine.blocks_walk import Traffic
from cocite.engine.rings import LANES, ring_orders
from cocite.engine.scan import Fold
from cocite.graph.in_blocks import BlockedLinks, GraphBlock
from cocite.layouts.apart import ApartMaker, ApartWork
from cocite.layouts.blobs import Blob
from cocite.layouts.memory_plan import MemoryPlan, see_apart, too_little
from cocite.layouts.plan import PartPlan
from cocite.layouts.trees.external import Words
from cocite.means import Means
from cocite.measures import LENGTH, SEED

__all__ = ["BlocksRingMaker", "RingBlock", "RingWork", "fit_ring_blocks"]

_AHEAD = 2
"""Samples that are laid out at a time."""
_LAID_OUT = 24
"""Bytes a node and ring of a sample that is laid out: pairs, groups and cells."""


class RingWork(ApartWork):
    """What a :class:`RingBlock` is to do."""

    @property
    def length(self) -> int:
        """Rings of a sample."""
        return self.plan.settings[LENGTH]


class RingBlock(ScanBlock):
    """One block of a graph: its rings."""

    def __init__(self, work: RingWork, block: int) -> None:
        """Open the block of that number, and check it. Raises
        :class:`~cocite.errors.StoreError`.
        """
        held = GraphBlock(work.folder, block, work.digest)
        cuts = np.array(work.cuts, np.uint32)
        super().__init__(held.offsets, held.sources, held.first, cuts, LANES, np.uint32)
        self.work, self.first, self.nodes = work, held.first, held.last - held.first
        self._samples = range(0)
        self._winners = np.empty((0, 0, 0), np.uint32)

    def rings(self, samples: range) -> tuple[object, ...]:
        """Take up samples anew, what there was of others is gone; sends nothing."""
        from cocite.kernels import ring_rows

        work = self.work
        settings = work.plan.settings
        self._orders = ring_orders(samples, work.nodes, settings[SEED], work.plan.turn)
        ring_rows.places_of(self._orders, self._read, self._now)
        self._samples = samples
        self._winners = np.empty((work.length, len(samples), self.nodes), np.uint32)
        return 0, *(None for _ in self._slots)

    def ring(self, step: int, *heard: NDArray[np.uint32] | None) -> tuple[object, ...]:
        """One ring of all samples, from what the one before it sent here; returns what it sends
        for the next one, nothing behind the last.
        """
        from cocite.kernels import ring_rows

        self._hear(heard)
        self._combine(Fold.MIN, True)
        lanes = len(self._samples)
        own = self._now[self._here]
        ring_rows.winners(self._orders[:lanes], own, np.uint64(0), self._winners[step - 1])
        if step == self.work.length:
            return 0, *(None for _ in self._slots)
        return self._sent(lanes)

    def winners_of(self, sample: int) -> NDArray[np.uint32]:
        """uint32[length, its nodes]: the winners of a sample."""
        return self._winners[:, sample - self._samples.start]


class BlocksRingMaker(ApartMaker[RingWork]):
    """Makes blobs of a graph in blocks."""

    ahead = _AHEAD
    kind: ClassVar[type[RingBlock]]
    """What holds a block."""

    def __init__(
        self, links: BlockedLinks, part: PartPlan, fit: MemoryPlan, folder: Path, numbers: range
    ) -> None:
        graph = links.whole
        work = RingWork(str(graph.path.absolute()), graph.digest, tuple(graph.cuts), part)
        super().__init__(self.kind, work, graph, fit, folder, numbers)
        self.scan = BlocksScan(self.crew, work.nodes)

    @property
    def traffic(self) -> Traffic:
        """What blocks have sent each other."""
        return self.scan.traffic

    def draw(self, samples: range) -> None:
        """One scan a ring, of all of them."""
        self.scan.begin("rings", [(samples,)] * self.crew.size, len(samples))
        for step in range(1, self.work.length + 1):
            self.scan.step("ring", step, samples=len(samples))

    def forget(self) -> None:
        """Of the scan."""
        self.scan.forget()

    def written(self, pieces: Iterator[NDArray[np.uint32]]) -> int:
        """Write pieces of the blob one behind the other; returns its digest."""
        digest, at = xxhash.xxh3_64(), 0
        for piece in pieces:
            words = np.ascontiguousarray(piece).reshape(-1)
            self.blob.write(4 * at, words)
            digest.update(words.view(np.uint8).data)
            at += words.size
        return digest.intdigest()

    def finished(self, words: int, members: int, digest: int) -> Blob:
        """The blob that was written."""
        return Blob(Words(self.blob, 0, words), members, (), digest)


def fit_ring_blocks(links: BlockedLinks, part: PartPlan, means: Means) -> MemoryPlan:
    """How the blocks fit the memory that each of them may take: as many samples at a time as that
    has room for. Raises :class:`ResourceError` if it has none for one.
    """
    see_apart(links, part)
    graph, offsets, length = links.whole, links.offsets, part.settings[LENGTH]
    need = 0
    for count in range(LANES, 0, -1):
        need = max(
            block_scan_bytes(last - first, int(offsets[last] - offsets[first]), graph.nodes)
            + (4 * count + _LAID_OUT * _AHEAD) * length * (last - first)
            for first, last in pairwise(graph.cuts)
        )
        if need <= means.memory:
            return MemoryPlan(need, 1, tuple(graph.cuts[1:-1]), together=count, apart=graph.blocks)
    what = f"in {graph.blocks} blocks"
    raise too_little(part.layout, links.nodes, need, means.memory, what)
