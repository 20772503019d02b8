"""Remote stores: folders at URLs that fsspec supports, and their local copies.

    PLACE/copies/DIGEST/NAME    the copy, a store; DIGEST is the hash of its URL and manifest
    PLACE/copies/DIGEST.making  locked while a process makes the copy
    PLACE/copies/DIGEST.lock    contains the URL; locked shared by readers, exclusively for removal

PLACE is the user's cache (``storage/user_cache.py``), or ``COCITE_COPIES``. The manifest is read
first: its sizes limit the download, and its checksums verify the copy. Copies may fill half of the
disk space that is free or already used by copies. If a new copy needs space, the least recently
used copies without readers are removed.
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
    """Return whether ``text`` is a URL rather than a path."""
    return isinstance(text, str) and _URL.fullmatch(text) is not None


def bare(url: str) -> str:
    """Remove user name and password from a URL."""
    return re.sub(r"^([^/]+//)[^/@]*@", r"\1", url)


class Remote:
    """A folder at a URL."""

    def __init__(self, url: str) -> None:
        """Open the file system; raises :class:`UsageError` for an unusable URL."""
        if not is_url(url):
            raise UsageError(f"{url!r} is not a URL such as s3://bucket/folder")
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
        """Return a file's content, or None; raises :class:`Damaged` if over ``most`` bytes."""
        with self._reported(name):
            try:
                with self._fs.open(self._at(name), "rb") as file:
                    found: bytes = file.read(most + 1)
            except FileNotFoundError:
                return None
        if len(found) > most:
            raise Damaged(f"{self.url}/{name} is larger than {most} bytes, the maximum")
        return found

    def fetch(self, name: str, size: int, out: BinaryIO) -> None:
        """Copy a file into ``out``; raises :class:`Damaged` unless it has ``size`` bytes."""
        left = size
        with self._reported(name):
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
        """Download a file of ``size`` bytes to ``path``, atomically."""
        with staged_file(path) as file:
            self.fetch(name, size, file)

    def put(self, path: Path, name: str) -> None:
        """Upload a local file, atomically."""
        with self._reported(name), path.open("rb") as file:
            self._fs.makedirs(self._path, exist_ok=True)
            with self._fs.transaction, self._fs.open(self._at(name), "wb") as out:
                while piece := file.read(_PIECE):
                    out.write(piece)

    def write(self, name: str, data: bytes) -> None:
        """Upload ``data`` as a file, atomically."""
        with self._reported(name):
            self._fs.makedirs(self._path, exist_ok=True)
            with self._fs.transaction:
                self._fs.pipe_file(self._at(name), data)

    def has(self, name: str) -> bool:
        """Return whether a file exists."""
        with self._reported(name):
            return bool(self._fs.exists(self._at(name)))

    def names(self) -> list[str]:
        """Return the names of the folder's files; [] if it is missing."""
        with self._reported(""):
            self._fs.invalidate_cache(self._path)
            if not self._fs.exists(self._path):
                return []
            return [str(each).rsplit("/", 1)[1] for each in self._fs.ls(self._path, detail=False)]

    def remove(self, *names: str) -> None:
        """Remove files if they exist."""
        for name in names:
            with self._reported(name):
                if self._fs.exists(self._at(name)):
                    self._fs.rm_file(self._at(name))

    def remove_folder(self) -> None:
        """Remove the folder if it is empty."""
        with self._reported(""):
            if self._fs.exists(self._path) and not self._fs.ls(self._path):
                self._fs.rmdir(self._path)

    @contextmanager
    def _reported(self, name: str) -> Iterator[None]:
        """Convert any error of a backend to :class:`StoreError`, with the URL."""
        try:
            yield
        except (CociteError, KeyboardInterrupt):
            raise
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise StoreError(
                f"{self.url}/{name} cannot be read or written: {reason}. Check that it exists and "
                "that you have access"
            ) from error


def _checked(name: str) -> Any:
    if not _NAME.fullmatch(name):
        raise Damaged(f"{name!r} is not a valid name for a file of a store")
    return name


COPIES = "COCITE_COPIES"
_MANIFEST_BYTES = 1 << 24
_READ: dict[Path, int] = {}
"""Shared locks on the copies that this process uses, held until it exits."""
_ORIGINS: dict[Path, str] = {}
"""URLs of the copies in use by this process."""


def cache_folder() -> Path:
    """Return the folder for copies; raises :class:`StoreError` if no location is safe."""
    chosen = os.environ.get(COPIES)
    if chosen:
        found = Path(chosen).expanduser().absolute()
        if fault := fault_of(found):
            raise StoreError(f"{COPIES} is not used: {fault}. Choose another directory")
    else:
        written = place().folder
        if written is None:
            raise StoreError(
                f"there is no private directory for copies. Set {VARIABLE} to a "
                "directory that only you can access"
            )
        found = written / "copies"
    found.mkdir(0o700, parents=True, exist_ok=True)
    return found


@dataclass(frozen=True)
class Copy:
    """A cached copy; ``used`` is the time of its last use, in seconds since 1970. ``url`` has no
    password, and is empty if unknown; ``read`` says whether a process is using the copy.
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
    """Remove and return the copies that no process uses."""
    gone = []
    for path, copy in _cached_files():
        if not copy.read:
            gone.append(copy)
            shutil.rmtree(path, ignore_errors=True)
    return gone


def _cached_files() -> Iterator[tuple[Path, Copy]]:
    """Yield (folder, copy); each is locked against new readers until the next is requested."""
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
    """Return the URL of a copy that this process requested, or None."""
    return _ORIGINS.get(Path(path))


def copied(url: str, kind: str | None = None, digest: str | None = None) -> Path:
    """Copy the store at ``url`` unless there is a copy; return the copy's path. The store must have
    the given ``kind`` and ``digest`` (:meth:`Manifest.digest`). Raises :class:`ResourceError` and
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
        raise Damaged(f"{url} is not the expected {kind}: its checksums differ")
    return whole


