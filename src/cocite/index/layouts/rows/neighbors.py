"""Builder of the layout ``nearest``.

    nearest.offsets, .nodes, .values    each page's nearest pages, itself included, with nearness
    holders.offsets, .nodes, .values    for every page, the pages whose lists contain it
    norms           float64[nodes, 2]   the sums of a list's values and of their squares
    mutual_norms    float64[nodes, 2]   the same sums over mutual entries

A negative value marks a one-sided entry, whose list does not contain the page; its absolute value
is the nearness. All threads make lists (``kernels/near.py``), which are collected in order. One
joint pass over lists and holders, their transpose, marks mutual entries.

An index needs 16 bytes per entry and 48 per node, with at most ``neighbors`` + 1 entries per node.
A build needs memory for the links twice. Making lists needs another 40 bytes per node, 24 per node
and thread, and the entries once; the transposition needs 48 per node and the entries twice. With
less memory, links and lists are in scratch files, and there is one thread. With even less, the 40
bytes per node are also in scratch files, and pages are processed in strips of ids, which need the
24 bytes; 12 bytes per node remain for the transposition. Source: ``measures/snn.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.cluster import in_order
from cocite.deadline import clock
from cocite.errors import ResourceError
from cocite.graph.blocks import Links, cut_blocks
from cocite.graph.links import links_of, transpose
from cocite.index.layouts.batch_maker import ArrayFiles, WholeBuilder
from cocite.index.layouts.memory_plan import MemoryPlan, PartEstimate, Progress
from cocite.index.layouts.rows.joined import columns_of, join_rows
from cocite.index.layouts.rows.reader import NearestFormat
from cocite.measures.evidence import floor_text
from cocite.measures.snn import MAX_DEGREE, NEIGHBORS
from cocite.resources import format_least, resident, short_of
from cocite.storage import Entry, disk, evict, is_mapped
from cocite.storage.spool import Scratch

Ids = NDArray[np.uint32]
Bools = NDArray[np.bool_]
_NO_IDS, _NO_VALUES = np.empty(0, np.uint32), np.empty(0, np.float32)
Rows = tuple[NDArray[np.uint64], Ids, NDArray[np.float32]]


def room(width: int, k: int) -> tuple[NDArray[Any], ...]:
    """Allocate the zeroed scratch of ``kernels/near.py``, 24 bytes per id, for lists of ``k`` other
    pages in strips of ``width`` ids.
    """
    return (
        np.zeros(width),
        np.zeros(width),
        np.zeros(width + 1, np.uint32),
        np.zeros(width + 1, np.uint32),
        np.zeros(k, np.uint32),
        np.zeros(k),
        np.zeros(k, np.uint64),
    )


def lists_of(
    ins: Links,
    outs: Links,
    direction: str,
    max_degree: int,
    neighbors: int,
    pages: Ids,
    own: float = 1.0,
) -> Rows:
    """Return the counts, ids and values of the pages' lists, from links in memory."""
    from cocite.kernels import near

    weights = []
    for rows, columns in ((ins, outs), (outs, ins)):
        worths, whole = np.zeros(rows.nodes), np.zeros(rows.nodes)
        near.weigh(columns.offsets, columns.neighbors, max_degree, own, 0, rows.nodes, worths)
        near.norms(rows.offsets, rows.neighbors, worths, own, 0, rows.nodes, whole)
        weights.append((worths, whole))
    sides = (ins.offsets, ins.neighbors), (outs.offsets, outs.neighbors), *weights
    k = min(neighbors, max(1, ins.nodes - 1))
    counts, size = np.zeros(pages.size, np.uint64), pages.size * (k + 1)
    ids, values = np.empty(size, np.uint32), np.empty(size, np.float32)
    out = counts, ids, values
    used = near.closest(*sides, (_SIDES[direction], own), pages, room(ins.nodes, k), out)
    return counts, ids[:used], values[:used]


