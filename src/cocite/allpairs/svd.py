"""SimRank from a low-rank factorisation of the links, without iterating on the matrix.

With Q ~ U E V' of rank r, X = c Q X Q' + D (D diagonal) has the solution

    X = D + c U M U'        M = E V' D V E + c B M B'        B = E V' U          M, B are r x r

and M follows by doubling: M <- M + A M A', A <- A A from A = sqrt(c) B. As published the method
takes D = (1 - c) I, whose X is another measure, with diagonals that differ. SimRank has 1 on the
diagonal, so we solve for that D, by D <- D + (1 - c) (1 - diag X), which shrinks the error by c a
step where I + diag-to-diag operator has eigenvalues within [1, 1 / (1 - c)].

Nothing bounds the error in the largest entry by the singular values left out, as Q's norm may be
far above 1. It is measured instead: one plain step G from X gives |X - S*| <= |G(X) - X| / (1 - c).

The factors come from subspace iteration with a fixed start, or, for ranks from a quarter of n, from
NumPy.
Cost: O(n r^2) a step for D, O(n^2 r) for X. Memory: the matrix, and 8 n r bytes a few times.
Source: Li et al. 2010, as Yu et al. 2011 describe it in 5.1.4 and 6; doubling: Smith 1968;
subspace iteration: Halko, Martinsson, Tropp 2011.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cocite.allpairs.core import Core, Links

__all__ = ["low_rank_scores"]

Floats = NDArray[np.float64]
_OVERSAMPLED, _POWERS, _STEPS = 10, 6, 400


def low_rank_scores(rows: Links, core: Core, rank: int, decay: float, accuracy: float) -> Floats:
    """float64[classes, classes]: X between the classes of ``core``; ``rows`` are Q by nodes."""
    u, e, v = _factors(rows, rank)
    b = (e[:, None] * v.T) @ u
    diagonal, middle = np.ones(rows.rows), np.zeros((e.size, e.size))
    for _ in range(_STEPS):
        inner = (v.T * diagonal) @ v
        middle = _lyapunov(e[:, None] * inner * e, b, decay)
        off = 1 - diagonal - decay * np.einsum("ij,ij->i", u @ middle, u)
        if float(np.abs(off).max(initial=0)) <= accuracy * (1 - decay) / 10:
            break
        diagonal += (1 - decay) * off
    of_class = u[core.firsts]
    scores: Floats = decay * (of_class @ middle) @ of_class.T
    at = np.flatnonzero(core.sizes == 1)
    scores[at, at] = 1
    return scores


def _lyapunov(start: Floats, b: Floats, decay: float) -> Floats:
    """M = start + decay B M B', by doubling."""
    power = np.sqrt(decay) * b
    total: Floats = start
    while True:
        added = power @ total @ power.T
        total = total + added
        if float(np.abs(added).max(initial=0)) <= 1e-16 * float(np.abs(total).max(initial=1)):
            return total
        power = power @ power


def _factors(rows: Links, rank: int) -> tuple[Floats, Floats, Floats]:
    """(U, E, V) of Q to ``rank``, or to as many singular values as are not 0."""
    n = rows.rows
    if rank + _OVERSAMPLED >= n / 4:
        full = np.zeros((n, n))
        full[np.repeat(np.arange(n), np.diff(rows.offsets)), rows.columns] = rows.weights
        u, e, vt = np.linalg.svd(full)
    else:
        start = np.random.default_rng(0).standard_normal((n, rank + _OVERSAMPLED))
        columns = rows.transposed(n)
        basis = np.linalg.qr(_times(rows, start))[0]
        for _ in range(_POWERS):
            basis = np.linalg.qr(_times(rows, np.linalg.qr(_times(columns, basis))[0]))[0]
        inner, e, vt = np.linalg.svd(_times(columns, basis).T, full_matrices=False)
        u = basis @ inner
    kept = min(rank, int((e > 1e-13 * max(e[0], 1e-300)).sum()) if e.size else 0)
    return u[:, :kept], e[:kept], vt[:kept].T


def _times(rows: Links, matrix: Floats) -> Floats:
    from cocite.kernels import allpairs

    dense = np.ascontiguousarray(matrix)
    out: Floats = np.empty_like(dense)
    columns = rows.columns
    allpairs.multiply(rows.offsets, columns, rows.weights, dense, 0, dense.shape[1], out)
    return out
