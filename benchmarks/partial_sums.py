"""All-pairs SimRank by partial sums, the baseline of Yu et al. 2011.

    partial_u(b) = sum of s(a, b) over a in I(u)                   once for all v
    s(u, v)      = c / (|I(u)| |I(v)|) * sum of partial_u(b) over b in I(v)

on all pairs of nodes, for the number of iterations that the accuracy requires a priori. Its
iterates are those of the plain iteration. Classes, symmetry and panels are deliberately not used.

Costs 2 n m additions per sweep and two n x n matrices of float64.
Source: Lizorkin et al. 2008, as described by Yu et al. 2011, sections 5.2 and 6.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite import Graph
from cocite.allpairs.scores import DenseMatrix, ExactConvergence, Scores

_ROWS = 64
"""Rows of partial sums at a time."""


def sweeps_for(epsilon: float, decay: float) -> int:
    """Return the least k with decay^(k + 1) <= epsilon."""
    return max(1, math.ceil(math.log(epsilon) / math.log(decay)) - 1)


def partial_sums_bytes(graph: Graph) -> int:
    """Return the bytes of two matrices and of some rows of partial sums."""
    return 16 * graph.nodes**2 + 24 * _ROWS * graph.nodes + 20 * graph.edges


def partial_sums(graph: Graph, decay: float, epsilon: float) -> Scores:
    """Compute the scores of all pairs, to an accuracy of ``epsilon``."""
    from scipy.sparse import csr_array

    nodes, offsets = graph.nodes, graph.in_offsets.astype(np.int64)
    links = csr_array((np.ones(graph.edges), graph.in_sources.astype(np.int32), offsets))
    links.resize((nodes, nodes))
    means = 1 / np.maximum(np.diff(offsets), 1)
    scores, after = np.eye(nodes), np.empty((nodes, nodes))
    limit = sweeps_for(epsilon, decay)
    for _ in range(limit):
        change = _sweep(links, means, decay, scores, after)
        scores, after = after, scores
    left = decay ** (limit + 1)
    ended = ExactConvergence(limit, change, left, 0.0, 0.0, f"{decay:g}^{limit + 1}", True)
    ids = np.arange(nodes)
    how = "psum", "sparse", "double", (0, 0)
    return Scores(ended, graph.names, *how, DenseMatrix(scores), ids, nodes, range(nodes))


def _sweep(
    links: Any,
    means: NDArray[np.float64],
    decay: float,
    scores: NDArray[np.float64],
    after: NDArray[np.float64],
) -> float:
    """Write the next iterate to ``after``; return the largest change."""
    change, width = 0.0, _ROWS
    for low in range(0, means.size, width):
        part = slice(low, min(low + width, means.size))
        partial = links[part] @ scores
        after[part] = (links @ partial.T).T
        after[part] *= decay * means[part, None] * means
        after[np.arange(part.start, part.stop), np.arange(part.start, part.stop)] = 1.0
        change = max(change, float(np.abs(after[part] - scores[part]).max()))
    return change
