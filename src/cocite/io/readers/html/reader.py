"""A folder of HTML pages, or an archive of one: a static site, with links as in browsers.

    site.py: which files are pages -> page.py: their links -> ../crawl/captures.py: rows

Nodes are the paths of all pages in the folder. Every link is a row, so ``--count-duplicates``
counts repeated links. Absolute links are internal if they begin with the published site's URL:
``--site``, or the URL on which most canonical links of sampled pages agree. A page whose canonical
link or ``refresh`` leads to another page of the folder is an alias of that page. ``--links main``
excludes navigation: links in navigation elements, and links to pages that at least 90% of the
site's pages, and at least ten, link to.
"""

from __future__ import annotations

import errno
import io
import os
import posixpath
import shlex
import stat
import sys
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from cocite.errors import InputError, MalformedRow, ResourceError, UnrecognizedInput, UsageError
from cocite.graph.spelling import refused_in
from cocite.io.readers.contract import FormatReader, Job, PagesFound, Read, no_report
from cocite.io.readers.crawl.captures import ERROR, OTHER, Captures, CrawlRules
from cocite.io.readers.html.parsers import HtmlPage, Pages
from cocite.io.readers.html.site import (
    HERE,
    LARGEST,
    NOWHERE,
    OUTSIDE,
    Site,
    is_note_name,
    is_site,
    may_be_page,
)
from cocite.io.readers.html.tar import TarMember, tar_members
from cocite.io.readers.rows import clean_rows
from cocite.io.readers.signs import zip_archive
from cocite.io.readers.sources import most_unpacked, unpack_errors, unpacks_to_more
from cocite.resources import format_size
from cocite.storage import disk

_SAMPLED = 100
"""Number of pages to sample for the site's URL."""


def _read_folder(job: Job) -> Read:
    if job.source.path is None or not job.source.is_directory:
        raise UnrecognizedInput(
            f"{job.source.label} is a file; HTML pages must be read as a site: pass the folder "
            "that contains them all"
        )
    site = Site(job.source.path)
    notes = sum(is_note_name(path) for path in site.files)
    if notes and job.options.input_format == "auto":
        site.left_out["Markdown notes (--input-format notes reads them)"] = notes
    return read_site(job, site)


READER = FormatReader(
    "a folder of HTML pages",
    "a folder of HTML pages, a static site: links as a browser follows them",
    _read_folder,
    streams=False,
    takes=("pages",),
    columns=False,
)


def read_site(job: Job, site: Site) -> Read:
    """Read links between a site's pages, and the pages as nodes."""
    if not site.pages:
        raise UnrecognizedInput(f"{job.source.label} contains no HTML pages")
    if job.wanted == 1:
        return clean_rows(job, READER.title, ((page,) for page in site.pages))
    found = PagesFound(job.source.label, integers=False, format="HTML pages")
    refuse_names(job, site, found)
    with Pages(job.threads, "reading HTML") as pages:
        root = job.options.site or _published(job, site, pages)
        if root:
            site.root = found.site = root if root.endswith("/") else root + "/"
        with _captures_of(job, site, found) as captures:
            captures.parse(pages, _pages(job, site, captures))
            captures.left_out += site.left_out
            return captures.finish()


def _captures_of(job: Job, site: Site, found: PagesFound) -> Captures:
    """Return captures whose nodes are paths for the site's pages, and URLs for other pages."""

    def name(url: str) -> str:
        page = site.page_at(url) if site.is_inside(url) else url
        if page:
            return page
        captures.add(ERROR if page is None else OTHER, url)
        return url

    rules = CrawlRules(
        name,
        site.is_inside,
        external="to other sites",
        base=site.root,
        advice=". Pass the URL where the folder is published: --site URL",
        hidden=HERE,
    )
    captures = Captures(job, found, rules)  # the function `name` adds to it
    return captures


