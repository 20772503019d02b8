"""Remote stores: folders by URL, on any system that fsspec supports, and their local copies.

    PLACE/copies/DIGEST/NAME    the copy, a store; DIGEST is of its URL and its manifest
    PLACE/copies/DIGEST.making  locked by the process that makes it; others wait
    PLACE/copies/DIGEST.lock    locked, shared by readers, exclusively to remove it; holds the URL

PLACE is the user's cache (``storage/user_cache.py``), or ``COCITE_COPIES``. The manifest is read
first: it limits the bytes to copy, and its checksums are verified afterwards. Copies may take half
of the disk space that is free or their own; the least recently used copy without readers is
removed first.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

import xxhash

from cocite.errors import (
    CociteError,
    Damaged,
    NotAStore,
    OutputExists,
    ResourceError,
    StoreError,
    UsageError,
)
from cocite.extras import need
from cocite.resources import format_size
from cocite.storage import disk
from cocite.storage.arrays import checksum
from cocite.storage.atomic import lock, staged_file
from cocite.storage.manifest import MANIFEST, Manifest, kind_of
from cocite.storage.user_cache import VARIABLE, fault_of, place

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://.+")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PIECE = 1 << 22


def is_url(text: object) -> TypeGuard[str]:
    """Return whether it is a URL rather than a path."""
    return isinstance(text, str) and _URL.fullmatch(text) is not None


def bare(url: str) -> str:
    """Return a URL without user name and password."""
    return re.sub(r"^([^/]+//)[^/@]*@", r"\1", url)


class Remote:
    """The folder at a URL."""

    def __init__(self, url: str) -> None:
        """Raise :class:`UsageError` for a URL that cannot be used."""
        if not is_url(url):
            raise UsageError(f"{url!r} is not a URL; it must be like s3://bucket/folder")
        core = need("fsspec.core", f"reading {url}", "cluster")
        self.url = url.rstrip("/")
        try:
            self._fs, self._path = core.url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise UsageError(f"{url} cannot be reached: {error}") from error

    def __truediv__(self, name: str) -> Remote:
        return Remote(f"{self.url}/{_checked(name)}")

    def _at(self, name: str) -> str:
        return f"{self._path}/{_checked(name)}"

    def read(self, name: str, most: int) -> bytes | None:
        """Return a small file of at most ``most`` bytes; None if it is missing."""
        with self._said(name):
            try:
                with self._fs.open(self._at(name), "rb") as file:
                    found: bytes = file.read(most + 1)
            except FileNotFoundError:
                return None
        if len(found) > most:
            raise Damaged(f"{self.url}/{name} is larger than {most} bytes, which it may not be")
        return found

    def fetch(self, name: str, size: int, out: BinaryIO) -> None:
        """Copy a file of this ``size`` into an open one; raises :class:`Damaged` for another
        size.
        """
        left = size
        with self._said(name):
            try:
                with self._fs.open(self._at(name), "rb") as file:
                    while piece := file.read(min(_PIECE, left + 1)):
                        left -= len(piece)
                        if left < 0:
                            break
                        disk.write(out, piece)
            except FileNotFoundError:
                raise Damaged(f"{self.url} has no {name}") from None
        if left:
            raise Damaged(f"{self.url}/{name} does not have the recorded size of {size:,} bytes")

    def get(self, name: str, size: int, path: Path) -> None:
        """Copy a file to ``path``, which appears when complete."""
        with staged_file(path) as file:
            self.fetch(name, size, file)

    def put(self, path: Path, name: str) -> None:
        """Upload a local file, which appears when complete."""
        with self._said(name), path.open("rb") as file:
            self._fs.makedirs(self._path, exist_ok=True)
            with self._fs.transaction, self._fs.open(self._at(name), "wb") as out:
                while piece := file.read(_PIECE):
                    out.write(piece)

    def write(self, name: str, data: bytes) -> None:
        """Write a small file, which appears when complete."""
        with self._said(name):
            self._fs.makedirs(self._path, exist_ok=True)
            with self._fs.transaction:
                self._fs.pipe_file(self._at(name), data)

    def has(self, name: str) -> bool:
        """Return whether a file exists."""
        with self._said(name):
            return bool(self._fs.exists(self._at(name)))

    def names(self) -> list[str]:
        """Return the names in it; [] if it is missing."""
        with self._said(""):
            self._fs.invalidate_cache(self._path)
            if not self._fs.exists(self._path):
                return []
            return [str(each).rsplit("/", 1)[1] for each in self._fs.ls(self._path, detail=False)]

    def remove(self, *names: str) -> None:
        """Remove those of the files that exist."""
        for name in names:
            with self._said(name):
                if self._fs.exists(self._at(name)):
                    self._fs.rm_file(self._at(name))

    def remove_folder(self) -> None:
        """Remove the folder if it is empty."""
        with self._said(""):
            if self._fs.exists(self._path) and not self._fs.ls(self._path):
                self._fs.rmdir(self._path)

    @contextmanager
    def _said(self, name: str) -> Iterator[None]:
        """Turn the backends' many kinds of errors into those that name the place."""
        try:
            yield
        except (CociteError, KeyboardInterrupt):
            raise
        except Exception as error:
            said = " ".join(str(error).split()) or type(error).__name__
            raise StoreError(
                f"{self.url}/{name} cannot be read or written: {said}. See whether it is there, "
                "and whether this machine may use it"
            ) from error


