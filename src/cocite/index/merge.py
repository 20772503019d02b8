"""Index merges, whose results are byte-identical to those of single builds.

A sample depends only on (graph, measure, length, seed, number), so indexes with different sample
numbers can be merged. Together, the numbers must form a range, and each must occur once. To repair
an index with lost shards, the other indexes must have exactly the lost numbers. All other files
must be equal. A refreshed index has samples of several graphs and cannot be merged. Rows depend
only on the graph and the settings (``measures/fusion.py``), so indexes of consecutive node ranges
can be merged, too.

Samples are verified by digest, other files by checksum. A merge makes one pass over all files and
needs memory for one chunk of a file.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from cocite.constants import Bools, Ints
from cocite.errors import Damaged, ResourceError, UsageError
from cocite.graph.blocks import Links
from cocite.graph.links import links_of
from cocite.graph.name_files import TITLE_FILES
from cocite.index.build import IndexBuild, path_from
from cocite.index.cluster import Note, write_shard
from cocite.index.layouts.batch_maker import Blob
from cocite.index.layouts.contract import DIGESTS, MEMBERS, WANTED, PartPlan, is_shard, shard_file
from cocite.index.layouts.memory_plan import Progress
from cocite.index.layouts.part import Shard, StoredPart
from cocite.index.layouts.reader import is_sampled
from cocite.index.layouts.trees.format import POSITIONS
from cocite.index.manifest import index_facts
from cocite.index.parts import PartBuild, finish_part, shard_samples
from cocite.index.refresh import ROWS, graph_before, same_options
from cocite.index.stored import StoredIndex, in_runs, numbers_in_words, redraw_command
from cocite.io.remote import is_url
from cocite.measures import MEETING_WEIGHT, SAMPLES, PartSettings, WholeSettings
from cocite.measures.settings import MAX_SAMPLES
from cocite.resources import Resources, format_size
from cocite.storage import Access, Entry, Manifest
from cocite.storage.staging import Staging, copy_array

_ROOM = 1 << 24
"""Bytes of memory for derived data."""


class _Source(NamedTuple):
    """A sample's part, shard, row in the shard, member count, and digest."""

    part: StoredPart
    shard: Shard
    row: int
    members: int
    digest: int

    def blob(self) -> Blob:
        """Return the sample after verifying its digest; raises :class:`Damaged`."""
        begins, words = self.shard.blobs[:, 0], self.shard.words
        end = int(begins[self.row + 1]) if self.row + 1 < len(begins) else words.size
        blob = Blob.of((words[int(begins[self.row]) : end],), self.members)
        if blob.digest != self.digest:
            raise self.part.damaged(self.shard.first)
        return blob


