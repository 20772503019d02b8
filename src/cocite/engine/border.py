"""The border of a block: which values of other blocks it reads, and which of its own they read.

A block numbers the nodes that it reads by ascending id: those below it, its own, those above. So
the links of a node keep the order of their sources, and sums have the same terms in the same order
as on one machine: results are equal to the bit, whatever the blocks.

A message holds, for each pair of blocks, the value of each node of the one that links into the
other: once, however many links the node has there.
Source: Haveliwala, *Efficient computation of PageRank*, 3.2; 001, 2.3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.cluster.threads import WorkerPool

Nodes = NDArray[np.uint32]
Values = NDArray[Any]


class Border:
    """The nodes whose values a block reads, and who reads the values of its own nodes.

    ``reads`` uint32 are all nodes that it reads, ascending; ``slots`` has the part of them that
    each block holds, and ``own`` is the part of the block. ``cuts`` uint32[blocks + 1] are the
    first nodes of all blocks.
    """

    def __init__(self, reads: Nodes, cuts: Nodes, block: int) -> None:
        self.reads, self.cuts, self.block = reads, cuts, block
        ends = np.searchsorted(reads, cuts).tolist()
        self.slots = [slice(a, b) for a, b in pairwise(ends)]
        self.own = self.slots[block]
        self._readers: list[Nodes] = []

    @classmethod
    def of(cls, sources: Nodes, first: int, cuts: Nodes) -> Border:
        """The border of the block that begins with node ``first``, by the sources of its links."""
        block = int(np.searchsorted(cuts, first, side="right")) - 1
        own = np.arange(cuts[block], cuts[block + 1], dtype=np.uint32)
        others = np.unique(sources)
        below, above = others[others < cuts[block]], others[others >= cuts[block + 1]]
        return cls(np.concatenate([below, own, above]), cuts, block)

    def restricted(self, taken: NDArray[np.bool_]) -> Border:
        """The border of which only the nodes that are ``taken`` are left."""
        return Border(self.reads[taken], self.cuts, self.block)

    def places(self, sources: Nodes) -> Nodes:
        """Where each of the ``sources`` is among the nodes that are read."""
        return np.searchsorted(self.reads, sources).astype(np.uint32)

    def requests(self) -> list[Nodes]:
        """The nodes that it reads of each block; none of its own."""
        found = [self.reads[slot] for slot in self.slots]
        found[self.block] = found[self.block][:0]
        return found

    def serve(self, requests: Sequence[Nodes]) -> None:
        """Note which of its nodes each block reads."""
        own = self.reads[self.own]
        self._readers = [np.searchsorted(own, nodes).astype(np.uint32) for nodes in requests]

    def messages(self, own: Values) -> list[Values | None]:
        """Return what each block reads of the values of its ``own`` nodes; None if nothing."""
        return [own[rows] if rows.size else None for rows in self._readers]

    def receive(self, messages: Sequence[Values | None], values: Values) -> None:
        """Write the messages of all blocks to the ``values`` of the nodes that are read.

        Rows of a message may have fewer lanes than those of the values.
        """
        for slot, rows in zip(self.slots, messages, strict=True):
            if rows is not None:
                values[slot][..., : rows.shape[-1]] = rows


class BorderWorker:
    """A worker that holds a block with a border; :func:`connect` calls it by these methods."""

    border: Border

    def requests(self) -> tuple[object, ...]:
        """How many nodes of other blocks it reads; which, of each block, ascending."""
        found = self.border.requests()
        return sum(nodes.size for nodes in found), *found

    def serve(self, *requests: Nodes) -> None:
        """Note which of its nodes each block reads."""
        self.border.serve(requests)


def connect(crew: WorkerPool) -> int:
    """Let each worker of ``crew``, a :class:`BorderWorker`, know who reads its values.

    Returns how many values all of them send each other in one round.
    """
    blocks = range(crew.size)
    requests = [crew.call(block, "requests", answers=1 + crew.size) for block in blocks]
    served = [crew.call(b, "serve", *(each[1 + b] for each in requests))[0] for b in blocks]
    crew.take(served)
    return sum(crew.take([each[0] for each in requests]))
