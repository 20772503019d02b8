"""Making the paths layout (``format.py``): walks that note their points, then laid out as trees.

Memory to make a sample: 30 bytes a node, and 12 for each node and step at most, where no walks
meet.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.engine.walk import Walker, walker_bytes
from cocite.errors import ResourceError
from cocite.graph.rows import Links
from cocite.layouts.blobs import Blob, Maker, SampledBuilder
from cocite.layouts.memory_plan import Demand, MemoryPlan, plan_fit
from cocite.layouts.paths.format import PathsFormat, _eighths, blob_words
from cocite.layouts.plan import PartPlan
from cocite.layouts.walks.steps import part_weights, step_bytes
from cocite.means import Means
from cocite.measures import LENGTH, SEED

__all__ = ["PathMaker", "PathsBuilder", "maker_bytes"]

_MOST_POINTS = 2**32 - 1


class PathsBuilder(PathsFormat, SampledBuilder):
    """Of the layout ``paths``."""

    def fitted(self, links: Links, part: PartPlan, means: Means) -> MemoryPlan:
        """Threads as long as they fit beside the whole graph, else blocks."""
        need = partial(maker_bytes, part.settings[LENGTH])
        return plan_fit(links, means, Demand(part.layout, need, step_bytes(part)))

    def makers(
        self, links: Links, part: PartPlan, fit: MemoryPlan, folder: Path, numbers: range
    ) -> list[Maker]:
        """A walker and its scratch a thread."""
        settings = part.settings
        length, seed = settings[LENGTH], settings[SEED]
        weights = part_weights(links, part, fit.scratch(folder))
        walk = links, part.step, length, seed, fit.cuts, part.turn
        walkers = [
            Walker(*walk, weights=weights, in_share=part.in_share) for _ in range(fit.threads)
        ]
        return [PathMaker(walker, links.nodes, length, fit.keep) for walker in walkers]


class PathMaker:
    """Makes blobs; owns a walker and scratch memory, so one for each thread.

    With ``keep`` a blob lives on while the next one is made; without, it lies in the scratch.
    """

    def __init__(self, walker: Walker, nodes: int, length: int, keep: bool) -> None:
        self._walker = walker
        self._keep = keep
        self._joined, self._steps = np.empty(nodes, np.uint8), np.empty(nodes, np.uint8)
        self._noted = np.empty(
            nodes * length, np.uint32
        )  # pages that are not touched are not there
        self._begins: list[int] = []

    def __call__(self, sample: int) -> Blob:
        """The blob of sample number ``sample``."""
        from cocite.kernels import paths, trees

        self._steps[:] = 0
        self._begins = [0]
        found = self._walker(sample, self._note)
        points = self._begins[-1]
        if points > _MOST_POINTS:
            raise ResourceError(
                f"sample {sample} has {points:,} points of walks; the layout paths holds "
                f"{_MOST_POINTS:,} at most. Choose a smaller length, or the layout trees"
            )
        nodes, joined = self._joined.size, self._joined
        eighths = _eighths(nodes)
        position, member = found.spare
        place = trees.lay_out(found.parent, found.label, found.extent, position, member, joined)
        paths.seat_others(position, member, joined, np.uint32(place))
        tail = np.zeros(blob_words(nodes, points) - 2 * nodes, np.uint32)
        label, steps, begin, point = np.split(tail, [eighths, 2 * eighths, 3 * eighths])
        trees.pack_labels(joined, label.view(np.uint8))
        first, seated = found.extent, joined  # both have served
        paths.lay_steps(member, self._steps, first, seated, begin)
        trees.pack_labels(seated, steps.view(np.uint8))
        cursors = np.array(self._begins, np.int64)
        paths.lay_points(self._steps, first, self._noted, cursors, point)
        if self._keep:
            position, member = position.copy(), member.copy()
        return Blob.of((position, member, tail), points, found.live)

    def _note(self, step: int, heads: NDArray[np.uint32], at: NDArray[np.uint32]) -> None:
        from cocite.kernels import paths

        begin = self._begins[-1]
        paths.note_step(heads, at, np.uint8(step), self._steps, self._noted[begin:])
        self._begins.append(begin + at.size)


def maker_bytes(length: int, nodes: int, keep: bool) -> int:
    """The memory that one :class:`PathMaker` takes, with its blob and the one before it.

    That is where no walks meet; mostly it is far less.
    """
    blob = 4 * blob_words(nodes, nodes * length) - (0 if keep else 8 * nodes)
    return walker_bytes(nodes) + (2 + 4 * length) * nodes + 2 * blob