class Merge:
    """A merge of samples: ``with Merge(indexes, output) as merge: merge.run(progress)``."""

    def __init__(
        self,
        indexes: Sequence[str | os.PathLike[str]],
        output: str | os.PathLike[str],
        *,
        shard: int | None = None,
        overwrite: bool = False,
        verify: bool = True,
        elsewhere: bool = False,
    ) -> None:
        """Check the indexes; raises :class:`UsageError` if they do not match. ``shard``,
        ``overwrite`` and ``elsewhere`` are as in a build; ``verify`` enables checksum verification
        of the input.
        """
        if isinstance(indexes, str | os.PathLike) or len(indexes) < 2:
            raise UsageError("a merge needs at least two indexes: pass all indexes to merge")
        self._elsewhere = elsewhere
        self.indexes = [StoredIndex.open(path, verify=verify) for path in indexes]
        for index in self.indexes:
            _check_alone(index)
            check_same(self.indexes[0], index)
        self.indexes = _check_parts(self.indexes)
        self.numbers = _numbers(self.indexes)
        first, samples = self.indexes[0], len(self.numbers)
        plans = [replace(p.plan, settings=_with(p.plan.settings, samples)) for p in first.parts]
        self._options = replace(
            same_options(first),
            settings=_with(first.settings, samples),
            parts=tuple(plans),
            first=self.numbers.start,
        )
        self._sampled = [i for i, plan in enumerate(plans) if is_sampled(plan.layout)]
        self._cut = {i: shard_samples(plans[i], first.nodes, shard) for i in self._sampled}
        self._draft = Staging(os.fspath(output), "index", overwrite=overwrite)

    unit = "samples"

    @property
    def contents(self) -> str:
        """Describe the sample range."""
        return f"samples {self.numbers.start} to {self.numbers.stop - 1}"

    @property
    def units(self) -> int:
        """Return the number of samples, summed over the sampled parts."""
        return len(self._sampled) * len(self.numbers)

    def __enter__(self) -> Self:
        self._draft.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._draft.__exit__(kind, error, trace)

    def run(self, progress: Progress = lambda done, total: None) -> Path:
        """Write and publish the index; ``progress`` is called with (done, total) in samples."""
        for index in self.indexes:
            index.store.advise(Access.THROUGH)
        size = sum(index.store.nbytes for index in self.indexes)
        free = shutil.disk_usage(self._draft.path).free
        if size > free:
            raise ResourceError(
                f"the index needs up to {format_size(size)}; {format_size(free)} is free in "
                f"{self._draft.output.parent}. Choose another output"
            )
        progress(0, self.units)
        files, done = self._others(), count(1)
        for number in self._sampled:
            files |= self._part(number, lambda blob: progress(next(done), self.units))
        return self._draft.publish(Manifest("index", self._facts(), files))

    # -- samples -----------------------------------------------------------------------

    def _part(self, number: int, report: Callable[[Blob], object]) -> dict[str, Entry]:
        """Write a part's shards; return the entries of its files."""
        plan, folder = self._options.parts[number], self._draft.path
        sources = self._sources(number)
        notes: dict[str, Note] = {}
        for low in range(0, len(sources), self._cut[number]):
            some = sources[low : low + self._cut[number]]
            name = plan.prefix + shard_file(self.numbers.start + low)
            blobs = (source.blob() for source in some)
            notes[name] = write_shard(folder / name, blobs, report)
        return finish_part(folder, plan, notes, self.indexes[0].nodes, _ROOM)

    def _sources(self, number: int) -> list[_Source]:
        """Return the sources of a part's samples, ordered by number."""
        found: dict[int, _Source] = {}
        for index in self.indexes:
            part = index.parts[number]
            part.store.require(part.prefix + MEMBERS, part.prefix + DIGESTS)
            members, digests = part.array(MEMBERS), part.array(DIGESTS)
            oldest = part.freshness.numbers.start
            for shard in part.shards:
                for row in range(shard.samples):
                    at = shard.number + row
                    counted = int(members[at - oldest]), int(digests[at - oldest])
                    found.setdefault(at, _Source(part, shard, row, *counted))
        return [found[at] for at in self.numbers]

    # -- everything else ---------------------------------------------------------------

    def _others(self) -> dict[str, Entry]:
        """Copy the files that all indexes share: names, parts without samples, and diagonals."""
        files: dict[str, Entry] = {}
        for index in self.indexes:
            for name, entry in _common_files(index).items():
                if name not in files:
                    copy_array(index.store.path / name, self._draft.path / name, entry)
                    files[name] = entry
        return files

    def _facts(self) -> dict[str, Any]:
        """Return the manifest's facts, with the graph's path relative to the final output."""
        first = self.indexes[0]
        path = str(first.graph["path"])
        if not is_url(path):
            place = Path(os.path.normpath(first.store.path.resolve() / path))
            path = path_from(self._draft.output, place, self._elsewhere)
        names = str(first.store.facts["names"])
        graph = first.graph | {"path": path}
        facts = index_facts(first.nodes, names, self._options, graph, first.kept, first.names.sides)
        refined = next((index.refined for index in self.indexes if index.refined), None)
        return facts | ({"refined": refined} if refined else {})


# -- what fits together ------------------------------------------------------------------


def _check_alone(index: StoredIndex) -> None:
    """Raise :class:`UsageError` if an index cannot be merged by samples."""
    path = index.store.path
    if index.samples is None:
        raise UsageError(
            f"{path} cannot be merged: it has no samples ({index.measure.name}), and does not "
            "cover a range of nodes. Only indexes of fusion, ppr-pmi and snn can be merged by "
            "ranges; build them with --only-range (only_range=...)"
        )
    if index.freshness.refreshed:
        raise UsageError(
            f"{path} was refreshed, so its samples come from several graphs. Before merging, "
            f"redraw all samples from one graph: {redraw_command(str(path))}"
        )
    if any(SAMPLES in component.fixed for component in index.measure.components):
        raise UsageError(
            f"{path} cannot be merged: its measure, {index.measure.name}, sets the number of "
            "samples. Omit samples from the measure, and rebuild with --samples (samples=...) or "
            "--sample-range (numbers=...)"
        )


