"""The few calls that change a disk; every write of cocite's stores goes through here.

So a test can fail, cut or kill at any one of them (``tests/torture/shim.py``); no other file makes
such calls (``tests/storage/test_disk.py`` reads all sources). Bytes are on the disk (``sync_file``)
before a name points at them (``rename``), and the name is on the disk (``sync_directory``) before
anything is reported as done. Files without a name (``storage/spool.py``) need none of this, nor
does what other libraries write into a directory of ours.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from cocite.errors import ResourceError
from cocite.resources import format_size

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


def rewrite(path: Path) -> BinaryIO:
    """A file of that name, emptied or new, unbuffered; not through a link."""
    return open(path, "wb", buffering=0, opener=_opened)


def edit(path: Path) -> BinaryIO:
    """The file of that name, unbuffered, to be read and written; not through a link."""
    return open(path, "rb+", buffering=0, opener=_opened)


def append(path: Path) -> BinaryIO:
    """The file of that name, or a new one, unbuffered, to be written at its end."""
    return open(path, "ab", buffering=0, opener=_opened)


def make_own_folder(path: Path, *, new: bool = False, mode: int = 0o777) -> None:
    """See that there is a directory for files of ours, and those that it is in; if it is to be
    ``new`` it must not be there: else FileExistsError.
    """
    path.mkdir(mode, parents=True, exist_ok=not new)


def link(source: Path, target: Path) -> None:
    """Give the file ``source`` one more name, which must be free; raises OSError where the system
    has no such names.
    """
    os.link(source, target)


def symlink(text: str, path: Path) -> None:
    """Make a link of the file system, in a folder of ours; its name must be free."""
    path.symlink_to(text)


def truncate(file: BinaryIO, size: int) -> None:
    """Cut a file off behind ``size`` bytes, and go on there."""
    file.truncate(size)
    file.seek(size)


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
    except OSError as error:
        raise _explained(error, path, 0) from error
    finally:
        os.close(descriptor)


def sync_all() -> None:
    """Push all that anybody has written to the disk."""
    os.sync()


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


def remove_tree(path: Path, *last: str) -> None:
    """Remove a directory and all in it, if it is there; of a link only the link.

    The files ``last`` in it go when all others are gone, on the disk too, one after another: as
    long as anything is left it is known by them.
    """
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        if last:
            for entry in path.iterdir():
                if entry.name not in last:
                    remove(entry)
            for name in last:
                with suppress(OSError, ResourceError):  # a full disk keeps nothing from going
                    sync_directory(path)
                remove(path / name)
        shutil.rmtree(path)


def remove_empty(path: Path) -> None:
    """Remove a directory in which nothing is; raises OSError if something is."""
    path.rmdir()


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
