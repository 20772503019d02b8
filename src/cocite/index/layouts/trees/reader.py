"""Answers from walks: scores from meeting times, and the readers of all layouts of walks.

The value of a sample is f(tau), where tau is the step at which two walks first meet; it is 0 if the
walks do not meet. By default, f(tau) = decay**tau (``measures/meeting_weight.py``). The same
meeting times give bit-identical scores in every layout.

In trees, a node meets every other member of its tree; the meeting time is the largest label between
the two. Packed trees are looked up by runs instead of positions (``lookup_of``); ``paths`` also
stores trees. ``index/layouts/trees/replay.py`` recomputes meeting points. A pair costs one access
per sample and the labels between the nodes (packed: two accesses and the runs between); a list
costs 1.8 ns per tree member (packed: 3 ns per run). In ``compact``, a pair reads at most 2 * length
words, and a list the nodes at most k steps below the walk's k-th point. Source: Fogaras, Racz,
*Scaling link-based similarity search*, sections 1.3 (expected f-meeting distance), 2.1.1 and 2.1.4;
*A scalable randomized method to compute link-based similarity rank on the web graph*, sections 2
and 3.1.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS, NEVER, NOWHERE, ONE, UNFINISHED, Bools, Floats, Ids, Ints
from cocite.deadline import check
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import (
    NOTHING,
    Estimate,
    Graphs,
    ListedHits,
    PairEvidence,
    Paths,
    QueryScratch,
    Reasons,
    Span,
    SummingReader,
    Values,
    borrowed,
    weights_of,
)
from cocite.index.layouts.trees.format import POSITIONS, WIDTH
from cocite.kernels import paths, runs_lookup, trees, trees_batch
from cocite.measures import LENGTH, PartSettings
from cocite.measures.meeting_weight import MeetingWeights
from cocite.measures.meeting_weight import weights_of as worth_of

if TYPE_CHECKING:
    from cocite.index.layouts.trees.replay import Replay


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
        """Return uint8[samples, h]: tau, or 255 if the walks do not meet."""

    def meeting_times(self, first: int, second: int) -> Times:
        """Return uint8[samples]: tau, or 255 if the walks do not meet."""
        found: Times = self.times_with(first, np.array([second], np.uint32))[:, 0]
        return found

    @abstractmethod
    def _ways(self, first: int, second: int, samples: Ints, steps: Times, graphs: Graphs) -> Ways:
        """Return two walks in the ``samples`` in which they meet, at the given ``steps``."""

    def _refuse(self, samples: Ints) -> None:
        """Raise :class:`Damaged` for the first of ``samples``, if there are any."""
        if samples.size:
            raise self.part.damaged(int(samples[0]))

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
        """Return the score of two nodes; a node's similarity to itself is exactly 1."""
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


@lru_cache(maxsize=64)
def both_by_time(worth: MeetingWeights) -> Floats:
    """Return float64[2, 256]: the value and an upper bound on the exact value, by meeting time."""
    found = np.zeros((2, 256))
    found[:, : len(worth.values)] = worth.values
    found[1, NEVER] = worth.beyond
    found.flags.writeable = False
    return found


_ALONE, _TOGETHER = 64, 256
"""Maximum number of nodes per kernel call: answered one by one, and with shared sums."""
_TRIED_SAMPLES = 8
"""Approximate number of samples for testing whether sharing sums is faster."""
_PATIENCE, _MOST_WAITS = 4, 15
"""Number of consecutive failed tests before batches skip the test, and maximum number of batches
that skip it. Testing every batch would cost a tenth of the time on graphs where all tests fail.
"""
_MOST_HITS = 256
"""Maximum number of hits in an answer from one kernel call."""


