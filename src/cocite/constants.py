"""Constants and array types shared by files, kernels and results.

    NOWHERE     2**32 - 1   no node or position (uint32): an ended walk, a head without a parent
    NEVER       255         no first meeting (uint8)
    ONE         2**48       1 in fixed point; 65,535 samples add up without exceeding 64 bits
    GRAINS      10**12      grains per 1: scores are rounded to whole grains, multiples of 1e-12
    UNFINISHED  -2**62      result of a kernel that paused to check for interruptions
    MAX_LENGTH  15          steps of the longest walk; a meeting time fits in four bits

Kernels multiply by ONE and GRAINS, so both are floats; their values are exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import reduce
from operator import add
from threading import Lock

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
PARSING = Lock()
"""Lock for parsing Python. CPython 3.11 counts the recursion depth of all threads together and
raises SystemError if several parse at once (gh-106905).
"""


class Step(Enum):
    """How a walk chooses its next node; the values appear in manifests."""

    UNIFORM = "uniform"
    """SimRank: each node draws an in-neighbor uniformly and independently."""
    ARGMIN = "argmin"
    """PSimRank: the in-neighbor that comes first in a random order, shared by all nodes."""
    COMPACT = "compact"
    """Compact SimRank: each node draws one in-neighbor uniformly, for all steps."""
    WEIGHTED = "weighted"
    """SimRank on weighted links: each node draws an in-neighbor by weight, independently."""
    CLOCK = "clock"
    """PSimRank on weighted links: the in-neighbor whose clock, paced by weight, rings first."""

    @property
    def weighted(self) -> bool:
        """Return whether the step needs link weights."""
        return self in (Step.WEIGHTED, Step.CLOCK)


def added(values: Iterable[float]) -> float:
    """Return the sum, rounded after each addition; 0.0 for no values.

    From Python 3.12 on, the built-in ``sum`` compensates for rounding.
    """
    return reduce(add, values, 0.0)
