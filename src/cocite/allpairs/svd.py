"""SimRank from a low-rank factorization of the links, without iterating over the matrix.

With Q ~ U E V' of rank r, X = c Q X Q' + D (D diagonal) has the solution

    X = D + c U M U'        M = K + c B M B'        K = E V' D V E        B = E V' U        (r x r)

M, the sum of A^k K A'^k for A = sqrt(c) B, is computed by doubling: M <- M + A M A', A <- A A. The
sum exists only if A's spectral radius is below 1. The published D = (1 - c) I gives a different
measure; here GMRES solves n linear equations for D, so that SimRank is 1 on the diagonal. One plain
step bounds the error: |X - S*| <= |G(X) - X| / (1 - c). Subspace iteration from a fixed start
computes the factors. Takes O(n r^2) time per step for D, and O(n^2 r) for X. Source: Li et al.
2010, as described in Yu et al. 2011, sections 5.1.4 and 6; doubling: Smith 1968; subspace
iteration: Halko, Martinsson, Tropp 2011; GMRES: Saad, Schultz 1986.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cocite.allpairs.core import Core, WeightedLinks
from cocite.errors import NotConverged
from cocite.kernels import allpairs

Floats = NDArray[np.float64]
_OVERSAMPLED, _POWERS = 10, 6
_STEPS = 100
"""Maximum GMRES steps. At decay 0.99, about 70 give six digits of the diagonal."""
_DOUBLINGS = 64
"""Doublings for a spectral radius of 1 - 2**-58, the largest distinguishable from 1."""
_NOTHING = 1e-9
"""Norm below which a power is ignored, because its square is below the rounding error."""


def low_rank_bytes(nodes: int, rank: int, decay: float) -> int:
    """Return the peak bytes for the factors and D, without the matrix of scores."""
    rank = min(rank, nodes)
    factors = 72 * nodes * nodes if _is_large(rank, nodes) else 48 * nodes * (rank + _OVERSAMPLED)
    # Once the norm of a power is below 1, each step squares it.
    doublings = math.ceil(math.log2(math.log(_NOTHING) / math.log(math.sqrt(decay)))) + 4
    return factors + 8 * rank * rank * (doublings + 4) + 8 * nodes * (_STEPS + 2 * rank)


def low_rank_scores(
    rows: WeightedLinks, core: Core, rank: int, decay: float, accuracy: float
) -> Floats:
    """Return X for the classes of ``core``, float64[classes, classes]; ``rows`` is Q by nodes.

    Raises :class:`NotConverged` if X does not exist at this rank.
    """
    u, e, v = _factors(rows, rank)
    powers = _powers(e[:, None] * v.T @ u, decay)

    def middle(diagonal: Floats) -> Floats:
        return _stein(e[:, None] * ((v.T * diagonal) @ v) * e, powers)

    def on_diagonal(diagonal: Floats) -> Floats:
        found: Floats = diagonal + decay * np.einsum("ij,ij->i", u @ middle(diagonal), u)
        return found

    ones = np.ones(rows.rows)
    solved = middle(_gmres(on_diagonal, ones, accuracy * (1 - decay) / 10))
    of_class = u[core.firsts]
    scores: Floats = decay * (of_class @ solved) @ of_class.T
    at = np.flatnonzero(core.sizes == 1)
    scores[at, at] = 1
    return scores


def _powers(b: Floats, decay: float) -> list[Floats]:
    """Return the powers A, A^2, A^4, ... of A = sqrt(decay) B that affect the sum."""
    power: Floats = math.sqrt(decay) * b
    found: list[Floats] = []
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(_DOUBLINGS):
            size = float(np.linalg.norm(power))
            if size <= _NOTHING:
                return found
            if not math.isfinite(size):
                break
            found.append(power)
            power = power @ power
    radius = float(np.abs(np.linalg.eigvals(b)).max())
    raise NotConverged(
        f"the links truncated to rank {b.shape[0]} have a spectral radius of {radius:.6g}; at "
        f"decay {decay:g}, scores exist only below {1 / math.sqrt(decay):.6g}. Use a smaller "
        "--decay (decay=...), another --method (method=...), or a larger --rank (rank=...): the "
        "number of nodes always suffices"
    )


def _stein(start: Floats, powers: list[Floats]) -> Floats:
    """Return M = start + A M A', from the ``powers`` of A."""
    total = start
    for power in powers:
        total = total + power @ total @ power.T
    return total


def _gmres(times: Callable[[Floats], Floats], right: Floats, enough: float) -> Floats:
    """Solve times(x) = right until all |times(x) - right| <= ``enough``, or for _STEPS steps."""
    rest = right - times(right)
    size = float(np.linalg.norm(rest))
    if float(np.abs(rest).max(initial=0)) <= enough:
        return right
    basis, steps = [rest / size], np.zeros((_STEPS + 1, _STEPS))
    for k in range(_STEPS):
        following = times(basis[k])
        whole = float(np.linalg.norm(following))
        for _ in range(2):  # twice, to reduce rounding errors
            for i, direction in enumerate(basis):
                share = float(direction @ following)
                steps[i, k] += share
                following -= share * direction
        steps[k + 1, k] = float(np.linalg.norm(following))
        first = np.zeros(k + 2)
        first[0] = size
        best = np.linalg.lstsq(steps[: k + 2, : k + 1], first, rcond=None)[0]
        left = float(np.linalg.norm(first - steps[: k + 2, : k + 1] @ best))
        if left <= enough or steps[k + 1, k] <= 1e-14 * whole:
            break
        basis.append(following / steps[k + 1, k])
    return right + np.column_stack(basis[: k + 1]) @ best


def _factors(rows: WeightedLinks, rank: int) -> tuple[Floats, Floats, Floats]:
    """Return (U, E, V) of Q with at most ``rank`` singular values, all nonzero."""
    n = rows.rows
    if _is_large(rank, n):
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


def _is_large(rank: int, nodes: int) -> bool:
    """Return whether decomposing the full matrix with NumPy is at least as fast."""
    return rank + _OVERSAMPLED >= nodes / 4


def _times(rows: WeightedLinks, matrix: Floats) -> Floats:
    dense = np.ascontiguousarray(matrix)
    out: Floats = np.empty_like(dense)
    allpairs.multiply(*rows.part(0, rows.rows), dense, 0, dense.shape[1], out)
    return out
