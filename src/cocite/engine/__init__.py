"""The two passes over the stored graph: the walk with its steps, and the scan; and the diagonal of
linearized SimRank.
"""

from __future__ import annotations

from enum import Enum

MAX_LENGTH = 15
"""Steps of the longest walk: a meeting time takes four bits on disk."""


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
        """Whether it needs weights."""
        return self in (Step.WEIGHTED, Step.CLOCK)
