"""Builder of the layout ``features``, the scores that PageSim passes from page to page.

An index contains the rows ``holders`` (for every page, the pages that received some of its score)
and ``features``, their transpose; ``cut``, a bound on each page's truncated features; and, for
normalized scores, ``own``, the sum of each page's features. Holders are made source by source
(``kernels/features.py``). Truncated values are recorded: let b[j, w] be the value withheld from
each neighbor of w that could have been passed on for j more hops, and a[r] = 0; ``cut`` is the sum
over j, rounded up, of

    a[j][v] = sum over w that link to v of  b[j, w] + a[j + 1][w] * decay / degree(w)

For long paths, the last row contains values with ``_ROWS`` - 1 or more hops left. They are passed
on until little remains, which is added to every page, as a path reaches a page at most once.

An index needs 16 bytes per entry, with on average at most (1 + decay + ... + decay**r) / threshold
entries per node, and 20 per node. A build needs memory for the links twice, 40 bytes per node, and
(36 + 8 r) per node and thread, where r is the number of rows. With less memory, there is one
thread, and links are in scratch files. Source: Lin, King, Lyu, *PageSim*, 4.2, 5.1 and 5.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.cluster import in_order
from cocite.deadline import clock
from cocite.engine.plan import plan_scan
from cocite.engine.scan import Fold, Scan
from cocite.errors import ResourceError
from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.graph.links import least_transpose, links_of, transpose
from cocite.index.layouts.batch_maker import ArrayFiles, WholeBuilder
from cocite.index.layouts.contract import PartPlan
from cocite.index.layouts.memory_plan import MemoryPlan, PartEstimate, Progress
from cocite.index.layouts.rows.reader import OWN, FeaturesFormat
from cocite.measures.evidence import floor_text
from cocite.measures.pagesim import (
    DAMPING,
    DECAY,
    DECAY_PER,
    MOST_STEPS,
    NORMALIZED,
    RADIUS,
    THRESHOLD,
)
from cocite.options import opposite
from cocite.ranking.hits import power_scores
from cocite.resources import Resources, format_least, short_of
from cocite.storage import Entry, evict

_NODE, _TURNED_NODE = 40, 16
"""Bytes per node besides links and workers, and while features are transposed."""
_LEAST_LINKS = 24 << 20
_MOST_SOURCES = 256
_PILOTS = 400
_PILOT_SECONDS, _LEAST_PILOTS = 3, 8
_ROWS = 8
"""Rows of truncated features, by hops left; with a larger radius, the last row covers the rest."""
_PASSES, _LITTLE = 64, 1e-6
"""Maximum number of times that the last row is passed on, and fraction of a page's average loss at
which the loop ends.
"""
_SPARE = 1 << 16
"""Capacity in entries for several rows, besides the longest possible row."""
_TURN_SECONDS = 3e-8
"""Seconds to transpose an entry and write it twice."""
_ROUNDING = 1 + 1e-6
"""Bound on the rounding error of float64 sums."""

Rows = list[tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.float32]]]


class _Spreader:
    """Makes rows of holders. Owns scratch memory: use one per thread."""

    def __init__(self, layout: FeaturesBuilder) -> None:
        nodes, radius = layout.nodes, layout.radius
        self._layout = layout
        self._links = layout.onward
        self._scores, self._rates = layout.scores, layout.rates
        self._room = (
            np.zeros(radius + 1, np.uint32),
            np.zeros(radius, np.uint64),
            np.zeros(radius, np.uint64),
            np.zeros(radius + 1),
            np.zeros(nodes if layout.deep else 0, np.bool_),
        )
        self._sums = np.zeros(nodes), np.zeros(nodes + 1, np.uint32)
        size = layout.longest + _SPARE
        self._out = np.empty(size, np.uint32), np.empty(size, np.float32)
        self._streaming = layout.streaming
        self.cut = np.zeros((layout.rows, nodes), np.uint64)

    def __call__(self, sources: range) -> Rows:
        """Return the sources' rows (counts, nodes, values), in chunks of whole rows."""
        from cocite.kernels import features

        links = self._links.offsets, self._links.neighbors
        pieces: Rows = []
        first = sources.start
        while first < sources.stop:
            counts = np.zeros(sources.stop - first, np.uint64)
            done, used = features.spread(
                links,
                np.uint64(first),
                self._scores,
                self._rates,
                self._room,
                self._sums,
                self.cut,
                (counts, *self._out),
            )
            if done == features.TOO_MANY:
                raise self._layout.too_many(first + used)
            nodes, values = self._out
            pieces.append((counts[:done], nodes[:used].copy(), values[:used].copy()))
            first += done
        if self._streaming:
            self._links.evict()
        return pieces


