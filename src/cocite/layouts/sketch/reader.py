"""Asking sketches: every node is compared with the one asked for, and chance matches are taken off.

Two winners that differ match all the same with the probability q = 2**-bits. A sample's value is

    x = (sum of the weights of the rings that match - q W) / (1 - q),     W = the sum of all weights

which is right on average and lies in [-q W / (1 - q), W]. So a score may be below 0; related nodes
are those above it, where many are by chance: their intervals hold 0.

Cost: a pair reads length * bits lines a node and sample; relatives read the whole index, and add up
what they found for every node. Variances are made for the hits alone.
Source: Li, Koenig 2010, *b-bit minwise hashing*, theorem 1 for large neighbourhoods.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cocite.adding import added
from cocite.deadline import check
from cocite.errors import UsageError
from cocite.layouts.reader import Estimate, Ids, Span
from cocite.layouts.reasons import Graphs, Reasons
from cocite.layouts.rings.matches import Masks, MatchReader
from cocite.layouts.scratch import QueryScratch
from cocite.layouts.stored import Shard
from cocite.measures import PartSettings
from cocite.measures.xjaccard import BITS
from cocite.store import Access, advise

__all__ = ["SketchReader"]


class SketchReader(MatchReader):
    """The layout ``sketch``."""

    signed = True

    @property
    def chance(self) -> float:
        """q, the probability that different winners match."""
        return float(2.0 ** -self.part.settings[BITS])

    def _read_masks(self, shard: Shard, node: int, others: Ids, out: Masks) -> bool:
        from cocite.kernels import sketch

        sketch.masks(shard.words, shard.blobs, np.uint64(node), others, out)
        return True  # any bits are sketches

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Bits of hashes do not tell whose they are."""
        raise UsageError(
            "the layout sketch keeps bits of hashes and not the pages that they stand for: build "
            "the index without --bits to ask why"
        )

    def values(
        self, node: int, others: Ids, settings: PartSettings
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """x in every sample."""
        found, _ = super().values(node, others, settings)
        whole, chance = added(self.weights(settings)), self.chance
        found = (found - chance * whole) / (1 - chance)
        return found, found

    def span(self, settings: PartSettings) -> Span:
        """From no ring that matches to all."""
        least = -self.chance * added(self.weights(settings)) / (1 - self.chance)
        return Span(least, least, added(self.weights(settings)))

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """The score of two nodes; that of a node and itself has no error."""
        if first == second:
            full = self.table(settings)[-1:] * np.uint64(self.part.samples)
            found = self._unbiased(full, settings)
        else:
            found = self._estimates(first, np.array([second], np.uint32), settings)
        return Estimate(float(found[0, 0]), float(found[0, 1]))

    def _estimates(
        self, node: int, others: NDArray[np.uint32], settings: PartSettings
    ) -> NDArray[np.float64]:
        """float64[h, 2]: the scores of ``node`` with others, in grains, and their variances."""
        from cocite.kernels import sketch

        table, sums = self.table(settings), np.zeros((others.size, 2), np.uint64)
        for shard in self.part.shards:
            check()
            sketch.add(shard.words, shard.blobs, np.uint64(node), others, table, sums)
        return self._unbiased(sums, settings)

    def _unbiased(self, sums: NDArray[np.uint64], settings: PartSettings) -> NDArray[np.float64]:
        from cocite.kernels import sketch

        found = np.empty((len(sums), 2))
        whole = added(self.weights(settings))
        sketch.unbiased(sums, float(self.part.samples), self.chance, whole, found)
        return found

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Count the matches of all nodes, and make scores of them."""
        from cocite.kernels import sketch

        part, length = self.part, self.length
        blocks, levels = -(-part.nodes // sketch.BLOCK), part.samples.bit_length()
        counts = np.zeros((blocks, length, levels, sketch.LINE), np.uint32)
        for shard in part.shards:
            check()
            advise(Access.AROUND, shard.words)
            done = np.uint64(shard.first)
            sketch.tally(shard.words, shard.blobs, np.uint64(node), done, counts)
        weights = self.weights(settings)
        terms = np.array([part.samples, self.chance, added(weights), part.weight])
        # Another part, or another node that is asked, may lift what is below 0.
        least = 1.0 if part.weight == 1 and not scratch.below else -np.inf
        scratch.have = int(
            sketch.settle(
                counts,
                self.table(settings)[[1 << ring for ring in range(length)], 0],
                terms,
                node,
                least,
                scratch.totals[: part.nodes],
                scratch.touched,
                scratch.have,
            )
        )

    def variances(
        self, node: int, others: NDArray[np.uint32], settings: PartSettings
    ) -> NDArray[np.float64]:
        """Those of the hits."""
        return self._estimates(node, others, settings)[:, 1]
