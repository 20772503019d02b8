"""An index that is served while its directory may be replaced.

What is open is one *generation*: its files are mapped, and stay so when others take their name. A
watcher looks at the directory every few seconds; if it is another one, it is opened, every byte is
compared with its checksum, a first question compiles what has to be, and only then do new questions
get it. Questions that have begun keep theirs: a generation is closed when the last of them ends. A
new directory that is damaged, or no index, is refused, and the old one goes on answering; it is
looked at again when its files have changed, as one that is being copied there is not whole yet.

Views of the first samples of an index, for answers under load, are made once each.

Cost: a look is two calls to the system; opening anew reads all files once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import xxhash

from cocite.errors import CociteError, Damaged
from cocite.query import Index, open_index
from cocite.service.garbage import swept
from cocite.store.manifest import MANIFEST

__all__ = ["Held", "Holder"]

_TWICE = 2
"""Looks at which garbage is swept: a thread may have had an index in hand at the first of them."""


class Held:
    """One generation of an index, open. ``users`` are the questions that it answers now."""

    def __init__(self, index: Index) -> None:
        self.index = index
        manifest = index.stored.store.manifest
        told = f"{manifest.digest()} {manifest.facts}".encode()
        self.generation = xxhash.xxh3_64_hexdigest(told)
        self.users = 0
        self._views: dict[int, Index] = {}
        self._lock = threading.Lock()

    def samples(self, share: float, floor: int) -> int | None:
        """How many samples make up a share, ``floor`` at least; None if it has none."""
        have = self.index.samples
        return None if have is None else max(min(floor, have), round(share * have))

    def at(self, samples: int | None) -> Index:
        """The index with its first samples only."""
        have = self.index.samples
        if samples is None or have is None or samples >= have:
            return self.index
        with self._lock:
            view = self._views.get(samples)
            if view is None or (view.samples or 0) != samples:
                view = self._views[samples] = self.index.first(samples)
            return view


class Holder:
    """An index by its name: what is open of it now, and what takes its place."""

    def __init__(
        self, name: str, path: str, graphs: tuple[str, ...], means: dict[str, Any]
    ) -> None:
        """Opens it; raises a :class:`CociteError` if it cannot be."""
        self.name, self.path, self._graphs, self._means = name, path, graphs, means
        self._seen = _identity(path)
        self._refused: tuple[object, ...] | None = None
        self._lock = threading.Lock()
        self._old: list[Held] = []
        self._sweeps = 0
        self.now = Held(self._opened())

    @contextmanager
    def lease(self) -> Iterator[Held]:
        """What is open now, kept open for as long as the block takes."""
        with self._lock:
            held = self.now
            held.users += 1
        try:
            yield held
        finally:
            with self._lock:
                held.users -= 1

    def look(self) -> str | None:
        """Take the directory that is there now, if it is another one: ``taken`` or what is wrong
        with it; None if it is the same, or gone.
        """
        found = _identity(self.path)
        self._close()
        if found is None:
            return None
        if found == self._seen and (self._refused is None or self._refused == _files(self.path)):
            return None
        self._seen, files = found, _files(self.path)
        index: Index | None = None
        try:
            held = Held(index := self._opened())
            _verify(index)
        except (CociteError, OSError) as error:
            if index is not None:
                index.close()
            self._sweeps, self._refused = _TWICE, files
            if _identity(self.path) != found:
                return None  # it was replaced again meanwhile: the next look has that
            return str(error) or type(error).__name__
        with self._lock:
            self._old.append(self.now)
            self.now = held
        self._refused = None
        return "taken"

    def _close(self) -> None:
        """Forget what nobody uses any more."""
        with self._lock:
            unused = [held for held in self._old if not held.users]
            self._old = [held for held in self._old if held.users]
            if unused:
                self._sweeps = _TWICE
        while unused:
            unused.pop().index.close()
        if self._sweeps:
            self._sweeps -= 1
            swept()  # readers and their index know each other

    def close(self) -> None:
        """Let go of what is open."""
        for held in (*self._old, self.now):
            held.index.close()

    def _opened(self) -> Index:
        index = open_index(self.path, graph=self._graphs or None, **self._means)
        if len(index.nodes):
            first = index.nodes.name(0)
            index.related(first, 1)  # loads what every question needs
            index.similarity(first, first)
        return index


def _verify(index: Index) -> None:
    """Raise :class:`Damaged` if a byte is not what it was, or samples are missing."""
    store = index.stored.store
    if index.lost:
        raise Damaged(index.stored.loss)
    for name in store.manifest.files:
        fault = store.verify(name)
        if fault is not None:
            raise Damaged(fault)


def _files(path: str) -> tuple[object, ...]:
    """What lies there now: names, sizes, times."""
    try:
        with os.scandir(path) as there:
            each = [(entry.name, entry.stat()) for entry in there]
    except OSError:
        return ()
    return tuple(sorted((name, found.st_size, found.st_mtime_ns) for name, found in each))


def _identity(path: str) -> tuple[int, ...] | None:
    """Tells one directory of a name from the next, and one manifest; None if there is none."""
    try:
        there, told = os.stat(path), os.stat(os.path.join(path, MANIFEST))
    except OSError:
        return None
    return there.st_ino, there.st_mtime_ns, told.st_ino, told.st_mtime_ns, told.st_size
