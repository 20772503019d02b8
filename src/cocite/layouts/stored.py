"""One part of an index on disk, opened: its files, its shards of samples, its settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import Damaged
from cocite.graph.rows import Links
from cocite.layouts.format import MEMBERS, SHARD, PartFormat, SampledFormat, shard_file
from cocite.layouts.freshness import Freshness
from cocite.layouts.plan import PartPlan, part_prefix
from cocite.measures import (
    SAMPLES,
    Component,
    Measure,
    PartSettings,
    WholeSettings,
)
from cocite.store import Store

__all__ = ["DRAWN", "Shard", "StoredPart"]

DRAWN = "drawn"
"""The layout of a part that nobody built: a graph in its place. No file names it."""


@dataclass(frozen=True)
class Shard:
    """A run of samples: its words, and where each sample's arrays begin in them."""

    first: int
    words: NDArray[np.uint32]
    blobs: NDArray[np.uint64]

    @property
    def samples(self) -> int:
        """How many samples it holds."""
        return len(self.blobs)


@dataclass(frozen=True)
class StoredPart:
    """One part of an index: a measure in one direction, in one layout."""

    store: Store
    nodes: int
    measure: Measure
    direction: str
    layout: str
    settings: PartSettings
    weight: float
    freshness: Freshness
    format: PartFormat | None
    """What lies where; None where nothing lies anywhere."""
    weighted: bool = False
    label: str = ""
    number: int = 0
    fixed: PartSettings = field(default_factory=PartSettings)
    only: int | None = None
    """The first samples that count; None for all of them."""

    @property
    def prefix(self) -> str:
        """What the names of its files begin with."""
        return part_prefix(self.label, self.direction)

    @property
    def plan(self) -> PartPlan:
        """The plan that it was made by."""
        return PartPlan(
            self.measure,
            self.direction,
            self.layout,
            self.settings,
            self.weight,
            self.label,
            self.number,
            self.fixed,
            self.weighted,
        )

    def to_json(self) -> dict[str, Any]:
        """What it is, as ``cocite info`` tells it."""
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
        """Its own settings of a question, out of those of the index."""
        return Component(self.measure, fixed=self.fixed).ask_settings(asked)

    @property
    def samples(self) -> int:
        """How many samples it has, for a measure that has them."""
        return self._stored_samples if self.only is None else self.only

    @property
    def _stored_samples(self) -> int:
        return self.settings[SAMPLES]

    def array(self, name: str) -> NDArray[Any]:
        """The array ``name`` of this part."""
        return self.store.array(self.prefix + name)

    def links(self, way: str) -> Links:
        """The in-links or out-links (``way``) of a part in the layout ``links``, mapped."""
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
        """What to raise when a query meets a shard that points outside of itself."""
        return self.damaged_file(shard_file(self.freshness.numbers.start + first))

    def damaged_file(self, name: str) -> Damaged:
        """What to raise when a query meets a file that points outside of itself."""
        path = self.store.path
        return Damaged(
            f"{path / (self.prefix + name)} is damaged; see: cocite verify {path}. Copy the index "
            "again from where it was whole, or build it again"
        )

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """All shards that have samples which count, in their order."""
        members, samples = self.array(MEMBERS), self._stored_samples
        start, oldest = self.prefix + SHARD, self.freshness.numbers.start
        names = [name for name in self.store.manifest.files if name.startswith(start)]
        found = sorted((int(name.removeprefix(start)) - oldest, name) for name in names)
        firsts, files = [first for first, _ in found], [name for _, name in found]
        if firsts[:1] != [0] or members.size != samples:
            raise Damaged(f"{self.store.path}: its shards do not hold {samples} samples")
        format_, shards = self.format, []
        assert isinstance(format_, SampledFormat)
        for name, first, end in zip(files, firsts, [*firsts[1:], samples], strict=True):
            words = self.store.array(name)
            counts = members[first:end].tolist()
            blobs, size = format_.place(self.nodes, counts, self.settings)
            if size != words.size:
                raise Damaged(f"{self.store.path / name} does not hold samples {first} to {end}")
            shards.append(Shard(first, words, blobs[: max(0, self.samples - first)]))
        return tuple(shard for shard in shards if shard.samples)
