"""Sweeps over the matrix of scores: the plain iteration, and successive over-relaxation.

    plain   T <- c W S W' + the loose nodes' terms; S is T with 1 on the diagonal
            all from the last sweep's scores (Jacobi; the paper's eq. 6)
    sor     block of columns after block, in place: T[:, block] <- (1 - omega) T[:, block] +
            omega (the same formula, with what this sweep has written already); Gauss-Seidel with
            omega = 1

Each pair is computed once a sweep, with the block of its larger row, and written to both places.
Blocks of one column are the paper's iteration (its eqs. 11 and 12, whose k and k + 1 are
exchanged: fresh columns are those with j < i). Wider blocks are needed to be fast; columns of one
block do not see each other's new values, which the bounds in ``allpairs/scores.py`` allow for.

Self-loops need no care: where q_ii is not 0 the column's own last value stands for it.

Memory: the matrix, and for the plain iteration a second one.

All PSimRank scores by its iteration, without a loop over pairs of in-neighbors.

    p(u, v) = c / |I(u) | I(v)| * ( |I(u) & I(v)| + F(u, v) + F(v, u) )
    F(u, v) = sum of p over (I(u) - I(v)) x I(v), divided by |I(v)|

With M[w, v] the sum of p(w, .) over I(v), F(u, v) |I(v)| is the sum of M[w, v] over I(u) less that
over I(u) & I(v): a product as SimRank's, less a sum over common in-neighbors, which are found
through the links of each in-neighbor w of v, sum of out-degrees squared steps in all. For
nodes with equal in-neighbors every score is equal, and c among themselves, so they are one
class, as in ``allpairs/core.py``; what the diagonal has more than its class cancels in F.

One step shrinks differences by c, as weights within the bracket sum to at most the union: the
bounds are the plain iteration's (``allpairs/scores.py``).

Cost a sweep: 2 n m additions and the sum of squared out-degrees. Memory: two matrices.
Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.2.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.allpairs.products import Products, SparseProducts
from cocite.allpairs.scores import ExactSweep

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


# -- psimrank ----------------------------------------------------------------------------


class CoupledSweeps:
    """Sweeps of the iteration; the core of ``products`` lists all nodes as loose."""

    def __init__(self, products: SparseProducts, decay: float) -> None:
        self.products, self._decay = products, decay
        core = products.core
        self._sizes = np.diff(core.shared.offsets).astype(products.dtype)
        # Numbers of links, not shares of them: the formula divides by |I(v)| only once.
        products.weights *= np.repeat(self._sizes, np.diff(core.links.offsets))
        self.matrix = identity(products)
        self._parts = np.empty_like(self.matrix)
        self._single = (core.sizes == 1).astype(np.uint8)

    def __call__(self) -> ExactSweep:
        """One sweep."""
        for first, end in self.products.blocks():
            self._part(first, end)
        blocks = self.products.blocks()
        change = 0.0
        for first, end in blocks:
            change = max(change, self._combine(first, end))
        return ExactSweep(change)

    def _part(self, first: int, end: int) -> None:
        """F of the block's columns."""
        from cocite.kernels import allpairs

        core, size = self.products.core, self.products.core.size
        turned = self.products.gathered(first, end, self.matrix)
        panel = self.products.times(turned, size)
        allpairs.subtract_shared(
            core.shared.offsets[first : end + 1],
            core.shared.columns,
            core.spread.offsets,
            core.spread.columns,
            core.owners,
            turned,
            panel,
        )
        self._parts[:, first:end] = panel / self._sizes[first:end]

    def _combine(self, first: int, end: int) -> float:
        from cocite.kernels import allpairs

        core = self.products.core
        return float(
            allpairs.combine_shared(
                core.shared.offsets[first : end + 1],
                core.shared.columns,
                (core.spread.offsets, core.spread.columns, self._single),
                first,
                self._sizes,
                self._parts,
                self._decay,
                self.matrix,
            )
        )
