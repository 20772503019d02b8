"""How a walk chooses its next node."""

from __future__ import annotations

from enum import Enum

__all__ = ["MAX_LENGTH", "Step"]

MAX_LENGTH = 15
"""Steps of the longest walk: a meeting time takes four bits on disk."""


class Step(Enum):
    """How a walk chooses its next node."""

    UNIFORM = "uniform"
    """An in-neighbour drawn uniformly, independently at every node: SimRank."""
    ARGMIN = "argmin"
    """The first in-neighbour in a random order that all nodes share at that step: PSimRank."""
    COMPACT = "compact"
    """An in-neighbour drawn uniformly once and taken at every step: compacted SimRank."""
    WEIGHTED = "weighted"
    """An in-neighbour drawn by weight, independently at every node: SimRank on weighted links."""
    CLOCK = "clock"
    """The in-neighbour whose clock rings first, paced by the link's weight; all nodes share the
    clocks of a step: PSimRank on weighted links.
    """

    @property
    def weighted(self) -> bool:
        """Whether it needs weights."""
        return self in (Step.WEIGHTED, Step.CLOCK)
