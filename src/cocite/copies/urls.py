"""Folders by URL: ``s3://``, ``gs://``, ``file://`` and whatever else fsspec reaches.

Files in them are named as those of stores are: a name never leads out of the folder. What is read
has a size that is known before, and nothing more than that is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

from cocite.errors import CociteError, Damaged, StoreError, UsageError
from cocite.extras import need
from cocite.store import disk
from cocite.store.beside import written_beside

__all__ = ["Remote", "bare", "is_url"]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://.+")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PIECE = 1 << 22


def is_url(text: object) -> TypeGuard[str]:
    """Whether it is a URL and no path."""
    return isinstance(text, str) and _URL.fullmatch(text) is not None


def bare(url: str) -> str:
    """A URL without the name and the password of who uses it."""
    return re.sub(r"^([^/]+//)[^/@]*@", r"\1", url)


class Remote:
    """The folder at a URL."""

    def __init__(self, url: str) -> None:
        """Raises :class:`UsageError` if it is none that can be reached."""
        if not is_url(url):
            raise UsageError(f"{url!r} is no URL; it is like s3://bucket/folder")
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
        """A small file, of so many bytes at most; None if it is not there."""
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
        """Copy a file of this ``size`` into an open one; raises :class:`Damaged` for another."""
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
            raise Damaged(f"{self.url}/{name} has not the {size:,} bytes that are written down")

    def get(self, name: str, size: int, path: Path) -> None:
        """The same, as the file ``path``, which has its name when it is whole."""
        with written_beside(path) as file:
            self.fetch(name, size, file)

    def put(self, path: Path, name: str) -> None:
        """Copy a local file there."""
        with self._said(name):
            self._fs.makedirs(self._path, exist_ok=True)
            self._fs.put_file(str(path), self._at(name))

    def put_whole(self, path: Path, name: str) -> None:
        """The same so that it has its name there when it is whole."""
        with self._said(name), path.open("rb") as file:
            self._fs.makedirs(self._path, exist_ok=True)
            with self._fs.transaction, self._fs.open(self._at(name), "wb") as out:
                while piece := file.read(_PIECE):
                    out.write(piece)

    def write(self, name: str, data: bytes) -> None:
        """Write a small file there: it has its name when it is whole."""
        with self._said(name):
            self._fs.makedirs(self._path, exist_ok=True)
            with self._fs.transaction:
                self._fs.pipe_file(self._at(name), data)

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        with self._said(name):
            return bool(self._fs.exists(self._at(name)))

    def names(self) -> list[str]:
        """What is in it; nothing if it is not there."""
        with self._said(""):
            self._fs.invalidate_cache(self._path)
            if not self._fs.exists(self._path):
                return []
            return [str(each).rsplit("/", 1)[1] for each in self._fs.ls(self._path, detail=False)]

    def remove(self, *names: str) -> None:
        """Remove files, those that are there."""
        for name in names:
            with self._said(name):
                if self._fs.exists(self._at(name)):
                    self._fs.rm_file(self._at(name))

    def remove_folder(self) -> None:
        """Remove it, if nothing is left in it."""
        with self._said(""):
            if self._fs.exists(self._path) and not self._fs.ls(self._path):
                self._fs.rmdir(self._path)

    @contextmanager
    def _said(self, name: str) -> Iterator[None]:
        """What goes wrong, with its place: backends raise what they like."""
        try:
            yield
        except (CociteError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise _said_of(f"{self.url}/{name}", error) from error


def _said_of(place: str, error: Exception) -> StoreError:
    told = " ".join(str(error).split()) or type(error).__name__
    return StoreError(
        f"{place} cannot be read or written: {told}. See whether it is there, and whether this "
        "machine may use it"
    )


def _checked(name: str) -> Any:
    if not _NAME.fullmatch(name):
        raise Damaged(f"{name!r} is no name of a file of a store")
    return name
