"""A graph's links arranged for blocks of destinations that are scanned one after another.

    the links of a block, in order of their sources: so the sources' rows are read in sequence, and
    what is read and written at random, the rows of the block's own nodes, fits in memory

Arranged once, in scratch, then read by every scan. A block's links are sorted in *strips*, pieces
of the stored graph's links that fit in memory; there is no merging: a scan goes through the strips
of a block side by side, a window of sources at a time. A strip is cut anywhere, in the middle of
a node's in-links too; as these ascend within the graph, a node's terms still come in ascending
order of source, whatever the blocks and strips.

A strip is a stream of 32-bit words: a source, its targets in the block, the last one marked
(``kernels/scan.py``). That is 4 bytes a link and 4 for every source in a strip: 4 to 8 a link.

Cost: a sort of every strip, 50 to 80 ns a link in all. Memory: 24 bytes a link of a strip and
thread. Disk: 8 bytes a link, as much as the stream may take.
Source: Haveliwala, *Efficient computation of PageRank*, 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cocite.engine.scan_plan import ScanPlan
from cocite.graph.rows import Links
from cocite.runner import in_order
from cocite.store import Scratch, forget

__all__ = ["Arrangement", "Block"]


@dataclass(frozen=True)
class Block:
    """A range of destinations, [first, last), and where each of its strips is in the words."""

    first: int
    last: int
    strips: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Arrangement:
    """``words`` uint32[at most 2 * edges], and the blocks in them."""

    words: NDArray[np.uint32]
    blocks: tuple[Block, ...]

    @classmethod
    def of(
        cls,
        links: Links,
        plan: ScanPlan,
        scratch: Scratch,
        progress: Callable[[int, int], None],
    ) -> Arrangement:
        """Arrange for the plan's blocks, in strips of its size, on its threads."""
        words = scratch.zeros(2 * links.edges, np.uint32)
        bounds = list(pairwise((0, *plan.cuts, links.nodes)))
        strips: list[list[tuple[int, int]]] = [[] for _ in bounds]
        arrange = _Arranger(links)
        end = 0
        for strip, part in in_order([arrange] * plan.threads, _strips(links, bounds, plan.strip)):
            begin, end = end, end + part.size
            words[begin:end] = part
            strips[strip.block].append((begin, end))
            forget(words[begin:end], links.neighbours[strip.begin : strip.end], links.offsets)
            progress(strip.end, links.edges)
        pairs = zip(bounds, strips, strict=True)
        return cls(words, tuple(Block(*range_, tuple(mine)) for range_, mine in pairs))

    @property
    def nbytes(self) -> int:
        """What a scan reads of it."""
        return 4 * max((end for block in self.blocks for _, end in block.strips), default=0)


@dataclass(frozen=True)
class _Strip:
    """Links [begin, end) of the graph; ``first`` is where their block begins."""

    block: int
    first: int
    begin: int
    end: int


def _strips(links: Links, bounds: list[tuple[int, int]], most: int) -> Iterator[_Strip]:
    for block, (first, last) in enumerate(bounds):
        begin, end = int(links.offsets[first]), int(links.offsets[last])
        for low in range(begin, end, most):
            yield _Strip(block, first, low, min(low + most, end))


class _Arranger:
    """Sorts one strip at a time."""

    def __init__(self, links: Links) -> None:
        self._links = links

    def __call__(self, strip: _Strip) -> tuple[_Strip, NDArray[np.uint32]]:
        from cocite.kernels import scan

        offsets, sources = self._links.offsets, self._links.neighbours
        row = int(np.searchsorted(offsets, np.uint64(strip.begin), side="right")) - 1
        keys = np.empty(strip.end - strip.begin, np.uint64)
        scan.pair(
            offsets, sources, np.uint64(strip.begin), np.uint64(row), np.uint64(strip.first), keys
        )
        keys.sort()
        words = np.empty(2 * keys.size, np.uint32)
        return strip, words[: int(scan.arrange(keys, words))]
