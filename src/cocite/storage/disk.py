"""All calls that modify the disk.

Tests can make any of these calls fail, or kill the process there (``tests/torture/shim.py``).
``tests/storage/test_disk.py`` checks that no other module makes such calls, except for unnamed
files (``storage/spool.py``) and files that other libraries write.

Bytes are synced (``sync_file``) before a file is renamed (``rename``), and names are synced
(``sync_directory``) before success is reported.
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
    """Create an output's folder and its parents. Logs the creation, in case of a mistyped name."""
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        _log.info(f"created the folder {folder}")


def create(path: Path) -> BinaryIO:
    """Create an empty unbuffered file; raises FileExistsError if the name exists."""
    return open(path, "xb+", buffering=0, opener=_opened)


def create_anew(path: Path) -> BinaryIO:
    """Create an unbuffered file in a staging directory. Removes an existing name first, so that
    nothing is written through links.
    """
    path.unlink(missing_ok=True)
    return create(path)


def rewrite(path: Path) -> BinaryIO:
    """Open an unbuffered empty file, truncating an existing file. Does not follow links."""
    return open(path, "wb", buffering=0, opener=_opened)


def edit(path: Path) -> BinaryIO:
    """Open an existing file unbuffered for reading and writing. Does not follow links."""
    return open(path, "rb+", buffering=0, opener=_opened)


def append(path: Path) -> BinaryIO:
    """Open or create a file unbuffered for appending. Does not follow links."""
    return open(path, "ab", buffering=0, opener=_opened)


def make_own_folder(path: Path, *, new: bool = False, mode: int = 0o777) -> None:
    """Create a directory and its parents; with ``new``, raises FileExistsError if it exists."""
    path.mkdir(mode, parents=True, exist_ok=not new)


def link(source: Path, target: Path) -> None:
    """Create a hard link ``target`` to ``source``; raises OSError if ``target`` exists or the file
    system does not support hard links.
    """
    os.link(source, target)


def symlink(text: str, path: Path) -> None:
    """Create a symbolic link to ``text``; raises FileExistsError if ``path`` exists."""
    path.symlink_to(text)


def truncate(file: BinaryIO, size: int) -> None:
    """Truncate a file to ``size`` bytes, and seek to the end."""
    file.truncate(size)
    file.seek(size)


def touch(path: Path) -> None:
    """Create an empty file if it does not exist. Does not follow links."""
    os.close(_opened(os.fspath(path), os.O_WRONLY | os.O_CREAT))


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def write(file: BinaryIO, data: bytes | memoryview) -> None:
    """Write all of ``data``; raises :class:`ResourceError` if the disk is full."""
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]  # unbuffered writes may be partial
    except OSError as error:
        raise _explained(error, Path(file.name), len(data)) from error


def sync_file(file: BinaryIO) -> None:
    """Flush a file to disk."""
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
    """Flush all processes' writes to disk."""
    os.sync()


def rename(source: Path, target: Path) -> None:
    """Rename ``source`` to ``target``, atomically replacing an existing file."""
    os.replace(source, target)


def rename_new(source: Path, target: Path) -> None:
    """Rename ``source`` to ``target``; raises FileExistsError if ``target`` exists."""
    if not _renameat2(source, target, _RENAME_NOREPLACE):
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        os.rename(source, target)


def exchange(first: Path, second: Path) -> None:
    """Swap two names atomically, so that both always exist.

    Without system support, this takes three renames. A process killed between them leaves the old
    ``second`` in a new directory in the same folder.
    """
    if not _renameat2(first, second, _RENAME_EXCHANGE):
        folder = Path(tempfile.mkdtemp(prefix=f".{second.name}.", dir=second.parent))
        aside = folder / second.name
        rename(second, aside)
        rename(first, second)
        rename(aside, first)
        folder.rmdir()


def _renameat2(first: Path, second: Path, flags: int) -> bool:
    """Call Linux's ``renameat2``; return False if unsupported."""
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
    """Remove a directory and its contents, if it exists; if it is a link, remove only the link.

    The files ``last``, which identify the directory, are removed after all others, in order, with a
    sync before each.
    """
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        if last:
            for entry in path.iterdir():
                if entry.name not in last:
                    remove(entry)
            for name in last:
                with suppress(OSError, ResourceError):  # removal works on a full disk
                    sync_directory(path)
                remove(path / name)
        shutil.rmtree(path)


def remove_empty(path: Path) -> None:
    """Remove an empty directory; raises OSError if it is not empty."""
    path.rmdir()


def remove(path: Path) -> None:
    """Remove a file, a link, or a directory with its contents, if it exists."""
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
        f"({format_size(free)} free there). Free some space or choose another output, and run "
        "the same command again"
    )
