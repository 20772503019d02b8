"""Where compiled kernels are kept: a directory that nobody else can write to.

What lies there is run as machine code, so a directory counts only if it is ours or root's, and
others can write neither to it nor to what leads to it. In this order:

    COCITE_CACHE                                 what the user says
    $XDG_CACHE_HOME/cocite, ~/.cache/cocite      on macOS ~/Library/Caches/cocite
    cocite-UID in the temporary directory        private; if the first cannot be used, which is said

A directory that can be read but not written, as in an image that root made, is read from; what is
missing there is kept in the private one. Where there is no private one either, kernels are compiled
by every process, and that is said, too.
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

__all__ = ["VARIABLE", "Place", "fault_of", "find_place", "place"]

VARIABLE = "COCITE_CACHE"

_OTHERS = stat.S_IWGRP | stat.S_IWOTH

_log = logging.getLogger("cocite")


@dataclass(frozen=True)
class Place:
    """``folders`` to read from, in this order; ``written`` is the one to write to, None if there is
    none. ``because`` says how it was chosen; ``note`` is what has to be told, and ``grave`` says
    whether something is wrong with what was asked for.
    """

    folders: tuple[Path, ...]
    written: Path | None
    because: str
    note: str = ""
    grave: bool = False


@cache
def place() -> Place:
    """That of this process; what has to be told is told the first time."""
    found = find_place(os.environ)
    if found.note:
        _log.log(logging.WARNING if found.grave else logging.INFO, found.note)
    return found


def find_place(environ: Mapping[str, str]) -> Place:
    """The place by these variables of the environment. Makes the directory if it is not there."""
    wanted, because = _wanted(environ)
    if wanted is None:
        return _private(because, grave=False)
    fault = fault_of(wanted)
    if fault:
        return _private(f"{wanted} is not used: {fault}", grave=True)
    # The user's own is nobody else's business; one that was chosen may be for several.
    _make(wanted, 0o755 if environ.get(VARIABLE) else 0o700)
    if os.access(wanted, os.R_OK | os.W_OK | os.X_OK):
        return Place((wanted,), wanted, because)
    beside = (wanted,) if os.access(wanted, os.R_OK | os.X_OK) else ()
    return _private(f"{wanted} cannot be written to", grave=False, beside=beside)


def _wanted(environ: Mapping[str, str]) -> tuple[Path | None, str]:
    """(directory, why this one); None if the environment has none."""
    if chosen := environ.get(VARIABLE):
        return Path(chosen).expanduser().absolute(), VARIABLE
    chosen = environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(chosen):  # others are to be ignored, by its specification
        return Path(chosen, "cocite"), "XDG_CACHE_HOME"
    home = environ.get("HOME", "")
    if not os.path.isabs(home):
        return None, "HOME is not set"
    return Path(home, *_CACHES, "cocite"), "the user's cache directory"


_CACHES = ("Library", "Caches") if sys.platform == "darwin" else (".cache",)


def _private(because: str, *, grave: bool, beside: tuple[Path, ...] = ()) -> Place:
    """A directory of our own in the temporary one, or none if there is something else there."""
    folder = Path(tempfile.gettempdir(), f"cocite-{os.geteuid()}")
    _make(folder, 0o700)
    fault = fault_of(folder)
    if not fault and (folder.is_symlink() or not os.access(folder, os.R_OK | os.W_OK | os.X_OK)):
        fault = "it cannot be written to"
    advice = f"{VARIABLE} names another place"
    if fault:
        note = f"{because}, nor {folder}: {fault}"
        note += f"; kernels are compiled anew by every command. {advice}"
        return Place(beside, None, because, note, grave=True)
    note = f"{because}; compiled kernels are kept in {folder}. {advice}"
    return Place((*beside, folder), folder, because, note, grave)


def fault_of(path: Path) -> str:
    """Why nothing may be loaded from ``path``, in words; empty if it may. What does not exist is
    judged by what leads to it.
    """
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
    """Make the directory and those that lead to it, writable by nobody else; it may fail."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    try:
        for each in reversed(missing):
            each.mkdir(mode if each == path else 0o755, exist_ok=True)
    except OSError:
        pass  # whoever asks for it sees that it cannot be written to
