"""An archive of HTML pages, tar (packed or not) or zip: unpacked for as long as it is read.

    names, links of the file system, what may be a page -> a scratch folder -> site.py, reader.py

The site is the archive; or, where all of it lies in one folder, that folder, so that pages are
called as those of a folder that was named. What can be no page is there by its name only, so that
links to it are not broken. Nothing is written outside of the scratch folder: members whose names
lead out of it, and devices, are left out and counted, and links of the file system are made last,
and never followed. Of two members with one name the last one counts, as with ``tar -x``.

Cost: the archive is read once, and what may be a page written once.
"""

from __future__ import annotations

import os
import shlex
import stat
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tarfile import HeaderError, ReadError
from typing import IO, NamedTuple, Self

from cocite.errors import InputError, NotLinks
from cocite.graph.readers.html.reader import read_site
from cocite.graph.readers.html.site import Site, is_site, may_be_page
from cocite.graph.readers.reader import Job, Read
from cocite.graph.readers.signs import zip_archive
from cocite.graph.readers.sources import unpack_errors
from cocite.store import disk

__all__ = ["READER", "ArchiveReader"]

_PIECE = 1 << 20
_OUTSIDE = "name in the archive that leads out of it"
_NO_FILE = "no file"
_MAC = "__MACOSX"
"""What zip archives of macOS have beside the files."""


class _Member(NamedTuple):
    """A file of an archive: its ``name``, and its content; or ``link``, where one leads, as it is
    written, or ``same``, the name of the file that it is, too.
    """

    name: str
    content: IO[bytes] | None = None
    link: str = ""
    same: str = ""


class ArchiveReader:
    """Archives of HTML pages."""

    title = "an archive of HTML pages"
    described = "a tar or zip archive of HTML pages, read as the folder that was packed"
    streams = True  # of zip, refused when it is met
    restricts = True

    def read(self, job: Job) -> Read:
        """As of a folder of what is in the archive."""
        folder, left_out = job.scratch / "unpacked", Counter[str]()
        folder.mkdir()
        links: list[_Member] = []
        is_zip = zip_archive(job.source.beginning())
        with _told(job):
            for member in (_in_zip if is_zip else _in_tar)(job, left_out):
                parts = _parts(member.name)
                if parts is None or (member.same and _parts(member.same) is None):
                    left_out[_OUTSIDE] += 1
                elif not parts or parts[0] == _MAC:
                    continue
                elif member.link:
                    links.append(member)
                else:
                    with _told(job, member.name):
                        _put(folder, parts, member, left_out)
        for member in links:
            _put(folder, _parts(member.name) or [], member, left_out)
        root = _root(folder)
        if not is_site(root):
            kind, command = ("zip", "unzip") if is_zip else ("tar", "tar -xf")
            file = "FILE" if job.source.path is None else shlex.quote(str(job.source.path))
            packed = f" (packed by {job.source.packed})" if job.source.packed else ""
            raise NotLinks(
                f"{job.source.label} is a {kind} archive{packed}, and no site of HTML pages is in "
                f"it. Unpack it, and name the files in it that hold links: {command} {file}"
            )
        site = Site(root)
        site.left_out += left_out
        return read_site(job, site)


READER = ArchiveReader()


def _parts(name: str) -> list[str] | None:
    """The folders and the file of a name; None if it leads out."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    return None if name.startswith("/") or ".." in parts or "\0" in name else parts


def _put(folder: Path, parts: list[str], member: _Member, left_out: Counter[str]) -> None:
    """Write a member; one that cannot be beside the others is left out."""
    path = folder.joinpath(*parts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path):
            path.unlink()
        if member.link:
            path.symlink_to(member.link)
        elif member.same:
            os.link(folder.joinpath(*(_parts(member.same) or [])), path, follow_symlinks=False)
        else:
            with path.open("xb", buffering=0) as out:
                if member.content is not None and may_be_page("/".join(parts)):
                    while piece := member.content.read(_PIECE):
                        disk.write(out, piece)
    except (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError):
        left_out["file in the archive where another one is"] += 1


def _root(folder: Path) -> Path:
    """The folder in which all is."""
    while True:
        entries = list(os.scandir(folder))
        if len(entries) != 1 or not entries[0].is_dir(follow_symlinks=False):
            return folder
        folder = Path(entries[0].path)


class _Header(tarfile.TarInfo):
    """One that is damaged, or missing, is an error: else what was read before would be all."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        at = tarfile.offset
        try:
            return super().fromtarfile(tarfile)
        except HeaderError as error:
            if type(error).__name__ == "EOFHeaderError":  # the mark of the end
                raise
            raise ReadError(f"at byte {at:,}: {error}") from error


# -- the two kinds ---------------------------------------------------------------------


def _in_tar(job: Job, left_out: Counter[str]) -> Iterator[_Member]:
    stream, raw = job.source.open()
    stage, size = "unpacking " + job.source.short, job.source.nbytes
    with stream, raw, tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as archive:
        for member in archive:
            job.progress(stage, raw.tell(), size)
            if member.isfile():
                yield _Member(member.name, archive.extractfile(member))
            elif member.issym():
                yield _Member(member.name, link=member.linkname)
            elif member.islnk():
                yield _Member(member.name, same=member.linkname)
            elif not member.isdir():
                left_out[_NO_FILE] += 1
        while stream.read(_PIECE):  # damage behind the last member is damage, too
            pass


def _in_zip(job: Job, left_out: Counter[str]) -> Iterator[_Member]:
    stage, done = "unpacking " + job.source.short, 0
    if job.source.path is None or job.source.is_pipe or job.source.packed:
        raise NotLinks(
            f"{job.source.label} is a zip archive, which cannot be read as a stream: name the "
            "file, packed by nothing else"
        )
    with zipfile.ZipFile(job.source.path) as archive:
        for member in archive.infolist():
            job.progress(stage, done, job.source.nbytes)
            done += member.compress_size
            if member.is_dir():
                continue
            kind = stat.S_IFMT(member.external_attr >> 16)
            with _told(job, member.filename), archive.open(member) as content:
                if kind == stat.S_IFLNK:
                    yield _Member(member.filename, link=os.fsdecode(content.read()))
                elif kind in (0, stat.S_IFREG):
                    yield _Member(member.filename, content)
                else:
                    left_out[_NO_FILE] += 1


@contextmanager
def _told(job: Job, member: str = "") -> Iterator[None]:
    """Damage is told by the file, and the member where that is known."""
    wrong: tuple[type[Exception], ...] = (
        *(tarfile.TarError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError),
        *unpack_errors(),
    )
    at = f": {member}" if member else ""
    try:
        yield
    except wrong as error:
        raise InputError(
            f"{job.source.label}{at} cannot be unpacked: {error}. Fetch or copy the archive again"
        ) from error
