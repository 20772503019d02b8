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
from cocite.layouts.sketch.format import SketchFormat
from cocite.layouts.sketch.planes import ring_planes
from cocite.means import Means

__all__ = ["SketchBuilder"]


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
