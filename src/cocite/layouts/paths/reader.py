"""Asking stored paths: what trees answer, and where the walks went.

Scores come from the same labels as in the layout trees, by the same kernels: they are the same to
the bit. The points of the walks say beside them where two walks met, and any walk as a whole.

Cost: as for trees; a walk reads the labels from its place to the beginning of its tree.
Source: 000, section 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cocite.layouts.stored import Shard
from cocite.layouts.trees.reader import TreeReader
from cocite.layouts.walks.meetings import WalkReader

__all__ = ["PathReader"]


class PathReader(WalkReader, TreeReader):
    """The layout ``paths``."""

    def _read_walks(self, shard: Shard, node: int, out: NDArray[np.uint32]) -> bool:
        from cocite.kernels import paths

        return bool(paths.follow(shard.words, shard.blobs, np.uint32(node), out))
