"""The ``minhash`` and ``sketch`` layouts (``storage/FORMAT.md``), and answers from them.

A node's *winner* in ring k, its min-hash value, is the first node in the sample's random order that
reaches the node in at most k links. Groups contain the nodes with the same winner in a ring. Planes
(the ``sketch`` layout) contain some ``bits`` of a hash of each winner, in blocks of 512 nodes.
Groups need 4 bytes per node per ring per sample for the cells, at most as much for members, and 8
per group; on web graphs, less than 8 in total. Planes need ``bits`` / 8 bytes.

In a sample, two nodes have a mask in which bit k - 1 is set if their winners of ring k are equal;
the mask's value is the sum of the weights of those rings. With hash bits, different winners match
with probability q = 2**-bits. With W as the sum of all weights, the value is therefore

    x = (sum of the weights of the rings that match - q W) / (1 - q),    at least -q W / (1 - q)

With groups, a pair reads one or two cache lines per node per sample, and a list reads the node's
groups, at 4 ns per member. With hash bits, a pair reads length * bits lines per node per sample,
and a list reads the whole index. Source: Fogaras, Racz, *Scaling link-based similarity search*,
section 2.3 (Lemma 4, Algorithm 3); Li, Koenig 2010, *b-bit minwise hashing*, theorem 1.
"""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cocite.constants import ONE, Floats, Ids, Words, added
from cocite.deadline import check
from cocite.errors import ResourceError, UsageError
from cocite.index.layouts.contract import PartPlan, SampledFormat, padded
from cocite.index.layouts.reader import (
    NOTHING,
    Estimate,
    Graphs,
    QueryScratch,
    Reasons,
    SampledReader,
    Span,
    SummingReader,
)
from cocite.kernels import minhash, minhash_bits, random
from cocite.measures import LENGTH, SEED, PartSettings
from cocite.measures.xjaccard import BITS, ring_weights
from cocite.storage import Access, advise, evict

_MOST_WORDS = 2**32 - 1
BLOCK, PLANE = 512, 16
"""Nodes per block of planes, and words per plane."""


def minhash_words(nodes: int, length: int, members: int) -> int:
    """Return the size of a blob of groups in 32-bit words."""
    return padded(nodes * length + members)


def check_words(sample: int, words: int) -> None:
    """Raise :class:`ResourceError` if groups have more words than uint32 can number."""
    if words > _MOST_WORDS:
        raise ResourceError(
            f"the groups of sample {sample} need {words:,} words; the layout minhash can store at "
            f"most {_MOST_WORDS:,}. Choose a smaller length, or the layout sketch"
        )


