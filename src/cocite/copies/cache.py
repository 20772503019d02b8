"""Copies of stores that lie elsewhere, on this machine: once, whole, and not without bound.

    PLACE/copies/DIGEST/NAME    the copy, a store; DIGEST is of its URL and its manifest
    PLACE/copies/DIGEST.making  locked by who makes it
    PLACE/copies/DIGEST.lock    locked by who reads it, all together, or who removes it, alone; in
                                it the URL, without a password
    PLACE/copies/DIGEST.out/    an output that is to be sent (``sending.py``); DIGEST is of its URL

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
from dataclasses import dataclass
from pathlib import Path

import xxhash

from cocite.compiled.place import VARIABLE, fault_of, place
from cocite.copies.urls import Remote, bare
from cocite.errors import Damaged, NotAStore, ResourceError, StoreError
from cocite.memory import format_size
from cocite.store import disk
from cocite.store.arrays import checksum
from cocite.store.manifest import MANIFEST, Manifest, kind_of

__all__ = [
    "COPIES",
    "Copy",
    "adopted",
    "copied",
    "copies_folder",
    "copies_kept",
    "name_of",
    "origin",
    "remove_copies",
]

COPIES = "COCITE_COPIES"
_MANIFEST_BYTES = 1 << 24
_READ: dict[Path, int] = {}
"""The locks of copies that this process reads, shared, until it ends."""
_ORIGINS: dict[Path, str] = {}
"""Where copies that this process reads come from."""


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


@dataclass(frozen=True)
class Copy:
    """A copy that is kept: of what ``url`` (without a password; empty if it is not known), its
    ``bytes``, when it was last used (seconds since 1970), and whether somebody reads it now.
    """

    name: str
    url: str
    bytes: int
    used: float
    read: bool


def copies_kept() -> list[Copy]:
    """The copies that are there, the one used last first. Raises as :func:`copies_folder`."""
    found = []
    for path in _held(copies_folder()):
        with unread(_lock_of(path)) as free:
            found.append(_copy_at(path, not free))
    return sorted(found, key=lambda copy: (-copy.used, copy.url))


def remove_copies() -> list[Copy]:
    """Remove the copies that nobody reads; returns them."""
    gone = []
    for path in _held(copies_folder()):
        with unread(_lock_of(path)) as free:
            if free:
                gone.append(_copy_at(path, False))
                shutil.rmtree(path, ignore_errors=True)
    return gone


def _copy_at(path: Path, read: bool) -> Copy:
    lock, used = _lock_of(path), _used(path)
    name = next((each.name for each in path.iterdir()), "")
    url = lock.read_text("utf-8", "replace")
    return Copy(name, url, _size(path), used, read)


def _lock_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _held(folder: Path) -> list[Path]:
    """The folders of copies that are whole."""
    return [path for path in folder.iterdir() if path.suffix == "" and path.is_dir()]


def origin(path: str | os.PathLike[str]) -> str | None:
    """The URL that a path is a copy of, if this process has asked for it."""
    return _ORIGINS.get(Path(path))


def copied(url: str, kind: str | None = None, digest: str | None = None) -> Path:
    """The path of a local copy of the store of that ``kind``, by default any, at ``url``, made if
    there is none.

    With ``digest`` (:meth:`Manifest.digest`) it must be that very one. Raises
    :class:`~cocite.errors.NotAStore`, :class:`Damaged`, :class:`ResourceError` and
    :class:`StoreError`.
    """
    remote, folder = Remote(url), copies_folder()
    stated = remote.read(MANIFEST, _MANIFEST_BYTES)
    if stated is None:
        what = "graph or index" if kind is None else kind
        raise NotAStore(f"{url} has no {MANIFEST}: it is no stored {what}")
    whole = _place(remote.url, stated, folder)
    with _kept(remote.url, whole):
        if not whole.exists():
            with _alone(folder / f"{whole.parent.name}.making"):
                if not whole.exists():
                    _copy(remote, kind, stated, folder, whole)
    found = Manifest.read(whole, kind or kind_of(whole) or "graph").digest()
    if digest not in (None, found):
        raise Damaged(f"{url} is another {kind} than was meant: its checksums differ")
    return whole


def adopted(url: str, local: Path) -> Path:
    """A store that was sent to ``url``, which lies in a folder of its own beside the copies: from
    now on it is the copy. Returns its path.
    """
    folder = copies_folder()
    whole = _place(url, (local / MANIFEST).read_bytes(), folder)
    with _kept(url, whole), _alone(folder / f"{whole.parent.name}.making"):
        if whole.exists():
            shutil.rmtree(local, ignore_errors=True)
        else:
            whole.parent.mkdir(0o700, exist_ok=True)
            os.rename(local, whole)
    return whole


def name_of(url: str) -> str:
    """What a store at a URL is called here."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", url.rstrip("/").rsplit("/", 1)[1]).lstrip(".") or "store"


def _place(url: str, stated: bytes, folder: Path) -> Path:
    """Where the copy of a store with that manifest lies."""
    return folder / xxhash.xxh3_128_hexdigest(url.encode() + b"\0" + stated) / name_of(url)


@contextmanager
def _kept(url: str, whole: Path) -> Iterator[None]:
    """Have a copy locked, shared, until this process ends, if what is done meanwhile succeeds."""
    if whole not in _READ:
        path = whole.parent.with_name(f"{whole.parent.name}.lock")
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            yield
            os.pwrite(lock, bare(url).encode(), 0)
            os.utime(lock)
        except BaseException:
            os.close(lock)
            raise
        _READ[whole] = lock
    else:
        yield
    _ORIGINS[whole] = url


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time; it ends with the process."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _copy(remote: Remote, kind: str | None, stated: bytes, folder: Path, whole: Path) -> None:
    """Make the copy in a folder of its own, see that it is what it should be, name it."""
    beside = folder / f"{whole.parent.name}.new"
    shutil.rmtree(beside, ignore_errors=True)  # of a process that was killed
    beside.mkdir(0o700)
    try:
        with disk.create(beside / MANIFEST) as file:
            disk.write(file, stated)
        kind = kind or kind_of(beside) or "graph"
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
    held = {path: _size(path) for path in _held(folder)}
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
        with unread(folder / f"{path.name}.lock") as free:
            if free:
                shutil.rmtree(path, ignore_errors=True)
                del held[path]
    if sum(held.values()) + size > bound:
        raise ResourceError(
            f"{url} takes {format_size(size)}, and copies that are being read take so much of "
            f"{folder} that it does not fit {format_size(bound)}. {COPIES} names another directory"
        )


@contextmanager
def unread(path: Path) -> Iterator[bool]:
    """Whether nobody reads the copy with that lock; as long as this goes on, nobody does then."""
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
