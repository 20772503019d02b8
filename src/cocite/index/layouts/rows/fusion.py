"""Builder of the layout ``rows``.

    lists       N, for every node, by the builder of ``nearest``
    pushed      P, for every node: personalized PageRank, ignoring link direction
    rows        for each family: expanded, quantized, and written in order
    columns     the transpose of each family's rows

A row depends only on the graph and the settings. All threads make rows, which are collected in
order, so threads, memory, machines, and interruptions never change a byte. Cluster nodes make lists
and pushes only. Lists and pushes are also logged, so that a killed build can resume after them.

An index needs 10 bytes per entry, and 20 per node and family; until publication, logs need 8 more
per entry. A build needs memory for the links twice, 56 bytes per node and 32 per node and thread,
and 8 bytes per entry of lists and pushed rows. With less memory, it uses scratch files and one
thread. Source: ``measures/fusion.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import pairwise, repeat
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cocite.cluster import in_order
from cocite.constants import Ids
from cocite.deadline import clock
from cocite.errors import ResourceError
from cocite.graph.blocks import Links, cut_blocks
from cocite.graph.links import links_of
from cocite.index.layouts.batch_maker import ArrayFiles, WholeBuilder
from cocite.index.layouts.links.build import link_degrees
from cocite.index.layouts.memory_plan import MemoryPlan, PartEstimate, Progress
from cocite.index.layouts.rows.fusion_reader import RowsFormat
from cocite.index.layouts.rows.joined import READ, columns_of, join_rows
from cocite.index.layouts.rows.local import (
    Codes,
    MixedRows,
    OldRows,
    RowArrays,
    report_file,
    staleness,
)
from cocite.index.layouts.rows.neighbors import (
    Making,
    NearestBuilder,
    Rows,
    collected,
    making,
)
from cocite.measures import PartSettings
from cocite.measures.evidence import floor_text
from cocite.measures.fusion import OWN, SIZE, SIZES
from cocite.measures.snn import MAX_DEGREE, NEIGHBORS, SNN
from cocite.resources import format_least, resident, short_of
from cocite.storage import Entry, disk, evict, staged_file
from cocite.storage.spool import Scratch

RESTART = 0.15
STAGES = 1e-3, 3e-4, 1e-4, 3e-5
LAST_STAGE, SMALL = 1e-5, 1e5
"""An additional stage for graphs whose total degree (or link weight, from both ends) is less."""
KEPT, KEEP = 50, 100
"""Minimum entries of rows of N and of P before expansion."""
OTHERS = 6
"""Number of nodes whose rows are added to a row."""

_NODE, _THREAD, _OLD = 56, 32, 24
"""Bytes per node: for the build, for each thread, and for retained rows."""
_LEAST, _BUFFERS = 30 << 20, 4 << 20
"""Minimum bytes of a build besides nodes, and bytes of buffers and code."""
_STEP, _FEW = 256, 16
"""Number of nodes whose rows a worker makes at a time, in general and while streaming, where every
read maps more of a file.
"""
_AWAY = 16
"""Number of consecutive steps in a chunk for another machine."""
_PILOTS, _EXPANDED = 200, 20
_SHARES = (0.3, 0.5, 0.1, 0.1)
"""Each stage's approximate fraction of the total time."""


@dataclass(frozen=True)
class Family:
    """Rows to write: ``rows``, expanded by ``lists`` unless None, with ``keep`` entries each.
    ``scale`` is the value of code 255, ``weight`` the family's weight in scores.
    """

    rows: Links
    lists: Links | None
    keep: int
    scale: float
    weight: float