class FeaturesBuilder(FeaturesFormat, WholeBuilder):
    """Builds the layout ``features``."""

    def __init__(self, graph: Graph, links: Links, plan: PartPlan, means: Resources) -> None:
        super().__init__(graph, links, plan, means)
        self.nodes = links.nodes

    # -- the basis of a build ----------------------------------------------------------

    @property
    def radius(self) -> int:
        """Return the maximum number of hops, which is less than the node count."""
        return max(1, min(self.plan.settings[RADIUS], self.nodes - 1))

    @property
    def deep(self) -> bool:
        """Return whether paths may be long."""
        return self.radius > _ROWS

    @property
    def rows(self) -> int:
        """Return the number of rows of truncated features; 0 without truncation."""
        return min(self.radius, _ROWS) if self.plan.settings[THRESHOLD] > 0 else 0

    @cached_property
    def rates(self) -> NDArray[np.float64]:
        """Return the hop weight, the threshold, the fixed-point units per 1, the maximum number of
        paths of a score of 1, the path weight, and the limit on steps for a page's paths.

        Scores sum to ``nodes``, and truncation removes each value at most once on every path, so
        sums fit 62 bits, which leaves half of the range for rounding up.
        """
        settings, radius = self.plan.settings, self.radius
        decay, threshold = settings[DECAY], settings[THRESHOLD]
        hop, path = (decay, 1.0) if settings[DECAY_PER] == "hop" else (1.0, decay)
        unit = 2.0 ** (62 - self.nodes.bit_length())
        hops = radius if hop == 1 else -math.expm1(radius * math.log(hop)) * hop / (1 - hop)
        paths = _ROUNDING * path * hops / threshold if threshold > 0 else np.inf
        return np.array([hop, threshold, unit, paths, path, settings[MOST_STEPS]], np.float64)

    def too_many(self, source: int) -> ResourceError:
        """Return the error for a page with too many paths."""
        settings = self.plan.settings
        return ResourceError(
            f"the paths of {self.graph.names.name(source)!r} read more than "
            f"{settings[MOST_STEPS]:,} links, with a radius of {settings[RADIUS]} and a threshold "
            f"of {settings[THRESHOLD]:g}. Choose a smaller --radius or a larger --threshold, or "
            "allow more with --most-steps"
        )

    @cached_property
    def fit(self) -> MemoryPlan:
        """Plan the memory; raises :class:`ResourceError` if it is insufficient."""
        nodes, links = self.nodes, self.links.nbytes
        turning = _TURNED_NODE * nodes + least_transpose()
        for threads in range(self.means.threads, 0, -1):
            need = 2 * links + _NODE * nodes + threads * self._spreader_bytes
            need = max(need, turning)
            if need <= self.means.memory:
                return MemoryPlan(need, threads, (), self.means.threads)
        least = _NODE * nodes + self._spreader_bytes + min(_LEAST_LINKS, 2 * links)
        least = max(least, turning)
        if self.means.memory < least:
            raise ResourceError(
                f"the features of {nodes:,} nodes need {format_least(least)} of memory, with one "
                f"thread; {short_of(self.means.memory)}{floor_text('features')}"
            )
        return MemoryPlan(self.means.memory, 1, (), self.means.threads)

    @property
    def _spreader_bytes(self) -> int:
        """Return the bytes of a :class:`_Spreader` with one row in progress and two waiting."""
        long = 28 * self.radius + self.nodes if self.deep else 0
        return (36 + 8 * self.rows) * self.nodes + long + 16 * _SPARE

    @cached_property
    def streaming(self) -> bool:
        """Return whether links are evicted after reading."""
        nodes, links = self.nodes, self.links.nbytes
        return self.means.memory < 2 * links + _NODE * nodes + self._spreader_bytes

    @cached_property
    def onward(self) -> Links:
        """Return the links along which scores are passed on, opposite to the part's direction."""
        used = self.fit.threads * self._spreader_bytes + (_NODE - 16) * self.nodes
        return links_of(self.graph, opposite(self.plan.direction), self.means.memory - used)

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Return the PageRank scores, with mean 1."""
        degrees = np.diff(self.onward.offsets).astype(np.uint32)
        found = power_scores(self._scan, degrees, self.plan.settings[DAMPING])
        if self.streaming:
            self.links.evict()
        return found

    @cached_property
    def _scan(self) -> Scan:
        """Return a scan that sums one value per node over the direction's links."""
        memory = max(1, self.means.memory - 24 * self.nodes)
        means = Resources(self.fit.threads, memory)
        folder = None if self.graph is None else self.graph.path  # None with an unseen page
        return Scan(self.links, plan_scan(self.links, means), folder=folder)

    @cached_property
    def longest(self) -> int:
        """Return the maximum number of entries in a row."""
        return int(min(self.nodes, 3 + self.scores.max() * self.rates[3]))

    def estimate(self) -> PartEstimate:
        """Estimate size, memory, and time from the rows of some sources."""
        from cocite.kernels.random import scramble

        nodes, fit = self.nodes, self.fit
        spreader = _Spreader(self)
        spread = np.linspace(0, nodes - 1, min(_PILOTS, nodes)).astype(np.uint64)
        sample = spread[np.argsort(scramble.__wrapped__(spread))].tolist()
        spreader(range(sample[0], sample[0] + 1))  # compiles
        found: list[Rows] = []
        begin, seconds = clock(), 0.0
        for source in sample:
            found.append(spreader(range(source, source + 1)))
            seconds = clock() - begin
            if seconds > _PILOT_SECONDS and len(found) >= _LEAST_PILOTS:
                break
        entries = sum(piece[1].size for rows in found for piece in rows) * nodes / len(found)
        each = seconds / len(found) / fit.threads
        turning = int(min(self.means.memory, 16 * entries + (_NODE + 16) * nodes))
        fit = replace(fit, memory=max(fit.memory, turning))
        if self.plan.weight < 1:  # free them: the other direction is built first
            del self.onward, self.scores
        return PartEstimate(
            int(16 * entries + 20 * nodes), fit, each * nodes + entries * _TURN_SECONDS
        )

    # -- the work --------------------------------------------------------------------------

    def write(self, directory: Path, progress: Progress) -> dict[str, Entry]:
        """Write holders, truncated features, features, and sums."""
        files = ArrayFiles(directory, self.plan.prefix)
        nodes = self.nodes
        held, cut = self._write_holders(files, progress)
        files.write("cut", np.float32, self._lost(cut))
        del cut, self.onward
        features = self._turned(files.rows("holders"), held, directory)
        assert features.weights is not None
        files.write_rows("features", features)
        if self.plan.settings[NORMALIZED]:
            files.write(OWN, np.float64, _totals(features.offsets, features.weights))
        progress(nodes, nodes)
        return files.entries

    def _write_holders(
        self, files: ArrayFiles, progress: Progress
    ) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
        """Write holders; return uint32[nodes], the feature counts, and float64[r, nodes], the
        truncated features.
        """
        from cocite.kernels.links import add_counts

        nodes = self.nodes
        offsets, held = np.zeros(nodes + 1, np.uint64), np.zeros(nodes, np.uint32)
        spreaders = [_Spreader(self) for _ in range(self.fit.threads)]
        rows = in_order(spreaders, self._ranges())
        at = 1
        try:
            with (
                files.writer("holders.nodes", np.uint32) as to_nodes,
                files.writer("holders.values", np.float32) as to_values,
            ):
                for pieces in rows:
                    for counts, reached, values in pieces:
                        offsets[at : at + counts.size] = counts
                        at += counts.size
                        to_nodes.write(reached)
                        to_values.write(values)
                        add_counts(reached, held)
                    progress(min(at - 1, nodes - 1), nodes)
        finally:
            rows.close()  # type: ignore[attr-defined]
        files.write("holders.offsets", np.uint64, np.cumsum(offsets, dtype=np.uint64))
        booked = spreaders[0].cut
        for other in spreaders[1:]:
            booked += other.cut
        return held, booked / self.rates[2]

    def _turned(self, holders: Links, held: NDArray[np.uint32], directory: Path) -> Links:
        """Return the transpose of holders, in memory if both fit, or in a scratch file."""
        whole = holders.nbytes
        least = least_transpose(whole + 8 * self.nodes)
        out = self.plan.direction == "out" and not self.streaming
        memory = self.means.memory - _NODE * self.nodes - (self.links.nbytes if out else 0)
        if least < whole and memory < 2 * whole + 16 * self.nodes:
            memory = min(memory, whole)  # too little to load and transpose all at once
        return transpose(holders, held, max(memory, least), directory)

    def _ranges(self) -> Iterator[range]:
        """Return the ranges of sources to process at once: as many full rows as fit."""
        nodes, fit = self.nodes, self.fit
        spare = max(0, self.means.memory - fit.memory) // (fit.threads + 1)
        size = max(1, min(_MOST_SOURCES, spare // (8 * self.longest)))
        return (range(a, min(a + size, nodes)) for a in range(0, nodes, size))

    def _lost(self, cut: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return a bound on each node's truncated features."""
        hop = self.rates[0]
        degrees = np.maximum(np.diff(self.onward.offsets), 1)
        lost, came = np.zeros(self.nodes), np.zeros(self.nodes)
        for left in range(self.rows - 1, -1, -1):
            given = cut[left] + came * (hop / degrees)
            self._scan(given, Fold.SUM, out=came)
            lost += came
            if self.deep and left == self.rows - 1:
                self._pass_on(lost, came, hop / degrees)
        rounded = (lost * _ROUNDING).astype(np.float32)
        return np.where(lost > 0, np.nextafter(rounded, np.float32(np.inf)), np.float32(0))

    def _pass_on(
        self, lost: NDArray[np.float64], came: NDArray[np.float64], rates: NDArray[np.float64]
    ) -> None:
        """Pass ``came`` on for the remaining hops, adding to ``lost``; reset ``came``.

        The remainder is added to each page undiminished, as each path reaches a page at most once.
        """
        left = self.radius - 1
        for _ in range(min(_PASSES, left)):
            if came.sum() * self.nodes <= _LITTLE * lost.sum():
                break
            self._scan(came * rates, Fold.SUM, out=came)
            lost += came
            left -= 1
        if left:
            lost += came.sum()
        came[:] = 0


def _totals(offsets: NDArray[np.uint64], values: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the row sums, float64[nodes]."""
    from cocite.kernels.features import totals

    found = np.empty(offsets.size - 1)
    totals(offsets, values, found)
    evict(values)
    return found
