"""Atomic file replacement, journals, and locks.

A file is written under an unpredictable name in the same folder, for example
``.ranks.csv.9f86d081884c7d65.new`` (``O_EXCL``, ``O_NOFOLLOW``), then synced and renamed, and the
folder is synced. Temporary files are locked while they are written, so unlocked ones belong to
killed processes; the next process that writes the same output removes them (:func:`check_file`). An
output must not be a symbolic link.

A *journal* is a file of appended records; a second file lists each record's size and checksum.
Reopening a journal recovers the longest prefix with valid checksums, so appending needs no sync.

A lock (``flock``) applies to an open file instead of its name, and ends with the process. After
locking a file, check that its name still refers to the file: another process may have removed the
file as abandoned.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, Self

import xxhash

from cocite.errors import OutputExists, StoreError
from cocite.storage import disk

_CHUNK = 1 << 22


class Journal:
    """A recoverable list of records: ``with Journal(path) as journal: journal.append(piece)``.

    ``sizes`` contains the record sizes. Sizes and checksums are stored in ``path`` + ``.log``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log_path = path.with_name(path.name + ".log")
        self.sizes: list[int] = []

    def __enter__(self) -> Self:
        for path in (self.path, self._log_path):
            try:
                disk.touch(path)
            except OSError as error:  # also for a symbolic link
                raise StoreError(
                    f"{path} cannot be written: {error.strerror}. Remove it"
                ) from error
        lines = list(self._valid())
        self._file = disk.edit(self.path)
        self._log = disk.edit(self._log_path)
        disk.truncate(self._file, sum(self.sizes))
        disk.truncate(self._log, sum(map(len, lines)))
        return self

    def _valid(self) -> Iterator[bytes]:
        """Yield the log lines of the valid leading records; append their sizes to ``sizes``."""
        with self.path.open("rb") as file, self._log_path.open("rb") as log:
            for line in log:
                words = line[:-1].split(b" ")
                if not line.endswith(b"\n") or len(words) != 2 or not words[0].isdigit():
                    return
                if _digest(file, int(words[0])) != words[1].decode("ascii", "replace"):
                    return
                self.sizes.append(int(words[0]))
                yield line

    def append(self, piece: bytes | memoryview) -> None:
        """Append a record; raises :class:`~cocite.errors.ResourceError` if the disk is full."""
        disk.write(self._file, piece)
        line = f"{len(piece)} {xxhash.xxh3_128_hexdigest(piece)}\n"
        disk.write(self._log, line.encode())
        self.sizes.append(len(piece))

    @property
    def begins(self) -> list[int]:
        """Return each record's start offset."""
        return list(accumulate(self.sizes, initial=0))[:-1]

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._file.close()
        self._log.close()


def _digest(file: BinaryIO, size: int) -> str:
    """Return the checksum of the next ``size`` bytes, or "" if the file is shorter."""
    if size > os.fstat(file.fileno()).st_size - file.tell():
        return ""
    state = xxhash.xxh3_128()
    while size:
        chunk = file.read(min(size, _CHUNK))
        state.update(chunk)
        size -= len(chunk)
    return state.hexdigest()


def lock(descriptor: int, *, shared: bool = False, wait: bool = False) -> bool:
    """Lock an open file or directory, exclusively or ``shared``. If another process holds a
    conflicting lock, return False, or block if ``wait`` is true.
    """
    import fcntl  # Windows lacks it; stores are only read there

    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return False
    return True


def unlock(descriptor: int) -> None:
    """Release an open file's lock."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_UN)


def is_still(path: Path, descriptor: int) -> bool:
    """Return whether ``path`` still refers to the open file or directory."""
    try:
        named, opened = path.stat(), os.fstat(descriptor)
    except OSError:
        return False
    return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)


@contextmanager
def unclaimed(path: Path) -> Iterator[bool]:
    """Lock a file or directory within the context. Yields False if another process holds the lock,
    another user owns the file, or the path is a link or pipe.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        ours = os.fstat(descriptor).st_uid == os.geteuid()
        yield ours and lock(descriptor) and is_still(path, descriptor)
    finally:
        os.close(descriptor)


MARK = ".cocite-draft"
"""Marker file in a staging directory. Existing directories without a marker are never modified."""
_END, _ROWS = ".new", ".rows"
_PRIVATE = re.compile(r"(\..*\.)[0-9a-f]{16}" + re.escape(_END), re.S)
_LONGEST = 200
_TRIES = 5


def ending_of(path: Path) -> str:
    """Return the start of a message on a wrong extension, such as ``x.odd ends in '.odd'``."""
    return f"{path} ends in {path.suffix!r}" if path.suffix else f"{path} has no extension"


