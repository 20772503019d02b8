"""A file of links, asked as if it were an index: what is made of it is kept beside it.

    links.tsv
    links.tsv.cocite/   made-of.json   the size and time of links.tsv then, and the release
                        graph/         as ``ingest`` makes it
                        index/         as ``build`` makes it, of the default measure
                        index-0f3a.../ the same of another measure, or with other settings, if such
                                       a question was asked; its manifest says which
    links.tsv.without-9c1d....cocite/  the same of a graph from which pages are left out, by which

It is used again while the file has the same size and time of its last change (in nanoseconds), and
made anew else; that of a folder of HTML pages while all its files have. Where there is no place
beside the file, it is kept in the user's cache directory; where there is none either, or nothing is
to be kept, in a temporary one, which goes afterwards.

``made-of.json`` is there before anything else, as the folder's mark, and says what it is made of
only when that is whole. Graph and index are published by one rename each, so that an interruption
leaves nothing half-written: a graph that was done is not read again, an index goes on.

What is there is looked at before it is asked: files that are missing, or cut, are made again. Bytes
that have changed are found when they are read; whoever finds them forgets what is kept
(:func:`forget`), and has it made anew.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocite import __version__
from cocite.errors import InputError, StoreError
from cocite.graph import Graph
from cocite.means import Means
from cocite.measures import DEFAULT
from cocite.store import FORMAT_VERSION, Store, disk, kind_of, written_beside
from cocite.store.beside import is_private
from cocite.store.building import is_still, lock

if TYPE_CHECKING:
    from cocite.index.plan import BuildOptions

__all__ = ["ENDING", "Kept", "forget", "is_links", "keep", "kept_of"]

_MARK = "made-of.json"
_KIND = "links"
_INDEX = "index"
ENDING = ".cocite"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Kept:
    """What there is of a file of links: ``made`` now, or found; ``why`` it is in no better place.

    ``temporary`` holds the folder if it is to go with it; ``name`` is what the index is called.
    """

    folder: Path
    made: bool
    why: str
    temporary: tempfile.TemporaryDirectory[str] | None
    name: str = _INDEX

    @property
    def graph(self) -> Path:
        """The stored graph."""
        return self.folder / "graph"

    @property
    def index(self) -> Path:
        """The index of it."""
        return self.folder / self.name

    @property
    def nbytes(self) -> int:
        """Size of the arrays on disk."""
        parts = [(self.graph, "graph"), (self.index, "index")]
        return sum(Store.open(path, kind).nbytes for path, kind in parts if path.exists())


def is_links(path: str) -> bool:
    """Whether ``path`` is to be read as a file of links: a file or a pipe, or ``-``, or a folder of
    HTML pages.
    """
    if path == "-" or not os.path.isdir(path):
        return path == "-" or os.path.exists(path)
    from cocite.graph.readers.site import is_site  # of a file nobody waits for the readers

    return kind_of(path) is None and is_site(Path(path))


def kept_of(links: str) -> list[Path]:
    """What is kept of a file of links as it is now: the graph, if it is there, and indexes."""
    file = _file(links)
    if file is None:
        return []
    now = _state(file)
    for folder in _places(file, os.environ):
        if _is_whole(folder, now, None):
            indexes = [folder / name for name in _indexes(folder)]
            return [folder / "graph", *(p for p in indexes if _is_whole(folder, now, p.name))]
    return []


def keep(
    links: str,
    *,
    index: bool = True,
    options: BuildOptions | None = None,
    exclude: Sequence[str] = (),
    titles: Sequence[str] = (),
    cache: bool = True,
    threads: int | None = None,
    memory: str | int | None = None,
    progress: Progress = lambda stage, done, total: None,
) -> Kept:
    """The graph of a file of links, and an ``index`` of it if wanted, found or made: the default
    one, or that of ``options``, which is kept beside it. Pages in ``exclude`` are left out.
    ``titles`` are tables of titles: what is kept without them, or of others, is made anew, and what
    is kept with some is found without naming them.

    Raises what :func:`~cocite.ingest` and :func:`~cocite.build` raise, and :class:`InputError` if
    the file changes while it is read.
    """
    file = _file(links)
    without = _digest(exclude)
    places = _places(file, os.environ, without) if file is not None and cache else []
    means = {"threads": threads, "memory": memory}
    now = None if file is None else _state(file, without, titles)
    given = tuple(exclude), tuple(titles)
    name = _INDEX if options is None else _called(options)
    part = name if index else None
    for folder in places:
        if now is not None and _is_whole(folder, now, part):
            return Kept(folder, False, "", None, name)
    why = ""
    for folder in places:
        with _claimed(folder, progress) as fault:
            if not fault:
                # Whoever had the folder before us may have made it all.
                found = now is not None and _is_whole(folder, now, part)
                if not found:
                    _make(links, folder, file, part, options, given, means, progress)
                return Kept(folder, not found, why, None, name)
        why = why or fault
    temporary = tempfile.TemporaryDirectory(prefix="cocite-")
    try:
        _make(links, Path(temporary.name), file, part, options, given, means, progress)
    except BaseException:
        temporary.cleanup()
        raise
    return Kept(Path(temporary.name), True, why, temporary, name)


def _file(links: str) -> Path | None:
    """The file or folder of that name; None for what can be read once only."""
    if links != "-" and os.path.isdir(links):
        unnamed = Path(links).name in ("", "..")
        return Path(os.path.abspath(links)) if unnamed else Path(links)
    return Path(links) if links != "-" and os.path.isfile(links) else None


def _called(options: BuildOptions) -> str:
    """What an index of these options is called: the same whenever they are the same."""
    from cocite.index.plan import BuildOptions  # who asks what is kept does not wait for it

    def told(of: BuildOptions) -> str:
        found = [of.measure.name, of.direction, of.settings.to_json(), of.unweighted]
        return json.dumps(found, sort_keys=True)

    if told(options) == told(BuildOptions.checked(DEFAULT)):
        return _INDEX
    return f"{_INDEX}-{hashlib.sha256(told(options).encode()).hexdigest()[:12]}"


def _digest(exclude: Sequence[str]) -> str:
    """The same of the same names, in any order; empty if nothing is left out."""
    names = json.dumps(sorted(set(exclude))).encode()
    return hashlib.sha256(names).hexdigest()[:12] if exclude else ""


def _places(file: Path, environ: Mapping[str, str], without: str = "") -> list[Path]:
    """Beside the file, then in the user's cache directory, under a name of the file's own."""
    ending = f".without-{without}{ENDING}" if without else ENDING
    places = [file.with_name(file.name + ending)] if file.name else []
    cache = environ.get("XDG_CACHE_HOME", "")
    home = environ.get("HOME", "")
    if not os.path.isabs(cache) and os.path.isabs(home):
        cache = os.path.join(home, ".cache")
    if os.path.isabs(cache):
        whole = os.fsencode(file.resolve())
        name = f"{file.name[:100]}-{hashlib.sha256(whole).hexdigest()[:12]}{ending}"
        places.append(Path(cache, "cocite", _KIND, name))
    return places


def _state(file: Path, without: str = "", titles: Sequence[str] = ()) -> dict[str, Any]:
    """What changes if the file does, or what is made of it."""
    more: dict[str, Any] = {"without": without} if without else {}
    if titles:
        tables = [(name, os.stat(name)) for name in titles if os.path.exists(name)]
        more["titles"] = [
            [os.path.abspath(name), stat.st_size, stat.st_mtime_ns] for name, stat in tables
        ]
    if file.is_dir():
        from cocite.graph.readers.site import listing

        size, changed, more["listing"] = listing(file)
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


def _mark(folder: Path) -> dict[str, Any] | None:
    """What a folder says it is made of; None if it is not one of ours."""
    try:
        found = json.loads((folder / _MARK).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("cocite") == _KIND else None


def _write_mark(folder: Path, state: Mapping[str, Any], **parts: bool) -> None:
    with written_beside(folder / _MARK) as out:
        disk.write(out, json.dumps({"cocite": _KIND, **state, **parts}, indent=1).encode())


def forget(folder: Path) -> None:
    """Have what is kept in a folder made anew when it is next asked for: it is damaged."""
    _write_mark(folder, {})


def _opens(store: Path, kind: str) -> bool:
    """Whether all its files are there, each as long as it is to be."""
    try:
        Store.open(store, kind)
    except StoreError:
        return False
    return True


def _is_whole(folder: Path, now: Mapping[str, Any], index: str | None) -> bool:
    """Whether its graph is of the file as it is now, and its index of that name if any."""
    mark = _mark(folder) or {}
    return (
        all(mark.get(key) == value for key, value in now.items())
        and _opens(folder / "graph", "graph")
        and (index is None or (mark.get(index) is True and _opens(folder / index, "index")))
    )


def _indexes(folder: Path) -> list[str]:
    """The indexes in a folder of ours."""
    names = [entry.name for entry in folder.iterdir()]
    return sorted(name for name in names if name == _INDEX or name.startswith(_INDEX + "-"))


@contextmanager
def _claimed(folder: Path, progress: Progress) -> Iterator[str]:
    """The folder, made, marked as ours, and locked against other processes that would make the
    same; yields why that cannot be, in words. It goes again if there is no graph in it at the end.
    """
    descriptor = -1
    try:
        try:
            descriptor = _locked(folder, progress)
            fault = "" if _is_ours(folder) else f"{folder} is there and not made by cocite"
            if not fault:
                for left in folder.iterdir():
                    if is_private(left.name):
                        left.unlink()
                _write_mark(folder, _mark(folder) or {})
        except (OSError, StoreError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not writable"
            fault = f"{folder} cannot be made: {reason}"
        yield fault
    finally:
        if descriptor >= 0:
            if _is_ours(folder) and {entry.name for entry in folder.iterdir()} <= {_MARK}:
                (folder / _MARK).unlink(missing_ok=True)
                with suppress(OSError):  # somebody else's files may have come into it
                    folder.rmdir()
            os.close(descriptor)


def _locked(folder: Path, progress: Progress) -> int:
    """The folder, made if it is not there, opened and locked."""
    while True:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if not lock(descriptor):
                progress(f"waiting for another process that makes {folder}", 0, 0)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if is_still(folder, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_ours(folder: Path) -> bool:
    """Whether it has our mark, or nothing in it but what a mark was to become."""
    if folder.is_symlink():
        return False
    names = [entry.name for entry in folder.iterdir()]
    return _mark(folder) is not None or all(map(is_private, names))


def _make(
    links: str,
    folder: Path,
    file: Path | None,
    index: str | None,
    options: BuildOptions | None,
    given: tuple[Sequence[str], Sequence[str]],
    means: dict[str, Any],
    progress: Progress,
) -> None:
    """Make what is missing in a folder; ``given`` is what is left out, and tables of titles."""
    from cocite.graph.ingest import ingest  # only those who ingest wait for its readers

    (exclude, titles), without = given, _digest(given[0])
    now = {} if file is None else _state(file, without, titles)
    anew = file is None or not _is_whole(folder, now, None)
    if anew:
        _write_mark(folder, {})
        _clear(folder / "graph", "graph")
        more: dict[str, Any] = {"exclude": exclude or None, "titles": titles or None, **means}
        ingest(links, folder / "graph", overwrite=True, progress=progress, **more)
        if file is not None and _state(file, without, titles) != now:
            raise InputError(f"{file} changed while it was read. Give the same command again")
        _write_mark(folder, now)
        # Indexes of what the file was before are asked by nobody any more.
        for name in _indexes(folder):
            if name not in (_INDEX, index):
                disk.remove(folder / name)
    if index is not None:
        _clear(folder / index, "index")
        _build(folder, index, options, means, progress, restart=anew)
        mark = _mark(folder) or {}
        others = {name: True for name in _indexes(folder) if mark.get(name) is True}
        before = {key: mark[key] for key in ("titles",) if key in mark}
        _write_mark(folder, before | now, **(others | {index: True}))


def _clear(store: Path, kind: str) -> None:
    """Remove what cannot be opened any more: the folder is ours, and it is made again."""
    if os.path.lexists(store) and not _opens(store, kind):
        disk.remove(store)


def _build(
    folder: Path,
    name: str,
    options: BuildOptions | None,
    means: dict[str, Any],
    progress: Progress,
    *,
    restart: bool,
) -> None:
    from cocite.index.build import IndexBuild
    from cocite.index.plan import BuildOptions

    options = options or BuildOptions.checked(DEFAULT)
    with IndexBuild(
        Graph.open(folder / "graph"),
        folder / name,
        options,
        Means.checked(**means),
        overwrite=True,
        restart=restart,
    ) as work:
        stage = "indexing" if options.samples is None else "sampling"
        work.run(lambda done, total: progress(stage, done, total))
