"""Asking fingerprint trees: the range maximum between two places, a walk outwards from one.

Every other member of a node's tree has met it; the largest label on the way to it is the step at
which it did. A sample's value is decay**tau, 0 where the walks do not meet.

Cost: a pair reads one access a sample and the labels between; relatives about 3 ns a member of the
trees read, and their number is what matters.
Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.1.1 and 2.1.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.graph import Graph
from cocite.index import Shard, StoredPart
from cocite.query.meetings import MeetingReader, Points, Times
from cocite.query.replay import Replay

__all__ = ["NEVER", "TreeReader"]

NEVER = 255
"""The meeting time of walks that do not meet."""


class TreeReader(MeetingReader):
    """The layout ``trees``."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self._replay: Replay | None = None

    def _read_times(self, shard: Shard, first: int, second: int, out: Times) -> bool:
        from cocite.kernels import lookup

        nodes = np.uint32(first), np.uint32(second)
        return bool(lookup.meeting_times(shard.words, shard.blobs, *nodes, out))

    def _gather(self) -> Any:
        from cocite.kernels import lookup

        return lookup.gather

    def _ways(
        self,
        first: int,
        second: int,
        samples: NDArray[np.int64],
        steps: Times,
        graph: Callable[[], Graph],
    ) -> tuple[Points, Points]:
        """Made again: the trees tell when walks meet, and not where."""
        replay = self._replay or Replay(self.part, graph())
        self._replay = replay
        return replay(first, second, samples, steps)
