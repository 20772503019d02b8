"""Sweeps over a sparse matrix of scores that drop values below a threshold.

Values below Delta become 0, so rows are short. The threshold applies before relaxation,
because relaxed values could alternate forever. ``allpairs/scores.py`` bounds the error by the
largest value that each sweep dropped, and thus by Delta / (1 - c) for any number of sweeps. Each
sweep computes a pair once, with the block of its larger row, and stores or drops it in both
positions; the paper drops by column (Algorithm 3, line 21).

A value takes 8 or 12 bytes, twice during a sweep. Source: Yu et al. 2011, section 4.1.4, eq. 9.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cocite.allpairs.core import Core
from cocite.allpairs.products import block_width
from cocite.allpairs.scores import ExactSweep
from cocite.cluster import Team
from cocite.errors import ResourceError
from cocite.kernels import allpairs, pruned
from cocite.kernels.pruned import Chains, PrunedRows
from cocite.resources import format_least, short_of

Matrix = NDArray[Any]


class _Pool:
    """Columns (uint32) and values of many rows, used up to ``end``."""

    def __init__(self, room: int, dtype: DTypeLike) -> None:
        self.columns = np.empty(max(room, 1), np.uint32)
        self.values = np.empty(max(room, 1), dtype)
        self.end = 0

    @property
    def nbytes(self) -> int:
        return self.columns.nbytes + self.values.nbytes

    def reserve(self, more: int) -> None:
        if self.end + more > self.columns.size:
            room = max(self.end + more, self.columns.size * 3 // 2)
            self.columns = self._grown(self.columns, room)
            self.values = self._grown(self.values, room)

    def _grown(self, old: NDArray[Any], room: int) -> NDArray[Any]:
        """Return a larger copy, with the new part uninitialized."""
        found = np.empty(room, old.dtype)
        found[: self.end] = old[: self.end]
        return found


class SparseMatrix(_Pool):
    """A square matrix with ascending ``columns`` and ``values`` by row."""

    def __init__(self, size: int, room: int, dtype: DTypeLike) -> None:
        super().__init__(room, dtype)
        self.begin = np.zeros(size, np.int64)
        self.count = np.zeros(size, np.int64)

    @property
    def rows(self) -> PrunedRows:
        """Return the matrix as an argument for kernels."""
        return PrunedRows(self.begin, self.count, self.columns, self.values)

    def block(self, first: int, end: int) -> Matrix:
        """Return the rows from ``first`` to ``end`` as a dense array."""
        found = np.zeros((end - first, self.begin.size), self.values.dtype)
        for row in range(first, end):
            low, high = self.begin[row], self.begin[row] + self.count[row]
            found[row - first, self.columns[low:high]] = self.values[low:high]
        return found

    def diagonal(self) -> Matrix:
        """Return the diagonal as a dense array."""
        found = np.zeros(self.begin.size, self.values.dtype)
        for row, (low, count) in enumerate(
            zip(self.begin.tolist(), self.count.tolist(), strict=True)
        ):
            at = low + int(self.columns[low : low + count].searchsorted(np.uint32(row)))
            if at < low + count and self.columns[at] == row:
                found[row] = self.values[at]
        return found


class _Chained(_Pool):
    """Rows as linked lists, for appending."""

    def __init__(self, size: int, dtype: DTypeLike) -> None:
        super().__init__(1, dtype)
        self.first, self.last = (np.full(size, -1, np.int64) for _ in range(2))
        self.links, self._places = 0, np.empty((3, 1), np.int64)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._places.nbytes

    def reserve_links(self, more: int) -> None:
        have = self._places.shape[1]
        if self.links + more > have:
            grown = np.empty((3, max(self.links + more, have * 3 // 2)), np.int64)
            grown[:, : self.links] = self._places[:, : self.links]
            self._places = grown

    @property
    def chains(self) -> Chains:
        """Return the lists as an argument for kernels."""
        following, begin, count = self._places
        return Chains(self.first, self.last, following, begin, count, self.columns, self.values)


class _Half:
    """A sweep's partial result: rows up to the diagonal, and their mirror image as lists."""

    def __init__(self, size: int, dtype: DTypeLike) -> None:
        self.lower, self.upper = SparseMatrix(size, 1, dtype), _Chained(size, dtype)

    @property
    def nbytes(self) -> int:
        return self.lower.nbytes + self.upper.nbytes

    def reserve(self, values: int, links: int) -> None:
        self.lower.reserve(values)
        self.upper.reserve(values)
        self.upper.reserve_links(min(values, links))

    def add(self, first: int, rows: Matrix) -> None:
        lower, upper = self.lower, self.upper
        lower.end = int(pruned.pack(rows, first, lower.end, lower.rows))
        ends = pruned.hang(rows, first, upper.end, upper.links, upper.chains)
        upper.end, upper.links = map(int, ends)


