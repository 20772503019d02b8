"""What eight sweeps in a row say of their end: reduced rank extrapolation, after every eighth.

The sweeps of a web shrink what is left of the error slowly in a few directions and fast in all
others. So the combination of the last iterates whose step is least lies far ahead of the last one
(``kernels/rank_extrapolate.py``): on web graphs it takes a third to a half of the sweeps away.

It cannot spoil anything. The error that is certified is that of a sweep, whatever it began with.
What is combined is never negative. And a combination after which eight sweeps have not halved the
residual is the last one: from there on it is sweeps alone, which converge. That is also what
happens where steps are nothing but rounding.

The sums go over pieces of one size in order, and the system of five equations is solved here,
so it is the same to the bit wherever the vectors lie.

Cost: five copies and two passes over six vectors in eight sweeps. Memory, from the third sweep
on: five vectors of the core. Where blocks lie apart, whoever leads them brings the values of the
core together for it, 8 bytes a node of it in six sweeps of eight.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.ranking.lumping import Lumped
from cocite.ranking.vectors import PIECE, Vector, pieces
from cocite.store import forget

__all__ = ["Extrapolation"]

_EVERY = 8
"""Sweeps from one extrapolation to the next."""
_GAIN = 0.5
"""What the residual has to shrink to meanwhile. Sweeps alone come to 0.85 ** 8 = 0.27."""
_NOISE = 1e-13
"""Of the products, relatively: smaller differences are taken for rounding."""


class Extrapolation:
    """Looks at the iterates of one iteration, and tells its end from them."""

    def __init__(self, lumped: Lumped) -> None:
        self._lumped = lumped
        self._before: list[NDArray[Any]] = []
        self._last = math.inf
        self._over = False

    def wants(self, number: int) -> bool:
        """Whether it looks at what sweep ``number`` leaves."""
        from cocite.kernels.rank_extrapolate import BEFORE

        return not self._over and (number - 1) % _EVERY >= _EVERY - 1 - BEFORE

    def look(self, number: int, residual: float, z: NDArray[Any], facts: Vector) -> bool:
        """Keep ``z``, or replace it by what is ahead; whether it did the latter."""
        from cocite.kernels.rank_extrapolate import BEFORE

        place = (number - 1) % _EVERY - (_EVERY - 1 - BEFORE)
        if place < BEFORE:
            if len(self._before) == place:  # the first time
                self._before.append(self._lumped.scratch.zeros(z.size, z.dtype))
            for part in pieces(0, z.size, self._before[place], z, kept=PIECE):
                self._before[place][part] = z[part]
            return False
        shares = None
        if 0 < residual <= _GAIN * self._last:
            shares = _least(self._products(z, facts))
        if shares is None:
            self._over, self._before = True, []
            return False
        self._last = residual
        self._combine(z, np.array(shares))
        return True

    def _products(self, z: NDArray[Any], facts: Vector) -> Vector:
        from cocite.kernels import rank_extrapolate

        size = rank_extrapolate.BEFORE
        whole, found = np.zeros((size, size)), np.zeros((size, size))
        for part in pieces(0, z.size, *self._before, z, facts, kept=PIECE):
            before = tuple(array[part] for array in self._before)
            rank_extrapolate.products(before, z[part], facts[part], found)
            whole += found
        return whole

    def _combine(self, z: NDArray[Any], shares: Vector) -> None:
        from cocite.kernels import rank_extrapolate

        for part in pieces(0, z.size, *self._before, z, kept=PIECE):
            before = tuple(array[part] for array in self._before)
            rank_extrapolate.combine(before, z[part], shares)
        forget(*self._before)


def _least(products: Vector) -> list[float] | None:
    """The numbers of sum 1 that make the combination of steps least which have these ``products``,
    by Cholesky's method: c with P c = (1, ..., 1), over the sum of c. None if there are none.
    """
    given = products.tolist()
    size = len(given)
    lengths = [math.sqrt(given[i][i]) for i in range(size)]
    if not all(0 < length < math.inf for length in lengths):
        return None
    root = [[0.0] * size for _ in range(size)]
    solved = [1 / length for length in lengths]
    for i in range(size):
        for j in range(i + 1):
            rest = given[i][j] / lengths[i] / lengths[j] + (_NOISE if i == j else 0.0)
            rest -= sum(root[i][k] * root[j][k] for k in range(j))
            if i > j:
                root[i][j] = rest / root[j][j]
            elif rest <= 0:
                return None
            else:
                root[i][i] = math.sqrt(rest)
    for i in range(size):
        solved[i] = (solved[i] - sum(root[i][k] * solved[k] for k in range(i))) / root[i][i]
    for i in reversed(range(size)):
        later = sum(root[k][i] * solved[k] for k in range(i + 1, size))
        solved[i] = (solved[i] - later) / root[i][i]
    shares = [value / length for value, length in zip(solved, lengths, strict=True)]
    whole = sum(shares)
    if not (whole > 0 and all(map(math.isfinite, shares))):
        return None
    shares = [share / whole for share in shares]
    return shares if all(map(math.isfinite, shares)) else None
