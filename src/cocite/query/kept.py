"""A file of links, asked as if it were an index: what is made of it is kept beside it.

    links.tsv
    links.tsv.cocite/   made-of.json   the size and time of links.tsv then, and the release
                        graph/         as ``ingest`` makes it
                        index/         as ``build`` makes it, of the default measure
                        index-0f3a.../ the same of another measure, or with other settings, if such
                                       a question was asked; its manifest says which
    links.tsv.read-5e11....cocite/  the same of the file read in another way than it is by itself
    links.tsv.bipartite-user-item.cocite/  the same of a bipartite table with these sides
    links.tsv.without-9c1d....cocite/  the same of a graph from which pages are left out, by which

It is used again while the file has the same size and time of its last change (in nanoseconds), and
made anew else; that of a folder of HTML pages while all its files have. Where there is no place
beside the file, it is kept in the user's cache directory; where there is none either, or nothing is
to be kept, in a temporary one, which goes afterwards.

Tables of titles that were named once are read again whenever it is made anew, until others are
named; one that is gone is warned of.

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

from cocite.errors import CociteError, InputError, StoreError
from cocite.graph import Graph
from cocite.means import Means
from cocite.measures import DEFAULT
from cocite.query.made_of import (
    INDEX,
    MARK,
    TITLES,
    digest_of,
    file_of,
    indexes_in,
    is_whole,
    mark_of,
    matches_of,
    opens,
    places_of,
    state_of,
    titles_before,
    write_mark,
)
from cocite.store import Store, disk, kind_of
from cocite.store.beside import is_private
from cocite.store.locks import is_still, lock

if TYPE_CHECKING:
    from cocite.index.plan import BuildOptions

__all__ = ["Kept", "forget", "is_links", "keep", "kept_of"]

Progress = Callable[[str, int, int], None]
_Given = tuple[Sequence[str], Sequence[str], tuple[str, str] | None, Mapping[str, str] | None]


@dataclass(frozen=True)
class Kept:
    """What there is of a file of links: ``made`` now, or found; ``why`` it is in no better place.

    ``temporary`` holds the folder if it is to go with it; ``name`` is what the index is called.
    """

    folder: Path
    made: bool
    why: str
    temporary: tempfile.TemporaryDirectory[str] | None
    name: str = INDEX

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
    HTML pages, or a pattern that files match.
    """
    if path == "-" or not os.path.isdir(path):
        return path == "-" or os.path.exists(path) or bool(matches_of(path))
    if kind_of(path) is not None:
        return False
    from cocite.graph.readers.html.site import is_site  # nobody else waits for the readers

    return is_site(Path(path))


def kept_of(links: str, sides: tuple[str, str] | None = None) -> list[Path]:
    """What is kept of a file of links as it is now: the graph, if it is there, and indexes; of a
    bipartite table with these ``sides``.
    """
    file = file_of(links)
    if file is None:
        return []
    now = state_of(file)
    for folder in places_of(file, os.environ, "", sides):
        if is_whole(folder, now, None):
            indexes = [folder / name for name in indexes_in(folder)]
            return [folder / "graph", *(p for p in indexes if is_whole(folder, now, p.name))]
    return []


def keep(
    links: str,
    *,
    index: bool = True,
    options: BuildOptions | None = None,
    exclude: Sequence[str] = (),
    titles: Sequence[str] = (),
    sides: tuple[str, str] | None = None,
    dialect: Mapping[str, str] | None = None,
    cache: bool = True,
    threads: int | None = None,
    memory: str | int | None = None,
    progress: Progress = lambda stage, done, total: None,
) -> Kept:
    """The graph of a file of links, and an ``index`` of it if wanted, found or made: the default
    one, or that of ``options``, which is kept beside it. Pages in ``exclude`` are left out.
    ``titles`` are tables of titles, by default those that were named before: what is kept without
    them, or of what they were then, is made anew. ``sides`` are those of a bipartite table;
    ``dialect`` says how the file is read: ``delimiter``, ``header``, ``columns`` of
    :func:`~cocite.ingest`.

    Raises what :func:`~cocite.ingest` and :func:`~cocite.build` raise, and :class:`InputError` if
    the file changes while it is read.
    """
    file = file_of(links)
    without = digest_of(exclude)
    places = _places(file, without, sides, dialect) if cache else []
    if not titles and file is not None and places:
        titles = titles_before([*places, *places_of(file, os.environ)])
    means = {"threads": threads, "memory": memory}
    now = None if file is None else state_of(file, without, titles)
    given = tuple(exclude), tuple(titles), sides, dialect
    name = INDEX if options is None else _called(options)
    part = name if index else None
    for folder in places:
        if now is not None and is_whole(folder, now, part):
            return Kept(folder, False, "", None, name)
    why = ""
    for folder in places:
        with _claimed(folder, progress) as fault:
            if not fault:
                # Whoever had the folder before us may have made it all.
                found = now is not None and is_whole(folder, now, part)
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


