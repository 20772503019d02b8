"""An index on disk, opened: its parts, their shards of samples, the names of the nodes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

from cocite.engine.certificate import Diagonal
from cocite.errors import Damaged, UsageError
from cocite.graph.names import Names, open_names
from cocite.index.asked import asked_settings
from cocite.index.facts import IndexFacts
from cocite.index.files import check_files
from cocite.index.refined import DIAGONAL, read_diagonal
from cocite.layouts.format import is_shard
from cocite.layouts.freshness import SINCE, Freshness
from cocite.layouts.stored import StoredPart
from cocite.layouts.table import format_of
from cocite.measures import SAMPLES, WholeSettings
from cocite.store import Access, Store

__all__ = ["StoredIndex"]


class StoredIndex:
    """The directory of an index. Opening it reads the manifest and maps the files."""

    def __init__(self, store: Store) -> None:
        self.store = store
        facts = IndexFacts.read(store.path, store.facts)
        check_files(store.path, store.manifest, facts)
        self.nodes, self.measure, self.direction = facts.nodes, facts.measure, facts.direction
        self.settings = facts.settings
        self.graph: dict[str, Any] = facts.graph
        self.refined: dict[str, Any] = facts.refined
        self.by = facts.by
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
                format_of(plan.layout),
                plan.weighted,
                plan.label,
                plan.number,
                plan.fixed,
            )
            for plan in facts.parts
        )

    def ask_settings(self, given: Mapping[str, object]) -> WholeSettings:
        """All settings of a question; raises :class:`UsageError`."""
        return asked_settings(self.measure, self.parts, given, self.by)

    @property
    def samples(self) -> int | None:
        """How many samples its parts have, those that have any; None if none has."""
        return next((part.samples for part in self.parts if SAMPLES in part.settings), None)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> StoredIndex:
        """Open the directory ``path``, to be read for single questions, here and there; raises a
        :class:`~cocite.errors.StoreError`.
        """
        return cls(Store.open(os.fspath(path), "index", Access.SCATTERED))

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
        table = part.array(DIAGONAL)
        found = read_diagonal(table, facts)
        if not found.sound:
            raise part.damaged_file(DIAGONAL)
        return found

    def damaged(self) -> Damaged:
        """What to raise when an answer shows that some file is damaged, and not which."""
        path = self.store.path
        return Damaged(
            f"{path} is damaged; see: cocite verify {path}. Copy it again from where it was whole, "
            "or build it again"
        )

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
        return self.store.manifest.digest(*(name for name in files if not is_shard(name)))
