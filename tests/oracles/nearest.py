"""Shared nearest neighbors by dense matrices: nearness, lists, and what lists share.

``sides`` holds one or both sides to compare: ``rows[v, x] = 1`` if x is a neighbor of v.
"""

import numpy as np
from numpy.typing import NDArray

from tests.oracles.fusion import order

Matrix = NDArray[np.float64]


def near(sides: list[Matrix], max_degree: int, own: float = 1.0) -> Matrix:
    """The nearness of all pairs, as the mean over sides; 0 for a node and itself. A node counts
    ``own`` among its own neighbors.
    """
    found = []
    for rows in sides:
        closed = np.maximum(rows, own * np.eye(len(rows)))
        sizes = (closed > 0).sum(axis=0)
        weights = np.where(sizes > max_degree, 0, np.log(len(rows) / sizes))
        common = np.array([(np.minimum(row, closed) * weights).sum(axis=1) for row in closed])
        totals = closed @ weights
        union = totals[:, None] + totals[None, :] - common
        found.append(np.divide(common, union, out=np.zeros_like(common), where=common > 0))
    total: Matrix = np.mean(found, axis=0)
    np.fill_diagonal(total, 0)
    return total


def lists(sides: list[Matrix], k: int, max_degree: int, own: float = 1.0) -> Matrix:
    """Row v: the vector f_v."""
    values = near(sides, max_degree, own).astype(np.float32).astype(np.float64)
    found, ranks = np.eye(len(values)), [order(node) for node in range(len(values))]
    for v, row in enumerate(values):
        best = np.lexsort((ranks, -row))[:k]
        found[v, best[row[best] > 0]] = row[best[row[best] > 0]]
    return found


def shared(vectors: Matrix, form: str, mutual: bool) -> Matrix:
    """[u, v, x]: the part of x in what the lists of u and v share."""
    kept = vectors * (vectors.T > 0) if mutual else vectors
    one, other = kept[:, None, :], kept[None, :, :]
    found: Matrix = one * other if form == "cosine" else np.minimum(one, other)
    return found


def scores(vectors: Matrix, form: str, mutual: bool) -> Matrix:
    """The scores of all pairs, as ``measures/snn.py`` defines them."""
    kept = vectors * (vectors.T > 0) if mutual else vectors
    common: Matrix = shared(vectors, form, mutual).sum(axis=2)
    if form == "cosine":
        lengths = np.linalg.norm(kept, axis=1)
        common /= np.outer(lengths, lengths)
    else:
        sums = kept.sum(axis=1)
        common /= sums[:, None] + sums[None, :] - common
    return common