def _places(
    file: Path | None,
    without: str,
    sides: tuple[str, str] | None,
    dialect: Mapping[str, str] | None,
) -> list[Path]:
    return [] if file is None else places_of(file, os.environ, without, sides, dialect)


def _called(options: BuildOptions) -> str:
    """What an index of these options is called: the same whenever they are the same."""
    from cocite.index.plan import BuildOptions  # who asks what is kept does not wait for it

    def told(of: BuildOptions) -> str:
        found = [of.measure.name, of.direction, of.settings.to_json(), of.unweighted]
        return json.dumps(found, sort_keys=True)

    if told(options) == told(BuildOptions.checked(DEFAULT)):
        return INDEX
    return f"{INDEX}-{hashlib.sha256(told(options).encode()).hexdigest()[:12]}"


def forget(folder: Path) -> None:
    """Have what is kept in a folder made anew when it is next asked for: it is damaged."""
    write_mark(folder, {})


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
                        disk.remove(left)
                write_mark(folder, mark_of(folder) or {})
        except (OSError, StoreError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not writable"
            fault = f"{folder} cannot be made: {reason}"
        yield fault
    finally:
        if descriptor >= 0:
            if _is_ours(folder) and {entry.name for entry in folder.iterdir()} <= {MARK}:
                disk.remove(folder / MARK)
                with suppress(OSError):  # somebody else's files may have come into it
                    disk.remove_empty(folder)
            os.close(descriptor)


def _locked(folder: Path, progress: Progress) -> int:
    """The folder, made if it is not there, opened and locked."""
    while True:
        disk.make_own_folder(folder)
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
    return mark_of(folder) is not None or all(map(is_private, names))


def _make(
    links: str,
    folder: Path,
    file: Path | None,
    index: str | None,
    options: BuildOptions | None,
    given: _Given,
    means: dict[str, Any],
    progress: Progress,
) -> None:
    """Make what is missing in a folder; ``given`` is what is left out, tables of titles, and what
    the sides of a bipartite table are called, and how the file is read.
    """
    from cocite.graph.ingest import ingest  # only those who ingest wait for its readers

    (exclude, titles, sides, dialect), without = given, digest_of(given[0])
    now = {} if file is None else state_of(file, without, titles)
    anew = file is None or not is_whole(folder, now, None)
    if anew:
        before = mark_of(folder) or {}
        write_mark(folder, {})
        _clear(folder / "graph", "graph")
        more: dict[str, Any] = {"exclude": exclude or None, "titles": titles or None, **means}
        more |= {"bipartite": True, "sides": sides} if sides else {}
        more |= dialect or {}
        try:
            ingest(links, folder / "graph", overwrite=True, progress=progress, **more)
        except CociteError:  # nothing has taken the place of what is kept
            write_mark(folder, before)
            raise
        if file is not None and state_of(file, without, titles) != now:
            raise InputError(f"{file} changed while it was read. Give the same command again")
        write_mark(folder, now)
        # Indexes of what the file was before are asked by nobody any more.
        for name in indexes_in(folder):
            if name not in (INDEX, index):
                disk.remove(folder / name)
    if index is not None:
        _clear(folder / index, "index")
        _build(folder, index, options, means, progress, restart=anew)
        mark = mark_of(folder) or {}
        others = {name: True for name in indexes_in(folder) if mark.get(name) is True}
        before = {key: mark[key] for key in (TITLES,) if key in mark}
        write_mark(folder, before | now, **(others | {index: True}))


def _clear(store: Path, kind: str) -> None:
    """Remove what cannot be opened any more: the folder is ours, and it is made again."""
    if os.path.lexists(store) and not opens(store, kind):
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
