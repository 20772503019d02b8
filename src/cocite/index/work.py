"""The work of making samples, as a value: whoever gets it, and wherever, makes the same bytes.

    SampleWork(graph's path and digest, a part's plan, sample numbers, means, folder)

It holds no links and no open files: pickled it is one or two kilobytes. A build makes its own
samples by it, with links that its parts share; another process, or another machine that sees the
graph, opens the graph for itself, sees by the digest that it is the very one, and plans its memory
by the same means. One shard at a time:

    pickle.loads(sent).of(range(32, 48)).write()

A shard is its file, and a note beside it (members, digests) that is written after it. Whatever made
them, a build that finds both in its draft goes on behind them.

Cost: as ``layouts/blobs.py``; a worker of its own checks the graph, by a pass over its files, once
a process, and turns its links round for the direction ``out``. Samples that a builder makes
``together`` had better be of one shard.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cocite.errors import Damaged, UsageError
from cocite.graph import Graph
from cocite.graph.links import links_of
from cocite.graph.rows import Links
from cocite.layouts.blobs import Blob, Maker
from cocite.layouts.format import shard_file
from cocite.layouts.memory_plan import MemoryPlan
from cocite.layouts.plan import PartPlan
from cocite.layouts.table import sampled_builder
from cocite.means import Means
from cocite.runner import in_order
from cocite.store import MANIFEST, ArrayWriter, Entry, checksum, disk, written_beside

__all__ = ["Note", "SampleWork", "read_note", "write_shard"]

_NOTE = ".json"
Note = dict[str, Any]
"""Of a shard: its ``entry`` in the manifest, and of each sample its ``members`` and ``digests``."""


@dataclass(frozen=True)
class SampleWork:
    """The samples of ``numbers`` of a part, from the ``graph`` of that ``digest``; shards, notes
    and scratch files lie in ``folder``.
    """

    graph: Path
    digest: str
    plan: PartPlan
    numbers: range
    means: Means
    folder: Path
    verify: bool = True
    """Whether the graph's files are compared with their checksums."""

    def of(self, numbers: range) -> SampleWork:
        """The same of other samples."""
        return replace(self, numbers=numbers)

    @property
    def shard(self) -> Path:
        """The file of these samples, if they are a shard."""
        return self.folder / (self.plan.prefix + shard_file(self.numbers.start))

    # -- in any process ------------------------------------------------------------------

    def links(self) -> Links:
        """The links that the part follows, from the graph itself, checked once a process: whoever
        makes many shards of one graph reads it once for that.

        Raises a :class:`~cocite.errors.StoreError`, and :class:`UsageError` if another graph is
        there.
        """
        found = _checked(self.graph, self.digest, self.verify, _identity(self.graph / MANIFEST))
        plan = self.plan
        if plan.wanted is not None:
            plan.wanted.check()
        return links_of(found, plan.direction, self.means.memory, weighted=plan.weighted)

    def fit(self, links: Links) -> MemoryPlan:
        """How the work fits its memory; raises :class:`ResourceError` if it does not."""
        return sampled_builder(self.plan.layout).fitted(links, self.plan, self.means)

    def makers(self, links: Links, fit: MemoryPlan) -> list[Maker]:
        """What makes any samples of the part, as many at a time as there are."""
        builder = sampled_builder(self.plan.layout)
        return builder.makers(links, self.plan, fit, self.folder, self.numbers)

    def blobs(self) -> Iterator[Blob]:
        """The samples, in the order of their numbers; each is valid until the next is asked for."""
        links = self.links()
        return in_order(self.makers(links, self.fit(links)), self.numbers)

    def write(self) -> None:
        """Make the samples, and write them as one shard with its note."""
        for _ in write_shard(self.shard, self.blobs()):
            pass

    def keep(self, note: Note) -> None:
        """Write the note of the shard that is there."""
        _write_note(self.shard, note)


def _identity(path: Path) -> tuple[int, int, int] | None:
    """Of a file, as long as nobody writes it anew; None if it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


@lru_cache(maxsize=1)
def _checked(path: Path, digest: str, verify: bool, identity: tuple[int, int, int] | None) -> Graph:
    """The graph whose manifest is a file of that ``identity``, as long as this process draws
    samples of it and of no other.
    """
    found = Graph.open(path, verify=verify)
    if found.digest != digest:
        raise UsageError(
            f"{path} is not the graph that these samples are to be drawn from: their checksums "
            "differ. Put that one there, or begin the build again"
        )
    found.check()
    return found


# -- shards and their notes --------------------------------------------------------------


def write_shard(path: Path, blobs: Iterable[Blob]) -> Generator[Blob, None, Note]:
    """Write a shard, then its note; yields each blob as it is written, and returns the note."""
    members, digests = [], []
    with written_beside(path) as file, ArrayWriter(file, np.uint32) as writer:
        for blob in blobs:
            for part in blob.parts:
                writer.write(part)
            members.append(blob.members)
            digests.append(blob.digest)
            yield blob
    note = {"entry": writer.finished.to_json(), "members": members, "digests": digests}
    _write_note(path, note)
    return note


def _write_note(path: Path, note: Note) -> None:
    with written_beside(path.with_name(path.name + _NOTE)) as file:
        disk.write(file, json.dumps(note).encode())


def read_note(path: Path, samples: int) -> Note | None:
    """The note of a shard of so many samples whose bytes are whole, or None."""
    try:
        note: Note = json.loads(path.with_name(path.name + _NOTE).read_bytes())
        entry = Entry.from_json(path.name, note["entry"])
        counts = len(note["members"]), len(note["digests"])
        if checksum(path, entry) != entry.xxh3_128:
            return None
    except (OSError, ValueError, KeyError, TypeError, Damaged):
        return None
    return note if counts == (samples, samples) else None
