"""Scratch files: rows of three words dealt into buckets, for passes that exceed memory; and arrays
that are written piece by piece.

A batch is written with one call, its rows sorted by bucket already, and read back bucket by bucket:
the file is a table of batches by buckets, of which each pass writes rows and reads columns. The
file has no name on disk and goes when the last reference to it goes, however the process ends. It
is written over again and again, so its room stays reserved from one pass to the next.

In memory are four bytes for each pair of a batch and a bucket.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cocite.store.scratch import no_room

__all__ = ["ROW", "ScratchFile", "Spool", "SpoolReader", "Stream"]

ROW = 12
"""Bytes of a row."""


class ScratchFile:
    """A nameless file in ``directory``, read and written at offsets, without mapping it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        try:
            with tempfile.TemporaryFile(dir=directory) as file:
                self._file = os.dup(file.fileno())
        except OSError as error:
            raise no_room(0, directory, error) from error
        weakref.finalize(self, os.close, self._file)

    def write(self, offset: int, array: NDArray[Any]) -> None:
        """Write a contiguous array at ``offset`` bytes; a full disk is a ResourceError."""
        rest = array.reshape(-1).view(np.uint8).data
        try:
            while rest:
                written = os.pwrite(self._file, rest, offset)
                rest, offset = rest[written:], offset + written
        except OSError as error:
            raise no_room(array.nbytes, self._directory, error) from error

    def read(self, offset: int, out: NDArray[Any]) -> None:
        """Fill a contiguous array from ``offset`` bytes on."""
        rest = out.reshape(-1).view(np.uint8).data
        while rest:
            found = os.preadv(self._file, [rest], offset)
            if found == 0:
                raise ValueError(f"a scratch file ends at {offset}, where more was written")
            rest, offset = rest[found:], offset + found

    def mapped(self, dtype: DTypeLike, size: int) -> NDArray[Any]:
        """The first ``size`` values of the file as a writable array; it outlives this object."""
        if size == 0:
            return np.empty(0, dtype)
        area = mmap.mmap(self._file, size * np.dtype(dtype).itemsize)
        return np.frombuffer(area, dtype)


class Stream:
    """One array of a length that is not known before: pieces one behind the other, in a nameless
    file in ``directory``.
    """

    def __init__(self, directory: Path, dtype: DTypeLike) -> None:
        self._file, self._dtype = ScratchFile(directory), np.dtype(dtype)
        self.size = 0

    def append(self, piece: NDArray[Any]) -> None:
        """Add a contiguous piece of the array's dtype; a full disk is a ResourceError."""
        self._file.write(self.size * self._dtype.itemsize, piece)
        self.size += piece.size

    def finish(self) -> NDArray[Any]:
        """The whole array, mapped and writable."""
        return self._file.mapped(self._dtype, self.size)


class Spool:
    """Rows uint32[:, 3] in ``buckets`` buckets; each batch bears a tag."""

    def __init__(self, directory: Path, buckets: int) -> None:
        self._file = ScratchFile(directory)
        self._buckets = buckets
        self.clear()

    def clear(self) -> None:
        """Forget all rows, keep the room that they had."""
        self._rows = 0
        self._firsts: list[int] = []
        self._tags: list[int] = []
        self._starts: list[NDArray[np.uint32]] = []
        self._table: NDArray[np.uint32] | None = None

    def append(self, rows: NDArray[np.uint32], starts: NDArray[np.uint32], tag: int) -> None:
        """Add a batch: bucket b's rows are ``rows[starts[b] : starts[b + 1]]``."""
        if rows.shape[0] == 0:
            return
        self._file.write(self._rows * ROW, rows)
        self._firsts.append(self._rows)
        self._tags.append(tag)
        self._starts.append(starts.copy())
        self._table = None
        self._rows += rows.shape[0]

    def readers(self, bucket: int) -> list[SpoolReader]:
        """What a bucket holds, in the order of writing: one reader for each stretch of one tag."""
        if not self._starts:
            return []
        if self._table is None:
            self._table = np.stack(self._starts)
        begin, end = self._table[:, bucket], self._table[:, bucket + 1]
        readers: list[SpoolReader] = []
        for batch in np.flatnonzero(end > begin).tolist():
            if not readers or readers[-1].tag != self._tags[batch]:
                readers.append(SpoolReader(self._file, self._tags[batch]))
            first = self._firsts[batch]
            readers[-1].add(first + int(begin[batch]), int(end[batch] - begin[batch]))
        return readers

    def pieces(
        self, bucket: int, buffer: NDArray[np.uint32]
    ) -> Iterator[tuple[int, NDArray[np.uint32]]]:
        """A bucket's rows in the order of writing: (tag, rows), the rows lying in ``buffer``."""
        for reader in self.readers(bucket):
            while count := reader.fill(buffer):
                yield reader.tag, buffer[:count]


class SpoolReader:
    """Rows under one tag, read from first to last."""

    def __init__(self, file: ScratchFile, tag: int) -> None:
        self.tag = tag
        self.left = 0
        self._file = file
        self._extents: list[tuple[int, int]] = []
        self._next = self._done = 0

    def add(self, first: int, count: int) -> None:
        """Behind the others, ``count`` rows that begin at row ``first`` of the file."""
        self._extents.append((first, count))
        self.left += count

    def fill(self, out: NDArray[np.uint32]) -> int:
        """Read the next rows, as many as ``out`` takes or are left; returns how many."""
        filled = 0
        wanted = min(out.shape[0], self.left)
        while filled < wanted:
            first, count = self._extents[self._next]
            taken = min(count - self._done, wanted - filled)
            self._file.read((first + self._done) * ROW, out[filled : filled + taken])
            filled += taken
            self._done += taken
            if self._done == count:
                self._next, self._done = self._next + 1, 0
        self.left -= filled
        return filled
