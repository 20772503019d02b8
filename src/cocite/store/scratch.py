"""Scratch arrays: in memory, or in files that vanish, for runs that must not take much memory.

A file-backed array has no name on disk; it goes when the last reference to it goes, however the
process ends. Its pages are given back with ``forget``, and read again when they are touched.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cocite.errors import ResourceError
from cocite.memory import format_size

__all__ = ["Scratch", "no_room"]


class Scratch:
    """Makes arrays in ``directory``, or in memory if there is none."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    @classmethod
    def beside(cls, store: str | os.PathLike[str]) -> Scratch:
        """On disk: in the directory of a store, or if that is read-only among temporary files."""
        path = Path(store)
        return cls(path if os.access(path, os.W_OK) else Path(tempfile.gettempdir()))

    @property
    def directory(self) -> Path | None:
        """Where its files are, if they are any."""
        return self._directory

    @property
    def on_disk(self) -> bool:
        """Whether its arrays are files."""
        return self._directory is not None

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """A writable array of zeros."""
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if self._directory is None or size == 0:
            return np.zeros(shape, dtype)
        try:
            with tempfile.TemporaryFile(dir=self._directory) as file:
                # Reserved now: a full disk is an error here, and not a fault in a kernel.
                os.posix_fallocate(file.fileno(), 0, size)
                area = mmap.mmap(file.fileno(), size)
        except OSError as error:
            raise no_room(size, self._directory, error) from error
        return np.frombuffer(area, dtype).reshape(shape)


def no_room(size: int, directory: Path, error: OSError) -> ResourceError:
    """What to raise when ``size`` bytes of scratch could not be had in ``directory``."""
    free = format_size(shutil.disk_usage(directory).free)
    return ResourceError(
        f"{size:,} bytes of scratch in {directory}: {error.strerror} ({free} free there). Give "
        "more memory with --memory, or room there"
    )
