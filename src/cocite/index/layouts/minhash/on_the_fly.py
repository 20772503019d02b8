"""Asking min-hashes that nobody stored: rings of a graph made when a question needs them.

A pass over the rings of all nodes (``engine/scan.py``) says who has the winner of one node, ring
by ring: a mask of rings a node and sample. Samples are keyed by their numbers, so values, scores
and intervals are those of the index that a build with the same settings would make, to the bit,
whether it holds winners (``minhash``) or bits of their hashes (``sketch``).

Cost: a scan a ring for 16 samples, as a build takes; 2 bytes a node and sample for the masks of the
node asked last.
"""

from __future__ import annotations

import tempfile

import numpy as np
from numpy.typing import NDArray

from cocite.engine.scan import LANES, HopNeighborhoods, plan_ring_scan
from cocite.index.layouts.minhash.reader import Masks, MatchReader, MinhashReader, SketchReader
from cocite.index.layouts.on_the_fly import DraftPart
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import Ids, QueryScratch
from cocite.kernels import random, ring_rows
from cocite.measures import SEED, PartSettings
from cocite.measures.xjaccard import BITS


class _OnTheFlyNeighborhoods(MatchReader):
    """What both have in common: whom a node matches, and which winners it has."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, DraftPart)
        super().__init__(part)
        self._ends = part.ends
        self._last: tuple[int, Masks, NDArray[np.uint32]] | None = None

    def matched(self, node: int) -> tuple[Masks, NDArray[np.uint32]]:
        """uint16[samples, nodes]: the rings in which each matches ``node``, itself among them; and
        uint32[samples, length], its winners.
        """
        last = self._last
        if last is not None and last[0] == node:
            return last[1:]
        part, length = self.part, self.length
        links, means = part.links(part.direction), self._ends.means
        numbers = part.freshness.held[: part.samples].tolist()
        masks = np.zeros((len(numbers), part.nodes), np.uint16)
        own = np.empty((len(numbers), length), np.uint32)
        seed, turn = part.settings[SEED], part.plan.turn
        bits = np.uint64(part.settings[BITS])
        plan = plan_ring_scan(links, means)
        rings = HopNeighborhoods(links, plan, length, seed, turn=turn, folder=tempfile.gettempdir())
        for first in range(0, len(numbers), LANES):
            for ring in rings(numbers[first : first + LANES]):
                for lane, winners in enumerate(ring.winners()):
                    sample = first + lane
                    step = np.uint64(turn + ring.step)
                    key = random.draw_key(np.uint64(seed), np.uint64(numbers[sample]), step)
                    place = np.uint16(ring.step - 1)
                    ring_rows.match(winners, node, np.uint64(key), bits, place, masks[sample])
                    own[sample, ring.step - 1] = winners[node]
        self._last = node, masks, own
        return masks, own

    def masks_with(self, node: int, others: Ids) -> Masks:
        found: Masks = self.matched(node)[0][:, others]
        return found


class OnTheFlyMinhashReader(_OnTheFlyNeighborhoods, MinhashReader):
    """In the place of the layout ``minhash``."""

    def common(self, first: int, second: int) -> NDArray[np.uint32]:
        """Which node made two different nodes match: uint32[samples, length], 2**32 - 1 where they
        do not.
        """
        masks, own = self.matched(first)
        rings = np.arange(self.length)
        found = own.copy()
        found[(masks[:, second, None] >> rings & 1) == 0] = 2**32 - 1
        return found

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """Add up what everybody shares with the node."""
        table, (masks, _) = self.table(settings), self.matched(node)
        met = np.flatnonzero(masks.any(axis=0)).astype(np.uint32)
        met = met[met != node]
        for row in masks:
            scratch.sums[met] += table[row[met]]
        scratch.used[: met.size] = met
        return int(met.size)


class OnTheFlyBitsReader(_OnTheFlyNeighborhoods, SketchReader):
    """In the place of the layout ``sketch``."""

    def _estimates(self, node: int, others: Ids, settings: PartSettings) -> NDArray[np.float64]:
        table, (masks, _) = self.table(settings), self.matched(node)
        sums = np.zeros((others.size, 2), np.uint64)
        for row in masks:
            sums += table[row[others]]
        return self._unbiased(sums, settings)

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """The scores of all nodes."""
        weight, nodes = self.part.weight, np.arange(self.part.nodes, dtype=np.uint32)
        grains = self._estimates(node, nodes, settings)[:, 0]
        least = 1.0 if weight == 1 and not scratch.below else -np.inf
        wanted = nodes[(grains >= least) & (grains != 0) & (nodes != node)]
        fresh = wanted[(scratch.totals[wanted] == 0).all(axis=1)]
        scratch.touched[scratch.have : scratch.have + fresh.size] = fresh
        scratch.have += fresh.size
        scratch.totals[wanted, 0] += weight * grains[wanted]
