"""The trees layout: the fingerprint trees of a sample in dendrogram order.

    position[nodes]          where each node stands, 2**32 - 1 if it met nobody
    member[p]                the nodes in dendrogram order, tree behind tree
    label[ceil(p / 8)]       the labels, eight half-bytes to a word, low first
    padding                  zeros, to a multiple of 16 words (a cache line)

p, the members, is the number of nodes that met another one.

Size: 8.5 bytes a node and sample at most. Memory to make one: 26.5 bytes a node, and 8.5 for each
that waits to be written; ``index/external_trees.py`` makes the same in less.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.engine import ExternalWalker, Walker, walker_bytes
from cocite.graph.links import Links
from cocite.index.blobs import Blob, Carrier, Maker, SampledLayout, padded
from cocite.index.plan import PartPlan
from cocite.index.room import Means, Room, plan_memory
from cocite.index.steps import part_weights
from cocite.measures import LENGTH, SEED, PartSettings

__all__ = ["TreeMaker", "TreesLayout", "blob_words", "maker_bytes"]


def blob_words(nodes: int, members: int) -> int:
    """32-bit words of a blob."""
    return padded(nodes + members + -(-members // 8))


class TreesLayout(SampledLayout):
    """The layout ``trees``."""

    has_external = True
    carries = True

    def place(
        self, nodes: int, members: Sequence[int], settings: PartSettings
    ) -> tuple[NDArray[np.uint64], int]:
        """uint64[samples, 4]: where position, member and label begin, and p."""
        blobs = np.empty((len(members), 4), np.uint64)
        base = 0
        for sample, count in enumerate(members):
            blobs[sample] = base, base + nodes, base + nodes + count, count
            base += blob_words(nodes, count)
        return blobs, base

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Of a sample in which every node meets another."""
        return blob_words(nodes, nodes)

    def plan_room(self, links: Links, part: PartPlan, means: Means) -> Room:
        """Threads as long as they fit beside the whole graph, else blocks, else everything in
        files but a block.
        """
        return plan_memory(links, means, maker_bytes)

    def makers(self, links: Links, part: PartPlan, room: Room, folder: Path) -> list[Maker]:
        """A walker and its scratch a thread."""
        settings = part.settings
        length, seed = settings[LENGTH], settings[SEED]
        weights = part_weights(links, part, room, folder)
        if room.external:
            from cocite.index.external_trees import ExternalTreeMaker

            walker = ExternalWalker(
                links,
                part.step,
                length,
                seed,
                room.cuts,
                folder,
                room.rows,
                part.turn,
                weights=weights,
            )
            return [ExternalTreeMaker(walker, links.nodes, folder)]
        walk = links, part.step, length, seed, room.cuts, part.turn
        walkers = [Walker(*walk, weights=weights) for _ in range(room.threads)]
        return [TreeMaker(walker, links.nodes, room.keep) for walker in walkers]

    def carrier(self, ids: NDArray[np.uint32], nodes: int, settings: PartSettings) -> Carrier:
        """Nodes that are gone are taken out of their trees, new ones stand in none."""
        from cocite.kernels import trees

        def carry(words: NDArray[np.uint32], blob: NDArray[np.uint64]) -> Blob:
            position, member = np.empty(nodes, np.uint32), np.empty(nodes, np.uint32)
            joined = np.empty(nodes, np.uint8)
            members = int(trees.carry_over(words, blob, ids, position, member, joined))
            if members == trees.DAMAGED:
                raise IndexError
            return Blob.of((position, member[:members], _packed(joined, nodes, members)), members)

        return carry


class TreeMaker:
    """Makes blobs; owns a walker and scratch memory, so one for each thread.

    With ``keep`` a blob lives on while the next one is made; without, it lies in the scratch.
    """

    def __init__(self, walker: Walker, nodes: int, keep: bool) -> None:
        self._walker = walker
        self._keep = keep
        self._joined = np.empty(nodes, np.uint8)

    def __call__(self, sample: int) -> Blob:
        """The blob of sample number ``sample``."""
        from cocite.kernels import trees

        found = self._walker(sample)
        nodes = self._joined.size
        position, member = found.spare
        members = int(
            trees.lay_out(found.parent, found.label, found.extent, position, member, self._joined)
        )
        tail = _packed(self._joined, nodes, members)
        parts: tuple[NDArray[np.uint32], ...] = (position, member[:members], tail)
        if self._keep:
            parts = tuple(part.copy() for part in parts)
        return Blob.of(parts, members, found.live)


def _packed(joined: NDArray[np.uint8], nodes: int, members: int) -> NDArray[np.uint32]:
    """The labels and the padding of a blob."""
    from cocite.kernels import trees

    tail = np.zeros(blob_words(nodes, members) - nodes - members, np.uint32)
    trees.pack_labels(joined[:members], tail.view(np.uint8))
    return tail


def maker_bytes(nodes: int, keep: bool) -> int:
    """The memory that one :class:`TreeMaker` takes, with its blob, and one that waits if kept."""
    blob = 4 * blob_words(nodes, nodes)
    return walker_bytes(nodes) + nodes + (2 * blob if keep else blob - 8 * nodes)
