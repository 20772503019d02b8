"""What pages weigh in ``cocitation`` and ``coupling``: sums over their links, plain and by idf.

``kernels/neighbours.py`` says what they are. Cost: a pass over the links.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cocite.errors import Damaged
from cocite.graph.blocks import cut_blocks
from cocite.graph.rows import Links
from cocite.layouts.part import Progress

__all__ = ["link_norms"]

_PIECE = 8 << 20
"""Bytes of links that are read at a time."""


def link_norms(
    rows: Links, columns: Links, progress: Progress = lambda done, total: None
) -> Iterator[NDArray[np.float64]]:
    """``norms`` for the nodes of one block after another: float64[n, 2] each."""
    from cocite.kernels import neighbours

    for first, last in pairwise((0, *cut_blocks(rows, _PIECE), rows.nodes)):
        out = np.empty((last - first, 2))
        if not neighbours.norms(
            rows.offsets, rows.neighbours, columns.offsets, np.int64(first), out
        ):
            raise Damaged("the graph is damaged: its links point outside of it; make it again")
        yield out
        rows.forget()
        progress(last, rows.nodes)
