"""Sweeps over the matrix of scores.

    plain    T <- c W S W' + the loose nodes' terms; S is T with 1 on the diagonal;
             all from the previous sweep's scores (Jacobi; Yu et al. 2011, eq. 6)
    sor      each block of columns in place: T[:, block] <- (1 - omega) T[:, block] + omega (the
             same formula, with the values already written by this sweep); Gauss-Seidel if omega = 1
    coupled  PSimRank

A sweep computes each pair once, with the block of its larger row, and writes both positions. Blocks
of one column give the paper's iteration (eqs. 11 and 12 with k and k + 1 exchanged: updated columns
are those with j < i). Wider blocks are faster, but their columns do not use each other's new
values; the bounds in ``allpairs/scores.py`` allow for this. The plain iteration stores the matrix
twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.allpairs.products import Products
from cocite.allpairs.scores import ExactSweep
from cocite.kernels import allpairs
from cocite.storage import evict
from cocite.storage.spool import Scratch

Matrix = NDArray[Any]


# A panel contains all rows of some columns. With the matrix on disk, a plain sweep reads the file
# twice, sequentially:
#
#     W S    by panel, from the same panel of S
#     T      by panel, as W times the transpose of the rows of W S with the same numbers
#
# T overwrites W S. Only pairs on and above the diagonal are computed, then mirrored, so the rows of
# W S that are still needed lie below those written. Three panels are in memory at a time.
# Over-relaxation works in place, and gathers the rows that each block links to; its reads are
# sequential only if the node order makes links short. Sums run in the same order as in memory, so
# results are bit-identical.

_LEAST = 64


def panel_width(size: int, itemsize: int, room: int, block: int) -> int:
    """Return the columns per panel, at least 64 and in whole blocks, so that three panels fit in
    ``room``. If three do not fit, return the minimum, negated.
    """
    least = -(-_LEAST // block) * block
    fitting = min(room // (3 * size * itemsize) // least, -(-size // least)) * least
    return fitting if fitting > 0 else -least


class PanelMatrix:
    """A square matrix in panels of ``width`` columns; the last may have unused columns."""

    def __init__(self, size: int, width: int, dtype: np.dtype[Any], scratch: Scratch) -> None:
        self.size, self.width = size, width
        count = max(1, -(-size // width))
        self.panels: Matrix = scratch.zeros((count, size, width), dtype)

    def block(self, first: int, end: int) -> Matrix:
        """Return the rows from ``first`` to ``end``."""
        if len(self.panels) == 1:
            return self.panels[0, first:end, : self.size]
        found: Matrix = np.concatenate([panel[first:end] for panel in self.panels], axis=1)
        evict(self.panels)
        return found[:, : self.size]

    def diagonal(self) -> Matrix:
        """Return the diagonal."""
        found = [panel.diagonal(-self.width * i).copy() for i, panel in enumerate(self.panels)]
        evict(self.panels)
        return np.concatenate(found)


class Sweeps:
    """Sweeps over a ``matrix`` in panels of ``width`` columns (whole blocks of ``products``), by
    default in one panel in memory. Initially, the matrix is the identity or ``start``.

    ``omega`` relaxes in place. Without it, plain sweeps alternate between two matrices.
    """

    def __init__(
        self,
        products: Products,
        decay: float,
        omega: float | None = None,
        start: Matrix | None = None,
        *,
        width: int = 0,
        scratch: Scratch | None = None,
    ) -> None:
        size, self.products = products.core.size, products
        self._width, self._on_disk = width or max(size, 1), scratch is not None
        how = size, self._width, products.dtype, scratch or Scratch(None)
        self.matrix = PanelMatrix(*how)
        self._next = PanelMatrix(*how) if omega is None else self.matrix
        self._single = products.core.single
        self._factors = np.array([decay, 1.0 if omega is None else omega, 1.0], products.dtype)
        if start is None:
            at = np.flatnonzero(self._single)
            self.matrix.panels[at // self._width, at, at % self._width] = 1
        else:
            self.matrix.panels = start[np.newaxis]

    def __call__(self) -> ExactSweep:
        """Make one sweep; a plain sweep on disk is two passes over the file."""
        change, diagonal, in_place = 0.0, self.matrix.diagonal(), self._next is self.matrix
        streamed = self._on_disk and not in_place
        if streamed:
            self._multiply()
        for number in range(self.matrix.panels.shape[0]):
            low = number * self._width
            for first in range(low, min(low + self._width, self.matrix.size), self.products.width):
                end = min(first + self.products.width, low + self._width, self.matrix.size)
                if streamed:
                    panel = self.products.times(self._turned(first, end), end)
                else:
                    panel = self.products.panel(first, end, self.matrix.panels)
                self.products.add_shared(first, end, diagonal, panel)
                change = max(change, self._settle(first, panel))
                if in_place:
                    diagonal[first:end] = panel.diagonal(-first)
            evict(self.matrix.panels, self._next.panels)
        self.matrix, self._next = self._next, self.matrix
        return ExactSweep(change)

    def _multiply(self) -> None:
        """Write W S to the other matrix."""
        links, width = self.products.links, self._width
        for panel, out in zip(self.matrix.panels, self._next.panels, strict=True):

            def part(low: int, high: int, panel: Matrix = panel, out: Matrix = out) -> None:
                allpairs.multiply(*links.part(low, high), panel, 0, width, out[low:high])

            self.products.team.split(part, self.matrix.size, links.offsets)
            evict(self.matrix.panels, self._next.panels)

    def _turned(self, first: int, end: int) -> Matrix:
        """Return rows [first, end) of W S, transposed."""
        size, width = self.matrix.size, self._width
        turned = self.products.turned(end - first)

        def part(low: int, high: int) -> None:
            for number in range(low, high):
                begin = number * width
                out = turned[begin : begin + width]
                rows = self._next.panels[number][first:end]
                allpairs.transpose(rows, 0, min(width, size - begin), out)

        self.products.team.split(part, self._next.panels.shape[0], aligned=1)
        return turned

    def _settle(self, first: int, panel: Matrix) -> float:
        """Write a block to both positions, the mirrored one by panel."""
        end, width = panel.shape[0], self._width
        number, column = divmod(first, width)
        old, upper = self.matrix.panels[number], self._next.panels[number]

        def part(low: int, high: int) -> float:
            change = 0.0
            for other in range(low // width, -(-high // width)):
                begin = other * width
                rows = max(low, begin), min(high, begin + width)
                where = np.array([first, column, *rows, begin])
                lower = self._next.panels[other][first:end]
                made = allpairs.settle(panel, old, upper, lower, where, self._single, self._factors)
                change = max(change, float(made))
            return change

        found: float = max(self.products.team.split(part, end))
        return found


# All-pairs PSimRank, without loops over pairs of in-neighbors.
#
#     p(u, v) = c / |I(u) | I(v)| * ( |I(u) & I(v)| + F(u, v) + F(v, u) )
#     F(u, v) = sum of p over (I(u) - I(v)) x I(v), divided by |I(v)|
#
# Let M[w, v] be the sum of p(w, .) over I(v). Then F(u, v) |I(v)| is the sum of M[w, v] over I(u)
# minus the sum over I(u) & I(v): a product as in SimRank, minus a sum over common in-neighbors,
# which are found through the out-links of each in-neighbor w of v. Nodes with equal in-neighbors
# have equal scores, and score c with each other, so they form a class as in ``allpairs/core.py``;
# the excess of the diagonal cancels in F. A step shrinks differences by c, because the weights in
# parentheses sum to at most the size of the union, so the bounds of the plain iteration apply
# (``allpairs/scores.py``). A sweep takes 2 n m additions plus the sum of the squared out-degrees.
# Source: Fogaras, Racz, *Scaling link-based similarity search*, section 2.2.2.


class CoupledSweeps:
    """Sweeps of PSimRank; all nodes in the core of ``products`` are loose."""

    def __init__(self, products: Products, decay: float) -> None:
        self.products, self._decay = products, decay
        core = products.core
        self._sizes = np.diff(core.shared.offsets).astype(products.dtype)
        # Undo the normalization of weights, because the formula divides by |I(v)| only once.
        weights = products.links.weights
        weights *= np.repeat(self._sizes, np.diff(core.links.offsets))
        self.matrix = np.diag(core.single.astype(products.dtype))
        self._parts = np.empty_like(self.matrix)
        self._single = core.single

    def __call__(self) -> ExactSweep:
        """Make one sweep."""
        for first, end in self.products.blocks():
            self._part(first, end)
        size = self.products.core.size
        pairs = np.arange(size + 1.0) ** 2  # column i has i pairs, so work up to i grows as i**2
        return ExactSweep(max(self.products.team.split(self._combine, size, pairs)))

    def _part(self, first: int, end: int) -> None:
        """Compute F for the block's columns."""
        core, size = self.products.core, self.products.core.size
        turned = self.products.gathered(first, end, [self.matrix])
        panel = self.products.times(turned, size)
        rows, spread = core.shared.part(first, end)[:2], core.spread.part(0, core.spread.rows)[:2]
        allpairs.subtract_shared(rows, spread, core.owners, turned, panel)
        parts, sizes = self._parts[:, first:end], self._sizes[first:end]

        def divide(low: int, high: int) -> None:
            np.divide(panel[low:high], sizes, out=parts[low:high])

        self.products.team.split(divide, size)

    def _combine(self, low: int, high: int) -> float:
        core = self.products.core
        return float(
            allpairs.combine_shared(
                core.shared.part(low, high)[:2],
                (core.spread.offsets, core.spread.columns, self._single),
                low,
                self._sizes,
                self._parts,
                self._decay,
                self.matrix,
            )
        )
