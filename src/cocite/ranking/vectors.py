"""Vectors of one number a node, in memory or in scratch files, gone over a piece at a time.

Pieces are of one size, so a sum does not depend on where the vector lies: every piece is added up
by NumPy, and these sums exactly (``math.fsum``). A piece's memory is given back when it is done.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.store import forget

__all__ = ["PIECE", "Vector", "divide", "order_of", "pieces", "scale", "stretches", "total"]

Vector = NDArray[np.float64]
PIECE = 1 << 14
"""Numbers of a piece."""
_KEPT = 1 << 15
"""Numbers after which what was gone over is given back."""


def pieces(
    begin: int,
    end: int,
    *arrays: NDArray[Any],
    size: int | None = None,
    beside: Any = (),
    kept: int = _KEPT,
) -> Iterator[slice]:
    """The numbers from ``begin`` to ``end``, in slices. Of ``arrays`` these numbers are given back
    as they are done, when ``kept`` are, and all of those ``beside``, if they are files.
    """
    step, first = size or PIECE, begin
    for low in range(begin, end, step):
        last = min(low + step, end)
        yield slice(low, last)
        if last - first >= kept or last == end:
            forget(*(array[first:last] for array in arrays), *beside)
            first = last


def total(values: Vector, taken: NDArray[Any] | None = None) -> float:
    """The sum of all, or of those where ``taken`` is 0; infinite where it is too large."""
    sums = []
    for part in pieces(0, values.size, values, *(() if taken is None else (taken,))):
        piece = values[part] if taken is None else values[part][taken[part] == 0]
        with np.errstate(over="ignore"):
            sums.append(float(piece.sum()))
    try:
        return math.fsum(sums)
    except OverflowError:
        return math.inf


def scale(values: NDArray[Any], factor: float) -> None:
    """Multiply all by ``factor``, a float64 also where the values are single."""
    for part in pieces(0, values.size, values):
        np.multiply(values[part], np.float64(factor), out=values[part], casting="same_kind")


def divide(values: Vector, divisor: float) -> None:
    """Divide all by ``divisor``."""
    for part in pieces(0, values.size, values):
        values[part] /= divisor


def order_of(values: Vector, k: int) -> NDArray[np.int64]:
    """The ids of the k largest values, largest first, ties by id."""
    ids, best = np.empty(0, np.int64), np.empty(0)
    for part in pieces(0, values.size, values, size=max(PIECE, 4 * k)):
        ids = np.concatenate([ids, np.arange(part.start, part.stop)])
        best = np.concatenate([best, values[part]])
        if best.size > k:
            fine = best >= np.partition(best, best.size - k)[best.size - k]
            ids, best = ids[fine], best[fine]
            # Too many, if the least of them is there several times: those of the first ids stay.
            kept = np.sort(np.lexsort((ids, -best))[:k])
            ids, best = ids[kept], best[kept]
    return ids[np.lexsort((ids, -best))]


def stretches(
    offsets: NDArray[np.uint64], first: int, last: int, links: int, rows: int
) -> Iterator[tuple[int, int, int, int]]:
    """The links of the rows from ``first`` up to ``last``, some ``links`` and ``rows`` at a time.

    Yields (first row, row behind the last, first link, link behind the last). A row's links may be
    cut: then it is the last of one stretch and the first of the next.
    """
    row, begin = first, int(offsets[first])
    while row < last:
        limit = min(row + rows, last)
        end = min(begin + links, int(offsets[limit]))
        whole = row + int(np.searchsorted(offsets[row + 1 : limit + 1], np.uint64(end), "right"))
        cut = whole < last and int(offsets[whole]) < end
        yield row, whole + cut, begin, end
        row, begin = whole, end