def check_same(first: StoredIndex, other: StoredIndex, *, pieces: bool = False) -> None:
    """Raise :class:`UsageError` unless both indexes have the same graph, measure, settings, and,
    unless ``pieces`` is true, the same nodes.
    """
    one, two = first.store.path, other.store.path
    if first.graph["digest"] != other.graph["digest"]:
        raise UsageError(
            f"{two} and {one} were built from different graphs ({other.graph['name']} and "
            f"{first.graph['name']}): the checksums differ"
        )
    here, there = _report(first, pieces), _report(other, pieces)
    if here != there:
        name = next(n for n in [*here, *there] if here.get(n) != there.get(n))
        mine, its = (repr(each[name]) if name in each else "none" for each in (here, there))
        raise UsageError(
            f"{one} has {name} {mine}, but {two} has {its}: only indexes with the same settings "
            "can be merged"
        )
    if pieces:
        return
    ours, theirs = _common_files(first), _common_files(other)
    for name in ours.keys() & theirs.keys():
        if name.startswith(TITLE_FILES):  # titles do not affect samples
            continue
        refined = first.refined.get(name) == other.refined.get(name)
        if ours[name] != theirs[name] or not refined:
            raise Damaged(
                f"{one} and {two} differ in {name}, although they have the same graph and "
                "settings: one of them is damaged. See: cocite verify"
            )


def _report(index: StoredIndex, pieces: bool) -> dict[str, Any]:
    """Return the properties that must be equal in both indexes, by name."""
    traits: dict[str, Any] = {"measure": index.measure.name, "direction": index.direction}
    files = index.store.manifest.files
    if not pieces:
        traits["pages kept"] = files[WANTED].xxh3_128 if WANTED in files else "all"
        traits["prefixes of pages kept"] = index.kept.prefixes if index.kept else ()
    for part in index.parts:
        plan = part.plan.to_json()
        which = f" ({part.prefix.removesuffix('.')})" if len(index.parts) > 1 else ""
        settings = dict(part.plan.settings.to_json())
        settings.pop(SAMPLES.name, None)
        traits |= {f"{name}{which}": value for name, value in settings.items()}
        traits |= {f"{name}{which}": plan[name] for name in ("layout", "weight", "weighted")}
    if index.meeting_weight is not None:
        traits[MEETING_WEIGHT.name] = index.meeting_weight
    return traits | index.query_defaults


def _common_files(index: StoredIndex) -> dict[str, Entry]:
    """Return all files except samples."""
    kinds = MEMBERS, DIGESTS, POSITIONS
    own = {part.prefix + kind for part in _sampled_parts(index) for kind in kinds}
    files = index.store.manifest.files
    return {n: entry for n, entry in files.items() if n not in own and not is_shard(n)}


def _sampled_parts(index: StoredIndex) -> list[StoredPart]:
    return [part for part in index.parts if SAMPLES in part.settings]


def _check_parts(indexes: list[StoredIndex]) -> list[StoredIndex]:
    """Verify the shards with samples that several indexes hold; drop the damaged ones."""
    span, _, whole = _held(indexes)
    twice = {*(np.flatnonzero(whole > 1) + span.start).tolist()}
    found = []
    for index in indexes:
        sound = index
        for part in _sampled_parts(index):
            for file, run in part.runs.items():
                if file not in index.store.lost and not twice.isdisjoint(run):
                    fault = index.store.verify(file)
                    sound = sound if fault is None else sound.without(file, fault)
        found.append(sound)
    return found


def _held(indexes: Sequence[StoredIndex]) -> tuple[range, Bools, Ints]:
    """Return the range of all sample numbers; bool[parts, numbers], whether any index has the
    part's sample; and int64[numbers], how many indexes have the sample in all parts.
    """
    numbers = [index.freshness.numbers for index in indexes]
    span = range(min(each.start for each in numbers), max(each.stop for each in numbers))
    if len(span) > MAX_SAMPLES:
        raise UsageError(f"{len(span):,} samples exceed the maximum of {MAX_SAMPLES:,}")
    parts = len(_sampled_parts(indexes[0]))
    there, whole = np.zeros((parts, len(span)), bool), np.zeros(len(span), np.int64)
    for index in indexes:
        own = np.zeros_like(there)
        for row, part in enumerate(_sampled_parts(index)):
            own[row, part.freshness.held - span.start] = True
        there |= own
        whole += own.all(axis=0)
    return span, there, whole


