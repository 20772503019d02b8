"""PageRank by power iteration, on any links: the plain way, for what is built on its scores.

    x = damping * (sum over in-neighbours u of x[u] / out-degree(u))
        + (1 - damping) + damping * (rank of dangling nodes) / nodes                sum of x = nodes

Convention: what dangling nodes have is spread over all nodes evenly, as ``pagerank`` does by
default; the mean score is 1, so that a score does not shrink as the graph grows.

Error: the map shrinks vectors of sum 0 by the damping d, so after a step with L1 change c the
vector is within c d / (1 - d) of the solution, and within 2 nodes d**k after k steps. It ends when
either is at most 1e-12 * nodes: the mean error of a score is then at most 1e-12.

Cost: log(5e-13) / log(damping) passes over the links at most, 175 for 0.85; 32 bytes a node.
Source: Haveliwala, *Efficient computation of PageRank*, 2; the bound is Banach's.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cocite.graph.blocks import cut_blocks
from cocite.graph.rows import Links

__all__ = ["power_scores"]

_ACCURACY = 1e-12
_PIECE = 64 << 20
"""Bytes of links between two points at which they can be given back, or the work interrupted."""


def power_scores(
    links: Links, degrees: NDArray[np.uint32], damping: float, streaming: bool = False
) -> NDArray[np.float64]:
    """Scores of mean 1, float64[nodes].

    Parameters
    ----------
    links
        Of every node, those that pass rank to it.
    degrees
        uint32[nodes]: to how many nodes each node passes rank.
    damping
        The share of steps that follow a link, in (0, 1).
    streaming
        Give the links' pages back as they were read.
    """
    from cocite.kernels.links import collect

    nodes = links.nodes
    cuts = (0, *cut_blocks(links, _PIECE), nodes)
    dangling = degrees == 0
    scores, after = np.ones(nodes), np.empty(nodes)
    shares = np.empty(nodes)
    enough = _ACCURACY * nodes
    for _ in range(math.ceil(math.log(_ACCURACY / 2) / math.log(damping))):
        np.divide(scores, degrees, out=shares, where=~dangling)
        shares[dangling] = 0
        for low, high in pairwise(cuts):
            collect(links.offsets[low : high + 1], links.neighbours, shares, after[low:high])
            if streaming:
                links.forget()
        after *= damping
        after += 1 - damping + damping * float(scores[dangling].sum()) / nodes
        np.subtract(after, scores, out=shares)
        change = float(np.abs(shares, out=shares).sum())
        scores, after = after, scores
        if change * damping / (1 - damping) <= enough:
            break
    return scores
