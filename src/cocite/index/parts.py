"""Builds of single parts: samples in resumable shards, or arrays written as a whole.

A shard file is renamed into place once its bytes are on disk. Then a small note is written. An
interrupted build loses only the current shard, and the next run with the same settings reuses all
complete shards. The result is byte-identical, because a sample depends only on (graph, measure,
length, seed, number). A part without samples is reused if its note exists, and rebuilt otherwise.
Some layouts write logs from which they resume.

``index/layouts/memory_plan.py`` describes the memory.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np

from cocite.cluster import in_order
from cocite.constants import Words
from cocite.deadline import clock
from cocite.engine.carriers import Traffic
from cocite.engine.walk_batch import TOGETHER
from cocite.errors import Damaged, UsageError
from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.index.cluster import ClusterBuild, Note, SampleWork, read_note, write_shard
from cocite.index.layouts.batch_maker import Blob, Maker, WholeBuilder, fewer_together
from cocite.index.layouts.contract import DIGESTS, MEMBERS, PartPlan, shard_file
from cocite.index.layouts.memory_plan import MemoryPlan, PartEstimate, Progress
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import sampled_builder, sampled_format, whole_builder
from cocite.measures import SAMPLES
from cocite.storage import (
    Access,
    Entry,
    advise,
    checksum,
    disk,
    evict,
    map_array,
    staged_file,
    write_array,
)
from cocite.storage.staging import copy_array

_SHARD_SAMPLES, _SHARD_BYTES = 16, 1 << 30
MOST_SHARDS = 512
"""Maximum number of shards: each is a mapped file, and a process can open about 1,000 files."""


_MOST_LINKED = 256
"""Maximum number of shards to link; beyond that, all are rewritten as fewer, larger shards."""


def shard_samples(plan: PartPlan, nodes: int, asked: int | None) -> int:
    """Return the samples per shard: ``asked``, or a value that limits file sizes and numbers."""
    samples = plan.settings[SAMPLES]
    blob = 4 * sampled_format(plan.layout).most_words(nodes, plan.settings)
    shard = asked or max(
        1, min(_SHARD_SAMPLES, _SHARD_BYTES // blob), -(-samples // (MOST_SHARDS // 2))
    )
    if -(-samples // shard) > MOST_SHARDS:
        raise UsageError(
            f"shard is {shard}; for {samples:,} samples it must be at least "
            f"{-(-samples // MOST_SHARDS)}, because an index has at most {MOST_SHARDS} shards"
        )
    return shard


class CarriedShards:
    """A part's retained samples, whose shards are linked, or rewritten with new ids."""

    def __init__(
        self,
        part: StoredPart,
        numbers: range,
        ids: Callable[[], Words],
        same: bool,
        nodes: int,
        shard: int,
        threads: int,
    ) -> None:
        self.numbers = numbers
        self._part, self._ids, self._nodes, self._threads = part, ids, nodes, threads
        self._begins = [shard.number for shard in part.shards]
        found = [range(shard.number, shard.number + shard.samples) for shard in part.shards]
        whole = [each for each in found if same and each.start >= numbers.start]
        self._linked = set(whole) if len(whole) <= _MOST_LINKED else set[range]()
        self.shards: Sequence[range] = list(_cut(numbers, self._linked, shard))

    def link(self, shard: range, path: Path) -> Note | None:
        """Link an unchanged shard and return its note; return None if it must be rewritten."""
        if shard not in self._linked:
            return None
        store, name = self._part.store, self._part.prefix + shard_file(shard.start)
        entry = store.manifest.files[name]
        store.require(name)
        disk.remove(path)
        try:
            disk.link(store.path / name, path)
        except OSError:
            copy_array(store.path / name, path, entry)
        oldest = self._part.freshness.numbers.start
        places = slice(shard.start - oldest, shard.stop - oldest)
        counts, digests = self._part.array(MEMBERS)[places], self._part.array(DIGESTS)[places]
        note = {"members": counts.tolist(), "digests": digests.tolist()}
        return {"entry": entry.to_json(), **note}

    def makers(self) -> list[Maker]:
        """Return one maker per thread; raises :class:`Damaged` if a retained shard is damaged."""
        part, ids = self._part, self._ids()
        for shard in part.shards:
            numbers = range(shard.number, shard.number + shard.samples)
            if numbers.stop > self.numbers.start and numbers not in self._linked:
                advise(Access.THROUGH, shard.words)
                part.store.require(part.prefix + shard_file(shard.number))
        carry = sampled_builder(part.layout).carrier(ids, self._nodes, part.settings)

        def make(sample: int) -> Blob:
            number = bisect_right(self._begins, sample) - 1
            shard = part.shards[number]
            try:
                return carry(shard.words, shard.blobs[sample - self._begins[number]])
            except IndexError as error:
                raise part.damaged(shard.first) from error
            finally:
                evict(shard.words)

        return [make] * self._threads


