"""Builder of the ``features`` layout, the scores that PageSim passes from page to page.

Holders are made source by source (``kernels/features.py``). Features are their transpose. Truncated
values are recorded: let b[j, w] be the value that was withheld from each neighbor of w, but could
have been passed on for j more hops, and a[r] = 0. Then ``cut`` is the sum over j, rounded up, of

    a[j][v] = sum over w that link to v of  b[j, w] + a[j + 1][w] * decay / degree(w)

An index needs 16 bytes per entry, and 20 per node. On average, a node has at most (1 + decay + ...
+ decay**r) / threshold entries. A build needs memory for the links twice, 40 bytes per node, and
(36 + 8 r) per node per thread. With less memory, there is one thread, and links are in scratch
files. Source: Lin, King, Lyu, *PageSim*, sections 4.2, 5.1 and 5.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.cluster import in_order
from cocite.constants import Floats
from cocite.engine.plan import plan_scan
from cocite.engine.scan import Fold, Scan
from cocite.errors import ResourceError
from cocite.graph.blocks import Links
from cocite.graph.links import least_transpose, links_of
from cocite.index.layouts.batch_maker import ArrayFiles, WholeBuilder
from cocite.index.layouts.memory_plan import MemoryPlan, PartEstimate, Progress
from cocite.index.layouts.rows.build import Rows, columns_of, empty_rows, pilot, plan_rows
from cocite.index.layouts.rows.reader import OWN
from cocite.kernels import features
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
from cocite.resources import Resources
from cocite.storage import Entry

_NODE, _TURNED_NODE = 40, 16
"""Bytes per node in addition to links and workers, and while features are transposed."""
_LEAST_LINKS = 24 << 20
_MOST_SOURCES = 256
_ROWS = 8
"""Maximum number of rows of truncated features, one for each number of remaining hops. If the
radius is larger, the last row covers the rest.
"""
_PASSES, _LITTLE = 64, 1e-6
"""Maximum number of times that the last row is passed on, and fraction of a page's average loss at
which the loop ends.
"""
_SPARE = 1 << 16
"""Capacity in entries for several rows, in addition to the longest possible row."""
_TURN_SECONDS = 3e-8
"""Seconds to transpose an entry and write it twice."""
_ROUNDING = 1 + 1e-6
"""Bound on the rounding error of float64 sums."""


class FeaturesBuilder(WholeBuilder):
    """Builds the ``features`` layout."""

    # -- the basis of a build ----------------------------------------------------------

    @property
    def _radius(self) -> int:
        """Return the maximum number of hops, which is less than the node count."""
        return max(1, min(self.plan.settings[RADIUS], self.links.nodes - 1))

    @property
    def _deep(self) -> bool:
        return self._radius > _ROWS

    @property
    def _rows(self) -> int:
        """Return the number of rows of truncated features; 0 without truncation."""
        return min(self._radius, _ROWS) if self.plan.settings[THRESHOLD] > 0 else 0

    @cached_property
    def _rates(self) -> Floats:
        """Return the hop weight, the threshold, the fixed-point units per 1, the maximum number of
        paths of a score of 1, the path weight, and the limit on steps for a page's paths.

        Scores sum to ``nodes``, and truncation removes each value at most once on every path, so
        sums fit in 62 bits, which leaves half of the range for rounding up.
        """
        settings, radius = self.plan.settings, self._radius
        decay, threshold = settings[DECAY], settings[THRESHOLD]
        hop, path = (decay, 1.0) if settings[DECAY_PER] == "hop" else (1.0, decay)
        unit = 2.0 ** (62 - self.links.nodes.bit_length())
        hops = radius if hop == 1 else -math.expm1(radius * math.log(hop)) * hop / (1 - hop)
        paths = _ROUNDING * path * hops / threshold if threshold > 0 else np.inf
        return np.array([hop, threshold, unit, paths, path, settings[MOST_STEPS]], np.float64)

    def too_many(self, source: int) -> ResourceError:
        """Return the error for a page with too many paths."""
        settings = self.plan.settings
        return ResourceError(
            f"the paths of {self.graph.names.name(source)!r} read more than "
            f"{settings[MOST_STEPS]:,} links, with a radius of {settings[RADIUS]} and a threshold "
            f"of {settings[THRESHOLD]:g}. Choose a smaller --radius (radius=...) or a larger "
            "--threshold (threshold=...), or allow more with --most-steps (most_steps=...)"
        )

    @cached_property
    def fit(self) -> MemoryPlan:
        """Plan the memory; raises :class:`ResourceError` if it is insufficient."""
        turning, links = _TURNED_NODE * self.links.nodes + least_transpose(), 2 * self.links.nbytes
        least = self._need(1) - links + min(_LEAST_LINKS, links)
        what = f"the features of {self.links.nodes:,} nodes"
        need, least = (lambda n: max(turning, self._need(n))), max(turning, least)
        return plan_rows(self.means, need, least, what, "features")

    def _need(self, threads: int) -> int:
        """Return the memory for making holders from links in memory."""
        nodes, links = self.links.nodes, self.links.nbytes
        return 2 * links + _NODE * nodes + threads * self._spreader_bytes

    @property
    def _spreader_bytes(self) -> int:
        """Return the bytes of a spreader with one row in progress and two waiting."""
        long = 28 * self._radius + self.links.nodes if self._deep else 0
        return (36 + 8 * self._rows) * self.links.nodes + long + 16 * _SPARE

    @cached_property
    def streaming(self) -> bool:
        """Return whether links are evicted after reading."""
        return self.means.memory < self._need(1)

    @cached_property
    def onward(self) -> Links:
        """Return the links along which scores are passed on, opposite to the part's direction."""
        used = self.fit.threads * self._spreader_bytes + (_NODE - 16) * self.links.nodes
        return links_of(self.graph, opposite(self.plan.direction), self.means.memory - used)

    @cached_property
    def _scores(self) -> Floats:
        """Return the PageRank scores, with mean 1."""
        degrees = np.diff(self.onward.offsets).astype(np.uint32)
        found = power_scores(self._scan, degrees, self.plan.settings[DAMPING])
        if self.streaming:
            self.links.evict()
        return found

    @cached_property
    def _scan(self) -> Scan:
        """Return a scan that sums one value per node over the direction's links."""
        memory = max(1, self.means.memory - 24 * self.links.nodes)
        means = Resources(self.fit.threads, memory)
        return Scan(self.links, plan_scan(self.links, means), folder=self.graph.path)

    @cached_property
    def _longest(self) -> int:
        """Return the maximum number of entries in a row."""
        return int(min(self.links.nodes, 3 + self._scores.max() * self._rates[3]))

    def estimate(self) -> PartEstimate:
        """Estimate size, memory, and time from the rows of some sources."""
        nodes, fit, spread = self.links.nodes, self.fit, self._spreader(self._new_cut())
        entries, seconds = pilot(lambda some: sum(r[1].size for r in spread(some)), nodes)
        entries, seconds = entries * nodes, seconds / fit.threads * nodes
        turning = int(min(self.means.memory, 16 * entries + (_NODE + 16) * nodes))
        fit = replace(fit, memory=max(fit.memory, turning))
        if self.plan.weight < 1:  # free them: the other direction is built first
            del self.onward, self._scores
        return PartEstimate(int(16 * entries + 20 * nodes), fit, seconds + entries * _TURN_SECONDS)

    def _new_cut(self) -> NDArray[np.uint64]:
        return np.zeros((self._rows, self.links.nodes), np.uint64)

    def _spreader(self, cut: NDArray[np.uint64]) -> Callable[[range], list[Rows]]:
        """Return a function that makes the rows of sources, in chunks of whole rows, and adds what
        it truncates to ``cut``. It owns scratch memory: use one per thread.
        """
        nodes, radius, links = self.links.nodes, self._radius, self.onward
        given = self._scores, self._rates
        room = (
            np.zeros(radius + 1, np.uint32),
            *(np.zeros(radius, np.uint64) for _ in range(2)),
            np.zeros(radius + 1),
            np.zeros(nodes if self._deep else 0, np.bool_),
        )
        sums = np.zeros(nodes), np.zeros(nodes + 1, np.uint32)
        ids, values = empty_rows(self._longest + _SPARE)

        def spread(sources: range) -> list[Rows]:
            pieces, first = list[Rows](), sources.start
            while first < sources.stop:
                counts = np.zeros(sources.stop - first, np.uint64)
                rows = (links.offsets, links.neighbors), np.uint64(first), *given
                done, used = features.spread(*rows, room, sums, cut, (counts, ids, values))
                if done == features.TOO_MANY:
                    raise self.too_many(first + used)
                pieces.append((counts[:done], ids[:used].copy(), values[:used].copy()))
                first += done
            if self.streaming:
                links.evict()
            return pieces

        return spread

    # -- the work --------------------------------------------------------------------------

    def write(self, directory: Path, progress: Progress) -> dict[str, Entry]:
        """Write holders, truncated features, features, and sums."""
        files = ArrayFiles(directory, self.plan.prefix)
        files.write("cut", np.float32, self._lost(self._write_holders(files, progress)))
        del self.onward
        out = self.plan.direction == "out" and not self.streaming
        memory = self.means.memory - (self.links.nbytes if out else 0)
        turned = columns_of(files.rows("holders"), self.links.nodes, memory, directory)
        files.write_rows("features", turned)
        if self.plan.settings[NORMALIZED]:
            assert turned.weights is not None
            own = np.empty(self.links.nodes)
            features.totals(turned.offsets, turned.weights, own)
            files.write(OWN, np.float64, own)
        progress(self.links.nodes, self.links.nodes)
        return files.entries

    def _write_holders(self, files: ArrayFiles, progress: Progress) -> Floats:
        """Write holders; return float64[r, nodes], the truncated features."""
        nodes, at = self.links.nodes, 0
        cuts = [self._new_cut() for _ in range(self.fit.threads)]
        spreaders = [self._spreader(cut) for cut in cuts]
        with (
            closing(in_order(spreaders, self._ranges())) as made,  # type: ignore[type-var]
            files.rows_writer("holders") as writer,
        ):
            for rows in made:
                for row in rows:
                    writer.write(*row)
                    at += row[0].size
                progress(min(at, nodes - 1), nodes)
        for other in cuts[1:]:
            cuts[0] += other
        return np.asarray(cuts[0] / self._rates[2], np.float64)

    def _ranges(self) -> Iterator[range]:
        """Return the ranges of sources to process at once: as many full rows as fit."""
        nodes, fit = self.links.nodes, self.fit
        spare = max(0, self.means.memory - fit.memory) // (fit.threads + 1)
        size = max(1, min(_MOST_SOURCES, spare // (8 * self._longest)))
        return (range(a, min(a + size, nodes)) for a in range(0, nodes, size))

    def _lost(self, cut: Floats) -> NDArray[np.float32]:
        """Return a bound on each node's truncated features."""
        hop = self._rates[0]
        degrees = np.maximum(np.diff(self.onward.offsets), 1)
        lost, came = np.zeros(self.links.nodes), np.zeros(self.links.nodes)
        for left in range(self._rows - 1, -1, -1):
            given = cut[left] + came * (hop / degrees)
            self._scan(given, Fold.SUM, out=came)
            lost += came
            if self._deep and left == self._rows - 1:
                self._pass_on(lost, came, hop / degrees)
        rounded = (lost * _ROUNDING).astype(np.float32)
        return np.where(lost > 0, np.nextafter(rounded, np.float32(np.inf)), np.float32(0))

    def _pass_on(self, lost: Floats, came: Floats, rates: Floats) -> None:
        """Pass ``came`` on for the remaining hops, adding to ``lost``; reset ``came``.

        The remainder is added to each page undiminished, because each path reaches a page at most
        once.
        """
        left = self._radius - 1
        for _ in range(min(_PASSES, left)):
            if came.sum() * self.links.nodes <= _LITTLE * lost.sum():
                break
            self._scan(came * rates, Fold.SUM, out=came)
            lost += came
            left -= 1
        if left:
            lost += came.sum()
        came[:] = 0
