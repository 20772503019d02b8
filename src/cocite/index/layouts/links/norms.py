"""What pages weigh: sums over their links, plain and by idf for ``cocitation`` and ``coupling``, or
of their weights for ``ppr-symmetric``.

``kernels/neighbors.py`` says what the norms are. Cost: a pass over the links.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cocite.errors import Damaged
from cocite.graph.blocks import Links, cut_blocks
from cocite.index.layouts.memory_plan import Progress

_PIECE = 8 << 20
"""Bytes of links that are read at a time."""


def link_norms(
    rows: Links, columns: Links, progress: Progress = lambda done, total: None
) -> Iterator[NDArray[np.float64]]:
    """``norms`` for the nodes of one block after another: float64[n, 2] each."""
    from cocite.kernels import neighbors

    for first, last in pairwise((0, *cut_blocks(rows, _PIECE), rows.nodes)):
        out = np.empty((last - first, 2))
        if not neighbors.norms(rows.offsets, rows.neighbors, columns.offsets, np.int64(first), out):
            raise Damaged("the graph is damaged: its links point outside of it; make it again")
        yield out
        rows.evict()
        progress(last, rows.nodes)


def link_degrees(links: Links) -> Iterator[NDArray[np.float64]]:
    """How many links each node of one block after another has, or what they weigh: float64[n]."""
    from cocite.kernels.links import sum_runs

    for first, last in pairwise((0, *cut_blocks(links, _PIECE), links.nodes)):
        offsets = links.offsets[first : last + 1].astype(np.int64)
        out = np.diff(offsets).astype(np.float64)
        if links.weights is not None:
            weights = links.weights[offsets[0] : offsets[-1]]
            sum_runs(offsets[:-1] - offsets[0], weights.astype(np.float64), out)
        yield out
        links.evict()
