"""The few calls that change a disk; every write of cocite's stores goes through here.

They are gathered in one place so that a test can stand between them and the system and
fail, cut or kill at any one of them. The order they guarantee: bytes are on the disk
(``sync_file``) before a name points at them (``rename``), and the name itself is on the disk
(``sync_directory``) before anything is reported as done.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import BinaryIO

from cocite.errors import ResourceError
from cocite.memory import format_size

__all__ = [
    "create",
    "create_anew",
    "exchange",
    "make_folder",
    "remove",
    "remove_tree",
    "rename",
    "rename_new",
    "sync_directory",
    "sync_file",
    "touch",
    "write",
]

_AT_FDCWD = -100
_log = logging.getLogger("cocite")
_RENAME_NOREPLACE, _RENAME_EXCHANGE = 1, 2


def make_folder(folder: Path) -> None:
    """The folder of an output, with those above it; one that was not there is told, as its name may
    be a slip.
    """
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        _log.info(f"the folder {folder} was not there, and is made")


def create(path: Path) -> BinaryIO:
    """A new, empty file of that name, unbuffered; raises FileExistsError if the name is taken."""
    return open(path, "xb+", buffering=0, opener=_opened)


def create_anew(path: Path) -> BinaryIO:
    """A new file of that name: what had it, in a directory of our own, loses it.

    So nothing is written through a link, nor into a file that has other names as well.
    """
    path.unlink(missing_ok=True)
    return create(path)


def touch(path: Path) -> None:
    """See that there is a file of that name; not through a link."""
    os.close(_opened(os.fspath(path), os.O_WRONLY | os.O_CREAT))


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def write(file: BinaryIO, data: bytes | memoryview) -> None:
    """Write all of ``data``; a full disk is a :class:`ResourceError` that says how full."""
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]  # an unbuffered file may take a part only
    except OSError as error:
        raise _explained(error, Path(file.name), len(data)) from error


def sync_file(file: BinaryIO) -> None:
    """Push the file's bytes to the disk."""
    try:
        file.flush()
        os.fsync(file.fileno())
    except OSError as error:
        raise _explained(error, Path(file.name), 0) from error


def sync_directory(path: Path) -> None:
    """Push a directory's list of names to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename(source: Path, target: Path) -> None:
    """Give ``source`` the name ``target``, replacing a file of that name at once."""
    os.replace(source, target)


def rename_new(source: Path, target: Path) -> None:
    """Give ``source`` the name ``target``, which must be free: else FileExistsError."""
    if not _renameat2(source, target, _RENAME_NOREPLACE):
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        os.rename(source, target)


def exchange(first: Path, second: Path) -> None:
    """Swap two names at once, so that neither is ever missing.

    Where the system has no such call the swap is three renames, and a process killed between
    them leaves what was ``second`` under its name in a new directory beside it.
    """
    if not _renameat2(first, second, _RENAME_EXCHANGE):
        folder = Path(tempfile.mkdtemp(prefix=f".{second.name}.", dir=second.parent))
        aside = folder / second.name
        rename(second, aside)
        rename(first, second)
        rename(aside, first)
        folder.rmdir()


def _renameat2(first: Path, second: Path, flags: int) -> bool:
    """Linux's call; False where the system or its file system does not have it."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), flags) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(first), None, str(second))


def remove_tree(path: Path) -> None:
    """Remove a directory and all in it, if it is there; of a link only the link."""
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def remove(path: Path) -> None:
    """Remove what has that name, if anything has: a file, a link, a directory and all in it."""
    if path.is_dir():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)


def _explained(error: OSError, path: Path, wanted: int) -> Exception:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return error
    free = shutil.disk_usage(path.parent).free
    return ResourceError(
        f"could not write {format_size(wanted)} more to {path}: {os.strerror(error.errno)} "
        f"({format_size(free)} free there). Free some room or choose another output, and run "
        "the same command again"
    )
