"""Making the compact layout (``format.py``): one step of every node, and its transpose.

Memory to make a sample: 28 bytes a node, with the blob before it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cocite.engine.walk import Mover
from cocite.graph.rows import Links
from cocite.layouts.blobs import Blob, Maker, SampledBuilder
from cocite.layouts.compact.format import CompactFormat, blob_words
from cocite.layouts.memory_plan import Demand, MemoryPlan, plan_fit
from cocite.layouts.plan import PartPlan
from cocite.layouts.walks.steps import step_bytes
from cocite.means import Means
from cocite.measures import SEED

__all__ = ["CompactBuilder", "CompactMaker", "maker_bytes"]


class CompactBuilder(CompactFormat, SampledBuilder):
    """Of the layout ``compact``."""

    def fitted(self, links: Links, part: PartPlan, means: Means) -> MemoryPlan:
        """Threads as long as they fit beside the whole graph, else blocks."""
        return plan_fit(links, means, Demand(part.layout, maker_bytes, step_bytes(part)))

    def makers(
        self, links: Links, part: PartPlan, fit: MemoryPlan, folder: Path, numbers: range
    ) -> list[Maker]:
        """One a thread."""
        settings = part.settings
        move = Mover(links, part.step, settings[SEED], fit.cuts, part.turn)
        return [CompactMaker(move, links.nodes) for _ in range(fit.threads)]


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
