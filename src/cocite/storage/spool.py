"""Scratch space: unnamed files and arrays for data beyond memory, and temporary directories.

A :class:`Spool` distributes rows of three words among buckets. Each batch of rows, sorted by
bucket, is one write. A table (batch by bucket, 4 bytes per cell in memory) locates the rows. Disk
space remains allocated between passes.

Unnamed files disappear with their last reference. A :class:`Temporary` directory is removed with
its last reference or at the end of the process. Temporary directories are locked, so later
processes can identify and remove the directories of killed processes. They are in ``TMPDIR`` if
set; otherwise in memory if the files need at most a quarter of the memory budget; and otherwise in
the default temporary directory.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cocite.errors import ResourceError
from cocite.resources import format_size
from cocite.storage import disk
from cocite.storage.atomic import lock, unclaimed


@dataclass(frozen=True)
class Scratch:
    """Allocator of arrays, in files in ``directory``, or in memory if ``directory`` is None."""

    directory: Path | None

    @classmethod
    def near(cls, store: str | os.PathLike[str]) -> Scratch:
        """Allocate in a store's directory or, if it is read-only, in the temporary directory."""
        path = Path(store)
        return cls(path if os.access(path, os.W_OK) else Path(tempfile.gettempdir()))

    @property
    def on_disk(self) -> bool:
        """Return whether arrays are stored in files."""
        return self.directory is not None

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Allocate a writable array of zeros."""
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if self.directory is None or size == 0:
            return np.zeros(shape, dtype)
        try:
            with tempfile.TemporaryFile(dir=self.directory) as file:
                # Allocate now: on a full disk, raise here instead of crashing in a kernel.
                os.posix_fallocate(file.fileno(), 0, size)
                area = mmap.mmap(file.fileno(), size)
        except OSError as error:
            raise no_room(size, self.directory, error) from error
        return np.frombuffer(area, dtype).reshape(shape)


def no_room(size: int, directory: Path, error: OSError) -> ResourceError:
    """Return the error for a failed allocation."""
    free = format_size(shutil.disk_usage(directory).free)
    return ResourceError(
        f"could not allocate {size:,} bytes of scratch space in {directory}: {error.strerror} "
        f"({free} free there). Increase --memory (memory=...), or free some space there"
    )


ROW = 12
"""Bytes per row."""


class ScratchFile:
    """An unnamed file in ``directory``, accessed by offset."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        try:
            with tempfile.TemporaryFile(dir=directory) as file:
                self._file = os.dup(file.fileno())
        except OSError as error:
            raise no_room(0, directory, error) from error
        weakref.finalize(self, os.close, self._file)

    def write(self, offset: int, array: NDArray[Any]) -> None:
        """Write a contiguous array at byte ``offset``; raises ResourceError if the disk is full."""
        rest = array.reshape(-1).view(np.uint8).data
        try:
            while rest:
                written = os.pwrite(self._file, rest, offset)
                rest, offset = rest[written:], offset + written
        except OSError as error:
            raise no_room(array.nbytes, self._directory, error) from error

    def read(self, offset: int, out: NDArray[Any]) -> None:
        """Fill a contiguous array with the bytes at ``offset``."""
        rest = out.reshape(-1).view(np.uint8).data
        while rest:
            found = os.preadv(self._file, [rest], offset)
            if found == 0:
                raise ValueError(f"the scratch file was truncated at byte {offset}")
            rest, offset = rest[found:], offset + found

    def mapped(self, dtype: DTypeLike, size: int) -> NDArray[Any]:
        """Map the first ``size`` values as a writable array, which may outlive this object."""
        if size == 0:
            return np.empty(0, dtype)
        area = mmap.mmap(self._file, size * np.dtype(dtype).itemsize)
        return np.frombuffer(area, dtype)


class Stream:
    """An array of unknown length in an unnamed file in ``directory``."""

    def __init__(self, directory: Path, dtype: DTypeLike) -> None:
        self._file, self._dtype = ScratchFile(directory), np.dtype(dtype)
        self.size = 0

    def append(self, piece: NDArray[Any]) -> None:
        """Append a contiguous array of the same dtype; raises ResourceError if the disk is full."""
        self._file.write(self.size * self._dtype.itemsize, piece)
        self.size += piece.size

    def finish(self) -> NDArray[Any]:
        """Map the whole array as writable."""
        return self._file.mapped(self._dtype, self.size)


