"""Asking packed trees: as ``layouts/trees/reader.py``, to the bit, by runs instead of places.

Cost: of a pair two accesses a sample and the runs between; of relatives about 3 ns a run of the
trees read, where trees take 1.8 ns a place.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.codes import NOWHERE
from cocite.layouts.packed.format import WIDTH
from cocite.layouts.reader import Ids, weights_of
from cocite.layouts.scratch import QueryScratch
from cocite.layouts.trees.reader import TreeReader, table_of
from cocite.layouts.walks.meetings import Times
from cocite.measures import PartSettings

__all__ = ["PackedReader"]


class PackedReader(TreeReader):
    """The layout ``packed``."""

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """Add up over all walks that meet the node's."""
        from cocite.kernels import packed_lookup

        weights = weights_of(self.worth(settings).values)
        for some in self.part.slices():
            asked = self.table[some], np.uint32(node), weights
            bad = int(packed_lookup.spread(*asked, scratch.changes, scratch.bytes))
            if bad != packed_lookup.SOUND:
                raise self._damaged(some.start + bad)
        arrays = scratch.changes, scratch.bytes, scratch.eights, scratch.used
        return int(packed_lookup.collect(*arrays))

    _nodes_a_pair = 256

    def _pair_times(self, table: Any, first: Ids, second: Ids, out: Times) -> Any:
        from cocite.kernels import pairs

        return pairs.packed_meeting_times(table, self.part.nodes, first, second, out)

    def _lookup(self) -> Any:
        from cocite.kernels import packed_lookup

        return packed_lookup

    def _answer(
        self, scratch: QueryScratch, progress: NDArray[np.uint64], *asked: Any
    ) -> tuple[int, int, int]:
        from cocite.kernels import packed_answer

        table, node, weights, worth, *rest = asked
        changes = scratch.changes.reshape(-1)[: self.part.nodes + 1]
        arrays = changes, scratch.bytes, scratch.eights, progress
        found: tuple[int, int, int] = packed_answer.answer(
            table, node, weights, worth, arrays, *rest
        )
        return found

    def _note(self, scratch: QueryScratch, touched: int) -> None:
        """Nodes are touched by the block, which is part of a page."""
        from cocite.kernels.packed_lookup import BLOCK

        scratch.wear += touched // BLOCK

    def places(self) -> NDArray[np.uint32]:
        """uint32[nodes]: where each node stands in the first sample, 2**32 - 1 for nowhere."""
        member, _ = self._unpacked(0)
        found = np.full(self.part.nodes, NOWHERE, np.uint32)
        found[member] = np.arange(member.size, dtype=np.uint32)
        return found

    def labels(self) -> Iterator[NDArray[np.uint8]]:
        """uint8[members] of each sample: the labels in dendrogram order."""
        for sample in range(len(self.table)):
            yield self._unpacked(sample)[1]

    def _unpacked(self, sample: int) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """Members and labels of a sample."""
        from cocite.kernels import packed

        nodes = self.part.nodes
        member, joined = np.empty(nodes, np.uint32), np.empty(nodes, np.uint8)
        members = int(packed.unpack(self.table[sample], member, joined))
        if members == packed.DAMAGED:
            raise self._damaged(sample)
        return member[:members], joined[:members]

    @cached_property
    def table(self) -> NDArray[np.uint64]:
        """uint64[samples, 6]: addresses of directory, order and runs; how many runs; the bits of a
        node and of the number of a run.
        """
        return table_of(self.part, WIDTH)
