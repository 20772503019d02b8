"""The plain iteration on a matrix that lies on disk, in panels of columns.

A panel is all rows of some columns. One sweep goes over the file twice, in order:

    W S    panel by panel: a panel of S gives the same panel of W S
    T      panel by panel: the rows of W S that a panel's columns stand for, turned, times W

T is written over W S: the rows of W S that are still needed lie below those that are written, as
only pairs on and above the diagonal are computed, and mirrored. What is in memory is three
panels at a time. Every value is added up as in ``sweeps.py``: the bytes are the same.

Over-relaxation reads every row it links to for each block of columns, which would be the whole
file each time: it stays in memory.

Source: the panels are ours; Yu et al. 2011, 4.2 speaks of input and output but keeps S in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.allpairs.products import SparseProducts
from cocite.allpairs.stopping import ExactSweep
from cocite.store import Scratch, forget

__all__ = ["PanelMatrix", "PanelSweeps", "panel_width"]

Matrix = NDArray[Any]
_LEAST = 64


def panel_width(size: int, itemsize: int, room: int) -> int:
    """Columns of a panel, a multiple of 64, so that three take at most ``room``; 0 if none do."""
    return min(room // (3 * size * itemsize) // _LEAST * _LEAST, -(-size // _LEAST) * _LEAST)


class PanelMatrix:
    """A square matrix in panels of ``width`` columns; the last may have columns to spare."""

    def __init__(self, size: int, width: int, dtype: np.dtype[Any], scratch: Scratch) -> None:
        self.size, self.width = size, width
        count = -(-size // width)
        self.panels: Matrix = scratch.zeros((count, size, width), dtype)

    def block(self, first: int, end: int) -> Matrix:
        """The rows from ``first`` to ``end``."""
        found: Matrix = np.concatenate([panel[first:end] for panel in self.panels], axis=1)
        forget(self.panels)
        return found[:, : self.size]

    def diagonal(self) -> Matrix:
        """The diagonal."""
        at = np.arange(self.size)
        return np.asarray(self.panels[at // self.width, at, at % self.width])


class PanelSweeps:
    """Plain sweeps; ``matrix`` holds the scores."""

    def __init__(
        self, products: SparseProducts, decay: float, width: int, scratch: Scratch
    ) -> None:
        self.products, self._width = products, width
        size = products.core.size
        self.matrix = PanelMatrix(size, width, products.dtype, scratch)
        self._next = PanelMatrix(size, width, products.dtype, scratch)
        self._single = (products.core.sizes == 1).astype(np.uint8)
        self._factors = np.array([decay, 1.0, 1.0], products.dtype)
        at = np.flatnonzero(self._single)
        self.matrix.panels[at // width, at, at % width] = 1

    def __call__(self) -> ExactSweep:
        """One sweep: two passes over the file."""
        self._multiply()
        change, diagonal = 0.0, self.matrix.diagonal()
        for number in range(self.matrix.panels.shape[0]):
            low = number * self._width
            for first in range(low, min(low + self._width, self.matrix.size), self.products.width):
                end = min(first + self.products.width, low + self._width, self.matrix.size)
                panel = self.products.times(self._turned(first, end), end)
                self.products.add_shared(first, end, diagonal, panel)
                change = max(change, self._settle(first, panel))
            forget(self.matrix.panels, self._next.panels)
        self.matrix, self._next = self._next, self.matrix
        return ExactSweep(change)

    def _multiply(self) -> None:
        """W S, into the other matrix."""
        from cocite.kernels import allpairs

        links, weights, width = self.products.core.links, self.products.weights, self._width
        for panel, out in zip(self.matrix.panels, self._next.panels, strict=True):

            def part(low: int, high: int, panel: Matrix = panel, out: Matrix = out) -> None:
                offsets = links.offsets[low : high + 1]
                allpairs.multiply(offsets, links.columns, weights, panel, 0, width, out[low:high])

            self.products.team.split(part, self.matrix.size, links.offsets)
            forget(self.matrix.panels, self._next.panels)

    def _turned(self, first: int, end: int) -> Matrix:
        """Rows of W S as columns."""
        from cocite.kernels import allpairs

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
        """Write one block to both places, panel by panel of the mirrored one."""
        from cocite.kernels import allpairs

        end, width = panel.shape[0], self._width
        number, column = divmod(first, width)
        old, upper = self.matrix.panels[number], self._next.panels[number]

        def part(low: int, high: int) -> float:
            change = 0.0
            for other in range(low, high):
                begin = other * width
                where = np.array([first, column, begin, min(begin + width, end), begin])
                lower = self._next.panels[other][first:end]
                made = allpairs.settle(panel, old, upper, lower, where, self._single, self._factors)
                change = max(change, float(made))
            return change

        found: float = max(self.products.team.split(part, number + 1, aligned=1))
        return found
