"""Files that are whole or not there, journals, and locks.

A file is written beside its place under a name that nobody can foresee (``O_EXCL``,
``O_NOFOLLOW``), such as ``.ranks.csv.9f86d081884c7d65.new``, synced, renamed, and the directory is
synced. It is locked meanwhile: who next writes a file of that name removes what killed processes
left, which is not locked (:func:`check_file`). An output that is a link is refused.

A *journal* grows by pieces, with a line for each, its size and checksum, in another file. Opened
again, it holds the longest beginning whose checksums are right; nothing needs to be synced.

A lock (``flock``) is on what is open and not on its name, and goes with its process. Who has locked
something looks whether it still has its name: another may have taken it for left behind.
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
    """``with Journal(path) as journal: journal.append(piece)``; ``journal.sizes`` are those there.

    The lines are in the file that is called so with ``.log`` behind it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log_path = path.with_name(path.name + ".log")
        self.sizes: list[int] = []

    def __enter__(self) -> Self:
        for path in (self.path, self._log_path):
            try:
                disk.touch(path)
            except OSError as error:  # a link is one
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
        """The lines of the pieces that are whole, from the first one on; their ``sizes``."""
        with self.path.open("rb") as file, self._log_path.open("rb") as log:
            for line in log:
                words = line.split()
                if not line.endswith(b"\n") or len(words) != 2 or not words[0].isdigit():
                    return
                if _digest(file, int(words[0])) != words[1].decode("ascii", "replace"):
                    return
                self.sizes.append(int(words[0]))
                yield line

    def append(self, piece: bytes | memoryview) -> None:
        """Add one piece; raises :class:`~cocite.errors.ResourceError` if the disk is full."""
        disk.write(self._file, piece)
        line = f"{len(piece)} {xxhash.xxh3_128_hexdigest(piece)}\n"
        disk.write(self._log, line.encode())
        self.sizes.append(len(piece))

    @property
    def begins(self) -> list[int]:
        """The byte at which each piece begins."""
        return list(accumulate(self.sizes, initial=0))[:-1]

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._file.close()
        self._log.close()


def _digest(file: BinaryIO, size: int) -> str:
    """The checksum of the next ``size`` bytes, "" if there are fewer."""
    if size > os.fstat(file.fileno()).st_size - file.tell():
        return ""
    state = xxhash.xxh3_128()
    while size:
        chunk = file.read(min(size, _CHUNK))
        state.update(chunk)
        size -= len(chunk)
    return state.hexdigest()


def lock(descriptor: int, *, shared: bool = False, wait: bool = False) -> bool:
    """Lock an open file or directory, alone or ``shared``; False if another process has it, and it
    is not to ``wait`` for that.
    """
    import fcntl  # which Windows has not, where stores are read and not written

    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return False
    return True


def unlock(descriptor: int) -> None:
    """Let go of the lock of an open file."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_UN)


def is_still(path: Path, descriptor: int) -> bool:
    """Return whether the open file or directory still has the name ``path``."""
    try:
        named, opened = path.stat(), os.fstat(descriptor)
    except OSError:
        return False
    return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)


@contextmanager
def unclaimed(path: Path) -> Iterator[bool]:
    """A context in which what is there is ours, locked; False if it is another process's, or is no
    file or directory of this user: a link, a pipe.
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
"""A file in every directory in which a store grows: another one of that name is somebody else's."""
_END, _ROWS = ".new", ".rows"
_PRIVATE = re.compile(r"(\..*\.)[0-9a-f]{16}" + re.escape(_END), re.S)
_LONGEST = 200
_TRIES = 5


def check_file(path: Path, overwrite: bool) -> Path:
    """The path, if a file may be written there; before any work is done. What a process that was
    killed has left beside it goes.

    Raises :class:`~cocite.errors.OutputExists` for a directory, a link, or anything else that is no
    plain file; and for a file, unless it is to ``overwrite``.
    """
    sweep_staged(path)
    try:
        mode = path.lstat().st_mode
    except OSError:
        return path  # that it cannot be made is told when it is
    if stat.S_ISDIR(mode):
        raise OutputExists(f"{path} is a directory. Name a file in it, or choose another output")
    if stat.S_ISLNK(mode):
        raise OutputExists(
            f"{path} is a symbolic link to {os.readlink(path)}. Name that file, or choose another "
            "output"
        )
    if not stat.S_ISREG(mode):
        raise OutputExists(f"{path} is not a plain file. Choose another output")
    if not overwrite:
        raise OutputExists(f"{path} exists. Choose another output, or pass --overwrite")
    return path


@contextmanager
def staged_file(path: Path, folder: Path | None = None) -> Iterator[BinaryIO]:
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
    """Return whether what was just made is ours: nobody has taken it for left behind."""
    try:
        return lock(descriptor) and is_still(private, descriptor)
    except OSError:  # a disk without locks: nobody sweeps there, either
        return True


@contextmanager
def staged_folder(path: Path) -> Iterator[Path]:
    """A new directory beside ``path``, which may be given another name, and goes at the end if it
    was not; what processes that were killed have left of such goes before. Raises OSError.
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
    """A directory for what is needed on the way to a file that is written beside its place; it goes
    with that.
    """
    folder = private.with_name(private.name + _ROWS)
    disk.make_own_folder(folder, new=True)
    try:
        yield folder
    finally:
        disk.remove_tree(folder)


def sweep_staged(path: Path, *names: str) -> None:
    """Remove what processes that were killed were going to give the name ``path``, and other
    ``names`` beside it.
    """
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
    """Whether a name is that of a file which was being written when its process was killed."""
    return name.startswith(".") and name.removesuffix(_ROWS).endswith(_END)


def _private(name: str) -> str:
    """A name that nobody can foresee."""
    return f"{_stem(name)}{os.urandom(8).hex()}{_END}"


def _stem(name: str) -> str:
    """What all private names of a file begin with."""
    short = name.encode(errors="surrogateescape")[:_LONGEST].decode(errors="ignore")
    return f".{short}."
