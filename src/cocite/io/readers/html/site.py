"""A folder as a site: which files are pages, and which page a URL leads to.

Names of pages end in .html, .htm, .xhtml or .shtml, before or after a query if the name has one, as
saved by ``wget``. A file with no extension, or with a server-side script's (.php) before
any query, is a page if it begins like HTML. A URL leads to the file at its path with its query
(``p.php?id=2``), otherwise to the file at its path. If the path is a folder, the URL leads to its
index.html; if no file exists, to the file with .html appended, as on hosts of static sites.

All files are listed first, at a few hundred bytes each, and URLs lead only to these, so no link
leaves the folder. Symbolic links within the folder are aliases; others, and broken or circular
ones, are counted. Names that begin with a dot are skipped.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import quote, unquote

from cocite.errors import InputError
from cocite.io.readers import signs
from cocite.io.readers.sources import Beginning

HERE = "http://this.folder.invalid/"
"""Root of a site whose URL is unknown."""

_ENDINGS = (".html", ".htm", ".xhtml", ".xht", ".shtml")
_PROGRAMS = ("", ".php", ".asp", ".aspx", ".jsp", ".cgi", ".pl")
_INDEXES = dict.fromkeys("index" + ending for ending in _ENDINGS)
_TABLES = (".tsv", ".csv", ".parquet", ".pq", ".edges", ".el", ".jsonl", ".ndjson")
NOTE_ENDINGS = (".md", ".markdown", ".mdown", ".mkd")
_OF_NOTES = (".obsidian", ".foam", "logseq/config.edn")
"""Settings files and folders of note-taking programs."""
_PACKED = (".gz", ".bz2", ".xz", ".zst")
LARGEST = 1 << 25
"""Maximum size of a page in bytes."""
NOWHERE = "broken symbolic link"
OUTSIDE = "symbolic link to a target outside the folder"
_LONGEST_PATH = 4096
"""Maximum length of a path in any file system."""


def is_page_name(name: str) -> bool:
    """Return whether a file with this name is a page."""
    return name.lower().endswith(_ENDINGS) or _without_query(name).endswith(_ENDINGS)


def may_be_page(name: str) -> bool:
    """Return whether a file with this name may be a page, depending on its content."""
    return is_page_name(name) or os.path.splitext(_without_query(name))[1] in _PROGRAMS


def _without_query(name: str) -> str:
    """Return the name of a file in lower case, without its folders or query."""
    return name.lower().rpartition("/")[2].partition("?")[0]


def is_note_name(name: str) -> bool:
    """Return whether a file with this name is a Markdown note."""
    return name.lower().endswith(NOTE_ENDINGS)


def is_site(folder: Path) -> bool:
    """Return whether a folder has an index page, or more pages than tables."""
    pages, _, tables = _counts(folder)
    return pages > tables or _has_index(folder)


def is_vault(folder: Path) -> bool:
    """Return whether a folder belongs to a note-taking program."""
    return any((folder / name).exists() for name in _OF_NOTES)


def folder_kind(folder: Path) -> str:
    """Return the name of a folder's reader: ``notes``, ``html`` or "".

    The folder is read as notes if it belongs to a note-taking program, or has more notes than it
    has pages or tables; otherwise as HTML if :func:`is_site`.
    """
    if is_vault(folder):
        return "notes"
    pages, notes, tables = _counts(folder)
    if notes > max(pages, tables):
        return "notes"
    return "html" if pages > tables or _has_index(folder) else ""


def _has_index(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _INDEXES)


def _counts(folder: Path) -> tuple[int, int, int]:
    pages = notes = tables = 0
    for _, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            plain = name.lower()
            for packed in _PACKED:
                plain = plain.removesuffix(packed)
            pages += is_page_name(name)
            notes += is_note_name(name) and not name.startswith(".")
            tables += plain.endswith(_TABLES)
    return pages, notes, tables


class Site:
    """The files of a folder.

    ``pages``, ``files`` and ``folders`` are the sorted paths of pages, of all files, and of folders
    ("" is the root). ``names`` maps symbolic links to their targets. ``left_out`` counts skipped
    entries. ``called`` returns whether a file is a page by its name; by default, pages are HTML.
    """

    def __init__(self, path: Path, called: Callable[[str], bool] | None = None) -> None:
        self.path, self.root, self._called = path, HERE, called
        self.left_out: Counter[str] = Counter()
        self.files: set[str] = set()
        self.folders: set[str] = {""}
        self.names: dict[str, str] = {}
        self._top = os.path.realpath(path)
        for link in list(self._walk()):
            self._link(link)
        pages = (path for path in self.files if self._is_page(path))
        self.pages = sorted(pages, key=os.fsencode)
        self._pages = set(self.pages)

    def _walk(self) -> Iterator[str]:
        """Collect files and folders; yield symbolic links."""
        waiting = [""]
        while waiting:
            above = waiting.pop()
            try:
                entries = list(os.scandir(self.path / above))
            except FileNotFoundError:
                self.left_out["folder that no longer exists"] += 1
                continue
            except OSError as error:
                raise InputError(f"{self.path / above} cannot be read: {error.strerror}") from error
            for entry in entries:
                path = f"{above}/{entry.name}" if above else entry.name
                if entry.name.startswith("."):
                    continue
                if entry.is_symlink():
                    yield path
                elif entry.is_dir(follow_symlinks=False):
                    self.folders.add(path)
                    waiting.append(path)
                elif entry.is_file(follow_symlinks=False):
                    self.files.add(path)
                else:
                    self.left_out["special file"] += 1

    def _link(self, path: str) -> None:
        """Record a symbolic link as an alias of its target."""
        try:
            real = os.path.realpath(self.path / path, strict=True)
        except OSError:
            self.left_out[NOWHERE] += 1
            return
        inside = os.path.relpath(real, self._top)
        inside = "" if inside == "." else inside
        if inside in self.files or inside in self.folders:
            self.names[path] = inside
        else:
            self.left_out[OUTSIDE] += 1

    def _is_page(self, path: str) -> bool:
        if os.fsencode(path).decode("utf-8", "replace") != path:
            self.left_out["name that is not UTF-8"] += 1
            return False
        if self._called is not None:
            return self._called(path)
        if is_page_name(path):
            return True
        if not may_be_page(path):
            return False
        try:
            return signs.html(Beginning(self.read(path, 1 << 14)))
        except OSError:
            return False

    def read(self, path: str, most: int) -> bytes:
        """Return a file's first ``most`` bytes; raise OSError for a symbolic link."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(self.path / path, flags), "rb") as file:
            return file.read(most)

    def remove(self, pages: Iterable[str]) -> None:
        """Remove paths from ``pages``."""
        self._pages.difference_update(pages)
        self.pages = [page for page in self.pages if page in self._pages]

    # -- URLs ---------------------------------------------------------------------------

    def url_of(self, path: str) -> str:
        """Return a page's URL."""
        return self.root + quote(path)

    def is_inside(self, url: str) -> bool:
        """Return whether a URL belongs to this site."""
        return _plain(url).startswith(_plain(self.root))

    def page_at(self, url: str) -> str | None:
        """Return the page at an internal URL; "" for other files, None for missing ones."""
        path, _, query = _plain(url)[len(_plain(self.root)) :].partition("?")
        path = unquote(path, errors="surrogateescape")
        names = [f"{path}?{unquote(query, errors='surrogateescape')}"] if query else []
        every = (self._found(name) for name in (*names, path))
        found = next((each for each in every if each is not None), None)
        return found if found is None or found in self._pages else ""

    def _found(self, path: str) -> str | None:
        plain = path.rstrip("/")
        if len(plain) > _LONGEST_PATH:
            return None
        plain = self.real_path(plain)
        tries = [plain] if not path.endswith("/") else []
        if plain in self.folders:
            inside = f"{plain}/" if plain else ""
            tries = [self.names.get(inside + name, inside + name) for name in _INDEXES]
        tries += [plain + ending for ending in _ENDINGS[:2]]
        return next((name for name in tries if name in self.files), None)

    def real_path(self, path: str) -> str:
        """Return the path with symbolic links resolved."""
        while self.names and path not in self.files and path not in self.folders:
            end = len(path)
            while end > 0 and path[:end] not in self.names:
                end = path.rfind("/", 0, end)
            if end <= 0:
                break
            path = (self.names[path[:end]] + path[end:]).removeprefix("/")
        return path


def _plain(url: str) -> str:
    """Replace https with http, because a site has the same pages under both."""
    return "http:" + url[6:] if url.startswith("https:") else url
