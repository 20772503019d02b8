"""Of what that was made which is kept of a file of links: where it lies, and if it is still whole.

The mark, ``made-of.json``, says of what a folder was made (:func:`state_of`), and which of its
indexes are whole. A folder without a mark is not ours. ``kept.py`` makes and asks what is in it.

Cost: that of looking at files, and opening them.
"""

from __future__ import annotations

import glob
import hashlib
import itertools
import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cocite import __version__
from cocite.errors import StoreError, UsageError
from cocite.graph.patterns import KEPT_ENDING, glob_files
from cocite.store import FORMAT_VERSION, Store, disk, written_beside

__all__ = [
    "ENDING",
    "INDEX",
    "MARK",
    "TITLES",
    "digest_of",
    "file_of",
    "indexes_in",
    "is_whole",
    "mark_of",
    "matches_of",
    "opens",
    "places_of",
    "state_of",
    "titles_before",
    "write_mark",
]

ENDING = KEPT_ENDING
INDEX, TITLES = "index", "titles"
MARK, KIND = "made-of.json", "links"
_log = logging.getLogger("cocite")


def file_of(links: str) -> Path | None:
    """The file or folder of that name, or the pattern of several; None for what can be read once
    only.
    """
    if matches_of(links):
        return Path(links)
    if links != "-" and os.path.isdir(links):
        unnamed = Path(links).name in ("", "..")
        return Path(os.path.abspath(links)) if unnamed else Path(links)
    return Path(links) if links != "-" and os.path.isfile(links) else None


def matches_of(links: str) -> list[str]:
    """The files that a pattern stands for; none if it is the name of a file, or no pattern."""
    if not glob.has_magic(links) or os.path.exists(links):
        return []
    return glob_files(links)


def digest_of(exclude: Sequence[str]) -> str:
    """The same of the same names, in any order; empty if nothing is left out."""
    names = json.dumps(sorted(set(exclude))).encode()
    return hashlib.sha256(names).hexdigest()[:12] if exclude else ""


def places_of(
    file: Path,
    environ: Mapping[str, str],
    without: str = "",
    sides: tuple[str, str] | None = None,
    dialect: Mapping[str, str] | None = None,
) -> list[Path]:
    """Beside the file, then in the user's cache directory, under a name of the file's own."""
    ending = f".without-{without}{ENDING}" if without else ENDING
    ending = (
        f".read-{digest_of([json.dumps(dialect, sort_keys=True)])}{ending}" if dialect else ending
    )
    ending = f".bipartite-{'-'.join(sides)}{ending}" if sides else ending
    named = file
    if matches_of(str(file)):  # beside the folder that they are in
        parts = itertools.takewhile(lambda part: not glob.has_magic(part), file.parts)
        folder = Path(*parts)
        digest = hashlib.sha256(os.fsencode(str(file))).hexdigest()[:12]
        named = folder.with_name(f"{folder.name}-{digest}") if folder.name else Path(digest)
    places = [named.with_name(named.name + ending)] if named.name else []
    cache = environ.get("XDG_CACHE_HOME", "")
    home = environ.get("HOME", "")
    if not os.path.isabs(cache) and os.path.isabs(home):
        cache = os.path.join(home, ".cache")
    if os.path.isabs(cache):
        whole = os.fsencode(file.resolve())
        name = f"{named.name[:100]}-{hashlib.sha256(whole).hexdigest()[:12]}{ending}"
        places.append(Path(cache, "cocite", KIND, name))
    return places


def state_of(file: Path, without: str = "", titles: Sequence[str] = ()) -> dict[str, Any]:
    """What changes if the file does, or what is made of it."""
    more: dict[str, Any] = {"without": without} if without else {}
    if titles:
        more[TITLES] = [each for name in titles for each in _state_of_titles(name)]
    if file.is_dir():
        from cocite.graph.readers.html.site import listing

        size, changed, more["listing"] = listing(file)
    elif matches := matches_of(str(file)):
        stats = [os.stat(name) for name in matches]
        told = [[n, s.st_size, s.st_mtime_ns] for n, s in zip(matches, stats, strict=True)]
        more["listing"] = hashlib.sha256(json.dumps(told).encode()).hexdigest()
        size, changed = sum(s.st_size for s in stats), max(s.st_mtime_ns for s in stats)
    else:
        found = file.stat()
        size, changed = found.st_size, found.st_mtime_ns
    return more | {
        "file": file.name,
        "bytes": size,
        "mtime_ns": changed,
        "release": __version__,
        "format": FORMAT_VERSION,
    }


def _state_of_titles(name: str) -> list[list[Any]]:
    """The name of a table of titles with its whole path, and what changes if its file does, that
    which SQLite writes beside it, too; none if it is not there. Raises :class:`UsageError` for a
    server, whose tables change without a trace.
    """
    from cocite.graph.readers.title_table import file_of_titles

    whole, file = file_of_titles(name)
    if file is None:
        raise UsageError(
            f"{whole} is a server, whose titles may change and nothing tells: store them with a "
            "graph, cocite ingest LINKS --titles ADDRESS -o DIR, and ask that"
        )
    stats = [p.stat() for p in (file, file.with_name(f"{file.name}-wal")) if p.exists()]
    if not file.exists():
        return []
    return [[whole, sum(s.st_size for s in stats), max(s.st_mtime_ns for s in stats)]]


def mark_of(folder: Path) -> dict[str, Any] | None:
    """What a folder says it is made of; None if it is not one of ours."""
    try:
        found = json.loads((folder / MARK).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("cocite") == KIND else None


def write_mark(folder: Path, state: Mapping[str, Any], **parts: bool) -> None:
    """Say of what a folder is made, and which of its ``parts`` are whole."""
    with written_beside(folder / MARK) as out:
        disk.write(out, json.dumps({"cocite": KIND, **state, **parts}, indent=1).encode())


def opens(store: Path, kind: str) -> bool:
    """Whether all its files are there, each as long as it is to be."""
    try:
        Store.open(store, kind)
    except StoreError:
        return False
    return True


def is_whole(folder: Path, now: Mapping[str, Any], index: str | None) -> bool:
    """Whether its graph is of the file as it is now, and its index of that name if any."""
    mark = mark_of(folder) or {}
    return (
        all(mark.get(key) == value for key, value in now.items())
        and opens(folder / "graph", "graph")
        and (index is None or (mark.get(index) is True and opens(folder / index, "index")))
    )


def indexes_in(folder: Path) -> list[str]:
    """The indexes in a folder of ours."""
    names = [entry.name for entry in folder.iterdir()]
    return sorted(name for name in names if name == INDEX or name.startswith(INDEX + "-"))


def titles_before(places: Sequence[Path]) -> tuple[str, ...]:
    """The tables of titles that were named for the same file, as the first of the places that knows
    some says: none if one is gone, for what is kept of it is better than titles of the others.
    """
    for folder in places:
        told = (mark_of(folder) or {}).get(TITLES)
        if isinstance(told, list) and told:
            names = tuple(str(each[0]) for each in told if isinstance(each, list) and each)
            gone = [name for name in names if not _state_of_titles(name)]
            if gone:
                _log.warning(
                    f"{gone[0]}, a table of titles, is not there any more: titles are those of "
                    "before, or none where the links have changed. Name another with --titles"
                )
            return () if gone else names
    return ()
