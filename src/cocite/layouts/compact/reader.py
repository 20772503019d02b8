"""Asking compacted walks: a pair follows both walks, relatives are looked for along one of them.

Cost: a pair reads at most 2 * length words a sample. Relatives read the nodes at most k steps below
the k-th point of the node's walk, each a jump through memory.
Source: 000, section 3.1 and Algorithm 2, the first meeting alone counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.layouts.reader import Ids
from cocite.layouts.stored import Shard
from cocite.layouts.walks.meetings import ShardReader, Times, WalkReader

__all__ = ["CompactReader"]


class CompactReader(WalkReader, ShardReader):
    """The layout ``compact``."""

    def _read_times(self, shard: Shard, node: int, others: Ids, out: Times) -> bool:
        from cocite.kernels import compact

        nodes = np.uint32(self.part.nodes), np.uint32(node)
        return bool(compact.meeting_times(shard.words, shard.blobs, *nodes, others, out))

    def _gather(self) -> Any:
        from cocite.kernels import compact

        return compact.gather

    def _read_walks(self, shard: Shard, node: int, out: NDArray[np.uint32]) -> bool:
        from cocite.kernels import compact

        nodes = np.uint32(self.part.nodes), np.uint32(node)
        return bool(compact.follow(shard.words, shard.blobs, *nodes, out))
