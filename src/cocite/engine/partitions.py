"""The scan over blocks that each live somewhere: messages of values at block borders.

    a scan     every block: hears the values that others have left to it since the scan before, and
               combines for each of its nodes those of its in-neighbors (``kernels/scan.py``)
    a message  for each pair of blocks, and each node of the one that links into the other: its row
               of values, once, however many links it has there

A block numbers the nodes that it reads by ascending id: those below it, its own, those above. So
the values of a node's in-neighbors are combined in the order of one machine, and results are equal
to the bit, also those of sums (``engine/scan.py``). A block is a :class:`ScanBlock`, in a process
of its own or not, with its own rows alone; :class:`BlocksScan` conducts.

Cost: that of a scan in memory; what is sent is told (:class:`~cocite.engine.carriers.Traffic`).
Memory of a block: its links twice, and a row of values for each node of its own, twice, and for
each node of others that it reads; that of the conductor does not depend on the graph.
Source: 004, section 3; who sends what: Haveliwala, *Efficient computation of PageRank*, 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cocite.cluster.threads import WorkerPool
from cocite.engine.carriers import Traffic
from cocite.engine.plan import ROW_BYTES
from cocite.engine.scan import Fold

Values = NDArray[Any]
VALUE_BYTES = 4
"""A min-hash on its way: a node has one a sample and step, for each block that reads it."""


def block_scan_bytes(nodes: int, links: int, others: int) -> int:
    """What a block takes at most, of so many nodes and links, where there are so many nodes of
    others: where rows begin, places of sources twice while they are sorted, and rows of values.
    """
    border = min(others, links)
    return 8 * (nodes + 1) + 16 * links + (2 * nodes + border) * (ROW_BYTES + 8)


class ScanBlock:
    """One block: its links, and the values that it reads.

    ``offsets`` uint64[nodes + 1], from 0 on, and ``sources`` are those of its nodes, from ``first``
    on; ``cuts`` uint32[blocks + 1] are the first nodes of all blocks. Values are rows of ``lanes``.
    """

    def __init__(
        self,
        offsets: NDArray[np.uint64],
        sources: NDArray[np.uint32],
        first: int,
        cuts: NDArray[np.uint32],
        lanes: int,
        dtype: DTypeLike,
    ) -> None:
        self._offsets, self._cuts = offsets, cuts
        self._lanes, self._dtype = lanes, np.dtype(dtype)
        last = first + offsets.size - 1
        border = np.unique(sources)
        below, above = border[border < first], border[border >= last]
        own = np.arange(first, last, dtype=np.uint32)
        self._read = np.concatenate([below, own, above])
        self._here = slice(below.size, below.size + own.size)
        self._places = np.searchsorted(self._read, sources).astype(np.uint32)
        self._places.flags.writeable = False  # as stored links are: to Numba these are other types
        self._now = np.zeros((self._read.size, lanes), self._dtype)
        self._next = np.zeros((own.size, lanes), self._dtype)
        ends = np.searchsorted(self._read, cuts)
        self._slots = [slice(a, b) for a, b in pairwise(ends.tolist())]
        self._block = int(np.searchsorted(cuts, first, side="right")) - 1
        self._served: list[NDArray[np.uint32]] = []

    # -- who reads what ------------------------------------------------------------------------

    def wants(self) -> tuple[object, ...]:
        """How many nodes of others it reads; which, of each block, uint32, ascending; of its own
        none.
        """
        found = [self._read[slot] for slot in self._slots]
        found[self._block] = found[self._block][:0]
        return sum(nodes.size for nodes in found), *found

    def serves(self, *wanted: NDArray[np.uint32]) -> None:
        """Hear which of its nodes each block reads."""
        first = self._cuts[self._block]
        self._served = [nodes - first for nodes in wanted]

    # -- scans ---------------------------------------------------------------------------------

    def begin(self, values: Values) -> tuple[object, ...]:
        """Take the values of its nodes; returns what it sends."""
        self._now[self._here] = values.reshape(-1, self._lanes)
        return self._sent(self._lanes)

    def scan(self, fold: str, itself: bool, *heard: Values | None) -> tuple[object, ...]:
        """Scan once, each node counted among its in-neighbors if ``itself``, from what came for
        this scan; returns what it sends for the next one.
        """
        self._hear(heard)
        self._combine(Fold(fold), itself)
        return self._sent(self._lanes)

    def values(self) -> Values:
        """Those of its nodes."""
        return self._now[self._here].copy()

    def _hear(self, heard: Sequence[Values | None]) -> None:
        for slot, rows in zip(self._slots, heard, strict=True):
            if rows is not None:
                self._now[slot, : rows.shape[1]] = rows

    def _combine(self, fold: Fold, itself: bool) -> None:
        from cocite.kernels import scan

        wide = fold is Fold.SUM and self._dtype.kind == "f"
        identity = (fold.identity(np.float64 if wide else self._dtype),) * self._lanes
        own = self._now[self._here]
        start = own.reshape(-1) if itself else np.empty(0, self._dtype)
        links, code = (self._offsets, self._places), getattr(scan, fold.name)
        scan.pull(*links, self._now.reshape(-1), start, code, identity, self._next.reshape(-1))
        own[:] = self._next

    def _sent(self, lanes: int) -> tuple[object, ...]:
        """Bytes for other blocks, and the rows for each of them, of the first ``lanes``; None where
        there are none.
        """
        own = self._now[self._here]
        sent = [own[rows, :lanes] if rows.size else None for rows in self._served]
        return sum(rows.nbytes for rows in sent if rows is not None), *sent


class BlocksScan:
    """Conducts the scans of a ``crew`` of :class:`ScanBlock`, over so many ``nodes``."""

    def __init__(self, crew: WorkerPool, nodes: int) -> None:
        self.crew, self.traffic = crew, Traffic(nodes)
        self._sent: list[list[Any]] = []
        self._ready = False

    def evict(self) -> None:
        """Somebody was lost: the next :meth:`begin` has the blocks tell anew what they read."""
        self._ready = False

    def begin(self, method: str, arguments: Sequence[tuple[Any, ...]], samples: int = 1) -> None:
        """Have each block begin by a ``method``, with arguments of its own, and hold what it sends
        for the first scan, of so many ``samples``.
        """
        crew, blocks = self.crew, range(self.crew.size)
        if not self._ready:
            asked = [crew.call(block, "wants", answers=1 + crew.size)[1:] for block in blocks]
            crew.take([crew.call(b, "serves", *(mine[b] for mine in asked))[0] for b in blocks])
            self._ready = True
        calls = [
            crew.call(block, method, *arguments[block], answers=1 + crew.size) for block in blocks
        ]
        self._take(calls, samples, 0)

    def step(self, method: str, *arguments: Any, samples: int = 1) -> None:
        """One scan, by a ``method`` that takes the arguments and what was sent to the block; what
        was sent for it is dropped when it is done.
        """
        crew, sent = self.crew, self._sent
        calls = [
            crew.call(
                block, method, *arguments, *(mine[block] for mine in sent), answers=1 + crew.size
            )
            for block in range(crew.size)
        ]
        self._take(calls, samples, samples)

    def _take(self, calls: list[list[Any]], samples: int, steps: int) -> None:
        told = self.crew.take([answers[0] for answers in calls])
        self._sent = [answers[1:] for answers in calls]
        self.traffic = self.traffic.plus(steps, values=sum(told))
