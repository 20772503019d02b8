"""Making the trees layout (``format.py``): walks, laid out in one pass.

Memory to make a sample: 26.5 bytes a node, and 8.5 for each that waits to be written;
``external.py`` makes the same in less. Of pages that are wanted (``layouts/wanted.py``) a sample is
made of all nodes and cut down then: 12 bytes a page that is wanted beside it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.codes import NOWHERE
from cocite.engine.external import ExternalWalker
from cocite.engine.together import TOGETHER, GroupWalker, WalkerGroup
from cocite.engine.walk import Walker, walker_bytes
from cocite.graph.in_blocks import BlockedLinks
from cocite.graph.rows import Links
from cocite.layouts.blobs import Blob, Carrier, Maker, SampledBuilder
from cocite.layouts.memory_plan import Demand, MemoryPlan, plan_fit
from cocite.layouts.plan import PartPlan
from cocite.layouts.together import TogetherMaker
from cocite.layouts.trees.format import TreesFormat, blob_words
from cocite.layouts.walks.steps import part_weights, step_bytes
from cocite.means import Means
from cocite.measures import LENGTH, SEED, PartSettings

__all__ = ["TreeMaker", "TreesBuilder", "maker_bytes", "selecting_bytes"]

_WANTED = 12
"""Bytes for each node that is wanted, beside its blob: the list, mapped, and places on the way."""


class TreesBuilder(TreesFormat, SampledBuilder):
    """Of the layout ``trees``."""

    def fitted(self, links: Links, part: PartPlan, means: Means) -> MemoryPlan:
        """Threads as long as they fit beside the whole graph, else blocks, else everything in
        files but a block.
        """
        if isinstance(links, BlockedLinks):
            from cocite.layouts.trees.blocks import fit_blocks

            return fit_blocks(links, part, means)
        step, need = step_bytes(part), maker_bytes
        if part.wanted is not None:
            need = partial(selecting_bytes, part.wanted.count)
            step = replace(step, fixed=_WANTED * part.wanted.count)
        return plan_fit(links, means, Demand(part.layout, need, step, True, TOGETHER))

    def makers(
        self, links: Links, part: PartPlan, fit: MemoryPlan, folder: Path, numbers: range
    ) -> list[Maker]:
        """A walker and its scratch a thread, or a group of samples on all threads."""
        if isinstance(links, BlockedLinks):
            from cocite.layouts.trees.blocks import BlocksMaker

            return [BlocksMaker(links, part, fit, folder, numbers)]
        settings = part.settings
        length, seed = settings[LENGTH], settings[SEED]
        weights = part_weights(links, part, fit.scratch(folder))
        wanted = None if part.wanted is None else part.wanted.ids()
        if fit.external:
            from cocite.layouts.trees.external import ExternalTreeMaker, SelectingTreeMaker

            walker = ExternalWalker(
                links,
                part.step,
                length,
                seed,
                fit.cuts,
                folder,
                fit.rows,
                part.turn,
                together=fit.together,
                weights=weights,
                in_share=part.in_share,
            )
            if wanted is not None:
                return [SelectingTreeMaker(walker, links.nodes, folder, numbers, wanted)]
            return [ExternalTreeMaker(walker, links.nodes, folder, numbers)]
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
            return [GroupMaker(group, numbers, links.nodes, fit, wanted)]
        walk = links, part.step, length, seed, fit.cuts, part.turn
        walkers = [
            Walker(*walk, weights=weights, in_share=part.in_share) for _ in range(fit.threads)
        ]
        return [TreeMaker(walker, links.nodes, fit.keep, wanted) for walker in walkers]

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
    ``wanted`` uint32[m], ascending, are the nodes that it is of, None for all.
    """

    def __init__(
        self,
        walker: Walker | GroupWalker,
        nodes: int,
        keep: bool,
        wanted: NDArray[np.uint32] | None = None,
    ) -> None:
        self._walker = walker
        self._keep, self._wanted = keep, wanted
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
        if self._wanted is not None:
            position, members = self._selected(position, member[:members])
            nodes = position.size
        tail = _packed(self._joined, nodes, members)
        parts: tuple[NDArray[np.uint32], ...] = (position, member[:members], tail)
        if self._keep:
            parts = tuple(part.copy() for part in parts)
        return Blob.of(parts, members, found.live)

    def _selected(
        self, position: NDArray[np.uint32], member: NDArray[np.uint32]
    ) -> tuple[NDArray[np.uint32], int]:
        """Cut members and labels down to the nodes that are wanted; returns where each of those
        stands, and how many do.
        """
        from cocite.kernels import trees

        assert self._wanted is not None
        joined = self._joined[: member.size]
        trees.mark(self._wanted, position, member, joined)
        members = int(trees.select(member, joined, np.zeros(4, np.int64), member, joined))
        found = np.full(self._wanted.size, NOWHERE, np.uint32)
        found[member[:members]] = np.arange(members, dtype=np.uint32)
        return found, members


class GroupMaker(TogetherMaker):
    """Makes blobs of samples that walk together."""

    def __init__(
        self,
        group: WalkerGroup,
        numbers: range,
        nodes: int,
        fit: MemoryPlan,
        wanted: NDArray[np.uint32] | None = None,
    ) -> None:
        super().__init__(numbers, fit.together)
        self._group = group
        self._makers = [TreeMaker(walker, nodes, fit.keep, wanted) for walker in group.walkers]

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


def selecting_bytes(wanted: int, nodes: int, keep: bool) -> int:
    """The same where so many nodes are wanted; their list is not in it."""
    blob = 4 * blob_words(wanted, wanted)
    return walker_bytes(nodes) + nodes + (1 + keep) * blob
