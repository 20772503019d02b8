"""The user's cache directory, which no other user can modify.

A directory is safe if this user or root owns it, and no other user can write to it or its parents.
The first safe directory is used:

    COCITE_CACHE                                 set by the user
    $XDG_CACHE_HOME/cocite, ~/.cache/cocite      on macOS ~/Library/Caches/cocite
    cocite-UID in the temporary directory        private, with a note
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

VARIABLE = "COCITE_CACHE"

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_USABLE = os.R_OK | os.W_OK | os.X_OK

_log = logging.getLogger("cocite")


@dataclass(frozen=True)
class CachePlace:
    """The chosen ``folder`` (None if no directory is safe), and the reason (``because``). ``note``
    is a message to the user; ``grave`` means that the user's own choice was rejected, or that no
    directory is safe.
    """

    folder: Path | None
    because: str
    note: str = ""
    grave: bool = False


@cache
def place() -> CachePlace:
    """Return this process's cache; the first call logs the note."""
    found = find_place(os.environ)
    if found.note:
        _log.log(logging.WARNING if found.grave else logging.INFO, found.note)
    return found


def find_place(environ: Mapping[str, str]) -> CachePlace:
    """Return the cache for these environment variables; creates a missing directory."""
    chosen, because = user_cache(environ)
    if named := environ.get(VARIABLE):
        chosen, because = Path(named).expanduser().absolute(), VARIABLE
    if chosen is None:
        return _private(because, grave=False)
    fault = fault_of(chosen)
    if fault:
        return _private(f"{chosen} is not used: {fault}", grave=True)
    # The user's own directory is private; a chosen one may be shared.
    _make(chosen, 0o755 if named else 0o700)
    if os.access(chosen, _USABLE):
        return CachePlace(chosen, because)
    return _private(f"{chosen} cannot be written to", grave=False)


def user_cache(environ: Mapping[str, str]) -> tuple[Path | None, str]:
    """Return (directory, reason); the directory is None without a home directory."""
    chosen = environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(chosen):  # the specification requires ignoring relative paths
        return Path(chosen, "cocite"), "XDG_CACHE_HOME"
    home = environ.get("HOME", "")
    if not os.path.isabs(home):
        return None, "HOME is not set"
    return Path(home, *_CACHES, "cocite"), "the user's cache directory"


_CACHES = ("Library", "Caches") if sys.platform == "darwin" else (".cache",)


def private_folder() -> Path:
    """Return the path of the user's directory in the temporary directory."""
    return Path(tempfile.gettempdir(), f"cocite-{os.geteuid()}")


def _private(because: str, *, grave: bool) -> CachePlace:
    """Return the user's directory in the temporary directory, or no folder if it is unsafe."""
    folder = private_folder()
    _make(folder, 0o700)
    fault = fault_of(folder)
    if not fault and (folder.is_symlink() or not os.access(folder, _USABLE)):
        fault = "it cannot be written to"
    advice = f"To choose another directory, set {VARIABLE}"
    if fault:
        note = f"{because}; {folder} is not used either: {fault}. {advice}"
        return CachePlace(None, because, note, grave=True)
    return CachePlace(folder, because, f"{because}; the cache is in {folder}. {advice}", grave)


def fault_of(path: Path) -> str:
    """Explain why ``path`` is unsafe, or return "". For a missing path, checks the parents."""
    inside, real = True, Path(os.path.realpath(path))
    for each in (real, *real.parents):
        try:
            found = each.stat()
        except FileNotFoundError:
            inside = False
            continue
        except OSError as error:
            return f"{each}: {error.strerror}"
        if not stat.S_ISDIR(found.st_mode):
            return f"{each} is not a directory"
        if found.st_uid not in (0, os.geteuid()):
            return f"{each} belongs to another user"
        own = inside and each == real
        sticky = found.st_mode & stat.S_ISVTX and not own
        if found.st_mode & (_OTHERS if own else stat.S_IWOTH) and not sticky:
            return f"others can write to {each}"
    return ""


def _make(path: Path, mode: int) -> None:
    """Create a directory and its parents, writable only by this user. Ignores failures."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    try:
        for each in reversed(missing):
            each.mkdir(mode if each == path else 0o755, exist_ok=True)
    except OSError:
        pass  # callers check for write access
