"""Making the sketch layout (``format.py``): winners cut to bits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.graph.rows import Links
from cocite.layouts.blobs import Blob, Maker, SampledBuilder
from cocite.layouts.memory_plan import MemoryPlan
from cocite.layouts.plan import PartPlan
from cocite.layouts.rings.build import Layer, RingMaker, plan_rings, wanted_bytes, wanted_of
from cocite.layouts.sketch.format import BLOCK, PLANE, SketchFormat
from cocite.means import Means
from cocite.measures import SEED
from cocite.measures.xjaccard import BITS

__all__ = ["SketchBuilder"]


class SketchBuilder(SketchFormat, SampledBuilder):
    """Of the layout ``sketch``."""

    def fitted(self, links: Links, part: PartPlan, means: Means) -> MemoryPlan:
        """In memory if all fits, else on disk (``layouts/rings/build.py``)."""
        blob = 4 * self.most_words(part.stored_nodes(links.nodes), part.settings)
        return plan_rings(links, part, means, blob + wanted_bytes(part))

    def makers(
        self, links: Links, part: PartPlan, fit: MemoryPlan, folder: Path, numbers: range
    ) -> list[Maker]:
        """One, with threads of its own."""
        return [RingMaker(links, part, fit, folder, numbers, lambda: PlaneLayer(part))]


class PlaneLayer(Layer):
    """Cuts the winners of a sample to bits."""

    def __init__(self, part: PartPlan) -> None:
        self._bits, self._seed = part.settings[BITS], part.settings[SEED]
        self._turn = part.turn
        self._wanted = None if part.wanted is None else part.wanted.ids()

    def __call__(self, sample: int, rings: Sequence[NDArray[np.uint32]]) -> Blob:
        """A blob of memory of its own."""
        from cocite.kernels import random, sketch

        nodes = rings[0].size if self._wanted is None else self._wanted.size
        planes = np.zeros((-(-nodes // BLOCK), len(rings), self._bits, PLANE), np.uint32)
        for ring, winners in enumerate(rings):
            step = np.uint64(self._turn + ring + 1)
            key = random.draw_key(np.uint64(self._seed), np.uint64(sample), step)
            mine = wanted_of(winners, self._wanted)
            sketch.sketch(mine, np.uint64(key), ring, planes)
        return Blob.of((planes.reshape(-1),), nodes)