def _numbers(indexes: Sequence[StoredIndex]) -> range:
    """Return the range of sample numbers; raises :class:`UsageError` unless each occurs once."""
    span, there, whole = _held(indexes)
    named = " and ".join(str(index.store.path) for index in indexes)
    twice = np.flatnonzero(whole > 1) + span.start
    if twice.size:
        raise UsageError(
            f"samples {numbers_in_words(in_runs(twice.tolist()))} are in more than one of {named}: "
            "each sample must be in exactly one index"
        )
    missing = np.flatnonzero(~there.all(axis=0)) + span.start
    if missing.size:
        raise UsageError(
            f"samples {numbers_in_words(in_runs(missing.tolist()))} are missing from {named}: "
            "build them with cocite index --sample-range, and merge the result too"
        )
    return span


_Settings = TypeVar("_Settings", WholeSettings, PartSettings)


def _with(settings: _Settings, samples: int) -> _Settings:
    """Set the number of samples, if the settings include it."""
    return settings.changed(SAMPLES, samples) if SAMPLES in settings else settings


# -- ranges of nodes ---------------------------------------------------------------------


_JOINED = ROWS, "nearest"
_MORE = "Merging ranges needs the graph's names: restore the graph where the first index expects it"


def open_merge(
    indexes: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    means: Resources,
    *,
    verify: bool = True,
    **how: Any,
) -> Merge | RangeMerge:
    """Return a merge of samples or of node ranges; raises :class:`UsageError`."""
    if not isinstance(indexes, str | os.PathLike) and len(indexes) > 1:
        opened = [StoredIndex.open(path, verify=verify) for path in indexes]
        if all(index.kept and index.samples is None for index in opened):
            return RangeMerge(opened, output, means, verify=verify, **how)
    return Merge(indexes, output, shard=means.shard, verify=verify, **how)


class RangeMerge(IndexBuild):
    """A merge of node ranges, used like a :class:`Merge`."""

    def __init__(
        self,
        indexes: Sequence[StoredIndex],
        output: str | os.PathLike[str],
        means: Resources,
        *,
        verify: bool,
        **how: Any,
    ) -> None:
        """Check the indexes, and open their graph."""
        for index in indexes:
            _check_range(index)
            check_same(indexes[0], index, pieces=True)
        self.indexes = sorted(indexes, key=lambda index: _range(index).start)
        _check_whole(self.indexes)
        graph = graph_before(indexes[0], verify, _MORE)
        super().__init__(graph, output, same_options(indexes[0]), means, **how)

    @property
    def contents(self) -> str:
        """Describe the node count."""
        return f"{self.nodes:,} nodes"

    def _part(self, plan: PartPlan) -> PartBuild:
        parts = [part for index in self.indexes for part in index.parts]
        joined = tuple(part for part in parts if part.prefix == plan.prefix)
        return super()._part(replace(plan, joined=joined))

    def _links(self, plan: PartPlan) -> Links:
        return links_of(self.graph, "in", weighted=False)  # only to count them


def _range(index: StoredIndex) -> range:
    """Return the range of the graph's node ids that an index covers."""
    assert index.wanted is not None
    return range(int(index.wanted[0]), int(index.wanted[0]) + index.nodes)


def _check_range(index: StoredIndex) -> None:
    """Raise :class:`UsageError` unless an index covers a node range."""
    path = index.store.path
    if index.local is not None or any(part.layout not in _JOINED for part in index.parts):
        raise UsageError(
            f"{path} cannot be merged: only indexes of fusion, ppr-pmi and snn can be merged by "
            "ranges, and only before a local refresh"
        )
    assert index.wanted is not None
    if int(index.wanted[-1]) != _range(index)[-1]:
        raise UsageError(
            f"{path} contains pages that are not consecutive: only indexes of ranges can be "
            "merged. Build them with cocite index --only-range"
        )


def _check_whole(indexes: Sequence[StoredIndex]) -> None:
    """Raise :class:`UsageError` unless each node of the graph is in exactly one index."""
    named = " and ".join(str(index.store.path) for index in indexes)
    ends = [range(0), *map(_range, indexes), range(indexes[0].graph_nodes, 2**32)]
    for before, after in pairwise(ends):
        if after.start > before.stop:
            raise UsageError(
                f"nodes {before.stop:,} to {after.start - 1:,} of the graph are missing "
                f"from {named}: build their index with cocite index --only-range, and merge it too"
            )
        if after.start < before.stop:
            last = min(before.stop, after.stop) - 1
            raise UsageError(
                f"nodes {after.start:,} to {last:,} of the graph are in more than one of {named}: "
                "each node must be in exactly one index"
            )
