"""The paths layout: fingerprint trees, and the points of all walks.

    position[nodes]          where each node stands: those that met one as in the layout trees,
                             the others behind them
    member[nodes]            the nodes in that order
    label[ceil(n / 8)]       the labels, eight half-bytes to a word, low first
    steps[ceil(n / 8)]       how many points of its walk are the node's own, packed likewise
    begin[ceil(n / 8)]       where the own points of every eighth place begin
    point[p]                 the own points, place after place, those of a walk in order of steps
    padding                  zeros, to a multiple of 16 words (a cache line)

A walk that has met a smaller one goes on as that one does, so only the points before the meeting
are its own. p, the members, is the number of them all: one for each step of a walk that is still
alone or the smallest of its group behind that step.

Size: 9.5 bytes a node and sample and 4 for each of p; p is about 1 a node on webs, 2 on dense
graphs, where whole paths would be ``length`` a node. Memory to make one: 30 bytes a node, and 12
for each node and step at most, where no walks meet.
Source: 000, section 2, Algorithm 1; that walks which met need storing once is this project's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.engine import Walker, walker_bytes
from cocite.errors import ResourceError
from cocite.graph.links import Links
from cocite.index.blobs import Blob, Maker, SampledLayout, padded
from cocite.index.plan import PartPlan
from cocite.index.room import Means, Room, plan_memory
from cocite.index.steps import part_weights
from cocite.measures import LENGTH, SEED, PartSettings

__all__ = ["PathMaker", "PathsLayout", "blob_words", "maker_bytes"]

_MOST_POINTS = 2**32 - 1


def _eighths(nodes: int) -> int:
    return -(-nodes // 8)


def blob_words(nodes: int, points: int) -> int:
    """32-bit words of a blob."""
    return padded(2 * nodes + 3 * _eighths(nodes) + points)


class PathsLayout(SampledLayout):
    """The layout ``paths``."""

    def place(
        self, nodes: int, members: Sequence[int], settings: PartSettings
    ) -> tuple[NDArray[np.uint64], int]:
        """uint64[samples, 8]: where position, member and label begin; nodes; where steps, begin and
        point begin; and p. The first four are those of the layout trees.
        """
        blobs = np.empty((len(members), 8), np.uint64)
        base, eighths = 0, _eighths(nodes)
        for sample, points in enumerate(members):
            label = base + 2 * nodes
            blobs[sample, :4] = base, base + nodes, label, nodes
            blobs[sample, 4:7] = label + eighths, label + 2 * eighths, label + 3 * eighths
            blobs[sample, 7] = points
            base += blob_words(nodes, points)
        return blobs, base

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Of a sample in which no walks meet."""
        return blob_words(nodes, nodes * settings[LENGTH])

    def plan_room(self, links: Links, part: PartPlan, means: Means) -> Room:
        """Threads as long as they fit beside the whole graph, else blocks."""
        need = partial(maker_bytes, part.settings[LENGTH])
        return plan_memory(links, means, need)

    def makers(self, links: Links, part: PartPlan, room: Room, folder: Path) -> list[Maker]:
        """A walker and its scratch a thread."""
        settings = part.settings
        length, seed = settings[LENGTH], settings[SEED]
        weights = part_weights(links, part, room, folder)
        walk = links, part.step, length, seed, room.cuts, part.turn
        walkers = [Walker(*walk, weights=weights) for _ in range(room.threads)]
        return [PathMaker(walker, links.nodes, length, room.keep) for walker in walkers]


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
