"""The planes of a sample of the sketch layout (``format.py``), from the winners of its rings.

The bits of a ring are drawn by a key of their own, so whoever has the winners makes the same
planes: of all nodes on one machine (``build.py``), or of those of a block (``blocks.py``).
Cost: that of ``kernels/sketch.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cocite.layouts.plan import PartPlan
from cocite.layouts.sketch.format import BLOCK, PLANE
from cocite.measures import SEED
from cocite.measures.xjaccard import BITS

__all__ = ["ring_planes"]


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
