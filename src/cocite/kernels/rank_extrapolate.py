"""PageRank's kernels for reduced rank extrapolation: what several sweeps in a row say of their end.

Six iterates x0 ... x5 of a linear iteration have five steps u[j] = x[j + 1] - x[j]. With the
numbers c of sum 1 that make the combination of the steps, sum of c[j] u[j], least, the same
combination of x1 ... x5 is where the iteration would come to if it had no more components than
steps. Least is meant of y, each row's step times its strength.

Sums are float64, of the rows of one call; the caller adds up calls of the same rows.

Cost: a pass over six vectors each.
Source: Eddy 1979, Mesina 1977 (reduced rank extrapolation).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._jit import kernel
from cocite.kernels.rank import SCALE

__all__ = ["BEFORE", "combine", "products"]

BEFORE = 5
"""Iterates that are looked at besides the last one."""


@kernel
def products(before: Any, z: Any, facts: Any, found: Any) -> None:
    """Write the products of the steps of some rows, each with each, to ``found`` float64[BEFORE,
    BEFORE], below the diagonal and on it. ``before`` has the iterates before ``z``, oldest first.
    """
    x0, x1, x2, x3, x4 = before
    p00 = p10 = p11 = p20 = p21 = p22 = p30 = p31 = p32 = p33 = 0.0
    p40 = p41 = p42 = p43 = p44 = 0.0
    for i in range(z.size):
        weight = 1.0 / facts[i, SCALE]
        a, b, c = np.float64(x1[i]), np.float64(x2[i]), np.float64(x3[i])
        d = np.float64(x4[i])
        u0, u1 = (a - np.float64(x0[i])) * weight, (b - a) * weight
        u2, u3 = (c - b) * weight, (d - c) * weight
        u4 = (np.float64(z[i]) - d) * weight
        p00 += u0 * u0
        p10 += u1 * u0
        p11 += u1 * u1
        p20 += u2 * u0
        p21 += u2 * u1
        p22 += u2 * u2
        p30 += u3 * u0
        p31 += u3 * u1
        p32 += u3 * u2
        p33 += u3 * u3
        p40 += u4 * u0
        p41 += u4 * u1
        p42 += u4 * u2
        p43 += u4 * u3
        p44 += u4 * u4
    found[0, 0], found[1, 0], found[1, 1] = p00, p10, p11
    found[2, 0], found[2, 1], found[2, 2] = p20, p21, p22
    found[3, 0], found[3, 1], found[3, 2], found[3, 3] = p30, p31, p32, p33
    found[4, 0], found[4, 1], found[4, 2], found[4, 3], found[4, 4] = p40, p41, p42, p43, p44


@kernel
def combine(before: Any, z: Any, shares: Any) -> None:
    """Replace some rows of ``z`` by the combination of the iterates after the first, in these
    ``shares`` (float64[BEFORE]). What would be negative is 0, to which the truth is nearer.
    """
    _, x1, x2, x3, x4 = before
    s1, s2, s3, s4, s5 = shares[0], shares[1], shares[2], shares[3], shares[4]
    for i in range(z.size):
        ahead = s1 * np.float64(x1[i]) + s2 * np.float64(x2[i]) + s3 * np.float64(x3[i])
        ahead += s4 * np.float64(x4[i]) + s5 * np.float64(z[i])
        z[i] = ahead if ahead > 0.0 else 0.0
