"""The compact layout: one in-link a node, taken at every step, forwards and backwards.

    forward[nodes]       the node that a walk at each node steps to, 2**32 - 1 if it ends there
    begin[nodes + 1]     where each node's children, the nodes that step to it, begin
    child[m]             the children, ascending
    padding              zeros, to a multiple of 16 words (a cache line)

m, the members, is the number of nodes that have an in-link.

Size: 12 bytes a node and sample, whatever the length of walks, which are all there whole. The trees
layout holds the same meetings in 8.5, but not where the walks went. Memory to make one: 28 bytes a
node, with the blob before it.
Source: 000, section 3 (IndexIn, IndexOut).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.engine import Mover
from cocite.graph.links import Links
from cocite.index.blobs import Blob, Maker, SampledLayout, padded
from cocite.index.plan import PartPlan
from cocite.index.room import Means, Room, plan_memory
from cocite.measures import LENGTH, SEED, PartSettings

__all__ = ["CompactLayout", "CompactMaker", "blob_words", "maker_bytes"]


def blob_words(nodes: int, members: int) -> int:
    """32-bit words of a blob."""
    return padded(2 * nodes + 1 + members)


class CompactLayout(SampledLayout):
    """The layout ``compact``."""

    def place(
        self, nodes: int, members: Sequence[int], settings: PartSettings
    ) -> tuple[NDArray[np.uint64], int]:
        """uint64[samples, 5]: where forward, begin and child begin, m, and the length of walks."""
        blobs = np.empty((len(members), 5), np.uint64)
        base, length = 0, settings[LENGTH]
        for sample, count in enumerate(members):
            blobs[sample] = base, base + nodes, base + 2 * nodes + 1, count, length
            base += blob_words(nodes, count)
        return blobs, base

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Of a graph in which every node has an in-link."""
        return blob_words(nodes, nodes)

    def plan_room(self, links: Links, part: PartPlan, means: Means) -> Room:
        """Threads as long as they fit beside the whole graph, else blocks."""
        return plan_memory(links, means, maker_bytes)

    def makers(self, links: Links, part: PartPlan, room: Room, folder: Path) -> list[Maker]:
        """One a thread."""
        settings = part.settings
        move = Mover(links, part.step, settings[SEED], room.cuts, part.turn)
        return [CompactMaker(move, links.nodes) for _ in range(room.threads)]


class CompactMaker:
    """Makes blobs; every blob is memory of its own."""

    def __init__(self, move: Mover, nodes: int) -> None:
        self._move = move
        self._everywhere = np.arange(nodes, dtype=np.uint32)

    def __call__(self, sample: int) -> Blob:
        """The blob of sample number ``sample``."""
        from cocite.kernels import compact

        nodes = self._everywhere.size
        words = np.zeros(blob_words(nodes, nodes), np.uint32)
        forward, begin = words[:nodes], words[nodes : 2 * nodes + 1]
        self._move(sample, 1, self._everywhere, forward)
        members = int(compact.list_children(forward, begin, words[2 * nodes + 1 :]))
        return Blob.of((words[: blob_words(nodes, members)],), members, (members,))


def maker_bytes(nodes: int, keep: bool) -> int:
    """The memory that one :class:`CompactMaker` takes, with its blob and the one before it, which
    is there with ``keep`` or without: nothing of a blob lies in scratch memory.
    """
    return 4 * nodes + 8 * blob_words(nodes, nodes)
