"""A file written beside its place, which takes its name when its bytes are on the disk.

It is written under a name that nobody can foresee, which must be free (``O_EXCL``, ``O_NOFOLLOW``):
never through a link that somebody has put there, never into a file that has other names as well.
Then its bytes are synced, it is renamed, and the directory is synced; on an error nothing is left
of it. A process that is killed leaves it behind; it is locked as long as it is written, so that
whoever next writes a file of that name knows what is left behind, and removes it
(:func:`check_file`).

    .ranks.csv.9f86d081884c7d65.new         is to be ranks.csv
    .ranks.csv.9f86d081884c7d65.new.rows    what another library writes on the way to it

An output that is a link is refused: what it leads to may be anybody's, and a link that is replaced
in silence is not what whoever made it expects.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from cocite.errors import OutputExists, StoreError
from cocite.store import disk
from cocite.store.locks import is_still, lock, unclaimed

__all__ = [
    "MARK",
    "check_file",
    "folder_beside",
    "is_private",
    "rows_beside",
    "sweep_beside",
    "written_beside",
]

MARK = ".cocite-draft"
"""A file in every directory in which a store grows: another one of that name is somebody else's."""
_END, _ROWS = ".new", ".rows"
_LONGEST = 200
_TRIES = 5


def check_file(path: Path, overwrite: bool) -> Path:
    """The path, if a file may be written there; before any work is done. What a process that was
    killed has left beside it goes.

    Raises :class:`~cocite.errors.OutputExists` for a directory, a link, or anything else that is no
    plain file; and for a file, unless it is to ``overwrite``.
    """
    sweep_beside(path)
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
    place = folder or path.parent
    try:
        disk.make_folder(path.parent)
        disk.make_own_folder(place)
        private, file = _new_file(place, path.name)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be made: {error.strerror}. Choose another output"
        ) from error
    try:
        with file:
            yield file
            disk.sync_file(file)
            disk.rename(private, path)  # locked until then
        disk.sync_directory(path.parent)
    finally:
        disk.remove(private)


def _new_file(place: Path, name: str) -> tuple[Path, BinaryIO]:
    """A file under a private name, locked."""
    for _ in range(_TRIES):
        private = place / _private(name)
        file = disk.create(private)
        if _claimed(private, file.fileno()):
            return private, file
        file.close()
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(place))


def _claimed(private: Path, descriptor: int) -> bool:
    """Whether what was just made is ours: nobody has taken it for left behind."""
    try:
        return lock(descriptor) and is_still(private, descriptor)
    except OSError:  # a disk without locks: nobody sweeps there, either
        return True


@contextmanager
def folder_beside(path: Path) -> Iterator[Path]:
    """A new directory beside ``path``, which may be given another name, and goes at the end if it
    was not; what processes that were killed have left of such goes before. Raises OSError.
    """
    sweep_beside(path)
    disk.make_folder(path.parent)
    for _ in range(_TRIES):
        private = path.parent / _private(path.name)
        disk.make_own_folder(private, new=True)
        descriptor = os.open(private, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        if _claimed(private, descriptor):
            break
        os.close(descriptor)
    else:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path.parent))
    try:
        yield private
    finally:
        try:
            disk.remove_tree(private)
        finally:
            os.close(descriptor)


@contextmanager
def rows_beside(private: Path) -> Iterator[Path]:
    """A directory for what is needed on the way to a file that is written beside its place; it goes
    with that.
    """
    folder = private.with_name(private.name + _ROWS)
    disk.make_own_folder(folder, new=True)
    try:
        yield folder
    finally:
        disk.remove_tree(folder)


def sweep_beside(path: Path) -> None:
    """Remove what processes that were killed were going to give the name ``path``."""
    ours = re.compile(re.escape(_stem(path.name)) + "[0-9a-f]{16}" + re.escape(_END))
    with suppress(OSError):
        for name in sorted(os.listdir(path.parent)):
            left = path.parent / name.removesuffix(_ROWS)
            if not ours.fullmatch(left.name):
                continue
            with unclaimed(left) as free:
                if free or not os.path.lexists(left):
                    disk.remove_tree(left.with_name(left.name + _ROWS))
                    disk.remove(left)


def is_private(name: str) -> bool:
    """Whether a name is that of a file which was being written when its process was killed."""
    return name.startswith(".") and name.removesuffix(_ROWS).endswith(_END)


def _private(name: str) -> str:
    """A name that nobody can foresee."""
    return f"{_stem(name)}{os.urandom(8).hex()}{_END}"


def _stem(name: str) -> str:
    """What all private names of a file begin with."""
    short = name.encode(errors="surrogateescape")[:_LONGEST].decode(errors="ignore")
    return f".{short}."
