"""An open part of an index: files, shards of samples, and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

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
"""Maximum nodes times samples per kernel call, which takes at most 0.2 s. The deadline is checked
between calls.
"""


A = TypeVar("A", bound=NDArray[Any])


class DamagedShard(Damaged):
    """A shard ``file`` in which a query found offsets or node ids out of range."""

    def __init__(self, message: str, file: str) -> None:
        super().__init__(message)
        self.file = file


@dataclass(frozen=True)
class Shard:
    """Consecutive samples: the mapped words, and each sample's kernel row (``blobs``).

    ``first`` is the first sample's position among the available samples, ``number`` its number.
    """

    first: int
    words: NDArray[np.uint32]
    blobs: NDArray[np.uint64]
    number: int

    @property
    def data(self) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        """Return the words and the kernel rows."""
        return self.words, self.blobs

    @property
    def samples(self) -> int:
        """Return the number of samples in the shard."""
        return len(self.blobs)


@dataclass(frozen=True)
class StoredPart(PartPlan):
    """One stored part of an index."""

    store: Store = field(kw_only=True)
    nodes: int = field(kw_only=True)
    freshness: Freshness = field(kw_only=True)
    format: PartFormat = field(kw_only=True)
    """The layout's files."""
    only: int | None = field(kw_only=True, default=None)
    """Number of leading samples to use; None for all."""

    @property
    def on_the_fly(self) -> bool:
        """Return whether the part is computed per query instead of stored."""
        return False

    @property
    def plan(self) -> PartPlan:
        """Return the part's plan."""
        return PartPlan(**{each.name: getattr(self, each.name) for each in fields(PartPlan)})

    def to_json(self) -> dict[str, Any]:
        """Return the part's description in ``cocite info``."""
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
        """Select the part's query settings from those of the whole query. The last result is
        cached, because it applies to a whole batch.
        """
        last: tuple[WholeSettings, PartSettings] | None = self.__dict__.get("_last_asked")
        if last is None or last[0] is not asked:
            last = self.__dict__["_last_asked"] = asked, super().ask_settings(asked)
        return last[1]

    def evidence(self, asked: WholeSettings) -> str:
        """Return a query's kind of evidence, or the default if the measure has no such setting."""
        return self.ask_settings(asked).get(EVIDENCE, EVIDENCE.default)

    @property
    def samples(self) -> int:
        """Return the number of samples to use."""
        there = self.freshness.there
        samples = there[0].size if there else self.settings[SAMPLES]
        return samples if self.only is None else self.only

    def array(self, name: str) -> NDArray[Any]:
        """Map the part's array ``name``."""
        return self.store.array(self.prefix + name)

    def links(self, way: str) -> Links:
        """Map the links in direction ``way`` of a part in the ``links`` layout."""
        from cocite.graph.blocks import Links

        weighted = f"{self.prefix}{way}_weights" in self.store.manifest.files
        return Links(
            self.array(f"{way}_offsets"),
            self.array(f"{way}_neighbours"),
            self.array(f"{way}_weights") if weighted else None,
        )

    def damaged(self, first: int) -> Damaged:
        """Return the error for out-of-range offsets or node ids in the shard that contains the
        sample at position ``first``.
        """
        number = max(each.number for each in self.shards if each.first <= first)
        name = self.prefix + shard_file(number)
        return DamagedShard(str(self.damaged_file(shard_file(number))), name)

    def damaged_file(self, name: str) -> Damaged:
        """Return the error for out-of-range offsets or node ids in a file."""
        path = self.store.path
        return Damaged(
            f"{path / (self.prefix + name)} is damaged; see: cocite verify {path}. Restore the "
            "index from an intact copy, or rebuild it"
        )

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """Return the available shards that contain samples to use, in order."""
        members, numbers = self.array(MEMBERS), self.freshness.numbers
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
                    f"{self.store.path / name} does not contain samples {run.start} to "
                    f"{run.stop - 1}"
                )
            shards.append(Shard(place, words, blobs[: max(0, self.samples - place)], run.start))
            place += len(run)
        return tuple(shard for shard in shards if shard.samples)

    def of(self, numbers: Ints) -> StoredPart:
        """Return the part with only the samples ``numbers``, ascending."""
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
        """Yield slices of all samples; check the deadline before each slice."""
        for low in range(0, self.samples, self.at_once):
            check()
            yield slice(low, low + self.at_once)

    def pieces(self) -> Iterator[Shard]:
        """Yield the shards, dividing large ones; check the deadline before each."""
        most = self.at_once
        for shard in self.shards:
            for low in range(0, shard.samples, most):
                check()
                if shard.samples <= most:
                    yield shard
                    break
                blobs = shard.blobs[low : low + most]
                yield Shard(shard.first + low, shard.words, blobs, shard.number + low)

    def fill(self, out: A, read: Callable[[Shard, Any], Any]) -> A:
        """Fill ``out``, which has a row for each sample, shard by shard; return ``out``. Raises
        :class:`Damaged` for a shard for which ``read`` returns False.
        """
        for shard in self.pieces():
            if not read(shard, out[shard.first : shard.first + shard.samples]):
                raise self.damaged(shard.first)
        return out

    @property
    def runs(self) -> dict[str, range]:
        """Map each shard file to its sample numbers, in order."""
        return runs_of(self.store, self.prefix, self.freshness.numbers.start, self.settings)


def runs_of(store: Store, prefix: str, oldest: int, settings: PartSettings) -> dict[str, range]:
    """Map each shard file of a part to its sample numbers, which begin at ``oldest``."""
    start = prefix + SHARD
    names = [name for name in store.manifest.files if name.startswith(start)]
    firsts = sorted((int(name.removeprefix(start)), name) for name in names)
    if not firsts or firsts[0][0] != oldest:
        raise Damaged(f"{store.path}: the shards do not begin with sample {oldest}")
    ends = [*(first for first, _ in firsts[1:]), oldest + settings[SAMPLES]]
    return {name: range(first, end) for (first, name), end in zip(firsts, ends, strict=True)}
