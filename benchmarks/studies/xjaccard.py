"""XJaccard by its definition (``measures/xjaccard.py``), by rows of bits, one per pair of nodes.

Costs length products of rows * nodes**2 operations, for the requested number of rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cocite.errors import ResourceError
from cocite.graph.blocks import Links
from cocite.measures.measure import Component
from cocite.measures.settings import DECAY
from cocite.measures.xjaccard import NORMALIZED, RINGS, XJACCARD, ring_weights
from cocite.resources import budget, format_size

_BLOCK = 512


def exact_xjaccard(
    links: Links,
    rows: NDArray[np.integer] | None = None,
    *,
    length: int = 4,
    decay: float = 0.6,
    normalized: bool = False,
    memory: str | int | None = None,
) -> NDArray[np.float64]:
    """Scores by the definition, without samples.

    Parameters
    ----------
    links
        ``in_links`` of a checked graph, or its ``out_links``.
    rows
        Ids of the nodes whose scores are wanted; by default all.
    length, decay, normalized
        As the measure has them.
    memory
        What may be taken, 8 bytes a score and a quarter of a byte a pair of nodes; by default half
        of what is available.

    Returns
    -------
    float64[rows, nodes]

    Raises
    ------
    UsageError, ResourceError
    """
    given = {DECAY.name: decay, NORMALIZED.name: normalized}
    asked = Component(XJACCARD).ask_settings(XJACCARD.ask_settings(given))
    RINGS.checked(length)
    nodes, limit = links.nodes, budget(memory)
    wanted = np.arange(nodes) if rows is None else np.asarray(rows, np.int64)
    across = -(-nodes // 8)
    needed = nodes * (2 * across + 8 * wanted.size + 10 * min(_BLOCK, nodes))
    if needed > limit:
        raise ResourceError(
            f"{wanted.size:,} rows of the scores of {nodes:,} nodes take {format_size(needed)} of "
            f"memory; {format_size(limit)} may be used. Ask for fewer, or build an index instead"
        )
    scores = np.zeros((wanted.size, nodes))
    reached = np.zeros((nodes, across), np.uint8)  # a bit a pair
    every = np.arange(nodes)
    reached[every, every >> 3] = 0x80 >> (every & 7)
    bounds = links.offsets.astype(np.int64)
    for weight in ring_weights(asked, length):
        before = reached.copy()
        for node in range(nodes):
            near = links.neighbors[bounds[node] : bounds[node + 1]]
            if near.size:
                reached[node] |= np.bitwise_or.reduce(before[near], axis=0)
        for high in range(0, nodes, _BLOCK):
            others = _members(reached[high : high + _BLOCK], nodes)
            sizes = others.sum(axis=1)
            for low in range(0, wanted.size, _BLOCK):
                own = _members(reached[wanted[low : low + _BLOCK]], nodes)
                common = own @ others.T
                united = own.sum(axis=1)[:, None] + sizes - common
                found = scores[low : low + _BLOCK, high : high + _BLOCK]
                found += weight * (common / united.astype(np.float64))
    return scores


def _members(bits: NDArray[np.uint8], nodes: int) -> NDArray[np.float32]:
    """float32[rows, nodes] of 0 and 1 from rows of bits; sums below 2**24 are exact."""
    return np.unpackbits(bits, axis=1, count=nodes).astype(np.float32)
