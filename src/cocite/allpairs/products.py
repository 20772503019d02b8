"""The two products of an iteration, W S and W (W S)', a block of columns at a time.

:class:`SparseProducts` adds rows up by the links (``kernels/allpairs.py``); each thread takes a
part of the columns of the first product and of the rows of the second. :class:`DenseProducts`
multiplies full matrices through BLAS, for graphs that have a good part of all n^2 links.
Either way a panel of values of T / c comes out, to which the loose nodes' terms are added.

Cost of a whole matrix: 1.5 n links fused multiply-adds (sparse), 3 n^3 (dense), beside
2 n * width values of scratch.

The plain iteration on a matrix that lies on disk, in panels of columns.

A panel is all rows of some columns. One sweep goes over the file twice, in order:

    W S    panel by panel: a panel of S gives the same panel of W S
    T      panel by panel: the rows of W S that a panel's columns stand for, turned, times W

T is written over W S: the rows of W S that are still needed lie below those that are written, as
only pairs on and above the diagonal are computed, and mirrored. What is in memory is three
panels at a time. Every value is added up as in ``allpairs/sweeps.py``: the bytes are the same.

Over-relaxation reads every row it links to for each block of columns, which would be the whole
file each time: it stays in memory.

Source: the panels are ours; Yu et al. 2011, 4.2 speaks of input and output but keeps S in memory.

The partial-sums iteration, as the baseline that the paper compares with.

    partial_u(b) = sum of s(a, b) over a in I(u)                   once for all v
    s(u, v)      = c / (|I(u)| |I(v)|) * sum of partial_u(b) over b in I(v)

on all pairs of all nodes, for the number of iterations that the accuracy asks for beforehand,
ceil(log_c epsilon) - 1. Its iterates are the plain iteration's; what is left out here on purpose
is all that ``allpairs/core.py`` and ``allpairs/products.py`` do: classes, symmetry, panels.

Cost: 2 n m additions a sweep. Memory: two n x n matrices of float64.
Source: Lizorkin et al. 2008, as Yu et al. 2011 describe it in 5.2 and 6.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cocite.allpairs.core import Core
from cocite.allpairs.links import LinkRows
from cocite.allpairs.scores import ExactSweep
from cocite.cluster import Team
from cocite.storage import Scratch, evict

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
    """Through BLAS."""

    def __init__(self, core: Core, dtype: DTypeLike, team: Team, width: int) -> None:
        super().__init__(core, dtype, team, width)
        links = core.links
        self._links = np.zeros((core.size, core.size), dtype)
        row = np.repeat(np.arange(core.size), np.diff(links.offsets))
        self._links[row, links.columns] = links.weights

    @staticmethod
    def scratch(size: int, width: int, itemsize: int) -> int:
        """Bytes of scratch: the links as a matrix, and two panels."""
        return (size * size + 2 * size * width) * itemsize

    def panel(self, first: int, end: int, matrix: Matrix) -> Matrix:
        """As :class:`Products` has it."""
        rows = self._links[first:end] @ matrix
        panel: Matrix = self._links[:end] @ rows.T
        self.add_shared(first, end, matrix.diagonal(), panel)
        return panel


def block_width(size: int) -> int:
    """Columns of a block: 64, or fewer so that there are 64 blocks.

    Columns of one block do not see each other's new values; with 64 blocks that costs no sweep.
    """
    return max(1, min(_WIDEST, size // _BLOCKS))


def depth_of(core: Core, dense: bool) -> float:
    """Return the rounding depth: a computed value is within depth * unit of the exact one,
    relative to 1.

    It counts the sums over links and loose nodes, and for BLAS the sums over all nodes in any
    order.
    """
    return core.depth + 2 * core.size if dense else core.depth


def _typed(values: NDArray[np.float64], dtype: np.dtype[Any]) -> Matrix:
    return values.astype(dtype)


# -- panels ------------------------------------------------------------------------------


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
        evict(self.panels)
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
            evict(self.matrix.panels, self._next.panels)
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
            evict(self.matrix.panels, self._next.panels)

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


# -- psum --------------------------------------------------------------------------------


def sweeps_for(epsilon: float, decay: float) -> int:
    """The least k with decay^(k + 1) <= epsilon."""
    return max(1, math.ceil(math.log(epsilon) / math.log(decay)) - 1)


class PartialSums:
    """Sweeps over the whole matrix; ``matrix`` float64[n, n] holds the scores."""

    def __init__(self, graph: LinkRows, decay: float, team: Team) -> None:
        self._offsets = graph.in_offsets.astype(np.int64)
        self._sources, self._decay, self._team = graph.in_sources, decay, team
        self.matrix: NDArray[np.float64] = np.eye(graph.nodes)
        self._next = np.empty_like(self.matrix)

    def __call__(self) -> ExactSweep:
        """One sweep."""
        from cocite.kernels import allpairs

        nodes, scores = self.matrix.shape[0], self.matrix

        def part(low: int, high: int) -> float:
            partial, links = np.empty(nodes), (self._offsets, self._sources)
            return float(
                allpairs.partial_sums(*links, scores, low, high, self._decay, partial, self._next)
            )

        change = max(self._team.split(part, nodes))
        self.matrix, self._next = self._next, self.matrix
        return ExactSweep(change)
