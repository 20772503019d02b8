"""Asking fingerprint trees: the range maximum between two places, a walk outwards from one.

Every other member of a node's tree has met it; the largest label on the way to it is the step at
which it did. A sample's value is what meeting then is worth, 0 where the walks do not meet.

Cost: a pair reads one access a sample and the labels between; relatives about 3 ns a member of the
trees read, and their number is what matters.
Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.1.1 and 2.1.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.layouts.reader import Ids, weights_of
from cocite.layouts.scratch import borrowed
from cocite.layouts.stored import Shard
from cocite.layouts.trees.format import labels_at
from cocite.layouts.walks.meetings import ShardReader, Times
from cocite.layouts.walks.replayed import ReplayedReader
from cocite.measures import PartSettings

__all__ = ["TreeReader"]


class TreeReader(ReplayedReader, ShardReader):
    """The layout ``trees``."""

    def _read_times(self, shard: Shard, node: int, others: Ids, out: Times) -> bool:
        from cocite.kernels import trees_lookup

        row = np.uint32(node), others
        return bool(trees_lookup.meeting_times(shard.words, shard.blobs, *row, out))

    def _gather(self) -> Any:
        from cocite.kernels import trees_lookup

        return trees_lookup.gather

    def places(self) -> NDArray[np.uint32]:
        """uint32[nodes]: where each node stands in the first sample, 2**32 - 1 for nowhere.

        Nodes next to each other there are mostly near each other in other samples, too.
        """
        shard = self.part.shards[0]
        begin = int(shard.blobs[0, 0])
        return shard.words[begin : begin + self.part.nodes]

    def labels(self) -> Iterator[NDArray[np.uint8]]:
        """uint8[members] of each sample: the labels in dendrogram order."""
        for shard in self.part.shards:
            for _, _, first, members in shard.blobs[:, :4].tolist():
                yield labels_at(shard.words, first, members)

    def related_many(
        self,
        nodes: NDArray[np.uint32],
        floor: float,
        allowed: NDArray[np.bool_],
        settings: PartSettings,
        out: tuple[NDArray[np.uint32], NDArray[np.float64]],
    ) -> None:
        """The best k of each of ``nodes``, all different, as ``gather`` finds them one by one.

        ``floor`` is the least score in grains; ``allowed`` bool[nodes of the graph] says who may be
        a hit, all if it is empty. ``out`` is uint32[len(nodes), k], filled with 2**32 - 1 behind
        the last hit, and float64[len(nodes), k, 2]: grains and variances. The part's weight is not
        heeded. Fastest for nodes in the order of ``places``.
        """
        from cocite.kernels import trees_batch

        weights = weights_of(self.worth(settings).values)
        weights = np.concatenate((weights, np.zeros((1, 2), np.uint64)))  # for those never met
        with borrowed(self.part.nodes) as scratch:
            arrays = scratch.sums, scratch.used, scratch.totals, scratch.touched
            who = allowed, self._since
            bad = int(
                trees_batch.related_many(self._table, weights, nodes, floor, who, arrays, *out)
            )
            if bad != trees_batch.SOUND:
                raise self.part.damaged(max(s.first for s in self.part.shards if s.first <= bad))
            scratch.wear += self.part.nodes

    @cached_property
    def _table(self) -> NDArray[np.uint64]:
        """uint64[samples, 4]: addresses of positions, members, labels; the number of members."""
        rows = []
        for shard in self.part.shards:
            row = shard.blobs[:, :4].astype(np.uint64)
            row[:, :3] = row[:, :3] * np.uint64(4) + np.uint64(shard.words.ctypes.data)
            rows.append(row)
        return np.concatenate(rows)

    @cached_property
    def _since(self) -> NDArray[np.uint32]:
        """uint32[nodes]: how many samples, the first ones, do not know each node, or empty."""
        return self.part.freshness.unknowing()
