"""The calls that change a disk; every write of cocite's stores goes through here.

So a test can fail, cut or kill at each of them (``tests/torture/shim.py``); no other file makes
such calls (``tests/storage/test_disk.py`` reads all sources). Bytes are synced (``sync_file``)
before a name points at them (``rename``), and names (``sync_directory``) before success is
reported. Exceptions are nameless files (``storage/spool.py``), and what other libraries write into
our directories.
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
    """Create the folder of an output, with its parents; log it if it was missing, as its name may
    be a typo.
    """
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        _log.info(f"the folder {folder} was not there, and is made")


def create(path: Path) -> BinaryIO:
    """Create an empty, unbuffered file; raises FileExistsError if the name is taken."""
    return open(path, "xb+", buffering=0, opener=_opened)


def create_anew(path: Path) -> BinaryIO:
    """Create a file in one of our directories, replacing any file of that name.

    So nothing is written through a link, or to a file with other names.
    """
    path.unlink(missing_ok=True)
    return create(path)


def rewrite(path: Path) -> BinaryIO:
    """Open a file, emptied or new, unbuffered; does not follow a link."""
    return open(path, "wb", buffering=0, opener=_opened)


def edit(path: Path) -> BinaryIO:
    """Open an existing file for reading and writing, unbuffered; does not follow a link."""
    return open(path, "rb+", buffering=0, opener=_opened)


def append(path: Path) -> BinaryIO:
    """Open an existing or new file for appending, unbuffered."""
    return open(path, "ab", buffering=0, opener=_opened)


def make_own_folder(path: Path, *, new: bool = False, mode: int = 0o777) -> None:
    """Create a directory for our files, and its parents; with ``new`` raise FileExistsError if it
    exists.
    """
    path.mkdir(mode, parents=True, exist_ok=not new)


def link(source: Path, target: Path) -> None:
    """Give the file ``source`` another name, which must be free; raises OSError if the system has
    no hard links.
    """
    os.link(source, target)


def symlink(text: str, path: Path) -> None:
    """Create a symbolic link, in one of our folders; its name must be free."""
    path.symlink_to(text)


def truncate(file: BinaryIO, size: int) -> None:
    """Truncate a file to ``size`` bytes, and continue there."""
    file.truncate(size)
    file.seek(size)


def touch(path: Path) -> None:
    """Ensure that a file exists; does not follow a link."""
    os.close(_opened(os.fspath(path), os.O_WRONLY | os.O_CREAT))


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def write(file: BinaryIO, data: bytes | memoryview) -> None:
    """Write all of ``data``; on a full disk raise :class:`ResourceError` with the free space."""
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]  # an unbuffered file may accept only a part
    except OSError as error:
        raise _explained(error, Path(file.name), len(data)) from error


def sync_file(file: BinaryIO) -> None:
    """Flush the file's bytes to disk."""
    try:
        file.flush()
        os.fsync(file.fileno())
    except OSError as error:
        raise _explained(error, Path(file.name), 0) from error


def sync_directory(path: Path) -> None:
    """Flush a directory's entries to disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise _explained(error, path, 0) from error
    finally:
        os.close(descriptor)


def sync_all() -> None:
    """Flush everything written by any process to disk."""
    os.sync()


def rename(source: Path, target: Path) -> None:
    """Rename ``source`` to ``target``, atomically replacing a file with that name."""
    os.replace(source, target)


def rename_new(source: Path, target: Path) -> None:
    """Rename ``source`` to ``target``; raises FileExistsError if that exists."""
    if not _renameat2(source, target, _RENAME_NOREPLACE):
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        os.rename(source, target)


def exchange(first: Path, second: Path) -> None:
    """Swap two names atomically, so that neither is ever missing.

    Without system support, the swap takes three renames; a process killed between them leaves the
    old ``second`` under its name in a new directory beside it.
    """
    if not _renameat2(first, second, _RENAME_EXCHANGE):
        folder = Path(tempfile.mkdtemp(prefix=f".{second.name}.", dir=second.parent))
        aside = folder / second.name
        rename(second, aside)
        rename(first, second)
        rename(aside, first)
        folder.rmdir()


def _renameat2(first: Path, second: Path, flags: int) -> bool:
    """Call Linux's renameat2; return False if the system or file system lacks it."""
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
    """Remove a directory and its content, if it exists; if it is a link, only the link.

    The files ``last`` are removed after all others, one by one and synced, as they identify the
    directory.
    """
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        if last:
            for entry in path.iterdir():
                if entry.name not in last:
                    remove(entry)
            for name in last:
                with suppress(OSError, ResourceError):  # a full disk does not prevent removal
                    sync_directory(path)
                remove(path / name)
        shutil.rmtree(path)


def remove_empty(path: Path) -> None:
    """Remove an empty directory; raises OSError if it is not empty."""
    path.rmdir()


def remove(path: Path) -> None:
    """Remove a file, a link, or a directory with its content, if it exists."""
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
