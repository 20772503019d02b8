"""Min-hashes of a graph in blocks that each live somewhere, in a process of its own or not.

    RingBlock         holds the rows of one block, scans them, and keeps the winners of its nodes
    BlocksRingMaker   conducts: one scan a ring for all samples together, then one sample after the
                      other is laid out: ``layouts/minhash/blocks.py``, ``layouts/sketch/blocks.py``

Before the first ring nothing is sent: what place a node has in an order, everybody can draw. What a
sample is laid out from is asked for ahead of the one before it, and comes to the conductor piece by
piece, who writes it to a scratch file. Blobs are those of one machine, to the byte.

If somebody is lost, the samples that are not laid out are scanned again; those that are finished
stay, and what a build has written stays (``index/sharded.py``).

Memory of a block: its links and rows of values (``engine/blocks_scan.py``), and 4 bytes a node,
ring and sample for the winners, 24 a node and ring for a sample that is laid out. Of the conductor:
a piece of a blob.
Source: 001, section 2.3.1.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.engine.blocks_scan import BlocksScan, ScanBlock, block_scan_bytes
from cocite.engine.blocks_walk import Traffic
from cocite.engine.rings import LANES, ring_orders
from cocite.engine.scan import Fold
from cocite.errors import LostWorker
from cocite.graph.in_blocks import BlockedLinks, GraphBlock
from cocite.layouts.blobs import Blob, Maker
from cocite.layouts.memory_plan import MemoryPlan, see_apart, too_little
from cocite.layouts.plan import PartPlan
from cocite.layouts.together import TogetherMaker
from cocite.layouts.trees.external import Words
from cocite.means import Means
from cocite.measures import LENGTH, SEED
from cocite.runner.crew import Alone, Crew
from cocite.store import ScratchFile

__all__ = ["BlocksRingMaker", "RingBlock", "RingWork", "fit_ring_blocks"]

_LOSSES = 8
"""How often in a row somebody may be lost before a sample is finished."""
_AHEAD = 2
"""Samples that are laid out at a time."""
_LAID_OUT = 24
"""Bytes a node and ring of a sample that is laid out: pairs, groups and cells."""


@dataclass(frozen=True)
class RingWork:
    """What a :class:`RingBlock` is to do: the graph in blocks, its digest and cuts; the part."""

    folder: str
    digest: str
    cuts: tuple[int, ...]
    plan: PartPlan

    @property
    def nodes(self) -> int:
        """Of the whole graph."""
        return self.cuts[-1]

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


class BlocksRingMaker(TogetherMaker):
    """Makes blobs of a graph in blocks; each lasts until the next one is made."""

    kind: ClassVar[type[RingBlock]]
    """What holds a block."""

    def __init__(
        self, links: BlockedLinks, part: PartPlan, fit: MemoryPlan, folder: Path, numbers: range
    ) -> None:
        super().__init__(numbers, fit.together)
        graph = links.whole
        work = RingWork(str(graph.path.absolute()), graph.digest, tuple(graph.cuts), part)
        arguments = [(work, block) for block in range(graph.blocks)]
        self.work, self.blob = work, ScratchFile(folder)
        self.crew: Crew = (graph.crew or Alone)(self.kind, arguments, fit.memory)
        self.scan = BlocksScan(self.crew, work.nodes)
        self._asked: dict[int, Any] = {}
        self._held = range(0)
        self._losses = 0

    @property
    def traffic(self) -> Traffic:
        """What blocks have sent each other."""
        return self.scan.traffic

    def _make(self, samples: range) -> None:
        while True:
            self._asked = {}
            try:
                self.scan.begin("rings", [(samples,)] * self.crew.size, len(samples))
                for step in range(1, self.work.length + 1):
                    self.scan.step("ring", step, samples=len(samples))
                self._held = samples
                return
            except LostWorker as error:
                self._lost(error)

    def _layers(self) -> list[Maker]:
        return [self._lay_out]

    def _lay_out(self, sample: int) -> Blob:
        while True:
            try:
                for ahead in range(sample, min(sample + _AHEAD, self._held.stop)):
                    if ahead not in self._asked:
                        self._asked[ahead] = self.ask(ahead)
                blob = self.put_together(sample, self._asked.pop(sample))
                self._losses = 0
                return blob
            except LostWorker as error:
                self._lost(error)
                self._make(range(sample, self._held.stop))

    def _lost(self, error: LostWorker) -> None:
        """Somebody was lost: those who are there anew know nothing of what was scanned."""
        self._losses += 1
        if self._losses > _LOSSES:
            raise error
        self._asked = {}
        self.scan.forget()
        self.crew.again()

    @abstractmethod
    def ask(self, sample: int) -> Any:
        """Have the blocks lay a sample out; returns handles of what comes of it."""

    @abstractmethod
    def put_together(self, sample: int, asked: Any) -> Blob:
        """The blob, from what was asked for."""

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
