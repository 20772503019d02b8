"""Snapshots: the graph from which each sample of a refreshed index was drawn.

A refreshed index has samples of several graph *snapshots*, all with the newest snapshot's ids.
Sample numbers only grow, and the oldest samples are replaced first, so a snapshot is a range of
numbers. Nodes that were added later are missing from earlier samples: sample s contains node v if
since[v] <= s. A score is the mean over the available samples that contain both nodes; these are the
newest samples.

Samples remain independent, but their expectations differ between graphs: standard errors tend to be
too large, and intervals remain valid. Source: Maurer, Pontil, *Empirical Bernstein bounds*, 2009;
the application to several graphs is our own.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cocite.constants import Ids, Ints
from cocite.errors import Damaged, UsageError
from cocite.measures.settings import MAX_SAMPLES
from cocite.storage import Facts

SINCE = "since"
"""File name of uint32[nodes]: the number of the first sample that contains each node."""
MOST_NUMBERS = 2**32 - 1 - MAX_SAMPLES
"""Maximum number of samples over an index's lifetime; sample numbers are uint32."""


@dataclass(frozen=True)
class Snapshot:
    """The samples of one refresh (0 for the build): ``samples`` samples, numbered from ``first``.

    ``graph`` (a name) and ``digest`` identify the graph; ``path`` was its path relative to the
    index. ``date`` is None if unknown.
    """

    refresh: int
    first: int
    samples: int
    graph: str
    digest: str
    date: str | None = None
    path: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return the snapshot as stored in the manifest."""
        return dict(self.__dict__)

    @property
    def numbers(self) -> range:
        """Return the snapshot's sample numbers."""
        return range(self.first, self.first + self.samples)


@dataclass(frozen=True)
class LocalRefresh:
    """The last of ``refreshes`` local refreshes, on ``date``.

    The rows of ``nodes`` nodes were recomputed; the others date from the full build on ``since``,
    from the graph named ``graph``. Of the others, ``checked`` were compared with recomputed rows: a
    fraction ``differ`` of them has a different top ten, and scores differ by at most
    ``largest_difference`` (``index/layouts/rows/local.py``).
    """

    refreshes: int
    date: str
    nodes: int
    checked: int
    differ: float
    largest_difference: float
    since: str
    graph: str

    def to_json(self) -> dict[str, object]:
        """Return the facts as stored in the manifest."""
        return dict(self.__dict__)

    @classmethod
    def read(cls, facts: Facts) -> Self:
        """Read the facts from a manifest; raises :class:`Damaged`."""
        return cls(
            facts.whole("refreshes", 1),
            _day(facts, "date"),
            facts.whole("nodes"),
            facts.whole("checked"),
            facts.number("differ", 0, 1),
            facts.number("largest_difference", 0, 1),
            _day(facts, "since"),
            facts.text("graph"),
        )


@dataclass(frozen=True)
class Freshness:
    """An index's snapshots, oldest first. ``since`` is None if all samples contain all nodes.

    If samples are lost, ``there`` contains the available sample numbers, int64[samples], ascending,
    of one part, or of each part that an answer combines.
    """

    snapshots: tuple[Snapshot, ...]
    since: Ids | None = None
    path: str = ""
    there: tuple[Ints, ...] = ()

    @property
    def numbers(self) -> range:
        """Return all sample numbers."""
        return range(self.snapshots[0].first, self.snapshots[-1].numbers.stop)

    @property
    def refreshed(self) -> bool:
        """Return whether samples come from several graphs or lack some nodes."""
        return len(self.snapshots) > 1 or self.since is not None

    @property
    def newest(self) -> range:
        """Return the sample numbers of the newest graph."""
        last = first = self.snapshots[-1]
        for each in reversed(self.snapshots):
            if each.digest != last.digest:
                break
            first = each
        return range(first.first, last.numbers.stop)

    def only(self, samples: int) -> Freshness:
        """Return the first ``samples`` available samples; raises :class:`UsageError` if there are
        several snapshots.
        """
        if len(self.snapshots) > 1:
            raise UsageError(
                f"{self.path} was refreshed: its samples come from {len(self.snapshots)} graphs, "
                "oldest first. Use all samples"
            )
        if self.there:
            return replace(self, there=tuple(numbers[:samples] for numbers in self.there))
        return Freshness((replace(self.snapshots[0], samples=samples),))

    @property
    def alike(self) -> int | None:
        """Return the number of samples of the newest graph; None if there is only one snapshot."""
        if len(self.snapshots) == 1:
            return None
        newest = self.newest
        counts = [int((numbers >= newest.start).sum()) for numbers in self.there]
        return min(counts, default=len(newest))

    @property
    def held(self) -> Ints:
        """Return a part's available sample numbers, int64[samples], ascending."""
        return self.there[0] if self.there else np.arange(self.numbers.start, self.numbers.stop)

    def knowing(self, node: int | NDArray[Any], others: NDArray[Any]) -> Ints:
        """Return int64[h]: the number of samples that contain both ``node`` and each of ``others``.

        Raises :class:`Damaged` if a number is 0.
        """
        numbers = self.numbers
        if self.since is None:
            samples = min(map(len, self.there or (numbers,)))
            return np.full(np.shape(others), samples, np.int64)
        first = np.maximum(np.maximum(self.since[node], self.since[others]), numbers.start)
        found: Ints = numbers.stop - first.astype(np.int64)
        for held in self.there:
            found = np.minimum(found, held.size - np.searchsorted(held, first))
        if found.size and int(found.min()) < 1:
            lost = "available " if self.there else ""
            raise Damaged(
                f"{self.path}: a node has no {lost}samples; see: cocite verify {self.path}. "
                "Rebuild the index"
            )
        return found


def snapshots_of(facts: Facts, samples: int) -> tuple[Snapshot, ...]:
    """Return the snapshots of an index with ``samples`` samples; raises :class:`Damaged`."""
    graph = facts.group("graph")
    newest = graph.text("name"), graph.digest("digest")
    if "generations" not in facts:
        first = facts.whole("first", 1, MOST_NUMBERS) if "first" in facts else 0
        return (Snapshot(0, first, samples, *newest, None, graph.relative("path")),)
    found = tuple(map(_generation, facts.groups("generations")))
    ends = [g.numbers.stop for g in found]
    runs = [g.first for g in found[1:]] == ends[:-1]
    ages = [g.refresh for g in found]
    if not runs or ages != sorted(set(ages)) or sum(g.samples for g in found) != samples:
        allowed = f"a list of consecutive ranges, oldest first, with {samples} samples in total"
        raise facts.refused("generations", allowed)
    last = found[-1]
    if (last.graph, last.digest, last.path) != (*newest, graph.relative("path")):
        raise facts.refused("generations", "a list that ends with the index's graph")
    return found


def _day(facts: Facts, name: str) -> str:
    date = facts.text(name)
    try:
        return datetime.date.fromisoformat(date).isoformat()
    except ValueError:
        raise facts.refused(name, "a day like 2026-11-21") from None


def _generation(facts: Facts) -> Snapshot:
    return Snapshot(
        facts.whole("refresh", 0, MOST_NUMBERS),
        facts.whole("first", 0, MOST_NUMBERS),
        facts.whole("samples", 1, MAX_SAMPLES),
        facts.text("graph"),
        facts.digest("digest"),
        _day(facts, "date"),
        facts.relative("path"),
    )
