"""The two products of an iteration, W S and W (W S)', by blocks of columns.

Sparse products sum rows over the links (``kernels/allpairs.py``); threads share the columns of the
first product and the rows of the second. Dense products use BLAS, for graphs with many of the n^2
possible links. Both compute a panel of T / c, and add the loose nodes' terms.

A full matrix takes 1.5 * n * links fused multiply-adds (sparse) or 3 n^3 (dense).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cocite.allpairs.core import Core
from cocite.cluster import Team
from cocite.kernels import allpairs
from cocite.storage import evict

Matrix = NDArray[Any]
_WIDEST, _BLOCKS = 64, 64
_DENSE_WIDTH = 256
DENSE_FROM = 0.25
"""Density from which BLAS is faster (``python -m benchmarks.sor --only density``)."""


class Products:
    """Panels of T / c for a core, with at most ``width`` columns each."""

    def __init__(
        self, core: Core, dtype: DTypeLike, team: Team, width: int, *, dense: bool = False
    ) -> None:
        self.core, self.team, self.width = core, team, width
        self.dtype = np.dtype(dtype)
        self.links, self._shared, self._spread = (
            links.typed(self.dtype) for links in (core.links, core.shared, core.spread)
        )
        self._dense: Matrix | None = None
        if dense:
            self._dense = np.zeros((core.size, core.size), self.dtype)
            row = np.repeat(np.arange(core.size), np.diff(core.links.offsets))
            self._dense[row, core.links.columns] = core.links.weights
        else:
            self._rows, self._turned, self._panel = (
                np.empty(width * core.size, self.dtype) for _ in range(3)
            )

    @staticmethod
    def scratch(size: int, width: int, itemsize: int, *, dense: bool = False) -> int:
        """Return the bytes of scratch: three panels or, if dense, two panels and a full W."""
        return (size * size + 2 * size * width if dense else 3 * size * width) * itemsize

    def blocks(self) -> list[tuple[int, int]]:
        """Return (first, end) of every block of columns."""
        size = self.core.size
        return [(low, min(low + self.width, size)) for low in range(0, size, self.width)]

    def panel(self, first: int, end: int, panels: Matrix) -> Matrix:
        """Return rows [0, end) of columns [first, end) of T / c, in scratch, without the loose
        nodes' terms. ``panels`` are adjacent panels of S, only one for dense products.
        """
        if self._dense is None:
            return self.times(self.gathered(first, end, panels), end)
        panel: Matrix = self._dense[:end] @ (self._dense[first:end] @ panels[0]).T
        return panel

    def add_shared(self, first: int, end: int, matrix_diagonal: Matrix, panel: Matrix) -> None:
        """Add the loose nodes' terms to the panel of columns [first, end)."""
        core = self.core
        if core.shared.columns.size:
            allpairs.add_shared(
                self._shared.part(first, end),
                self._spread.part(0, self._spread.rows),
                core.excess(matrix_diagonal).astype(self.dtype),
                False,
                panel,
            )

    # -- sparse products ----------------------------------------------------------------------

    def turned(self, width: int) -> Matrix:
        """Return scratch for ``width`` rows of W S, transposed."""
        return self._turned[: width * self.core.size].reshape(self.core.size, width)

    def gathered(self, first: int, end: int, panels: Iterable[Matrix]) -> Matrix:
        """Return rows [first, end) of W S, transposed, in scratch. ``panels`` are panels of S."""
        width, begin = end - first, 0
        turned, links = self.turned(width), self.links.part(first, end)
        for panel in panels:
            columns = min(panel.shape[1], self.core.size - begin)
            rows = self._rows[: width * columns].reshape(width, columns)
            out = turned[begin : begin + columns]

            def part(
                low: int, high: int, panel: Matrix = panel, rows: Matrix = rows, out: Matrix = out
            ) -> None:
                allpairs.multiply(*links, panel, low, high, rows)
                allpairs.transpose(rows, low, high, out)

            self.team.split(part, columns)
            evict(panel)
            begin += columns
        return turned

    def times(self, turned: Matrix, end: int) -> Matrix:
        """Return rows [0, end) of W times a panel, in scratch."""
        width = turned.shape[1]
        panel = self._panel[: end * width].reshape(end, width)

        def scatter(low: int, high: int) -> None:
            allpairs.multiply(*self.links.part(low, high), turned, 0, width, panel[low:high])

        self.team.split(scatter, end, self.links.offsets)
        return panel


def block_width(size: int, *, dense: bool = False) -> int:
    """Return the columns per block: 256 if ``dense``, otherwise at most 64 and ``size`` / 64.

    Columns of a block do not use each other's new values; with 64 blocks, this adds no sweeps.
    """
    return max(1, min(_DENSE_WIDTH, size) if dense else min(_WIDEST, size // _BLOCKS))


def depth_of(core: Core, dense: bool) -> float:
    """Return the rounding depth: values near 1 are off by at most depth * unit.

    Counts the sums over links and loose nodes and, for BLAS, sums over all nodes in any order.
    """
    return core.depth + 2 * core.size if dense else core.depth
