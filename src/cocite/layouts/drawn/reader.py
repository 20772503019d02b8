"""Asking a graph without an index: samples drawn when a question needs them.

A pair replays its two walks in every sample; the relatives of a node are found from where its walk
goes (``engine/probe.py``). Samples are keyed by their numbers, so values, scores and intervals are
those of the index that a build with the same settings would make, to the bit.

Cost: a pair some 0.05 ms a sample; relatives from 0.1 ms a sample on, by what the walk meets and
what that is linked with. An index answers a hundred to a thousand times faster.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from cocite.engine.probe import follow, probe
from cocite.engine.walk import Mover
from cocite.graph.links import opposite
from cocite.graph.rows import Links
from cocite.layouts.drawn.part import UnbuiltPart
from cocite.layouts.reader import Ids, weights_of
from cocite.layouts.scratch import QueryScratch
from cocite.layouts.stored import StoredPart
from cocite.layouts.walks.meetings import Times
from cocite.layouts.walks.replay import part_mover
from cocite.layouts.walks.replayed import ReplayedReader
from cocite.measures import LENGTH, PartSettings

__all__ = ["DrawnReader"]


class DrawnReader(ReplayedReader):
    """The layout ``drawn``: no layout, but the graph."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, UnbuiltPart)
        super().__init__(part)
        self._links, self._means = part.links, part.ends.means
        self._length = part.settings[LENGTH]

    @cached_property
    def _mover(self) -> Mover:
        return part_mover(self.part, self._links(self.part.direction), self._means)

    @cached_property
    def _columns(self) -> Links:
        return self._links(opposite(self.part.direction))

    def times_with(self, node: int, others: Ids) -> Times:
        """tau in every sample, uint8[samples, h]; 255 where the walks do not meet."""
        nodes = np.append(np.uint32(node), others)
        samples = range(self.part.samples)
        times = [follow(self._mover, self._length, i, nodes)[1:] for i in samples]
        return np.array(times, np.uint8)

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """Add up over all samples what the node meets."""
        weights, count = weights_of(self.worth(settings).values), 0
        for sample in range(self.part.samples):
            met, times = probe(self._mover, self._length, self._columns, sample, node)
            fresh = met[scratch.sums[met, 0] == 0]
            scratch.used[count : count + fresh.size] = fresh
            count += fresh.size
            scratch.sums[met] += weights[times]
        return count
