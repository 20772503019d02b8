"""The cache of graphs and indexes made from links.

    ~/.cache/cocite/links/        or $XDG_CACHE_HOME/cocite/links, or in the temporary directory
        links.tsv-0f3a.../        an *entry*: one source, read with one set of options
            entry.json            the source, its fingerprint, the complete indexes
            graph/                as written by ``ingest``; a stored graph is not copied
            index/, index-9c1d.../    as written by ``build``: the default index, and others

An entry is used only if no other user can write to the folder or its parents, and the source's
fingerprint, computed for each query, is unchanged. Paths in ``entry.json`` are never opened. Graphs
and indexes are published by a rename, after ``entry.json`` is cleared, so an interrupted process
leaves nothing incomplete.
"""

from __future__ import annotations

import glob
import hashlib
import itertools
import json
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xxhash

from cocite import __version__
from cocite.errors import CociteError, InputError, StoreError, UsageError
from cocite.graph import Graph
from cocite.io.database import Address, database_named, file_of_titles
from cocite.measures import DEFAULT
from cocite.progress import shows
from cocite.resources import Resources
from cocite.storage import FORMAT_VERSION, Store, disk, kind_of, staged_file
from cocite.storage.atomic import is_private, is_still, lock
from cocite.storage.user_cache import fault_of, private_folder, user_cache

if TYPE_CHECKING:
    from cocite.index.plan import BuildOptions


INDEX, ENTRY = "index", "entry.json"
_HASHED, _READ = 64 << 20, 1 << 20
"""Bytes hashed in total, and bytes read at a time."""
_log = logging.getLogger("cocite")

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class CacheEntry:
    """A graph and its index in ``folder``, found in the cache or newly ``made``.

    If the entry is not cached, ``why`` gives the reason, and ``temporary`` removes the folder when
    deleted.
    """

    folder: Path
    graph: Path
    index: Path
    made: bool = False
    why: str = ""
    temporary: tempfile.TemporaryDirectory[str] | None = None

    @property
    def nbytes(self) -> int:
        """Return the stores' size on disk."""
        parts = [(self.folder / "graph", "graph"), (self.index, "index")]
        return sum(Store.open(path, kind).nbytes for path, kind in parts if path.exists())


def is_links(path: str) -> bool:
    """Return whether ``path`` is read as links: a file, a pipe, ``-``, a folder of HTML pages,
    notes or code, a pattern that matches files, or a database address.
    """
    if not os.path.isdir(path):
        named = path == "-" or os.path.exists(path) or bool(_matches(path))
        return named or database_named(path) is not None
    if kind_of(path) is not None:
        return False
    from cocite.io.readers.formats import holds_links  # imports the readers

    return holds_links(Path(path))


@shows("creating an index")
def find_or_make(
    source: str,
    *,
    index: bool = True,
    options: BuildOptions | None = None,
    reading: Mapping[str, Any] | None = None,
    cache: bool = True,
    threads: int | None = None,
    memory: str | int | None = None,
    progress: Progress = lambda stage, done, total: None,
) -> CacheEntry:
    """Find or make the graph of ``source`` (links or a stored graph) and, with ``index``, an index
    of the graph, by default for the default measure.

    ``reading`` are :func:`~cocite.ingest` options for links, including ``exclude_nodes`` and
    ``titles`` (a sequence). Without ``titles``, a cached entry keeps its titles.

    Raises the errors of :func:`~cocite.ingest` and :func:`~cocite.build`, and :class:`InputError`
    if the source changes during reading.
    """
    means = {"threads": threads, "memory": memory}
    given = dict(reading or {})
    titles = tuple(given.pop("titles", ()))
    work = _Work(source, given, titles, options, index, means)
    folder, why = work.place() if cache else (None, "")
    if folder is not None and not why:
        if work.is_complete(folder):
            return work.entry(folder)
        with _claimed(folder, progress) as why:
            if not why:
                made = not work.is_complete(folder)  # another process may have made the entry
                if made:
                    work.make(folder, progress)
                return work.entry(folder, made)
    temporary = tempfile.TemporaryDirectory(prefix="cocite-")
    try:
        work.make(Path(temporary.name), progress)
    except BaseException:
        temporary.cleanup()
        raise
    return work.entry(Path(temporary.name), True, why, temporary)


