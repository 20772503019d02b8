"""Asking fingerprint trees for a draft: its walk is drawn until it comes to where another one is.

From there on the two are one. If the walk of the draft first stands at step t where some walk v0
does, then for all others

    tau(draft, v) = max(t, tau(v0, v)),      and tau(draft, v0) = t

and tau(v0, v) is what the trees of the index hold. v0 is looked for backwards: one that steps to
the place at step t, one that steps to that at t - 1, and so on to a node where it begins.

That holds where no walk but its own changes with the draft: where it comes into no row that walks
go by, such as one that nobody links to yet, by out-links. All other drafts, and other nodes, are
replayed (``index/layouts/trees/on_the_fly.py``). Either way values are those of an index of the
graph with the draft, to the bit.

Cost: some 50 microseconds a sample to find v0, and the relatives of v0 in the trees.
Source: 001, 2.1.1; that a new page shares the trees of the old ones is this project's.

Asking walks with a draft: samples drawn again when a question needs them.

A pair replays its two walks in every sample; the relatives of a node are found from where its walk
goes (``engine/walk.py``). Samples are keyed by their numbers, so values, scores and intervals are
those of the index that a build with the same settings would make, to the bit.

Cost: a pair some 0.05 ms a sample; relatives from 0.1 ms a sample on, by what the walk meets and
what that is linked with. An index answers a hundred to a thousand times faster.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.constants import NEVER, NOWHERE
from cocite.deadline import check
from cocite.engine.walk import Mover, follow, probe
from cocite.graph.blocks import Links
from cocite.graph.links import opposite
from cocite.index.layouts.on_the_fly import DraftPart
from cocite.index.layouts.part import Shard, StoredPart
from cocite.index.layouts.reader import Graphs, Ids, QueryScratch, weights_of
from cocite.index.layouts.trees.meetings import MeetingReader, Times, Ways
from cocite.index.layouts.trees.reader import lookup_of, table_of
from cocite.index.layouts.trees.replay import part_mover
from cocite.kernels.random import order_bits
from cocite.measures import LENGTH, PartSettings


class OnTheFlyReader(MeetingReader):
    """In the place of the layouts of walks."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, DraftPart)
        super().__init__(part)
        self._links, self._means = part.links, part.ends.means
        self._length = part.settings[LENGTH]

    @property
    def _numbers(self) -> list[int]:
        """Those of the samples."""
        found: list[int] = self.part.freshness.held[: self.part.samples].tolist()
        return found

    @cached_property
    def _mover(self) -> Mover:
        return part_mover(self.part, self._links(self.part.direction), self._means)

    @cached_property
    def _columns(self) -> Links:
        return self._links(opposite(self.part.direction))

    def times_with(self, node: int, others: Ids) -> Times:
        """tau in every sample, uint8[samples, h]; 255 where the walks do not meet."""
        nodes = np.append(np.uint32(node), others)
        times = np.empty((len(self._numbers), others.size), np.uint8)
        for row, sample in enumerate(self._numbers):
            check()
            times[row] = follow(self._mover, self._length, sample, nodes)[1:]
        return times

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """Add up over all samples what the node meets."""
        weights, count = weights_of(self.weight(settings).values), 0
        for sample in self._numbers:
            check()
            met, times = probe(self._mover, self._length, self._columns, sample, node)
            fresh = met[scratch.sums[met, 0] == 0]
            scratch.used[count : count + fresh.size] = fresh
            count += fresh.size
            scratch.sums[met] += weights[times]
        return count

    def _ways(
        self,
        first: int,
        second: int,
        samples: NDArray[np.int64],
        steps: Times,
        graphs: Graphs,
    ) -> Ways:
        """Made again, along the same links."""
        points = np.zeros((samples.size, self._length, 2), np.uint32)
        numbers = np.array(self._numbers)[samples].tolist()
        for row, (sample, last) in enumerate(zip(numbers, steps.tolist(), strict=True)):
            check()
            at = np.array([first, second], np.uint32)
            for step in range(1, last + 1):
                self._mover(sample, step, at, points[row, step - 1])
                at = points[row, step - 1]
        return Ways(points[:, :, 0], points[:, :, 1], np.ones(samples.size, bool))


# -- trees -------------------------------------------------------------------------------


_AT_ONCE = 256
"""Nodes that are looked at together for one that steps to a place."""


class _Meeting(NamedTuple):
    """In one sample, number ``place`` of those that are there: the draft meets ``other`` at
    ``step``.
    """

    place: int
    shard: Shard
    other: int
    step: int


