"""Readers of layouts that hold when walks meet and not where: there the walks are made again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cocite.layouts.reasons import Graphs
from cocite.layouts.stored import StoredPart
from cocite.layouts.walks.meetings import MeetingReader, Times, Ways
from cocite.measures import LENGTH

if TYPE_CHECKING:
    from cocite.layouts.walks.replay import Replay

__all__ = ["ReplayedReader"]


class ReplayedReader(MeetingReader):
    """A part that knows when walks meet and not where: there they are made again."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self._replays: dict[str, Replay] = {}

    def _ways(
        self,
        first: int,
        second: int,
        samples: NDArray[np.int64],
        steps: Times,
        graphs: Graphs,
    ) -> Ways:
        """Made again, on the graph of each sample."""
        from cocite.layouts.walks.replay import Replay

        one = np.zeros((samples.size, self.part.settings[LENGTH]), np.uint32)
        found = Ways(one, one.copy(), np.zeros(samples.size, bool))
        gone: list[str] = []
        numbers = self.part.freshness.held[samples]
        for generation in self.part.freshness.generations:
            drawn = generation.numbers
            rows = np.flatnonzero((numbers >= drawn.start) & (numbers < drawn.stop))
            graph = graphs.find(generation.digest) if rows.size else None
            if graph is None:
                continue
            replay = self._replays.get(generation.digest) or Replay(self.part, graph, graphs.means)
            self._replays[generation.digest] = replay
            ways = replay(first, second, numbers[rows], steps[rows], gone)
            found.one[rows], found.other[rows] = ways
            found.placed[rows] = True
        return found._replace(gone=tuple(gone))