class Pusher:
    """Makes rows of P. Owns scratch memory: use one per thread."""

    def __init__(
        self,
        links: Links,
        degrees: NDArray[np.float64],
        keep: int,
        most: int,
        after: Callable[[], None],
    ) -> None:
        """Prepare to push along ``links``, for at most ``most`` nodes per call; ``after`` is called
        after each call.
        """
        weights = np.empty(0, np.float32) if links.weights is None else links.weights
        self._links, self._after = (links.offsets, links.neighbors, weights), after
        volume = float(degrees.sum())
        stages = (*STAGES, LAST_STAGE) if volume < SMALL else STAGES
        self._numbers = np.array(stages), (volume, RESTART)
        self._room = (
            np.stack((np.zeros(links.nodes), degrees), axis=1),
            np.zeros(links.nodes),
            *(np.empty(links.nodes + 1, np.uint32) for _ in range(2)),
            *_best(keep),
        )
        self._out = np.empty(most * keep, np.uint32), np.empty(most * keep, np.float32)

    def __call__(self, nodes: range) -> Rows:
        """Return the counts, ids and values of the nodes' rows."""
        from cocite.kernels import rows

        counts = np.zeros(len(nodes), np.uint64)
        ids, values = self._out
        out = counts, ids, values
        used = rows.push(self._links, *self._numbers, nodes.start, self._room, out)
        self._after()
        return counts, ids[:used].copy(), values[:used].copy()


class Expander:
    """Makes rows of codes. Owns scratch memory: use one per thread."""

    def __init__(self, family: Family, most: int, after: Callable[[], None] = lambda: None) -> None:
        """Prepare to expand a family; other arguments are as in :class:`Pusher`."""
        self._family, self._after = family, after
        others = 0 if family.lists is None else OTHERS
        self._lists = _arrays(family.lists or family.rows)
        self._room = (
            np.zeros(family.rows.nodes),
            np.empty(family.rows.nodes + 1, np.uint32),
            *_best(family.keep),
            *_best(others)[:2],
        )
        size = most * family.keep
        self._out = np.empty(size, np.uint32), np.empty(size, np.uint8)

    def __call__(self, pages: Ids) -> Codes:
        """Return the counts, ids, codes and norms of the pages' rows."""
        from cocite.kernels import rows

        counts, norms = np.zeros(pages.size, np.uint64), np.zeros(pages.size, np.uint32)
        ids, codes = self._out
        out, made = (counts, ids, codes, norms), _arrays(self._family.rows)
        used = rows.expand(self._lists, made, self._family.scale, pages, self._room, out)
        self._after()
        return counts, ids[:used].copy(), codes[:used].copy(), norms


def _best(size: int) -> tuple[NDArray[Any], ...]:
    """Return the scratch arrays in which a kernel selects the ``size`` best entries."""
    return np.empty(size), np.empty(size, np.uint32), np.empty(size, np.uint64)


def _scale(degrees: NDArray[np.float64]) -> float:
    """Return log(volume / least degree), the largest possible value in a pushed row, because
    p(u, v) <= 1.
    """
    linked = degrees[degrees > 0]
    return float(np.log(linked.sum() / linked.min())) if linked.size > 1 else 1.0


def degrees_of(links: Links) -> NDArray[np.float64]:
    """Return each node's total link weight, float64[nodes]."""
    return np.concatenate([np.empty(0), *link_degrees(links)])


def _arrays(links: Links) -> tuple[NDArray[Any], ...]:
    assert links.weights is not None
    return links.offsets, links.neighbors, links.weights


