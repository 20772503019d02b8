"""Whose a file or a directory is that grows: that of the process that has it locked.

A lock (``flock``) is on what is open and not on its name, goes with its process, however that ends,
and stays when what is locked is renamed. So what is not locked any more nobody is at work on. Who
has made something and locked it looks once more whether it still has its name (:func:`is_still`):
somebody who took it for left behind may have been faster.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["is_still", "lock", "unclaimed"]


def lock(descriptor: int) -> bool:
    """Lock an open file or directory; False if another process has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return False
    return True


def is_still(path: Path, descriptor: int) -> bool:
    """Whether the open file or directory still has the name ``path``."""
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
