"""A file that grows by pieces and loses none that was finished, however its writer ends.

Pieces are appended to one file, and a line for each, its size and checksum, to another. Opened
again, it holds the longest beginning whose checksums are right; what is behind it is cut off. So
nothing needs to be on the disk at any moment but the end.

Cost: opening reads all pieces once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import xxhash

from cocite.errors import StoreError
from cocite.store import disk

__all__ = ["Journal"]

_CHUNK = 1 << 22


class Journal:
    """``with Journal(path) as journal: journal.append(piece)``; ``journal.sizes`` are those there.

    The lines are in the file that is called so with ``.log`` behind it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log_path = path.with_name(path.name + ".log")
        self.sizes: list[int] = []

    def __enter__(self) -> Self:
        for path in (self.path, self._log_path):
            try:
                disk.touch(path)
            except OSError as error:  # a link is one
                raise StoreError(
                    f"{path} cannot be written: {error.strerror}. Remove it"
                ) from error
        lines = list(self._sound())
        self._file = disk.edit(self.path)
        self._log = disk.edit(self._log_path)
        disk.truncate(self._file, sum(self.sizes))
        disk.truncate(self._log, sum(map(len, lines)))
        return self

    def _sound(self) -> Iterator[bytes]:
        """The lines of the pieces that are whole, from the first one on; their ``sizes``."""
        with self.path.open("rb") as file, self._log_path.open("rb") as log:
            for line in log:
                words = line.split()
                if not line.endswith(b"\n") or len(words) != 2 or not words[0].isdigit():
                    return
                if _digest(file, int(words[0])) != words[1].decode("ascii", "replace"):
                    return
                self.sizes.append(int(words[0]))
                yield line

    def append(self, piece: bytes | memoryview) -> None:
        """Add one piece; raises :class:`~cocite.errors.ResourceError` if the disk is full."""
        disk.write(self._file, piece)
        line = f"{len(piece)} {xxhash.xxh3_128_hexdigest(piece)}\n"
        disk.write(self._log, line.encode())
        self.sizes.append(len(piece))

    @property
    def begins(self) -> list[int]:
        """The byte at which each piece begins."""
        return list(accumulate(self.sizes, initial=0))[:-1]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        self._log.close()


def _digest(file: BinaryIO, size: int) -> str:
    """The checksum of the next ``size`` bytes, "" if there are fewer."""
    if size > os.fstat(file.fileno()).st_size - file.tell():
        return ""
    state = xxhash.xxh3_128()
    while size:
        chunk = file.read(min(size, _CHUNK))
        state.update(chunk)
        size -= len(chunk)
    return state.hexdigest()