def evict(folder: Path) -> None:
    """Invalidate a damaged entry, so that the next use recreates it."""
    _write(folder, {})


def cached_stores(source: str, bipartite: bool | None = None) -> list[Path]:
    """Return cached graphs and indexes of unchanged links, with the given ``bipartite`` if any."""
    root, names = _root(), _files_of(source)
    if not names or not root.is_dir() or fault_of(root):
        return []
    fingerprint = cache(lambda: _fingerprint(names))
    found = []
    for folder in sorted(root.glob(f"{_prefix(source)}-*")):
        entry = _read(folder)
        reading = entry.get("reading")
        two = isinstance(reading, dict) and bool(reading.get("bipartite"))
        ours = entry.get("source") == _path_of(source) and bipartite in (None, two)
        if ours and not _fault_of(folder) and entry.get("fingerprint") == fingerprint():
            stores = [folder / "graph", *(folder / name for name in _complete(entry))]
            found += [each for each in stores if kind_of(each) is not None]
    return found


def list_cache() -> list[tuple[str, int]]:
    """Return each cached source, and its entry's size in bytes."""
    return list(map(_named_size, _entries()))


def clear_cache() -> list[tuple[str, int]]:
    """Remove all entries that no process is writing; return (source, bytes) of each."""
    gone = []
    for folder in _entries():
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if lock(descriptor):
                gone.append(_named_size(folder))
                disk.remove(folder)
        finally:
            os.close(descriptor)
    return gone


# -- one source with its reading options ------------------------------------------------------


@dataclass
class _Work:
    """A source, and the entry to find or make."""

    source: str
    reading: dict[str, Any]
    titles: tuple[str, ...]
    options: BuildOptions | None
    index: bool
    means: dict[str, Any]

    @cached_property
    def stored(self) -> bool:
        return kind_of(self.source) == "graph"

    @cached_property
    def files(self) -> list[str]:
        return _files_of(self.source)

    @cached_property
    def name(self) -> str:
        return INDEX if self.options is None else _name_of(self.options)

    def place(self) -> tuple[Path | None, str]:
        """Return the entry's folder (None if impossible), and why the folder is unsafe, or ""."""
        if not self.files:
            return None, ""
        key = json.dumps([_path_of(self.source), self._way()], sort_keys=True)
        digest = hashlib.sha256(os.fsencode(key)).hexdigest()[:16]
        folder = _root() / f"{_prefix(self.source)}-{digest}"
        fault = f"{folder} is a symbolic link" if folder.is_symlink() else _fault_of(folder)
        return folder, fault

    def _way(self) -> dict[str, Any]:
        exclude = sorted(set(self.reading.get("exclude_nodes") or ()))
        return self.reading | ({"exclude_nodes": exclude} if exclude else {})

    def state(self) -> dict[str, Any]:
        """Return a value that changes with the source and its reading options."""
        return {
            "source": _path_of(self.source),
            "reading": json.loads(json.dumps(self._way())),
            "fingerprint": _fingerprint(self.files),
            "release": __version__,
            "format": FORMAT_VERSION,
        }

    def is_complete(self, folder: Path) -> bool:
        found = _read(folder)
        made = self.name in _complete(found) and _opens(folder / self.name, "index")
        return (made or not self.index) and self._is_current(found, folder)

    def _is_current(self, found: Mapping[str, Any], folder: Path) -> bool:
        return (
            bool(found)
            and (self.stored or _opens(folder / "graph", "graph"))
            and (not self.titles or found.get("titles") == _titles(self.titles))
            and found.items() >= self.state().items()
        )

    def entry(
        self, folder: Path, made: bool = False, why: str = "", held: Any = None
    ) -> CacheEntry:
        graph = Path(self.source) if self.stored else folder / "graph"
        return CacheEntry(folder, graph, folder / self.name, made, why, held)

    def make(self, folder: Path, progress: Progress) -> None:
        found, now = _read(folder), self.state() if self.files else {}
        anew = not (self.files and self._is_current(found, folder))
        if anew:
            self._ingest(folder, found, now, progress)
            found = _read(folder)
        if self.index:
            _clear(folder / self.name)
            self._build(folder, progress, restart=anew)
            complete = sorted({*_complete(found), self.name})
            _write(folder, found | {"indexes": complete})

    def _ingest(
        self, folder: Path, before: dict[str, Any], now: dict[str, Any], progress: Progress
    ) -> None:
        if not self.stored:
            from cocite.io.ingest import ingest  # imports the readers

            named = before.get("titles")  # only reported: the entry may be forged
            earlier = named if isinstance(named, list) and not self.titles else []
            forgotten = [str(each[0]) for each in earlier if isinstance(each, list) and each]
            if forgotten:
                _log.warning(
                    f"{self.source} has changed, so titles must be read again: pass them with "
                    f"--titles {' --titles '.join(forgotten)}"
                )
            titles = _titles(self.titles)  # fingerprinted before the titles are read
            if before:
                _write(folder, {})
            _clear(folder / "graph", "graph")
            more = self.reading | {"titles": self.titles or None} | self.means
            output = folder / "graph"
            try:
                ingest(self.source, output, overwrite=True, progress=progress, **more)
            except CociteError:  # the graph is still the previous one
                if before:
                    _write(folder, before)
                raise
            if self.files and self.state() != now:
                raise InputError(f"{self.source} changed while it was read. Repeat the command")
            now = now | ({"titles": titles} if titles else {})
        _write(folder, now)
        for each in folder.iterdir():  # indexes of the previous source
            if each.name.startswith(f"{INDEX}-") and each.name != self.name:
                disk.remove(each)

    def _build(self, folder: Path, progress: Progress, *, restart: bool) -> None:
        from cocite.index.build import IndexBuild
        from cocite.index.plan import BuildOptions

        options = self.options or BuildOptions.checked(DEFAULT)
        graph = Graph.open(self.entry(folder).graph)
        graph.check()
        means = Resources.checked(**self.means)
        place = folder / self.name
        with IndexBuild(graph, place, options, means, overwrite=True, restart=restart) as work:
            stage = "indexing" if options.samples is None else "sampling"
            work.run(lambda done, total: progress(stage, done, total))


