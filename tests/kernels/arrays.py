"""Compressed rows for kernels, from lists of neighbors."""

import numpy as np
from numpy.typing import NDArray


def compressed(neighbors: list[list[int]]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """(in_offsets, in_sources), read-only as mapped arrays are."""
    offsets = np.cumsum([0, *map(len, neighbors)], dtype=np.uint64)
    sources = np.array([u for row in neighbors for u in row], np.uint32)
    offsets.flags.writeable = sources.flags.writeable = False
    return offsets, sources
