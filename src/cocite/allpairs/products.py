"""The two products of an iteration, W S and W (W S)', a block of columns at a time.

:class:`SparseProducts` adds rows up by the links (``kernels/allpairs.py``); each thread takes a
part of the columns of the first product and of the rows of the second. :class:`DenseProducts`
multiplies full matrices through BLAS, for graphs that have a good part of all n^2 links.
Either way a panel of values of T / c comes out, to which the loose nodes' terms are added.

Cost of a whole matrix: 1.5 n links fused multiply-adds (sparse), 3 n^3 (dense; 4 n^3 in one
block), beside 2 n * width values of scratch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cocite.allpairs.core import Core
from cocite.allpairs.dense import multiply, strassen_factor
from cocite.runner import Team

__all__ = ["DENSE_FROM", "DenseProducts", "Products", "SparseProducts", "block_width", "depth_of"]

Matrix = NDArray[Any]
_WIDEST, _BLOCKS = 64, 64
DENSE_FROM = 0.25
"""Share of n^2 links from which BLAS is faster (``python -m benchmarks.sor --only density``)."""


class Products(ABC):
    """Panels of T / c of one core; ``width`` columns at a time at most."""

    def __init__(self, core: Core, dtype: DTypeLike, team: Team, width: int) -> None:
        self.core, self.team, self.width = core, team, width
        self.dtype = np.dtype(dtype)
        self._shared = _typed(core.shared.weights, self.dtype)
        self._spread = _typed(core.spread.weights, self.dtype)

    @abstractmethod
    def panel(self, first: int, end: int, matrix: Matrix) -> Matrix:
        """Rows [0, end) of the columns [first, end) of T / c, from the symmetric ``matrix``.

        The array is scratch: it holds until the next call.
        """

    def blocks(self) -> list[tuple[int, int]]:
        """(first, end) of all blocks of columns, in order."""
        size = self.core.size
        return [(low, min(low + self.width, size)) for low in range(0, size, self.width)]

    def add_shared(self, first: int, end: int, matrix_diagonal: Matrix, panel: Matrix) -> None:
        """Add the loose nodes' terms of the block's rows."""
        from cocite.kernels import allpairs

        core = self.core
        if core.shared.columns.size:
            allpairs.add_shared(
                core.shared.offsets[first : end + 1],
                core.shared.columns,
                self._shared,
                core.spread.offsets,
                core.spread.columns,
                self._spread,
                core.excess(matrix_diagonal).astype(self.dtype),
                panel,
            )


class SparseProducts(Products):
    """By the links; memory beside the matrix: a block of rows, and two panels."""

    def __init__(self, core: Core, dtype: DTypeLike, team: Team, width: int) -> None:
        super().__init__(core, dtype, team, width)
        self.weights = _typed(core.links.weights, self.dtype)
        self._rows = np.empty(width * core.size, self.dtype)
        self._turned = np.empty(width * core.size, self.dtype)
        self._panel = np.empty(width * core.size, self.dtype)

    @staticmethod
    def scratch(size: int, width: int, itemsize: int) -> int:
        """Bytes of scratch."""
        return 3 * size * width * itemsize

    def panel(self, first: int, end: int, matrix: Matrix) -> Matrix:
        """As :class:`Products` has it."""
        panel = self.times(self.gathered(first, end, matrix), end)
        self.add_shared(first, end, matrix.diagonal(), panel)
        return panel

    def turned(self, width: int) -> Matrix:
        """Scratch for ``width`` rows of W S as columns."""
        return self._turned[: width * self.core.size].reshape(self.core.size, width)

    def gathered(self, first: int, end: int, matrix: Matrix) -> Matrix:
        """The rows [first, end) of W S as columns; scratch."""
        from cocite.kernels import allpairs

        links, size, width = self.core.links, self.core.size, end - first
        rows = self._rows[: width * size].reshape(width, size)
        turned = self.turned(width)
        offsets = links.offsets[first : end + 1]

        def part(low: int, high: int) -> None:
            allpairs.multiply(offsets, links.columns, self.weights, matrix, low, high, rows)
            allpairs.transpose(rows, low, high, turned)

        self.team.split(part, size)
        return turned

    def times(self, turned: Matrix, end: int) -> Matrix:
        """Rows [0, end) of W times a panel; scratch."""
        from cocite.kernels import allpairs

        links, width = self.core.links, turned.shape[1]
        panel = self._panel[: end * width].reshape(end, width)

        def scatter(low: int, high: int) -> None:
            offsets = links.offsets[low : high + 1]
            out = panel[low:high]
            allpairs.multiply(offsets, links.columns, self.weights, turned, 0, width, out)

        self.team.split(scatter, end, links.offsets)
        return panel


class DenseProducts(Products):
    """Through BLAS; with ``fast``, Strassen-Winograd above its cutoff."""

    def __init__(
        self, core: Core, dtype: DTypeLike, team: Team, width: int, fast: bool = False
    ) -> None:
        super().__init__(core, dtype, team, width)
        self._fast = fast
        links = core.links
        self._links = np.zeros((core.size, core.size), dtype)
        row = np.repeat(np.arange(core.size), np.diff(links.offsets))
        self._links[row, links.columns] = links.weights

    @staticmethod
    def scratch(size: int, width: int, itemsize: int) -> int:
        """Bytes of scratch: the links as a matrix, and two panels."""
        return (size * size + 2 * size * width) * itemsize * (2 if width == size else 1)

    def panel(self, first: int, end: int, matrix: Matrix) -> Matrix:
        """As :class:`Products` has it."""
        if self._fast:
            rows = multiply(self._links[first:end], matrix)
            panel = multiply(self._links[:end], rows.T)
        else:
            rows = self._links[first:end] @ matrix
            panel = self._links[:end] @ rows.T
        self.add_shared(first, end, matrix.diagonal(), panel)
        return panel


def block_width(size: int) -> int:
    """Columns of a block: 64, or fewer so that there are 64 blocks.

    Columns of one block do not see each other's new values; with 64 blocks that costs no sweep.
    """
    return max(1, min(_WIDEST, size // _BLOCKS))


def depth_of(core: Core, dense: bool, fast: bool) -> float:
    """Rounding: a computed value is within depth * unit of the exact one, relative to 1.

    Of the links' and loose nodes' sums; for BLAS of sums over all nodes, in any order; and of the
    recursion's subtractions where it is used.
    """
    if not dense:
        return core.depth
    largest = float(core.links.weights.max(initial=0))
    return core.depth + 2 * (strassen_factor(core.size, largest) if fast else core.size)


def _typed(values: NDArray[np.float64], dtype: np.dtype[Any]) -> Matrix:
    return values.astype(dtype)
