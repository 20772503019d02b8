"""The diagonal of linearized SimRank as a value, with its certificate; ``engine/diagonal.py`` makes
it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LIMITS = 5
"""Levels with limits of their own; the last one's hold beyond."""
Table = NDArray[np.float32]
SweepReport = Callable[[int, int, int], None]
"""Told (sweep, nodes done, nodes in it) while a diagonal is made."""


@dataclass(frozen=True)
class Diagonal:
    """``table`` float32[nodes, 1 + LIMITS], the diagonal and the limits as the kernels take them;
    every residual is between ``low`` and ``high``.
    """

    decay: float
    table: Table
    low: float
    high: float

    @property
    def is_valid(self) -> bool:
        """Whether the table is between its bounds, nowhere nan, as the kernels rely on."""
        most = 1.001 / (1 - self.decay)
        fine = (self.table >= 0) & (self.table <= most)
        return bool(fine.all() and (self.table[:, 0] <= 1).all())
