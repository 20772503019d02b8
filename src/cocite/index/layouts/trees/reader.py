"""Answers from stored walks.

A node meets every other member of its tree; the meeting time is the largest label between the two.
Packed trees are looked up by runs instead of positions (``lookup_of``), with answers equal to the
bit. Trees store meeting times, from which ``index/layouts/trees/replay.py`` recomputes the meeting
points; the layouts ``paths`` and ``compact`` store walks.

In trees, a pair costs one access per sample and the labels between the nodes (packed: two accesses
and the runs between); a list costs 1.8 ns per tree member (packed: 3 ns per run). In ``compact``, a
pair reads at most 2 * length words, and a list the nodes at most k steps below the walk's k-th
point. Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.1.1, 2.1.4; their *A
scalable randomized method to compute link-based similarity rank on the web graph*, 2, 3.1.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS, UNFINISHED, Floats, Ids, Ints
from cocite.deadline import check
from cocite.errors import Damaged
from cocite.index.layouts.part import Shard, StoredPart
from cocite.index.layouts.reader import (
    Graphs,
    ListedHits,
    PairEvidence,
    QueryScratch,
    Values,
    borrowed,
    weights_of,
)
from cocite.index.layouts.trees.format import POSITIONS, WIDTH
from cocite.index.layouts.trees.meetings import (
    MeetingReader,
    Times,
    WalkReader,
    Ways,
    both_by_time,
)
from cocite.measures import LENGTH, PartSettings

if TYPE_CHECKING:
    from cocite.index.layouts.trees.replay import Replay


_SOUND = -1
_ALONE, _TOGETHER = 64, 256
"""Maximum number of nodes that one kernel call answers: one by one, or with shared sums."""
_TRIED_SAMPLES = 8
"""Approximate number of samples for testing whether sharing sums is faster."""
_PATIENCE, _MOST_WAITS = 4, 15
"""Number of consecutive failed tests before batches skip the test, and maximum number of batches
that skip it. Testing every batch would cost a tenth of the time on graphs where all tests fail.
"""
_MOST_HITS = 256
"""Maximum number of hits in an answer from one kernel call."""


class TreeReader(MeetingReader):
    """The layouts ``trees`` and ``packed``, which store meeting times. Meeting points are found by
    repeating walks.
    """

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self._packed = part.layout == "packed"
        self._replays: dict[str, Replay] = {}
        self._refused = self._waits = 0
        """Number of consecutive failed tests of shared sums, and of batches until the next test.
        Threads may miscount, as answers do not depend on these numbers.
        """

    def times_with(self, node: int, others: Ids) -> Times:
        """Return uint8[samples, h]: tau, or 255 without a meeting."""
        lookup = lookup_of(self.part)
        times = np.empty((self.part.samples, others.size), np.uint8)
        for some in self.part.slices():
            rows = self.table[some], np.uint32(node), others, times[some]
            bad = int(lookup.meeting_times(*rows))
            if bad != _SOUND:
                raise self._damaged(some.start + bad)
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
                raise self._damaged(some.start + bad)
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
        """Add up the meetings with all nodes."""
        weights = weights_of(self.weight(settings).values)
        if self._packed:
            return self._gather_runs(node, weights, scratch)
        from cocite.kernels import trees

        progress = self._progress()
        while progress[0] < len(self.table):
            check()
            sums = scratch.sums, scratch.used, progress
            bad = int(trees.gather(self.table, np.uint32(node), weights, *sums))
            if bad != trees.SOUND:
                raise self._damaged(bad)
        return int(progress[1])

    def _gather_runs(self, node: int, weights: NDArray[np.uint64], scratch: QueryScratch) -> int:
        """Fill ``scratch`` from packed trees, like :meth:`gather_sums`."""
        from cocite.kernels import runs_lookup

        changes, marks = scratch.changes, scratch.bytes
        for some in self.part.slices():
            rows = self.table[some], np.uint32(node), weights
            bad = int(runs_lookup.spread(*rows, changes, marks))
            if bad != runs_lookup.SOUND:
                raise self._damaged(some.start + bad)
        return int(runs_lookup.collect(changes, marks, scratch.eights, scratch.used))

    def _progress(self) -> NDArray[np.uint64]:
        """Return a kernel's progress array, with the limit on reads between deadline checks."""
        return np.array([0, 0, self.part.at_once * self.part.nodes, 0], np.uint64)

    def at_once(
        self, node: int, k: int, floor: float, bets: tuple[float, float], settings: PartSettings
    ) -> ListedHits | None:
        """Answer in one kernel call if :meth:`_in_one_pass` allows this."""
        if not self._in_one_pass(k):
            return None
        return self._one_by_one(np.array([node], np.uint32), k, floor, bets, settings)[0]

    def many_at_once(
        self, nodes: Ids, k: int, floor: float, bets: tuple[float, float], settings: PartSettings
    ) -> list[ListedHits] | None:
        """Return the first nodes' lists from one kernel call: many lists if nodes can share sums,
        like adjacent pages of a web; otherwise a few lists, one by one.
        """
        from cocite.kernels import trees_batch

        if not self._in_one_pass(k):
            return None
        some = nodes[:_TOGETHER]
        places = np.empty(some.size, np.uint64)
        trees_batch.places(self.table, some, places)
        order = np.argsort(places, kind="stable")
        some, found = some[order], list[ListedHits]()
        while len(found) < some.size:
            rest = some[len(found) :]
            more = self._carried(rest, k, floor, settings) if math.isinf(bets[0]) else []
            if not more and not found:
                return self._one_by_one(nodes[:_ALONE], k, floor, bets, settings)
            found += more or self._one_by_one(rest[:_ALONE], k, floor, bets, settings)
        return [found[place] for place in np.argsort(order).tolist()]

    def _one_by_one(
        self, nodes: Ids, k: int, floor: float, bets: tuple[float, float], settings: PartSettings
    ) -> list[ListedHits]:
        from cocite.kernels import trees_batch

        ids, rows = np.empty((nodes.size, k), np.uint32), np.empty((nodes.size, k, 4))
        counts, progress = np.zeros((nodes.size, 3), np.int64), self._progress()
        with borrowed(self.part.nodes) as scratch:
            given = self._arguments(scratch, progress, nodes, floor, bets, settings)
            bad = UNFINISHED
            while bad == UNFINISHED:
                check()
                bad = int(trees_batch.answers(*given, (ids, rows, counts)))
            if bad != trees_batch.SOUND:
                raise self._damaged(bad)
            listed = counts.tolist()
            touched = sum(row[1] for row in listed)
            if self._packed:  # counts blocks of nodes, each within one memory page
                scratch.wear += touched // lookup_of(self.part).BLOCK
            elif nodes.size == 1:
                scratch.note_sums(touched)
            else:
                scratch.wear += touched
        return _lists(ids, rows, listed)

    def _carried(
        self, nodes: Ids, k: int, floor: float, settings: PartSettings
    ) -> list[ListedHits]:
        """Return lists of the first nodes, each computed from the previous node's sums, while this
        is faster. Return [] if two tests on a few samples, or recent tests, show no gain.
        """
        from cocite.kernels.trees_batch import TRIED

        few, step = TRIED + 2, max(1, len(self.table) // _TRIED_SAMPLES)
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
        """Return lists like :meth:`_carried` from every ``step``-th sample, without tests."""
        from cocite.kernels import trees_batch

        table = np.ascontiguousarray(self.table[::step])
        ids, rows = np.empty((nodes.size, k), np.uint32), np.empty((nodes.size, k, 4))
        counts = np.zeros((nodes.size, 3), np.int64)
        weights = _differences(self.weight(settings).values)
        with borrowed(self.part.nodes) as scratch:
            sums = scratch.totals.view(np.uint64), scratch.used
            arrays = *sums, scratch.changes, scratch.bytes, scratch.eights
            done = int(trees_batch.carry(table, nodes, weights, floor, arrays, (ids, rows, counts)))
            if done < 0:
                raise self._damaged((-1 - done) * step)
            scratch.wear += self.part.nodes
        return _lists(ids, rows, counts[:done].tolist())

    def _in_one_pass(self, k: int) -> bool:
        """Return whether one kernel call can answer: the index has one part and one snapshot, and
        ``k`` is small.
        """
        return self.part.weight == 1 and len(self.part.freshness.snapshots) == 1 and k <= _MOST_HITS

    def _arguments(
        self,
        scratch: QueryScratch,
        progress: NDArray[np.uint64],
        nodes: Ids,
        floor: float,
        bets: tuple[float, float],
        settings: PartSettings,
    ) -> tuple[Any, ...]:
        """Return the arguments of ``trees_batch.answers``, except the last one."""
        worth, span = self.weight(settings), self.span(settings)
        level, rounding = bets
        most = math.ceil(span.most * GRAINS)
        numbers = np.array([floor, level, *span, most, rounding])
        sums = scratch.changes.reshape(-1)[: self.part.nodes + self._packed]
        arrays = sums, scratch.used, scratch.bytes, scratch.eights, progress
        weights = weights_of(worth.values)
        return self.table, nodes, weights, both_by_time(worth), arrays, numbers

    def _damaged(self, sample: int) -> Damaged:
        """Return the error for the shard that contains the sample at this position."""
        return self.part.damaged(max(s.first for s in self.part.shards if s.first <= sample))

    @cached_property
    def table(self) -> NDArray[np.uint64]:
        """Return the samples' kernel rows (:func:`table_of`)."""
        return table_of(self.part)


def _lists(ids: Ids, rows: Floats, counts: list[list[int]]) -> list[ListedHits]:
    """Convert kernel results to lists, one for each row of ``counts``."""
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
    if part.layout == "packed":
        from cocite.kernels import runs_lookup

        return runs_lookup
    from cocite.kernels import trees

    return trees


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


class PathReader(WalkReader, TreeReader):
    """The layout ``paths``."""

    def _read_walks(self, shard: Shard, node: int, out: Ids) -> bool:
        from cocite.kernels import paths

        return bool(paths.follow_paths(shard.words, shard.blobs, np.uint32(node), out))


class CompactReader(WalkReader):
    """The layout ``compact``."""

    def times_with(self, node: int, others: Ids) -> Times:
        """Return uint8[samples, h]: tau, or 255 without a meeting."""
        from cocite.kernels import paths

        times = np.empty((self.part.samples, others.size), np.uint8)
        nodes = np.uint32(self.part.nodes), np.uint32(node)
        for shard in self.part.pieces():
            out = times[shard.first : shard.first + shard.samples]
            if not paths.meeting_times(shard.words, shard.blobs, *nodes, others, out):
                raise self.part.damaged(shard.first)
        return times

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """Add up the meetings with all nodes."""
        from cocite.kernels import paths

        asked, count = (np.uint32(node), weights_of(self.weight(settings).values)), 0
        sums = scratch.sums, scratch.used
        for shard in self.part.pieces():
            count = int(paths.gather(shard.words, shard.blobs, *asked, *sums, count))
            if count == paths.DAMAGED:
                raise self.part.damaged(shard.first)
        return count

    def _read_walks(self, shard: Shard, node: int, out: Ids) -> bool:
        from cocite.kernels import paths

        nodes = np.uint32(self.part.nodes), np.uint32(node)
        return bool(paths.follow(shard.words, shard.blobs, *nodes, out))
