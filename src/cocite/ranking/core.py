"""The graph that PageRank iterates on: dangling nodes removed, core nodes numbered.

Dangling nodes are removed as many times as requested. The core consists of the nodes with out-links
to remaining nodes; links to removed nodes are ignored. A node's *strength* is its out-degree, or
the sum of its out-links' weights. Each out-link gets the node's rank times weight / strength.

Links are stored by target, so strengths are counted in passes over all links. Each pass covers as
many sources as fit in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cocite.errors import Damaged, UsageError
from cocite.graph import Graph
from cocite.kernels import rank
from cocite.ranking.vectors import RankRoom, Vector, pieces, stretches
from cocite.storage import evict
from cocite.storage.spool import Scratch

NO_WEIGHTS = np.empty(0, np.float32)
_WHOLE = 1 << 40
Flags = NDArray[np.bool_]


class Lumped:
    """A graph without its removed nodes.

    ``degrees`` uint32[nodes] is GONE for removed nodes. ``strengths`` is the same array if links
    are unweighted. ``number`` uint32[nodes] numbers the ``core`` nodes. ``cut`` is the first row of
    the second half and ``cut_node`` its node; both are 0 for small graphs. ``scratch`` allocates
    vectors.
    """

    def __init__(self, graph: Graph, removals: int, weighted: bool, room: RankRoom) -> None:
        if type(removals) is not int or removals < 0:
            raise UsageError(f"removals is {removals!r}; it must be a whole number, 0 or more")
        self.graph, self.room = graph, room
        self.nodes: int = graph.nodes
        self.scratch = Scratch.near(graph.path) if room.blocks else Scratch(None)
        weights = graph.in_weights if weighted else None
        self.weighted = weights is not None
        self.weights = NO_WEIGHTS if weights is None else weights
        self.degrees = self._remove(removals)
        self.number, self.core = self._numbered()
        self.strengths: NDArray[Any] = self.degrees
        if self.weighted:
            self.strengths = self._counts(_is_left, weights=True)
        self.cut, self.cut_node = self._middle() if room.halves == 2 else (0, 0)

    # -- reading the graph ------------------------------------------------------------

    def stretches(
        self, first: int, last: int, links: int = 0
    ) -> Iterator[tuple[int, int, int, int]]:
        """Yield the links of rows [first, last), ``links`` at a time (``vectors.stretches``)."""
        room = self.room
        if not room.blocks:
            return stretches(self.graph.in_offsets, first, last, _WHOLE, _WHOLE)
        links = links or max(1, room.piece // (8 if self.weighted else 4))
        return stretches(self.graph.in_offsets, first, last, links, max(1, room.piece // 32))

    def links_of(self, first: int, last: int) -> tuple[NDArray[Any], ...]:
        """Return the offsets of rows [first, last) and all sources and weights, for a kernel."""
        return self.graph.in_offsets[first : last + 1], self.graph.in_sources, self.weights

    def pieces(self, *arrays: NDArray[Any], beside: Any = ()) -> Iterator[slice]:
        """Yield slices of all nodes (``vectors.pieces``)."""
        if not self.room.blocks:
            return pieces(0, self.nodes)
        return pieces(0, self.nodes, *arrays, beside=beside)

    def rest(self, array: NDArray[Any]) -> None:
        """Release the memory of an array on disk."""
        if self.room.blocks:
            evict(array)

    def rest_links(self, first: int, last: int, begin: int, end: int) -> None:
        """Release the memory of stored links."""
        if self.room.blocks:
            graph = self.graph
            evict(graph.in_offsets[first : last + 1], graph.in_sources[begin:end])
            evict(self.weights[begin:end])

    def vector(self) -> Vector:
        """Return zeros, float64[nodes]."""
        return self.scratch.zeros(self.nodes, np.float64)

    def contributions(self, dtype: DTypeLike, rows: int | None = None) -> NDArray[Any]:
        """Return zeros for ``rows`` (None: the core), on disk if blocks outnumber halves."""
        rows = self.core if rows is None else rows
        if self.room.blocks > self.room.halves:
            return self.scratch.zeros(rows, dtype)
        return np.zeros(rows, dtype)

    # -- removed nodes -----------------------------------------------------------------

    def removed(self) -> int:
        """Return the number of removed nodes."""
        parts = self.pieces(self.degrees)
        return sum(int(_is_gone(self.degrees[part]).sum()) for part in parts)

    def _remove(self, removals: int) -> NDArray[np.uint32]:
        graph = self.graph
        self.degrees = graph.out_degrees
        if removals == 0:
            return self.degrees
        degrees: NDArray[np.uint32] = self.scratch.zeros(self.nodes, np.uint32)
        for part in self.pieces(degrees, graph.out_degrees):
            degrees[part] = graph.out_degrees[part]
        self.degrees = degrees
        left = self.nodes
        for _ in range(removals):
            lost, before, left = self._counts(_is_dangling), left, 0
            for part in self.pieces(degrees, lost):
                piece = degrees[part]
                dangling = _is_dangling(piece)
                piece -= lost[part]
                piece[dangling] = rank.GONE
                left += int(np.count_nonzero(~_is_gone(piece)))
            if left == before:
                break
        if left == 0:
            raise UsageError(
                f"with removals = {removals}, no nodes of {graph.path} are left. Use fewer "
                "removals with --removals (removals=...), or another --dangling (dangling=...)"
            )
        return degrees

    # -- counting links ----------------------------------------------------------------

    def leaving(self) -> NDArray[Any]:
        """Return the strength of each node's links to dangling nodes."""
        return self._counts(_is_dangling, weights=self.weighted)

    def _counts(
        self, taken: Callable[[NDArray[np.uint32]], Flags], weights: bool = False
    ) -> NDArray[Any]:
        """Count each node's links to nodes with ``taken`` degrees, or sum their ``weights``."""
        kind = np.dtype(np.float64 if weights else np.uint32)
        found = self.scratch.zeros(self.nodes, kind)
        room = self.room
        width = max(1, room.block // 4 // kind.itemsize) if room.blocks else self.nodes
        for source in pieces(0, self.nodes, size=width):
            counts = np.zeros(source.stop - source.start, kind) if room.blocks else found
            for first, last, begin, end in self.stretches(0, self.nodes):
                flags = taken(self.degrees[first:last])
                self.rest(self.degrees[first:last])
                if flags.any():
                    offsets, sources, values = self.links_of(first, last)
                    rank.add_links(
                        (offsets, sources, values if weights else None),
                        np.uint64(begin),
                        np.uint64(end),
                        flags.view(np.uint8),
                        np.uint64(source.start),
                        counts,
                    )
                self.rest_links(first, last, begin, end)
            for part in pieces(source.start, source.stop, found) if room.blocks else ():
                found[part] = counts[part.start - source.start : part.stop - source.start]
        return found

    def _numbered(self) -> tuple[NDArray[np.uint32], int]:
        number: NDArray[np.uint32] = self.scratch.zeros(self.nodes, np.uint32)
        count = np.uint32(0)
        for part in self.pieces(self.degrees, number):
            count = np.uint32(rank.number_core(self.degrees[part], count, number[part]))
        return number, int(count)

    def _middle(self) -> tuple[int, int]:
        """Return the row and the node that split the links to core rows into equal halves."""
        offsets = self.graph.in_offsets

        def links_to(part: slice) -> NDArray[np.uint64]:
            """Return the number of links to each node, 0 outside the core."""
            degrees = np.diff(offsets[part.start : part.stop + 1])
            degrees *= self.number[part] != rank.NO_NODE
            return degrees

        totals = [int(links_to(part).sum()) for part in self.pieces(offsets, self.number)]
        left = sum(totals) // 2
        for part, links in zip(self.pieces(), totals, strict=True):
            if left < links:
                ends = np.cumsum(links_to(part))
                node = part.start + int(np.searchsorted(ends, left, side="right"))
                return int(self.number[node]), node
            left -= links
        return 0, 0

    def check_sources(self, lost: int) -> None:
        """Raise :class:`Damaged` if any links are ``lost``: their sources have out-degree 0."""
        if lost:
            raise Damaged.graph(self.graph.path, "its out-degrees do not match its links")


def _is_dangling(degrees: NDArray[np.uint32]) -> Flags:
    return np.asarray(degrees == 0)


def _is_gone(degrees: NDArray[np.uint32]) -> Flags:
    return np.asarray(degrees == rank.GONE)


def _is_left(degrees: NDArray[np.uint32]) -> Flags:
    return ~_is_gone(degrees)
