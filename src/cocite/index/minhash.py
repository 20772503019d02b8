"""The minhash layout: for every ring of a sample the groups of nodes that share their winner.

    cell[nodes, length]      where the node's group begins in ``group``, ring after ring,
                             2**32 - 1 if it is alone in its group
    group[p]                 the groups, ring after ring: the winner, how many nodes, the nodes
    padding                  zeros, to a multiple of 16 words (a cache line)

p, the members, is the number of words of all groups. Groups of a ring are in order of their
winners, nodes in a group ascending. A node's winner in a ring is the node that is first, in the
sample's random order, among those from which it is reached in so many links at most; it is written
as 2**32 - 1 if that node is gone since (``index/refresh.py``).

Size: 4 bytes a node, ring and sample for the cells, at most as much for the members of groups, and
8 for each group; on webs less than 8 in all. Memory to make one: as much, and 4 bytes a node
(``rings.py`` has the rest). Source: 001, section 2.3 and Algorithm 3; the paper keeps the winners
and an inverted list, the same two cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.errors import ResourceError
from cocite.graph.links import Links
from cocite.index.blobs import Blob, Carrier, Maker, SampledLayout, padded
from cocite.index.plan import PartPlan
from cocite.index.rings import LANES, Layer, RingMaker, plan_rings
from cocite.index.room import Means, Room
from cocite.measures import LENGTH, PartSettings

__all__ = ["MinhashLayout", "blob_words"]

_MOST_WORDS = 2**32 - 1


def blob_words(nodes: int, length: int, members: int) -> int:
    """32-bit words of a blob."""
    return padded(nodes * length + members)


class MinhashLayout(SampledLayout):
    """The layout ``minhash``."""

    together = LANES
    carries = True

    def place(
        self, nodes: int, members: Sequence[int], settings: PartSettings
    ) -> tuple[NDArray[np.uint64], int]:
        """uint64[samples, 4]: where cells and groups begin, p, and the length."""
        blobs = np.empty((len(members), 4), np.uint64)
        base, length = 0, settings[LENGTH]
        for sample, count in enumerate(members):
            blobs[sample] = base, base + nodes * length, count, length
            base += blob_words(nodes, length, count)
        return blobs, base

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Of a sample in which all groups are pairs."""
        length = settings[LENGTH]
        return blob_words(nodes, length, length * (nodes // 2 * 4 + nodes % 2))

    def plan_room(self, links: Links, part: PartPlan, means: Means) -> Room:
        """In memory if all fits, else on disk (``rings.py``)."""
        blob = 4 * (self.most_words(links.nodes, part.settings) + links.nodes)
        length = part.settings[LENGTH]
        return plan_rings(links, length, means, blob)

    def makers(self, links: Links, part: PartPlan, room: Room, folder: Path) -> list[Maker]:
        """One, with threads of its own."""
        most = self.most_words(links.nodes, part.settings)
        return [RingMaker(links, part, room, folder, lambda: GroupLayer(most))]

    def carrier(self, ids: NDArray[np.uint32], nodes: int, settings: PartSettings) -> Carrier:
        """Nodes that are gone leave their groups, new ones are alone in every ring."""
        from cocite.kernels import groups

        length = settings[LENGTH]

        def carry(words: NDArray[np.uint32], blob: NDArray[np.uint64]) -> Blob:
            made = np.empty(blob_words(nodes, length, int(blob[2])), np.uint32)
            cells, group = made[: nodes * length].reshape(nodes, length), made[nodes * length :]
            members = int(groups.carry_over(words, blob, ids, cells, group))
            if members == groups.DAMAGED:
                raise IndexError
            end = blob_words(nodes, length, members)
            made[nodes * length + members : end] = 0
            return Blob.of((made[:end],), members)

        return carry


class GroupLayer(Layer):
    """Lists the groups of a sample; ``most`` is the words of a blob at most."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._begins = np.empty(0, np.uint32)

    def __call__(self, sample: int, rings: Sequence[NDArray[np.uint32]]) -> Blob:
        """A blob of memory of its own."""
        from cocite.kernels import groups

        nodes, length = rings[0].size, len(rings)
        words = np.empty(self._most, np.uint32)  # pages that are not touched are not there
        cells = words[: nodes * length].reshape(nodes, length)
        group = words[nodes * length :]
        if not self._begins.size:
            self._begins = np.empty(nodes, np.uint32)
        at = 0
        for ring, winners in enumerate(rings):
            at = int(groups.list_groups(winners, ring, self._begins, cells, group, np.uint64(at)))
            if at > _MOST_WORDS:
                raise ResourceError(
                    f"the groups of sample {sample} take {at:,} words; the layout minhash holds "
                    f"{_MOST_WORDS:,} at most. Choose a smaller length, or the layout sketch"
                )
        used, end = nodes * length + at, blob_words(nodes, length, at)
        words[used:end] = 0
        return Blob.of((words[:end],), at)