def _name_of(options: BuildOptions) -> str:
    """Return a name for an index with these options; the same options get the same name."""
    from cocite.index.plan import BuildOptions  # listing the cache does not need it

    def fingerprint_of(of: BuildOptions) -> str:
        found = [of.measure.name, of.direction, of.settings.to_json(), of.unweighted]
        return json.dumps(found, sort_keys=True)

    if fingerprint_of(options) == fingerprint_of(BuildOptions.checked(DEFAULT)):
        return INDEX
    return f"{INDEX}-{hashlib.sha256(fingerprint_of(options).encode()).hexdigest()[:12]}"


# -- sources and their fingerprints -----------------------------------------------------------


def _matches(path: str) -> list[str]:
    found = glob.has_magic(path) and not os.path.exists(path)
    return sorted(glob.glob(path, recursive=True)) if found else []


def _database(source: str) -> Address | None:
    return None if os.path.isdir(source) or source == "-" else database_named(source)


def _path_of(source: str) -> str:
    if address := _database(source):
        return f"{address.kind}:{os.path.realpath(address.place)}#{address.table}"
    return os.path.realpath(source)


def _prefix(source: str) -> str:
    address = _database(source)
    place = address.place if address else source
    plain = itertools.takewhile(lambda part: not glob.has_magic(part), Path(place).absolute().parts)
    name = (Path(place) if os.path.exists(place) else Path(*plain)).absolute().name
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in name)[:60] or "links"


def _files_of(source: str) -> list[str]:
    """Return a source's files; [] if the source can be read only once. Raises :class:`UsageError`
    for a server, whose changes cannot be detected.
    """
    if address := _database(source):
        if not address.is_file:
            raise UsageError(
                f"changes on the server {address.label} cannot be detected: store the links with "
                "cocite ingest --database ADDRESS -o DIR, and query DIR"
            )
        return _with_wal(address.place)
    if source == "-":
        return []
    if matches := _matches(source):
        return [file for match in matches for file in _files_of(match)]
    if kind_of(source) == "graph":
        return [os.path.join(source, "manifest.json")]  # it has the checksums of all files
    if not os.path.isdir(source):
        return _with_wal(source) if os.path.isfile(source) else []
    found = []
    for above, folders, names in os.walk(os.path.realpath(source)):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [os.path.join(above, name) for name in sorted(names)]
    return found


