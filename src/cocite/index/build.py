"""Building an index: sample by sample on all cores, written in shards, resumable at each shard.

A shard file appears under its name when its bytes are on the disk; a small note beside it
(members, digests) is written after it. A build that stops, however it stops, loses the shard it was
in. Run again with the same settings on the same graph it takes up what is there, and ends
with the bytes it would have had: samples depend on (graph, measure, length, seed, number) only.

Memory: for each thread one maker and a finished blob that waits for its turn; the graph is
mapped. The number of threads is lowered until it fits the budget.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from cocite.engine import MAX_LENGTH
from cocite.errors import Damaged, ResourceError, UsageError
from cocite.graph import Graph
from cocite.graph.names import NAME_FILES
from cocite.index.stored import DIGESTS, MEMBERS, StoredIndex, shard_file
from cocite.index.trees import Blob, TreeMaker, blob_words, maker_bytes
from cocite.measures import Measure, find_measure
from cocite.memory import available, budget, format_size
from cocite.runner import in_order
from cocite.store import ArrayWriter, Draft, Entry, Manifest, checksum, disk

__all__ = ["BuildOptions", "BuildReport", "Estimate", "IndexBuild"]

MAX_SAMPLES = 65_535
_SHARD_SAMPLES, _SHARD_BYTES = 16, 1 << 30
_OWN_MEMORY = 150 << 20
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
    """What a build will take: ``bytes`` on disk at most, ``memory``, ``seconds``."""

    bytes: int
    memory: int
    seconds: float
    threads: int
    samples_done: int

    def __str__(self) -> str:
        text = (
            f"{format_size(self.bytes)} on disk, {format_size(self.memory)} of memory on "
            f"{self.threads} thread{'s' * (self.threads > 1)}, about {format_time(self.seconds)}"
        )
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
        overwrite: bool = False,
        restart: bool = False,
    ) -> None:
        if graph.nodes == 0:
            raise UsageError(f"{graph.path} has no nodes: there is nothing to index")
        self._graph, self._options, self._restart = graph, options, restart
        self._draft = Draft(os.fspath(output), overwrite=overwrite, resumable=True)
        blob = 4 * blob_words(graph.nodes, graph.nodes)
        self._shard = shard or max(1, min(_SHARD_SAMPLES, _SHARD_BYTES // blob))
        if shard is not None and shard < 1:
            raise UsageError(f"shard is {shard}; it is a number of samples, 1 or more")
        self._threads = self._fit_threads(threads, budget(memory), blob)
        self._memory = _OWN_MEMORY + self._threads * (maker_bytes(graph.nodes) + blob)
        self._makers: list[TreeMaker] = []

    def _fit_threads(self, threads: int | None, memory: int, blob: int) -> int:
        each = maker_bytes(self._graph.nodes) + blob
        wanted = min(os.cpu_count() or 1, self._options.samples) if threads is None else threads
        if wanted < 1:
            raise UsageError(f"threads is {threads}; it is 1 or more")
        fitting = (memory - _OWN_MEMORY) // each
        if fitting < 1:
            raise ResourceError(
                f"a graph of {self._graph.nodes:,} nodes needs {format_size(_OWN_MEMORY + each)} "
                f"of memory to index with one thread; {format_size(memory)} may be used and "
                f"{format_size(available())} are free. Give more with --memory"
            )
        return min(wanted, fitting)

    def __enter__(self) -> IndexBuild:
        self._draft.__enter__()
        try:
            self._resume_or_clear()
        except BaseException as error:
            self._draft.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._draft.__exit__(kind, error, trace)

    # -- what is there, what is to do -------------------------------------------------

    @property
    def _plan(self) -> dict[str, Any]:
        """Everything that the bytes of the shards depend on, and where they are cut."""
        o = self._options
        return {
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
            return
        if found is not None and not self._restart:
            raise UsageError(_other_plan(self._draft.path, found, self._plan))
        self._draft.clear()
        with path.open("wb") as file:
            disk.write(file, json.dumps(self._plan).encode())
            disk.sync_file(file)

    def _note(self, first: int) -> dict[str, Any] | None:
        """The note of a shard that is finished and whole in size, or None."""
        name = shard_file(first)
        try:
            note = json.loads((self._draft.path / (name + _NOTE)).read_bytes())
            entry = Entry.from_json(name, note["entry"])
            return note if (self._draft.path / name).stat().st_size == entry.nbytes else None
        except (OSError, ValueError, KeyError):
            return None

    def _shards(self) -> list[range]:
        total = self._options.samples
        return [range(a, min(a + self._shard, total)) for a in range(0, total, self._shard)]

    def _missing(self) -> list[range]:
        return [shard for shard in self._shards() if self._note(shard.start) is None]

    def _maker(self) -> TreeMaker:
        o = self._options
        return TreeMaker(self._graph, o.measure.step, o.length, o.seed)

    def estimate(self) -> Estimate:
        """Size, memory and time, from one pilot sample on this graph (made twice: the first
        compiles the kernels and brings the graph into memory).
        """
        if not self._makers:
            self._makers = [self._maker() for _ in range(self._threads)]
        self._makers[0](0)
        begin = time.perf_counter()
        blob = self._makers[0](0)
        each = time.perf_counter() - begin
        todo = sum(len(shard) for shard in self._missing())
        names = self._name_files().values()
        samples = self._options.samples
        size = samples * (blob.words.nbytes + 16) + sum(entry.nbytes for entry in names)
        free = shutil.disk_usage(self._draft.path).free
        if size * todo / samples > free:
            raise ResourceError(
                f"the index takes about {format_size(size)}; {format_size(free)} are free at "
                f"{self._draft.output.parent}. Choose another output, or fewer samples"
            )
        return Estimate(
            size, self._memory, each * todo / self._threads, self._threads, samples - todo
        )

    # -- the work ----------------------------------------------------------------------

    def run(self, progress: Progress = lambda done, total: None) -> BuildReport:
        """Make what is missing and publish; ``progress`` gets samples (done, total)."""
        begin = time.perf_counter()
        if not self._makers:
            self._makers = [self._maker() for _ in range(self._threads)]
        missing = self._missing()
        total = self._options.samples
        todo = [sample for shard in missing for sample in shard]
        done = total - len(todo)
        live = 0
        progress(done, total)
        blobs = in_order(self._makers, todo)
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
                writer.write(blob.words)
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

    def _name_files(self) -> dict[str, Entry]:
        files = self._graph.store.manifest.files
        return {name: entry for name, entry in files.items() if name.startswith(NAME_FILES)}

    def _publish(self) -> Path:
        """Gather the notes, copy the names, write the manifest."""
        directory, files = self._draft.path, {}
        members: list[int] = []
        digests: list[int] = []
        for shard in self._shards():
            note = self._note(shard.start)
            if note is None:
                raise Damaged(f"a finished shard disappeared from {directory}")
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
            "graph": {"name": graph.path.name, "digest": graph.digest, "edges": graph.edges},
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
