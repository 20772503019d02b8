"""Raw little-endian arrays, written as checksummed streams and read by memory mapping.

A file contains only the array's bytes in C order; the manifest records dtype, shape, and XXH3-128.
Files are never modified: a store is replaced as a whole. By default, the system reads megabytes
around a mapped page; :func:`advise` controls this read-ahead.

Layouts declare their files in the notation of ``FORMAT.md``: ``"<u4[E]"`` is an array of E 32-bit
integers, where all files in a group have the same E; ``"<u8[n + 1]"`` has n + 1 elements, and
``"<f4[n, 6]"`` has six per node. Kernels rely on these shapes, so a store with an undeclared or
mismatched file cannot be opened.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeVar

import numpy as np
import xxhash
from numpy.typing import ArrayLike, DTypeLike, NDArray

from cocite.errors import Damaged, ResourceError

_Made = TypeVar("_Made")
_DTYPES = ("|u1", "<u2", "<u4", "<u8", "<i8", "<f4", "<f8")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
DIGEST = re.compile("[0-9a-f]{32}")
REBUILD = "Restore the directory from an intact copy, or rebuild it"
_MAX_BYTES = 2**56
_CHUNK, _PIECE = 1 << 24, 1 << 20
"""Bytes per write, and bytes per read when computing a checksum."""
_FETCHED = 1 << 17
"""Bytes per read-ahead request; systems limit the size of one request."""
AROUND = 1 << 21
"""Bytes that Linux may map around an accessed page: up to 64 kB, and since Linux 6.18 the whole
contiguous range in the page cache.
"""


@dataclass(frozen=True)
class Entry:
    """A file's manifest entry: NumPy dtype string, shape, and XXH3-128 in hex."""

    dtype: str
    shape: tuple[int, ...]
    xxh3_128: str

    @property
    def nbytes(self) -> int:
        """Return the file's expected size."""
        return math.prod(self.shape, start=np.dtype(self.dtype).itemsize)

    def to_json(self) -> dict[str, Any]:
        """Return the entry as stored in the manifest."""
        return {"dtype": self.dtype, "shape": list(self.shape), "xxh3_128": self.xxh3_128}

    @classmethod
    def from_json(cls, name: str, value: Any) -> Entry:
        """Parse and check a manifest entry; raises :class:`Damaged`."""
        if not _NAME.fullmatch(name):
            raise Damaged(f"the manifest lists {name!r}, which is not a valid file name")
        try:
            dtype, shape, digest = value["dtype"], value["shape"], value["xxh3_128"]
            fine = (
                dtype in _DTYPES
                and isinstance(shape, list)
                and 1 <= len(shape) <= 3
                and all(type(length) is int and 0 <= length < _MAX_BYTES for length in shape)
                and isinstance(digest, str)
                and DIGEST.fullmatch(digest) is not None
            )
        except (TypeError, KeyError):
            fine = False
        if fine:
            entry = cls(dtype, tuple(shape), digest)
            if entry.nbytes <= _MAX_BYTES:
                return entry
        raise Damaged(f"the manifest's entry for {name} is invalid: {str(value)[:200]}")


class ArrayWriter:
    """Writes one array in chunks, to an open file or to a new one in a staging directory.

    ``finished`` is the file's :class:`Entry`. ``shape_tail`` contains all dimensions except the
    first. The bytes are on disk once the ``with`` block ends without an error.
    """

    def __init__(
        self, path: Path | BinaryIO, dtype: DTypeLike, shape_tail: tuple[int, ...] = ()
    ) -> None:
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self._tail = shape_tail
        self._hash = xxhash.xxh3_128()
        self._items = 0
        self._ours = isinstance(path, Path)
        from cocite.storage import disk  # only writing needs it

        self._disk = disk
        self._file = disk.create_anew(path) if isinstance(path, Path) else path
        self.entry: Entry | None = None

    def write(self, piece: ArrayLike) -> None:
        """Append ``piece``, losslessly converted to the array's dtype."""
        array = np.asarray(piece)
        if array.dtype != self.dtype:
            array = array.astype(self.dtype, casting="safe")
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        for low in range(0, len(data), _CHUNK):
            self._disk.write(self._file, data[low : low + _CHUNK])
        self._hash.update(data)
        self._items += array.size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                self._disk.sync_file(self._file)
                shape = (self._items // math.prod(self._tail), *self._tail)
                self.entry = Entry(self.dtype.str, shape, self._hash.hexdigest())
        finally:
            if self._ours:
                self._file.close()

    @property
    def finished(self) -> Entry:
        """Return the completed file's entry."""
        if self.entry is None:
            raise ValueError(f"{self._file.name} is not finished")
        return self.entry


def write_array(
    path: Path, dtype: DTypeLike, pieces: Iterable[ArrayLike], shape_tail: tuple[int, ...] = ()
) -> Entry:
    """Write a file of consecutive ``pieces``; return its entry."""
    with ArrayWriter(path, dtype, shape_tail) as writer:
        for piece in pieces:
            writer.write(piece)
    return writer.finished


_READ_ONLY = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):  # Windows has only the last one
    _READ_ONLY |= getattr(os, _flag, 0)


