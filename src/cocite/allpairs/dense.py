"""Products of dense matrices: Strassen's recursion in Winograd's form, over BLAS.

Seven products of half the size and fifteen sums instead of eight products:

    S1 = A21 + A22   S2 = S1 - A11   S3 = A11 - A21   S4 = A12 - S2
    T1 = B12 - B11   T2 = B22 - T1   T3 = B22 - B12   T4 = T2 - B21
    P1 = A11 B11   P2 = A12 B21   P3 = S4 B22   P4 = A22 T4   P5 = S1 T1   P6 = S2 T2   P7 = S3 T3
    U2 = P1 + P6   U3 = U2 + P7   U4 = U2 + P5
    C11 = P1 + P2   C12 = U4 + P3   C21 = U3 - P4   C22 = U3 + P5

down to CUTOFF, where BLAS is left to itself; an odd last row or column is added by hand. Costs
O(n^log2(7)); the sums go through memory once each, which is why the cutoff is high.

Error: |C - AB| <= f u max|A| max|B| elementwise with f = (n/n0)^log2(18) (n0^2 + 6 n0) - 6 n,
Higham, *Accuracy and stability of numerical algorithms*, theorem 23.3: far more than BLAS's n u, so
single precision seldom allows it.

Source: Yu et al. 2011, 4.1.3 names Coppersmith and Winograd's algorithm, which no one runs: its
O(n^2.38) pays beyond any matrix that fits a machine. The paper's bound log2(7) is Strassen's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CUTOFF", "multiply", "strassen_factor"]

CUTOFF = 4096
"""Up to this size BLAS alone is as fast (``python -m benchmarks.sor --full --only strassen``)."""

Matrix = NDArray[Any]


def strassen_factor(size: int, largest: float, cutoff: int | None = None) -> float:
    """f * max|A| of the error bound of a product of matrices of this size."""
    cutoff = CUTOFF if cutoff is None else cutoff
    levels = max(0, math.ceil(math.log2(size / cutoff))) if size > cutoff else 0
    base = size / 2**levels
    factor = 18.0**levels * (base * base + 6 * base) - 6 * size if levels else float(size)
    return factor * (largest if levels else 1.0)


def multiply(a: Matrix, b: Matrix, cutoff: int | None = None) -> Matrix:
    """a @ b by the recursion above ``cutoff`` (the smallest of the three dimensions)."""
    cutoff = CUTOFF if cutoff is None else cutoff
    m, k, n = a.shape[0], a.shape[1], b.shape[1]
    if min(m, k, n) <= cutoff:
        return np.asarray(a @ b)
    rows, inner, columns = m // 2 * 2, k // 2 * 2, n // 2 * 2
    out = np.empty((m, n), a.dtype)
    _even(a[:rows, :inner], b[:inner, :columns], out[:rows, :columns], cutoff)
    if inner < k:
        out[:rows, :columns] += np.outer(a[:rows, -1], b[-1, :columns])
    if columns < n:
        out[:rows, -1] = a[:rows] @ b[:, -1]
    if rows < m:
        out[-1] = a[-1] @ b
    return out


def _even(a: Matrix, b: Matrix, out: Matrix, cutoff: int) -> None:
    """The recursion where all dimensions are even."""
    m, k, n = a.shape[0] // 2, a.shape[1] // 2, b.shape[1] // 2
    a11, a12, a21, a22 = a[:m, :k], a[:m, k:], a[m:, :k], a[m:, k:]
    b11, b12, b21, b22 = b[:k, :n], b[:k, n:], b[k:, :n], b[k:, n:]
    c11, c12, c21, c22 = out[:m, :n], out[:m, n:], out[m:, :n], out[m:, n:]
    left, right = a21 + a22, b12 - b11
    p5 = multiply(left, right, cutoff)
    left -= a11
    np.subtract(b22, right, out=right)
    u2 = multiply(left, right, cutoff)  # P6, to which P1 is added
    np.subtract(a12, left, out=left)
    c12[...] = multiply(left, b22, cutoff)
    right -= b21
    c21[...] = multiply(a22, right, cutoff)
    p1 = multiply(a11, b11, cutoff)
    u2 += p1
    np.add(p1, multiply(a12, b21, cutoff), out=c11)
    np.add(c12, u2, out=c12)
    c12 += p5
    np.subtract(a11, a21, out=left)
    np.subtract(b22, b12, out=right)
    u2 += multiply(left, right, cutoff)  # U3
    np.subtract(u2, c21, out=c21)
    np.add(u2, p5, out=c22)