def adopted(url: str, local: Path) -> Path:
    """Move ``local``, which was uploaded to ``url``, into the cache; return its new path."""
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
    """Return the local folder name for the store at a URL."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", url.rstrip("/").rsplit("/", 1)[1]).lstrip(".") or "store"


def _place(url: str, stated: bytes, folder: Path) -> Path:
    """Return the copy's path for a store with the manifest ``stated``."""
    return folder / xxhash.xxh3_128_hexdigest(url.encode() + b"\0" + stated) / name_of(url)


@contextmanager
def _cached(url: str, whole: Path) -> Iterator[None]:
    """Take a shared lock on a copy; keep it until this process exits unless the context fails."""
    if whole in _READ:
        yield
    else:
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
    _ORIGINS[whole] = url


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextmanager
def _locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Lock a file for the context; without ``wait``, yield False if it is already locked."""
    descriptor = _opened(path)
    try:
        yield lock(descriptor, wait=wait)
    finally:
        os.close(descriptor)


def _copy(remote: Remote, kind: str | None, stated: bytes, folder: Path, whole: Path) -> None:
    """Download a store into a temporary folder, verify it, and rename the folder."""
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
                    f"{remote.url}/{name} does not match its checksum: upload an intact copy of "
                    f"the {kind}"
                )
        whole.parent.mkdir(0o700, exist_ok=True)
        os.rename(beside, whole)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _make_room(folder: Path, size: int, url: str) -> None:
    """Remove copies without readers until a store of ``size`` bytes fits within the limit."""
    held = {path: _size(path) for path in sorted(_held(folder), key=_used)}
    bound = (shutil.disk_usage(folder).free + sum(held.values())) // 2
    if size > bound:
        raise ResourceError(
            f"{url} takes {format_size(size)}; copies may take at most {format_size(bound)} in "
            f"{folder}, half of the free space. Set {COPIES} to a directory on another disk"
        )
    for path in list(held):
        if sum(held.values()) + size <= bound:
            return
        with _locked(_lock_of(path), wait=False) as free:
            if free:
                shutil.rmtree(path, ignore_errors=True)
                del held[path]
    if sum(held.values()) + size > bound:
        raise ResourceError(
            f"{url} takes {format_size(size)}; together with the copies in use, this exceeds the "
            f"limit of {format_size(bound)} in {folder}. Set {COPIES} to another directory"
        )


def _used(path: Path) -> float:
    with suppress(OSError):
        return _lock_of(path).stat().st_mtime
    return 0.0


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


# -- publication -------------------------------------------------------------------------

# A store is created locally, then uploaded in this order, so that no reader opens half a store:
#
#    1. upload sending.json, which lists new and old files, so that a later run can clean up
#    2. remove the manifest of an old store
#    3. upload the files, then their manifest
#    4. remove the other files of the old store, and sending.json
#
# The local folder is next to the copies: an interrupted build can resume there, and the uploaded
# store becomes a copy. During a replacement, readers may get files of both stores, which checksums
# detect. Concurrent runs are refused only on the same machine.


_SENDING = "sending.json"


class Sending:
    """A new store for ``url``: create it at ``path``, then call :meth:`send`.

    Raises :class:`UsageError` if the URL cannot be reached, :class:`OutputExists` if it is not
    empty, :class:`NotAStore` if ``overwrite`` would replace another kind of store, and
    :class:`StoreError`.
    """

    def __init__(self, url: str, kind: str, overwrite: bool) -> None:
        self._remote, self._kind, self._overwrite = Remote(url), kind, overwrite
        self._earlier()
        self.url = self._remote.url
        folder = cache_folder() / f"{xxhash.xxh3_128_hexdigest(self.url.encode())}.out"
        folder.mkdir(0o700, exist_ok=True)
        self.path = folder / name_of(self.url)

    def _earlier(self) -> set[str]:
        """Return the files that may be removed: files of an old store or a killed run."""
        stated = self._remote.read(MANIFEST, _MANIFEST_BYTES)
        mark = self._remote.read(_SENDING, _MANIFEST_BYTES)
        found = _listed(mark or b"[]")
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
                f"{url} contains files that do not belong to a stored {self._kind}, such as "
                f"{sorted(names)[0]}. Choose another output"
            )
        return found & set(names)

    def send(self) -> Path:
        """Upload the store; return the path of its local copy."""
        try:
            self._send()
        except CociteError as error:
            error.add_note(f"The complete local store is in {self.path}")
            raise
        found = adopted(self.url, self.path)
        with suppress(OSError):  # not empty
            self.path.parent.rmdir()
        return found

    def _send(self) -> None:
        remote, files = self._remote, Manifest.read(self.path, self._kind).files.keys()
        earlier = self._earlier()
        remote.write(_SENDING, json.dumps(sorted(files | earlier)).encode())
        remote.remove(MANIFEST)
        for name in sorted(files):
            remote.put(self.path / name, name)
        remote.write(MANIFEST, (self.path / MANIFEST).read_bytes())
        remote.remove(*sorted(earlier - files), _SENDING)


def _listed(mark: bytes) -> set[str]:
    try:
        return set(map(str, json.loads(mark)))
    except (ValueError, TypeError):
        return set()


def _stated(manifest: bytes) -> tuple[str, set[str]]:
    try:
        facts = json.loads(manifest)
        return str(facts["cocite"]), set(map(str, facts["files"]))
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(
            f"the manifest to replace cannot be read: {error}. Remove it and the files next to it"
        ) from error
