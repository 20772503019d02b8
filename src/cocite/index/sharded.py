"""A part made sample by sample on all cores, written in shards, resumable at each shard.

A shard file appears under its name when its bytes are on the disk; a small note beside it
(members, digests) is written after it. A build that stops, however it stops, loses the shard it was
in. Run again with the same settings on the same graph it takes up what is there, and ends
with the bytes it would have had: samples depend on (graph, measure, length, seed, number) only.

Memory: the graph, mapped, and for each thread one maker and a finished blob that waits for its
turn (``room.py``).
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from cocite.errors import Damaged, UsageError
from cocite.graph.links import Links
from cocite.index.blobs import Blob, Maker, sampled_layout
from cocite.index.part import Estimate, PartBuild, Progress
from cocite.index.plan import PartPlan
from cocite.index.room import Room
from cocite.index.stored import DIGESTS, MEMBERS, shard_file
from cocite.measures import SAMPLES
from cocite.runner import in_order
from cocite.store import ArrayWriter, Entry, checksum, disk

__all__ = ["MOST_SHARDS", "Kept", "ShardedPart", "shard_samples"]

_SHARD_SAMPLES, _SHARD_BYTES = 16, 1 << 30
MOST_SHARDS = 512
"""Every shard is a mapped file, and a process may open about a thousand."""
_NOTE = ".json"


def shard_samples(plan: PartPlan, nodes: int, asked: int | None) -> int:
    """Samples in a shard: as asked, or what makes files of a sensible size and number."""
    samples = plan.settings[SAMPLES]
    if asked is not None and (type(asked) is not int or asked < 1):
        raise UsageError(f"shard is {asked!r}; it is a number of samples, 1 or more")
    blob = 4 * sampled_layout(plan.layout).most_words(nodes, plan.settings)
    shard = asked or max(
        1, min(_SHARD_SAMPLES, _SHARD_BYTES // blob), -(-samples // (MOST_SHARDS // 2))
    )
    if -(-samples // shard) > MOST_SHARDS:
        raise UsageError(
            f"shard is {shard}; {samples:,} samples take shards of {-(-samples // MOST_SHARDS)} or "
            f"more, as an index has at most {MOST_SHARDS} files"
        )
    return shard


class Kept(ABC):
    """The older samples of a part that is refreshed (``index/refresh.py``)."""

    numbers: range
    """Those of its samples; what is drawn follows behind them."""
    shards: Sequence[range]
    """How they are cut into shards."""

    @abstractmethod
    def link(self, shard: range, path: Path) -> dict[str, Any] | None:
        """Give the file of a shard that stays as it is the name ``path``; returns its note, None if
        it does not stay.
        """

    @abstractmethod
    def makers(self) -> list[Maker]:
        """One a thread."""


class ShardedPart(PartBuild):
    """A part of samples. ``links`` gives those of the part's direction when they are needed.

    It makes the samples of ``numbers``, by default as many as the settings say, from 0 on; those
    ``kept`` come before them.
    """

    def __init__(
        self,
        plan: PartPlan,
        links: Callable[[], Links],
        directory: Path,
        shard: int,
        room: Callable[[Links], Room],
        numbers: range | None = None,
        kept: Kept | None = None,
    ) -> None:
        self.plan = plan
        self._numbers = range(plan.settings[SAMPLES]) if numbers is None else numbers
        self._kept = kept
        self.units = plan.settings[SAMPLES]
        self._links, self._room, self._directory, self._shard = links, room, directory, shard
        self.linked = 0
        self._makers: list[Maker] = []
        self._notes: dict[int, dict[str, Any]] = {}

    # -- what is there, what is to do -------------------------------------------------

    def resume(self) -> None:
        """Keep the shards whose bytes are whole."""
        for shard in self._shards():
            note = self._read_note(shard)
            if note is not None:
                self._notes[shard.start] = note

    def link_kept(self) -> None:
        """Take over the shards that stay as they are."""
        if self._kept is None:
            return
        for shard in self._kept.shards:
            note = self._kept.link(shard, self._directory / self._name(shard))
            if note is not None:
                self.linked += len(shard)
                self._notes[shard.start] = note

    @property
    def done(self) -> int:
        """Samples in finished shards."""
        return self.units - sum(len(shard) for shard in self._missing())

    def _name(self, shard: range) -> str:
        return self.plan.prefix + shard_file(shard.start)

    def _read_note(self, shard: range) -> dict[str, Any] | None:
        """The note of a finished shard whose bytes are whole, or None."""
        name = self._name(shard)
        try:
            note: dict[str, Any] = json.loads((self._directory / (name + _NOTE)).read_bytes())
            entry = Entry.from_json(name, note["entry"])
            counts = len(note["members"]), len(note["digests"])
            if checksum(self._directory / name, entry) != entry.xxh3_128:
                return None
        except (OSError, ValueError, KeyError, TypeError, Damaged):
            return None
        return note if counts == (len(shard), len(shard)) else None

    def _shards(self) -> list[range]:
        return [*(() if self._kept is None else self._kept.shards), *self._drawn_shards()]

    def _drawn_shards(self) -> list[range]:
        numbers, size = self._numbers, self._shard
        return [numbers[low : low + size] for low in range(0, len(numbers), size)]

    def _missing(self) -> list[range]:
        return [shard for shard in self._shards() if shard.start not in self._notes]

    def _ready_makers(self) -> list[Maker]:
        if not self._makers:
            links = self._links()
            self.room = self._room(links)
            self._makers = sampled_layout(self.plan.layout).makers(
                links, self.plan, self.room, self._directory
            )
        return self._makers

    def estimate(self) -> Estimate:
        """Size, memory and time, from pilot samples on this graph: as many as the makers make at
        once, after another one each, which compiles the kernels and brings the graph into memory.
        """
        makers = self._ready_makers()
        count = len(makers) * sampled_layout(self.plan.layout).together
        first = self._numbers.start
        for _ in in_order(makers, range(first + count, first + count + len(makers))):
            pass
        begin = time.perf_counter()
        pilots = range(first, first + count)
        size = sum(blob.nbytes for blob in in_order(makers, pilots)) / count
        seconds = time.perf_counter() - begin
        left = sum(len(shard) for shard in self._drawn_shards() if shard.start not in self._notes)
        seconds = seconds * -(-left // count) + self._carrying()
        return Estimate(int(self.units * (size + 12)), self.room, seconds)

    def _carrying(self) -> float:
        """Seconds that the samples kept will take, from one of them."""
        missing = [shard for shard in self._missing() if shard.start < self._numbers.start]
        if self._kept is None or not missing:
            return 0.0
        makers, sample = self._kept.makers(), missing[0].start
        makers[0](sample)  # compiles the kernels
        begin = time.perf_counter()
        makers[0](sample)
        left = sum(map(len, missing))
        return (time.perf_counter() - begin) * -(-left // len(makers))

    # -- the work ----------------------------------------------------------------------

    def run(self, progress: Progress) -> None:
        """Make the missing samples, shard by shard."""
        if self._kept is not None:
            self._make(self._kept.shards, self._kept.makers, progress)
        self._make(self._drawn_shards(), self._ready_makers, progress)

    def _make(
        self, shards: Sequence[range], makers: Callable[[], list[Maker]], progress: Progress
    ) -> None:
        missing = [shard for shard in shards if shard.start not in self._notes]
        todo = [sample for shard in missing for sample in shard]
        done = self.done
        if not todo:
            return
        blobs = in_order(makers(), todo)
        try:
            for shard in missing:
                for blob in self._write_shard(shard, islice(blobs, len(shard))):
                    done += 1
                    self.live_steps += sum(blob.live)
                    progress(done, self.units)
        finally:
            blobs.close()  # type: ignore[attr-defined]
            self.close()  # before the next part takes memory of its own

    def _write_shard(self, shard: range, blobs: Iterator[Blob]) -> Iterator[Blob]:
        """Write one shard and its note; yields each blob as it is written."""
        name = self._name(shard)
        beside = self._directory / (name + ".new")
        members, digests = [], []
        with ArrayWriter(beside, np.uint32) as writer:
            for blob in blobs:
                for part in blob.parts:
                    writer.write(part)
                members.append(blob.members)
                digests.append(blob.digest)
                yield blob
        disk.rename(beside, self._directory / name)
        note = {"entry": writer.finished.to_json(), "members": members, "digests": digests}
        with (beside.with_name(name + _NOTE + ".new")).open("wb") as file:
            disk.write(file, json.dumps(note).encode())
            disk.sync_file(file)
        disk.rename(beside.with_name(name + _NOTE + ".new"), self._directory / (name + _NOTE))
        disk.sync_directory(self._directory)
        self._notes[shard.start] = note

    def close(self) -> None:
        """The makers go, and their scratch with them."""
        self._makers = []

    def publish(self) -> dict[str, Entry]:
        """Gather the notes into two arrays."""
        files = {}
        members: list[int] = []
        digests: list[int] = []
        for shard in self._shards():
            note = self._notes[shard.start]
            files[self._name(shard)] = Entry.from_json(self._name(shard), note["entry"])
            members += note["members"]
            digests += note["digests"]
        for kind, dtype, values in (
            (MEMBERS, np.uint32, members),
            (DIGESTS, np.uint64, digests),
        ):
            name = self.plan.prefix + kind
            with ArrayWriter(self._directory / name, dtype) as writer:
                writer.write(np.array(values, dtype))
            files[name] = writer.finished
        return files
