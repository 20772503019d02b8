"""An archive of HTML pages, tar (packed or not) or zip, read as the folder that was packed.

The site is the archive; or, where all of it lies in one folder, that folder. What can be no page is
there by its name only, so that links to it are not broken. Of two members with one name the last
one counts, as with ``tar -x``.

Archives come from strangers, so no member is ever a path on the disk: contents lie one behind the
other in a scratch file. A link of the file system is another name of the member that its text leads
to, found by names alone. What leads out, in a circle or nowhere, and what is neither file, folder
nor link, is left out and counted; archives in archives are files. Bounds: contents of
:data:`~cocite.io.readers.sources.MOST_RATIO` times the size, names in a quarter of the memory.
"""

from __future__ import annotations

import io
import os
import posixpath
import shlex
import stat
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, cast

from cocite.errors import InputError, ResourceError, UnrecognizedInput, UsageError
from cocite.io.readers.contract import FormatReader, Job, Read
from cocite.io.readers.html.reader import read_site
from cocite.io.readers.html.site import (
    LARGEST,
    NOWHERE,
    OUTSIDE,
    Site,
    holds_pages,
    may_be_page,
    real_path,
)
from cocite.io.readers.html.tar import TarError, TarMember, tar_members
from cocite.io.readers.signs import zip_archive
from cocite.io.readers.sources import most_unpacked, unpack_errors, unpacks_to_more
from cocite.resources import format_size
from cocite.storage import disk

