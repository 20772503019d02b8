"""Asking fingerprint trees: the range maximum between two places, a walk outwards from one.

Every other member of a node's tree has met it; the largest label on the way to it is the step at
which it did. A sample's value is decay**tau, 0 where the walks do not meet.

Cost: a pair reads one access a sample and the labels between; relatives about 3 ns a member of the
trees read, and their number is what matters.
Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.1.1 and 2.1.4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cocite.measures import Settings
from cocite.query.reader import ONE, Estimate, SampledReader, weights_of
from cocite.query.scratch import Scratch

__all__ = ["NEVER", "TreeReader"]

NEVER = 255
"""The meeting time of walks that do not meet."""


class TreeReader(SampledReader):
    """The layout ``trees``."""

    def meeting_times(self, first: int, second: int) -> NDArray[np.uint8]:
        """tau in every sample, uint8[samples]; 255 where the walks do not meet."""
        from cocite.kernels import lookup

        times = np.empty(self.part.samples, np.uint8)
        for shard in self.part.shards:
            out = times[shard.first : shard.first + shard.samples]
            nodes = np.uint32(first), np.uint32(second)
            if not lookup.meeting_times(shard.words, shard.blobs, *nodes, out):
                raise self.part.damaged(shard.first)
        return times

    def values(self, first: int, second: int, settings: Settings) -> NDArray[np.float64]:
        """decay**tau in every sample."""
        times = self.meeting_times(first, second).astype(np.float64)
        decay = float(settings["decay"])
        return np.where(times == NEVER, 0.0, decay**times)

    def width(self, settings: Settings) -> float:
        """Different nodes meet after one step at best."""
        return float(settings["decay"])

    def pair(self, first: int, second: int, settings: Settings) -> Estimate:
        """The score of two nodes; a node and itself score 1 with no error."""
        samples = self.part.samples
        if first == second:
            return self.estimated(np.array([samples * ONE, samples * ONE], np.uint64))
        times = self.meeting_times(first, second)
        counts = np.bincount(times[times < 16], minlength=16).astype(np.uint64)
        return self.estimated(counts @ weights_of(float(settings["decay"])))

    def gather_sums(self, node: int, settings: Settings, scratch: Scratch) -> int:
        """Add up over all trees that the node is in."""
        from cocite.kernels import lookup

        weights, count = weights_of(float(settings["decay"])), 0
        for shard in self.part.shards:
            count = int(
                lookup.gather(
                    shard.words,
                    shard.blobs,
                    np.uint32(node),
                    weights,
                    scratch.sums,
                    scratch.used,
                    count,
                )
            )
            if count == lookup.DAMAGED:
                raise self.part.damaged(shard.first)
        return count