def _checked(name: str) -> Any:
    if not _NAME.fullmatch(name):
        raise Damaged(f"{name!r} is not a name of a file of a store")
    return name


COPIES = "COCITE_COPIES"
_MANIFEST_BYTES = 1 << 24
_READ: dict[Path, int] = {}
"""Shared locks on copies that this process reads, until it ends."""
_ORIGINS: dict[Path, str] = {}
"""URLs of copies that this process reads."""


def cache_folder() -> Path:
    """Return the folder of copies; raises :class:`StoreError` if there is no safe place."""
    chosen = os.environ.get(COPIES)
    if chosen:
        found = Path(chosen).expanduser().absolute()
        if fault := fault_of(found):
            raise StoreError(f"{COPIES} is not used: {fault}. Name another directory")
    else:
        written = place().folder
        if written is None:
            raise StoreError(f"there is no private directory for copies; {VARIABLE} names one")
        found = written / "copies"
    found.mkdir(0o700, parents=True, exist_ok=True)
    return found


@dataclass(frozen=True)
class Copy:
    """A cached copy: its ``url`` (without password; empty if unknown), its ``bytes``, its last use
    (seconds since 1970), and whether a process reads it now.
    """

    name: str
    url: str
    bytes: int
    used: float
    read: bool


def list_remote_cache() -> list[Copy]:
    """Return the copies, most recently used first. Raises like :func:`cache_folder`."""
    found = [copy for _, copy in _cached_files()]
    return sorted(found, key=lambda copy: (-copy.used, copy.url))


def clear_remote_cache() -> list[Copy]:
    """Remove the copies that no process reads; return them."""
    gone = []
    for path, copy in _cached_files():
        if not copy.read:
            gone.append(copy)
            shutil.rmtree(path, ignore_errors=True)
    return gone


def _cached_files() -> Iterator[tuple[Path, Copy]]:
    """Yield each copy with its folder, locked against new readers until the next one."""
    for path in _held(cache_folder()):
        with _locked(_lock_of(path), wait=False) as free:
            name = next((each.name for each in path.iterdir()), "")
            url = _lock_of(path).read_text("utf-8", "replace")
            yield path, Copy(name, url, _size(path), _used(path), not free)


def _lock_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _held(folder: Path) -> list[Path]:
    """Return the folders of complete copies."""
    return [path for path in folder.iterdir() if path.suffix == "" and path.is_dir()]


def origin(path: str | os.PathLike[str]) -> str | None:
    """Return the URL of a copy, if this process requested it."""
    return _ORIGINS.get(Path(path))


def copied(url: str, kind: str | None = None, digest: str | None = None) -> Path:
    """Return a local copy of the store of that ``kind``, by default any, at ``url``, made if
    necessary.

    With ``digest`` (:meth:`Manifest.digest`) it must match. Raises
    :class:`~cocite.errors.NotAStore`, :class:`Damaged`, :class:`ResourceError` and
    :class:`StoreError`.
    """
    remote, folder = Remote(url), cache_folder()
    stated = remote.read(MANIFEST, _MANIFEST_BYTES)
    if stated is None:
        what = "graph or index" if kind is None else kind
        raise NotAStore(f"{url} has no {MANIFEST}: it is not a stored {what}")
    whole = _place(remote.url, stated, folder)
    with _cached(remote.url, whole):
        if not whole.exists():
            with _locked(folder / f"{whole.parent.name}.making"):
                if not whole.exists():
                    _copy(remote, kind, stated, folder, whole)
    found = Manifest.read(whole, kind or kind_of(whole) or "graph").digest()
    if digest not in (None, found):
        raise Damaged(f"{url} is another {kind} than was meant: its checksums differ")
    return whole


def adopted(url: str, local: Path) -> Path:
    """Turn a store that was sent to ``url``, in a separate folder beside the copies, into its copy;
    return the path.
    """
    folder = cache_folder()
    whole = _place(url, (local / MANIFEST).read_bytes(), folder)
    with _cached(url, whole), _locked(folder / f"{whole.parent.name}.making"):
        if whole.exists():
            shutil.rmtree(local, ignore_errors=True)
        else:
            whole.parent.mkdir(0o700, exist_ok=True)
            os.rename(local, whole)
    return whole


