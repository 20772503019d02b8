"""What is kept at the place: a folder for each version, a file for each kernel and its types.

A folder is named after a digest of what the machine code is made of: the sources of the kernels and
the numbers they share, and the versions of Numba, LLVM, NumPy and Python. So a release never meets
the code of another, and dates of files mean nothing (images of containers change them). Code that
checks bounds (``NUMBA_BOUNDSCHECK=1``, for tests) has a folder of its own, too. A file is named
after the kernel and a digest of its types and of the processor, so that processes that write side
by side write different files, or the same. What Numba keeps of a kernel is called ``.nbc``, what
runs without Numba ``.object`` (``native.py``).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cocite.compiled.place import Place

__all__ = ["Version", "folder_name", "load", "remove", "save", "versions_kept"]

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
    for source in [_SOURCES / "codes.py", *ours]:
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


def versions_kept(place: Place) -> list[Version]:
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
    gone = [each for each in versions_kept(place) if every or not each.current]
    for each in gone:
        shutil.rmtree(each.folder)
    return gone
