"""Building an index: sample by sample on all cores, written in shards, resumable at each shard.

A shard file appears under its name when its bytes are on the disk; a small note beside it
(members, digests) is written after it. A build that stops, however it stops, loses the shard it was
in. Run again with the same settings on the same graph it takes up what is there, and ends
with the bytes it would have had: samples depend on (graph, measure, length, seed, number) only.

Memory: the graph, mapped, and for each thread one maker and a finished blob that waits for its
turn. The number of threads is lowered until that fits the budget; if one thread does not, the
graph is cut into destination blocks, of which one at a time is in memory (``engine/walk.py``), and
if not even the tokens fit, they lie in files beside the shards (``engine/external.py``).
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from cocite.engine import MAX_LENGTH, ExternalWalker, Walker
from cocite.errors import Damaged, ResourceError, UsageError
from cocite.graph import Graph
from cocite.graph.names import NAME_FILES
from cocite.index.external_trees import ExternalTreeMaker
from cocite.index.room import Room, plan_memory
from cocite.index.stored import DIGESTS, MEMBERS, StoredIndex, shard_file
from cocite.index.trees import Blob, TreeMaker, blob_words
from cocite.measures import Measure, find_measure
from cocite.memory import budget, checked_threads, format_size
from cocite.runner import in_order
from cocite.store import FORMAT_VERSION, ArrayWriter, Draft, Entry, Manifest, checksum, disk

__all__ = ["BuildOptions", "BuildReport", "Estimate", "IndexBuild"]

MAX_SAMPLES = 65_535
_SHARD_SAMPLES, _SHARD_BYTES = 16, 1 << 30
_MOST_SHARDS = 512
"""Every shard is a mapped file, and a process may open about a thousand."""
_PLAN, _NOTE = "plan.json", ".json"

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class BuildOptions:
    """What an index is made of; checked here, once."""

    measure: Measure
    samples: int
    length: int
    seed: int

    @classmethod
    def checked(cls, measure: str, samples: int, length: int, seed: int) -> BuildOptions:
        """Raises :class:`UsageError` for a value that is not allowed."""
        for name, value, low, high in (
            ("samples", samples, 1, MAX_SAMPLES),
            ("length", length, 1, MAX_LENGTH),
            ("seed", seed, 0, 2**64 - 1),
        ):
            if type(value) is not int or not low <= value <= high:
                raise UsageError(f"{name} is {value!r}; it is a whole number from {low} to {high}")
        return cls(find_measure(measure), samples, length, seed)


@dataclass(frozen=True)
class Estimate:
    """What a build will take: ``bytes`` on disk at most, ``room``, ``seconds``."""

    bytes: int
    room: Room
    seconds: float
    samples_done: int

    def __str__(self) -> str:
        text = f"{format_size(self.bytes)} on disk, {self.room}, about {format_time(self.seconds)}"
        if self.samples_done:
            text += f"; goes on after {self.samples_done} samples that an earlier run finished"
        return text


@dataclass(frozen=True)
class BuildReport:
    """What a build took: of the samples it made itself, if it resumed."""

    samples: int
    seconds: float
    live_steps: int
    members: int
    bytes: int


def format_time(seconds: float) -> str:
    """Seconds for people."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class IndexBuild:
    """One build: ``with IndexBuild(...) as build: build.estimate(); build.run(progress)``."""

    def __init__(
        self,
        graph: Graph,
        output: str | os.PathLike[str],
        options: BuildOptions,
        *,
        threads: int | None = None,
        memory: str | int | None = None,
        shard: int | None = None,
        blocks: int | None = None,
        external: bool = False,
        overwrite: bool = False,
        restart: bool = False,
    ) -> None:
        graph.check()
        self._graph, self._options, self._restart = graph, options, restart
        self._draft = Draft(os.fspath(output), "index", overwrite=overwrite, resumable=True)
        if shard is not None and (type(shard) is not int or shard < 1):
            raise UsageError(f"shard is {shard!r}; it is a number of samples, 1 or more")
        blob = 4 * blob_words(graph.nodes, graph.nodes)
        self._shard = shard or max(
            1, min(_SHARD_SAMPLES, _SHARD_BYTES // blob), -(-options.samples // (_MOST_SHARDS // 2))
        )
        if -(-options.samples // self._shard) > _MOST_SHARDS:
            least = -(-options.samples // _MOST_SHARDS)
            raise UsageError(
                f"shard is {shard}; {options.samples:,} samples take shards of {least} or more, as "
                f"an index has at most {_MOST_SHARDS} files"
            )
        wanted = min(checked_threads(threads), options.samples)
        self._room = plan_memory(graph, wanted, budget(memory), blocks, external)
        self._makers: Sequence[Callable[[int], Blob]] = []
        self._notes: dict[int, dict[str, Any]] = {}

    def __enter__(self) -> IndexBuild:
        self._draft.__enter__()
        try:
            self._resume_or_clear()
        except BaseException as error:
            self._draft.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._makers = []  # their memory, and their scratch files
        if isinstance(error, KeyboardInterrupt):
            kept = self._options.samples - sum(len(shard) for shard in self._missing())
            error.add_note(
                f"{kept} of {self._options.samples} samples are kept in {self._draft.path}: repeat "
                "the command to go on"
            )
        self._draft.__exit__(kind, error, trace)

    # -- what is there, what is to do -------------------------------------------------

    @property
    def _plan(self) -> dict[str, Any]:
        """Everything that the bytes of the shards depend on, and where they are cut."""
        o = self._options
        return {
            "format": FORMAT_VERSION,
            "measure": o.measure.name,
            "samples": o.samples,
            "length": o.length,
            "seed": o.seed,
            "shard": self._shard,
            "graph": self._graph.digest,
        }

    def _resume_or_clear(self) -> None:
        """Keep the finished shards of an earlier run of the same plan."""
        path = self._draft.path / _PLAN
        found: Any = None
        if path.is_file():
            try:
                found = json.loads(path.read_bytes())
            except ValueError:
                found = None  # killed while writing it: nothing else is there yet
        if found == self._plan and not self._restart:
            for shard in self._shards():
                note = self._read_note(shard)
                if note is not None:
                    self._notes[shard.start] = note
            return
        if found is not None and not self._restart:
            raise UsageError(_other_plan(self._draft.path, found, self._plan))
        self._draft.clear()
        with path.open("wb") as file:
            disk.write(file, json.dumps(self._plan).encode())
            disk.sync_file(file)

    def _read_note(self, shard: range) -> dict[str, Any] | None:
        """The note of a finished shard whose bytes are whole, or None."""
        name = shard_file(shard.start)
        try:
            note: dict[str, Any] = json.loads((self._draft.path / (name + _NOTE)).read_bytes())
            entry = Entry.from_json(name, note["entry"])
            counts = len(note["members"]), len(note["digests"])
            if checksum(self._draft.path / name, entry) != entry.xxh3_128:
                return None
        except (OSError, ValueError, KeyError, TypeError, Damaged):
            return None
        return note if counts == (len(shard), len(shard)) else None

    def _shards(self) -> list[range]:
        total = self._options.samples
        return [range(a, min(a + self._shard, total)) for a in range(0, total, self._shard)]

    def _missing(self) -> list[range]:
        return [shard for shard in self._shards() if shard.start not in self._notes]

    def _ready_makers(self) -> Sequence[Callable[[int], Blob]]:
        o, room, graph, here = self._options, self._room, self._graph, self._draft.path
        walk = graph, o.measure.step, o.length, o.seed, room.cuts
        if not self._makers and room.external:
            walker = ExternalWalker(*walk, here, room.rows)
            self._makers = [ExternalTreeMaker(walker, graph.nodes, here)]
        elif not self._makers:
            walkers = [Walker(*walk) for _ in range(room.threads)]
            self._makers = [TreeMaker(walker, graph.nodes, room.keep) for walker in walkers]
        return self._makers

    def estimate(self) -> Estimate:
        """Size, memory and time, from a pilot sample a thread on this graph (made twice: the first
        compiles the kernels and brings the graph into memory).
        """
        makers = self._ready_makers()
        pilots = range(len(makers))
        size = sum(blob.nbytes for blob in in_order(makers, pilots)) / len(makers)
        begin = time.perf_counter()
        for _ in in_order(makers, pilots):
            pass
        each = (time.perf_counter() - begin) / len(makers)
        todo = sum(len(shard) for shard in self._missing())
        names = self._name_files().values()
        samples = self._options.samples
        total = int(samples * (size + 12)) + sum(entry.nbytes for entry in names)
        free = shutil.disk_usage(self._draft.path).free
        if size * todo > free:
            raise ResourceError(
                f"the index takes about {format_size(total)}; {format_size(free)} are free at "
                f"{self._draft.output.parent}. Choose another output, or fewer samples"
            )
        return Estimate(total, self._room, each * todo, samples - todo)

    # -- the work ----------------------------------------------------------------------

    def run(self, progress: Progress = lambda done, total: None) -> BuildReport:
        """Make what is missing and publish; ``progress`` gets samples (done, total)."""
        begin = time.perf_counter()
        missing = self._missing()
        total = self._options.samples
        todo = [sample for shard in missing for sample in shard]
        done = total - len(todo)
        live = 0
        progress(done, total)
        blobs = in_order(self._ready_makers(), todo)
        try:
            for shard in missing:
                for blob in self._write_shard(shard, islice(blobs, len(shard))):
                    done += 1
                    live += sum(blob.live)
                    progress(done, total)
        finally:
            blobs.close()  # type: ignore[attr-defined]
        path = self._publish()
        stored = StoredIndex.open(path)
        return BuildReport(
            samples=len(todo),
            seconds=time.perf_counter() - begin,
            live_steps=live,
            members=int(stored.store.array(MEMBERS).sum()),
            bytes=stored.store.nbytes,
        )

    def _write_shard(self, shard: range, blobs: Iterator[Blob]) -> Iterator[Blob]:
        """Write one shard and its note; yields each blob as it is written."""
        name = shard_file(shard.start)
        beside = self._draft.path / (name + ".new")
        members, digests = [], []
        with ArrayWriter(beside, np.uint32) as writer:
            for blob in blobs:
                for part in blob.parts:
                    writer.write(part)
                members.append(blob.members)
                digests.append(blob.digest)
                yield blob
        disk.rename(beside, self._draft.path / name)
        note = {"entry": writer.finished.to_json(), "members": members, "digests": digests}
        with (beside.with_name(name + _NOTE + ".new")).open("wb") as file:
            disk.write(file, json.dumps(note).encode())
            disk.sync_file(file)
        disk.rename(beside.with_name(name + _NOTE + ".new"), self._draft.path / (name + _NOTE))
        disk.sync_directory(self._draft.path)
        self._notes[shard.start] = note

    def _name_files(self) -> dict[str, Entry]:
        files = self._graph.store.manifest.files
        return {name: entry for name, entry in files.items() if name.startswith(NAME_FILES)}

    def _publish(self) -> Path:
        """Gather the notes, copy the names, write the manifest."""
        directory, files = self._draft.path, {}
        members: list[int] = []
        digests: list[int] = []
        for shard in self._shards():
            note = self._notes[shard.start]
            files[shard_file(shard.start)] = Entry.from_json(shard_file(0), note["entry"])
            members += note["members"]
            digests += note["digests"]
        for name, dtype, values in (
            (MEMBERS, np.uint32, members),
            (DIGESTS, np.uint64, digests),
        ):
            with ArrayWriter(directory / name, dtype) as writer:
                writer.write(np.array(values, dtype))
            files[name] = writer.finished
        for name, entry in self._name_files().items():
            _copy(self._graph.path / name, directory / name, entry)
            files[name] = entry
        o, graph = self._options, self._graph
        facts = {
            "nodes": graph.nodes,
            "names": graph.store.facts["names"],
            "measure": o.measure.name,
            "layout": "trees",
            "samples": o.samples,
            "length": o.length,
            "seed": o.seed,
            "graph": {
                "name": graph.path.resolve().name,
                "digest": graph.digest,
                "edges": graph.edges,
            },
        }
        return self._draft.publish(Manifest("index", facts, files))


def _copy(source: Path, target: Path, entry: Entry) -> None:
    """Copy one array file and see that it arrived whole."""
    with source.open("rb") as reader, target.open("wb") as writer:
        while piece := reader.read(1 << 22):
            disk.write(writer, piece)
        disk.sync_file(writer)
    if checksum(target, entry) != entry.xxh3_128:
        raise Damaged(f"{source} does not match its checksum. Build the graph again")


def _other_plan(path: Path, found: Any, plan: dict[str, Any]) -> str:
    differing = [key for key in plan if not isinstance(found, dict) or found.get(key) != plan[key]]
    return (
        f"{path} holds an unfinished build with another {' and '.join(differing)}. Repeat that "
        "build's settings to go on with it, or pass --restart (restart=True) to begin anew"
    )
