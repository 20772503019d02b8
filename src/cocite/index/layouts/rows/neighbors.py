"""Builder of the ``nearest`` layout.

    nearest.offsets, .nodes, .values    each page's nearest pages, itself included, with nearness
    holders.offsets, .nodes, .values    for every page, the pages whose lists contain it
    norms           float64[nodes, 2]   the sums of a list's values and of their squares
    mutual_norms    float64[nodes, 2]   the same sums over mutual entries

A negative value marks a one-sided entry: the listed page's own list does not contain the page. The
absolute value is the nearness. One joint pass over lists and holders (their transpose) finds mutual
entries.

An index needs 16 bytes per entry and 48 per node, with at most ``neighbors`` + 1 entries per node.
A build needs memory for the links twice. Making lists needs another 40 bytes per node, 24 per node
per thread, and the entries once; the transposition needs 48 per node and the entries twice. With
less memory, links and lists are in scratch files, and there is one thread. With even less, pages
are processed in strips of ids, and 12 bytes per node suffice. Source: ``measures/snn.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.constants import Bools, Floats
from cocite.graph.blocks import Links, cut_blocks
from cocite.graph.links import links_of
from cocite.index.layouts.batch_maker import ArrayFiles, WholeBuilder
from cocite.index.layouts.memory_plan import MemoryPlan, PartEstimate, Progress
from cocite.index.layouts.rows.build import (
    READ,
    Rows,
    columns_of,
    empty_rows,
    join_rows,
    logged,
    making,
    pilot,
    plan_rows,
    rows_at,
)
from cocite.kernels import features, near
from cocite.measures.snn import MAX_DEGREE, NEIGHBORS
from cocite.resources import resident
from cocite.storage import Entry, evict, is_mapped
from cocite.storage.spool import Scratch

_NODE, _THREAD, _LEAN = 56, 24, 12
"""Bytes per node: for the build, for each thread, and for a build with the minimum memory."""
_MAKING, _TURNING = 40, 48
"""Bytes per node while making lists, and while transposing them."""
_ENTRY = 16
_CODE = 2 << 20
"""Bytes of modules that are loaded only for building lists."""
_LEAST_LINKS = 24 << 20
_MOST_PAGES, _FEW_PAGES, _MOST_ENTRIES = 256, 16, 1 << 18
"""Maximum number of lists that a worker makes at a time, in general and while streaming, and
maximum number of entries in these lists.
"""
_LEAST_LEAN = _LEAST_LINKS + 24 * _MOST_ENTRIES
_READ = 8 << 20
"""Bytes to read or write at a time."""
_TURN_SECONDS = 3e-8
"""Seconds to transpose and mark an entry, and to write it twice."""
_SIDES = {"in": 1, "out": 2, "both": 3}


class NearestBuilder(WholeBuilder):
    """Builds the ``nearest`` layout."""

    own = 1.0
    """A page's weight among its own neighbors."""
    logged = 1.0

    # -- the basis of a build ----------------------------------------------------------

    @property
    def _k(self) -> int:
        """Return the maximum number of entries in a list, excluding the page itself."""
        return min(self.plan.settings[NEIGHBORS], max(1, self.links.nodes - 1))

    @property
    def pages(self) -> int:
        """Return the number of lists that a worker makes at a time."""
        most = _FEW_PAGES if self.streaming else _MOST_PAGES
        return max(1, min(most, _MOST_ENTRIES // (self._k + 1)))

    @cached_property
    def ins(self) -> Links:
        """Return the in-links."""
        return links_of(self.graph, "in")

    @cached_property
    def outs(self) -> Links:
        """Return the out-links."""
        if self.plan.direction != "in":
            return self.links
        if self.lean:  # nothing else is in memory then
            return links_of(self.graph, "out", self.means.memory, keep=self.means.memory // 4)
        return links_of(self.graph, "out", self.means.memory - self._least(self.fit.threads))

    def _least(self, threads: int) -> int:
        """Return the memory in addition to links and lists."""
        return (_NODE + threads * _THREAD) * self.links.nodes + 24 * threads * _MOST_ENTRIES

    @property
    def _least_streaming(self) -> int:
        """Return the minimum memory if only the links are in files."""
        return self._least(1) + min(_LEAST_LINKS, 2 * self.links.nbytes)

    @cached_property
    def fit(self) -> MemoryPlan:
        """Plan the memory; raises :class:`ResourceError` if it is insufficient."""
        nodes, links = self.links.nodes, 2 * self.links.nbytes
        least = min(self._least_streaming, _LEAN * nodes + _LEAST_LEAN)
        what = f"lists of {nodes:,} nodes"
        return plan_rows(self.means, lambda n: links + self._least(n), least, what, "nearest")

    @cached_property
    def streaming(self) -> bool:
        """Return whether links are evicted after reading."""
        return self.means.memory < 2 * self.links.nbytes + self._least(1)

    @cached_property
    def lean(self) -> bool:
        """Return whether data per node is also in scratch files."""
        return self.means.memory < self._least_streaming

    @cached_property
    def width(self) -> int:
        """Return the number of ids per strip: all, or as many as fit in half of the memory; the
        other half is for reading.
        """
        nodes = self.links.nodes
        if not self.lean:
            return nodes
        room = max(self.means.memory - _LEAST_LEAN, _LEAN * nodes) // 2
        strips = -(-_THREAD * nodes // room)
        return -(-nodes // strips)

    def _scratch(self, on_disk: bool) -> Scratch:
        return Scratch.near(self.graph.path) if on_disk else Scratch(None)

    @cached_property
    def _weights(self) -> dict[str, tuple[Floats, Floats]]:
        """Return each page's weight as a neighbor, and its neighbors' total weight, by side."""
        max_degree, scratch = np.int64(self.plan.settings[MAX_DEGREE]), self._scratch(self.lean)
        found = {}
        for side, rows, columns in (("in", self.ins, self.outs), ("out", self.outs, self.ins)):
            worths, whole = (scratch.zeros(rows.nodes, np.float64) for _ in range(2))
            for low, high in self._pieces(columns):
                given = columns.offsets, columns.neighbors, max_degree, self.own
                near.weigh(*given, low, high, worths)
                self._give_back(columns, worths)
            for low, high in self._pieces(rows):
                near.norms(rows.offsets, rows.neighbors, worths, self.own, low, high, whole)
                self._give_back(rows, worths, whole)
            found[side] = worths, whole
        return found

    def _pieces(self, links: Links) -> Iterator[tuple[int, int]]:
        """Yield node ranges; links are evicted after each range."""
        return pairwise((0, *(cut_blocks(links, _READ) if self.streaming else ()), links.nodes))

    def _give_back(self, links: Links, *arrays: NDArray[Any]) -> None:
        if self.streaming:
            links.evict()
            evict(*arrays)

    def pilot(self) -> tuple[float, float]:
        """Estimate the entries of all lists, and the seconds, from some pages' lists."""
        nodes, make = self.links.nodes, self.lister()
        entries, seconds = pilot(lambda pages: make(pages)[1].size, nodes)
        return entries * nodes, seconds / self.fit.threads * nodes

    def estimate(self) -> PartEstimate:
        """Estimate size, memory, and time from some pages' lists."""
        nodes, fit = self.links.nodes, self.fit
        entries, seconds = self.pilot()
        stored = self.plan.stored_nodes(nodes)
        made = min(1.0, (2 + self._k) * stored / nodes)  # at most, with all nodes in lists
        entries, seconds = made * entries, made * seconds
        size = int(_ENTRY * entries / made * stored / nodes) + 40 * stored + 8 * nodes + 16
        fit = replace(fit, memory=self._taken(int(entries)))
        return PartEstimate(size, fit, seconds + entries * _TURN_SECONDS)

    def _taken(self, entries: int) -> int:
        """Return the memory for making and transposing lists with ``entries`` entries."""
        nodes, threads = self.links.nodes, self.fit.threads
        making = (_MAKING + threads * _THREAD) * nodes + 24 * threads * self.pages * (self._k + 1)
        making += _ENTRY // 2 * entries * self.fits
        turning = _TURNING * nodes + _ENTRY * entries
        return min(self.means.memory, 2 * self.links.nbytes + max(making, turning) + _CODE)

    # -- the work --------------------------------------------------------------------------

    def write(self, directory: Path, progress: Progress) -> dict[str, Entry]:
        """Make lists, holders, and mutual marks; write all arrays."""
        nodes, wanted = self.links.nodes, self.plan.wanted
        files = ArrayFiles(directory, self.plan.prefix)
        if self.plan.joined:
            names = "nearest", "nodes", "values"
            join_rows(files, self.plan.joined, nodes, names, ("norms", "mutual_norms"))
            return self._write_holders(files)
        lists = self._lists(directory, progress)
        del self._weights
        self.ins.evict()
        self.outs.evict()
        kept = sum(each.nbytes for each in (lists, self.outs) if not is_mapped(each.neighbors))
        holders = columns_of(lists, nodes, self.means.memory - kept, directory)
        scratch = self._scratch(self.lean)
        norms, mutual = (scratch.zeros((nodes, 2), np.float64) for _ in range(2))
        for low, high in pairwise((0, *cut_blocks(lists, _READ // 2), nodes)):  # two are read
            part = slice(low, high + 1)
            listed = lists.offsets[part], lists.neighbors, lists.weights
            held = holders.offsets[part], holders.neighbors, holders.weights
            features.mark(*listed, *held, norms[low:high], mutual[low:high])
            lists.evict()
            holders.evict()
            evict(norms, mutual)
        if wanted is None:
            files.write_rows("nearest", lists)
            files.write_rows("holders", holders)
        else:
            del holders
            pages = wanted.ids()
            norms, mutual = norms[pages], mutual[pages]
            with files.rows_writer("nearest") as writer:
                for low in range(0, pages.size, self.pages):
                    writer.write(*rows_at(lists, pages[low : low + self.pages]))
                    lists.evict()
            self._write_holders(files)
        files.write("norms", np.float64, norms)
        files.write("mutual_norms", np.float64, mutual)
        progress(nodes, nodes)
        return files.entries

    def _write_holders(self, files: ArrayFiles) -> dict[str, Entry]:
        """Write the transpose of the written lists; return all entries."""
        lists, memory = files.rows("nearest"), self.means.memory
        files.write_rows("holders", columns_of(lists, self.links.nodes, memory, files.directory))
        return files.entries

    @cached_property
    def fits(self) -> bool:
        """Return whether lists of maximum length and their transpose fit in memory."""
        most = self.links.nodes * (self._k + 1)
        return _ENTRY * most + self.fit.memory <= self.means.memory

    def listers(self) -> list[Callable[[range], Rows]]:
        """Return one list maker per thread."""
        return [self.lister() for _ in range(self.fit.threads)]

    def lister(self) -> Callable[[range], Rows]:
        """Return a list maker. It owns scratch memory: use one per thread."""
        k, width, ins, outs, weights = self._k, self.width, self.ins, self.outs, self._weights
        rows = (ins.offsets, ins.neighbors), (outs.offsets, outs.neighbors)
        given = *rows, weights["in"], weights["out"], (_SIDES[self.plan.direction], self.own)
        # Strips of ``width`` ids, and lists of ``k`` other pages.
        room = (
            *(np.zeros(width) for _ in range(2)),
            *(np.zeros(width + 1, np.uint32) for _ in range(2)),
            *(np.zeros(k, kind) for kind in (np.uint32, np.float64, np.uint64)),
        )
        nodes, values = empty_rows(self.pages * (k + 1))

        def make(pages: range) -> Rows:
            counts = np.zeros(len(pages), np.uint64)
            listed = np.arange(pages.start, pages.stop, dtype=np.uint32)
            used = near.closest(*given, listed, room, (counts, nodes, values))
            if self.streaming and not 0 < resident() < self.means.memory:
                ins.evict()
                outs.evict()
                evict(*weights["in"], *weights["out"])
            return counts, nodes[:used].copy(), values[:used].copy()

        return make

    def _lists(self, directory: Path, progress: Progress) -> Links:
        """Return the lists of all pages or, if pages are selected, of these and of all pages in
        their lists, which are needed to find mutual entries.
        """
        if self.plan.wanted is None:
            return self._collected(directory, progress, "lists")
        only = np.zeros(self.links.nodes, bool)
        only[self.plan.wanted.ids()] = True
        first = self._collected(directory, progress, "first", only)
        for low in range(0, first.edges, READ):
            only[first.neighbors[low : low + READ]] = True
        return self._collected(directory, progress, "lists", only, first)

    def _collected(
        self,
        directory: Path,
        progress: Progress,
        log: str,
        only: Bools | None = None,
        known: Links | None = None,
    ) -> Links:
        """Return the lists of all pages, or of pages in ``only``, in memory or in scratch files.
        Lists in ``known`` are reused.
        """
        nodes, most, used, at = self.links.nodes, self._k + 1, 0, 0
        offsets = self._scratch(self.lean).zeros(nodes + 1, np.uint64)
        scratch = Scratch(None) if self.fits else Scratch.near(directory)
        ids, values = (scratch.zeros(nodes * most, dtype) for dtype in (np.uint32, np.float32))
        make, place = making(self.listers(), only, known), f"{self.plan.prefix}{log}.log"
        with closing(logged(make, self.pages, nodes, directory / place)) as rows:
            for counts, found, nearness in rows:
                offsets[at + 1 : at + 1 + counts.size] = counts
                ids[used : used + found.size] = found
                values[used : used + found.size] = nearness
                used, at = used + found.size, at + counts.size
                evict(ids, values)
                progress(min(at, nodes - 1), nodes)
        np.cumsum(offsets, out=offsets)
        return Links(offsets, ids[:used], values[:used])
