"""An index on disk, opened: its parts, their shards of samples, the names of the nodes."""

from __future__ import annotations

import os
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.engine import Diagonal
from cocite.errors import Damaged, UsageError
from cocite.graph.links import Links
from cocite.graph.names import Names, open_names
from cocite.index.blobs import sampled_layout
from cocite.index.facts import IndexFacts
from cocite.index.freshness import SINCE, Freshness
from cocite.index.plan import PartPlan, part_prefix
from cocite.index.refined import DIAGONAL, read_diagonal
from cocite.measures import (
    SAMPLES,
    Component,
    Measure,
    PartSettings,
    WholeSettings,
)
from cocite.store import Store

__all__ = ["DIGESTS", "MEMBERS", "Shard", "StoredIndex", "StoredPart", "is_shard", "shard_file"]

MEMBERS, DIGESTS = "members", "digests"
_SHARD = "samples-"


def is_shard(name: str) -> bool:
    """Whether a file of an index holds samples."""
    return _SHARD in name


def shard_file(first: int) -> str:
    """The file of the shard that begins with sample ``first``, behind its part's prefix."""
    return f"{_SHARD}{first:06d}"


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
        start, oldest = self.prefix + _SHARD, self.freshness.numbers.start
        names = [name for name in self.store.manifest.files if name.startswith(start)]
        found = sorted((int(name.removeprefix(start)) - oldest, name) for name in names)
        firsts, files = [first for first, _ in found], [name for _, name in found]
        if firsts[:1] != [0] or members.size != samples:
            raise Damaged(f"{self.store.path}: its shards do not hold {samples} samples")
        layout, shards = sampled_layout(self.layout), []
        for name, first, end in zip(files, firsts, [*firsts[1:], samples], strict=True):
            words = self.store.array(name)
            counts = members[first:end].tolist()
            blobs, size = layout.place(self.nodes, counts, self.settings)
            if size != words.size:
                raise Damaged(f"{self.store.path / name} does not hold samples {first} to {end}")
            shards.append(Shard(first, words, blobs[: max(0, self.samples - first)]))
        return tuple(shard for shard in shards if shard.samples)


class StoredIndex:
    """The directory of an index. Opening it reads the manifest and maps the files."""

    def __init__(self, store: Store) -> None:
        self.store = store
        facts = IndexFacts.read(store.path, store.facts)
        self.nodes, self.measure, self.direction = facts.nodes, facts.measure, facts.direction
        self.settings = facts.settings
        self.graph: dict[str, Any] = facts.graph
        self.refined: dict[str, Any] = facts.refined
        since = store.array(SINCE) if store.has(SINCE) else None
        self.freshness = Freshness(facts.generations, since, str(store.path))
        self.parts = tuple(
            StoredPart(
                store,
                facts.nodes,
                plan.measure,
                plan.direction,
                plan.layout,
                plan.settings,
                plan.weight,
                self.freshness,
                plan.weighted,
                plan.label,
                plan.number,
                plan.fixed,
            )
            for plan in facts.parts
        )

    @property
    def samples(self) -> int | None:
        """How many samples its parts have, those that have any; None if none has."""
        return next((part.samples for part in self.parts if SAMPLES in part.settings), None)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> StoredIndex:
        """Open the directory ``path``; raises a :class:`~cocite.errors.StoreError`."""
        return cls(Store.open(os.fspath(path), "index"))

    def first(self, samples: int) -> StoredIndex:
        """A view of it with its first samples only; raises :class:`UsageError`."""
        have = self.samples
        if have is None:
            raise UsageError(f"{self.measure.name} has no samples: all of the index is one")
        if type(samples) is not int or not 1 <= samples <= have:
            raise UsageError(f"samples is {samples!r}; the index has {have}: ask for 1 to {have}")
        view = copy(self)
        if SAMPLES in self.settings:
            view.settings = self.settings.changed(SAMPLES, samples)
        view.freshness = fresh = self.freshness.only(samples)
        view.parts = tuple(replace(part, only=samples, freshness=fresh) for part in self.parts)
        return view

    def diagonal(self, part: StoredPart) -> Diagonal | None:
        """What was made ready for refined answers of a part, if anything: read in full, as the
        certificate is worth what its bytes are. Raises :class:`Damaged`.
        """
        name = part.prefix + DIAGONAL
        facts = self.refined.get(name)
        if facts is None:
            return None
        fault = self.store.verify(name)
        if fault is not None:
            raise Damaged(f"{fault}. Build the index again")
        return read_diagonal(part.array(DIAGONAL), facts)

    @property
    def weighted(self) -> bool:
        """Whether scores go by the weights of the links."""
        return any(part.weighted for part in self.parts)

    @cached_property
    def names(self) -> Names:
        """The names of the nodes, from the index's own copy."""
        return open_names(self.store)

    @cached_property
    def digest(self) -> str:
        """A checksum of what it holds: the same wherever the shards are cut."""
        files = self.store.manifest.files
        return self.store.manifest.digest(*(name for name in files if _SHARD not in name))
