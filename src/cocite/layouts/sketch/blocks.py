"""The sketch layout of a graph in blocks that each live somewhere (``layouts/rings/blocks.py``).

A block cuts the winners of its nodes to bits. Planes are of 512 nodes, and where a block begins or
ends among them, its planes have the bits of its nodes alone: the conductor puts those of its
neighbours to them. Blobs are those of ``build.py``, to the byte.

Cost: nothing is sent from block to block, bits to the conductor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.layouts.blobs import Blob
from cocite.layouts.rings.blocks import BlocksRingMaker, RingBlock
from cocite.layouts.sketch.format import BLOCK, blob_words
from cocite.layouts.sketch.planes import ring_planes
from cocite.measures import LENGTH
from cocite.measures.xjaccard import BITS

__all__ = ["BlocksPlaneMaker", "PlaneBlock"]

_WORD = 32


class PlaneBlock(RingBlock):
    """One block: the planes of its nodes."""

    def planes(self, sample: int) -> NDArray[np.uint32]:
        """uint32[groups of 512 nodes, length, bits, 16]: from the group of its first node to that
        of its last, without the bits of others.
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


class BlocksPlaneMaker(BlocksRingMaker):
    """Makes blobs of planes."""

    kind = PlaneBlock

    def ask(self, sample: int) -> list[Any]:
        """Have the planes made."""
        return [self.crew.call(block, "planes", sample)[0] for block in range(self.crew.size)]

    def put_together(self, sample: int, asked: list[Any]) -> Blob:
        """Those of all blocks, one behind the other."""
        settings, nodes = self.work.plan.settings, self.work.nodes
        digest = self.written(self._pieces(asked))
        return self.finished(blob_words(nodes, settings[LENGTH], settings[BITS]), nodes, digest)

    def _pieces(self, asked: list[Any]) -> Iterator[NDArray[np.uint32]]:
        """Groups that are whole; the last one of a block waits for its other nodes."""
        waits: NDArray[np.uint32] | None = None
        for handle, last in zip(asked, self.work.cuts[1:], strict=True):
            planes = np.array(self.crew.take([handle])[0])
            if waits is not None:
                planes[0] |= waits
            whole = len(planes) if last % BLOCK == 0 else len(planes) - 1
            waits = planes[whole] if whole < len(planes) else None
            yield planes[:whole]
        if waits is not None:
            yield waits