def refuse_names(job: Job, site: Site, found: PagesFound) -> None:
    """Remove pages whose paths are not valid names, or raise :class:`MalformedRow`."""
    bad = [(number, path) for number, path in enumerate(site.pages, 1) if refused_in(path)]
    for number, path in bad:
        what = f"{refused_in(path)} in a name"
        if job.options.bad_rows == "stop":
            raise MalformedRow(job.source.label, number, what, path)
        found.leave_out(what, 1, [f"page {number}: {path!r}"])
    site.remove(path for _, path in bad)


def _pages(job: Job, site: Site, captures: Captures) -> Iterator[HtmlPage]:
    stage, total = "parsing " + job.source.short, len(site.pages)
    for done, path in enumerate(site.pages, 1):
        content = content_of(job, site, path)
        if isinstance(content, str):
            captures.leave_out(path, content)
            captures.add(ERROR, path)
        else:
            yield HtmlPage((path, ""), site.url_of(path), content)
        job.progress(stage, done, total)


def content_of(
    job: Job, site: Site, path: str, most: int = LARGEST, called: str = "HTML"
) -> bytes | str:
    """Return a page's content of at most ``most`` bytes, or why the page is skipped."""
    try:
        content = site.read(path, most + 1)
    except (FileNotFoundError, NotADirectoryError):
        return "page that no longer exists"
    except OSError as error:
        raise InputError(f"{job.source.label}: {path} cannot be read: {error.strerror}") from error
    if len(content) > most:
        return f"page of more than {most:,} bytes"
    if b"\0" in content[:1024] and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return f"{called} file with binary content"
    return content