def _with_wal(file: str) -> list[str]:
    return [file, *(each for each in (f"{file}-wal",) if os.path.exists(each))]


def _fingerprint(files: Sequence[str]) -> str:
    """Return a digest of the files' metadata and first bytes."""
    digest, left = xxhash.xxh3_128(), _HASHED
    for name in map(os.path.abspath, files):
        try:
            found = os.stat(name)
        except OSError as error:
            digest.update(f"{name}\0{error.errno}\0".encode(errors="surrogateescape"))
            continue
        facts = found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev
        digest.update(f"{name}\0{facts}\0".encode(errors="surrogateescape"))
        if not stat.S_ISREG(found.st_mode):
            continue
        with suppress(OSError), open(name, "rb") as file:
            while left > 0 and (block := file.read(min(left, _READ))):
                digest.update(block)
                left -= len(block)
    return digest.hexdigest()


def _titles(named: Sequence[str]) -> list[list[str]]:
    """Return title tables as absolute paths, with fingerprints; raises :class:`UsageError`."""
    found = []
    for name in named:
        whole, file = file_of_titles(name)
        if file is None:
            raise UsageError(
                f"changes on the server {whole} cannot be detected: store the titles with a "
                "graph, cocite ingest LINKS --titles ADDRESS -o DIR, and query DIR"
            )
        found.append([whole, _fingerprint(_with_wal(os.fspath(file)))])
    return found


# -- the cache folder and its entries ---------------------------------------------------------


def _fault_of(folder: Path) -> str:
    """Return why an entry is unsafe; "" if only the user can write to the entry and its parent."""
    return fault_of(folder) or (fault_of(folder.parent) if folder.parent.is_dir() else "")


def _root() -> Path:
    """Return the folder of entries, in the user's cache directory or beside compiled kernels."""
    return (user_cache(os.environ)[0] or private_folder()) / "links"


def _entries() -> list[Path]:
    root = _root()
    found = root.iterdir() if root.is_dir() and not fault_of(root) else ()
    return sorted(each for each in found if each.is_dir() and not each.is_symlink())


def _read(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / ENTRY).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _complete(entry: Mapping[str, Any]) -> list[str]:
    names = entry.get("indexes")
    plain = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return [name for name in plain if name.startswith(INDEX) and os.sep not in name]


def _write(folder: Path, entry: Mapping[str, Any]) -> None:
    with staged_file(folder / ENTRY) as out:
        disk.write(out, json.dumps(entry, indent=1).encode())


def _opens(store: Path, kind: str) -> bool:
    try:
        Store.open(store, kind)
    except StoreError:
        return False
    return True


def _clear(store: Path, kind: str = "index") -> None:
    if os.path.lexists(store) and not _opens(store, kind):
        disk.remove(store)


def _named_size(folder: Path) -> tuple[str, int]:
    """Return an entry's source, and its size in bytes."""
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return str(_read(folder).get("source", folder.name)), size


@contextmanager
def _claimed(folder: Path, progress: Progress) -> Iterator[str]:
    """Create and lock an entry's folder, and yield why that is impossible, or ""; finally, remove
    an empty entry.
    """
    descriptor = -1
    try:
        fault = ""
        try:
            descriptor = _locked(folder, progress)
            fault = _fault_of(folder)
            for left in () if fault else folder.iterdir():
                if is_private(left.name):  # from a killed process
                    disk.remove(left)
        except (OSError, StoreError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not writable"
            fault = f"{folder} cannot be created: {reason}"
        yield fault
    finally:
        if descriptor >= 0:
            if not fault and {each.name for each in folder.iterdir()} <= {ENTRY}:
                with suppress(OSError):
                    disk.remove(folder / ENTRY)
                with suppress(OSError):
                    disk.remove_empty(folder)
            os.close(descriptor)


def _locked(folder: Path, progress: Progress) -> int:
    """Open and lock the folder; if necessary, create it, writable only by the user."""
    import fcntl

    while True:
        for each in reversed((folder, *folder.parents)):
            if not each.exists():
                disk.make_own_folder(each, mode=0o700)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if not lock(descriptor):
                progress(f"waiting for another process that is creating {folder}", 0, 0)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if is_still(folder, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
