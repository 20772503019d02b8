"""Walks with an unseen node: samples drawn again when a question needs them.

A pair replays its two walks in every sample; the relatives of a node are found from where its walk
goes (``engine/walk.py``). Samples are keyed by their numbers, so values, scores and intervals are
those of the index that a build with the same settings would make, to the bit.

Cost: a pair some 0.05 ms a sample; relatives from 0.1 ms a sample on, by what the walk meets and
what that is linked with. An index answers a hundred to a thousand times faster.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cocite.deadline import check
from cocite.engine.walk import Mover, follow, probe
from cocite.graph.blocks import Links
from cocite.index.layouts.on_the_fly import DraftPart
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import Graphs, Ids, QueryScratch, weights_of
from cocite.index.layouts.trees.meetings import MeetingReader, Times, Ways
from cocite.index.layouts.trees.replay import part_mover
from cocite.measures import LENGTH, PartSettings
from cocite.options import opposite


class OnTheFlyReader(MeetingReader):
    """Replaces the layouts of walks for drafts."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, DraftPart)
        super().__init__(part)
        self._means, self._length = part.ends.means, part.settings[LENGTH]

    @property
    def _numbers(self) -> list[int]:
        """Return the numbers of the samples."""
        found: list[int] = self.part.freshness.held[: self.part.samples].tolist()
        return found

    @cached_property
    def _mover(self) -> Mover:
        return part_mover(self.part, self.part.links(self.part.direction), self._means)

    @cached_property
    def _columns(self) -> Links:
        return self.part.links(opposite(self.part.direction))

    def times_with(self, node: int, others: Ids) -> Times:
        """Return tau in every sample, uint8[samples, h]; 255 without a meeting."""
        nodes = np.append(np.uint32(node), others)
        times = np.empty((len(self._numbers), others.size), np.uint8)
        for row, sample in enumerate(self._numbers):
            check()
            times[row] = follow(self._mover, self._length, sample, nodes)[1:]
        return times

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """Add up all nodes that the node meets, over all samples."""
        weights, count = weights_of(self.weight(settings).values), 0
        for sample in self._numbers:
            check()
            met, times = probe(self._mover, self._length, self._columns, sample, node)
            fresh = met[scratch.sums[met, 0] == 0]
            scratch.used[count : count + fresh.size] = fresh
            count += fresh.size
            scratch.sums[met] += weights[times]
        return count

    def _ways(
        self,
        first: int,
        second: int,
        samples: NDArray[np.int64],
        steps: Times,
        graphs: Graphs,
    ) -> Ways:
        """Return the walks, repeated along the same links."""
        points = np.zeros((samples.size, self._length, 2), np.uint32)
        numbers = np.array(self._numbers)[samples].tolist()
        for row, (sample, last) in enumerate(zip(numbers, steps.tolist(), strict=True)):
            check()
            at = np.array([first, second], np.uint32)
            for step in range(1, last + 1):
                self._mover(sample, step, at, points[row, step - 1])
                at = points[row, step - 1]
        return Ways(points[:, :, 0], points[:, :, 1], np.ones(samples.size, bool))
