"""Manage a process's load: a bounded queue, adaptive numbers of samples, and open indexes.

A query that would wait too long is rejected before it starts. The wait is estimated from the number
of waiting queries and the recent time between two answers. Threads cannot be killed, so a query
that exceeds its deadline in a kernel is abandoned, and another thread replaces the one running it.

Under load, answers use a fraction of the samples. The fraction is multiplied by 3/4 if more than a
tenth of the answers in a window, and at least two, took longer than the target. It rises again
after ten windows in which nine tenths of the answers took less than half of the target. After a
failed increase, the next increase waits twice as long, to avoid oscillation. Source: Fogaras, Racz,
*Scaling link-based similarity search*, section 4 (dynamic adaptation to load).
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeVar

import xxhash

from cocite.deadline import clock, limited, too_long
from cocite.errors import CociteError, Damaged
from cocite.index.layouts.reader import NODE_SCRATCH, pages_memory, release_pages
from cocite.search import Index, open_index
from cocite.server.fresh import FreshLinks
from cocite.storage.manifest import MANIFEST

_NEW = 50_000
"""Number of new objects that triggers garbage collection; a thousand waiting requests allocate
fewer."""


def set_aside() -> None:
    """Exempt all objects loaded so far from garbage collection, which would stop all threads for a
    tenth of a second, and so dominate the slowest answers.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW, 10, 10)


def swept() -> None:
    """Collect all garbage, including exempt objects, then exempt the rest again."""
    aside = gc.get_freeze_count() > 0
    gc.unfreeze()
    gc.collect()
    if aside:
        gc.freeze()


_SERVER = 24_000_000
"""Bytes for a server's code, and for requests and responses in flight."""


def serving_memory(indexes: Iterable[Index], threads: int) -> tuple[int, int]:
    """Return the bytes needed beyond ``PROCESS_MEMORY``, and how many of them are index pages."""
    asked = [(len(index.nodes), index.samples or 0) for index in indexes]
    pages = threads * max(pages_memory(*each) for each in asked)
    return _SERVER + threads * NODE_SCRATCH * max(asked)[0] + pages, pages


# -- holder ------------------------------------------------------------------------------


_TWICE = 2
"""Number of collections after closing an index; during the first, threads may still use the
index.
"""


