"""Common neighbors by dense products, and personalized PageRank by its linear equations.

``rows[v, x] = 1`` if x is in the compared neighborhood of v.
"""

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def common(rows: Matrix, form: str, idf: bool) -> Matrix:
    """The scores of all pairs, as ``measures/cocitation.py`` defines them."""
    n = len(rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.log(n / rows.sum(axis=0)) if idf else np.ones(n)
        weights[rows.sum(axis=0) == 0] = 0
        if form == "cosine":
            vectors = rows * weights
            length = np.linalg.norm(vectors, axis=1)
            scores = (vectors @ vectors.T) / np.outer(length, length)
        else:
            shared = (rows * weights) @ rows.T
            totals = rows @ weights
            union = totals[:, None] + totals[None, :] - shared
            scores = shared if form == "count" else shared / union
    scores = np.nan_to_num(scores, nan=0.0, posinf=0.0)
    if form != "count":
        np.fill_diagonal(scores, 1)
    return scores


def ppr(steps: Matrix, damping: float) -> Matrix:
    """Row u: the shares of a walk from u; ``steps[u, v] = 1`` if it may step from u to v.

    x = (1 - damping) e_u + damping (P' x + (x's sum over nodes without a step) e_u).
    """
    n = len(steps)
    degree = steps.sum(axis=1)
    chances = steps / np.where(degree == 0, 1, degree)[:, None]
    shares = np.empty((n, n))
    for u in range(n):
        start = np.eye(n)[u]
        returning = np.outer(start, degree == 0)
        system = np.eye(n) - damping * (chances.T + returning)
        shares[u] = np.linalg.solve(system, (1 - damping) * start)
    return shares
