"""The packed layout: the fingerprint trees of a sample as runs of nodes, in few bits.

    directory[3 (n // 64 + 1)]   for 64 nodes each: how many runs begin before them, and two words
                                 with a bit for each node that begins a run, low first
    order[ceil(r o / 32)]        for each run, by its first node, its number: o bits each
    runs[ceil(r (w + 13) / 32)]  the runs in dendrogram order, behind them those that met nobody:
                                 first node (w bits), places - 1 (5), label of the first place (4),
                                 label of the others (4)
    padding                      zeros, two words at least, to a multiple of 16 (a cache line)

r, the *members* of a sample, is the number of its runs; w are the bits of n - 1, o those of r - 1,
one at least. Numbers are packed from the lowest bit of the first word on, and go across words.

A run is up to 32 nodes with ids one behind the other that stand next to each other in dendrogram
order, joined by one label but for the first, which has its own: 0 where a tree begins. The label of
others is 0 where there are none. Nodes that met nobody are in runs of both labels 0, by ascending
ids. No run could be joined to the one behind it. Where pages are numbered by their URLs a run has
two nodes, and five in large trees.

Trees and their order are those of the layout ``trees``, so every answer is the same, to the bit.

Size: w + o + 13 bits a run and 1.5 a node: 3.1 bytes a node and sample of cnr-2000, and 6.6 with
its pages in any order, where trees have 8.5; up to 10 where there are billions. Memory to make one:
28 bytes a node, and the sample.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cocite.layouts.format import SampledFormat, padded
from cocite.measures import PartSettings

__all__ = ["WIDTH", "PackedFormat", "bits_of", "blob_words", "parts_of"]

WIDTH = 6
"""Numbers that say where a sample lies."""
_RUN = 13
"""Bits of a run beside its first node."""
_BEHIND = 2
"""Words behind the last run, as runs are read by words of 64 bits."""


def bits_of(count: int) -> int:
    """Bits of the numbers below ``count``."""
    return max(1, (count - 1).bit_length())


def parts_of(nodes: int, runs: int) -> tuple[int, int, int]:
    """Words of the directory, the order and the runs of a sample."""
    order, size = runs * bits_of(runs), runs * (bits_of(nodes) + _RUN)
    return 3 * (nodes // 64 + 1), -(-order // 32), -(-size // 32)


def blob_words(nodes: int, runs: int) -> int:
    """32-bit words of a blob."""
    return padded(sum(parts_of(nodes, runs)) + _BEHIND)


class PackedFormat(SampledFormat):
    """The layout ``packed``."""

    carries = True
    carry_node = 19
    selects = True

    def place(
        self, nodes: int, members: Sequence[int], settings: PartSettings
    ) -> tuple[NDArray[np.uint64], int]:
        """uint64[samples, 6]: where directory, order and runs begin; r, w and o."""
        blobs = np.empty((len(members), WIDTH), np.uint64)
        base = 0
        for sample, runs in enumerate(members):
            directory, order, _ = parts_of(nodes, runs)
            blobs[sample, :3] = base, base + directory, base + directory + order
            blobs[sample, 3:] = runs, bits_of(nodes), bits_of(runs)
            base += blob_words(nodes, runs)
        return blobs, base

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Of a sample in which every run is one node."""
        return blob_words(nodes, nodes)