def _size(nodes: int, members: int, settings: PartSettings) -> int:
    length, bits = settings[LENGTH], settings[BITS]
    planes = -(-nodes // BLOCK) * length * bits * PLANE
    return planes if bits else minhash_words(nodes, length, members)


def _row(base: int, nodes: int, members: int, settings: PartSettings) -> tuple[int, ...]:
    length, bits = settings[LENGTH], settings[BITS]
    return (base, length, bits) if bits else (base, base + nodes * length, members, length)


MINHASH = SampledFormat(
    size=_size,
    row=_row,
    most_members=lambda nodes, settings: settings[LENGTH] * (nodes // 2 * 4 + nodes % 2),
    selects=True,
    carries=lambda settings: not settings[BITS],
)
"""The layouts ``minhash`` (``bits`` 0: groups) and ``sketch`` (planes, without members). Kernel
rows: the offsets of cells and groups, the member count, and the length; for planes, the offset, the
length, and ``bits``. A sample is largest if all groups are pairs. Planes do not store their
winners, which are needed to convert samples.
"""


def ring_planes(part: PartPlan, sample: int, rings: Sequence[Words]) -> Words:
    """Return uint32[blocks of 512 nodes, length, bits, 16]: hash bits of the winners in ``rings``,
    each uint32[nodes].
    """
    bits, seed = part.settings[BITS], part.settings[SEED]
    planes = np.zeros((-(-rings[0].size // BLOCK), len(rings), bits, PLANE), np.uint32)
    for ring, winners in enumerate(rings):
        step = np.uint64(part.turn + ring + 1)
        key = random.draw_key(np.uint64(seed), np.uint64(sample), step)
        minhash_bits.sketch(winners, np.uint64(key), ring, planes)
        evict(winners)
    return planes


Masks = NDArray[np.uint16]


class MatchReader(SampledReader):
    """Base of readers that find the rings in which two nodes match."""

    @property
    def length(self) -> int:
        """Return the number of rings."""
        return self.part.settings[LENGTH]

    @abstractmethod
    def masks_with(self, node: int, others: Ids) -> Masks:
        """Return uint16[samples, h]: the masks of ``node`` with ``others`` (without ``node``)."""

    def masks(self, first: int, second: int) -> Masks:
        """Return uint16[samples]: bit k - 1 is set if two nodes match in ring k."""
        if first == second:
            return np.full(self.part.samples, 2**self.length - 1, np.uint16)
        found: Masks = self.masks_with(first, np.array([second], np.uint32))[:, 0]
        return found

    def _no_masks(self, others: Ids) -> Masks:
        return np.empty((self.part.samples, others.size), np.uint16)

    def values(self, node: int, others: Ids, settings: PartSettings) -> tuple[Floats, Floats]:
        """Return the total weight of matching rings in every sample."""
        worth = self.table(settings)[:, 0] / float(ONE)
        found = np.take(worth, self.masks_with(node, others))
        return found, found

    def span(self, settings: PartSettings) -> Span:
        """Return the span of values, from no matching ring to all."""
        return Span(0.0, 0.0, added(self.weights(settings)))

    def weights(self, settings: PartSettings) -> tuple[float, ...]:
        """Return the ring weights."""
        return tuple(ring_weights(settings, self.length))

    def table(self, settings: PartSettings) -> NDArray[np.uint64]:
        """Return uint64[2**length, 2]: each mask's value and squared value, in fixed point."""
        return match_weights(self.weights(settings))


@lru_cache(maxsize=16)
def match_weights(weights: tuple[float, ...]) -> NDArray[np.uint64]:
    """Return uint64[2**length, 2]: each mask's total ring weight and its square, in fixed point.

    No ring has weight 0, because kernels treat nodes with a sum of 0 as not matching.
    """
    fixed = np.array([max(1, round(weight * ONE)) for weight in weights], np.uint64)
    rings = np.arange(2 ** len(weights))[:, None] >> np.arange(len(weights)) & 1
    values = (rings.astype(np.uint64) * fixed).sum(axis=1, dtype=np.uint64)
    squares = np.rint((values / ONE) ** 2 * ONE).astype(np.uint64)
    table = np.column_stack((values, np.where(values > 0, np.maximum(squares, 1), 0)))
    table = table.astype(np.uint64)
    table.flags.writeable = False
    return table


_SAMPLES_AT_ONCE = 256


class MinhashReader(MatchReader, SummingReader):
    """The ``minhash`` layout."""

    def masks_with(self, node: int, others: Ids) -> Masks:
        """Return the masks of the rings in which groups are the same."""
        return self.part.fill(
            self._no_masks(others),
            lambda shard, out: minhash.masks(*shard.data, np.uint64(node), others, out),
        )

    def common(self, first: int, second: int) -> Ids:
        """Return uint32[samples, length]: the winner that two different nodes share in each ring.

        In ring k, both nodes can be reached from the winner in at most k links. If the winners
        differ, the value is 2**32 - 1; if the winner was removed, it is the node count.
        """
        nodes = np.uint32(self.part.nodes), np.uint64(first), np.uint64(second)
        return self.part.fill(
            np.empty((self.part.samples, self.length), np.uint32),
            lambda shard, out: minhash.common(*shard.data, *nodes, out),
        )

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the common winners, from which both nodes can be reached."""
        found = self.common(first, second)
        worth = np.array(self.weights(settings)) / self.known(first, second)
        unattributed = float(worth[np.nonzero(found == self.part.nodes)[1]].sum())
        samples, rings = np.nonzero(found < self.part.nodes)
        if not samples.size:
            return replace(NOTHING, unattributed=unattributed)
        worths = worth[rings]
        nodes, place = np.unique(found[samples, rings], return_inverse=True)
        seen = np.unique(np.column_stack((place, samples)), axis=0)
        return Reasons(
            nodes,
            np.asarray(np.bincount(place, worths), np.float64),
            lambda row: ([], []),
            np.bincount(seen[:, 0], minlength=nodes.size),
            unattributed=unattributed,
        )

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of two nodes; a node's similarity to itself has no error."""
        table, known = self.table(settings), self.known(first, second)
        found = self.masks(first, second)[-known:]
        return self.estimated(table[found].sum(axis=0, dtype=np.uint64), known)

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """Add the value of each of the node's groups to the sums of all members."""
        table, count = self.table(settings), 0
        for shard in self.part.pieces():
            whom = np.array([node, shard.first + 1], np.uint32)
            room = scratch.sums, scratch.marks, scratch.used
            count = int(minhash.gather(*shard.data, whom, table, *room, count))
            if count == minhash.DAMAGED:
                raise self.part.damaged(shard.first)
        scratch.marks[scratch.used[:count]] = 0
        return count


class SketchReader(MatchReader):
    """The ``sketch`` layout."""

    signed = True

    @property
    def chance(self) -> float:
        """Return q, the probability that different winners match."""
        return float(2.0 ** -self.part.settings[BITS])

    def masks_with(self, node: int, others: Ids) -> Masks:
        """Return the masks of the rings in which hash bits are the same; any bits are valid."""
        found = self._no_masks(others)
        for shard in self.part.pieces():
            out = found[shard.first : shard.first + shard.samples]
            minhash_bits.masks(*shard.data, np.uint64(node), others, out)
        return found

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Raise :class:`UsageError`, because hash bits do not identify pages."""
        raise UsageError(
            "the layout sketch stores hash bits instead of pages: for explanations, build the "
            "index without --bits (bits=...)"
        )

    def values(self, node: int, others: Ids, settings: PartSettings) -> tuple[Floats, Floats]:
        """Return x in every sample."""
        found, _ = super().values(node, others, settings)
        whole, chance = added(self.weights(settings)), self.chance
        found = (found - chance * whole) / (1 - chance)
        return found, found

    def span(self, settings: PartSettings) -> Span:
        """Return the span of values, from no matching ring to all."""
        least = -self.chance * added(self.weights(settings)) / (1 - self.chance)
        return Span(least, least, added(self.weights(settings)))

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of two nodes; a node's similarity to itself has no error."""
        if first == second:
            full = self.table(settings)[-1:] * np.uint64(self.part.samples)
            found = self._unbiased(full, settings)
        else:
            found = self._estimates(first, np.array([second], np.uint32), settings)
        return Estimate(float(found[0, 0]), float(found[0, 1]))

    def _estimates(self, node: int, others: Ids, settings: PartSettings) -> Floats:
        """Return float64[h, 2]: scores for ``node`` in grains, and variances."""
        table, sums = self.table(settings), np.zeros((others.size, 2), np.uint64)
        masks = self.masks_with(node, others)
        for begin in range(0, len(masks), _SAMPLES_AT_ONCE):
            sums += table[masks[begin : begin + _SAMPLES_AT_ONCE]].sum(axis=0)
        return self._unbiased(sums, settings)

    def _unbiased(self, sums: NDArray[np.uint64], settings: PartSettings) -> Floats:
        found = np.empty((len(sums), 2))
        whole = added(self.weights(settings))
        minhash_bits.unbiased(sums, float(self.part.samples), self.chance, whole, found)
        return found

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Count the matches with all nodes, and add the scores to the totals."""
        part, length = self.part, self.length
        blocks, levels = -(-part.nodes // minhash_bits.BLOCK), part.samples.bit_length()
        counts = np.zeros((blocks, length, levels, minhash_bits.LINE), np.uint32)
        for shard in part.shards:
            check()
            advise(Access.AROUND, shard.words)
            done = np.uint64(shard.first)
            minhash_bits.tally(*shard.data, np.uint64(node), done, counts)
        weights = self.weights(settings)
        terms = np.array([part.samples, self.chance, added(weights), part.weight])
        # Another part or another query node may raise a negative sum above 0.
        least = 1.0 if part.weight == 1 and not scratch.below else -np.inf
        scratch.have = int(
            minhash_bits.settle(
                counts,
                self.table(settings)[[1 << ring for ring in range(length)], 0],
                terms,
                node,
                least,
                scratch.totals[: part.nodes],
                scratch.touched,
                scratch.have,
            )
        )

    def variances(self, node: int, others: Ids, settings: PartSettings) -> Floats:
        """Return the hits' variances, float64[h]."""
        return self._estimates(node, others, settings)[:, 1]


class OnTheFlyMinhashReader(MinhashReader):
    """Replaces the readers of min-hashes for indexes with an unseen page.

    Like a build, it scans the rings of all nodes, 16 samples at a time. Instead of hash bits, it
    compares winners: the mean is the same, with less variance. It caches the last node's masks, 2
    bytes per node per sample.
    """

    _last: tuple[int, Masks, Ids] | None = None

    def matched(self, node: int) -> tuple[Masks, Ids]:
        """Return uint16[samples, nodes], the masks of ``node`` with every node; and
        uint32[samples, length], the winners of ``node``.
        """
        from cocite.engine.scan import LANES, HopNeighborhoods, plan_ring_scan
        from cocite.index.layouts.on_the_fly import DraftPart

        last, part, length = self._last, self.part, self.length
        if last is not None and last[0] == node:
            return last[1:]
        assert isinstance(part, DraftPart)
        links, numbers = part.links(part.direction), part.freshness.held[: part.samples].tolist()
        masks = np.zeros((len(numbers), part.nodes), np.uint16)
        own = np.empty((len(numbers), length), np.uint32)
        plan, folder = plan_ring_scan(links, part.ends.means), tempfile.gettempdir()
        seed, turn = part.settings[SEED], part.plan.turn
        rings = HopNeighborhoods(links, plan, length, seed, turn=turn, folder=folder)
        for first in range(0, len(numbers), LANES):
            for ring in rings(numbers[first : first + LANES]):
                for sample, winners in enumerate(ring.winners(), first):
                    masks[sample, winners == winners[node]] |= np.uint16(1 << (ring.step - 1))
                    own[sample, ring.step - 1] = winners[node]
        self._last = node, masks, own
        return masks, own

    def masks_with(self, node: int, others: Ids) -> Masks:
        """Return uint16[samples, h]: the masks of ``node`` with ``others``."""
        found: Masks = self.matched(node)[0][:, others]
        return found

    def common(self, first: int, second: int) -> Ids:
        """Return uint32[samples, length]: the winners that two nodes share, or 2**32 - 1."""
        masks, own = self.matched(first)
        match = masks[:, second, None] >> np.arange(self.length) & 1
        return np.where(match == 0, np.uint32(2**32 - 1), own)

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """For each other node, sum the values of its matches with ``node``."""
        table, (masks, _) = self.table(settings), self.matched(node)
        met = np.flatnonzero(masks.any(axis=0)).astype(np.uint32)
        met = met[met != node]
        for row in masks:
            scratch.sums[met] += table[row[met]]
        scratch.used[: met.size] = met
        return int(met.size)
