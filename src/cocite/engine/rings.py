"""Min-hashes of neighbourhoods: for every node, ring and sample the node that is first in an order.

    I_0(v) = {v},  I_k(v) = v and all from which v is reached in at most k links
    fp_k(v) = the smallest place that a random order gives to a node of I_k(v)
            = min of fp_(k-1)(u) over u = v and the in-neighbours u of v

Two nodes have the same fp_k with the probability of their Jaccard coefficient,
|I_k(u) n I_k(v)| / |I_k(u) u I_k(v)|. One order serves all rings of a sample, drawn for
(seed, sample, 0): the walks' steps count from 1. Samples are made 16 at a time, one a lane of a
scan with min; which ones are made together does not matter.

Cost: a scan a ring for 16 samples. Memory: two rows of 64 bytes a node, or what the scan
makes of the budget. Source: 001, section 2.3 (Algorithm 3).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cocite.engine.scan import Fold, Scan
from cocite.engine.scan_plan import ROW_BYTES, ScanPlan, plan_scan
from cocite.errors import UsageError
from cocite.graph.rows import Links
from cocite.means import Means
from cocite.runner import in_order
from cocite.store import forget

__all__ = ["LANES", "Ring", "Rings", "plan_ring_scan", "ring_orders"]

LANES = ROW_BYTES // 4
"""Samples that are made at once."""
_PIECE = 1 << 16
"""Nodes that a thread turns into places, or into winners, at a time."""


def plan_ring_scan(links: Links, means: Means) -> ScanPlan:
    """How the scans of :class:`Rings` fit; raises as ``plan_scan``."""
    return plan_scan(links, means, lanes=LANES, dtype=np.uint32)


class Ring:
    """Ring number ``step`` of some samples; its rows are valid until the next ring is made."""

    def __init__(
        self, step: int, places: NDArray[np.uint32], orders: NDArray[np.uint32], threads: int
    ) -> None:
        self.step, self.places = step, places
        self._orders, self._threads = orders, threads

    def winners(self, out: NDArray[np.uint32] | None = None) -> NDArray[np.uint32]:
        """uint32[samples, nodes]: the node that is first in each node's neighbourhood."""
        from cocite.kernels import ring_rows

        nodes = self.places.shape[0]
        found = np.empty((len(self._orders), nodes), np.uint32) if out is None else out

        def work(part: slice) -> None:
            ring_rows.winners(self._orders, self.places[part], np.uint64(part.start), found)
            forget(self.places[part])

        for _ in in_order([work] * self._threads, _pieces(nodes)):
            pass
        return found


class Rings:
    """Makes the rings of up to 16 samples at once, over one set of links."""

    def __init__(
        self,
        links: Links,
        plan: ScanPlan,
        length: int,
        seed: int,
        *,
        turn: int = 0,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """``plan`` is that of :func:`plan_ring_scan` for these links; ``turn`` is added to the
        number of a step for its draws; scratch files lie in ``folder``, as for the scan.
        """
        self._length, self._seed, self._turn, self._nodes = length, seed, turn, links.nodes
        self._threads = plan.wanted
        self._scan = Scan(links, plan, folder=folder)
        self._now, self._next = self._scan.vector(), self._scan.vector()

    def __call__(self, samples: Sequence[int]) -> Iterator[Ring]:
        """The rings 1, 2, ..., length of 1 to 16 samples, one after another.

        Lanes beyond the samples repeat the last of them.
        """
        from cocite.kernels import ring_rows

        if not 1 <= len(samples) <= LANES:
            raise UsageError(f"{len(samples)} samples; rings are made of 1 to {LANES} at once")
        orders = ring_orders(samples, self._nodes, self._seed, self._turn)

        def begin(part: slice) -> None:
            ring_rows.places(orders, np.uint32(part.start), self._now[part])
            forget(self._now[part])

        for _ in in_order([begin] * self._threads, _pieces(self._nodes)):
            pass
        for step in range(1, self._length + 1):
            self._scan(self._now, Fold.MIN, start=self._now, out=self._next)
            self._now, self._next = self._next, self._now
            yield Ring(step, self._now, orders[: len(samples)], self._threads)


def ring_orders(samples: Sequence[int], nodes: int, seed: int, turn: int) -> NDArray[np.uint32]:
    """uint32[LANES, ORDER_WORDS]: the orders of up to 16 samples of a graph of so many nodes; lanes
    beyond them repeat the last of them. ``turn`` is added to the step of the draw.
    """
    from cocite.kernels import random

    orders = np.zeros((LANES, random.ORDER_WORDS), np.uint32)
    bits = np.uint64(random.order_bits(nodes))
    for lane in range(LANES):
        sample = samples[min(lane, len(samples) - 1)]
        key = random.draw_key(np.uint64(seed), np.uint64(sample), np.uint64(turn))
        random.make_order(np.uint64(key), bits, orders[lane])
    return orders


def _pieces(nodes: int) -> Iterator[slice]:
    bounds = [*range(0, nodes, _PIECE), nodes]
    return (slice(low, high) for low, high in pairwise(bounds))