class TreeReader(MeetingReader):
    """The ``trees`` and ``packed`` layouts, which store meeting times. Meeting points are found by
    repeating walks.
    """

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self._packed = part.layout == "packed"
        self._replays: dict[str, Replay] = {}
        self._refused = self._waits = 0
        """Number of consecutive failed tests of shared sums, and of batches until the next test.
        Threads may miscount; answers do not depend on these numbers.
        """

    def times_with(self, node: int, others: Ids) -> Times:
        """Return uint8[samples, h]: tau, or 255 if the walks do not meet."""
        lookup = lookup_of(self.part)
        times = np.empty((self.part.samples, others.size), np.uint8)
        for some in self.part.slices():
            rows = self.table[some], np.uint32(node), others, times[some]
            bad = int(lookup.meeting_times(*rows))
            if bad != trees.SOUND:
                raise self.part.damaged(some.start + bad)
        return times

    def _ways(self, first: int, second: int, samples: Ints, steps: Times, graphs: Graphs) -> Ways:
        """Repeat the walks on each sample's graph."""
        from cocite.index.layouts.trees.replay import Replay

        one = np.zeros((samples.size, self.part.settings[LENGTH]), np.uint32)
        found = Ways(one, one.copy(), np.zeros(samples.size, bool))
        gone: list[str] = []
        numbers = self.part.freshness.held[samples]
        for generation in self.part.freshness.snapshots:
            drawn = generation.numbers
            rows = np.flatnonzero((numbers >= drawn.start) & (numbers < drawn.stop))
            graph = graphs.find(generation.digest) if rows.size else None
            if graph is None:
                continue
            replay = self._replays.get(generation.digest) or Replay(self.part, graph, graphs.means)
            self._replays[generation.digest] = replay
            ways = replay(first, second, numbers[rows], steps[rows], gone)
            found.one[rows], found.other[rows] = ways
            found.placed[rows] = True
        return found._replace(gone=tuple(gone))

    @property
    def pairs_from(self) -> int | None:
        """Return the number of pairs from which a pass over each sample is faster."""
        return 1 + self.part.nodes // (256 if self._packed else 2048)

    def pairs(self, first: Ids, second: Ids, settings: PartSettings) -> PairEvidence:
        """Score all pairs, one sample at a time."""
        from cocite.kernels import pairs

        times = np.empty((self.part.samples, first.size), np.uint8)
        for some in self.part.slices():
            rows = self.table[some], self.part.nodes, first, second, times[some]
            bad = int(pairs.meeting_times(*rows))
            if bad != pairs.SOUND:
                raise self.part.damaged(some.start + bad)
        worth, estimates = self.weight(settings), np.empty((first.size, 2))
        weights = np.zeros((256, 2), np.uint64)
        weights[:16] = weights_of(worth.values)
        known = self.part.freshness.knowing(first, second)
        pairs.estimates(times, weights, known, estimates)
        least, most = both_by_time(worth)

        def values(some: slice) -> Values:
            return np.take(least, times[:, some]), np.take(most, times[:, some])

        return PairEvidence(estimates, values)

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """For each other node, sum the values of its meetings with ``node``."""
        weights = weights_of(self.weight(settings).values)
        if self._packed:
            return self._gather_runs(node, weights, scratch)
        progress = self._progress()
        while progress[0] < len(self.table):
            check()
            sums = scratch.sums, scratch.used, progress
            bad = int(trees.gather(self.table, np.uint32(node), weights, *sums))
            if bad != trees.SOUND:
                raise self.part.damaged(bad)
        return int(progress[1])

    def _gather_runs(self, node: int, weights: NDArray[np.uint64], scratch: QueryScratch) -> int:
        """Fill ``scratch`` from packed trees, like :meth:`gather_sums`."""
        changes, marks = scratch.changes, scratch.bytes
        for some in self.part.slices():
            rows = self.table[some], np.uint32(node), weights
            bad = int(runs_lookup.spread(*rows, changes, marks))
            if bad != runs_lookup.SOUND:
                raise self.part.damaged(some.start + bad)
        return int(runs_lookup.collect(changes, marks, scratch.eights, scratch.used))

    def _progress(self) -> NDArray[np.uint64]:
        """Return a kernel's progress array, with the limit on reads between deadline checks."""
        return np.array([0, 0, self.part.at_once * self.part.nodes, 0], np.uint64)

    def at_once(
        self, nodes: Ids, k: int, floor: float, bets: tuple[float, float], settings: PartSettings
    ) -> list[ListedHits] | None:
        """Return the first nodes' lists from one kernel call if there is one part and one snapshot,
        and ``k`` is small: many lists if nodes can share sums, like adjacent pages of a web graph;
        otherwise a few lists, one by one.
        """
        if self.part.weight != 1 or len(self.part.freshness.snapshots) > 1 or k > _MOST_HITS:
            return None
        if nodes.size == 1:
            return self._one_by_one(nodes, k, floor, bets, settings)
        some = nodes[:_TOGETHER]
        places = np.empty(some.size, np.uint64)
        trees_batch.places(self.table, some, places)
        order = np.argsort(places, kind="stable")
        some, found = some[order], list[ListedHits]()
        while len(found) < some.size:
            rest = some[len(found) :]
            more = self._shared(rest, k, floor, settings) if math.isinf(bets[0]) else []
            if not more and not found:
                return self._one_by_one(nodes[:_ALONE], k, floor, bets, settings)
            found += more or self._one_by_one(rest[:_ALONE], k, floor, bets, settings)
        return [found[place] for place in np.argsort(order).tolist()]

    def _one_by_one(
        self, nodes: Ids, k: int, floor: float, bets: tuple[float, float], settings: PartSettings
    ) -> list[ListedHits]:
        ids, rows = np.empty((nodes.size, k), np.uint32), np.empty((nodes.size, k, 4))
        counts, progress = np.zeros((nodes.size, 3), np.int64), self._progress()
        worth, span = self.weight(settings), self.span(settings)
        level, rounding = bets
        numbers = np.array([floor, level, *span, math.ceil(span.most * GRAINS), rounding])
        with borrowed(self.part.nodes) as scratch:
            sums = scratch.changes.reshape(-1)[: self.part.nodes + self._packed]
            room = sums, scratch.used, scratch.bytes, scratch.eights, progress
            given = self.table, nodes, weights_of(worth.values), both_by_time(worth), room, numbers
            bad = UNFINISHED
            while bad == UNFINISHED:
                check()
                bad = int(trees_batch.answers(*given, (ids, rows, counts)))
            if bad != trees_batch.SOUND:
                raise self.part.damaged(bad)
            listed = counts.tolist()
            touched = sum(row[1] for row in listed)
            if self._packed:  # counts blocks of nodes, each within one memory page
                scratch.wear += touched // lookup_of(self.part).BLOCK
            elif nodes.size == 1:
                scratch.note_sums(touched)
            else:
                scratch.wear += touched
        return _lists(ids, rows, listed)

    def _shared(self, nodes: Ids, k: int, floor: float, settings: PartSettings) -> list[ListedHits]:
        """Return lists of the first nodes, each computed from the previous node's sums, while this
        is faster. Return [] if two tests on a few samples, or recent tests, show no gain.
        """
        few, step = trees_batch.TRIED + 2, max(1, len(self.table) // _TRIED_SAMPLES)
        if nodes.size < few or self._waits > 0:
            self._waits -= nodes.size >= few
            return []
        for begin in nodes.size // 4, 3 * nodes.size // 4:
            some = nodes[min(begin, nodes.size - few) :][:few]
            if len(self._carry(some, 1, floor, settings, step)) == few:
                self._refused = 0
                return self._carry(nodes, k, floor, settings)
        self._refused += 1
        self._waits = min(max(0, self._refused - _PATIENCE), _MOST_WAITS)
        return []

    def _carry(
        self, nodes: Ids, k: int, floor: float, settings: PartSettings, step: int = 1
    ) -> list[ListedHits]:
        """Return lists like :meth:`_shared` from every ``step``-th sample, without tests."""
        table = np.ascontiguousarray(self.table[::step])
        ids, rows = np.empty((nodes.size, k), np.uint32), np.empty((nodes.size, k, 4))
        counts = np.zeros((nodes.size, 3), np.int64)
        weights = _differences(self.weight(settings).values)
        with borrowed(self.part.nodes) as scratch:
            sums = scratch.totals.view(np.uint64), scratch.used
            arrays = *sums, scratch.changes, scratch.bytes, scratch.eights
            done = int(trees_batch.carry(table, nodes, weights, floor, arrays, (ids, rows, counts)))
            if done < 0:
                raise self.part.damaged((-1 - done) * step)
            scratch.wear += self.part.nodes
        return _lists(ids, rows, counts[:done].tolist())

    @cached_property
    def table(self) -> NDArray[np.uint64]:
        """Return the samples' kernel rows (:func:`table_of`)."""
        return table_of(self.part)


def _lists(ids: Ids, rows: Floats, counts: list[list[int]]) -> list[ListedHits]:
    found = zip(counts, ids, rows, strict=False)
    return [ListedHits(own[:n], numbers[:n], certain) for (n, _, certain), own, numbers in found]


@lru_cache(maxsize=64)
def _differences(values: tuple[float, ...]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return uint64[17, 16, 2]: the second meeting time's weight minus the first one's (16 means
    no meeting); and the negated differences.
    """
    weights = weights_of(values)
    others = np.concatenate((weights, np.zeros((1, 2), np.uint64)))
    return weights - others[:, None], others[:, None] - weights


def lookup_of(part: StoredPart) -> Any:
    """Return the kernel module that looks up samples of ``trees`` or ``packed``."""
    return runs_lookup if part.layout == "packed" else trees


def table_of(part: StoredPart) -> NDArray[np.uint64]:
    """Return a part's samples as kernel rows, which contain addresses: the part must stay open.

    Rows are uint64[samples, 4], as in ``kernels/trees.py``. For packed trees, they are
    uint64[samples, 6]: the addresses of directory, order and runs; the number of runs; and the bit
    widths of nodes and run numbers.
    """
    width, addresses = (WIDTH, 3) if part.layout == "packed" else (4, 2)
    rows = []
    for shard in part.shards:
        row = shard.blobs[:, :width].astype(np.uint64)
        begin = np.uint64(shard.words.ctypes.data)
        row[:, :addresses] = row[:, :addresses] * np.uint64(4) + begin
        rows.append(row)
    found: NDArray[np.uint64] = np.concatenate(rows)
    if part.layout == "trees":
        positions, fresh = part.array(POSITIONS), part.freshness
        columns = fresh.held[: len(found)] - fresh.numbers.start
        found[:, 0] = columns.astype(np.uint64) * np.uint64(4) + np.uint64(positions.ctypes.data)
        found[:, 2] = positions.shape[1]
    found.flags.writeable = False
    return found


# -- stored walks -------------------------------------------------------------------------


class WalkReader(MeetingReader):
    """Base of readers whose layout stores the walks."""

    @abstractmethod
    def walks(self, node: int) -> Ids:
        """Return uint32[samples, length]: the node after each step, 2**32 - 1 after the end."""

    def _no_walks(self) -> Ids:
        return np.empty((self.part.samples, self.part.settings[LENGTH]), np.uint32)

    def _ways(self, first: int, second: int, samples: Ints, steps: Times, graphs: Graphs) -> Ways:
        one, other = self.walks(first)[samples], self.walks(second)[samples]
        walked = np.arange(one.shape[1]) < steps[:, None]
        ended = walked & ((one == NOWHERE) | (other == NOWHERE))
        self._refuse(samples[ended.any(axis=1)])
        return Ways(one, other, np.ones(samples.size, bool))


class PathReader(WalkReader, TreeReader):
    """The ``paths`` layout."""

    def walks(self, node: int) -> Ids:
        """Return the node's walks, read from the stored points."""
        own = np.uint32(node)
        return self.part.fill(
            self._no_walks(), lambda shard, out: paths.follow_paths(*shard.data, own, out)
        )


class CompactReader(WalkReader):
    """The ``compact`` layout."""

    def times_with(self, node: int, others: Ids) -> Times:
        """Return uint8[samples, h]: tau, or 255 if the walks do not meet."""
        nodes = np.uint32(self.part.nodes), np.uint32(node), others
        return self.part.fill(
            np.empty((self.part.samples, others.size), np.uint8),
            lambda shard, out: paths.meeting_times(*shard.data, *nodes, out),
        )

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """For each other node, sum the values of its meetings with ``node``."""
        asked, count = (np.uint32(node), weights_of(self.weight(settings).values)), 0
        sums = scratch.sums, scratch.used
        for shard in self.part.pieces():
            count = int(paths.gather(*shard.data, *asked, *sums, count))
            if count == paths.DAMAGED:
                raise self.part.damaged(shard.first)
        return count

    def walks(self, node: int) -> Ids:
        """Return the node's walks, step by step."""
        nodes = np.uint32(self.part.nodes), np.uint32(node)
        return self.part.fill(
            self._no_walks(), lambda shard, out: paths.follow(*shard.data, *nodes, out)
        )
