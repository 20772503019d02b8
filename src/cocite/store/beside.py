"""A file written beside its place, which takes its name when its bytes are on the disk.

It is written under a name that nobody can foresee, which must be free (``O_EXCL``, ``O_NOFOLLOW``):
never through a link that somebody has put there, never into a file that has other names as well.
Then its bytes are synced, it is renamed, and the directory is synced; on an error nothing is left
of it.

An output that is a link is refused: what it leads to may be anybody's, and a link that is replaced
in silence is not what whoever made it expects.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from cocite.errors import OutputExists, StoreError
from cocite.store import disk

__all__ = ["check_file", "is_private", "written_beside"]

_END = ".new"
_LONGEST = 200


def check_file(path: Path, overwrite: bool) -> Path:
    """The path, if a file may be written there; before any work is done.

    Raises :class:`~cocite.errors.OutputExists` for a directory, a link, or anything else that is no
    plain file; and for a file, unless it is to ``overwrite``.
    """
    try:
        mode = path.lstat().st_mode
    except OSError:
        return path  # that it cannot be made is told when it is
    if stat.S_ISDIR(mode):
        raise OutputExists(f"{path} is a directory. Name a file in it, or choose another output")
    if stat.S_ISLNK(mode):
        raise OutputExists(
            f"{path} is a symbolic link, to {os.readlink(path)}. Name that file itself, or choose "
            "another output"
        )
    if not stat.S_ISREG(mode):
        raise OutputExists(f"{path} is no plain file. Choose another output")
    if not overwrite:
        raise OutputExists(f"{path} exists. Choose another output, or pass --overwrite")
    return path


@contextmanager
def written_beside(path: Path, folder: Path | None = None) -> Iterator[BinaryIO]:
    """A context in which a file is written, unbuffered; ``file.name`` is where it is meanwhile.

    It replaces what has the name ``path`` at the end, of a link the link. ``folder``, on the same
    disk, is where it is until then, by default that of ``path``. Raises :class:`StoreError` if no
    file can be made there.
    """
    private = (folder or path.parent) / _private(path.name)
    try:
        disk.make_folder(path.parent)
        private.parent.mkdir(parents=True, exist_ok=True)
        file = disk.create(private)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be made: {error.strerror}. Choose another output"
        ) from error
    try:
        with file:
            yield file
            disk.sync_file(file)
        disk.rename(private, path)
        disk.sync_directory(path.parent)
    finally:
        private.unlink(missing_ok=True)


def is_private(name: str) -> bool:
    """Whether a name is that of a file which was being written when its process was killed."""
    return name.startswith(".") and name.endswith(_END)


def _private(name: str) -> str:
    """A name that nobody can foresee."""
    short = name.encode(errors="surrogateescape")[:_LONGEST].decode(errors="ignore")
    return f".{short}.{secrets.token_hex(8)}{_END}"
