"""A store in the making: written beside its final place, published by one rename.

While it grows it is called ``<output>.building``; a lock on that directory keeps
a second builder out. ``publish`` writes the manifest last, then renames. A process that is
killed at any moment leaves either the old output untouched or the new one whole, and a
``.building`` directory that the next run takes over: it continues in it if the builder
knows how to resume, and else empties it.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from cocite.errors import Busy, NotAStore, OutputExists, StoreError, UsageError
from cocite.store import disk
from cocite.store.manifest import Manifest, kind_of

__all__ = ["Draft"]


class Draft:
    """``with Draft(output) as draft: ... draft.publish(manifest)``.

    On an error the directory is kept if ``resumable`` and removed if not. Raises
    :class:`OutputExists` if the output is there and ``overwrite`` is false, :class:`Busy` if
    another process is building it, :class:`NotAStore` if overwriting would remove something
    that is not a store, and :class:`StoreError` if the directory cannot be made.
    """

    def __init__(
        self, output: str | Path, *, overwrite: bool = False, resumable: bool = False
    ) -> None:
        self.output = Path(output)
        if not self.output.name:
            raise UsageError(f"{str(output)!r} names no directory that could be made")
        self.path = self.output.with_name(self.output.name + ".building")
        self._resumable = resumable
        self._published = False
        self._lock = -1
        if os.path.lexists(self.output):
            if not overwrite:
                raise OutputExists(
                    f"{self.output} exists. Choose another output, or pass --overwrite "
                    "(overwrite=True) to replace it when the new one is complete"
                )
            if kind_of(self.output) is None:
                raise NotAStore(
                    f"{self.output} exists and is not a stored graph or index: it will not be "
                    "overwritten. Choose another output"
                )

    def __enter__(self) -> Self:
        try:
            self.output.parent.mkdir(parents=True, exist_ok=True)
            self.path.mkdir(exist_ok=True)
            self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as error:
            raise StoreError(
                f"{self.path} cannot be made: {error.strerror}. Choose another output"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            raise Busy(f"another process is building {self.output}; wait for it") from error
        if not self._resumable:
            self.clear()
        return self

    def clear(self) -> None:
        """Remove what an earlier, unfinished run left."""
        for leftover in self.path.iterdir():
            if leftover.is_dir() and not leftover.is_symlink():
                disk.remove_tree(leftover)
            else:
                leftover.unlink()

    def publish(self, manifest: Manifest) -> Path:
        """Write the manifest and move the directory to its place; returns that place."""
        expected = set(manifest.files)
        for leftover in self.path.iterdir():
            if leftover.name not in expected:
                disk.remove_tree(leftover) if leftover.is_dir() else leftover.unlink()
        manifest.write(self.path)
        if os.path.lexists(self.output):
            disk.exchange(self.path, self.output)
        else:
            disk.rename(self.path, self.output)
        self._published = True
        disk.sync_directory(self.output.parent)
        return self.output

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._published or not self._resumable:
                disk.remove_tree(self.path)  # what was replaced, or what came to nothing
            elif not any(self.path.iterdir()):
                self.path.rmdir()
        finally:
            os.close(self._lock)