class RowsBuilder(RowsFormat, WholeBuilder):
    """Builds the layout ``rows``."""

    # -- the basis of a build ----------------------------------------------------------

    @property
    def _nearest(self) -> NearestBuilder:
        """Return the list builder."""
        settings = self.plan.settings
        chosen = {NEIGHBORS.name: max(KEPT, self._sizes[0]), MAX_DEGREE.name: settings[MAX_DEGREE]}
        own = PartSettings.checked(SNN.build, chosen)
        plan = replace(self.plan, measure=SNN, settings=own, weighted=False)
        found = NearestBuilder(self.graph, self.links, plan, self.means)
        found.own = OWN
        return found

    @property
    def _listed(self) -> bool:
        return MAX_DEGREE in self.plan.settings

    @property
    def _sizes(self) -> tuple[int, int]:
        return SIZES[self.plan.settings[SIZE]]

    @property
    def pushed_entries(self) -> int:
        """Return the maximum number of entries in a row of P."""
        return max(KEEP, self._sizes[1])

    @property
    def step(self) -> int:
        """Return the number of rows that a worker makes at a time."""
        return _FEW if self.streaming else _STEP

    def _need(self, threads: int, entries: float | None = None) -> int:
        """Return a build's memory with ``entries`` entries per node in lists and pushed rows
        (default: the maximum).
        """
        links = self.links
        if entries is None:
            entries = (max(KEPT, self._sizes[0]) + 1) * self._listed + self.pushed_entries
        each = _NODE + threads * _THREAD + _OLD * (self.plan.old is not None)
        held = 2 * links.nbytes * (1 + self.plan.weighted) + each * links.nodes
        return int(held + 8 * entries * self._row_count) + _BUFFERS

    @property
    def _row_count(self) -> int:
        """Return the maximum number of nodes with lists and pushed rows: the stored nodes, and the
        nodes that expand their rows.
        """
        if self.plan.wanted is None or self.elsewhere is not None:
            return self.links.nodes
        return min(self.links.nodes, (1 + OTHERS * self._listed) * self.plan.wanted.count)

    @cached_property
    def fit(self) -> MemoryPlan:
        """Plan the memory; raises :class:`ResourceError` if it is insufficient."""
        nodes, means = self.links.nodes, self.means
        least = (_NODE + _THREAD) * nodes + _LEAST
        if means.memory < least:
            raise ResourceError(
                f"rows of {nodes:,} nodes need {format_least(least)} of memory, with one thread; "
                f"{short_of(means.memory)}{floor_text('rows')}"
            )
        for threads in range(means.threads, 0, -1):
            if self._need(threads) <= means.memory:
                return MemoryPlan(self._need(threads), threads, (), means.threads)
        return MemoryPlan(means.memory, 1, (), means.threads)

    @cached_property
    def streaming(self) -> bool:
        """Return whether links and rows are in scratch files, which are evicted after reading."""
        return self._need(1) > self.means.memory

    def give_back(self, *links: Links) -> None:
        """Evict mapped links if the process uses too much memory."""
        if self.streaming and not 0 < resident() < self.means.memory:
            for each in links:
                each.evict()

    @cached_property
    def _walked(self) -> tuple[Links, NDArray[np.float64]]:
        """Return the links in both directions, and the node degrees."""
        links = self.links
        if self.plan.direction != "any":
            keep = 4 * READ if self.streaming else None
            memory, weighted = self.means.memory, self.plan.weighted
            links = links_of(self.graph, "any", memory, weighted=weighted, keep=keep)
        return links, degrees_of(links)

    def estimate(self) -> PartEstimate:
        """Estimate size, memory, and time from the lists and pushes of some nodes."""
        nodes, fit = self.links.nodes, self.fit
        nearest = self._nearest if self._listed else None
        entries, seconds = (0.0, 0.0) if nearest is None else nearest.pilot()
        (pusher,) = self._pushers(1)
        sample = np.linspace(0, nodes - 1, min(_PILOTS, nodes)).astype(np.int64).tolist()
        pusher(range(sample[0], sample[0] + 1))  # touch its memory first
        begin = clock()
        found = [pusher(range(node, node + 1)) for node in sample]
        seconds += (clock() - begin) / len(sample) / fit.threads * nodes
        pushed = sum(ids.size for _, ids, _ in found) / len(sample)
        families: tuple[float, ...] = (pushed,)
        if nearest is not None:
            nodes_of = sample[:: max(1, len(sample) // _EXPANDED)]
            families = self._widths(nodes_of, nearest.listers()[0], pusher)
        stored = self.plan.stored_nodes(nodes)
        size = sum(int(10 * each * stored) + 12 * stored + 8 * nodes for each in families)
        seconds *= self._row_count / nodes
        if not self.streaming:
            fit = replace(fit, memory=self._need(fit.threads, entries / nodes + pushed))
        return PartEstimate(size, fit, seconds * (1 + sum(_SHARES[2:])))

    def _widths(
        self, sample: Sequence[int], lister: Callable[[range], Rows], pusher: Pusher
    ) -> tuple[float, ...]:
        """Return the mean number of entries in a sample's expanded rows, for each family."""
        makers: tuple[Callable[[range], Rows], ...] = lister, pusher
        found = np.zeros((len(sample), len(makers)))
        for i, node in enumerate(sample):
            _, ids, values = lister(range(node, node + 1))
            near = ids[np.argsort(-values, kind="stable")]
            expanding = [node, *near[near != node][:OTHERS].tolist()]
            for family, make in enumerate(makers):
                rows = [make(range(each, each + 1))[1] for each in expanding]
                found[i, family] = np.unique(np.concatenate(rows)).size
        return tuple(np.minimum(found, self._sizes).mean(axis=0).tolist())

    # -- the work --------------------------------------------------------------------------

    def write(self, directory: Path, progress: Progress) -> dict[str, Entry]:
        """Write lists, pushes, rows and columns."""
        stages, old = self._stages(progress), self._old
        if self.plan.joined:
            return self._join(directory, *stages)
        families = self._families(directory, stages, self._chosen if old is None else old.made)
        if old is None:
            self.__dict__.pop("_walked", None)
        files = ArrayFiles(directory, self.plan.prefix)
        self._write_rows(files, families, next(stages))
        weights = np.array([each.weight for each in families])
        files.write("weights", np.float64, weights)
        del families  # larger than all that follows
        self._write_columns(files, weights.size, next(stages))
        if old is not None:
            self._report(old, files)
        progress(self.links.nodes, self.links.nodes)
        return files.entries

    def _join(self, directory: Path, *stages: Progress) -> dict[str, Entry]:
        """Copy the rows of node ranges, and make the columns."""
        files = ArrayFiles(directory, self.plan.prefix)
        rows = "rows.offsets", "rows.ids", "rows.codes"
        families = join_rows(
            files, self.plan.joined, self.links.nodes, rows, ["norms"], ["scales", "weights"]
        )
        self._write_columns(files, families, stages[-1])
        return files.entries

    @cached_property
    def _old(self) -> OldRows | None:
        """Return the rows that a local refresh retains."""
        return None if self.plan.old is None else self.plan.old()

    def _families(
        self, directory: Path, stages: Iterator[Progress], only: NDArray[np.bool_] | None = None
    ) -> list[Family]:
        """Return the families; with ``only`` (bool[nodes]), only lists and pushed rows that these
        nodes need.
        """
        lists = None
        logs = (None, None) if self._old is not None else ("first", "lists")
        if self._listed:
            nearest, stage, first = self._nearest, next(stages), None
            if only is not None:
                first = nearest.lists(directory, partial(_half, stage, 0), only, log=logs[0])
                stage = partial(_half, stage, 1)
                only = only.copy()
                only[first_others(first)] = True
            away = self._away("lists", nearest.pages) if only is None else None
            lists = nearest.lists(directory, stage, only, away, first, logs[1])
        pushed = self._pushed(directory, next(stages), only)
        listed, reached = self._sizes
        scales = self._scales
        if lists is None:
            return [Family(pushed, None, reached, scales[0], 1.0)]
        return [
            Family(lists, lists, listed, scales[0], 0.5),
            Family(pushed, lists, reached, scales[1], 0.5),
        ]

    @property
    def logged(self) -> float:  # type: ignore[override]
        """Return the fraction of the work for lists and pushed rows."""
        shares = _SHARES[1 - self._listed :]
        return sum(shares[:-2]) / sum(shares)

    def _stages(self, progress: Progress) -> Iterator[Progress]:
        """Yield a progress function for each stage, which reports a fraction of all nodes."""
        shares = 0, *_SHARES[1 - self._listed :]
        ends = np.cumsum(shares) / sum(shares) * (self.links.nodes - 1)
        for low, high in pairwise(ends.tolist()):

            def stage(done: int, total: int, low: float = low, high: float = high) -> None:
                progress(int(low + (high - low) * done / total), self.links.nodes)

            yield stage

    def _pushed(
        self, directory: Path, progress: Progress, only: NDArray[np.bool_] | None = None
    ) -> Links:
        scratch = Scratch.near(directory) if self.streaming else Scratch(None)
        offsets = np.zeros(self.links.nodes + 1, np.uint64)
        away = self._away("pushed", self.step) if only is None else None
        make, step = away or (making(self._pushers(self.fit.threads), only), self.step)
        log = directory / f"{self.plan.prefix}pushed.log" if self._old is None else None
        return collected(make, step, self.pushed_entries, offsets, scratch, progress, log)

    def _away(self, kind: str, step: int) -> tuple[Making, int] | None:
        """Return a function that makes rows of a ``kind`` on other machines, and the number of
        nodes per chunk; None without other machines.
        """
        if (elsewhere := self.elsewhere) is None:
            return None
        return lambda ranges: elsewhere((kind, nodes) for nodes in ranges), _AWAY * step

    def piece(self, asked: tuple[str, range]) -> Rows:
        """Make the lists or the pushed rows of a node range."""
        kind, nodes = asked
        makers, step = self._making[kind]
        made = in_order(makers, [nodes[at : at + step] for at in range(0, len(nodes), step)])
        counts, ids, values = (np.concatenate(each) for each in zip(*made, strict=True))
        return counts, ids, values

    @cached_property
    def _making(self) -> dict[str, tuple[list[Any], int]]:
        found = {"pushed": (list[Any](self._pushers(self.fit.threads)), self.step)}
        if self._listed:
            nearest = self._nearest
            found["lists"] = list[Any](nearest.listers()), nearest.pages
        return found

    def _pushers(self, count: int) -> list[Pusher]:
        links, degrees = self._walked
        after = partial(self.give_back, links)
        keep = self.pushed_entries
        return [Pusher(links, degrees, keep, self.step, after) for _ in range(count)]

    @property
    def _chosen(self) -> NDArray[np.bool_] | None:
        """Return a bool[nodes] mask of the nodes whose rows are needed, or None for all nodes, as
        on a cluster.
        """
        if self.plan.wanted is None or self.elsewhere is not None:
            return None
        found = np.zeros(self.links.nodes, bool)
        found[self.plan.wanted.ids()] = True
        return found

    @property
    def _pages(self) -> Ids:
        """Return the pages whose rows are stored."""
        wanted = self.plan.wanted
        return np.arange(self.links.nodes, dtype=np.uint32) if wanted is None else wanted.ids()

    @cached_property
    def _scales(self) -> list[float]:
        """Return each family's value of code 255; a local refresh retains the old values."""
        if self._old is not None:
            return self._old.scales
        return [1.0] * self._listed + [_scale(self._walked[1])]

    def _write_rows(self, files: ArrayFiles, families: list[Family], progress: Progress) -> None:
        """Write rows in order, one family at a time."""
        pages = self._pages
        offsets, norms = [np.zeros(1, np.uint64)], list[Ids]()
        with ExitStack() as stack:
            to_ids = stack.enter_context(files.writer("rows.ids", np.uint32))
            to_codes = stack.enter_context(files.writer("rows.codes", np.uint8))
            for number, family in enumerate(families):
                after = partial(self.give_back, family.rows, family.lists or family.rows)
                makers: list[Callable[[Ids], Codes]] = [
                    Expander(family, self.step, after) for _ in range(self.fit.threads)
                ]
                if self._old is not None:
                    old = self._old, number, self.streaming
                    makers = [MixedRows(make, *old) for make in makers]
                begins = range(0, pages.size, self.step)
                rows = in_order(makers, (pages[at : at + self.step] for at in begins))
                done = number * pages.size
                try:
                    for counts, ids, codes, sums in rows:
                        offsets.append(counts)
                        norms.append(sums)
                        to_ids.write(ids)
                        to_codes.write(codes)
                        done += sums.size
                        progress(done, len(families) * pages.size)
                finally:
                    rows.close()  # type: ignore[attr-defined]
        files.write("rows.offsets", np.uint64, np.cumsum(np.concatenate(offsets), dtype=np.uint64))
        files.write("norms", np.uint32, np.concatenate(norms))
        files.write("scales", np.float64, np.array([each.scale for each in families]))

    def _write_columns(self, files: ArrayFiles, families: int, progress: Progress) -> None:
        """Write the transpose of each family's rows."""
        offsets, ids, codes = (files.read(f"rows.{name}") for name in ("offsets", "ids", "codes"))
        size, pages = self.links.nodes, (offsets.size - 1) // families
        begins = [np.zeros(1, np.uint64)]
        with ExitStack() as stack:
            to_ids = stack.enter_context(files.writer("columns.ids", np.uint32))
            to_codes = stack.enter_context(files.writer("columns.codes", np.uint8))
            for number in range(families):
                own = offsets[number * pages : (number + 1) * pages + 1]
                rows = Links(own, ids, cast(Any, codes))
                turned = columns_of(rows, size, self.means.memory, files.directory)
                begins.append(turned.offsets[1:] + own[0])
                for array, writer in ((turned.neighbors, to_ids), (turned.weights, to_codes)):
                    assert array is not None
                    for low in range(0, array.size, READ):
                        writer.write(array[low : low + READ])
                        evict(array)
                progress(number + 1, families)
        files.write("columns.offsets", np.uint64, np.concatenate(begins))

    def _report(self, old: OldRows, files: ArrayFiles) -> None:
        """Measure the staleness of the retained rows, and write the result to a file."""
        pages = self._pages

        def make(places: NDArray[np.int64]) -> RowArrays:
            only = np.zeros(self.links.nodes, bool)
            only[pages[places]] = True
            families = self._families(files.directory, repeat(_silent), only)
            size = len(families) * pages.size
            counts, norms = np.zeros(size, np.uint64), np.zeros(size, np.uint32)
            ids, codes = [np.empty(0, np.uint32)], [np.empty(0, np.uint8)]
            for number, family in enumerate(families):
                expander = Expander(family, self.step)
                for at in range(0, places.size, self.step):
                    some = places[at : at + self.step]
                    rows = some + number * pages.size
                    counts[rows], found, values, norms[rows] = expander(pages[some])
                    ids.append(found)
                    codes.append(values)
            offsets = np.concatenate((np.zeros(1, np.uint64), np.cumsum(counts)))
            return RowArrays((offsets, np.concatenate(ids), np.concatenate(codes)), norms)

        rows, columns = (
            (files.read(f"{kind}.offsets"), files.read(f"{kind}.ids"), files.read(f"{kind}.codes"))
            for kind in ("rows", "columns")
        )
        stored, left = RowArrays(rows, files.read("norms")), np.flatnonzero(~old.made[pages])
        found = staleness(stored, columns, files.read("weights"), left, make)
        report = {"nodes": int(pages.size - left.size), **asdict(found)}
        with staged_file(files.directory / report_file(self.plan.prefix)) as file:
            disk.write(file, json.dumps(report).encode())


def _silent(done: int, total: int) -> None:
    """Report no progress."""


def _half(stage: Progress, number: int, done: int, total: int) -> None:
    """Report the first or the second half of a stage."""
    stage((number * total + done) // 2, total)


def first_others(lists: Links) -> Ids:
    """Return the distinct nodes that expand rows, according to ``lists``."""
    from cocite.kernels.random import scramble

    found = [np.empty(0, np.uint32)]
    for low, high in pairwise((0, *cut_blocks(lists, READ), lists.nodes)):
        offsets = lists.offsets[low : high + 1].astype(np.int64)
        row = np.repeat(np.arange(low, high), np.diff(offsets))
        piece = slice(int(offsets[0]), int(offsets[-1]))
        ids, nearness = lists.neighbors[piece], np.asarray(lists.weights)[piece]
        others = ids != row
        row, ids, nearness = row[others], ids[others], nearness[others]
        order = np.lexsort((scramble.__wrapped__(ids.astype(np.uint64)), -nearness, row))
        sizes = np.bincount(row - low, minlength=high - low)
        place = np.arange(row.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        found.append(np.unique(ids[order][place < OTHERS]))
    return np.unique(np.concatenate(found))