def open_regular(path: Path, nbytes: int | None = None) -> int:
    """Open a regular file (not a link or pipe), of exactly ``nbytes`` bytes if given.

    Raises :class:`Damaged`, or :class:`ResourceError` if too many files are open.
    """
    descriptor = _allowed(path, lambda: os.open(path, _READ_ONLY))
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise Damaged(f"{path} is not a regular file. {REBUILD}")
    if nbytes is not None and status.st_size != nbytes:
        os.close(descriptor)
        found = f"{status.st_size} bytes"
        raise Damaged(f"{path} should have {nbytes} bytes; found: {found}. {REBUILD}")
    return descriptor


def _allowed(path: Path, call: Callable[[], _Made]) -> _Made:
    """Return ``call()``; increases the soft limit on open files if it is reached."""
    while True:
        try:
            return call()
        except OSError as error:
            if error.errno != errno.EMFILE or not _allow_more():
                raise _unopened(path, error) from error


def _allow_more() -> bool:
    """Double the soft limit on open files; return False if impossible."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return False
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * now if most == resource.RLIM_INFINITY else min(2 * now, most)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    except (ValueError, OSError):
        return False
    return wanted > now


def _unopened(path: Path, error: OSError) -> Damaged | ResourceError:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        return ResourceError(
            f"{path} cannot be opened: the limit is {most:,} open files. Raise it, for example "
            "with ulimit -n 4096, or build the index with more samples per file: --shard "
            "(shard=...)"
        )
    if error.errno == errno.ENOMEM:
        return ResourceError(
            f"{path} cannot be mapped: {error.strerror}. Allow more address space (ulimit -v "
            "unlimited) or more memory maps (vm.max_map_count)"
        )
    return Damaged(f"{path} cannot be opened: {error.strerror}. {REBUILD}")


def map_array(path: Path, entry: Entry) -> NDArray[Any]:
    """Map the file of ``entry`` read-only; raises the errors of :func:`open_regular`."""
    descriptor = open_regular(path, entry.nbytes)
    try:
        if entry.nbytes == 0:
            array = np.empty(entry.shape, entry.dtype)
            array.flags.writeable = False
            return array
        view = _allowed(path, lambda: mmap.mmap(descriptor, entry.nbytes, access=mmap.ACCESS_READ))
    finally:
        os.close(descriptor)
    return np.frombuffer(view, entry.dtype).reshape(entry.shape)


def evict(*arrays: NDArray[Any]) -> None:
    """Release the memory of mapped arrays or slices. Ignores other arrays."""
    for view, low, high in _extents(arrays):
        first = low // AROUND * AROUND
        last = min(-(-high // AROUND) * AROUND, len(view))
        _advise(view, "MADV_DONTNEED", first, last - first)


def fetch(*arrays: NDArray[Any]) -> None:
    """Read mapped arrays or slices into memory, in order. Ignores other arrays."""
    for view, low, high in _extents(arrays):
        for piece in range(low // mmap.PAGESIZE * mmap.PAGESIZE, high, _FETCHED):
            _advise(view, "MADV_WILLNEED", piece, min(_FETCHED, high - piece))


def _extents(arrays: Iterable[NDArray[Any]]) -> Iterator[tuple[mmap.mmap, int, int]]:
    """Yield (mapping, first byte, end byte) for each mapped array."""
    for array in arrays:
        view = _view(array)
        if view is not None and array.size:
            start = np.frombuffer(view, np.uint8).ctypes.data
            low, high = np.lib.array_utils.byte_bounds(array)
            yield view, low - start, high - start


def _advise(view: mmap.mmap, advice: str, *where: int) -> None:
    """Pass memory advice to the system; does nothing on Windows."""
    if hasattr(mmap, advice):
        view.madvise(getattr(mmap, advice), *where)


class Access(Enum):
    """The expected access pattern of a mapped array, for the system's read-ahead."""

    SCATTERED = "MADV_RANDOM"
    """Random access to a few words: read single pages."""
    AROUND = "MADV_NORMAL"
    """Access to most of the array, in any order: also read neighboring pages."""
    THROUGH = "MADV_SEQUENTIAL"
    """One sequential pass."""


