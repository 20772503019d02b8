"""Scans over partitions, and the values that partitions exchange at their borders.

A :class:`ScanBlock` stores and scans the rows of one block; :class:`BlocksScan` is the conductor. A
message contains one value for each of the sender's nodes with links into the receiving block. A
block numbers the nodes that it reads by ascending id, so sums add the same terms in the same order
as on one machine, and results are bit-identical for any division into blocks.

A block needs memory for twice its links, two rows of values per node of its own, and one per node
that it reads from other blocks. The conductor's memory does not depend on the graph.
Source: Haveliwala, *Efficient computation of PageRank*, sections 3 and 3.2; Fogaras, Racz, *Scaling
link-based similarity search*, section 2.3.2.
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
from cocite.kernels import scan

Nodes = NDArray[np.uint32]
Values = NDArray[Any]


class Border:
    """The nodes whose values a block reads, and the blocks that read its values.

    ``reads`` uint32 are the nodes read, ascending; ``slots`` has each block's slice of them, and
    ``own`` is this block's slice. ``cuts`` uint32[blocks + 1] are the first nodes of all blocks.
    """

    def __init__(self, reads: Nodes, cuts: Nodes, block: int) -> None:
        self.reads, self.cuts, self.block = reads, cuts, block
        ends = np.searchsorted(reads, cuts).tolist()
        self.slots = [slice(a, b) for a, b in pairwise(ends)]
        self.own = self.slots[block]
        self._readers: list[Nodes] = []

    @classmethod
    def of(cls, sources: Nodes, first: int, cuts: Nodes) -> Border:
        """Create the border of the block that begins at ``first``, from its links' sources."""
        block = int(np.searchsorted(cuts, first, side="right")) - 1
        own = np.arange(cuts[block], cuts[block + 1], dtype=np.uint32)
        others = np.unique(sources)
        below, above = others[others < cuts[block]], others[others >= cuts[block + 1]]
        return cls(np.concatenate([below, own, above]), cuts, block)

    def restricted(self, taken: NDArray[np.bool_]) -> Border:
        """Return the border restricted to the nodes ``taken``."""
        return Border(self.reads[taken], self.cuts, self.block)

    def places(self, sources: Nodes) -> Nodes:
        """Return the positions of ``sources`` among the nodes read."""
        return np.searchsorted(self.reads, sources).astype(np.uint32)

    def requests(self) -> list[Nodes]:
        """Return the nodes read from every other block."""
        found = [self.reads[slot] for slot in self.slots]
        found[self.block] = found[self.block][:0]
        return found

    def serve(self, requests: Sequence[Nodes]) -> None:
        """Store which of this block's nodes each block reads."""
        own = self.reads[self.own]
        self._readers = [np.searchsorted(own, nodes).astype(np.uint32) for nodes in requests]

    def messages(self, own: Values) -> list[Values | None]:
        """Return the ``own`` values that each block reads; None if it reads none."""
        return [own[rows] if rows.size else None for rows in self._readers]

    def receive(self, messages: Sequence[Values | None], values: Values) -> None:
        """Write messages, which may have fewer lanes, to ``values``, in the order of ``reads``."""
        for slot, rows in zip(self.slots, messages, strict=True):
            if rows is not None:
                values[slot][..., : rows.shape[-1]] = rows


class BorderWorker:
    """A worker with a border, for :func:`connect`."""

    border: Border

    def requests(self) -> tuple[object, ...]:
        """Return the number of nodes read from other blocks, then each block's nodes, ascending."""
        found = self.border.requests()
        return sum(nodes.size for nodes in found), *found

    def serve(self, *requests: Nodes) -> None:
        """Store which of this block's nodes each block reads."""
        self.border.serve(requests)


def connect(crew: WorkerPool) -> int:
    """Exchange the requests of all workers; return the number of values sent per round."""
    blocks = range(crew.size)
    requests = [crew.call(block, "requests", answers=1 + crew.size) for block in blocks]
    served = [crew.call(b, "serve", *(each[1 + b] for each in requests))[0] for b in blocks]
    crew.take(served)
    return sum(crew.take([each[0] for each in requests]))


