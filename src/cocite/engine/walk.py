"""Coalescing reversed walks from every node, one sample at a time.

At every step, each live token moves to one in-neighbor, tokens that meet merge, and tokens at nodes
without in-links end. The result is the sample's fingerprint graph: for each node that met a smaller
one, the smallest node in the first group that it met, and the step. Out of core, the tokens of one
destination *block* move, and its memory pages are released, before the next block is read.
Randomness is keyed by (seed, sample, step, node).

A sample costs O(live steps), about 2 per node on web graphs for length 10. The weighted step takes
log(in-degree) times as long; argmin and clock also read all in-links of nodes with tokens. Memory
is 25 bytes per node. Source: Fogaras, Racz, *Scaling link-based similarity search*, sections 2.1.3
and 2.2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.constants import MAX_LENGTH, NEVER, NOWHERE, Step
from cocite.engine.weights import StepWeights, step_weights
from cocite.errors import UsageError
from cocite.graph.blocks import Links, entries_of
from cocite.kernels import random, walk
from cocite.storage import evict

Move = Callable[[NDArray[np.uint32], NDArray[np.uint32], np.uint32, np.uint32], None]


@dataclass(frozen=True)
class FingerprintGraph:
    """A sample's fingerprint graph, in arrays with an item per node.

    ``parent`` is uint32, NOWHERE (2**32 - 1) for roots; ``label`` uint8, the step of the meeting;
    ``extent`` uint32, the size of the tree for roots, otherwise the start of the node's subtree
    within the parent's subtree. ``live`` counts the tokens at each step. ``spare`` is scratch for
    the caller, two arrays uint32[nodes].
    """

    parent: NDArray[np.uint32]
    label: NDArray[np.uint8]
    extent: NDArray[np.uint32]
    live: tuple[int, ...]
    spare: tuple[NDArray[np.uint32], NDArray[np.uint32]]


class StepDraws(NamedTuple):
    """The random draws of a sample: a key per step, and an order per argmin step."""

    sample: int
    keys: NDArray[np.uint64]
    orders: NDArray[np.uint32]


class Mover:
    """Moves tokens one step along the links; allocates almost nothing. Not thread-safe."""

    def __init__(
        self,
        links: Links,
        step: Step,
        seed: int,
        blocks: Sequence[int] = (),
        turn: int = 0,
        weights: StepWeights | None = None,
        in_share: float = 1.0,
    ) -> None:
        """Prepare walks along ``links``, a graph's ``in_links`` or ``out_links``.

        If ``links.back`` exists, a step follows ``links`` with probability ``in_share``, otherwise
        ``back``. ``blocks`` are the first nodes of all blocks except the first, ascending. ``turn``
        is added to the step number of draws, so that walks with different turns are independent.
        ``weights`` come from ``step_weights``; a weighted step computes them by default.
        """
        if weights is None and step.weighted:
            weights = step_weights(links, step)
        if weights is not None and weights.step is not step:
            raise UsageError(
                f"the weights are for the {weights.step.value} step, but the walk uses the "
                f"{step.value} step"
            )
        self.links, self._weights = links, weights
        self.cuts = np.array([0, *blocks, links.nodes], np.uint32)
        self._step, self._seed, self._turn = step, np.uint64(seed), np.uint64(turn)
        self._bits = np.uint64(random.order_bits(links.nodes))
        self._drawn: StepDraws | None = None
        self._in_share = in_share

    def __call__(
        self, sample: int, step: int, at: NDArray[np.uint32], out: NDArray[np.uint32]
    ) -> None:
        """Move a sample's tokens from the nodes ``at``; write their new nodes to ``out``."""
        move = self.kernel(sample, step)
        for block in pairwise(self.cuts):
            move(at, out, *block)
            if self.cuts.size > 2:
                self.evict()

    def evict(self) -> None:
        """Release the memory of links and weights on disk."""
        self.links.evict()
        if self._weights is not None:
            evict(self._weights.values)

    def _draws(self, sample: int) -> StepDraws:
        """Return a sample's draws for all steps: on small graphs, calls take longer than steps."""
        found = self._drawn
        if found is None or found.sample != sample:
            ordered = MAX_LENGTH if self._step is Step.ARGMIN else 0
            found = StepDraws(
                sample,
                np.empty(MAX_LENGTH, np.uint64),
                np.empty((ordered, random.ORDER_WORDS), np.uint32),
            )
            given = self._seed, np.uint64(sample), self._turn, self._bits
            random.draw_steps(*given, found.keys, found.orders)
            self._drawn = found
        return found

    def _key(self, sample: int, step: int) -> np.uint64:
        key: np.uint64 = self._draws(sample).keys[0 if self._step is Step.COMPACT else step - 1]
        return key

    def along(self, sample: int, step: int) -> Links:
        """Return the links that a step follows, in the direction drawn."""
        if self.links.back is None:
            return self.links
        drawn = int(random.draw(self._key(sample, step), NOWHERE))
        return self.links if drawn >> 11 < self._in_share * 2**53 else self.links.back

    def against(self, sample: int, step: int) -> Links | None:
        """Return a step's links, grouped by the other end; None unless the mover has both ends."""
        back = self.links.back
        return self.links if back is self.along(sample, step) else back

    def kernel(self, sample: int, step: int) -> Move:
        """Return a step as a function of (at, out, first node of a block, end of the block)."""
        key, links = self._key(sample, step), self.along(sample, step)
        ends = links.offsets, links.neighbors
        if self._step is Step.ARGMIN:
            order = self._draws(sample).orders[step - 1]
            return lambda at, out, *block: walk.step_argmin(*ends, at, order, out, *block)
        weights = self._weights
        if weights is None or self._step is Step.WEIGHTED:
            shares = None if weights is None else weights.values
            return lambda at, out, *block: walk.step_random(*ends, shares, at, key, out, *block)
        values, by_node = weights.values, weights.by_node
        return lambda at, out, *block: walk.step_clock(
            *ends, values, by_node, at, key, out, np.array(block, np.uint32)
        )


