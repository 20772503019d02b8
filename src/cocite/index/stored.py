"""An open index: parts, sample shards, and node names.

Samples are independent, so an index with missing shards still answers: scores are means over the
available samples, and intervals reflect the part with the fewest samples. All other files are
required.
Opening an index detects missing and truncated shards, queries detect offsets and node ids out of
range, and ``cocite verify`` detects every changed bit. To restore samples, rebuild them with the
index's settings (``--sample-range 16..31``), then merge; or refresh with ``--fraction 1 --force``.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cocite.constants import Ids
from cocite.errors import Damaged, UsageError
from cocite.graph.name_files import Titles, names_of, open_titles
from cocite.graph.names import Names
from cocite.index.layouts.contract import WANTED, PartPlan, is_shard
from cocite.index.layouts.part import StoredPart, runs_of
from cocite.index.layouts.reader import format_of
from cocite.index.layouts.snapshots import SINCE, Freshness
from cocite.index.manifest import DIAGONAL, IndexFacts, check_files, read_diagonal
from cocite.index.plan import PageFilter, query_settings
from cocite.measures import SAMPLES, WholeSettings
from cocite.storage import Access, Store

if TYPE_CHECKING:
    from cocite.engine.diagonal import Diagonal


class Lost(NamedTuple):
    """A missing or damaged shard: file name, first sample number, sample count, and fault."""

    file: str
    first: int
    samples: int
    fault: str


def in_runs(numbers: Iterable[int]) -> list[range]:
    """Group numbers into runs of consecutive integers."""
    runs = groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0])
    found = [[number for _, number in group] for _, group in runs]
    return [range(run[0], run[-1] + 1) for run in found]


def numbers_in_words(runs: Sequence[range]) -> str:
    """Format runs as ``16..31, 48 and 64..79``; each run is valid for ``--sample-range``."""
    words = [f"{r.start}..{r.stop - 1}" if len(r) > 1 else f"{r.start}" for r in runs]
    return " and ".join([", ".join(words[:-1])] * (len(words) > 1) + words[-1:])


def redraw_command(path: str) -> str:
    """Return the command that redraws all samples from one graph with the same settings."""
    return f"cocite refresh {shlex.quote(path)} GRAPH --fraction 1 --force"


_KEPT = 64
"""Maximum number of cached query settings."""


class StoredIndex:
    """An open index; if shards are ``lost``, queries use the other samples."""

    lost: tuple[Lost, ...] = ()
    kept: PageFilter | None = None
    wanted: Ids | None = None
    """uint32[nodes]: the selected pages' node ids in the graph, ascending; None for all pages."""
    drafted = False
    """Whether a page that is not in the graph was added (``search/unseen.py``)."""
    replaced: int | None = None
    """The node that the added page replaces, or None. This node is never a hit."""
    excluded = 0
    """Number of pages ignored because they have too many links."""
    _only: int | None = None

    def __init__(self, store: Store) -> None:
        self.store = store
        facts = IndexFacts.read(store.path, store.facts)
        check_files(store.path, store.manifest, facts)
        self.nodes, self.measure, self.direction = facts.nodes, facts.measure, facts.direction
        self.settings = facts.settings
        self.graph: dict[str, Any] = facts.graph
        self.refined: dict[str, Any] = facts.refined
        self.meeting_weight, self.query_defaults = facts.meeting_weight, facts.query_defaults
        self.excluded = facts.excluded
        self.kept, self.local = facts.kept, facts.local
        self.wanted = None if facts.kept is None else store.array(WANTED)
        self._cached_settings = dict[tuple[object, ...], WholeSettings]()
        since = store.array(SINCE) if store.has(SINCE) else None
        whole = Freshness(facts.snapshots, since, str(store.path))
        fresh = self._left(facts.parts, whole) if store.lost else {}
        held = tuple(each.there[0] for each in fresh.values())
        self.freshness = replace(whole, there=held)
        self.parts = tuple(
            StoredPart(
                **vars(plan),
                store=store,
                nodes=facts.nodes,
                freshness=fresh.get(plan.prefix, whole),
                format=format_of(plan.layout),
            )
            for plan in facts.parts
        )

    def ask_settings(self, given: Mapping[str, object]) -> WholeSettings:
        """Return all settings of a query, from a cache if possible; raises :class:`UsageError`."""
        values = tuple(given.values())
        plain = all(type(value) in (str, int, float, bool) for value in values)
        key = (self.graph["edges"], *given, *values, *map(type, values))
        if plain and key in self._cached_settings:
            return self._cached_settings[key]
        asked = query_settings(
            self.measure, self.parts, given, self.meeting_weight, self.query_defaults
        )
        found = asked.of_graph(self.measure.ask, self.graph["edges"])
        if plain and len(self._cached_settings) < _KEPT:
            self._cached_settings[key] = found
        return found

    def _left(self, plans: tuple[PartPlan, ...], whole: Freshness) -> dict[str, Freshness]:
        """Return each sampled part's available samples, by prefix; raises :class:`Damaged`."""
        store, lost, found = self.store, list[Lost](), dict[str, Freshness]()
        for plan in plans:
            if SAMPLES not in plan.settings:
                continue
            there = [np.empty(0, np.int64)]
            runs = runs_of(store, plan.prefix, whole.numbers.start, plan.settings)
            for name, run in runs.items():
                if name in store.lost:
                    lost.append(Lost(name, run.start, len(run), store.lost[name]))
                else:
                    there.append(np.arange(run.start, run.stop))
            held = np.concatenate(there)
            if not held.size:
                raise Damaged(
                    f"{store.path}: all its samples are missing or damaged: {lost[0].fault}"
                )
            found[plan.prefix] = replace(whole, there=(held,))
        self.lost = tuple(lost)
        return found

    @property
    def samples(self) -> int | None:
        """Return the smallest number of available samples of any part; None without samples."""
        counts = [part.samples for part in self.parts if SAMPLES in part.settings]
        return min(counts, default=None)

    @property
    def graph_nodes(self) -> int:
        """Return the graph's node count."""
        return self.nodes if self.kept is None else self.kept.nodes

    def in_graph(self, ids: Ids) -> Ids:
        """Convert node ids of the index to node ids of the graph; raises :class:`Damaged`."""
        if self.wanted is None:
            return ids
        found = self.wanted[ids]
        if found.size and int(found.max()) >= self.graph_nodes:
            raise self.damaged()
        return found

    def of_graph(self) -> StoredIndex:
        """Return a view of all the graph's nodes, for code that reads no samples."""
        view = copy(self)
        view.nodes, view.kept, view.wanted = self.graph_nodes, None, None
        return view

    def without(self, file: str, fault: str) -> StoredIndex:
        """Return the index without a damaged shard; raises :class:`Damaged` if no shard remains."""
        lost = self.store.lost | {file: fault}
        found = type(self)(replace(self.store, lost=lost))
        most = found.samples or 1
        return found if self._only is None else found.with_samples(min(self._only, most))

    @property
    def loss(self) -> str:
        """Describe the lost samples and how to restore them; return "" if none are lost."""
        if not self.lost:
            return ""
        path, files = str(self.store.path), " and ".join(each.file for each in self.lost)
        runs = in_runs(
            {n for each in self.lost for n in range(each.first, each.first + each.samples)}
        )
        found = (
            f"{path} has lost samples {numbers_in_words(runs)} ({files}); queries use the "
            f"other {self.samples or 0:,}. To repair it"
        )
        if self.freshness.refreshed:
            return f"{found}, draw all samples from the newest graph: {redraw_command(path)}"
        likewise = ", and the other ranges in the same way" if len(runs) > 1 else ""
        place, measure = shlex.quote(path), shlex.quote(self.measure.name)
        return (
            f"{found}, with the settings of the index: cocite index GRAPH -o PATCH --measure "
            f"{measure} --sample-range {numbers_in_words(runs[:1])}{likewise}; then cocite merge "
            f"{place} PATCH -o {place} --overwrite"
        )

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = True) -> StoredIndex:
        """Open the index at ``path``, or a local copy if ``path`` is a URL.

        Opening does not verify checksums. With ``verify``, later operations verify the files that
        they read. Raises a :class:`~cocite.errors.StoreError`.
        """
        place = os.fspath(path)
        if "://" in place:  # loads slowly, and only URLs need it
            from cocite.io.remote import copied

            place = str(copied(place, "index"))
        return cls(Store.open(place, "index", Access.SCATTERED, is_shard, verify=verify))

    def validated(self, most: int | None = None) -> StoredIndex:
        """Return the index without the shards whose checksums differ.

        Verifies the smallest files first, at most ``most`` bytes in total (default: all files).
        Raises :class:`Damaged` if a file other than a shard is damaged.
        """
        entries, found, read = self.store.manifest.files, self, 0
        for name in sorted(entries, key=lambda name: entries[name].nbytes):
            read += entries[name].nbytes
            if most is not None and read > most:
                break
            try:
                self.store.require(name)
            except Damaged as fault:
                if not is_shard(name):
                    raise
                found = found.without(name, str(fault))
        return found

    def with_samples(self, samples: int) -> StoredIndex:
        """Return a view of the first ``samples`` samples; raises :class:`UsageError`."""
        have = self.samples
        if have is None:
            raise UsageError(f"{self.measure.name} has no samples to select from")
        if type(samples) is not int or not 1 <= samples <= have:
            raise UsageError(f"samples is {samples!r}; the index has {have}: choose 1 to {have}")
        view = copy(self)
        view._only = samples
        if SAMPLES in self.settings:
            view.settings = self.settings.changed(SAMPLES, samples)
        view.freshness = fresh = self.freshness.only(samples)
        parts = []
        for part in self.parts:
            own = part.freshness.only(samples) if part.freshness.there else fresh
            parts.append(replace(part, only=samples, freshness=own))
        view.parts = tuple(parts)
        return view

    def diagonal(self, part: StoredPart) -> Diagonal | None:
        """Return the part's diagonal for refined answers, or None.

        The checksum is always verified, because error bounds depend on the diagonal. Raises
        :class:`Damaged`.
        """
        name = part.prefix + DIAGONAL
        facts = self.refined.get(name)
        if facts is None:
            return None
        fault = self.store.verify(name)
        if fault is not None:
            raise Damaged(f"{fault}. Rebuild the index")
        table = part.array(DIAGONAL)
        found = read_diagonal(table, facts)
        if not found.is_valid:
            raise part.damaged_file(DIAGONAL)
        return found

    def damaged(self) -> Damaged:
        """Return the exception for damage in an unknown file."""
        path = self.store.path
        return Damaged(
            f"{path} is damaged; see: cocite verify {path}. Restore it from an intact copy, or "
            "rebuild it"
        )

    @property
    def weighted(self) -> bool:
        """Return whether scores use link weights."""
        return any(part.weighted for part in self.parts)

    @property
    def texts(self) -> dict[str, int] | None:
        """Return the counts of ``pages`` with words and of ``words``; None without texts."""
        part = next((part for part in self.parts if part.measure.texts), None)
        if part is None:
            return None
        ends, words = part.array("texts.offsets"), part.array("words.offsets").size - 1
        return {"pages": int(np.count_nonzero(ends[1:] != ends[:-1])), "words": words}

    @cached_property
    def titles(self) -> Titles | None:
        """Return the node titles, or None."""
        return open_titles(self.store, int(self.store.facts["nodes"]))

    @cached_property
    def names(self) -> Names:
        """Return the node names."""
        found = names_of(self.store)
        if self.kept is not None:
            found.note = f"{found.note}. " * bool(found.note) + (
                f"{self.store.path} contains only {self.kept.in_words(self.nodes)}. To query other "
                "pages, build an index that contains them"
            )
        return found

    @cached_property
    def digest(self) -> str:
        """Return a checksum of the content, independent of the shard size."""
        files = self.store.manifest.files
        return self.store.manifest.digest(*(name for name in files if not is_shard(name)))