_NODE, _THREAD, _LEAN = 56, 24, 12
"""Bytes per node: for the build, for each thread, and for a build with the least memory."""
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
_PILOTS = 400
_LISTS = "nearest.offsets", "nearest.nodes", "nearest.values"
_PIECE = 1 << 21
_READ = 8 << 20
"""Entries to count and bytes to read or write at a time."""
_TURN_SECONDS = 3e-8
"""Seconds to transpose and mark an entry, and to write it twice."""
_SIDES = {"in": 1, "out": 2, "both": 3}


class _Lister:
    """Makes lists. Owns scratch memory: use one per thread."""

    def __init__(self, layout: NearestBuilder) -> None:
        k = layout.k
        self._layout = layout
        ins, outs = layout.ins, layout.outs
        self._sides = (
            (ins.offsets, ins.neighbors),
            (outs.offsets, outs.neighbors),
            layout.weights["in"],
            layout.weights["out"],
            (_SIDES[layout.plan.direction], layout.own),
        )
        self._room = room(layout.width, k)
        size = layout.pages * (k + 1)
        self._out = np.empty(size, np.uint32), np.empty(size, np.float32)

    def __call__(self, pages: range) -> Rows:
        """Return the counts, nodes and values of the pages' lists."""
        from cocite.kernels import near

        layout, counts = self._layout, np.zeros(len(pages), np.uint64)
        nodes, values = self._out
        listed = np.arange(pages.start, pages.stop, dtype=np.uint32)
        used = near.closest(*self._sides, listed, self._room, (counts, nodes, values))
        if layout.streaming and not 0 < resident() < layout.means.memory:
            layout.ins.evict()
            layout.outs.evict()
            evict(*layout.weights["in"], *layout.weights["out"])
        return counts, nodes[:used].copy(), values[:used].copy()


Making = Callable[[Sequence[range]], Iterator[Rows]]
"""Makes (counts, ids, values) for node ranges, in order."""


def making(
    makers: Sequence[Callable[[range], Rows]], only: Bools | None = None, known: Links | None = None
) -> Making:
    """Return a function that makes rows with ``makers``, one per thread. With ``only``
    (bool[nodes]), other nodes' rows are empty; nonempty rows in ``known`` are reused.
    """
    if only is not None:
        kinds, more = only.astype(np.uint8), list[Callable[[range], Rows]]()
        if known is not None:
            kinds += only & (np.diff(known.offsets) > 0)
            more = [partial(_known, known)]
        makers = [partial(_rows_of_some, (make, *more), kinds) for make in makers]
    return partial(in_order, makers)


def collected(
    make: Making,
    step: int,
    most: int,
    offsets: NDArray[np.uint64],
    scratch: Scratch,
    progress: Progress,
    log: Path | None = None,
) -> Links:
    """Make the rows of all nodes, ``step`` nodes at a time, with at most ``most`` entries each.

    Fills ``offsets``, which must be all 0. A ``log`` stores completed rows, so that a later run can
    resume.
    """
    nodes, used, at = offsets.size - 1, 0, 0
    ids, values = (scratch.zeros(nodes * most, dtype) for dtype in (np.uint32, np.float32))
    with closing(logged(make, step, nodes, log if nodes > step else None)) as rows:
        for counts, found, near in rows:
            offsets[at + 1 : at + 1 + counts.size] = counts
            ids[used : used + found.size] = found
            values[used : used + found.size] = near
            used, at = used + found.size, at + counts.size
            if scratch.on_disk:
                evict(ids, values)
            progress(min(at, nodes - 1), nodes)
    np.cumsum(offsets, out=offsets)
    return Links(offsets, ids[:used], values[:used])


def logged(make: Making, step: int, nodes: int, log: Path | None) -> Generator[Rows]:
    """Yield the rows in a log, then new rows, which are appended to the log."""
    at = end = 0
    for rows in () if log is None else _read_log(log):
        at, end = at + rows[0].size, end + 24 + 8 * (rows[0].size + rows[1].size)
        yield rows
    with ExitStack() as stack:
        file = None
        if log is not None:
            file = stack.enter_context(disk.append(log))
            disk.truncate(file, end)
        ranges = [range(low, min(low + step, nodes)) for low in range(at, nodes, step)]
        for rows in stack.enter_context(closing(make(ranges))):  # type: ignore[type-var]
            if file is not None:
                body = b"".join(each.tobytes() for each in rows)
                sizes = rows[0].size, rows[1].size, xxhash.xxh3_64_intdigest(body)
                disk.write(file, np.array(sizes, np.uint64).tobytes() + body)
            yield rows


