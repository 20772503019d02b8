"""PageRank by power iteration on any links, for measures that are built on its scores.

    x = damping * (sum over in-neighbors u of x[u] / out-degree(u))
        + (1 - damping) + damping * (rank of dangling nodes) / nodes                sum of x = nodes

Convention: the rank of dangling nodes is spread over all nodes evenly, as ``pagerank`` does by
default; the mean score is 1, so that a score does not shrink as the graph grows.

Error: the map shrinks vectors of sum 0 by the damping d, so after a step with L1 change c the
vector is within c d / (1 - d) of the solution, and within 2 nodes d**k after k steps. It ends when
either is at most 1e-12 * nodes: the mean error of a score is then at most 1e-12.

Cost: log(5e-13) / log(damping) scans at most (``engine/scan.py``), 175 for 0.85; 32 bytes a node.
Source: Haveliwala, *Efficient computation of PageRank*, 2; the bound is Banach's.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cocite.engine.scan import Fold, Scan

_ACCURACY = 1e-12


def power_scores(scan: Scan, degrees: NDArray[np.uint32], damping: float) -> NDArray[np.float64]:
    """Scores of mean 1, float64[nodes].

    Parameters
    ----------
    scan
        A scan with one lane of float64 over the links, of every node, that pass rank to it.
    degrees
        uint32[nodes]: to how many nodes each node passes rank.
    damping
        The share of steps that follow a link, in (0, 1).
    """
    nodes, dangling = degrees.size, degrees == 0
    scores, after, shares = np.ones(nodes), np.empty(nodes), np.empty(nodes)
    enough = _ACCURACY * nodes
    for _ in range(math.ceil(math.log(_ACCURACY / 2) / math.log(damping))):
        np.divide(scores, degrees, out=shares, where=~dangling)
        shares[dangling] = 0
        scan(shares, Fold.SUM, out=after)
        after *= damping
        after += 1 - damping + damping * float(scores[dangling].sum()) / nodes
        np.subtract(after, scores, out=shares)
        change = float(np.abs(shares, out=shares).sum())
        scores, after = after, scores
        if change * damping / (1 - damping) <= enough:
            break
    return scores
