"""What is kept at the place: a folder for each version, a file for each kernel and its types.

A folder is named after a digest of what the machine code is made of: the sources of the kernels and
the numbers they share, and the versions of Numba, LLVM, NumPy and Python. So a release never meets
the code of another, and dates of files mean nothing (images of containers change them). Code that
checks bounds (``NUMBA_BOUNDSCHECK=1``, for tests) has a folder of its own, too. A file is named
after the kernel and a digest of its types and of the processor, so that processes that write side
by side write different files, or the same. What Numba keeps of a kernel is called ``.nbc``, what
runs without Numba ``.object`` (``compiled/native.py``).

Where compiled kernels are kept: a directory that nobody else can write to.

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

import json
import logging
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

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
    wanted, because = _enabled(environ)
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


def _enabled(environ: Mapping[str, str]) -> tuple[Path | None, str]:
    """(directory, why this one); None if the environment has none."""
    if chosen := environ.get(VARIABLE):
        return Path(chosen).expanduser().absolute(), VARIABLE
    return user_cache(environ)


def user_cache(environ: Mapping[str, str]) -> tuple[Path | None, str]:
    """The user's own cache directory of cocite, and which variable says so; None if none does."""
    chosen = environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(chosen):  # others are to be ignored, by its specification
        return Path(chosen, "cocite"), "XDG_CACHE_HOME"
    home = environ.get("HOME", "")
    if not os.path.isabs(home):
        return None, "HOME is not set"
    return Path(home, *_CACHES, "cocite"), "the user's cache directory"


_CACHES = ("Library", "Caches") if sys.platform == "darwin" else (".cache",)


def private_folder() -> Path:
    """The directory of this user in the temporary one."""
    return Path(tempfile.gettempdir(), f"cocite-{os.geteuid()}")


def _private(because: str, *, grave: bool, beside: tuple[Path, ...] = ()) -> Place:
    """A directory of our own in the temporary one, or none if there is something else there."""
    folder = private_folder()
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


# -- kept --------------------------------------------------------------------------------


ABOUT = "about.json"
"""What a folder is made by, for people."""

_FOLDER = re.compile(r"kernels-[0-9a-f]{16}")
_SOURCES = Path(__file__).parents[1]
_DIGEST = 16
_MADE_BY = "cocite", "numba", "llvmlite", "numpy"


@cache
def versions() -> dict[str, str]:
    """The versions that a folder is made by."""
    from importlib.metadata import version

    made_by = {name: version(name) for name in _MADE_BY} | {"python": _python()}
    return made_by | ({"bounds": "checked"} if _checked() else {})


@cache
def folder_name() -> str:
    """That of the kernels as they are now."""
    digest = blake2b(f"{_python()} {_checked()}".encode(), digest_size=8)
    for name in _MADE_BY[1:]:
        digest.update(_version_of(name))
    ours = sorted(_SOURCES.glob("kernels/*.py")) + sorted(_SOURCES.glob("compiled/native.py"))
    for source in [_SOURCES / "constants.py", *ours]:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return f"kernels-{digest.hexdigest()}"


def _version_of(name: str) -> bytes:
    """What a package's file says of its version: that takes no time, neither to import the package
    nor what looks for its metadata.
    """
    found = find_spec(name)
    for folder in (found.submodule_search_locations or ()) if found else ():
        for file in ("_version.py", "version.py"):
            try:
                return Path(folder, file).read_bytes()
            except FileNotFoundError:
                continue
    return versions()[name].encode()


def _python() -> str:
    return f"{sys.implementation.cache_tag} {sys.version.split()[0]}"


def _checked() -> bool:
    """Whether bounds are: Numba says nothing of it in what it calls a kernel by."""
    return os.environ.get("NUMBA_BOUNDSCHECK", "").strip() not in ("", "0")


# -- files -------------------------------------------------------------------------------


def load(place: Place, name: str) -> bytes | None:
    """What is kept under a name; None if there is nothing, or nothing that is whole and safe."""
    for folder in place.folders:
        kept = _read(folder / folder_name(), name)
        if kept is not None and _digest(kept[_DIGEST:]) == kept[:_DIGEST]:
            return kept[_DIGEST:]
    return None


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST).digest()


def _read(folder: Path, name: str) -> bytes | None:
    """The bytes of a file; None unless both it and its folder are ours, or root's, alone."""
    try:
        with open(folder / name, "rb") as file:
            if _ours(os.stat(folder)) and _ours(os.fstat(file.fileno())):
                return file.read()
    except OSError:
        pass
    return None


def _ours(found: os.stat_result) -> bool:
    others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return found.st_uid in (0, os.geteuid()) and not others


def save(place: Place, name: str, data: bytes) -> None:
    """Keep ``data`` under a name, at once or not at all; raises ``OSError`` where that fails."""
    if place.written is None:
        return
    folder = place.written / folder_name()
    folder.mkdir(0o755, exist_ok=True)
    if not (folder / ABOUT).exists():
        _write(folder, ABOUT, json.dumps(versions(), indent=1).encode())
    _write(folder, name, _digest(data) + data)


def _write(folder: Path, name: str, data: bytes) -> None:
    number, beside = tempfile.mkstemp(dir=folder, prefix=f".{name[:32]}-")
    try:
        with open(number, "wb") as file:
            file.write(data)
        readable = stat.S_IMODE(os.stat(folder).st_mode) & 0o444
        os.chmod(beside, readable | 0o600)
        os.replace(beside, folder / name)
    except BaseException:
        os.unlink(beside)
        raise


# -- folders -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Version:
    """A folder of kernels: whether it is of now, how many, how large, by which versions."""

    folder: str
    current: bool
    kernels: int
    bytes: int
    made_by: dict[str, Any]


def cached_versions(place: Place) -> list[Version]:
    """All folders, that of now first and then the newest first."""
    found = [(path, path.stat().st_mtime) for path in _folders(place)]
    found.sort(key=lambda each: (each[0].name != folder_name(), -each[1]))
    return [_version(path) for path, _ in found]


def _folders(place: Place) -> Iterator[Path]:
    for folder in place.folders:
        if folder.is_dir():
            for path in folder.iterdir():
                if _FOLDER.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
                    yield path


def _version(path: Path) -> Version:
    files = [file for file in path.rglob("*") if file.is_file()]
    kernels = sum(file.suffix == ".nbc" for file in files)
    try:
        about = json.loads((path / ABOUT).read_text("utf-8"))
    except (OSError, ValueError):
        about = None
    made_by = about if isinstance(about, dict) else {}
    size = sum(file.stat().st_size for file in files)
    return Version(str(path), path.name == folder_name(), kernels, size, made_by)


def remove(place: Place, every: bool = False) -> list[Version]:
    """Remove the folders of other versions than that of now, or ``every`` one; returns them.

    Nothing else at the place is touched. A folder that cannot be removed raises ``OSError``.
    """
    gone = [each for each in cached_versions(place) if every or not each.current]
    for each in gone:
        shutil.rmtree(each.folder)
    return gone
