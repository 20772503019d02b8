"""Resolve links between notes, as in Obsidian.

A wiki link's target is a path from the root or, with ``./`` and ``../``, from the linking note. If
no note has that path, the link leads to a note whose path ends in the target, ignoring case. Notes
below the linking note's folder are preferred, then short paths. If there is no such note, the link
leads to a note that has the target as an alias.

A Markdown link's target is relative to its note, or to the root if the target begins with a slash;
suffixes may be missing or differ (.html matches .md). A folder's index or README is its page. Other
Markdown links are resolved like wiki links, unless they begin with a slash or a dot. No link leaves
the folder.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple
from urllib.parse import unquote

from cocite.io.readers.html.site import NOTE_ENDINGS
from cocite.io.readers.notes.note import MARKDOWN, WIKI

NOTE, AMBIGUOUS, FILE, EXTERNAL, NO_PAGE, BROKEN = range(6)
"""Kinds of targets: a note, the best of several notes, another file, a web page, another URL
(``mailto:``), or nothing.
"""
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")
_SUFFIXES = (*NOTE_ENDINGS, ".html", ".htm")
_INDEXES = ("index", "_index", "readme")


class Destination(NamedTuple):
    """A link's target: its kind, such as :data:`NOTE`, and the note's name or the URL."""

    kind: int
    name: str = ""


class Vault:
    """Names of notes, and paths of other files and folders; ``real`` resolves symbolic links."""

    def __init__(
        self,
        names: Iterable[str],
        files: Iterable[str] = (),
        folders: Iterable[str] = (),
        real: Callable[[str], str] = str,
    ) -> None:
        self._paths = _by(names, lambda path: path)
        self._last = _by(names, lambda path: path.rpartition("/")[2])
        self._aliases: dict[str, list[str]] = defaultdict(list)
        self._files = {_key(path) for path in files}
        self._file_names = {path.rpartition("/")[2] for path in self._files}
        self._folders = {_key(path) for path in folders}
        self._real = real
        for name in names:
            if "___" in name or "%" in name:  # Logseq's file name for a/b
                self.add_alias(unquote(name.rpartition("/")[2]).replace("___", "/"), name)

    def add_alias(self, alias: str, name: str) -> None:
        """Add an alias of a note."""
        known = self._aliases[_key(alias)]
        if name not in known:
            known.append(name)

    def find(self, kind: int, written: str, at: str) -> Destination:
        """Return a link's target; ``kind`` is an index in ``note.KINDS``, ``at`` its note."""
        if kind != WIKI and (found := _SCHEME.match(written)):
            web = found[0].lower() in ("http:", "https:")
            return Destination(EXTERNAL, written) if web else Destination(NO_PAGE)
        if kind != WIKI and written.startswith("//"):
            return Destination(EXTERNAL, written)
        target = written.partition("#")[0].strip()
        if kind != WIKI:
            target = unquote(target.partition("?")[0])
        if not target:
            return Destination(NOTE, at)
        found_at = self._at(target, at, kind == MARKDOWN)
        if found_at is None and not target.startswith(("/", "./", "../")):
            found_at = self._ending(target, at)
        return found_at or Destination(BROKEN)

    def _at(self, target: str, at: str, relative: bool) -> Destination | None:
        folder = at.rpartition("/")[0]
        bases = ["" if target.startswith("/") or not target.startswith(".") else folder]
        if relative and not target.startswith(("/", ".")):
            bases = [folder, ""]
        for base in bases:
            path = f"{base}/{target}".lstrip("/") if base else target.lstrip("/")
            if "." in path or path.endswith("/") or "//" in path:
                path = posixpath.normpath(path)
            if path == ".." or path.startswith("../"):
                return Destination(BROKEN)
            path = "" if path == "." else self._real(path)
            plain = _plain(path)
            if found := self._paths.get(_key(path)) or self._paths.get(_key(plain)):
                return _best(found, path if path in found else plain, at)
            if relative and (found := self._index_of(path)):
                return _best(found, path, at)
            if _key(path) in self._files or (relative and _key(path) in self._folders):
                return Destination(FILE)
        return None

    def _index_of(self, folder: str) -> list[str] | None:
        every = (self._paths.get(_key(posixpath.join(folder, index))) for index in _INDEXES)
        return next(filter(None, every), None) if _key(folder) in self._folders else None

    def _ending(self, target: str, at: str) -> Destination | None:
        """Return the note or other file whose path ends in ``target``, or a note by alias."""
        for each in dict.fromkeys((target, _plain(target))):
            key = _key(each)
            found = self._last.get(key.rpartition("/")[2], [])
            if "/" in key:
                found = [name for name in found if _key(name).endswith("/" + key)]
            if found:
                return _best(found, each, at)
        key = _key(target)
        if found := self._aliases.get(key, []):
            return _best(found, target, at)
        last = key.rpartition("/")[2]
        if last not in self._file_names:
            return None
        ends = "/" not in key or any(path.endswith("/" + key) for path in self._files)
        return Destination(FILE) if ends else None


def _best(names: list[str], written: str, at: str) -> Destination:
    """Return the best of several notes, by spelling, then folder, then length of the path."""
    if len(names) == 1:
        return Destination(NOTE, names[0])
    if written in names:
        return Destination(NOTE, written)
    folder = at.rpartition("/")[0]
    inside = f"{folder}/" if folder else ""
    order = sorted(names, key=lambda name: (not name.startswith(inside), len(name), name))
    return Destination(AMBIGUOUS, order[0])


def _by(names: Iterable[str], part: Callable[[str], str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(_key(part(name)), []).append(name)
    return found


def _plain(path: str) -> str:
    """Return a path without a suffix of notes or pages."""
    stem, dot, suffix = path.rpartition(".")
    return stem if dot and f".{suffix.lower()}" in _SUFFIXES else path


def _key(path: str) -> str:
    """Return a path in composed Unicode and lower case, for comparison."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", path).lower()