def _read_log(log: Path) -> Iterator[Rows]:
    """Yield the intact leading records of a log. A record contains the numbers of rows and entries,
    a digest, counts, ids, and values.
    """
    with suppress(FileNotFoundError), log.open("rb") as file:
        left = log.stat().st_size
        while (left := left - 24) >= 0:
            count, size, digest = np.frombuffer(file.read(24), np.uint64).tolist()
            left -= 8 * (count + size)
            body = file.read(8 * (count + size)) if count > 0 <= left else b""
            if not body or xxhash.xxh3_64_intdigest(body) != digest:
                return
            counts, ids = np.frombuffer(body, np.uint64, count), np.frombuffer(body, np.uint32)
            ids = ids[2 * count :]
            yield counts, ids[:size], ids[size:].view(np.float32)


def _rows_of_some(
    makers: Sequence[Callable[[range], Rows]], kinds: NDArray[np.uint8], nodes: range
) -> Rows:
    """Return the counts, ids and values of a node range. ``kinds`` is 0 for empty rows, or else
    selects the maker, counted from 1.
    """
    counts, ids, values = np.zeros(len(nodes), np.uint64), [_NO_IDS], [_NO_VALUES]
    ends = np.flatnonzero(np.diff(kinds[nodes.start : nodes.stop])) + 1
    for low, high in pairwise((0, *ends.tolist(), len(nodes))):
        if kind := kinds[nodes.start + low]:
            counts[low:high], found, near = makers[kind - 1](nodes[low:high])
            ids.append(found)
            values.append(near)
    return counts, np.concatenate(ids), np.concatenate(values)


def _known(rows: Links, nodes: range) -> Rows:
    """Return the counts, ids and values of a node range in ``rows``."""
    offsets = rows.offsets[nodes.start : nodes.stop + 1]
    piece = slice(int(offsets[0]), int(offsets[-1]))
    return np.diff(offsets), rows.neighbors[piece], np.asarray(rows.weights)[piece]


