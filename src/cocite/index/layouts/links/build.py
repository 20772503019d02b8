"""The ``links`` layout, for measures that each query computes from links.

An index contains ``in_`` and ``out_`` offsets, neighbors and, if used, weights; for direction
``any``, all in- and out-neighbors of each node instead. Common neighbors need ``norms``, the sums
of w(x) and of w(x)**2 over each node's neighbors x, with w(x) = log(nodes / degree of x in the
other direction); ppr-symmetric needs ``degrees``. Queries do not need the graph.

A build copies the in-links and transposes them, in memory or through a scratch file
(``graph/links.py``). It makes a few passes over the links, one of them with a random write for each
link. An index needs 16 bytes per node and 8 per link (16 with weights), and 16 per node for norms;
for ``any``, 8 bytes per node and 8 per link, and 8 per node for degrees.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.constants import Floats
from cocite.deadline import clock
from cocite.errors import Damaged
from cocite.graph.blocks import Links, cut_blocks
from cocite.graph.links import links_of
from cocite.index.layouts.batch_maker import ArrayFiles, WholeBuilder, pieces_of
from cocite.index.layouts.links.common import DEGREES, NORMS, has_degrees, has_norms
from cocite.index.layouts.memory_plan import MemoryPlan, PartEstimate, Progress
from cocite.kernels import neighbors
from cocite.kernels.links import sum_runs, turn
from cocite.options import opposite
from cocite.storage import Entry

_PIECE = 8 << 20
"""Bytes to read and write at a time."""
_PILOT, _WINDOW = 1 << 20, 1 << 18
"""Bytes of links, and number of target nodes, for the pilot, which needs at most 13 MB."""


class LinksBuilder(WholeBuilder):
    """Builds the ``links`` layout."""

    def estimate(self) -> PartEstimate:
        """Return the exact size, and the time extrapolated from some of the links."""
        links = self.links
        size = 2 * links.nbytes + (16 * links.nodes if has_norms(self.plan) else 0)
        if self.plan.direction == "any":  # links are stored at both ends already
            size = links.nbytes + (8 * links.nodes if has_degrees(self.plan) else 0)
        memory = min(self.means.memory, links.nbytes + 8 * links.nodes)
        seconds = _pilot(links, has_norms(self.plan)) * size
        return PartEstimate(size, MemoryPlan(memory, 1, ()), seconds)

    def write(self, directory: Path, progress: Progress) -> dict[str, Entry]:
        """Write in-links, out-links, and norms, or merged links and degrees."""
        way, nodes = self.plan.direction, self.links.nodes
        stages = 1 if way == "any" else 3 + has_norms(self.plan)

        def stage(number: int) -> Progress:
            return lambda done, total: progress(
                nodes * (number * total + done) // (stages * total), nodes
            )

        files = ArrayFiles(directory, self.plan.prefix)
        if way == "any":
            _copy(files, "any", self.links, stage(0))
            if has_degrees(self.plan):
                files.stream(DEGREES, np.float64, link_degrees(self.links))
            progress(nodes, nodes)
            return files.entries
        ins = links_of(self.graph, "in", weighted=self.plan.weighted)
        _copy(files, "in", ins, stage(0))
        outs = self.links
        if self.plan.direction != "out":
            memory, weighted = self.means.memory, self.plan.weighted
            outs = links_of(self.graph, "out", memory, stage(1), weighted=weighted)
        _copy(files, "out", outs, stage(2))
        if has_norms(self.plan):
            ways = {"in": ins, "out": outs}
            looks_at = self.plan.measure.looks_at(self.plan.direction)
            pieces = link_norms(ways[looks_at], ways[opposite(looks_at)], stage(3))
            files.stream(NORMS, np.float64, pieces, (2,))
        progress(nodes, nodes)
        return files.entries


def _copy(files: ArrayFiles, way: str, links: Links, progress: Progress) -> None:
    arrays: dict[str, NDArray[Any]] = {"offsets": links.offsets, "neighbours": links.neighbors}
    if links.weights is not None:
        arrays["weights"] = links.weights
    total, done = sum(array.nbytes for array in arrays.values()), 0

    def reported(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
        nonlocal done
        for piece in pieces_of(array, _PIECE):
            yield piece
            done += piece.nbytes
            progress(done, total)

    for name, array in arrays.items():
        files.stream(f"{way}_{name}", array.dtype, reported(array))


def _pilot(links: Links, norms: bool) -> float:
    """Return the seconds per byte of the result, excluding disk writes."""
    last = next(iter(cut_blocks(links, _PILOT)), links.nodes)
    offsets = links.offsets[: last + 1]
    ids = links.neighbors[: int(offsets[-1])]
    window = ids[ids < _WINDOW]
    counts = np.bincount(window, minlength=min(_WINDOW, links.nodes))
    nothing = np.empty(0, np.float32)
    seconds = 0.0
    for _ in range(2):  # the first run compiles, and loads the links
        cursors = (np.cumsum(counts) - counts).astype(np.uint64)
        turned = np.zeros(ids.size, np.uint32)
        begin = clock()
        turn(offsets, ids, nothing, np.uint64(0), np.uint64(0), cursors, turned, nothing)
        for array in (offsets, ids, ids):
            xxhash.xxh3_128(array.view(np.uint8).data)
        if norms:  # two logarithms per link
            np.log(np.log(ids + 2.0))
        seconds = clock() - begin
    return seconds / (offsets.nbytes + 2 * ids.nbytes)


def link_norms(
    rows: Links, columns: Links, progress: Progress = lambda done, total: None
) -> Iterator[Floats]:
    """Yield ``norms`` block by block, float64[n, 2] each."""
    for first, last in pairwise((0, *cut_blocks(rows, _PIECE), rows.nodes)):
        out = np.empty((last - first, 2))
        if not neighbors.norms(rows.offsets, rows.neighbors, columns.offsets, np.int64(first), out):
            raise Damaged(
                "the graph is damaged: links point to nodes that do not exist; ingest it again"
            )
        yield out
        rows.evict()
        progress(last, rows.nodes)


def link_degrees(links: Links) -> Iterator[Floats]:
    """Yield each node's link count or total link weight block by block, float64[n] each."""
    for first, last in pairwise((0, *cut_blocks(links, _PIECE), links.nodes)):
        offsets = links.offsets[first : last + 1].astype(np.int64)
        out = np.diff(offsets).astype(np.float64)
        if links.weights is not None:
            weights = links.weights[offsets[0] : offsets[-1]]
            sum_runs(offsets[:-1] - offsets[0], weights.astype(np.float64), out)
        yield out
        links.evict()


def degrees_of(links: Links) -> Floats:
    """Return each node's link count or total link weight, float64[n]."""
    return np.concatenate([np.empty(0), *link_degrees(links)])