AfterStep = Callable[[int, NDArray[np.uint32], NDArray[np.uint32]], None]
"""Called with (step, heads, nodes) of the live tokens, by ascending head."""


class Walker:
    """Computes samples. Not thread-safe, because of scratch memory."""

    def __init__(self, mover: Mover, length: int) -> None:
        self._move, self._length = mover, length
        nodes = mover.links.nodes
        self._at, self._head, self._arrived, self._owner, self._parent, self._extent = (
            np.empty(nodes, np.uint32) for _ in range(6)
        )
        self._label = np.empty(nodes, np.uint8)

    def __call__(self, sample: int, after: AfterStep | None = None) -> FingerprintGraph:
        """Compute a sample; the arrays are valid until the next call.

        ``after`` is called after each step, once tokens that met have merged.
        """
        at, head, parent = self._at, self._head, self._parent
        count_up(head)
        at[:] = head
        parent[:], self._label[:], self._extent[:] = NOWHERE, 0, 1
        tokens = at.size
        live: list[int] = []
        for step in range(1, self._length + 1):
            if tokens == 0:
                break
            live.append(tokens)
            arrived = self._arrived[:tokens]
            self._move(sample, step, at[:tokens], arrived)
            found = parent, self._label, self._extent
            tokens = int(walk.meet(arrived, at, head, self._owner, *found, np.uint8(step)))
            if after is not None:
                after(step, head[:tokens], at[:tokens])
        spare = self._arrived, self._owner
        return FingerprintGraph(parent, self._label, self._extent, tuple(live), spare)


def count_up(out: NDArray[np.uint32], first: int = 0) -> None:
    """Fill ``out`` with ``first``, ``first`` + 1, ..., without a temporary array."""
    out[:] = 1
    np.add.accumulate(out, out=out)
    out -= 1
    out += np.uint32(first)


def walker_bytes(nodes: int) -> int:
    """Return the memory that a :class:`Walker` needs, in bytes."""
    return 25 * nodes


# -- walks of single nodes ---------------------------------------------------------------

# Draws are keyed by (sample, step, node), so these walks equal those of the whole sample.
# ``follow`` computes the walks of some nodes until each meets the walk of the first node, or ends.
# ``probe`` finds all walks that meet a given walk x[0] = u, x[1], ..., x[L]. A walk that first
# meets it at step t is at another node at t - 1, and steps to x[t]. So, backward from the empty set
# F(L),
#
#     F(t - 1) = the nodes whose step t goes to x[t] or into F(t), except x[t - 1]
#
# F(0) contains all nodes that u meets, each with the step t at which it entered F. ``follow``
# computes a step for every walk that continues, ``probe`` for every node linked from F or from the
# walk. Source: Fogaras, Racz, *Scaling link-based similarity search*, section 2.1.4, here without
# stored trees; backward search as in Liu et al. 2017 (ProbeSim).

Nodes = NDArray[np.uint32]


def follow(mover: Mover, length: int, sample: int, nodes: Nodes) -> NDArray[np.uint8]:
    """Return when walks first meet the first node's walk: 0 for that node, 255 for never."""
    times = np.full(nodes.size, NEVER, np.uint8)
    times[0] = 0
    at, who, arrived = nodes.copy(), np.arange(nodes.size, dtype=np.uint32), np.empty_like(nodes)
    left = nodes.size
    for step in range(1, length + 1):
        if left < 2:
            break
        mover(sample, step, at[:left], arrived[:left])
        left = walk.leave(arrived[:left], at, who, times, np.uint8(step))
    return times


def probe(
    mover: Mover, length: int, columns: Links, sample: int, node: int
) -> tuple[Nodes, NDArray[np.uint8]]:
    """Return the nodes whose walks meet the walk of ``node``, and the meeting steps. ``columns``
    are the links by the other end, unused if the mover has both ends.
    """
    way = _way(mover, length, sample, node)
    found, times = np.empty(0, np.uint32), np.empty(0, np.uint8)
    for step in range(len(way) - 1, 0, -1):
        goals = np.append(found, way[step])
        times = np.append(times, np.uint8(step))
        came, goal = _row_entries(mover.against(sample, step) or columns, goals)
        arrived = _moved(mover, sample, step, came)
        met = (arrived == goals[goal]) & (came != way[step - 1])
        found, times = came[met], times[goal[met]]
        once = np.sort(np.unique(found, return_index=True)[1])  # rows may repeat nodes
        found, times = found[once], times[once]
    return found, times


def _moved(mover: Mover, sample: int, step: int, at: Nodes) -> Nodes:
    arrived = np.empty_like(at)
    mover(sample, step, at, arrived)
    return arrived


def _way(mover: Mover, length: int, sample: int, node: int) -> Nodes:
    way = [np.uint32(node)]
    for step in range(1, length + 1):
        at = _moved(mover, sample, step, np.array(way[-1:], np.uint32))[0]
        if at == NOWHERE:
            break
        way.append(at)
    return np.array(way, np.uint32)


def _row_entries(links: Links, nodes: Nodes) -> tuple[Nodes, NDArray[np.int64]]:
    """Return the neighbors of ``nodes``, row by row, and the index in ``nodes`` for each."""
    begins = links.offsets[nodes]
    places, owner = entries_of(begins, links.offsets[nodes.astype(np.int64) + 1] - begins)
    return links.neighbors[places], owner