def _published(job: Job, site: Site, pages: Pages) -> str:
    """Return the site's URL according to most canonical links of sampled pages, or ""."""
    job, votes = replace(job, report=no_report), Counter[str]()
    some = site.pages[:: max(1, len(site.pages) // _SAMPLED)][:_SAMPLED]
    read = ((path, content_of(job, site, path)) for path in some)
    each = (HtmlPage(p, site.url_of(p), c) for p, c in read if isinstance(c, bytes))
    for parsed in pages.parsed(each):
        url = parsed.found["same"].get("canonical", "") if parsed.found else ""
        if url and not site.is_inside(url):
            votes[_root(url, parsed.key)] += 1
    root, count = votes.most_common(1)[0] if votes else ("", 0)
    return root if count * 2 > votes.total() else ""


def _root(url: str, path: str) -> str:
    """Return the site's URL if ``url`` is the URL of the page at ``path``; "" if it cannot be."""
    folder, _, file = quote(path).rpartition("/")
    stem = os.path.splitext(file)[0]
    plain = url.partition("?")[0].rstrip("/") if stem == "index" else url.partition("?")[0]
    inside = f"{folder}/" if folder else ""
    for end in (inside + file, inside + stem, inside + stem + "/"):
        if plain.endswith("/" + end):
            return plain[: -len(end)]
    if stem == "index" and (not folder or plain.endswith("/" + folder)):
        root = plain[: len(plain) - len(folder)]
        return root if root.endswith("/") else root + "/"
    return ""


# -- archives ----------------------------------------------------------------------------

# A tar archive (compressed or not) or zip archive is unpacked into a scratch folder. That folder,
# or its only subfolder, is read as a site. Files that cannot be pages are created empty, so that
# links to them are not broken. The last of several members with the same name counts, as with
# tar -x.
#
# Archives are untrusted. Paths and link targets outside the archive, and members other than files,
# folders and links, are skipped and counted; nested archives are plain files. Content is limited to
# MOST_RATIO times the archive's size (io/readers/sources.py), names to a quarter of the memory.


_PIECE = 1 << 16
_OUTSIDE = "path outside the archive"
_TAKEN = "file in the archive with the path of another"
_LONG = "name in the archive that is too long, or in more than 100 folders"
_LONGEST_NAME, _MOST_FOLDERS = 4096, 100
_MAC = "__MACOSX"
"""Folder that macOS adds to zip archives for metadata."""
_NAME = 1 << 9
"""Memory per name, in bytes, in addition to its text."""


def _read_archive(job: Job) -> Read:
    is_zip = zip_archive(job.source.beginning())
    unpacked = _Unpacked(job, job.scratch / "unpacked", is_zip)
    with _unpacking(job):
        for member in (_in_zip if is_zip else _in_tar)(job):
            with _unpacking(job, member.name):
                unpacked.add(member)
    folder, source = unpacked.finish(), job.source
    if not is_site(folder):
        kind, command = ("zip", "unzip") if is_zip else ("tar", "tar -xf")
        file = "FILE" if source.path is None else shlex.quote(str(source.path))
        packed = f" (packed by {source.packed})" if source.packed else ""
        raise UnrecognizedInput(
            f"{source.label} is a {kind} archive{packed} without a site of HTML pages. Unpack "
            f"the archive ({command} {file}), and pass the files with links"
        )
    site = Site(folder)
    site.left_out += unpacked.left_out
    return read_site(job, site)


ARCHIVE_READER = FormatReader(
    "an archive of HTML pages",
    "a tar or zip archive of HTML pages, read as the folder that was packed",
    _read_archive,  # it refuses zip archives from pipes
    takes=("pages",),
    columns=False,
)


class _Unpacked:
    """Extracts members to ``top``; links come last, so that nothing is written through them."""

    def __init__(self, job: Job, top: Path, is_zip: bool) -> None:
        self.left_out: Counter[str] = Counter()
        self._job, self._top = job, top
        self._folders, self._links = {""}, dict[str, str]()
        self._members, self._size = 0, 0
        self._names, self._most_names = 0, job.memory // 4
        # Tar archives are read as streams, whose decompressed size is already limited.
        self._most = most_unpacked(job.source.nbytes) if is_zip else sys.maxsize
        disk.make_own_folder(top, new=True)

    def add(self, member: TarMember) -> None:
        """Extract a member; skip one that conflicts with others."""
        path = _path(member.name)
        if path is None:
            self.left_out[_OUTSIDE] += 1
        elif not path or path.startswith((".", _MAC + "/")) or "/." in path:
            pass
        elif path.count("/") > _MOST_FOLDERS:
            self.left_out[_LONG] += 1
        elif member.kind in ("device", "sparse"):
            self.left_out["special file" if member.kind == "device" else "sparse file"] += 1
        elif member.kind != "folder":
            try:
                if self._is_free(path):
                    self._put(path, member)
            except OSError as error:
                if error.errno != errno.ENAMETOOLONG:
                    raise
                self.left_out[_LONG] += 1

    def _is_free(self, path: str) -> bool:
        """Return whether a file can be created at ``path``; create its folders."""
        above, missing = path, list[str]()
        while (above := posixpath.dirname(above)) not in self._folders:
            missing.append(above)
        if path in self._folders or (missing and (self._top / missing[-1]).exists()):
            self.left_out[_TAKEN] += 1
            return False
        self._hold(path, *missing)
        for folder in reversed(missing):
            disk.make_own_folder(self._top / folder)
            self._folders.add(folder)
        return True

    def _put(self, path: str, member: TarMember) -> None:
        """Write a file, or record a link; truncate an oversized page just above the limit."""
        place = self._top / path
        if member.kind == "link":
            same = _path(member.target)
            if same is None or not (self._top / same).is_file():
                self.left_out[_OUTSIDE if same is None else NOWHERE] += 1
            elif same != path:
                disk.remove(place)
                disk.link(self._top / same, place)
                self._links.pop(path, None)
            return
        self._links.pop(path, None)
        if member.kind == "symlink":
            disk.remove(place)
            self._links[path] = member.target
            return
        with disk.create_anew(place) as file:
            size = 0 if may_be_page(path) else LARGEST + 1
            while size <= LARGEST and (piece := member.read(_PIECE)):
                disk.write(file, piece)
                size += len(piece)
                self._size += len(piece)
                if self._size > self._most:
                    raise unpacks_to_more(self._job.source, self._most, "unzip")

    def _hold(self, *names: str) -> None:
        """Count the memory of names, all of which will be in memory together."""
        self._members += 1
        self._names += sum(_NAME + sys.getsizeof(name) for name in names)
        if self._names > self._most_names:
            raise ResourceError(
                f"{self._job.source.label} has too many members for the memory: {self._members:,} "
                f"files so far, and names may take {format_size(self._most_names)}, a quarter of "
                "the limit. Raise the limit with --memory (memory=...)"
            )

    def finish(self) -> Path:
        """Create the links; return the folder, or its only subfolder."""
        for path, text in self._links.items():
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), text))
            if path in self._folders:
                self.left_out[_TAKEN] += 1
                continue
            if text.startswith("/") or target.split("/")[0] == "..":
                self.left_out[OUTSIDE] += 1
                continue
            try:
                disk.symlink(text, self._top / path)
            except (OSError, ValueError):  # not a valid path
                self.left_out[NOWHERE] += 1
        found = self._top
        while len(inside := os.listdir(found)) == 1:
            only = found / inside[0]
            if only.is_symlink() or not only.is_dir():
                break
            found = only
        return found


