"""Making the sketch layout (``format.py``): winners cut to bits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.graph.in_blocks import BlockedLinks
from cocite.graph.rows import Links
from cocite.layouts.blobs import Blob, Maker, SampledBuilder
from cocite.layouts.memory_plan import MemoryPlan
from cocite.layouts.plan import PartPlan
from cocite.layouts.rings.build import Layer, RingMaker, plan_rings, wanted_bytes, wanted_of
from cocite.layouts.sketch.format import BLOCK, PLANE, SketchFormat
from cocite.means import Means
from cocite.measures import SEED
from cocite.measures.xjaccard import BITS

__all__ = ["SketchBuilder", "ring_planes"]


class SketchBuilder(SketchFormat, SampledBuilder):
    """Of the layout ``sketch``."""

    def fitted(self, links: Links, part: PartPlan, means: Means) -> MemoryPlan:
        """In memory if all fits, else on disk (``layouts/rings/build.py``)."""
        if isinstance(links, BlockedLinks):
            from cocite.layouts.rings.blocks import fit_ring_blocks

            return fit_ring_blocks(links, part, means)
        blob = 4 * self.most_words(part.stored_nodes(links.nodes), part.settings)
        return plan_rings(links, part, means, blob + wanted_bytes(part))

    def makers(
        self, links: Links, part: PartPlan, fit: MemoryPlan, folder: Path, numbers: range
    ) -> list[Maker]:
        """One, with threads of its own."""
        if isinstance(links, BlockedLinks):
            from cocite.layouts.sketch.blocks import BlocksPlaneMaker

            return [BlocksPlaneMaker(links, part, fit, folder, numbers)]
        return [RingMaker(links, part, fit, folder, numbers, lambda: PlaneLayer(part))]


class PlaneLayer(Layer):
    """Cuts the winners of a sample to bits."""

    def __init__(self, part: PartPlan) -> None:
        self._part = part
        self._wanted = None if part.wanted is None else part.wanted.ids()

    def __call__(self, sample: int, rings: Sequence[NDArray[np.uint32]]) -> Blob:
        """A blob of memory of its own."""
        nodes = rings[0].size if self._wanted is None else self._wanted.size
        mine = [wanted_of(winners, self._wanted) for winners in rings]
        return Blob.of((ring_planes(self._part, sample, mine).reshape(-1),), nodes)


def ring_planes(
    part: PartPlan, sample: int, rings: Sequence[NDArray[np.uint32]]
) -> NDArray[np.uint32]:
    """uint32[groups of 512 nodes, length, bits, 16]: the winners of the rings of a sample, each
    uint32[nodes], cut to bits.
    """
    from cocite.kernels import random, sketch

    bits, seed = part.settings[BITS], part.settings[SEED]
    planes = np.zeros((-(-rings[0].size // BLOCK), len(rings), bits, PLANE), np.uint32)
    for ring, winners in enumerate(rings):
        step = np.uint64(part.turn + ring + 1)
        key = random.draw_key(np.uint64(seed), np.uint64(sample), step)
        sketch.sketch(winners, np.uint64(key), ring, planes)
    return planes