class NearestBuilder(NearestFormat, WholeBuilder):
    """Builds the layout ``nearest``."""

    own = 1.0
    """A page's weight among its own neighbors."""
    logged = 1.0

    # -- the basis of a build ----------------------------------------------------------

    @property
    def k(self) -> int:
        """Return the maximum number of entries in a list, excluding the page itself."""
        return min(self.plan.settings[NEIGHBORS], max(1, self.links.nodes - 1))

    @property
    def pages(self) -> int:
        """Return the number of lists that a worker makes at a time."""
        most = _FEW_PAGES if self.streaming else _MOST_PAGES
        return max(1, min(most, _MOST_ENTRIES // (self.k + 1)))

    @property
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
        """Return the memory besides links and lists."""
        return (_NODE + threads * _THREAD) * self.links.nodes + 24 * threads * _MOST_ENTRIES

    @property
    def _least_streaming(self) -> int:
        """Return the least memory if only the links are in files."""
        return self._least(1) + min(_LEAST_LINKS, 2 * self.links.nbytes)

    @cached_property
    def fit(self) -> MemoryPlan:
        """Plan the memory; raises :class:`ResourceError` if it is insufficient."""
        links = self.links.nbytes
        for threads in range(self.means.threads, 0, -1):
            need = 2 * links + self._least(threads)
            if need <= self.means.memory:
                return MemoryPlan(need, threads, (), self.means.threads)
        least = min(self._least_streaming, _LEAN * self.links.nodes + _LEAST_LEAN)
        if self.means.memory < least:
            raise ResourceError(
                f"lists of {self.links.nodes:,} nodes need {format_least(least)} of memory, with "
                f"one thread; {short_of(self.means.memory)}{floor_text('nearest')}"
            )
        return MemoryPlan(self.means.memory, 1, (), self.means.threads)

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
        """Return the number of ids per strip: all, or as many as fit in half of the memory, as the
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
    def weights(self) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Return each page's weight as a neighbor, and its neighbors' total weight, by side."""
        from cocite.kernels import near

        max_degree, scratch = np.int64(self.plan.settings[MAX_DEGREE]), self._scratch(self.lean)
        found = {}
        for side, rows, columns in (("in", self.ins, self.outs), ("out", self.outs, self.ins)):
            worths, whole = (scratch.zeros(rows.nodes, np.float64) for _ in range(2))
            for low, high in self._pieces(columns):
                near.weigh(
                    columns.offsets, columns.neighbors, max_degree, self.own, low, high, worths
                )
                self._give_back(columns, worths)
            for low, high in self._pieces(rows):
                near.norms(rows.offsets, rows.neighbors, worths, self.own, low, high, whole)
                self._give_back(rows, worths, whole)
            found[side] = worths, whole
        return found

    def _pieces(self, links: Links) -> Iterator[tuple[int, int]]:
        """Yield node ranges whose links are read before being evicted."""
        return pairwise((0, *(cut_blocks(links, _READ) if self.streaming else ()), links.nodes))

    def _give_back(self, links: Links, *arrays: NDArray[Any]) -> None:
        if self.streaming:
            links.evict()
            evict(*arrays)

    def pilot(self) -> tuple[float, float]:
        """Estimate the entries of all lists, and the seconds, from some pages' lists."""
        nodes = self.links.nodes
        lister = _Lister(self)
        sample = np.linspace(0, nodes - 1, min(_PILOTS, nodes)).astype(np.int64).tolist()
        lister(range(sample[0], sample[0] + 1))  # compiles
        begin = clock()
        found = [lister(range(page, page + 1)) for page in sample]
        seconds = clock() - begin
        entries = sum(listed.size for _, listed, _ in found) * nodes / len(sample)
        return entries, seconds / len(sample) / self.fit.threads * nodes

    def estimate(self) -> PartEstimate:
        """Estimate size, memory, and time from some pages' lists."""
        nodes, fit = self.links.nodes, self.fit
        entries, seconds = self.pilot()
        stored = self.plan.stored_nodes(nodes)
        made = min(1.0, (2 + self.k) * stored / nodes)  # at most, with all nodes in lists
        entries, seconds = made * entries, made * seconds
        size = int(_ENTRY * entries / made * stored / nodes) + 40 * stored + 8 * nodes + 16
        fit = replace(fit, memory=self._taken(int(entries)))
        return PartEstimate(size, fit, seconds + entries * _TURN_SECONDS)

    def _taken(self, entries: int) -> int:
        """Return the memory for making and transposing lists with ``entries`` entries."""
        nodes, threads = self.links.nodes, self.fit.threads
        making = (_MAKING + threads * _THREAD) * nodes + 24 * threads * self.pages * (self.k + 1)
        making += _ENTRY // 2 * entries * self.fits
        turning = _TURNING * nodes + _ENTRY * entries
        return min(self.means.memory, 2 * self.links.nbytes + max(making, turning) + _CODE)

    # -- the work --------------------------------------------------------------------------

    def write(self, directory: Path, progress: Progress) -> dict[str, Entry]:
        """Make lists, holders, and mutual marks; write all arrays."""
        from cocite.kernels import features
        from cocite.kernels.links import add_counts

        nodes, wanted = self.links.nodes, self.plan.wanted
        files = ArrayFiles(directory, self.plan.prefix)
        if self.plan.joined:
            sums = "norms", "mutual_norms"
            join_rows(files, self.plan.joined, nodes, _LISTS, sums)
            return self._write_holders(files)
        if wanted is None:
            lists = self.lists(directory, progress)
        else:
            lists = self._lists_around(directory, progress, wanted.ids())
        del self.weights
        if not self.fits:
            self.ins.evict()
            self.outs.evict()
        held = np.zeros(nodes, np.uint32)
        for low in range(0, lists.edges, _PIECE):
            add_counts(lists.neighbors[low : low + _PIECE], held)
            evict(lists.neighbors[low : low + _PIECE])
        holders = self._holders(lists, held, directory)
        del held
        scratch = self._scratch(self.lean)
        norms, mutual = (scratch.zeros((nodes, 2), np.float64) for _ in range(2))
        values, kept = lists.weights, holders.weights
        for low, high in pairwise((0, *(() if self.fits else cut_blocks(lists, _READ)), nodes)):
            features.mark(
                lists.offsets[low : high + 1],
                lists.neighbors,
                values,
                holders.offsets[low : high + 1],
                holders.neighbors,
                kept,
                norms[low:high],
                mutual[low:high],
            )
            if not self.fits:
                lists.evict()
                holders.evict()
                evict(norms, mutual)
        if wanted is not None:
            del holders
            pages = wanted.ids()
            lists, norms, mutual = self._only(lists, pages), norms[pages], mutual[pages]
        files.write_rows("nearest", lists)
        files.write("norms", np.float64, norms)
        files.write("mutual_norms", np.float64, mutual)
        progress(nodes, nodes)
        if wanted is not None:
            return self._write_holders(files)
        files.write_rows("holders", holders)
        return files.entries

    def _lists_around(self, directory: Path, progress: Progress, pages: Ids) -> Links:
        """Return the lists of ``pages`` and of all pages in these lists, which are needed to mark
        mutual entries.
        """
        only = np.zeros(self.links.nodes, bool)
        only[pages] = True
        first = self.lists(directory, progress, only, log="first")
        for low in range(0, first.edges, _PIECE):
            only[first.neighbors[low : low + _PIECE]] = True
        return self.lists(directory, progress, only, known=first)

    def _only(self, lists: Links, pages: Ids) -> Links:
        """Return only the lists of ``pages``."""
        only = np.zeros(lists.nodes, bool)
        only[pages] = True
        make, offsets = making([partial(_known, lists)], only), np.zeros(lists.nodes + 1, np.uint64)
        scratch = self._scratch(not self.fits)
        found = collected(make, self.pages, self.k + 1, offsets, scratch, lambda done, total: None)
        return replace(found, offsets=np.append(offsets[pages], offsets[-1]))

    def _write_holders(self, files: ArrayFiles) -> dict[str, Entry]:
        """Write the transpose of the written lists; return all entries."""
        found = columns_of(
            files.rows("nearest"), self.links.nodes, self.means.memory, files.directory
        )
        files.write_rows("holders", found)
        return files.entries

    def _holders(self, lists: Links, held: NDArray[np.uint32], directory: Path) -> Links:
        """Return the transpose of lists. ``held`` is the number of lists that contain each page.
        Mapped lists are evicted after reading; holders are in memory only if both fit.
        """
        memory, keep = self.means.memory - held.nbytes, None
        if not self.lean:
            whole = lists.nbytes + 8 * lists.nodes
            held_outs = 0 if is_mapped(self.outs.neighbors) else self.outs.nbytes
            memory -= lists.offsets.nbytes + held_outs
            keep = memory - (2 * _READ if not self.fits else lists.nbytes)
            memory = max(memory, min(whole, 16 * lists.nodes + _LEAST_LINKS))
        return transpose(lists, held, memory, directory, keep=keep)

    @cached_property
    def fits(self) -> bool:
        """Return whether lists of maximum length and their transpose fit in memory."""
        most = self.links.nodes * (self.k + 1)
        return _ENTRY * most + self.fit.memory <= self.means.memory

    def listers(self) -> list[Callable[[range], Rows]]:
        """Return one list maker per thread."""
        return [_Lister(self) for _ in range(self.fit.threads)]

    def lists(
        self,
        directory: Path,
        progress: Progress,
        only: Bools | None = None,
        known: Links | None = None,
        log: str = "lists",
    ) -> Links:
        """Return the lists of all pages, or of pages in ``only``, in memory or in scratch files.
        Lists in ``known`` are reused.
        """
        nodes, most = self.links.nodes, self.k + 1
        scratch = Scratch(None) if self.fits else Scratch.near(directory)
        offsets = self._scratch(self.lean).zeros(nodes + 1, np.uint64)
        make = making(self.listers(), only, known)
        place = directory / f"{self.plan.prefix}{log}.log"
        return collected(make, self.pages, most, offsets, scratch, progress, place)