def _path(name: str) -> str | None:
    """Return a member's path, or None if the path is invalid or outside the archive."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    return None if name.startswith("/") or ".." in parts or "\0" in name else "/".join(parts)


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
        except InputError as error:  # may be from a skipped member after this one
            raise InputError(f"{name[:200]!r} in {error}") from error


def _in_zip(job: Job) -> Iterator[TarMember]:
    stage, done = "unpacking " + job.source.short, 0
    if job.source.path is None or job.source.is_pipe or job.source.packed:
        raise UnrecognizedInput(
            f"{job.source.label} is a zip archive, which cannot be read as a stream: pass the "
            "file itself, without further compression"
        )
    with zipfile.ZipFile(job.source.path) as archive:
        for entry in archive.infolist():
            job.progress(stage, done, job.source.nbytes)
            done += entry.compress_size
            if entry.filename.endswith("/") or not entry.filename:
                continue
            mode = stat.S_IFMT(entry.external_attr >> 16)
            is_link = mode == stat.S_IFLNK
            if not is_link and not may_be_page(entry.filename):
                kind = "file" if mode in (0, stat.S_IFREG) else "device"
                yield TarMember(entry.filename, kind, "", io.BytesIO().read)
                continue
            with _unpacking(job, entry.filename), archive.open(entry) as content:
                if is_link:
                    text = os.fsdecode(content.read(_LONGEST_NAME + 1))
                    yield TarMember(entry.filename, "symlink", text, content.read)
                else:
                    yield TarMember(entry.filename, "file", "", content.read)


@contextmanager
def _unpacking(job: Job, member: str = "") -> Iterator[None]:
    """Convert errors to InputError, with the file and, if known, the member."""
    damaged: tuple[type[Exception], ...] = (tarfile.TarError, zipfile.BadZipFile, zlib.error)
    damaged += (ValueError, *unpack_errors())
    # The others: an encrypted archive, an unknown compression, or too little memory.
    caught: tuple[type[Exception], ...] = (*damaged, RuntimeError, MemoryError)
    at = f": {member[:200]}" if member else ""
    try:
        yield
    except UsageError:
        raise
    except InputError as error:
        if not member:
            raise
        raise InputError(f"{member[:200]!r} in {error}") from error
    except caught as error:
        what = str(error) or "it takes too much memory"
        again = "Fetch or copy the archive again"
        yourself = "Unpack the archive yourself, and pass the folder"
        advice = again if isinstance(error, damaged) else yourself
        raise InputError(
            f"{job.source.label}{at} cannot be unpacked: {what.removesuffix('.')}. {advice}"
        ) from error
