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
from cocite.store.manifest import MANIFEST, Manifest, kind_of

__all__ = ["Draft"]

_MARK = ".cocite-draft"
"""A file in every draft: a directory of that name without it is somebody else's."""
_TRIES = 5


class Draft:
    """``with Draft(output, "graph") as draft: ... draft.publish(manifest)``.

    On an error the directory is kept if ``resumable`` and removed if not. Raises
    :class:`OutputExists` if the output is there and ``overwrite`` is false, :class:`Busy` if
    another process is building it, :class:`NotAStore` if overwriting would remove something
    that is no store of the same ``kind``, and :class:`StoreError` if the directory cannot be made.
    """

    def __init__(
        self, output: str | Path, kind: str, *, overwrite: bool = False, resumable: bool = False
    ) -> None:
        self.output = Path(output)
        if not self.output.name:
            raise UsageError(f"{str(output)!r} names no directory that could be made")
        self.path = self.output.with_name(self.output.name + ".building")
        self._resumable = resumable
        self._published = False
        self._lock = -1
        self._kind, self._overwrite = kind, overwrite
        if os.path.lexists(self.output):
            if not overwrite:
                raise OutputExists(
                    f"{self.output} exists. Choose another output, or pass --overwrite "
                    "(overwrite=True) to replace it when the new one is complete"
                )
            self._check_replaceable()

    def __enter__(self) -> Self:
        for _ in range(_TRIES):
            try:
                self.output.parent.mkdir(parents=True, exist_ok=True)
                self.path.mkdir(exist_ok=True)
                self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except OSError as error:
                raise StoreError(
                    f"{self.path} cannot be made: {error.strerror}. Choose another output"
                ) from error
            if not _lock(self._lock):
                os.close(self._lock)
                raise Busy(f"another process is building {self.output}; wait for it")
            if _is_still(self.path, self._lock):
                break
            os.close(self._lock)  # it was published or removed before we had the lock
        else:
            raise Busy(f"other processes keep building {self.output}")
        try:
            self._take_over()
        except BaseException:
            os.close(self._lock)
            raise
        return self

    def _take_over(self) -> None:
        """Make the directory ours: what an earlier run left in it may go, other files may not."""
        found = {entry.name for entry in self.path.iterdir()}
        if found and _MARK not in found and kind_of(self.path) is None:
            raise StoreError(
                f"{self.path} is in the way: it holds files that no unfinished build has left "
                f"({', '.join(sorted(found)[:3])}). Move it, or choose another output"
            )
        (self.path / _MARK).touch()
        if not self._resumable:
            self.clear()

    def clear(self) -> None:
        """Remove what an earlier, unfinished run left."""
        self._remove_all_but(self.path, {_MARK})

    def publish(self, manifest: Manifest) -> Path:
        """Write the manifest and move the directory to its place; returns that place.

        Raises :class:`OutputExists` or :class:`NotAStore` if something that may not be replaced
        came to be there during the build; the draft is kept.
        """
        manifest.write(self.path)
        if self._overwrite and os.path.lexists(self.output):
            self._check_replaceable()
            self._replace()
        else:
            try:
                disk.rename_new(self.path, self.output)
            except FileExistsError as error:
                raise OutputExists(
                    f"{self.output} came to exist meanwhile; what was built is in {self.path}"
                ) from error
            self._published = True
            disk.sync_directory(self.output.parent)
        self._remove_all_but(self.output, {*manifest.files, MANIFEST})
        return self.output

    def _check_replaceable(self) -> None:
        if kind_of(self.output) != self._kind:
            raise NotAStore(
                f"{self.output} exists and is no stored {self._kind}: it will not be overwritten. "
                "Choose another output"
            )

    def _replace(self) -> None:
        """Exchange old and new, then remove the old one."""
        old = os.open(self.output, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # After the exchange the old one has the draft's name: locked, nobody takes it over.
            _lock(old)
            disk.exchange(self.path, self.output)
            self._published = True
            try:
                disk.sync_directory(self.output.parent)
            finally:
                disk.remove_tree(self.path)
        finally:
            os.close(old)

    def _remove_all_but(self, directory: Path, kept: set[str]) -> None:
        for entry in directory.iterdir():
            if entry.name not in kept:
                if entry.is_dir() and not entry.is_symlink():
                    disk.remove_tree(entry)
                else:
                    entry.unlink()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if not self._published and _is_still(self.path, self._lock):
                bare = {entry.name for entry in self.path.iterdir()} <= {_MARK}
                if bare or not self._resumable:
                    disk.remove_tree(self.path)
        finally:
            os.close(self._lock)


def _lock(descriptor: int) -> bool:
    """Lock an open directory; False if another process has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return False
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the open directory still has the name ``path``."""
    try:
        named, opened = path.stat(), os.fstat(descriptor)
    except OSError:
        return False
    return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)
