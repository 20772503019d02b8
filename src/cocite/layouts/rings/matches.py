"""What the layouts of min-hashes share: scores from the rings in which two nodes match.

What two nodes share in a sample is a mask, bit k - 1 set if their winners of ring k are the same.
The sample's value is the sum of the weights of those rings; as the rings of a sample depend on each
other, its variance takes whole masks.

Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.3 (Lemma 4).
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cocite.adding import added
from cocite.codes import ONE
from cocite.layouts.reader import Ids, SampledReader, Span
from cocite.layouts.stored import Shard
from cocite.measures import LENGTH, PartSettings
from cocite.measures.xjaccard import ring_weights

__all__ = ["Masks", "MatchReader", "worth_of"]

Masks = NDArray[np.uint16]


class MatchReader(SampledReader):
    """A layout that knows in which rings two nodes match."""

    @property
    def length(self) -> int:
        """Rings of a sample."""
        return self.part.settings[LENGTH]

    @abstractmethod
    def _read_masks(self, shard: Shard, node: int, others: Ids, out: Masks) -> bool:
        """Fill ``out`` uint16[samples, h] with the masks of a node and others, none of them itself,
        in a shard; whether it is sound.
        """

    def masks(self, first: int, second: int) -> Masks:
        """uint16[samples]: bit k - 1 is set where two nodes match in ring k."""
        if first == second:
            return np.full(self.part.samples, 2**self.length - 1, np.uint16)
        found: Masks = self.masks_with(first, np.array([second], np.uint32))[:, 0]
        return found

    def masks_with(self, node: int, others: Ids) -> Masks:
        """uint16[samples, h]: the masks of a node and others, none of them itself."""
        found = np.empty((self.part.samples, others.size), np.uint16)
        for shard in self.part.pieces():
            out = found[shard.first : shard.first + shard.samples]
            if not self._read_masks(shard, node, others, out):
                raise self.part.damaged(shard.first)
        return found

    def values(
        self, node: int, others: Ids, settings: PartSettings
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The weights of the rings that match, added up, in every sample."""
        worth = self.table(settings)[:, 0] / float(ONE)
        found = np.take(worth, self.masks_with(node, others))
        return found, found

    def span(self, settings: PartSettings) -> Span:
        """All rings match at best."""
        return Span(0.0, 0.0, added(self.weights(settings)))

    def weights(self, settings: PartSettings) -> tuple[float, ...]:
        """What each ring is worth."""
        return tuple(ring_weights(settings, self.length))

    def table(self, settings: PartSettings) -> NDArray[np.uint64]:
        """uint64[2**length, 2]: the value of each mask and its square, in fixed point."""
        return worth_of(self.weights(settings))


@lru_cache(maxsize=16)
def worth_of(weights: tuple[float, ...]) -> NDArray[np.uint64]:
    """uint64[2**length, 2]: the sum of the weights of a mask's rings and its square, fixed-point.

    No ring is worth 0: a sum of 0 tells a kernel that a node was not met.
    """
    fixed = np.array([max(1, round(weight * ONE)) for weight in weights], np.uint64)
    rings = np.arange(2 ** len(weights))[:, None] >> np.arange(len(weights)) & 1
    values = (rings.astype(np.uint64) * fixed).sum(axis=1, dtype=np.uint64)
    squares = np.rint((values / ONE) ** 2 * ONE).astype(np.uint64)
    table = np.column_stack((values, np.where(values > 0, np.maximum(squares, 1), 0)))
    table = table.astype(np.uint64)
    table.flags.writeable = False
    return table
