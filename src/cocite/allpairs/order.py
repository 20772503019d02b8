"""The order of rows: extended reverse Cuthill-McKee, and how wide a matrix is.

Rows that link to each other get near numbers, so that the rows a block reads are few and near. The
search goes over Q + Q', as its structure is symmetric and no narrower than Q's; one component after
another, each from a node of least degree. Bandwidth is the largest |row - column| of an entry, the
larger of the upper and the lower.

Source: Yu et al. 2011, 4.2, Definition 2 and Algorithm 2. By its theorem 1 scores
of a renumbered graph are the renumbered scores, so results come back in the stored order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["bandwidth", "reordered"]

Ints = NDArray[np.int64]


def bandwidth(offsets: Ints, columns: NDArray[np.uint32]) -> int:
    """The largest |row - column| of an entry; 0 without entries."""
    row = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    return int(np.abs(row - columns.astype(np.int64)).max(initial=0))


def reordered(offsets: Ints, columns: NDArray[np.uint32]) -> Ints:
    """int64[n]: the rows in their new order."""
    from cocite.kernels import order

    n = offsets.size - 1
    row = np.repeat(np.arange(n), np.diff(offsets))
    column = columns.astype(np.int64)
    off = row != column
    both = np.concatenate([row[off] * n + column[off], column[off] * n + row[off]])
    both = np.unique(both)
    here, there = both // n, both % n
    degrees = np.bincount(here, minlength=n)
    by_degree = np.lexsort((there, degrees[there], here))
    begins = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    found = np.empty(n, np.int64)
    starts = np.argsort(degrees, kind="stable")
    order.reverse_cuthill_mckee(begins, there[by_degree], starts, np.zeros(n, np.uint8), found)
    return found
