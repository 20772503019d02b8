"""Asking groups of nodes that share a min-hash: a pair compares cells, relatives read their groups.

Cost: a pair reads a line or two a node and sample; relatives the node's groups, one a ring and
sample, at some 4 ns a member. Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.3.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cocite.layouts.reader import Estimate, Ids, SummingReader
from cocite.layouts.reasons import NOTHING, Graphs, Reasons
from cocite.layouts.rings.matches import Masks, MatchReader
from cocite.layouts.scratch import QueryScratch
from cocite.layouts.stored import Shard
from cocite.measures import PartSettings

__all__ = ["MinhashReader"]

_DAMAGED = -1


class MinhashReader(MatchReader, SummingReader):
    """The layout ``minhash``."""

    def _read_masks(self, shard: Shard, node: int, others: Ids, out: Masks) -> bool:
        from cocite.kernels import minhash_groups

        return bool(minhash_groups.masks(shard.words, shard.blobs, np.uint64(node), others, out))

    def common(self, first: int, second: int) -> NDArray[np.uint32]:
        """Which node made two different nodes match.

        Returns
        -------
        uint32[samples, length]
            The winner of both in each ring: a node from which both are reached in so many links;
            2**32 - 1 where they have different ones, the number of nodes where it is gone since.
        """
        from cocite.kernels import minhash_groups

        found = np.empty((self.part.samples, self.length), np.uint32)
        nodes = np.uint32(self.part.nodes), np.uint64(first), np.uint64(second)
        for shard in self.part.pieces():
            out = found[shard.first : shard.first + shard.samples]
            if not minhash_groups.common(shard.words, shard.blobs, *nodes, out):
                raise self.part.damaged(shard.first)
        return found

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """The winners that both share, ring by ring: pages that lead to both in so many links."""
        found = self.common(first, second)
        worth = np.array(self.weights(settings)) / self.known(first, second)
        unplaced = float(worth[np.nonzero(found == self.part.nodes)[1]].sum())
        samples, rings = np.nonzero(found < self.part.nodes)
        if not samples.size:
            return replace(NOTHING, unplaced=unplaced)
        worths = worth[rings]
        nodes, place = np.unique(found[samples, rings], return_inverse=True)
        seen = np.unique(np.column_stack((place, samples)), axis=0)
        return Reasons(
            nodes,
            np.asarray(np.bincount(place, worths), np.float64),
            lambda row: ([], []),
            np.bincount(seen[:, 0], minlength=nodes.size),
            unplaced=unplaced,
        )

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """The score of two nodes; that of a node and itself has no error."""
        table, known = self.table(settings), self.known(first, second)
        found = self.masks(first, second)[-known:]
        return self.estimated(table[found].sum(axis=0, dtype=np.uint64), known)

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """Add up over all groups that hold the node."""
        from cocite.kernels import minhash_groups

        table, count = self.table(settings), 0
        for shard in self.part.pieces():
            whom = np.array([node, shard.first + 1], np.uint32)
            count = int(
                minhash_groups.gather(
                    shard.words,
                    shard.blobs,
                    whom,
                    table,
                    scratch.sums,
                    scratch.marks,
                    scratch.used,
                    count,
                )
            )
            if count == _DAMAGED:
                raise self.part.damaged(shard.first)
        minhash_groups.unmark(scratch.marks, scratch.used, count)
        return count