class LoadedIndex:
    """A generation of an open index; ``users`` counts the queries that use it."""

    def __init__(self, index: Index, fresh: FreshLinks | None = None) -> None:
        self.index, self.fresh = index, fresh
        manifest = index.stored.store.manifest
        identity = f"{manifest.digest()} {manifest.facts}".encode()
        self.generation = xxhash.xxh3_64_hexdigest(identity)
        self.users = 0
        self._views: dict[int, Index] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Stop remote sample servers, and close the link log."""
        self.index.close()
        if self.fresh is not None:
            self.fresh.close()

    def samples(self, share: float, floor: int) -> int | None:
        """Return a fraction of the samples, at least ``floor``; None without samples."""
        have = self.index.samples
        return None if have is None else max(min(floor, have), round(share * have))

    def at(self, samples: int | None) -> Index:
        """Return the index restricted to its first ``samples``."""
        have = self.index.samples
        if samples is None or have is None or samples >= have:
            return self.index
        with self._lock:
            view = self._views.get(samples)
            if view is None or (view.samples or 0) != samples:
                view = self._views[samples] = self.index.with_samples(samples)
            return view


class Holder:
    """A served index, which reloads when its directory is replaced.

    A new directory is verified and queried once before it serves; running queries keep their
    generation. A damaged directory is refused until its files change, because copying may be in
    progress.
    """

    def __init__(
        self,
        name: str,
        path: str,
        graphs: tuple[str, ...],
        means: dict[str, Any],
        accept_links: bool = False,
    ) -> None:
        """Open the index; raises :class:`CociteError`."""
        self.name, self.path, self._graphs, self._means = name, path, graphs, means
        self._accept_links = accept_links
        self.most: int | None = None
        """Bytes of process memory above which pages are released after a query."""
        self._seen = _identity(path)
        self._refused: tuple[object, ...] | None = None
        self._lock = threading.Lock()
        self._old: list[LoadedIndex] = []
        self._sweeps = 0
        self.now = self._loaded(self._opened())

    @contextmanager
    def lease(self) -> Iterator[LoadedIndex]:
        """Keep the current generation open within the context."""
        with self._lock:
            held = self.now
            held.users += 1
        try:
            yield held
        finally:
            with self._lock:
                held.users -= 1
            if self.most is not None:
                release_pages(held.index.stored.store, self.most)

    def look(self) -> str | None:
        """Switch to a new directory; return ``taken``, a fault, or None if unchanged."""
        found = _identity(self.path)
        self._close()
        if found is None:
            return None
        if found == self._seen and (self._refused is None or self._refused == _files(self.path)):
            return None
        self._seen, files = found, _files(self.path)
        index: Index | None = None
        try:
            held = self._loaded(index := self._opened())
            store = index.stored.store
            fault = index.stored.loss if index.missing_samples else None
            fault = fault or next(filter(None, map(store.verify, store.manifest.files)), None)
            if fault is not None:
                raise Damaged(fault)
        except (CociteError, OSError) as error:
            if index is not None:
                index.close()
            self._sweeps, self._refused = _TWICE, files
            if _identity(self.path) != found:
                return None  # replaced again: the next check handles it
            return str(error) or type(error).__name__
        with self._lock:
            self._old.append(self.now)
            self.now = held
        self._refused = None
        return "taken"

    def _close(self) -> None:
        with self._lock:
            unused = [held for held in self._old if not held.users]
            self._old = [held for held in self._old if held.users]
            if unused:
                self._sweeps = _TWICE
        while unused:
            unused.pop().close()
        if self._sweeps:
            self._sweeps -= 1
            swept()  # readers and their index reference each other

    def close(self) -> None:
        """Close all generations."""
        for held in (*self._old, self.now):
            held.close()

    def _loaded(self, index: Index) -> LoadedIndex:
        return LoadedIndex(index, FreshLinks(index, self.path) if self._accept_links else None)

    def _opened(self) -> Index:
        index = open_index(self.path, graph=self._graphs or None, **self._means)
        if len(index.nodes):
            first = index.nodes.name(0)
            index.related(first, 1)  # load what all queries need
            index.similarity(first, first)
        return index


def _files(path: str) -> tuple[object, ...]:
    with suppress(OSError), os.scandir(path) as entries:
        each = [(entry.name, entry.stat()) for entry in entries]
        return tuple(sorted((name, found.st_size, found.st_mtime_ns) for name, found in each))
    return ()


def _identity(path: str) -> tuple[int, ...] | None:
    """Return an identity of a directory and its manifest; None if missing."""
    try:
        folder, manifest = os.stat(path), os.stat(os.path.join(path, MANIFEST))
    except OSError:
        return None
    identity = folder.st_ino, folder.st_mtime_ns, manifest.st_ino, manifest.st_mtime_ns
    return *identity, manifest.st_size


# -- pool --------------------------------------------------------------------------------


_SMOOTH = 0.05
"""Weight of the latest query in the running mean."""
_STAND_INS = 4
"""Maximum number of replacements per thread."""
_LATE = 1.0
"""Seconds after the deadline at which work is abandoned."""
Result = TypeVar("Result")


class Full(Exception):
    """The queue is full; ``after`` is the estimated wait in seconds."""

    def __init__(self, after: float) -> None:
        super().__init__(f"full for {after:.3f} s")
        self.after = after


@dataclass(eq=False, slots=True)
class _Job:
    """Work, its future, and a time limit that starts with the work."""

    work: Callable[[], Any]
    seconds: float
    done: asyncio.Future[Any]
    came: float
    until: float = 0.0
    given_up: bool = False


class Pool:
    """A thread pool with a queue of at most ``queue`` jobs, each limited to ``seconds``."""

    def __init__(self, threads: int, queue: int, seconds: float) -> None:
        self.threads, self.queue, self.seconds = threads, queue, seconds
        self.waiting = 0
        """Number of queries waiting or running. Only the event loop may use it."""
        self.mean = 0.0
        """Mean seconds between two completed queries while others wait."""
        self._last = 0.0
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._running: set[_Job] = set()
        self._lost = 0
        for number in range(threads):
            self._begin(number)

    def _begin(self, number: int) -> None:
        threading.Thread(target=self._work, name=f"answers-{number}", daemon=True).start()

    @property
    def wait(self) -> float:
        """Return the expected wait of a new query, in seconds."""
        return max(0, self.waiting - self.threads + 1) * self.mean

    @property
    def full(self) -> bool:
        """Return whether the queue is full."""
        stuck = self._lost >= (1 + _STAND_INS) * self.threads
        return self.waiting >= self.queue + self.threads or stuck

    async def run(
        self,
        work: Callable[[], Result],
        *,
        most: float | None = None,
        pushing: bool = True,
        seconds: float | None = None,
    ) -> Result:
        """Run ``work`` in a thread.

        Raises :class:`QueryTimeout`; and, if ``pushing``, :class:`Full` if the queue is full or the
        expected wait exceeds ``most`` seconds.
        """
        if pushing:
            wait = self.wait
            if self.full or (most is not None and wait > most):
                raise Full(wait)
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.waiting += 1
        self._jobs.put(_Job(work, seconds or self.seconds, done, time.perf_counter()))
        return await done

    def look(self) -> None:
        """Abandon work that is past its deadline; call this regularly, from any thread."""
        now = clock()
        with self._lock:
            late = [job for job in list(self._running) if now > job.until + _LATE]
            for job in late:
                job.given_up = True
                self._running.discard(job)
                self._lost += 1
                if self._lost <= _STAND_INS * self.threads:
                    self._begin(self.threads + self._lost)
        for job in late:
            job.done.get_loop().call_soon_threadsafe(self._settle, job, None, too_long(job.seconds))

    def close(self) -> None:
        """End the threads after all waiting work."""
        for _ in range((1 + _STAND_INS) * self.threads):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if not self._do(job):
                return
            del job  # release the job's index while this thread waits

    def _do(self, job: _Job) -> bool:
        """Run a job; return whether this thread continues, rather than its replacement."""
        found, error = None, None
        if not job.done.cancelled():
            job.until = clock() + job.seconds
            self._running.add(job)
            try:
                with limited(job.seconds):
                    found = job.work()
            except BaseException as failed:
                error = failed
            with self._lock:
                self._running.discard(job)
                if job.given_up:
                    self._lost -= 1
                    return self._lost >= _STAND_INS * self.threads
        with suppress(RuntimeError):  # if the loop is closed, no request waits
            job.done.get_loop().call_soon_threadsafe(self._settle, job, found, error)
        return True

    def _settle(self, job: _Job, found: Any, error: BaseException | None) -> None:
        done = job.done
        self.waiting -= 1
        if not job.given_up:
            now = time.perf_counter()
            apart, self._last = now - max(job.came, self._last), now
            self.mean += (_SMOOTH if self.mean else 1.0) * (apart - self.mean)
        if done.cancelled():
            return
        if error is None:
            done.set_result(found)
        else:
            done.set_exception(error)


# -- adaptation --------------------------------------------------------------------------


_STEP = 0.75
_WINDOW = 0.1
_CALM, _LONGEST = 10, 100
"""Number of calm windows required before an increase: the initial number, and the maximum."""
_ENOUGH, _LONG = 5, 1.0
"""A window with answers ends when it has _ENOUGH of them, or after _LONG seconds."""
_LATE_SHARE, _LATE_LEAST = 0.1, 2
_HELD = 2.0
"""Seconds after which an increase counts as stable."""


class Adaptation:
    """Adapts the fraction of samples, from ``lowest`` to 1. Thread-safe."""

    def __init__(self, target: float, lowest: float, now: float) -> None:
        self.target, self.lowest, self.share = target, lowest, 1.0
        self._lock = threading.Lock()
        self._begin, self._count, self._late, self._slow = now, 0, 0, 0
        self._calm, self._requested, self._raised = 0, _CALM, float("-inf")

    @property
    def at_floor(self) -> bool:
        """Return whether the fraction is at its minimum."""
        return self.share <= self.lowest

    def answered(self, seconds: float, now: float) -> None:
        """Record how long an answer took."""
        with self._lock:
            self._close(now)
            self._count += 1
            self._late += seconds > self.target
            self._slow += seconds > self.target / 2

    def refused(self, now: float) -> None:
        """Record a refusal under overload, which counts as a late answer."""
        self.answered(float("inf"), now)

    def share_now(self, now: float) -> float:
        """Return the fraction for a new query."""
        if now - self._begin >= _WINDOW:
            with self._lock:
                self._close(now)
        return self.share

    def _close(self, now: float) -> None:
        """Complete the windows that have ended; the first gets all counts."""
        over = int((now - self._begin) / _WINDOW)
        if over < 1 or (0 < self._count < _ENOUGH and now - self._begin < _LONG):
            return
        if self._late >= _LATE_LEAST and self._late > _LATE_SHARE * self._count:
            self._down(now)
        elif self._slow > _LATE_SHARE * self._count:
            self._calm = 0
        else:
            self._calm += 1
        self._calm += over - 1
        while self._calm >= self._requested:
            self._calm -= self._requested
            if not self._up(now):
                self._calm = 0
        self._begin = now if over > 1 else self._begin + _WINDOW
        self._count = self._late = self._slow = 0

    def _down(self, now: float) -> None:
        if now - self._raised < _HELD:
            self._requested = min(_LONGEST, 2 * self._requested)
        self._raised = float("-inf")
        self.share = max(self.lowest, self.share * _STEP)
        self._calm = 0

    def _up(self, now: float) -> bool:
        if self.share >= 1.0:
            self._requested = _CALM
            return False
        if now - self._raised >= _HELD and self._raised > float("-inf"):
            self._requested = _CALM
        self.share = min(1.0, self.share / _STEP)
        self._raised = now
        return True
