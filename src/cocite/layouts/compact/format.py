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

import numpy as np
from numpy.typing import NDArray

from cocite.layouts.format import SampledFormat, padded
from cocite.measures import LENGTH, PartSettings

__all__ = ["CompactFormat", "blob_words"]


def blob_words(nodes: int, members: int) -> int:
    """32-bit words of a blob."""
    return padded(2 * nodes + 1 + members)


class CompactFormat(SampledFormat):
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
