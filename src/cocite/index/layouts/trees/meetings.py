"""Base classes of readers of walks: scores from meeting times, and meetings from stored walks.

The value of a sample is f(tau), where tau is the step at which two walks first meet, or 0 if the
walks do not meet; by default f(tau) = decay**tau (``measures/meeting_weight.py``). Equal meeting
times give scores equal to the bit in every layout.

Source: Fogaras, Racz, *Scaling link-based similarity search*, 1.3 (expected f-meeting distance).
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.constants import NEVER, NOWHERE, ONE, Bools, Floats, Ids, Ints
from cocite.index.layouts.part import Shard
from cocite.index.layouts.reader import (
    NOTHING,
    Estimate,
    Graphs,
    Paths,
    Reasons,
    Span,
    SummingReader,
    weights_of,
)
from cocite.measures import LENGTH, PartSettings
from cocite.measures.meeting_weight import MeetingWeights
from cocite.measures.meeting_weight import weights_of as worth_of

Times = NDArray[np.uint8]
Points = Ids


class Ways(NamedTuple):
    """Two walks up to the meeting, uint32[samples, length] each; whether the walks are known,
    bool[samples]; and the names of removed pages, whose ids follow the node ids.
    """

    one: Points
    other: Points
    placed: Bools
    gone: tuple[str, ...] = ()


class MeetingReader(SummingReader):
    """Base of readers that find the time at which two walks meet."""

    @abstractmethod
    def times_with(self, node: int, others: Ids) -> Times:
        """Return uint8[samples, h]: tau, or 255 without a meeting."""

    def meeting_times(self, first: int, second: int) -> Times:
        """Return uint8[samples]: tau, or 255 without a meeting."""
        found: Times = self.times_with(first, np.array([second], np.uint32))[:, 0]
        return found

    @abstractmethod
    def _ways(self, first: int, second: int, samples: Ints, steps: Times, graphs: Graphs) -> Ways:
        """Return two walks in the ``samples`` in which they meet, at the given ``steps``."""

    def _refuse(self, samples: Ints) -> None:
        """Raise :class:`Damaged` for the first sample; do nothing without samples."""
        if samples.size:
            shards = self.part.shards
            raise self.part.damaged(max(s.first for s in shards if s.first <= samples[0]))

    def weight(self, settings: PartSettings) -> MeetingWeights:
        """Return the meeting weights."""
        return worth_of(settings, self.part.settings)

    def values(self, node: int, others: Ids, settings: PartSettings) -> tuple[Floats, Floats]:
        """Return f(tau) in every sample. Without a meeting within ``length`` steps, the value is 0,
        and the upper bound is ``MeetingWeights.beyond``.
        """
        times = self.times_with(node, others)
        least, most = both_by_time(self.weight(settings))
        return np.take(least, times), np.take(most, times)

    def span(self, settings: PartSettings) -> Span:
        """Return the span of values for different nodes, which meet after at least one step."""
        worth = self.weight(settings)
        values = *worth.values[1 : self.part.settings[LENGTH] + 1], worth.beyond
        return Span(0.0, min(values), max(values))

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of two nodes; a node scores 1 with itself, without error."""
        samples = self.known(first, second)
        if first == second:
            return self.estimated(np.array([samples * ONE, samples * ONE], np.uint64), samples)
        times = self.meeting_times(first, second)
        counts = np.bincount(times[times < 16], minlength=16).astype(np.uint64)
        return self.estimated(counts @ weights_of(self.weight(settings).values), samples)

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the nodes at which walks first meet; each meeting adds f(tau) / samples."""
        times = self.meeting_times(first, second)
        worth = np.array(self.weight(settings).values)
        met = np.flatnonzero(times != NEVER)
        if met.size == 0:
            return NOTHING
        steps = times[met]
        self._refuse(met[(steps < 1) | (steps > self.part.settings[LENGTH])])
        met = met[worth[steps] > 0]
        if met.size == 0:
            return NOTHING
        steps = times[met]
        found = self._ways(first, second, met, steps, graphs)
        values = worth[steps] / self.known(first, second)
        there = found.placed
        unattributed, values, steps = values[~there].sum(), values[there], steps[there]
        ways = found.one[there], found.other[there]
        nodes, rows = np.unique(ways[0][np.arange(steps.size), steps - 1], return_inverse=True)

        def path(row: int) -> Paths:
            """Return the pair of walks that contributes most to a node, the first one on ties."""
            carried: dict[tuple[tuple[int, ...], ...], float] = {}
            for i in np.flatnonzero(rows == row).tolist():
                pair = tuple(tuple(way[i, : steps[i]].tolist()) for way in ways)
                carried[pair] = carried.get(pair, 0.0) + values[i]
            one, other = max(carried, key=lambda pair: carried[pair])
            return [first, *one], [second, *other]

        shares = np.bincount(rows, values).astype(np.float64)
        return Reasons(nodes, shares, path, np.bincount(rows), found.gone, float(unattributed))


class WalkReader(MeetingReader):
    """Base of readers whose layout stores the walks."""

    @abstractmethod
    def _read_walks(self, shard: Shard, node: int, out: Ids) -> bool:
        """Fill ``out`` with a shard's walks; return whether the shard is intact."""

    def walks(self, node: int) -> Ids:
        """Return uint32[samples, length]: the node after each step, 2**32 - 1 after the end."""
        length = self.part.settings[LENGTH]
        found = np.empty((self.part.samples, length), np.uint32)
        for shard in self.part.pieces():
            out = found[shard.first : shard.first + shard.samples]
            if not self._read_walks(shard, node, out):
                raise self.part.damaged(shard.first)
        return found

    def _ways(self, first: int, second: int, samples: Ints, steps: Times, graphs: Graphs) -> Ways:
        """Return the stored walks."""
        one, other = self.walks(first)[samples], self.walks(second)[samples]
        walked = np.arange(one.shape[1]) < steps[:, None]
        ended = walked & ((one == NOWHERE) | (other == NOWHERE))
        self._refuse(samples[ended.any(axis=1)])
        return Ways(one, other, np.ones(samples.size, bool))


@lru_cache(maxsize=64)
def both_by_time(worth: MeetingWeights) -> Floats:
    """Return float64[2, 256]: the value and an upper bound on the exact value, by meeting time."""
    found = np.zeros((2, 256))
    found[:, : len(worth.values)] = worth.values
    found[1, NEVER] = worth.beyond
    found.flags.writeable = False
    return found
