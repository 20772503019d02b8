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

import numpy as np
from numpy.typing import NDArray

from cocite.layouts.format import SampledFormat, padded
from cocite.measures import LENGTH, PartSettings

__all__ = ["PathsFormat", "blob_words"]


def _eighths(nodes: int) -> int:
    return -(-nodes // 8)


def blob_words(nodes: int, points: int) -> int:
    """32-bit words of a blob."""
    return padded(2 * nodes + 3 * _eighths(nodes) + points)


class PathsFormat(SampledFormat):
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
