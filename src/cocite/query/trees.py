"""Asking fingerprint trees: the range maximum between two places, a walk outwards from one.

Every other member of a node's tree has met it; the largest label on the way to it is the step at
which it did. A sample's value is decay**tau, 0 where the walks do not meet.

Cost: a pair reads one access a sample and the labels between; relatives about 3 ns a member of the
trees read, and their number is what matters.
Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.1.1 and 2.1.4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.index import Shard
from cocite.query.meetings import MeetingReader, Times

__all__ = ["NEVER", "TreeReader"]

NEVER = 255
"""The meeting time of walks that do not meet."""


class TreeReader(MeetingReader):
    """The layout ``trees``."""

    def _read_times(self, shard: Shard, first: int, second: int, out: Times) -> bool:
        from cocite.kernels import lookup

        nodes = np.uint32(first), np.uint32(second)
        return bool(lookup.meeting_times(shard.words, shard.blobs, *nodes, out))

    def _gather(self) -> Any:
        from cocite.kernels import lookup

        return lookup.gather
