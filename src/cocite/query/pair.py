"""The similarity of two nodes: the range maximum between their places, sample by sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cocite.index import StoredIndex
from cocite.index.stored import damaged
from cocite.query.scores import ONE, Score, score_of

__all__ = ["meeting_times", "similarity"]


def meeting_times(index: StoredIndex, first: int, second: int) -> NDArray[np.uint8]:
    """tau in every sample, uint8[samples]; 255 where the walks do not meet."""
    from cocite.kernels import lookup

    times = np.empty(index.samples, np.uint8)
    for shard in index.shards:
        out = times[shard.first : shard.first + shard.samples]
        nodes = np.uint32(first), np.uint32(second)
        if not lookup.meeting_times(shard.words, shard.blobs, *nodes, out):
            raise damaged(index, shard.first)
    return times


def similarity(index: StoredIndex, first: int, second: int, weights: NDArray[np.uint64]) -> Score:
    """The score of two ids; a node and itself score 1 with no error."""
    if first == second:
        return score_of(index.samples * ONE, index.samples * ONE, index.samples)
    times = meeting_times(index, first, second)
    counts = np.bincount(times[times < 16], minlength=16)
    total = sum(int(c) * int(w) for c, w in zip(counts, weights[:, 0], strict=True))
    squares = sum(int(c) * int(w) for c, w in zip(counts, weights[:, 1], strict=True))
    return score_of(total, squares, index.samples)
