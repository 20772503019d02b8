"""The sketch layout: some bits of a hash of each min-hash, in planes.

    plane[ceil(nodes / 512), length, bits, 16]    32-bit words, block of 512 nodes after block

Bit i of word w of a plane belongs to node 32 w + i of its block; what is beyond the last node is 0.
The members of a sample are its nodes, and say nothing more.

Size: ``bits`` / 8 bytes a node, ring and sample: with ``bits`` 1 a sixtieth of the layout minhash.
There are no lists: asking for related nodes reads all of it.
Source: Li, Koenig 2010, *b-bit minwise hashing*; ``kernels/sketch.py`` says how it is asked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cocite.layouts.format import SampledFormat
from cocite.measures import LENGTH, PartSettings
from cocite.measures.xjaccard import BITS

__all__ = ["BLOCK", "PLANE", "SketchFormat", "blob_words"]

BLOCK, PLANE = 512, 16
"""Nodes of a block, and words of a plane."""


def blob_words(nodes: int, length: int, bits: int) -> int:
    """32-bit words of a blob."""
    return -(-nodes // BLOCK) * length * bits * PLANE


class SketchFormat(SampledFormat):
    """The layout ``sketch``."""

    selects = True

    def place(
        self, nodes: int, members: Sequence[int], settings: PartSettings
    ) -> tuple[NDArray[np.uint64], int]:
        """uint64[samples, 3]: where the planes begin, the length, and the bits."""
        blobs = np.empty((len(members), 3), np.uint64)
        words = self.most_words(nodes, settings)
        blobs[:, 0] = np.arange(len(members)) * words
        blobs[:, 1:] = settings[LENGTH], settings[BITS]
        return blobs, len(members) * words

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Of any sample."""
        return blob_words(nodes, settings[LENGTH], settings[BITS])
