"""Rows of min-hashes, one sample per lane: the start of a scan, and the winning nodes at its end.

    rows[v, l] = place of node v in the random order of lane l

After k scans with MIN, a row contains the smallest place in v's k-step in-neighborhood, and
``winners`` turns it into the node at that place. Both kernels process tiles of nodes, buffered with
one line per order, so that rows are accessed sequentially, at 2 to 3 ns per node and lane. Source:
Fogaras, Racz, *Scaling link-based similarity search*, 2.3.1 (Algorithm 3, line 3).
"""

from __future__ import annotations

import numpy as np

from cocite.kernels._kernel import kernel
from cocite.kernels._types import *
from cocite.kernels.random import node_at, place_of

_TILE = 128
_PAD = 16
"""Padding between lines, without which a row's positions would share one set of the first-level
cache.
"""


@kernel
def places(orders: U32s2, nodes: U32s, rows: OutU32s2) -> None:
    """Fill ``rows`` (uint32[n, lanes]) for ``nodes`` (uint32[n]). ``orders`` is
    uint32[lanes, ORDER_WORDS].
    """
    lanes = np.uint64(orders.shape[0])
    tile = np.empty((orders.shape[0], _TILE + _PAD), np.uint32)
    for low in range(0, rows.shape[0], _TILE):
        size = min(_TILE, rows.shape[0] - low)
        for lane in range(lanes):
            order, line = orders[lane], tile[lane]
            for i in range(size):
                line[i] = place_of(order, nodes[low + i])
        for i in range(size):
            for lane in range(lanes):
                rows[low + i, lane] = tile[lane, i]


@kernel
def winners(orders: U32s2, rows: U32s2, first: U64, out: OutU32s2) -> None:
    """Write the nodes at the places in ``rows``, which belong to the nodes from ``first`` on, to
    ``out``. ``out`` is uint32[lanes, nodes] for all nodes; ``orders`` as for ``places``.
    """
    lanes = np.uint64(orders.shape[0])
    tile = np.empty((orders.shape[0], _TILE + _PAD), np.uint32)
    for low in range(0, rows.shape[0], _TILE):
        size = min(_TILE, rows.shape[0] - low)
        for i in range(size):
            for lane in range(lanes):
                tile[lane, i] = rows[low + i, lane]
        for lane in range(lanes):
            order, line = orders[lane], tile[lane]
            for i in range(size):
                out[lane, np.uint64(first) + np.uint64(low + i)] = node_at(order, line[i])
