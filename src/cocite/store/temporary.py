"""A directory that goes with the object that needs it.

It goes when the last object that holds it goes, or when the interpreter ends; in the process that
made it alone, so that a child that was forked leaves it to its parent. It is locked as long as it
is held: what a process that was killed has left behind is not, and goes when the next directory is
made beside it.

It lies where temporary files belong (``TMPDIR``); if that is not said, and what is to come takes at
most a quarter of the memory given, in the memory itself, where the system has a file system there.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

from cocite.errors import ResourceError
from cocite.store import disk
from cocite.store.locks import lock, unclaimed

__all__ = ["Temporary"]

_PREFIX = "cocite-held-"
_MARK = ".cocite-temporary"
"""A file in every one of them, which is there from when it is locked."""
_IN_MEMORY = Path("/dev/shm")
_SHARE = 4


class Temporary:
    """A new directory, at ``path``, for some ``nbytes`` of files; None where nobody knows how many.
    ``memory`` bytes may be taken. Raises :class:`ResourceError` if it cannot be made.
    """

    def __init__(self, nbytes: int | None, memory: int) -> None:
        place = _place(nbytes, memory)
        _sweep(place)
        try:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise ResourceError(
                f"no temporary directory can be made in {place}: {error.strerror}. Name an output, "
                "or another place for temporary files with the variable TMPDIR"
            ) from error
        lock(descriptor)
        disk.touch(self.path / _MARK)
        self._end = weakref.finalize(self, _remove, self.path, descriptor, os.getpid())

    def __repr__(self) -> str:
        return f"Temporary({str(self.path)!r})"

    def close(self) -> None:
        """Remove it now."""
        self._end()


def _remove(path: Path, descriptor: int, maker: int) -> None:
    if os.getpid() == maker:
        with suppress(OSError):
            disk.remove_tree(path, _MARK)
    with suppress(OSError):
        os.close(descriptor)


def _place(nbytes: int | None, memory: int) -> Path:
    usual = Path(tempfile.gettempdir())
    if nbytes is None or os.environ.get("TMPDIR") or nbytes > memory // _SHARE:
        return usual
    try:
        free = shutil.disk_usage(_IN_MEMORY).free
    except OSError:
        return usual
    fits = 2 * nbytes <= free and os.access(_IN_MEMORY, os.W_OK | os.X_OK)
    return _IN_MEMORY if fits else usual


def _sweep(place: Path) -> None:
    """Remove what processes that were killed have left there: nobody holds its lock."""
    for path in place.glob(_PREFIX + "*"):
        with suppress(OSError), unclaimed(path) as free:
            if free and (path / _MARK).is_file():
                disk.remove_tree(path, _MARK)
