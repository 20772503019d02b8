"""Rows of a batch as they lie in its journal: words of 32 bits, five a row; nine with intervals.

    who is related      the score, float64      its standard error, float64      low, high, float64

A piece holds how many rows each of its nodes has, then all rows of all, node after node.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["packed", "ranks", "rows_of", "words_of"]

Words = NDArray[np.uint32]


def words_of(intervals: bool) -> int:
    """Words a row."""
    return 9 if intervals else 5


def packed(ids: Words, scores: NDArray[np.float64]) -> bytes:
    """Rows from uint32[h] and float64[h, 2]: scores and errors; or [h, 4], with the ends of
    intervals.
    """
    numbers = 2 * scores.shape[1]
    words = np.empty((ids.size, 1 + numbers), np.uint32)
    words[:, 0] = ids
    words[:, 1:] = np.ascontiguousarray(scores).view(np.uint32).reshape(-1, numbers)
    return words.tobytes()


def ranks(counts: Words) -> NDArray[np.int64]:
    """0, 1, ... for the rows of each node."""
    ends = np.cumsum(counts, dtype=np.int64)
    found: NDArray[np.int64] = np.arange(ends[-1] if ends.size else 0)
    return found - np.repeat(ends - counts, counts)


def rows_of(words: Words, begins: NDArray[np.uint64], counts: Words, width: int) -> Words:
    """uint32[rows, width]: the rows of some nodes, in their order."""
    first = np.repeat(begins.astype(np.int64), counts) + width * ranks(counts)
    found: Words = words[first[:, None] + np.arange(width)]
    return found
