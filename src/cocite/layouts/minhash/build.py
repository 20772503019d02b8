"""Making the minhash layout (``format.py``): groups of nodes that share their winner, by ring.

Memory: that of a sample's groups, and 4 bytes a node (``layouts/rings/build.py`` has the rest).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.graph.in_blocks import BlockedLinks
from cocite.graph.rows import Links
from cocite.layouts.blobs import Blob, Carrier, Maker, SampledBuilder
from cocite.layouts.memory_plan import MemoryPlan
from cocite.layouts.minhash.format import MinhashFormat, blob_words, check_words
from cocite.layouts.plan import PartPlan
from cocite.layouts.rings.build import Layer, RingMaker, plan_rings, wanted_bytes, wanted_of
from cocite.means import Means
from cocite.measures import LENGTH, PartSettings

__all__ = ["MinhashBuilder"]


class MinhashBuilder(MinhashFormat, SampledBuilder):
    """Of the layout ``minhash``."""

    def fitted(self, links: Links, part: PartPlan, means: Means) -> MemoryPlan:
        """In memory if all fits, else on disk (``layouts/rings/build.py``)."""
        if isinstance(links, BlockedLinks):
            from cocite.layouts.rings.blocks import fit_ring_blocks

            return fit_ring_blocks(links, part, means)
        blob = 4 * (self._most(links, part) + links.nodes)
        return plan_rings(links, part, means, blob + wanted_bytes(part))

    def makers(
        self, links: Links, part: PartPlan, fit: MemoryPlan, folder: Path, numbers: range
    ) -> list[Maker]:
        """One, with threads of its own."""
        if isinstance(links, BlockedLinks):
            from cocite.layouts.minhash.blocks import BlocksGroupMaker

            return [BlocksGroupMaker(links, part, fit, folder, numbers)]
        most, wanted = self._most(links, part), None if part.wanted is None else part.wanted.ids()
        return [RingMaker(links, part, fit, folder, numbers, lambda: GroupLayer(most, wanted))]

    def _most(self, links: Links, part: PartPlan) -> int:
        return self.most_words(part.stored_nodes(links.nodes), part.settings)

    def carrier(self, ids: NDArray[np.uint32], nodes: int, settings: PartSettings) -> Carrier:
        """Nodes that are gone leave their groups, new ones are alone in every ring."""
        from cocite.kernels import minhash_groups

        length = settings[LENGTH]

        def carry(words: NDArray[np.uint32], blob: NDArray[np.uint64]) -> Blob:
            made = np.empty(blob_words(nodes, length, int(blob[2])), np.uint32)
            cells, group = made[: nodes * length].reshape(nodes, length), made[nodes * length :]
            members = int(minhash_groups.carry_over(words, blob, ids, cells, group))
            if members == minhash_groups.DAMAGED:
                raise IndexError
            end = blob_words(nodes, length, members)
            made[nodes * length + members : end] = 0
            return Blob.of((made[:end],), members)

        return carry


class GroupLayer(Layer):
    """Lists the groups of a sample; ``most`` is the words of a blob at most. ``wanted`` uint32[m],
    ascending, are the nodes that it is of, None for all.
    """

    def __init__(self, most: int, wanted: NDArray[np.uint32] | None = None) -> None:
        self._most, self._wanted = most, wanted
        self._begins = np.empty(0, np.uint32)

    def __call__(self, sample: int, rings: Sequence[NDArray[np.uint32]]) -> Blob:
        """A blob of memory of its own."""
        from cocite.kernels import minhash_groups

        everybody, length = rings[0].size, len(rings)
        nodes = everybody if self._wanted is None else self._wanted.size
        words = np.empty(self._most, np.uint32)  # pages that are not touched are not there
        cells = words[: nodes * length].reshape(nodes, length)
        group = words[nodes * length :]
        if not self._begins.size:
            self._begins = np.empty(everybody, np.uint32)
        at = 0
        for ring, all_winners in enumerate(rings):
            winners, begin = wanted_of(all_winners, self._wanted), at
            at = int(
                minhash_groups.list_groups(winners, ring, self._begins, cells, group, np.uint64(at))
            )
            if self._wanted is not None:
                minhash_groups.name_winners(group[begin:at], self._wanted)
            check_words(sample, at)
        used, end = nodes * length + at, blob_words(nodes, length, at)
        words[used:end] = 0
        return Blob.of((words[:end],), at)
