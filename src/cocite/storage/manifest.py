"""Manifests of stores.

``manifest.json`` is written last, so a directory without one is not a store. It contains the kind
(``graph``, ``index``), the format version, the facts, and the file entries, but no absolute paths,
and no times except the dates of refreshes, so equal input gives equal bytes. Checksums do not
detect attacks, so :class:`Facts` checks types and ranges.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.errors import Busy, Damaged, NotAStore, ResourceError, StoreError, WrongFormat
from cocite.resources import format_size
from cocite.storage.arrays import (
    DIGEST,
    REBUILD,
    Access,
    Entry,
    advise,
    checksum,
    evict,
    fetch,
    map_array,
    open_regular,
)

MANIFEST = "manifest.json"
FORMAT_VERSION = 5
_MAX_MANIFEST = 1 << 24
_PIECE = 1 << 20
"""Bytes of an array per read."""
_TRIES = 100
_DIGITS, _DEEPEST = 20, 20
"""Maximum number of characters in an integer, and maximum nesting depth of the facts."""
_MOST_NAMES = 10_000
"""Maximum number of names in a folder to compare with a mistyped name."""


@dataclass(frozen=True)
class Manifest:
    """A store's ``kind`` and ``facts``, and its ``files``: entries by name."""

    kind: str
    facts: dict[str, Any]
    files: dict[str, Entry] = field(default_factory=dict)

    def write(self, directory: Path) -> None:
        """Write the manifest to ``directory``, as the last file of a store. Raises
        :class:`~cocite.errors.ResourceError` if it is larger than readers accept.
        """
        value = {
            "cocite": self.kind,
            "format": FORMAT_VERSION,
            "facts": self.facts,
            "files": {name: self.files[name].to_json() for name in sorted(self.files)},
        }
        body = json.dumps(value, indent=1, ensure_ascii=False)
        value["checksum"] = _body_checksum(body)
        text = (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()
        if len(text) > _MAX_MANIFEST:
            raise ResourceError(
                f"the manifest of {directory} would take {format_size(len(text))}, for "
                f"{len(self.files):,} files; the limit is {format_size(_MAX_MANIFEST)}. Nothing "
                "was published. Reduce the number of files: more samples in each with --shard "
                "(shard=...), or fewer components and inputs"
            )
        from cocite.storage import disk
        from cocite.storage.atomic import staged_file

        with staged_file(directory / MANIFEST) as file:
            disk.write(file, text)

    @classmethod
    def read(cls, directory: Path, kind: str) -> Manifest:
        """Read and check the manifest of a store of the expected ``kind``."""
        path = directory / MANIFEST
        if not os.path.lexists(path):
            raise NotAStore(_not_a_store(directory, kind))
        try:
            value = _parsed(_read(path))
            stated = value.pop("checksum")
            found, version = value["cocite"], value["format"]
            facts, files = value["facts"], value["files"]
            checked = _body_checksum(json.dumps(value, indent=1, ensure_ascii=False))
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            raise Damaged(f"{path} cannot be read ({type(error).__name__}: {error})") from error
        if version != FORMAT_VERSION:
            raise WrongFormat(_other_format(directory, found, version))
        if stated != checked:
            raise Damaged(f"{path} does not match its own checksum: it was changed or truncated")
        if found != kind:
            raise NotAStore(_wrong_kind(directory, found, kind))
        if not (isinstance(facts, dict) and isinstance(files, dict)):
            raise Damaged(f"{path} lacks facts or files")
        entries = {name: Entry.from_json(name, entry) for name, entry in files.items()}
        return cls(kind, facts, entries)

    @property
    def nbytes(self) -> int:
        """Return the total bytes of all arrays."""
        return sum(entry.nbytes for entry in self.files.values())

    def digest(self, *prefixes: str) -> str:
        """Return one checksum of all files, or of the files with one of the ``prefixes``."""
        content = xxhash.xxh3_128()
        for name in sorted(self.files):
            if not prefixes or name.startswith(prefixes):
                entry = self.files[name]
                content.update(f"{name} {entry.dtype} {entry.shape} {entry.xxh3_128}\n".encode())
        return content.hexdigest()


@dataclass(frozen=True)
class Store:
    """An open store: the manifest and the mapped arrays. ``lost`` maps missing or damaged optional
    files to their faults.

    A store of in-memory data also has ``home``, an object that must live as long as the store
    (``storage/spool.py``), and ``labels``, the original names (``graph/name_files.py``).

    Before using a file, verify it with ``require``, which compares each checksum once per open
    store, unless ``verifying`` is false.
    """

    path: Path
    manifest: Manifest
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False)
    lost: dict[str, str] = field(default_factory=dict)
    home: object = field(default=None, repr=False, compare=False)
    labels: object = field(default=None, repr=False, compare=False)
    verifying: bool = field(default=True, repr=False, compare=False)
    _valid: set[str] = field(default_factory=set, repr=False, compare=False)

    @classmethod
    def open(
        cls,
        path: str | Path,
        kind: str,
        access: Access = Access.AROUND,
        spare: Callable[[str], bool] = lambda name: False,
        *,
        verify: bool = True,
    ) -> Store:
        """Open the store in ``path`` for an access pattern; raises a
        :class:`~cocite.errors.StoreError`.

        Files for which ``spare`` is true may be missing or truncated. Opening reads no contents;
        ``verify`` enables verification on first use.

        All files are mapped at once, and again if the directory was replaced meanwhile. So an open
        store is consistent, and remains usable after a replacement.
        """
        directory = Path(path)
        for attempt in range(_TRIES):
            before = _identity(directory)
            try:
                manifest = Manifest.read(directory, kind)
                arrays, lost = _mapped(directory, manifest, spare)
            except StoreError:
                if _identity(directory) == before or attempt + 1 == _TRIES:
                    raise
                continue
            if _identity(directory) == before:
                advise(access, *arrays.values())
                return cls(directory, manifest, arrays, lost, verifying=verify)
        raise Busy(f"{directory} is being replaced repeatedly; try later")

    @property
    def facts(self) -> dict[str, Any]:
        """Return the manifest's facts."""
        return self.manifest.facts

    @property
    def nbytes(self) -> int:
        """Return the total bytes of all arrays."""
        return self.manifest.nbytes

    def advise(self, access: Access) -> None:
        """Declare the access pattern of all arrays."""
        advise(access, *self.arrays.values())

    def evict(self) -> None:
        """Release the mapped memory of all arrays."""
        evict(*self.arrays.values())

    def array(self, name: str) -> NDArray[Any]:
        """Return the mapped array ``name``."""
        if name not in self.arrays:
            raise Damaged(f"{self.path} has no {name} in its manifest")
        return self.arrays[name]

    def has(self, name: str) -> bool:
        """Return whether the manifest lists ``name``."""
        return name in self.manifest.files

    def surplus(self) -> list[str]:
        """Return the directory's files outside the store; ignore an empty marker."""
        listed = {*self.manifest.files, MANIFEST}
        with os.scandir(self.path) as entries:
            return sorted(e.name for e in entries if e.name not in listed and not _is_mark(e))

    def require(self, *names: str) -> None:
        """Verify files that are not lost, if ``verifying``; raises :class:`Damaged`. Reads each
        array once, in chunks, evicting each chunk after use.
        """
        for name in names:
            if not self.verifying or name in self._valid or name in self.lost:
                continue
            array, digest = self.array(name), xxhash.xxh3_128()
            items = max(1, _PIECE // max(1, array.nbytes // max(1, len(array))))
            for low in range(0, len(array), items):
                piece = array[low : low + items]
                fetch(piece)
                digest.update(piece.reshape(-1).view(np.uint8).data)
                evict(piece)
            if digest.hexdigest() != self.manifest.files[name].xxh3_128:
                raise Damaged(f"{self._differs(name, digest.hexdigest())}. {REBUILD}")
            self._valid.add(name)

    def verify(self, name: str) -> str | None:
        """Read a file in full; describe the damage, or return None."""
        entry = self.manifest.files[name]
        try:
            found = checksum(self.path / name, entry)
        except Damaged as error:
            return str(error)
        return None if found == entry.xxh3_128 else self._differs(name, found)

    def _differs(self, name: str, found: str) -> str:
        stated = self.manifest.files[name].xxh3_128
        return f"{self.path / name} has checksum {found}; the manifest says {stated}"


def _mapped(
    directory: Path, manifest: Manifest, spare: Callable[[str], bool]
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Map all files; return (arrays, faults of lost files), both by name."""
    arrays, lost = {}, {}
    for name, entry in manifest.files.items():
        try:
            arrays[name] = map_array(directory / name, entry)
        except Damaged as error:
            if not spare(name):
                raise
            lost[name] = str(error)
    return arrays, lost


def _is_mark(entry: os.DirEntry[str]) -> bool:
    from cocite.storage.atomic import MARK  # reading needs it only for a folder without a manifest

    plain = entry.name == MARK and entry.is_file(follow_symlinks=False)
    return plain and not entry.stat(follow_symlinks=False).st_size


def _identity(directory: Path) -> tuple[int, int] | None:
    """Return an identity that changes when the directory is replaced, or None without a
    directory.
    """
    try:
        status = directory.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _read(path: Path) -> bytes:
    """Read a manifest, which must be a regular file of limited size."""
    with os.fdopen(open_regular(path), "rb") as file:
        content = file.read(_MAX_MANIFEST + 1)
    if len(content) > _MAX_MANIFEST:
        raise Damaged(f"{path} is larger than {_MAX_MANIFEST} bytes: not a manifest")
    return content


def _parsed(content: bytes) -> Any:
    """Parse a manifest's JSON; raises :class:`ValueError` for values that no manifest contains."""
    value = json.loads(content, parse_constant=_finite, parse_float=_finite, parse_int=_whole)
    if isinstance(value, dict) and not _shallow(value.get("facts"), _DEEPEST):
        raise ValueError(f"facts are nested more than {_DEEPEST} levels deep")
    return value


def _finite(text: str) -> float:
    if not math.isfinite(found := float(text)):
        raise ValueError(f"{text} is not a finite number")
    return found


def _whole(text: str) -> int:
    if len(text) > _DIGITS or not -(2**63) <= (found := int(text)) < 2**64:
        raise ValueError(f"{text[:_DIGITS]}... is not a 64-bit integer")
    return found


def _shallow(value: Any, most: int) -> bool:
    """Return whether lists and objects are nested at most ``most`` levels deep."""
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return most > 0 and all(_shallow(each, most - 1) for each in inner)


def _body_checksum(body: str) -> str:
    return xxhash.xxh3_128(body.encode()).hexdigest()


def kind_of(path: str | Path) -> str | None:
    """Return the kind of the store at ``path``, or None without a store."""
    try:
        value = json.loads(_read(Path(path) / MANIFEST))
        return str(value["cocite"])
    except (Damaged, OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _other_format(directory: Path, found: object, version: object) -> str:
    """Describe a store's unsupported format, and what to do."""
    reads = f"this release reads format {FORMAT_VERSION}"
    message = f"{directory} has format {str(version)[:20]}; {reads}"
    if isinstance(version, int) and version > FORMAT_VERSION:
        return f"{message}. Update cocite: a newer release wrote it"
    return f"{message}. Rebuild it with: cocite " + ("ingest" if found == "graph" else "index")


def _not_a_store(directory: Path, kind: str) -> str:
    if directory.name and os.path.isdir(directory.with_name(directory.name + ".building")):
        return (
            f"{directory} is not finished: it is being built, or its build was interrupted. "
            "Repeat the command that started it to continue"
        )
    if not os.path.lexists(directory):
        message = f"{directory} does not exist.{_nearby(directory)}"
        if directory.suffix not in ("", f".{kind}"):
            return message.removesuffix(".")  # a file by its name, not a store to be created
        maker = "cocite ingest LINKS" if kind == "graph" else "cocite index GRAPH"
        return f"{message} To create a stored {kind}: {maker} -o {directory}"
    if os.path.isdir(directory):
        return f"{directory} has no {MANIFEST}: it is not a stored {kind}"
    more = "" if kind == "graph" else ", and an index of it: cocite index"
    return (
        f"{directory} is a file; a stored {kind} is a directory. To create a graph from an edge "
        f"list: cocite ingest {directory} -o OUTPUT{more}"
    )


def _nearby(path: Path) -> str:
    """Return " Did you mean ...?" with similar names in the same folder, or ""."""
    from difflib import get_close_matches  # loaded only for mistyped names

    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in islice(entries, _MOST_NAMES)]
    except OSError:
        return "" if os.path.lexists(path.parent) else f" Neither does {path.parent}."
    near = get_close_matches(path.name, names, 2, 0.7)
    return f" Did you mean {' or '.join(str(path.with_name(n)) for n in near)}?" if near else ""


def _wrong_kind(directory: Path, found: str, kind: str) -> str:
    message = f"{directory} is a stored {found}; a stored {kind} is needed here"
    if (found, kind) == ("graph", "index"):
        message += f". To create an index from it: cocite index {directory} -o OUTPUT"
    return message


_MOST = 2**63 - 1
_LONGEST_NAME, _LONGEST_PATH = 255, 4096
"""Maximum bytes in a file name, and characters in a path, on current systems."""


class Facts:
    """Checked access to a manifest's values; ``place`` describes their location in messages. All
    methods raise :class:`Damaged`.
    """

    def __init__(self, values: object, place: str) -> None:
        if not isinstance(values, dict):
            raise Damaged(f"{place} is {_short(values)}; it must be an object. {REBUILD}")
        self.values: dict[str, Any] = values
        """All values, unchecked."""
        self._place = place

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def _value(self, name: str) -> Any:
        if name not in self.values:
            raise Damaged(f"{self._place} has no {name}. {REBUILD}")
        return self.values[name]

    def whole(self, name: str, least: int = 0, most: int = _MOST) -> int:
        """Return an integer."""
        found = self._value(name)
        if type(found) is int and least <= found <= most:
            return found
        raise self.refused(name, f"a whole number from {least} to {most}")

    def number(self, name: str, least: float, most: float) -> float:
        """Return a finite number."""
        found = self._value(name)
        if type(found) in (int, float) and least <= found <= most and abs(found) < float("inf"):
            return float(found)
        raise self.refused(name, f"a number from {least:g} to {most:g}")

    def flag(self, name: str) -> bool:
        """Return a boolean."""
        found = self._value(name)
        if type(found) is bool:
            return found
        raise self.refused(name, "true or false")

    def text(self, name: str, choices: Sequence[str] = ()) -> str:
        """Return a string, one of ``choices`` if given."""
        found = self._value(name)
        if isinstance(found, str) and (not choices or found in choices):
            return found
        raise self.refused(name, " or ".join(choices) or "a string")

    def digest(self, name: str) -> str:
        """Return an XXH3-128 checksum in hex."""
        if DIGEST.fullmatch(self.text(name)):
            return self.text(name)
        raise self.refused(name, "a checksum of 32 hexadecimal digits")

    def relative(self, name: str) -> str:
        """Return a path relative to the store. It may lead outside, but nothing is written
        there.
        """
        found = self.text(name)
        if found and "\0" not in found and not found.startswith("/") and not _is_too_long(found):
            return found
        raise self.refused(name, "a relative path")

    def group(self, name: str) -> Facts:
        """Return a nested object."""
        return Facts(self._value(name), f"{self._place}, {name},")

    def groups(self, name: str) -> list[Facts]:
        """Return a list of nested objects."""
        found = self._value(name)
        if not isinstance(found, list):
            raise self.refused(name, "a list")
        return [Facts(each, f"{self._place}, {name}[{i}],") for i, each in enumerate(found)]

    def same_as(self, expected: Mapping[str, object]) -> None:
        """Check that the values equal ``expected``."""
        for name, value in expected.items():
            if self._value(name) != value:
                raise self.refused(name, _short(value))
        for name in self.values.keys() - expected.keys():
            raise self.refused(name, "absent")

    def refused(self, name: str, allowed: str) -> Damaged:
        """Return the exception for a value other than ``allowed``."""
        found = _short(self.values.get(name))
        return Damaged(
            f"{self._place} says that {name} is {found}; it must be {allowed}. {REBUILD}"
        )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _is_too_long(path: str) -> bool:
    """Return whether a path is longer than any system supports."""
    longest = max(len(name.encode("utf-8", "surrogatepass")) for name in path.split("/"))
    return longest > _LONGEST_NAME or len(path) > _LONGEST_PATH