def name_of(url: str) -> str:
    """Return the local name of a store at a URL."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", url.rstrip("/").rsplit("/", 1)[1]).lstrip(".") or "store"


def _place(url: str, stated: bytes, folder: Path) -> Path:
    """Return the path for the copy of a store with that manifest."""
    return folder / xxhash.xxh3_128_hexdigest(url.encode() + b"\0" + stated) / name_of(url)


@contextmanager
def _cached(url: str, whole: Path) -> Iterator[None]:
    """Lock a copy, shared, until this process ends, if the context succeeds."""
    if whole not in _READ:
        descriptor = _opened(_lock_of(whole.parent))
        try:
            lock(descriptor, shared=True, wait=True)
            yield
            os.pwrite(descriptor, bare(url).encode(), 0)
            os.utime(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        _READ[whole] = descriptor
    else:
        yield
    _ORIGINS[whole] = url


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextmanager
def _locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Yield whether a file could be locked for the context, or its process. For the lock of a copy:
    whether it has no readers.
    """
    descriptor = _opened(path)
    try:
        yield lock(descriptor, wait=wait)
    finally:
        os.close(descriptor)


def _copy(remote: Remote, kind: str | None, stated: bytes, folder: Path, whole: Path) -> None:
    """Make the copy in a temporary folder, check it, rename it."""
    beside = folder / f"{whole.parent.name}.new"
    shutil.rmtree(beside, ignore_errors=True)  # left by a killed process
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
    """Remove copies without readers until one of this size fits within the limit."""
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
        with _locked(_lock_of(path), wait=False) as free:
            if free:
                shutil.rmtree(path, ignore_errors=True)
                del held[path]
    if sum(held.values()) + size > bound:
        raise ResourceError(
            f"{url} takes {format_size(size)}, and copies that are being read take so much of "
            f"{folder} that it does not fit {format_size(bound)}. {COPIES} names another directory"
        )


def _used(path: Path) -> float:
    with suppress(OSError):
        return _lock_of(path).stat().st_mtime
    return 0.0


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


# -- publication -------------------------------------------------------------------------

# Outputs at a URL: a store is made here, then sent in this order, so that a reader never sees half
# a store:
#
#    1. send sending.json, which lists new and old files, so that a later run can clean up
#    2. remove the manifest of an old store
#    3. send the files, then their manifest
#    4. remove other files of the old store, and sending.json
#
# The store is made in a folder beside the copies, where an interrupted build can resume; after
# sending, it stays as a copy. A reader during a replacement may get files of both stores, which
# checksums detect. On one machine, a second run is refused; other machines are not kept out.


_SENDING = "sending.json"


class Sending:
    """A store of a ``kind`` for ``url``: make it at ``path``, then :meth:`send` it."""

    def __init__(self, url: str, kind: str, overwrite: bool) -> None:
        """Raise :class:`UsageError` for an unreachable URL, :class:`OutputExists` if something is
        there, :class:`NotAStore` if that is not such a store, and :class:`StoreError`.
        """
        self._remote, self._kind, self._overwrite = Remote(url), kind, overwrite
        self._earlier()
        self.url = self._remote.url
        folder = cache_folder() / f"{xxhash.xxh3_128_hexdigest(self.url.encode())}.out"
        folder.mkdir(0o700, exist_ok=True)
        self.path = folder / name_of(self.url)

    def _earlier(self) -> set[str]:
        """Return existing files that may be removed: of a store, or of a killed run."""
        stated = self._remote.read(MANIFEST, _MANIFEST_BYTES)
        mark = self._remote.read(_SENDING, _MANIFEST_BYTES)
        found = set() if mark is None else set(_listed(mark))
        url, names = self._remote.url, self._remote.names()
        if stated is not None:
            if not self._overwrite:
                raise OutputExists.already(url)
            kind, files = _stated(stated)
            if kind != self._kind:
                raise NotAStore.in_the_way(url, f"stored {self._kind}")
            found |= files
        elif mark is None and names:
            raise OutputExists(
                f"{url} holds what is not a stored {self._kind}, such as {sorted(names)[0]}. "
                "Choose another output"
            )
        return found & set(names)

    def send(self) -> Path:
        """Send the store; return the path of its local copy."""
        try:
            self._send()
        except CociteError as error:
            error.add_note(f"What was made is whole in {self.path}")
            raise
        folder = self.path.parent
        found = adopted(self.url, self.path)
        if not any(folder.iterdir()):
            folder.rmdir()
        return found

    def _send(self) -> None:
        remote, files = self._remote, set(Manifest.read(self.path, self._kind).files)
        earlier = self._earlier()
        remote.write(_SENDING, json.dumps(sorted(files | earlier)).encode())
        remote.remove(MANIFEST)
        for name in sorted(files):
            remote.put(self.path / name, name)
        remote.write(MANIFEST, (self.path / MANIFEST).read_bytes())
        remote.remove(*sorted(earlier - files), _SENDING)


def _listed(mark: bytes) -> list[str]:
    try:
        return [str(name) for name in json.loads(mark)]
    except (ValueError, TypeError):
        return []


def _stated(manifest: bytes) -> tuple[str, set[str]]:
    """Return the kind of a store, and its files."""
    try:
        told = json.loads(manifest)
        return str(told["cocite"]), set(map(str, told["files"]))
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(
            f"a manifest that is to be replaced cannot be read: {error}. Remove it, and what is "
            "beside it"
        ) from error
