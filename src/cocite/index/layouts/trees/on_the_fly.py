"""How layouts of walks answer queries for an unseen page.

A pair repeats its two walks in every sample. A list is found from the nodes on the query node's
walk, which takes at least 0.1 ms per sample. Answers are bit-identical to those of a rebuilt index.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from cocite.constants import Ids, Ints
from cocite.deadline import check
from cocite.engine.walk import Mover, follow, probe
from cocite.graph.blocks import Links
from cocite.index.layouts.on_the_fly import DraftPart
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import Graphs, QueryScratch, weights_of
from cocite.index.layouts.trees.reader import MeetingReader, Times, Ways
from cocite.index.layouts.trees.replay import part_mover, repeat
from cocite.measures import LENGTH, PartSettings
from cocite.options import opposite


class OnTheFlyReader(MeetingReader):
    """Replaces the readers of walks for indexes with an unseen page."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, DraftPart)
        super().__init__(part)
        self._means, self._length = part.ends.means, part.settings[LENGTH]

    @property
    def _numbers(self) -> list[int]:
        found: list[int] = self.part.freshness.held[: self.part.samples].tolist()
        return found

    @cached_property
    def _mover(self) -> Mover:
        return part_mover(self.part, self.part.links(self.part.direction), self._means)

    @cached_property
    def _columns(self) -> Links:
        return self.part.links(opposite(self.part.direction))

    def times_with(self, node: int, others: Ids) -> Times:
        """Return uint8[samples, h]: tau, or 255 if the walks do not meet."""
        nodes = np.append(np.uint32(node), others)
        times = np.empty((len(self._numbers), others.size), np.uint8)
        for row, sample in enumerate(self._numbers):
            check()
            times[row] = follow(self._mover, self._length, sample, nodes)[1:]
        return times

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """For each other node, sum the values of its meetings with ``node``."""
        weights, count = weights_of(self.weight(settings).values), 0
        for sample in self._numbers:
            check()
            met, times = probe(self._mover, self._length, self._columns, sample, node)
            fresh = met[scratch.sums[met, 0] == 0]
            scratch.used[count : count + fresh.size] = fresh
            count += fresh.size
            scratch.sums[met] += weights[times]
        return count

    def _ways(self, first: int, second: int, samples: Ints, steps: Times, graphs: Graphs) -> Ways:
        numbers = np.array(self._numbers)[samples]
        points = repeat(self._mover, (first, second), numbers, steps, self._length)
        return Ways(points[:, :, 0], points[:, :, 1], np.ones(samples.size, bool))
