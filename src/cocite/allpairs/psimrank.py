"""All PSimRank scores by its iteration, without a loop over pairs of in-neighbours.

    p(u, v) = c / |I(u) | I(v)| * ( |I(u) & I(v)| + F(u, v) + F(v, u) )
    F(u, v) = sum of p over (I(u) - I(v)) x I(v), divided by |I(v)|

With M[w, v] the sum of p(w, .) over I(v), F(u, v) |I(v)| is the sum of M[w, v] over I(u) less that
over I(u) & I(v): a product as SimRank's, less a sum over common in-neighbours, which are found
through the links of each in-neighbour w of v, sum of out-degrees squared steps in all. For
nodes with equal in-neighbours every score is equal, and c among themselves, so they are one
class, as in ``core.py``; what the diagonal has more than its class cancels in F.

One step shrinks differences by c, as weights within the bracket sum to at most the union: the
bounds are the plain iteration's (``stopping.py``).

Cost a sweep: 2 n m additions and the sum of squared out-degrees. Memory: two matrices.
Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.2.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.allpairs.products import SparseProducts
from cocite.allpairs.stopping import ExactSweep
from cocite.allpairs.sweeps import identity

__all__ = ["CoupledSweeps"]

Matrix = NDArray[Any]


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
