"""The trees layout: the fingerprint trees of a sample in dendrogram order.

    position[nodes]          where each node stands, 2**32 - 1 if it met nobody
    member[p]                the nodes in dendrogram order, tree behind tree
    label[ceil(p / 8)]       the labels, eight half-bytes to a word, low first
    padding                  zeros, to a multiple of 16 words (a cache line)

p, the members, is the number of nodes that met another one.

Size: 8.5 bytes a node and sample at most. Memory to make one: 26.5 bytes a node, and 8.5 for each
that waits to be written; ``layouts/trees/external.py`` makes the same in less.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cocite.layouts.format import SampledFormat, padded
from cocite.measures import PartSettings

__all__ = ["TreesFormat", "blob_words", "labels_at"]


def blob_words(nodes: int, members: int) -> int:
    """32-bit words of a blob."""
    return padded(nodes + members + -(-members // 8))


def labels_at(words: NDArray[np.uint32], first: int, members: int) -> NDArray[np.uint8]:
    """uint8[members]: the labels of a sample, which begin at word ``first``."""
    packed = words[first : first + -(-members // 8)].view(np.uint8)
    return np.stack([packed & 15, packed >> 4], axis=1).ravel()[:members]


class TreesFormat(SampledFormat):
    """The layout ``trees``."""

    carries = True
    selects = True

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
