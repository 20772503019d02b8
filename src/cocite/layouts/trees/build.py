"""Making the trees layout (``format.py``): walks, laid out in one pass.

Memory to make a sample: 26.5 bytes a node, and 8.5 for each that waits to be written;
``external.py`` makes the same in less.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.engine.external import ExternalWalker
from cocite.engine.together import TOGETHER, GroupWalker, WalkerGroup
from cocite.engine.walk import Walker, walker_bytes
from cocite.graph.rows import Links
from cocite.layouts.blobs import Blob, Carrier, Maker, SampledBuilder
from cocite.layouts.memory_plan import Demand, MemoryPlan, plan_fit
from cocite.layouts.plan import PartPlan
from cocite.layouts.together import TogetherMaker
from cocite.layouts.trees.format import TreesFormat, blob_words
from cocite.layouts.walks.steps import part_weights, step_bytes
from cocite.means import Means
from cocite.measures import LENGTH, SEED, PartSettings

__all__ = ["TreeMaker", "TreesBuilder", "maker_bytes"]


class TreesBuilder(TreesFormat, SampledBuilder):
    """Of the layout ``trees``."""

    def fitted(self, links: Links, part: PartPlan, means: Means) -> MemoryPlan:
        """Threads as long as they fit beside the whole graph, else blocks, else everything in
        files but a block.
        """
        demand = Demand(part.layout, maker_bytes, step_bytes(part), True, TOGETHER)
        return plan_fit(links, means, demand)

    def makers(
        self, links: Links, part: PartPlan, fit: MemoryPlan, folder: Path, numbers: range
    ) -> list[Maker]:
        """A walker and its scratch a thread, or a group of samples on all threads."""
        settings = part.settings
        length, seed = settings[LENGTH], settings[SEED]
        weights = part_weights(links, part, fit.scratch(folder))
        if fit.external:
            from cocite.layouts.trees.external import ExternalTreeMaker

            walker = ExternalWalker(
                links,
                part.step,
                length,
                seed,
                fit.cuts,
                folder,
                fit.rows,
                part.turn,
                weights=weights,
                in_share=part.in_share,
            )
            return [ExternalTreeMaker(walker, links.nodes, folder)]
        if fit.together > 1:
            group = WalkerGroup(
                links,
                part.step,
                length,
                seed,
                fit.cuts,
                part.turn,
                together=fit.together,
                threads=fit.threads,
                folder=folder,
                weights=weights,
                in_share=part.in_share,
            )
            return [GroupMaker(group, numbers, links.nodes, fit)]
        walk = links, part.step, length, seed, fit.cuts, part.turn
        walkers = [
            Walker(*walk, weights=weights, in_share=part.in_share) for _ in range(fit.threads)
        ]
        return [TreeMaker(walker, links.nodes, fit.keep) for walker in walkers]

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

    def __init__(self, walker: Walker | GroupWalker, nodes: int, keep: bool) -> None:
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


class GroupMaker(TogetherMaker):
    """Makes blobs of samples that walk together."""

    def __init__(self, group: WalkerGroup, numbers: range, nodes: int, fit: MemoryPlan) -> None:
        super().__init__(numbers, fit.together)
        self._group = group
        self._makers = [TreeMaker(walker, nodes, fit.keep) for walker in group.walkers]

    def _make(self, samples: range) -> None:
        self._group(samples)

    def _layers(self) -> list[TreeMaker]:
        return self._makers


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
