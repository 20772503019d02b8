"""An opened part of an index: files, shards of samples, and settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocite.constants import Ints
from cocite.deadline import check
from cocite.errors import Damaged
from cocite.index.layouts.contract import (
    MEMBERS,
    SHARD,
    PartFormat,
    PartPlan,
    SampledFormat,
    shard_file,
)
from cocite.index.layouts.snapshots import Freshness
from cocite.measures import SAMPLES, PartSettings, WholeSettings
from cocite.measures.settings import EVIDENCE
from cocite.storage import Store

if TYPE_CHECKING:
    from cocite.graph.blocks import Links

_AT_ONCE = 1 << 26
"""Maximum nodes times samples per kernel call between deadline checks, at most 0.2 s."""


class DamagedShard(Damaged):
    """A shard ``file`` in which a query found offsets or node ids out of range."""

    def __init__(self, message: str, file: str) -> None:
        super().__init__(message)
        self.file = file


@dataclass(frozen=True)
class Shard:
    """A run of samples: the mapped words, and the kernel row of each sample (``blobs``).

    ``first`` is the position of its first sample among the available ones, ``number`` its number.
    """

    first: int
    words: NDArray[np.uint32]
    blobs: NDArray[np.uint64]
    number: int

    @property
    def samples(self) -> int:
        """Return its number of samples."""
        return len(self.blobs)


@dataclass(frozen=True)
class StoredPart(PartPlan):
    """One part of an index, as planned and stored."""

    store: Store = field(kw_only=True)
    nodes: int = field(kw_only=True)
    freshness: Freshness = field(kw_only=True)
    format: PartFormat = field(kw_only=True)
    """Files of the layout."""
    only: int | None = field(kw_only=True, default=None)
    """Number of leading samples to use; None for all."""

    @property
    def on_the_fly(self) -> bool:
        """Return whether the part is computed per query instead of stored."""
        return False

    @property
    def plan(self) -> PartPlan:
        """Return the plan of the part."""
        return PartPlan(**{each.name: getattr(self, each.name) for each in fields(PartPlan)})

    def to_json(self) -> dict[str, Any]:
        """Return the description that ``cocite info`` prints."""
        return {
            "measure": self.measure.name,
            "direction": self.direction,
            "layout": self.layout,
            "weight": self.weight,
            "weighted": self.weighted,
            "settings": self.settings.to_json(),
            "fixed": self.fixed.to_json(),
        }

    def ask_settings(self, asked: WholeSettings) -> PartSettings:
        """Return the part's query settings, from those of the index. The last result is cached, as
        it is the same for a whole batch.
        """
        last: tuple[WholeSettings, PartSettings] | None = self.__dict__.get("_last_asked")
        if last is None or last[0] is not asked:
            last = self.__dict__["_last_asked"] = asked, super().ask_settings(asked)
        return last[1]

    def evidence(self, asked: WholeSettings) -> str:
        """Return the kind of evidence for a query; the default if the measure has no such
        setting.
        """
        return self.ask_settings(asked).get(EVIDENCE, EVIDENCE.default)

    @property
    def samples(self) -> int:
        """Return the number of samples to use, for a measure with samples."""
        there = self.freshness.there
        samples = there[0].size if there else self.settings[SAMPLES]
        return samples if self.only is None else self.only

    def array(self, name: str) -> NDArray[Any]:
        """Map the array ``name`` of this part."""
        return self.store.array(self.prefix + name)

    def links(self, way: str) -> Links:
        """Map the in-links or out-links (``way``) of a part in the layout ``links``."""
        from cocite.graph.blocks import Links

        weighted = f"{self.prefix}{way}_weights" in self.store.manifest.files
        links = Links(
            self.array(f"{way}_offsets"),
            self.array(f"{way}_neighbours"),
            self.array(f"{way}_weights") if weighted else None,
        )
        if links.nodes != self.nodes:
            raise Damaged(f"{self.store.path}: its links are not those of {self.nodes:,} nodes")
        return links

    def damaged(self, first: int) -> Damaged:
        """Return the error for the shard that holds the sample at position ``first`` and whose
        offsets or node ids are out of range.
        """
        number = max(each.number for each in self.shards if each.first <= first)
        name = self.prefix + shard_file(number)
        return DamagedShard(str(self.damaged_file(shard_file(number))), name)

    def damaged_file(self, name: str) -> Damaged:
        """Return the error for a file whose offsets or node ids are out of range."""
        path = self.store.path
        return Damaged(
            f"{path / (self.prefix + name)} is damaged; see: cocite verify {path}. Copy the index "
            "again from where it was whole, or build it again"
        )

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """Return all available shards with samples in use, in order."""
        members, numbers = self.array(MEMBERS), self.freshness.numbers
        if members.size != self.settings[SAMPLES]:
            raise Damaged(f"{self.store.path}: its shards do not hold {members.size} samples")
        format_, shards, place = self.format, list[Shard](), 0
        assert isinstance(format_, SampledFormat)
        for name, run in self.runs.items():
            if name in self.store.lost:
                continue
            words = self.store.array(name)
            at = run.start - numbers.start
            counts = members[at : at + len(run)].tolist()
            blobs, size = format_.place(self.nodes, counts, self.settings)
            if size != words.size:
                raise Damaged(
                    f"{self.store.path / name} does not hold samples {run.start} to {run.stop - 1}"
                )
            shards.append(Shard(place, words, blobs[: max(0, self.samples - place)], run.start))
            place += len(run)
        return tuple(shard for shard in shards if shard.samples)

    def of(self, numbers: Ints) -> StoredPart:
        """Return the part limited to the samples ``numbers``, ascending."""
        shards, place = list[Shard](), 0
        for shard in self.shards:
            own = np.arange(shard.number, shard.number + shard.samples)
            blobs = shard.blobs[np.isin(own, numbers)]
            if len(blobs):
                blobs.flags.writeable = False
                shards.append(Shard(place, shard.words, blobs, shard.number))
                place += len(blobs)
        found = replace(self, freshness=replace(self.freshness, there=(numbers,)), only=None)
        found.__dict__["shards"] = tuple(shards)
        return found

    @property
    def at_once(self) -> int:
        """Return the number of samples to process between deadline checks."""
        return max(1, _AT_ONCE // self.nodes)

    def slices(self) -> Iterator[slice]:
        """Yield slices of all samples; checks the deadline before each."""
        for low in range(0, self.samples, self.at_once):
            check()
            yield slice(low, low + self.at_once)

    def pieces(self) -> Iterator[Shard]:
        """Yield the shards, divided if large; checks the deadline before each."""
        most = self.at_once
        for shard in self.shards:
            for low in range(0, shard.samples, most):
                check()
                if shard.samples <= most:
                    yield shard
                    break
                blobs = shard.blobs[low : low + most]
                yield Shard(shard.first + low, shard.words, blobs, shard.number + low)

    @property
    def runs(self) -> dict[str, range]:
        """Return the sample numbers of each shard file, in order."""
        return runs_of(self.store, self.prefix, self.freshness.numbers.start, self.settings)


def runs_of(store: Store, prefix: str, oldest: int, settings: PartSettings) -> dict[str, range]:
    """Return the sample numbers of each shard file of a part; its first sample is ``oldest``."""
    start = prefix + SHARD
    names = [name for name in store.manifest.files if name.startswith(start)]
    firsts = sorted((int(name.removeprefix(start)), name) for name in names)
    if not firsts or firsts[0][0] != oldest:
        raise Damaged(f"{store.path}: its shards do not begin with sample {oldest}")
    ends = [*(first for first, _ in firsts[1:]), oldest + settings[SAMPLES]]
    return {name: range(first, end) for (first, name), end in zip(firsts, ends, strict=True)}
