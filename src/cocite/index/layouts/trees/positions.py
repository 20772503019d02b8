"""The places of each node in all samples of trees, side by side: one access reads them.

    positions[node, sample] = place of the node in the sample's trees, 2**32 - 1 if it has none

They follow from the members, so builds, merges and refreshes make them alike, when all samples are
there: a column for each sample into a scratch file, then strips of rows. Cost: a pass over the
members, and each position is written twice. Memory: two strips, or a piece of a column.
Source: 001, section 2.1 (N + 2 accesses of the index for a pair, N + 1 for relatives).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.storage import ArrayWriter, Entry, evict
from cocite.storage.spool import ScratchFile

_MOST, _LEAST = 1 << 24, 1 << 20
"""Most and least bytes of strips."""


def write_positions(
    path: Path,
    nodes: int,
    samples: Iterable[tuple[NDArray[np.uint32], int]],
    memory: int,
) -> Entry:
    """Write the positions of so many ``nodes`` in the trees of some ``samples``, each with its
    words and number of members, within a quarter of ``memory``; return the entry of the file.
    """
    from cocite.kernels import trees

    room = max(_LEAST, min(_MOST, memory // 4))
    scratch, count = ScratchFile(path.parent), 0
    column = np.empty(min(nodes, room // 4), np.uint32)
    for words, members in samples:
        for low in range(0, nodes, column.size):
            piece = column[: nodes - low]
            trees.seat(np.uint64(words.ctypes.data), members, np.uint32(low), piece)
            scratch.write(4 * (count * nodes + low), piece)
        evict(words)
        count += 1
    del column
    step = min(nodes, max(1, room // (8 * count)))
    with ArrayWriter(path, np.uint32, (count,)) as writer:
        for low in range(0, nodes, step):
            strip = np.empty((count, min(step, nodes - low)), np.uint32)
            for number, row in enumerate(strip):
                scratch.read(4 * (number * nodes + low), row)
            writer.write(strip.T)
    return writer.finished