def advise(access: Access, *arrays: NDArray[Any]) -> None:
    """Declare the access pattern of mapped arrays. It applies to whole files, even for slices, and
    to all users of the mapping. Ignores other arrays.
    """
    for view in filter(None, map(_view, arrays)):
        _advise(view, access.value)


def _view(array: NDArray[Any]) -> mmap.mmap | None:
    """Return the mapping behind an array, or None."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, mmap.mmap) else None


def is_mapped(array: NDArray[Any]) -> bool:
    """Return whether an array is a view of a mapped file."""
    return _view(array) is not None


def checksum(path: Path, entry: Entry) -> str:
    """Return a file's XXH3-128 in hex, reading in chunks."""
    descriptor = open_regular(path, entry.nbytes)
    digest = xxhash.xxh3_128()
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


_DECLARED = re.compile(r"([|<][a-z][0-9])\[([^\]]+)\]")
_SIZE = re.compile(r"([A-Za-z]*)(?: \+ )?([0-9]*)")


class DeclaredFiles:
    """A manifest's files, claimed group by group according to their declarations. All methods raise
    :class:`Damaged`.
    """

    def __init__(self, path: Path, files: Mapping[str, Entry]) -> None:
        self._path, self._left = path, dict(files)

    def take(
        self,
        declared: Mapping[str, str],
        sizes: Mapping[str, int],
        prefix: str = "",
        optional: Collection[str] = (),
    ) -> None:
        """Claim a group of files whose names begin with ``prefix``. Each must be listed unless
        ``optional``, and match its declaration. ``sizes`` contains known sizes; an unknown size
        must have the same value in the whole group.
        """
        known = dict(sizes)
        for name, form in declared.items():
            if name in optional and prefix + name not in self._left:
                continue
            self._compare(prefix + name, form, known)

    def starting(self, prefix: str) -> list[str]:
        """Return the unclaimed file names with this prefix, sorted."""
        return sorted(name for name in self._left if name.startswith(prefix))

    def no_more(self) -> None:
        """Check that all files are claimed."""
        if self._left:
            raise Damaged(
                f"{self._path}: the manifest lists {min(self._left)}, which is not a file of this "
                f"store. {REBUILD}"
            )

    def _compare(self, name: str, form: str, known: dict[str, int]) -> None:
        entry = self._left.pop(name, None)
        if entry is None:
            raise Damaged(f"{self._path} has no {name} in its manifest. {REBUILD}")
        match = _DECLARED.fullmatch(form)
        assert match is not None
        dtype, sizes = match[1], match[2].split(", ")
        fine = entry.dtype == dtype and len(entry.shape) == len(sizes)
        if not fine or not all(map(_fits, entry.shape, sizes, [known] * len(sizes))):
            shape = ", ".join(map(str, entry.shape))
            having = ", ".join(f"{size} = {value}" for size, value in known.items() if size in form)
            raise Damaged(
                f"{self._path}: the manifest says {name} is {entry.dtype}[{shape}]; it must be "
                f"{form}" + (f" with {having}. " if having else ". ") + REBUILD
            )


def _fits(found: int, size: str, known: dict[str, int]) -> bool:
    """Return whether a size matches its declaration; add an unknown size to ``known``."""
    match = _SIZE.fullmatch(size)
    assert match is not None
    name, more = match[1], int(match[2] or 0)
    return found == (known.setdefault(name, found - more) + more if name else more)