def _cut(numbers: range, linked: set[range], shard: int) -> Iterator[range]:
    """Divide sample numbers into the linked shards and new shards between them."""
    ends = {each.start: each.stop for each in linked}
    start = numbers.start
    while start < numbers.stop:
        after = min((first for first in ends if first > start), default=numbers.stop)
        stop = ends.get(start, min(start + shard, after))
        yield range(start, stop)
        start = stop


class ShardedPart:
    """A part with samples for ``nodes`` nodes: first the ``kept`` samples, then the samples of
    ``work``. ``links`` returns the part's links. With ``spread``, cluster nodes draw the samples.
    """

    fit: MemoryPlan | None = None
    """Memory plan, None until the makers are ready."""
    live_steps = 0
    """Number of walk steps in this run."""
    traffic: Traffic | None = None
    """Traffic between partitions in this run."""

    def __init__(
        self,
        work: SampleWork,
        links: Callable[[], Links],
        nodes: int,
        shard: int,
        kept: CarriedShards | None = None,
        spread: ClusterBuild | None = None,
    ) -> None:
        self._spread = spread
        self.work, self.plan, self.units = work, work.plan, work.plan.settings[SAMPLES]
        self._links, self._nodes, self._shard, self._cached = links, nodes, shard, kept
        self.linked = 0
        self.round = 0
        self._makers: list[Maker] = []
        self._notes: dict[int, Note] = {}

    # -- finished and missing units -------------------------------------------------

    def resume(self) -> None:
        """Load the notes of an earlier run's complete shards."""
        for shard in self._shards():
            note = read_note(self.work.of(shard).shard, len(shard))
            if note is not None:
                self._notes[shard.start] = note

    def link_finished(self) -> None:
        """Link the unchanged shards."""
        if self._cached is None:
            return
        for shard in self._cached.shards:
            note = self._cached.link(shard, self.work.of(shard).shard)
            if note is not None:
                self.linked += len(shard)
                self._notes[shard.start] = note

    @property
    def done(self) -> int:
        """Return the number of samples in finished shards."""
        return self.units - sum(map(len, self._missing(self._shards())))

    def _shards(self) -> list[range]:
        return [*(() if self._cached is None else self._cached.shards), *self._sampled_shards()]

    def _sampled_shards(self) -> list[range]:
        numbers, size = self.work.numbers, self._shard
        return [numbers[low : low + size] for low in range(0, len(numbers), size)]

    def _missing(self, shards: Sequence[range]) -> list[range]:
        return [shard for shard in shards if shard.start not in self._notes]

    def _ready_makers(self) -> list[Maker]:
        if not self._makers:
            links = self._links()
            self.fit = self.work.fit(links)
            self._makers = makers = self.work.makers(links, self.fit)
            self.round = min(len(makers) * self.fit.together, max(len(makers), TOGETHER))
        return self._makers

    def estimate(self) -> PartEstimate:
        """Estimate size, memory, and time from pilot samples on this graph.

        The pilots are one round of all makers, measured after each maker has drawn one sample to
        load the kernels and the graph.
        """
        makers = self._ready_makers()
        count = max(1, min(self.round, len(self.work.numbers)))
        first, end = self.work.numbers.start, self.work.numbers.stop
        deque(in_order(makers, range(end, end + len(makers))), maxlen=0)  # loads kernels and graph
        begin = clock()
        pilots = range(first, first + count)
        with fewer_together(makers, count):
            size = sum(blob.nbytes for blob in in_order(makers, pilots)) / count
        seconds = clock() - begin
        left = sum(map(len, self._missing(self._sampled_shards())))
        seconds = seconds * -(-left // count) + self._carrying()
        assert self.fit is not None
        size += 12 + sampled_format(self.plan.layout).node_bytes * self._nodes
        return PartEstimate(int(self.units * size), self.fit, seconds)

    def _carrying(self) -> float:
        """Estimate the seconds to convert the retained samples, by converting one of them."""
        missing = [] if self._cached is None else self._missing(self._cached.shards)
        if self._cached is None or not missing:
            return 0.0
        makers, sample = self._cached.makers(), missing[0].start
        makers[0](sample)  # compiles the kernels
        begin = clock()
        makers[0](sample)
        left = sum(map(len, missing))
        return (clock() - begin) * -(-left // len(makers))

    # -- the work ----------------------------------------------------------------------

    def run(self, progress: Progress) -> None:
        """Draw the missing samples, shard by shard."""
        if self._cached is not None:
            self._make(self._cached.shards, self._cached.makers, progress)
        if self._spread is None:
            self._make(self._sampled_shards(), self._ready_makers, progress)
        else:
            self._make_elsewhere(self._spread, progress)

    def _make_elsewhere(self, spread: ClusterBuild, progress: Progress) -> None:
        """Draw the samples on cluster nodes."""
        missing = self._missing(self._sampled_shards())
        if not missing:
            return
        done = self.done
        with closing(spread.shards(self.work, missing)) as found:  # type: ignore[type-var]
            for made in found:
                self._notes[made.first] = made.note
                self.live_steps += made.live
                done += len(made.note["members"])
                progress(done, self.units)

    def _make(
        self, shards: Sequence[range], makers: Callable[[], list[Maker]], progress: Progress
    ) -> None:
        missing, done = self._missing(shards), self.done
        if not missing:
            return
        blobs = in_order(makers(), chain.from_iterable(missing))

        def report(blob: Blob) -> None:
            nonlocal done
            done += 1
            self.live_steps += sum(blob.live)
            progress(done, self.units)

        try:
            for shard in missing:
                path, own = self.work.of(shard).shard, islice(blobs, len(shard))
                self._notes[shard.start] = write_shard(path, own, report)
        finally:
            blobs.close()  # type: ignore[attr-defined]
            self.close()  # free memory for the next part

    def close(self) -> None:
        """Free the makers and their scratch space."""
        for maker in self._makers:
            sent: Traffic | None = getattr(maker, "traffic", None)
            if sent is not None:  # the graph is partitioned
                self.traffic = sent.plus_all(self.traffic)
        self._makers = []

    def publish(self) -> dict[str, Entry]:
        """Write the collected notes as arrays; return the entries of all files."""
        notes = {self.work.of(s).shard.name: self._notes[s.start] for s in self._shards()}
        return finish_part(self.work.folder, self.plan, notes, self._nodes, self.work.means.memory)


def finish_part(
    folder: Path, plan: PartPlan, notes: Mapping[str, Note], nodes: int, memory: int
) -> dict[str, Entry]:
    """Write a part's member counts, digests and derived data; return the entries of all files."""
    prefix, layout = plan.prefix, sampled_format(plan.layout)
    files = {name: Entry.from_json(name, note["entry"]) for name, note in notes.items()}
    members = [count for note in notes.values() for count in note["members"]]
    digests = [digest for note in notes.values() for digest in note["digests"]]

    def samples() -> Iterator[tuple[Words, int]]:
        for name, note in notes.items():
            words = map_array(folder / name, files[name])
            for row, count in zip(
                layout.place(nodes, note["members"], plan.settings)[0], note["members"], strict=True
            ):
                yield words[int(row[0]) :][: layout.size(nodes, count, plan.settings)], count

    files |= layout.finish(folder / prefix, nodes, samples(), memory)
    for kind, dtype, values in (MEMBERS, np.uint32, members), (DIGESTS, np.uint64, digests):
        array = np.array(values, dtype)
        files[prefix + kind] = write_array(folder / (prefix + kind), dtype, [array])
    return files


class WholePart:
    """A part without samples. ``links`` returns the part's links. With ``spread``, cluster nodes
    make chunks of the part if the layout supports this.
    """

    fit: MemoryPlan | None = None
    live_steps = 0
    traffic: Traffic | None = None

    def __init__(
        self,
        work: SampleWork,
        graph: Graph,
        links: Callable[[], Links],
        spread: ClusterBuild | None = None,
    ) -> None:
        self._work, self.plan, self.units = work, work.plan, graph.nodes
        self._graph, self._links, self._spread = graph, links, spread
        self._files: dict[str, Entry] = {}
        self._built: WholeBuilder | None = None
        self._logged = 0

    @property
    def _note(self) -> Path:
        return self._work.folder / (self.plan.prefix + "whole.json")

    def _layout(self) -> WholeBuilder:
        if self._built is None:
            kind = whole_builder(self.plan.layout)
            self._built = kind(self._graph, self._links(), self.plan, self._work.means)
            if self._spread is not None and self._built.spreads:
                self._built.elsewhere = partial(self._spread.pieces, self._work)
        return self._built

    def resume(self) -> None:
        """Load an earlier run's note if all files in it are intact."""
        try:
            note = json.loads(self._note.read_bytes())
            files = {name: Entry.from_json(name, value) for name, value in note.items()}
            folder = self._work.folder
            whole = all(checksum(folder / n, e) == e.xxh3_128 for n, e in files.items())
        except (OSError, ValueError, AttributeError, Damaged):
            return
        self._files = files if whole else {}

    @property
    def done(self) -> int:
        """Return the number of finished nodes, including those in logs."""
        if self._files:
            return self.units
        return self._logged if any(self._work.folder.glob(f"{self.plan.prefix}*.log")) else 0

    def estimate(self) -> PartEstimate:
        """Return the layout's cost estimate; for finished files, their size and 0 seconds."""
        if self._files:
            size = sum(entry.nbytes for entry in self._files.values())
            return PartEstimate(size, None, 0.0)
        return self._layout().estimate()

    def run(self, progress: Progress) -> None:
        """Write the arrays, then the note."""
        if self._files:
            return
        layout = self._layout()
        most = int(layout.logged * self.units)

        def report(done: int, total: int) -> None:
            self._logged = min(done, most)
            progress(done, total)

        self._files = layout.write(self._work.folder, report)
        note = {name: entry.to_json() for name, entry in self._files.items()}
        with staged_file(self._note) as file:
            disk.write(file, json.dumps(note).encode())
        self._built = None

    def close(self) -> None:
        """Free the links and the data of the estimate."""
        self._built = None

    def publish(self) -> dict[str, Entry]:
        """Return the files' entries."""
        return self._files


PartBuild = ShardedPart | WholePart
"""A part under construction; its ``units`` are samples or nodes."""