def check_folder(path: Path) -> None:
    """Raise :class:`~cocite.errors.OutputExists` if ``path`` exists but is not a real folder."""
    if path.is_symlink():
        kind = "folder" if path.is_dir() else "path"
        raise OutputExists(
            f"{path} is a symbolic link to {os.readlink(path)}. Choose that {kind}, or another "
            "output"
        )
    if path.exists() and not path.is_dir():
        raise OutputExists(f"{path} is not a folder. Choose another output")


def check_file(path: Path, overwrite: bool) -> Path:
    """Return ``path`` if a file may be written there; call this before any work.

    Removes temporary files of killed processes. Raises :class:`~cocite.errors.OutputExists` if the
    path exists, unless it is a regular file and ``overwrite`` is true.
    """
    sweep_staged(path)
    try:
        mode = path.lstat().st_mode
    except OSError:
        return path  # creating it reports the error
    if stat.S_ISDIR(mode):
        raise OutputExists(f"{path} is a directory. Choose a file in it, or another output")
    if stat.S_ISLNK(mode):
        raise OutputExists(
            f"{path} is a symbolic link to {os.readlink(path)}. Choose that file, or another output"
        )
    if not stat.S_ISREG(mode):
        raise OutputExists(f"{path} is not a regular file. Choose another output")
    if not overwrite:
        raise OutputExists(
            f"{path} exists. Choose another output, or pass --overwrite (overwrite=True)"
        )
    return path


@contextmanager
def staged_file(path: Path, folder: Path | None = None) -> Iterator[BinaryIO]:
    """Open an unbuffered temporary file (``file.name``) that replaces ``path``, or a link at
    ``path``, on exit. The temporary file is in ``folder``, on the same disk; by default in the
    folder of ``path``. Raises :class:`StoreError` if the file cannot be created.
    """
    place = folder or path.parent
    try:
        disk.make_folder(path.parent)
        disk.make_own_folder(place)
        private, file = _new_file(place, path.name)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be created: {error.strerror}. Choose another output"
        ) from error
    try:
        with file:
            yield file
            disk.sync_file(file)
            disk.rename(private, path)  # while still locked
        disk.sync_directory(path.parent)
    finally:
        disk.remove(private)


def _new_file(place: Path, name: str) -> tuple[Path, BinaryIO]:
    """Create and lock a file with an unpredictable name."""
    for _ in range(_TRIES):
        private = place / _private(name)
        file = disk.create(private)
        if _claimed(private, file.fileno()):
            return private, file
        file.close()
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(place))


def _claimed(private: Path, descriptor: int) -> bool:
    """Lock a new file; return False if another process has removed the file as abandoned."""
    try:
        return lock(descriptor) and is_still(private, descriptor)
    except OSError:  # without locks, no process removes files
        return True


@contextmanager
def staged_folder(path: Path) -> Iterator[Path]:
    """Create a temporary directory beside ``path``; remove it on exit unless it was renamed. Also
    removes directories of killed processes. Raises OSError.
    """
    sweep_staged(path)
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
def staged_rows(private: Path) -> Iterator[Path]:
    """Create a directory for intermediate files beside a staged file; remove it on exit.
    :func:`sweep_staged` removes both after a kill.
    """
    folder = private.with_name(private.name + _ROWS)
    disk.make_own_folder(folder, new=True)
    try:
        yield folder
    finally:
        disk.remove_tree(folder)


def sweep_staged(path: Path, *names: str) -> None:
    """Remove killed processes' temporary files for ``path`` and other ``names`` in its folder."""
    stems = {_stem(name) for name in (path.name, *names)}
    with suppress(OSError):
        for name in sorted(os.listdir(path.parent)):
            left = path.parent / name.removesuffix(_ROWS)
            ours = _PRIVATE.fullmatch(left.name)
            if not ours or ours[1] not in stems:
                continue
            with unclaimed(left) as free:
                if free or not os.path.lexists(left):
                    disk.remove_tree(left.with_name(left.name + _ROWS))
                    disk.remove(left)


def is_private(name: str) -> bool:
    """Return whether ``name`` is the name of a temporary file or directory."""
    return name.startswith(".") and name.removesuffix(_ROWS).endswith(_END)


def _private(name: str) -> str:
    """Return an unpredictable temporary name."""
    return f"{_stem(name)}{os.urandom(8).hex()}{_END}"


def _stem(name: str) -> str:
    """Return the prefix of all temporary names of a file."""
    short = name.encode(errors="surrogateescape")[:_LONGEST].decode(errors="ignore")
    return f".{short}."
