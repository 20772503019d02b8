"""Numbers that mean something of their own, the same in files, kernels and answers.

    NOWHERE     2**32 - 1   no node, no place, among ids and positions (uint32): an ended walk, a
                            head without a parent, a node outside every tree
    NEVER       255         no meeting, among the steps at which walks meet (uint8)
    ONE         2**48       1 in fixed point: 65,535 samples of it fit 64 bits
    GRAINS      10**12      1 in grains: scores are whole numbers of them, so that equal scores are
                            equal and compare as they are printed
    UNFINISHED  -2**62      to be called again: what a kernel tells that stops now and then, so that
                            interruptions and deadlines are heard
    MAX_LENGTH  15          steps of the longest walk: a meeting time takes four bits on disk
    Step                    how a walk chooses its next node, as manifests and workers name it
    Ids, Floats ...         arrays of node ids, of numbers, of the words and labels of samples

ONE and GRAINS are floats, as kernels multiply by them; both are exact.

Floats added up from left to right, one after another, in every Python.

The built-in ``sum`` makes up for rounding since Python 3.12, and does not before. So a weight that
is a share of a sum would be another number there, and an index that one Python made would be
damaged to the other. Whatever comes into an index or an answer is added up here.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint32]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint32]
Labels = NDArray[np.uint8]

NOWHERE = np.uint32(0xFFFFFFFF)
NEVER = np.uint8(255)
ONE = float(1 << 48)
GRAINS = 1e12
UNFINISHED = -(1 << 62)
MAX_LENGTH = 15


class Step(Enum):
    """How a walk chooses its next node."""

    UNIFORM = "uniform"
    """An in-neighbor drawn uniformly, independently at every node: SimRank."""
    ARGMIN = "argmin"
    """The first in-neighbor in a random order that all nodes share at that step: PSimRank."""
    COMPACT = "compact"
    """An in-neighbor drawn uniformly once and taken at every step: compacted SimRank."""
    WEIGHTED = "weighted"
    """An in-neighbor drawn by weight, independently at every node: SimRank on weighted links."""
    CLOCK = "clock"
    """The in-neighbor whose clock rings first, paced by the link's weight; all nodes share the
    clocks of a step: PSimRank on weighted links.
    """

    @property
    def weighted(self) -> bool:
        """Return whether it needs weights."""
        return self in (Step.WEIGHTED, Step.CLOCK)


def added(values: Iterable[float]) -> float:
    """Return the sum, rounded after each addition; 0.0 for no values."""
    return reduce(add, values, 0.0)
