"""Sweeps over a sparse matrix of scores, from which values below a threshold are dropped.

Where the formula gives less than Delta the score becomes 0, so that rows stay short and later sums
cheap. The value before relaxation decides: over-relaxed it could come and go for ever. The
error that this leaves is bounded from what was really dropped: with p the largest value dropped in
the last sweep,

    |S - S*| <= (|1 - omega| / omega + c) d / (1 - c) + p / (1 - c)

as a score set to 0 where G has g is off by g <= p at that moment (``stopping.py``); and for the
plain iteration from the identity the errors add up to e <- c e + p, sweep by sweep. The larger
of the two is reported, which is at most Delta / (1 - c).

Rows are computed whole, not as the half of a symmetric matrix, and each from rows (the fresh ones,
with relaxation) alone, so that (u, v) may be kept where (v, u) just misses the threshold.

Memory: 8 or 12 bytes a kept value, twice while the next matrix is made.
Source: Yu et al. 2011, 4.1.4, eq. 9.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cocite.allpairs.core import Core
from cocite.allpairs.products import block_width
from cocite.allpairs.stopping import Sweep
from cocite.errors import ResourceError
from cocite.memory import format_size
from cocite.runner import Team

__all__ = ["PrunedSweeps", "SparseMatrix"]

Matrix = NDArray[Any]


class SparseMatrix:
    """Rows of ``columns`` (uint32, ascending) and ``values``, appended in any order."""

    def __init__(self, size: int, dtype: DTypeLike) -> None:
        self.begin = np.zeros(size, np.int64)
        self.count = np.zeros(size, np.int64)
        self.columns = np.empty(max(size, 1), np.uint32)
        self.values = np.empty(max(size, 1), dtype)
        self.end = 0

    @property
    def nbytes(self) -> int:
        """What the pool takes."""
        return self.columns.nbytes + self.values.nbytes

    def reserve(self, more: int) -> None:
        """Room for ``more`` values."""
        if self.end + more > self.columns.size:
            room = max(self.end + more, self.columns.size * 3 // 2)
            self.columns = np.resize(self.columns, room)
            self.values = np.resize(self.values, room)

    def block(self, first: int, end: int) -> Matrix:
        """The rows from ``first`` to ``end``, dense."""
        found = np.zeros((end - first, self.begin.size), self.values.dtype)
        for row in range(first, end):
            low, high = self.begin[row], self.begin[row] + self.count[row]
            found[row - first, self.columns[low:high]] = self.values[low:high]
        return found

    def diagonal(self) -> Matrix:
        """The diagonal, dense."""
        found = np.zeros(self.begin.size, self.values.dtype)
        row = np.repeat(np.arange(self.begin.size), self.count)
        place = np.arange(row.size) - np.repeat(np.cumsum(self.count) - self.count, self.count)
        place += self.begin[row]
        hit = self.columns[place] == row
        found[row[hit]] = self.values[place[hit]]
        return found


class PrunedSweeps:
    """Plain (``fresh`` false) or relaxed sweeps; ``matrix`` holds the scores."""

    def __init__(
        self,
        core: Core,
        dtype: DTypeLike,
        team: Team,
        factors: tuple[float, float, float],
        fresh: bool,
        memory: int,
    ) -> None:
        decay, omega, threshold = factors
        self.core, self.team, self._fresh, self._memory = core, team, fresh, memory
        self.dtype = np.dtype(dtype)
        self._factors = np.array([decay, omega, 1.0, threshold], dtype)
        self._single = (core.sizes == 1).astype(np.uint8)
        self._links = core.links.weights.astype(dtype)
        self._turned = core.links.transposed(core.size)
        self._turned_weights = self._turned.weights.astype(dtype)
        self._shared = core.shared.weights.astype(dtype)
        self._spread = core.spread.weights.astype(dtype)
        self._width = block_width(core.size)
        self._sums = np.empty((self._width, core.size), dtype)
        self._rows = np.empty((self._width, core.size), dtype)
        self.matrix = self._identity()

    def _identity(self) -> SparseMatrix:
        found = SparseMatrix(self.core.size, self.dtype)
        ones = np.flatnonzero(self._single)
        found.begin[ones], found.count[ones] = np.arange(ones.size), 1
        found.columns[: ones.size], found.values[: ones.size] = ones, 1
        found.end = ones.size
        return found

    def __call__(self) -> Sweep:
        """One sweep."""
        old, size = self.matrix, self.core.size
        new = old if self._fresh else SparseMatrix(size, self.dtype)
        excess = self.core.excess(old.diagonal()).astype(self.dtype)
        change = dropped = 0.0
        for first in range(0, size, self._width):
            end = min(first + self._width, size)
            made = self._block(first, end, old, excess)
            new.reserve(sum(part[2] for part in made))
            self._check_room(old, new)
            self._pack(first, end, new)
            change = max(change, *(part[0] for part in made))
            dropped = max(dropped, *(part[1] for part in made))
            if self._fresh:
                excess = self._renewed(excess, first, end)
        self.matrix = _compacted(new, self.dtype) if self._fresh else new
        return Sweep(change, dropped)

    def _block(
        self, first: int, end: int, old: SparseMatrix, excess: Matrix
    ) -> list[tuple[float, float, int]]:
        """Dense new rows of one block, in ``_rows``."""
        from cocite.kernels import pruned

        links, core = self.core.links, self.core

        def part(low: int, high: int) -> tuple[float, float, int]:
            here = slice(first + low, first + high + 1)
            sums, rows = self._sums[low:high], self._rows[low:high]
            pool = old.begin, old.count, old.columns, old.values
            pruned.gather(links.offsets[here], links.columns, self._links, *pool, sums)
            turned = self._turned
            pruned.scatter(sums, turned.offsets, turned.columns, self._turned_weights, rows)
            if core.shared.columns.size:
                shared = core.shared.offsets[here], core.shared.columns, self._shared
                spread = core.spread.offsets, core.spread.columns, self._spread
                pruned.add_loose(*shared, *spread, excess, rows)
            found: tuple[float, float, int] = pruned.settle_pruned(
                rows, first + low, *pool, self._single, self._factors
            )
            return found

        return self.team.split(part, end - first)

    def _pack(self, first: int, end: int, new: SparseMatrix) -> None:
        from cocite.kernels import pruned

        rows = self._rows[: end - first]
        begin, count = new.begin[first:end], new.count[first:end]
        pruned.pack(rows, new.end, begin, count, new.columns, new.values)
        new.end += int(count.sum())

    def _renewed(self, excess: Matrix, first: int, end: int) -> Matrix:
        """The excess with the block's new diagonal."""
        owners = self.core.owners
        here = np.flatnonzero((owners >= first) & (owners < end))
        here = here[self.core.sizes[owners[here]] > 1]
        excess[here] = 1 - self._rows[owners[here] - first, owners[here]]
        return excess

    def _check_room(self, *pools: SparseMatrix) -> None:
        taken = sum({id(pool): pool.nbytes for pool in pools}.values())
        if taken > self._memory:
            raise ResourceError(
                f"the scores kept take {format_size(taken)}; {format_size(self._memory)} may be "
                "used. Prune more with --prune, or give more with --memory"
            )


def _compacted(pool: SparseMatrix, dtype: np.dtype[Any]) -> SparseMatrix:
    """The same rows in order, without what was replaced."""
    found = SparseMatrix(pool.begin.size, dtype)
    found.reserve(int(pool.count.sum()))
    row = np.repeat(np.arange(pool.begin.size), pool.count)
    found.begin = np.cumsum(pool.count) - pool.count
    found.count = pool.count
    place = np.arange(row.size) - found.begin[row] + pool.begin[row]
    found.columns[: row.size], found.values[: row.size] = pool.columns[place], pool.values[place]
    found.end = row.size
    return found