VALUE_BYTES = 4
"""Bytes of a min-hash: in a step, a node sends one per sample to each block that reads it."""


def block_scan_bytes(nodes: int, links: int, others: int) -> int:
    """Return the maximum bytes of a block that reads ``others`` nodes from other blocks."""
    border = min(others, links)
    return 8 * (nodes + 1) + 16 * links + (2 * nodes + border) * (ROW_BYTES + 8)


class ScanBlock(BorderWorker):
    """A block's links, and the values that it reads.

    ``offsets`` uint64[nodes + 1], from 0, and ``sources`` uint32 are the in-links of the block's
    nodes, which begin at ``first``; ``cuts`` uint32[blocks + 1] are the first nodes of all blocks.
    Values are rows of ``lanes``.
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
        self.border = Border.of(sources, first, cuts)
        self._offsets, self._places = offsets, self.border.places(sources)
        self._lanes, self._dtype = lanes, np.dtype(dtype)
        self._values = np.zeros((self.border.reads.size, lanes), self._dtype)
        self._next = np.zeros((offsets.size - 1, lanes), self._dtype)

    @property
    def _own(self) -> Values:
        return self._values[self.border.own]

    def begin(self, values: Values) -> tuple[object, ...]:
        """Set the block's values; return the messages to send."""
        self._own[:] = values.reshape(-1, self._lanes)
        return self._sent(self._lanes)

    def scan(self, fold: str, itself: bool, *messages: Values | None) -> tuple[object, ...]:
        """Receive ``messages``, scan once, and return messages. With ``itself``, each node counts
        as its own in-neighbor.
        """
        self._combine(Fold(fold), itself, messages)
        return self._sent(self._lanes)

    def values(self) -> Values:
        """Return a copy of the block's values."""
        return self._own.copy()

    def _combine(self, fold: Fold, itself: bool, messages: Sequence[Values | None]) -> None:
        self.border.receive(messages, self._values)
        start = self._own.reshape(-1) if itself else np.empty(0, self._dtype)
        values, found = self._values.reshape(-1), self._next.reshape(-1)
        combination = fold.combination(self._dtype, self._lanes)
        scan.pull(self._offsets, self._places, values, start, *combination, found)
        self._own[:] = self._next

    def _sent(self, lanes: int) -> tuple[object, ...]:
        """Return the number of bytes, then a message per block, None if empty."""
        sent = self.border.messages(self._own[:, :lanes])
        return sum(rows.nbytes for rows in sent if rows is not None), *sent

    def _nothing_sent(self) -> tuple[object, ...]:
        return 0, *(None for _ in self.border.slots)


class BlocksScan:
    """The conductor of a ``crew`` of :class:`ScanBlock` objects over ``nodes`` nodes."""

    def __init__(self, crew: WorkerPool, nodes: int) -> None:
        self.crew, self.traffic = crew, Traffic(nodes)
        self._sent: list[list[Any]] = []
        self._ready = False

    def evict(self) -> None:
        """Reset after losing a block, so that the next :meth:`begin` reconnects all blocks."""
        self._ready = False

    def begin(self, method: str, arguments: Sequence[tuple[Any, ...]], samples: int = 1) -> None:
        """Start ``samples`` samples by calling ``method`` on each block with its arguments."""
        crew, blocks = self.crew, range(self.crew.size)
        if not self._ready:
            connect(crew)
            self._ready = True
        calls = [
            crew.call(block, method, *arguments[block], answers=1 + crew.size) for block in blocks
        ]
        self._take(calls, samples, 0)

    def step(self, method: str, *arguments: Any, samples: int = 1) -> None:
        """Scan once: call ``method`` on each block with the arguments and the block's messages."""
        crew, sent = self.crew, self._sent
        calls = [
            crew.call(
                block, method, *arguments, *(mine[block] for mine in sent), answers=1 + crew.size
            )
            for block in range(crew.size)
        ]
        self._take(calls, samples, samples)

    def _take(self, calls: list[list[Any]], samples: int, steps: int) -> None:
        sizes = self.crew.take([answers[0] for answers in calls])
        self._sent = [answers[1:] for answers in calls]
        self.traffic = self.traffic.plus(steps=steps, values=sum(sizes))
