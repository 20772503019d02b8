"""Answers from stored walks: the ``paths`` and ``compact`` layouts.

In ``paths``, meeting times are those of its trees. In ``compact``, a pair reads at most 2 * length
words, and a list the nodes at most k steps below the walk's k-th point. Source: Fogaras, Racz, *A
scalable randomized method to compute link-based similarity rank on the web graph*, 2, 3.1.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from cocite.constants import NOWHERE, Ids, Ints
from cocite.index.layouts.reader import Graphs, QueryScratch, weights_of
from cocite.index.layouts.trees.reader import MeetingReader, Times, TreeReader, Ways
from cocite.kernels import paths
from cocite.measures import LENGTH, PartSettings


class WalkReader(MeetingReader):
    """Base of readers whose layout stores the walks."""

    @abstractmethod
    def walks(self, node: int) -> Ids:
        """Return uint32[samples, length]: the node after each step, 2**32 - 1 after the end."""

    def _no_walks(self) -> Ids:
        return np.empty((self.part.samples, self.part.settings[LENGTH]), np.uint32)

    def _ways(self, first: int, second: int, samples: Ints, steps: Times, graphs: Graphs) -> Ways:
        one, other = self.walks(first)[samples], self.walks(second)[samples]
        walked = np.arange(one.shape[1]) < steps[:, None]
        ended = walked & ((one == NOWHERE) | (other == NOWHERE))
        self._refuse(samples[ended.any(axis=1)])
        return Ways(one, other, np.ones(samples.size, bool))


class PathReader(WalkReader, TreeReader):
    """The ``paths`` layout."""

    def walks(self, node: int) -> Ids:
        """Return the node's walks, read from the stored points."""
        own = np.uint32(node)
        return self.part.fill(
            self._no_walks(), lambda shard, out: paths.follow_paths(*shard.data, own, out)
        )


class CompactReader(WalkReader):
    """The ``compact`` layout."""

    def times_with(self, node: int, others: Ids) -> Times:
        """Return uint8[samples, h]: tau, or 255 if the walks do not meet."""
        nodes = np.uint32(self.part.nodes), np.uint32(node), others
        return self.part.fill(
            np.empty((self.part.samples, others.size), np.uint8),
            lambda shard, out: paths.meeting_times(*shard.data, *nodes, out),
        )

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """For each other node, sum the values of its meetings with ``node``."""
        asked, count = (np.uint32(node), weights_of(self.weight(settings).values)), 0
        sums = scratch.sums, scratch.used
        for shard in self.part.pieces():
            count = int(paths.gather(*shard.data, *asked, *sums, count))
            if count == paths.DAMAGED:
                raise self.part.damaged(shard.first)
        return count

    def walks(self, node: int) -> Ids:
        """Return the node's walks, step by step."""
        nodes = np.uint32(self.part.nodes), np.uint32(node)
        return self.part.fill(
            self._no_walks(), lambda shard, out: paths.follow(*shard.data, *nodes, out)
        )
