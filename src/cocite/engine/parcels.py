"""Rows on their way between blocks in memory: what spools are on disk (``store/spool.py``).

A block deals what it sends into *letters*, one set of buckets a sample and kind; what goes to one
block in one step, of all samples, is packed in one *parcel*: all rows behind each other, and a
table that says whose they are. Who gets parcels reads them from a *mailbox*, as a spool is read.

    parcel    rows uint32[k, 3]     table int64[p, 4]: sample, kind, tag, how many rows

Rows of one letter and tag stay in the order in which they were sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["INNER", "OUTER", "TOKENS", "Letters", "Mailbox", "Parcel", "pack", "unpacked"]

TOKENS, INNER, OUTER = 0, 1, 2
"""Kinds of rows: tokens; records whose node lies in the block of the parent; other records."""


class Parcel(NamedTuple):
    """``rows`` uint32[k, 3], and ``table`` int64[p, 4]: sample, kind, tag, how many rows each."""

    rows: NDArray[np.uint32]
    table: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """What it takes on its way."""
        return self.rows.nbytes + self.table.nbytes


class Letters:
    """Rows dealt into ``buckets``, kept in memory: what batches are appended to."""

    def __init__(self, buckets: int) -> None:
        self._batches: list[list[tuple[int, NDArray[np.uint32]]]] = [[] for _ in range(buckets)]

    def append(self, rows: NDArray[np.uint32], starts: NDArray[np.uint32], tag: int) -> None:
        """Add a batch: bucket b's rows are ``rows[starts[b] : starts[b + 1]]``."""
        for bucket in np.flatnonzero(starts[1:] > starts[:-1]).tolist():
            part = rows[int(starts[bucket]) : int(starts[bucket + 1])]
            self._batches[bucket].append((tag, part.copy()))

    def taken(self, bucket: int) -> list[tuple[int, NDArray[np.uint32]]]:
        """What a bucket holds, (tag, rows), which it then holds no more."""
        found, self._batches[bucket] = self._batches[bucket], []
        return found


def pack(
    letters: Iterable[tuple[int, int, list[tuple[int, NDArray[np.uint32]]]]],
) -> Parcel:
    """One parcel of (sample, kind, what a bucket held)."""
    rows: list[NDArray[np.uint32]] = []
    table: list[list[int]] = []
    for sample, kind, batches in letters:
        for tag, part in batches:
            rows.append(part)
            if table and table[-1][:3] == [sample, kind, tag]:
                table[-1][3] += len(part)
            else:
                table.append([sample, kind, tag, len(part)])
    whole = np.concatenate(rows) if rows else np.empty((0, 3), np.uint32)
    return Parcel(whole, np.array(table, np.int64).reshape(-1, 4))


class _Run:
    """Rows read from first to last."""

    def __init__(self, rows: NDArray[np.uint32]) -> None:
        self._rows, self.left = rows, int(rows.shape[0])

    def fill(self, out: NDArray[np.uint32]) -> int:
        """Copy the next rows, as many as ``out`` takes or are left; returns how many."""
        begin, count = len(self._rows) - self.left, min(len(out), self.left)
        out[:count] = self._rows[begin : begin + count]
        self.left -= count
        return count


class Mailbox:
    """Rows that were sent to one bucket, read as a spool is."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, NDArray[np.uint32]]] = []

    def put(self, tag: int, rows: NDArray[np.uint32]) -> None:
        """Add rows that lie where nobody writes."""
        self._rows.append((tag, rows))

    def readers(self, bucket: int) -> list[_Run]:
        """One run for each that was put: each ascends by itself."""
        return [_Run(rows) for _, rows in self._rows]

    def pieces(
        self, bucket: int, buffer: NDArray[np.uint32]
    ) -> Iterator[tuple[int, NDArray[np.uint32]]]:
        """(tag, rows), copied into ``buffer``."""
        for tag, rows in self._rows:
            run = _Run(rows)
            while count := run.fill(buffer):
                yield tag, buffer[:count]


def unpacked(parcels: Iterable[Parcel]) -> Iterator[tuple[int, int, int, NDArray[np.uint32]]]:
    """(sample, kind, tag, rows) of all parcels."""
    for parcel in parcels:
        begin = 0
        for sample, kind, tag, count in parcel.table.tolist():
            yield sample, kind, tag, parcel.rows[begin : begin + count]
            begin += count