_PIECE = 1 << 16
_IN_PIECES = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How members of zip archives are packed of which so many bytes are unpacked as are asked for: of
bzip2 and LZMA 4,096 bytes are, which may be gigabytes.
"""
_OUTSIDE = "name in the archive that leads out of it"
_TAKEN = "file in the archive where another one is"
_LONG = "name in the archive of more than 4,096 characters, or 100 folders"
_LONGEST_NAME, _MOST_FOLDERS = 4096, 100
_MAC = "__MACOSX"
"""What zip archives of macOS have beside the files."""
_NAME = 1 << 9
"""Bytes of memory for a name, beside its text."""
_ENTRY = 32
"""Memory for a byte of the list of members of a zip archive, once it is read."""


def _read(job: Job) -> Read:
    """As of a folder of what is in the archive."""
    is_zip = zip_archive(job.source.beginning())
    with disk.create_anew(job.scratch / "unpacked") as contents:
        tree = _Members(job, contents, is_zip)
        with _unpacking(job):
            for member in (_in_zip if is_zip else _in_tar)(job):
                with _unpacking(job, member.name):
                    tree.add(member)
        tree.finish()
        if not holds_pages(tree.files):
            raise UnrecognizedInput(_no_site(job, is_zip))
        return read_site(job, Site(tree))


READER = FormatReader(
    "an archive of HTML pages",
    "a tar or zip archive of HTML pages, read as the folder that was packed",
    _read,  # a zip archive out of a pipe is refused when it is met
    restricts=True,
    columns=False,
)


def _no_site(job: Job, is_zip: bool) -> str:
    kind, command = ("zip", "unzip") if is_zip else ("tar", "tar -xf")
    file = "FILE" if job.source.path is None else shlex.quote(str(job.source.path))
    packed = f" (packed by {job.source.packed})" if job.source.packed else ""
    return (
        f"{job.source.label} is a {kind} archive{packed}, and no site of HTML pages is in "
        f"it. Unpack it, and name the files in it that hold links: {command} {file}"
    )


class _Members:
    """The members of an archive, as a tree of files: contents are parts of one file."""

    def __init__(self, job: Job, contents: BinaryIO, is_zip: bool) -> None:
        self.files: dict[str, tuple[int, int]] = {}
        self.folders: set[str] = {""}
        self.names: dict[str, str] = {}
        self.left_out: Counter[str] = Counter()
        self._job, self._contents, self._end = job, contents, 0
        self._held, self._most_held = 0, job.memory // 4
        # A tar archive is bounded where it is unpacked, as a stream.
        self._most = most_unpacked(job.source.nbytes) if is_zip else sys.maxsize

    def read(self, path: str, most: int) -> bytes:
        """The first bytes of a file."""
        begin, size = self.files[path]
        return os.pread(self._contents.fileno(), min(size, most), begin)

    # -- members ------------------------------------------------------------------------

    def add(self, member: TarMember) -> None:
        """Take a member; one that cannot be beside the others is left out."""
        path = _path(member.name)
        if path is None:
            self.left_out[_OUTSIDE] += 1
        elif not path or path.startswith((".", _MAC + "/")) or "/." in path:
            pass
        elif len(path) > _LONGEST_NAME or path.count("/") > _MOST_FOLDERS:
            self.left_out[_LONG] += 1
        elif member.kind in ("device", "sparse"):
            self.left_out["no file" if member.kind == "device" else "sparse file"] += 1
        elif member.kind == "symlink":
            if path in self.folders:
                self.left_out[_TAKEN] += 1
                return
            self.files.pop(path, None)
            self._hold(path, member.target)
            self.names[path] = member.target
        elif member.kind != "folder" and self._is_free(path):
            self._add_file(path, member)

    def _is_free(self, path: str) -> bool:
        """See that a file can be there, and its folders are."""
        above = path
        missing = []
        while (above := posixpath.dirname(above)) not in self.folders:
            missing.append(above)
        if path in self.folders or not self.files.keys().isdisjoint(missing):
            self.left_out[_TAKEN] += 1
            return False
        for folder in missing:
            self._hold(folder)
            self.folders.add(folder)
        return True

    def _add_file(self, path: str, member: TarMember) -> None:
        place = self._end, 0
        if member.kind == "link":
            same = _path(member.target)
            if same is None or same not in self.files:
                self.left_out[_OUTSIDE if same is None else NOWHERE] += 1
                return
            place = self.files[same]
        elif may_be_page(path):
            place = self._end, self._write(member)
        self.names.pop(path, None)
        if path not in self.files:
            self._hold(path)
        self.files[path] = place

    def _write(self, member: TarMember) -> int:
        """Write a content behind the others, of a page that is too large as much as shows that."""
        size = 0
        while size <= LARGEST and (piece := member.content.read(_PIECE)):
            disk.write(self._contents, piece)
            size += len(piece)
            self._end += len(piece)
            if self._end > self._most:
                raise unpacks_to_more(self._job.source, self._most, "unzip")
        return size

    def _hold(self, *texts: str) -> None:
        """Count a name that is in memory."""
        self._held += _NAME + sum(map(sys.getsizeof, texts))
        if self._held > self._most_held:
            raise ResourceError(
                f"{self._job.source.label} has more members than memory holds: {len(self.files):,} "
                f"files so far, and names may take {format_size(self._most_held)}, a quarter of "
                "--memory. Give more with --memory"
            )

    # -- all of them ---------------------------------------------------------------------

    def finish(self) -> None:
        """Make the one folder that all is in the root, and find where links lead."""
        self.names = {path: text for path, text in self.names.items() if self._may_link(path)}
        paths = [*self.files, *self.names]
        root = posixpath.dirname(os.path.commonprefix(paths))  # noqa: RUF071 - dirname mends that
        if root:
            cut = len(root) + 1
            self.files = {path[cut:]: place for path, place in self.files.items()}
            self.folders = {path[cut:] for path in self.folders}
            self.names = {path[cut:]: text for path, text in self.names.items()}
        for path, text in list(self.names.items()):
            if not text or "\0" in text or len(text) > _LONGEST_NAME:
                self._unlink(path, NOWHERE)
            elif (target := _target(path, text)) is None:
                self._unlink(path, OUTSIDE)
            else:
                self.names[path] = target
        for path in list(self.names):
            target = real_path(self, path)
            if target in self.files or target in self.folders:
                self.names[path] = target
            else:
                self._unlink(path, NOWHERE)

    def _may_link(self, path: str) -> bool:
        """Whether a link of the file system is where nothing else is."""
        above = path
        while above := posixpath.dirname(above):
            if above in self.files:
                self.left_out[_TAKEN] += 1
                return False
        if path in self.folders:
            self.left_out[_TAKEN] += 1
        return path not in self.folders

    def _unlink(self, path: str, why: str) -> None:
        del self.names[path]
        self.left_out[why] += 1


def _path(name: str) -> str | None:
    """The path of a member; None if it leads out."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    return None if name.startswith("/") or ".." in parts or "\0" in name else "/".join(parts)


