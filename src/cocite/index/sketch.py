"""The sketch layout: some bits of a hash of each min-hash, in planes.

    plane[ceil(nodes / 512), length, bits, 16]    32-bit words, block of 512 nodes after block

Bit i of word w of a plane belongs to node 32 w + i of its block; what is beyond the last node is 0.
The members of a sample are its nodes, and say nothing more.

Size: ``bits`` / 8 bytes a node, ring and sample: with ``bits`` 1 a sixtieth of the layout minhash.
There are no lists: asking for related nodes reads all of it.
Source: Li, Koenig 2010, *b-bit minwise hashing*; ``kernels/sketch.py`` says how it is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.graph.links import Links
from cocite.index.blobs import Blob, Maker, SampledLayout
from cocite.index.plan import PartPlan
from cocite.index.rings import LANES, Layer, RingMaker, plan_rings
from cocite.index.room import Means, Room
from cocite.measures import LENGTH, SEED, PartSettings
from cocite.measures.xjaccard import BITS

__all__ = ["BLOCK", "PLANE", "SketchLayout", "blob_words"]

BLOCK, PLANE = 512, 16
"""Nodes of a block, and words of a plane."""


def blob_words(nodes: int, length: int, bits: int) -> int:
    """32-bit words of a blob."""
    return -(-nodes // BLOCK) * length * bits * PLANE


class SketchLayout(SampledLayout):
    """The layout ``sketch``."""

    together = LANES

    def place(
        self, nodes: int, members: Sequence[int], settings: PartSettings
    ) -> tuple[NDArray[np.uint64], int]:
        """uint64[samples, 3]: where the planes begin, the length, and the bits."""
        blobs = np.empty((len(members), 3), np.uint64)
        words = self.most_words(nodes, settings)
        blobs[:, 0] = np.arange(len(members)) * words
        blobs[:, 1:] = settings[LENGTH], settings[BITS]
        return blobs, len(members) * words

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Of any sample."""
        return blob_words(nodes, settings[LENGTH], settings[BITS])

    def plan_room(self, links: Links, part: PartPlan, means: Means) -> Room:
        """In memory if all fits, else on disk (``rings.py``)."""
        blob, length = 4 * self.most_words(links.nodes, part.settings), part.settings[LENGTH]
        return plan_rings(links, length, means, blob)

    def makers(self, links: Links, part: PartPlan, room: Room, folder: Path) -> list[Maker]:
        """One, with threads of its own."""
        return [RingMaker(links, part, room, folder, lambda: PlaneLayer(part))]


class PlaneLayer(Layer):
    """Cuts the winners of a sample to bits."""

    def __init__(self, part: PartPlan) -> None:
        self._bits, self._seed = part.settings[BITS], part.settings[SEED]
        self._turn = part.turn

    def __call__(self, sample: int, rings: Sequence[NDArray[np.uint32]]) -> Blob:
        """A blob of memory of its own."""
        from cocite.kernels import random, sketch

        nodes = rings[0].size
        planes = np.zeros((-(-nodes // BLOCK), len(rings), self._bits, PLANE), np.uint32)
        for ring, winners in enumerate(rings):
            step = np.uint64(self._turn + ring + 1)
            key = random.draw_key(np.uint64(self._seed), np.uint64(sample), step)
            sketch.sketch(winners, np.uint64(key), ring, planes)
        return Blob.of((planes.reshape(-1),), nodes)