class DraftTreeReader(OnTheFlyReader):
    """In the place of the layouts ``trees``, ``packed`` and ``paths``."""

    @cached_property
    def _joins(self) -> bool:
        """Whether no walk of the index changes with the draft."""
        part = self.part
        assert isinstance(part, DraftPart)
        if part.plan.by_page:
            return False
        fresh, ways = part.built.freshness, ("in", "out")
        if fresh.since is not None or len(fresh.snapshots) > 1:
            return False
        if order_bits(part.nodes) != order_bits(part.nodes - 1):
            return False
        rows = ways if part.direction == "both" else (part.direction,)
        return not any(part.ends.page.rows(way)[0].size for way in rows)

    def times_with(self, node: int, others: Ids) -> Times:
        """tau in every sample, uint8[samples, h]; 255 where the walks do not meet."""
        if node != self.part.nodes - 1 or not self._joins:
            return super().times_with(node, others)
        lookup = lookup_of(self._built)
        times = np.full((self.part.samples, others.size), NEVER, np.uint8)
        for place, shard, other, step in self._meetings:
            found, row = times[place : place + 1], self._table[place : place + 1]
            asked = np.uint32(other), others
            if lookup.meeting_times(row, *asked, found) != lookup.SOUND:
                raise self._built.damaged(shard.first)
            found[found != NEVER] = np.maximum(found[found != NEVER], step)
            found[0, others == other] = step
        return times

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """Add up, over all samples, the relatives of whom the draft meets first."""
        if node != self.part.nodes - 1 or not self._joins:
            return super().gather_sums(node, settings, scratch)
        weights = weights_of(self.weight(settings).values)
        if self._built.layout == "packed":
            return self._gather_packed(weights, scratch)
        lookup, later, count = lookup_of(self._built), _later(weights), 0
        sums, used = scratch.sums, scratch.used
        for place, shard, other, step in self._meetings:
            row, whom = self._table[place : place + 1], np.uint32(other)
            found = lookup.gather(row, whom, later[step], sums.reshape(-1), used, count)
            count = int(found)
            if count < 0:
                raise self._built.damaged(shard.first)
            used[count] = whom
            count += int(sums[other, 0] == 0)
            sums[other] += weights[step]
        return count

    def _gather_packed(self, weights: NDArray[np.uint64], scratch: QueryScratch) -> int:
        """The same of runs."""
        lookup, later, changes = lookup_of(self._built), _later(weights), scratch.changes
        for place, shard, other, step in self._meetings:
            row, whom = self._table[place : place + 1], np.uint32(other)
            asked = row, whom, later[step], changes, scratch.bytes
            if lookup.spread(*asked) != lookup.SOUND:
                raise self._built.damaged(shard.first)
            changes[other] += weights[step]
            changes[other + 1] -= weights[step]
            scratch.bytes[other // lookup.BLOCK] = 1
        return int(lookup.collect(changes, scratch.bytes, scratch.eights, scratch.used))

    @property
    def _built(self) -> StoredPart:
        assert isinstance(self.part, DraftPart)
        return self.part.built

    @cached_property
    def _table(self) -> NDArray[np.uint64]:
        return table_of(self._built)

    @cached_property
    def _meetings(self) -> list[_Meeting]:
        """Whom the draft meets first, of the samples in which it meets anybody."""
        found, place = [], 0
        for shard in self._built.shards:
            for row in range(min(shard.samples, self.part.samples - place)):
                met = self._met(shard.number + row)
                if met is not None:
                    found.append(_Meeting(place, shard, *met))
                place += 1
        return found

    def _met(self, sample: int) -> tuple[int, int] | None:
        """Somebody whom the draft meets first in a sample, and the step; None if there is none."""
        mover, at = self._first_step, np.uint32(self.part.nodes - 1)
        dead: set[tuple[int, int]] = set()
        for step in range(1, self._length + 1):
            (at,) = _moved(mover, sample, step, np.array([at], np.uint32))
            if at == NOWHERE:
                return None
            other = self._somebody(sample, step, int(at), dead)
            if other is not None:
                return other, step
            mover = self._onward
        return None

    def _somebody(self, sample: int, step: int, at: int, dead: set[tuple[int, int]]) -> int | None:
        """A node whose walk stands at a place at a step; ``dead`` are places where none does."""
        if step == 0:
            return at
        if (step, at) in dead:
            return None
        begin, end = self._sources.offsets[at : at + 2].astype(np.int64).tolist()
        for low in range(begin, end, _AT_ONCE):
            came = self._sources.neighbors[low : min(low + _AT_ONCE, end)]
            here = _moved(self._onward, sample, step, came) == at
            for before in came[here].tolist():
                found = self._somebody(sample, step - 1, before, dead)
                if found is not None:
                    return found
        dead.add((step, at))
        return None

    # -- links without the draft, and its own row ------------------------------------------

    def _before(self, way: str) -> Links:
        part = self.part
        assert isinstance(part, DraftPart)
        return part.ends.before(way, part.weighted)

    @cached_property
    def _sources(self) -> Links:
        return self._before(opposite(self.part.direction))

    @cached_property
    def _onward(self) -> Mover:
        """Makes the steps of all others; kept for all drafts."""
        part = self.part
        assert isinstance(part, DraftPart)
        if "mover" not in part.kept:
            links = self._before(part.direction)
            part.kept["mover"] = part_mover(part.built, links, part.ends.means)
        found: Mover = part.kept["mover"]
        return found

    @cached_property
    def _first_step(self) -> Mover:
        """Makes the step of the draft, along links that are its own alone."""
        part = self.part
        assert isinstance(part, DraftPart)
        row, weights = part.ends.page.row(part.direction)
        offsets: NDArray[np.uint64] = np.zeros(part.nodes + 1, np.uint64)
        offsets[-1] = row.size
        own = Links(
            offsets, row, weights if self._before(part.direction).weights is not None else None
        )
        return part_mover(part, own, part.ends.means)


def _later(weights: NDArray[np.uint64]) -> list[NDArray[np.uint64]]:
    """By the step at which a draft meets another: what each of those that it meets is worth."""
    steps = np.arange(len(weights))
    return [weights[np.maximum(steps, step)] for step in range(len(weights))]


def _moved(mover: Mover, sample: int, step: int, at: Ids) -> Ids:
    arrived = np.empty_like(at)
    mover(sample, step, at, arrived)
    return arrived