def _target(path: str, text: str) -> str | None:
    """The path to which the text of a link leads; None if that is outside."""
    if text.startswith("/"):
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), text))
    return None if target.split("/")[0] == ".." else "" if target == "." else target


# -- the two kinds ---------------------------------------------------------------------


def _in_tar(job: Job) -> Iterator[TarMember]:
    stream, raw = job.source.open()
    stage, size = "unpacking " + job.source.short, job.source.nbytes
    name = ""
    with stream, raw:
        try:
            for member in tar_members(stream):
                job.progress(stage, raw.tell(), size)
                name = member.name
                yield member
        except InputError as error:  # of what was passed over behind it, too
            raise InputError(f"{name[:200]!r} in {error}") from error


def _in_zip(job: Job) -> Iterator[TarMember]:
    stage, done = "unpacking " + job.source.short, 0
    if job.source.path is None or job.source.is_pipe or job.source.packed:
        raise UnrecognizedInput(
            f"{job.source.label} is a zip archive, which cannot be read as a stream: name the "
            "file, packed by nothing else"
        )
    with (
        job.source.path.open("rb") as file,
        zipfile.ZipFile(cast(IO[bytes], _Reads(job, file))) as archive,
    ):
        for entry in archive.infolist():
            job.progress(stage, done, job.source.nbytes)
            done += entry.compress_size
            if entry.filename.endswith("/") or not entry.filename:
                continue
            mode = stat.S_IFMT(entry.external_attr >> 16)
            is_link = mode == stat.S_IFLNK
            if not is_link and not may_be_page(entry.filename):
                kind = "file" if mode in (0, stat.S_IFREG) else "device"
                yield TarMember(entry.filename, kind, "", io.BytesIO())
                continue
            with _unpacking(job, entry.filename), archive.open(entry) as content:
                if entry.compress_type not in _IN_PIECES:
                    raise InputError(
                        f"{job.source.label} is neither stored nor deflated, and other packings of "
                        "zip archives are not undone within bounds. If you trust it, unpack it, "
                        "and name the folder"
                    )
                if is_link:
                    text = os.fsdecode(content.read(_LONGEST_NAME + 1))
                    yield TarMember(entry.filename, "symlink", text, content)
                else:
                    yield TarMember(entry.filename, "file", "", content)


class _Reads:
    """A file that is not read in pieces larger than memory: the list of members of a zip archive is
    read as one, and takes some times as much as Python's objects.
    """

    def __init__(self, job: Job, file: BinaryIO) -> None:
        self._job, self._file = job, file
        self._most = max(job.memory // 4 // _ENTRY, 1 << 20)

    def read(self, size: int = -1) -> bytes:
        """So many bytes."""
        if size > self._most:
            raise ResourceError(
                f"{self._job.source.label} has a list of members of {format_size(size)}; with this "
                f"--memory it may have {format_size(self._most)}. Give more with --memory, or "
                "unpack it, and name the folder"
            )
        return self._file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def _unpacking(job: Job, member: str = "") -> Iterator[None]:
    """Name the file, and the member where that is known, of what is wrong."""
    wrong: tuple[type[Exception], ...] = (TarError, zipfile.BadZipFile, zlib.error)
    wrong += (NotImplementedError, RuntimeError, ValueError, MemoryError, *unpack_errors())
    at = f": {member[:200]}" if member else ""
    try:
        yield
    except UsageError:
        raise
    except InputError as error:
        if not member:
            raise
        raise InputError(f"{member[:200]!r} in {error}") from error
    except wrong as error:
        what = str(error) or "it takes too much memory"
        raise InputError(
            f"{job.source.label}{at} cannot be unpacked: {what}. Fetch or copy the archive again"
        ) from error