class PrunedSweeps:
    """Sweeps over the scores in ``matrix``: relaxed if ``fresh``, otherwise plain."""

    def __init__(
        self,
        core: Core,
        dtype: DTypeLike,
        team: Team,
        factors: tuple[float, float, float],
        fresh: bool,
        memory: tuple[int, int],
    ) -> None:
        """Start from the identity. ``memory`` is (bytes used by other data, bytes in total)."""
        decay, omega, threshold = factors
        self.core, self.team, self._fresh, self._memory = core, team, fresh, memory
        self.dtype = np.dtype(dtype)
        self._factors = np.array([decay, omega, 1.0, threshold], dtype)
        self._single, turned = core.single, core.links.transposed(core.size)
        self._links, self._turned, self._shared, self._spread = (
            links.typed(dtype) for links in (core.links, turned, core.shared, core.spread)
        )
        self._width = block_width(core.size)
        self._sums = np.empty((self._width, core.size), dtype)
        self._rows = np.empty(self._width * core.size, dtype)
        self.matrix = self._identity()

    def _identity(self) -> SparseMatrix:
        ones = np.flatnonzero(self._single)
        found = SparseMatrix(self.core.size, ones.size, self.dtype)
        found.begin[ones], found.count[ones] = np.arange(ones.size), 1
        found.columns[: ones.size], found.values[: ones.size] = ones, 1
        found.end = ones.size
        return found

    def __call__(self) -> ExactSweep:
        """Make one sweep."""
        old, size = self.matrix, self.core.size
        made = _Half(size, self.dtype)
        seen = made if self._fresh else _Half(size, self.dtype)  # the rows that blocks read
        cursor = old.begin.copy()
        excess = self.core.excess(old.diagonal()).astype(self.dtype)
        change = dropped = 0.0
        for first in range(0, size, self._width):
            end = min(first + self._width, size)
            rows = self._rows[: (end - first) * end].reshape(end - first, end)
            parts = self._block(first, rows, (old, cursor, seen), excess)
            made.reserve(sum(part[2] for part in parts), end)
            self._check_room(old.nbytes + made.nbytes)
            made.add(first, rows)
            change = max(change, *(part[0] for part in parts))
            dropped = max(dropped, *(part[1] for part in parts))
            if self._fresh:
                pruned.advance(old.rows, end, cursor)
                self._renew(excess, first, rows)
        self._unite(made)
        return ExactSweep(change, dropped)

    def _block(
        self,
        first: int,
        rows: Matrix,
        before: tuple[SparseMatrix, NDArray[np.int64], _Half],
        excess: Matrix,
    ) -> list[tuple[float, float, int]]:
        """Compute a block's dense ``rows``, up to its last column."""
        old, cursor, seen = before
        state = old.rows, cursor, seen.lower.rows, seen.upper.chains

        def part(low: int, high: int) -> tuple[float, float, int]:
            here = first + low, first + high
            sums, found = self._sums[low:high], rows[low:high]
            pruned.gather(*self._links.part(*here), *state, sums)
            pruned.scatter(sums, *self._turned.part(0, self._turned.rows), found)
            if self._shared.columns.size:
                spread = self._spread.part(0, self._spread.rows)
                allpairs.add_shared(self._shared.part(*here), spread, excess, True, found)
            made: tuple[float, float, int] = pruned.settle_pruned(
                found, first + low, state[0], self._single, self._factors
            )
            return made

        return self.team.split(part, rows.shape[0])

    def _renew(self, excess: Matrix, first: int, rows: Matrix) -> None:
        """Update the excess from the diagonal of the new block."""
        owners, end = self.core.owners, rows.shape[1]
        here = np.flatnonzero((owners >= first) & (owners < end))
        here = here[self.core.sizes[owners[here]] > 1]
        excess[here] = 1 - rows[owners[here] - first, owners[here]]

    def _unite(self, made: _Half) -> None:
        """Replace the matrix with the result, with rows in order."""
        count = made.lower.end + made.upper.end
        item = self.dtype.itemsize + 4
        self.matrix = SparseMatrix(self.core.size, 0, self.dtype)
        self._check_room(made.nbytes + count * item)
        self.matrix = SparseMatrix(self.core.size, count, self.dtype)
        self.matrix.end = count
        pruned.unite(made.lower.rows, made.upper.chains, self.matrix.rows)

    def _check_room(self, taken: int) -> None:
        fixed, memory = self._memory
        if fixed + taken > memory:
            raise ResourceError(
                f"the stored scores need {format_least(fixed + taken)} of memory or more; "
                f"{short_of(memory)}, or prune more with --prune (prune=...)"
            )
