"""Min-hashes with an unseen node: rings of the graph made when a question needs them.

A pass over the rings of all nodes (``engine/scan.py``) says who has the winner of one node, ring
by ring: a mask of rings a node and sample. Samples are keyed by their numbers, so values, scores
and intervals are those of the index that a build with the same settings would make, to the bit. An
index of bits is answered from whole winners, too: the mean is the same, with less variance.

Cost: a scan a ring for 16 samples, as a build takes; 2 bytes a node and sample for the masks of the
node asked last.
"""

from __future__ import annotations

import tempfile

import numpy as np
from numpy.typing import NDArray

from cocite.engine.scan import LANES, HopNeighborhoods, plan_ring_scan
from cocite.index.layouts.minhash.reader import Masks, MinhashReader
from cocite.index.layouts.on_the_fly import DraftPart
from cocite.index.layouts.reader import Ids, QueryScratch
from cocite.kernels import ring_rows
from cocite.measures import SEED, PartSettings


class OnTheFlyMinhashReader(MinhashReader):
    """Replaces the layouts ``minhash`` and ``sketch`` for drafts."""

    _last: tuple[int, Masks, NDArray[np.uint32]] | None = None

    def matched(self, node: int) -> tuple[Masks, NDArray[np.uint32]]:
        """Return the rings in which each node matches ``node``, including itself, uint16[samples,
        nodes]; and its winners, uint32[samples, length].
        """
        last, part, length = self._last, self.part, self.length
        if last is not None and last[0] == node:
            return last[1:]
        assert isinstance(part, DraftPart)
        links, numbers = part.links(part.direction), part.freshness.held[: part.samples].tolist()
        masks = np.zeros((len(numbers), part.nodes), np.uint16)
        own = np.empty((len(numbers), length), np.uint32)
        plan, folder = plan_ring_scan(links, part.ends.means), tempfile.gettempdir()
        seed, turn = part.settings[SEED], part.plan.turn
        rings = HopNeighborhoods(links, plan, length, seed, turn=turn, folder=folder)
        for first in range(0, len(numbers), LANES):
            for ring in rings(numbers[first : first + LANES]):
                for sample, winners in enumerate(ring.winners(), first):
                    ring_rows.match(winners, node, np.uint16(ring.step - 1), masks[sample])
                    own[sample, ring.step - 1] = winners[node]
        self._last = node, masks, own
        return masks, own

    def masks_with(self, node: int, others: Ids) -> Masks:
        """Return uint16[samples, h]: the masks of a node and others."""
        found: Masks = self.matched(node)[0][:, others]
        return found

    def common(self, first: int, second: int) -> NDArray[np.uint32]:
        """Return the common winners of two different nodes: uint32[samples, length], 2**32 - 1 for
        none.
        """
        masks, own = self.matched(first)
        match = masks[:, second, None] >> np.arange(self.length) & 1
        return np.where(match == 0, np.uint32(2**32 - 1), own)

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """Add up what all nodes share with the node."""
        table, (masks, _) = self.table(settings), self.matched(node)
        met = np.flatnonzero(masks.any(axis=0)).astype(np.uint32)
        met = met[met != node]
        for row in masks:
            scratch.sums[met] += table[row[met]]
        scratch.used[: met.size] = met
        return int(met.size)
