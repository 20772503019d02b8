"""Sweeps over the matrix of scores: the plain iteration, and successive over-relaxation.

    plain   T <- c W S W' + the loose nodes' terms; S is T with 1 on the diagonal
            all from the last sweep's scores (Jacobi; the paper's eq. 6)
    sor     block of columns after block, in place: T[:, block] <- (1 - omega) T[:, block] +
            omega (the same formula, with what this sweep has written already); Gauss-Seidel with
            omega = 1

Each pair is computed once a sweep, with the block of its larger row, and written to both places.
Blocks of one column are the paper's iteration (its eqs. 11 and 12, whose k and k + 1 are
exchanged: fresh columns are those with j < i). Wider blocks are needed to be fast; columns of one
block do not see each other's new values, which the bounds in ``stopping.py`` allow for.

Self-loops need no care: where q_ii is not 0 the column's own last value stands for it.

Memory: the matrix, and for the plain iteration a second one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.allpairs.products import Products
from cocite.allpairs.stopping import ExactSweep

__all__ = ["PlainSweeps", "RelaxedSweeps", "identity"]

Matrix = NDArray[Any]


def identity(products: Products) -> Matrix:
    """S of no steps: 1 on the diagonal of single nodes. A class of several begins at 0."""
    matrix = np.zeros((products.core.size,) * 2, products.dtype)
    np.fill_diagonal(matrix, products.core.sizes == 1)
    return matrix


class _Sweeps:
    """What both have in common: ``matrix`` holds the scores."""

    def __init__(
        self, products: Products, decay: float, omega: float, start: Matrix | None = None
    ) -> None:
        self.products = products
        self.matrix = identity(products) if start is None else start
        self._single = (products.core.sizes == 1).astype(np.uint8)
        self._factors = np.array([decay, omega, 1.0], products.dtype)

    def _settle(self, first: int, panel: Matrix, target: Matrix) -> float:
        """Write one block's panel to ``target``, relaxed against ``matrix``."""
        from cocite.kernels import allpairs

        end = panel.shape[0]
        lower = target[first:end]

        def part(low: int, high: int) -> float:
            where = np.array([first, first, low, high, 0])
            return float(
                allpairs.settle(
                    panel, self.matrix, target, lower, where, self._single, self._factors
                )
            )

        found: float = max(self.products.team.split(part, end))
        return found


class PlainSweeps(_Sweeps):
    """The plain iteration, from no steps or from ``start``; two matrices change places."""

    def __init__(self, products: Products, decay: float, start: Matrix | None = None) -> None:
        super().__init__(products, decay, 1.0, start)
        self._next = np.zeros_like(self.matrix)

    def __call__(self) -> ExactSweep:
        """One sweep."""
        change = 0.0
        for first, end in self.products.blocks():
            panel = self.products.panel(first, end, self.matrix)
            change = max(change, self._settle(first, panel, self._next))
        self.matrix, self._next = self._next, self.matrix
        return ExactSweep(change)


class RelaxedSweeps(_Sweeps):
    """Over-relaxation in place."""

    def __call__(self) -> ExactSweep:
        """One sweep."""
        change = 0.0
        for first, end in self.products.blocks():
            panel = self.products.panel(first, end, self.matrix)
            change = max(change, self._settle(first, panel, self.matrix))
        return ExactSweep(change)