class Spool:
    """Rows uint32[:, 3] in ``buckets`` buckets; each batch has a tag."""

    def __init__(self, directory: Path, buckets: int) -> None:
        self._file = ScratchFile(directory)
        self._buckets = buckets
        self.clear()

    def clear(self) -> None:
        """Discard all rows; disk space remains allocated."""
        self._rows = 0
        self._firsts: list[int] = []
        self._tags: list[int] = []
        self._starts: list[NDArray[np.uint32]] = []
        """The starts of each batch, [1, buckets + 1]; merged into one array for all batches by the
        first read.
        """

    def append(self, rows: NDArray[np.uint32], starts: NDArray[np.uint32], tag: int) -> None:
        """Append a batch, in which ``rows[starts[b] : starts[b + 1]]`` belong to bucket b."""
        if rows.shape[0] == 0:
            return
        self._file.write(self._rows * ROW, rows)
        self._firsts.append(self._rows)
        self._tags.append(tag)
        self._starts.append(starts[None].copy())
        self._rows += rows.shape[0]

    def readers(self, bucket: int) -> list[SpoolReader]:
        """Return a bucket's readers in writing order, one for each run of equal tags."""
        if not self._starts:
            return []
        if len(self._starts) > 1:  # once for each run of appended batches
            self._starts = [np.concatenate(self._starts)]
        begin, end = self._starts[0][:, bucket], self._starts[0][:, bucket + 1]
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
        """Yield a bucket's (tag, rows) in writing order; rows are views of ``buffer``."""
        for reader in self.readers(bucket):
            while count := reader.fill(buffer):
                yield reader.tag, buffer[:count]


class SpoolReader:
    """Reads rows with the same tag, in order."""

    def __init__(self, file: ScratchFile, tag: int) -> None:
        self.tag = tag
        self.left = 0
        self._file = file
        self._extents: list[tuple[int, int]] = []
        self._next = self._done = 0

    def add(self, first: int, count: int) -> None:
        """Add ``count`` rows of the file, beginning at row ``first``."""
        self._extents.append((first, count))
        self.left += count

    def fill(self, out: NDArray[np.uint32]) -> int:
        """Read as many of the remaining rows as fit in ``out``; return their number."""
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


_PREFIX = "cocite-held-"
_MARK = ".cocite-temporary"
"""Marker file in a temporary directory, created after locking the directory."""
_IN_MEMORY = Path("/dev/shm")
_SHARE = 4


class Temporary:
    """A temporary directory ``path`` for ``nbytes`` of files (None if unknown), with a memory
    budget of ``memory`` bytes. Raises :class:`ResourceError` if the directory cannot be created.
    """

    def __init__(self, nbytes: int | None, memory: int) -> None:
        place = _place(nbytes, memory)
        _sweep(place)
        try:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise ResourceError(
                f"no temporary directory can be created in {place}: {error.strerror}. Choose an "
                "output, or set TMPDIR to another directory"
            ) from error
        lock(descriptor)
        disk.touch(self.path / _MARK)
        self._end = weakref.finalize(self, _remove, self.path, descriptor, os.getpid())

    def __repr__(self) -> str:
        return f"Temporary({str(self.path)!r})"

    def close(self) -> None:
        """Remove the directory now."""
        self._end()


def _remove(path: Path, descriptor: int, maker: int) -> None:
    if os.getpid() == maker:
        with suppress(OSError):
            disk.remove_tree(path, _MARK)
    with suppress(OSError):
        os.close(descriptor)


def _place(nbytes: int | None, memory: int) -> Path:
    if nbytes is not None and not os.environ.get("TMPDIR") and nbytes <= memory // _SHARE:
        with suppress(OSError):
            free = shutil.disk_usage(_IN_MEMORY).free
            if 2 * nbytes <= free and os.access(_IN_MEMORY, os.W_OK | os.X_OK):
                return _IN_MEMORY
    return Path(tempfile.gettempdir())


def _sweep(place: Path) -> None:
    """Remove killed processes' directories, which are unlocked."""
    for path in place.glob(_PREFIX + "*"):
        with suppress(OSError), unclaimed(path) as free:
            if free and (path / _MARK).is_file():
                disk.remove_tree(path, _MARK)
