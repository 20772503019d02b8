"""Copies of stores that lie elsewhere, on this machine: once, whole, and not without bound.

    PLACE/copies/DIGEST/NAME    the copy, a store; DIGEST is of its URL and its manifest
    PLACE/copies/DIGEST.making  locked by who makes it
    PLACE/copies/DIGEST.lock    locked by who reads it, all together, or who removes it, alone

The place is that of compiled kernels (``compiled/place.py``), which nobody else can write to;
``COCITE_COPIES`` names another, where that disk is too small. The manifest is read first: it says
what files there are, how large, and with which checksums; so what is copied is bounded before it
is, and compared after it. Names in a manifest lead nowhere else (``store/arrays.py``). A copy has
its name when it is whole. Processes that want the same one wait for the first of them.

All copies together take half of what is free or theirs on that disk at most; those that nobody
reads go, that which was used longest ago first.

Cost: what is copied is written once and read once more for its checksums.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import xxhash

from cocite.compiled.place import VARIABLE, fault_of, place
from cocite.copies.urls import Remote
from cocite.errors import Damaged, NotAStore, ResourceError, StoreError
from cocite.memory import format_size
from cocite.store import disk
from cocite.store.arrays import checksum
from cocite.store.manifest import MANIFEST, Manifest

__all__ = ["COPIES", "copied", "copies_folder"]

COPIES = "COCITE_COPIES"
_MANIFEST_BYTES = 1 << 24
_READ: dict[Path, int] = {}
"""The locks of copies that this process reads, shared, until it ends."""


def copies_folder() -> Path:
    """Where copies lie; raises :class:`StoreError` if there is no safe place."""
    chosen = os.environ.get(COPIES)
    if chosen:
        found = Path(chosen).expanduser().absolute()
        if fault := fault_of(found):
            raise StoreError(f"{COPIES} is not used: {fault}. Name another directory")
    else:
        written = place().written
        if written is None:
            raise StoreError(f"there is no private directory for copies; {VARIABLE} names one")
        found = written / "copies"
    found.mkdir(0o700, parents=True, exist_ok=True)
    return found


def copied(url: str, kind: str, digest: str | None = None) -> Path:
    """The path of a local copy of the store of that ``kind`` at ``url``, made if there is none.

    With ``digest`` (:meth:`Manifest.digest`) it must be that very one. Raises
    :class:`~cocite.errors.NotAStore`, :class:`Damaged`, :class:`ResourceError` and
    :class:`StoreError`.
    """
    remote, folder = Remote(url), copies_folder()
    stated = remote.read(MANIFEST, _MANIFEST_BYTES)
    if stated is None:
        raise NotAStore(f"{url} has no {MANIFEST}: it is no stored {kind}")
    key = xxhash.xxh3_128_hexdigest(remote.url.encode() + b"\0" + stated)
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", remote.url.rsplit("/", 1)[1]).lstrip(".") or kind
    whole = folder / key / name
    if whole not in _READ:
        lock = os.open(folder / f"{key}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            if not whole.exists():
                with _alone(folder / f"{key}.making"):
                    if not whole.exists():
                        _copy(remote, kind, stated, folder, whole)
            os.utime(lock)
        except BaseException:
            os.close(lock)
            raise
        _READ[whole] = lock
    found = Manifest.read(whole, kind).digest()
    if digest not in (None, found):
        raise Damaged(f"{url} is another {kind} than was meant: its checksums differ")
    return whole


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time; it ends with the process."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _copy(remote: Remote, kind: str, stated: bytes, folder: Path, whole: Path) -> None:
    """Make the copy in a folder of its own, see that it is what it should be, name it."""
    beside = folder / f"{whole.parent.name}.new"
    shutil.rmtree(beside, ignore_errors=True)  # of a process that was killed
    beside.mkdir(0o700)
    try:
        with disk.create(beside / MANIFEST) as file:
            disk.write(file, stated)
        manifest = Manifest.read(beside, kind)
        size = len(stated) + sum(entry.nbytes for entry in manifest.files.values())
        _make_room(folder, size, remote.url)
        for name, entry in manifest.files.items():
            with disk.create(beside / name) as file:
                remote.fetch(name, entry.nbytes, file)
            if checksum(beside / name, entry) != entry.xxh3_128:
                raise Damaged(
                    f"{remote.url}/{name} does not match its checksum: copy the {kind} there again "
                    "from where it was whole"
                )
        whole.parent.mkdir(0o700, exist_ok=True)
        os.rename(beside, whole)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _make_room(folder: Path, size: int, url: str) -> None:
    """Remove copies that nobody reads until one of this size fits within the bound."""
    held = {path: _size(path) for path in folder.iterdir() if path.suffix == ""}
    bound = (shutil.disk_usage(folder).free + sum(held.values())) // 2
    if size > bound:
        raise ResourceError(
            f"{url} takes {format_size(size)}; copies take {format_size(bound)} at most in "
            f"{folder}, half of what is free. {COPIES} names a directory on another disk"
        )
    by_use = sorted(held, key=_used)
    for path in by_use:
        if sum(held.values()) + size <= bound:
            return
        with _unread(folder / f"{path.name}.lock") as free:
            if free:
                shutil.rmtree(path, ignore_errors=True)
                del held[path]
    if sum(held.values()) + size > bound:
        raise ResourceError(
            f"{url} takes {format_size(size)}, and copies that are being read take so much of "
            f"{folder} that it does not fit {format_size(bound)}. {COPIES} names another directory"
        )


@contextmanager
def _unread(path: Path) -> Iterator[bool]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def _used(path: Path) -> float:
    with suppress(OSError):
        return path.with_name(f"{path.name}.lock").stat().st_mtime
    return 0.0


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
