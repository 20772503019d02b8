"""Builder of the ``rows`` layout.

    lists       N, for every node, by the makers of ``nearest``
    pushed      P, for every node: personalized PageRank, ignoring link direction

All threads make rows, which are quantized, written in order, and transposed. Cluster nodes only
make rows. An index needs 10 bytes per entry, and 20 per node per family; until publication, logs
need 8 more per entry. A build needs memory for the links twice, 56 bytes per node and 40 per node
per thread. With less memory, links are in scratch files, and there is one thread. Source:
``measures/fusion.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.cluster import in_order
from cocite.constants import Bools, Ids
from cocite.graph.blocks import Links
from cocite.graph.links import links_of
from cocite.index.layouts.batch_maker import ArrayFiles, WholeBuilder
from cocite.index.layouts.links.build import degrees_of
from cocite.index.layouts.memory_plan import MemoryPlan, PartEstimate, Progress
from cocite.index.layouts.rows.build import (
    READ,
    Making,
    Rows,
    columns_of,
    empty_rows,
    join_rows,
    logged,
    making,
    pilot,
    plan_rows,
)
from cocite.index.layouts.rows.local import (
    Codes,
    OldRows,
    RowArrays,
    mixed,
    report_file,
    staleness,
    with_old,
)
from cocite.index.layouts.rows.neighbors import NearestBuilder
from cocite.kernels import rows as row_kernels
from cocite.measures import PartSettings
from cocite.measures.fusion import OWN, SIZE, row_sizes
from cocite.measures.snn import MAX_DEGREE, NEIGHBORS, SNN
from cocite.resources import resident
from cocite.storage import Entry, disk, staged_file

RESTART = 0.15
STAGES = 1e-3, 3e-4, 1e-4, 3e-5
LAST_STAGE, SMALL = 1e-5, 1e5
"""An additional stage, for a total degree (or link weight, from both ends) of less than SMALL."""
ODD, PROBES, _PROBE_STAGES = 0.25, 400, 3
"""Weight of walks with an odd number of steps in graphs whose links join similar nodes; number of
links that are tested for this, and number of stages of the pushes from their ends.
"""
_PROBED, _CODES = 100, 255.0
"""Maximum entries per row of the pushes from PROBES, and the largest quantized value (*code*)."""

_NODE, _THREAD, _OLD = 56, 40, 24
"""Bytes per node: for the build, for each thread, and for retained rows."""
_LEAST, _BUFFERS = 30 << 20, 4 << 20
"""Minimum bytes of a build in addition to those per node, and bytes of buffers and modules."""
_STEP, _FEW = 256, 16
"""Number of nodes whose rows a worker makes at a time, in general and while streaming, where every
read maps more of a file.
"""
_AWAY = 16
"""Number of consecutive steps in a chunk for another machine."""
_PILOTS = 200
_ROWS, _COLUMNS = ("rows", "ids", "codes"), ("columns", "ids", "codes")
_SHARES = (0.35, 0.55, 0.1)
"""Each stage's approximate fraction of the total time."""


@dataclass(frozen=True)
class Family:
    """Rows to write. ``makers`` returns one function per thread that makes rows, ``step`` nodes at
    a time; ``scale`` is the value of code 255, ``weight`` the family's weight in scores.
    """

    name: str
    makers: Callable[[], list[Callable[[range], Rows]]]
    step: int
    scale: float
    weight: float


class Pusher:
    """Makes rows of P. Owns scratch memory: use one per thread."""

    def __init__(
        self,
        links: Links,
        degrees: NDArray[np.float64],
        keep: int,
        odd: float,
        most: int = 1,
        after: Callable[[], None] = lambda: None,
        stages: tuple[float, ...] | None = None,
    ) -> None:
        """Prepare to push along ``links``, for at most ``most`` nodes per call. Walks with an odd
        number of steps count ``odd``; ``after`` is called after each call.
        """
        weights = np.empty(0, np.float32) if links.weights is None else links.weights
        self._links, self._after = (links.offsets, links.neighbors, weights), after
        volume = float(degrees.sum())
        if stages is None:
            stages = (*STAGES, LAST_STAGE) if volume < SMALL else STAGES
        counted = (1 + odd * (1 - RESTART)) / (2 - RESTART)  # the fraction of walks that count
        self._numbers = np.array(stages), (volume / counted, RESTART, odd)
        state = np.zeros((links.nodes, 4))
        state[:, 3] = degrees
        self._room = (
            state,
            *(np.empty(links.nodes + 1, np.uint32) for _ in range(2)),
            *(np.empty(keep, kind) for kind in (np.float64, np.uint32, np.uint64)),
        )
        self._out = empty_rows(most * keep)

    def __call__(self, nodes: range) -> Rows:
        """Return the nodes' rows."""
        counts = np.zeros(len(nodes), np.uint64)
        ids, values = self._out
        out = counts, ids, values
        used = row_kernels.push(self._links, *self._numbers, nodes.start, self._room, out)
        self._after()
        return counts, ids[:used].copy(), values[:used].copy()


def encode(rows: Rows, scale: float) -> Codes:
    """Return the counts, ids, codes and norms of rows; omit entries whose code is 0."""
    counts, ids, values = rows
    codes = np.rint(_CODES * np.sqrt(np.minimum(1.0, values.astype(np.float64) / scale)))
    row = np.repeat(np.arange(counts.size), counts.astype(np.int64))
    norms, stay = np.bincount(row, codes**2, counts.size), codes > 0
    left = np.bincount(row[stay], minlength=counts.size)
    return left.astype(np.uint64), ids[stay], codes[stay].astype(np.uint8), norms.astype(np.uint32)


def odd_weight(links: Links, degrees: NDArray[np.float64], after: Callable[[], None]) -> float:
    """Return the weight of walks with an odd number of steps: ODD if linked nodes are more similar,
    by walks with an even number of steps, than ends of different links; else 0.

    Compares the ends of PROBES links, selected by a hash of their positions.
    """
    if not links.edges:
        return ODD
    draws = mixed(np.arange(2 * PROBES, dtype=np.uint64)) % np.uint64(links.edges)
    firsts = np.searchsorted(links.offsets, draws[:PROBES], side="right") - 1
    ends, others = (links.neighbors[each].tolist() for each in np.split(draws, 2))
    pusher = Pusher(links, degrees, _PROBED, 0.0, 1, after, STAGES[:_PROBE_STAGES])
    scale, found = _scale(degrees), dict[int, tuple[Ids, NDArray[np.float64]]]()

    def similarity(first: int, second: int) -> float:
        for node in {first, second} - found.keys():
            _, ids, codes, _ = encode(pusher(range(node, node + 1)), scale)
            found[node] = ids, codes.astype(np.float64) ** 2
        (ids_a, a), (ids_b, b) = found[first], found[second]
        _, at_a, at_b = np.intersect1d(ids_a, ids_b, assume_unique=True, return_indices=True)
        common = float(np.minimum(a[at_a], b[at_b]).sum())
        return common / max(1.0, float(a.sum() + b.sum()) - common)

    linked = apart = 0.0
    for node, end, other in zip(firsts.tolist(), ends, others, strict=True):
        if node not in (end, other):
            linked += similarity(node, end)
            apart += similarity(node, other)
    return ODD if linked > apart else 0.0


def _scale(degrees: NDArray[np.float64]) -> float:
    """Return log(volume / minimum degree), the maximum in pushed rows, because p(u, v) <= 1."""
    linked = degrees[degrees > 0]
    return float(np.log(linked.sum() / linked.min())) if linked.size > 1 else 1.0


class RowsBuilder(WholeBuilder):
    """Builds the ``rows`` layout."""

    spreads = True

    # -- the basis of a build ----------------------------------------------------------

    @property
    def _nearest(self) -> NearestBuilder:
        settings = self.plan.settings
        chosen = {NEIGHBORS.name: self._sizes[0] - 1, MAX_DEGREE.name: settings[MAX_DEGREE]}
        own = PartSettings.checked(SNN.build, chosen)
        plan = replace(self.plan, measure=SNN, settings=own, weighted=False)
        found = NearestBuilder(self.graph, self.links, plan, self.means)
        found.own = OWN
        return found

    @property
    def _listed(self) -> bool:
        return MAX_DEGREE in self.plan.settings

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """Return the sizes of rows; a refresh retains the sizes for the old graph."""
        nodes = self.links.nodes if self._old is None else self._old.ids.size
        return row_sizes(self.plan.settings[SIZE], nodes)

    @property
    def step(self) -> int:
        """Return the number of rows that a worker makes at a time."""
        return _FEW if self.streaming else _STEP

    def _need(self, threads: int) -> int:
        links = self.links
        each = _NODE + threads * _THREAD + _OLD * (self.plan.old is not None)
        held = 2 * links.nbytes * (1 + self.plan.weighted) + each * links.nodes
        return int(held) + _BUFFERS

    @property
    def _row_count(self) -> int:
        wanted = self.plan.wanted
        return self.links.nodes if wanted is None or self.elsewhere is not None else wanted.count

    @cached_property
    def fit(self) -> MemoryPlan:
        """Plan the memory; raises :class:`ResourceError` if it is insufficient."""
        nodes = self.links.nodes
        least = (_NODE + _THREAD) * nodes + _LEAST
        what = f"rows of {nodes:,} nodes"
        return plan_rows(self.means, lambda n: max(least, self._need(n)), least, what, "rows")

    @cached_property
    def streaming(self) -> bool:
        """Return whether links are in scratch files, which are evicted after reading."""
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
        pushed, each = pilot(lambda some: pusher(some)[1].size, nodes, _PILOTS)
        seconds += each / fit.threads * nodes
        families = (pushed,) if nearest is None else (entries / nodes, pushed)
        stored = self.plan.stored_nodes(nodes)
        size = sum(int(10 * each * stored) + 12 * stored + 8 * nodes for each in families)
        most = int(max(families) * stored)
        transposed = self.links.nbytes + 32 * nodes + 5 * (most + min(READ, most))
        taken = max(self._need(fit.threads), min(self.means.memory, transposed))
        fit = fit if self.streaming else replace(fit, memory=taken)
        seconds *= self._row_count / nodes
        return PartEstimate(size, fit, seconds * (1 + _SHARES[-1]))

    # -- the work --------------------------------------------------------------------------

    def write(self, directory: Path, progress: Progress) -> dict[str, Entry]:
        """Write lists, pushes, rows and columns."""
        stages, old = self._stages(progress), self._old
        files, only = ArrayFiles(directory, self.plan.prefix), self._chosen
        if self.plan.joined:
            same = "scales", "weights", "odd"
            families = join_rows(files, self.plan.joined, self.links.nodes, _ROWS, ["norms"], same)
            self._write_columns(files, families, [*stages][-1])
            return files.entries
        if old is not None:
            only = old.made if only is None else old.made & only
        weights = [each.weight for each in self.families]
        self._write_rows(files, stages, only)
        files.write("weights", np.float64, np.array(weights))
        if old is None:
            self.__dict__.pop("_walked", None)
        self._write_columns(files, len(weights), next(stages))
        if old is not None:
            self._report(old, files)
        progress(self.links.nodes, self.links.nodes)
        return files.entries

    @cached_property
    def _old(self) -> OldRows | None:
        return None if self.plan.old is None else self.plan.old()

    @property
    def families(self) -> list[Family]:
        """Return the rows to write."""
        scales, share = self._scales, 1 / (1 + self._listed)
        pushers = partial(self._pushers, self.fit.threads)
        families = [Family("pushed", pushers, self.step, scales[-1], share)]
        if self._listed:
            nearest = self._nearest
            families.insert(0, Family("lists", nearest.listers, nearest.pages, scales[0], share))
        return families

    @property
    def logged(self) -> float:  # type: ignore[override]
        """Return the fraction of the work for lists and pushed rows."""
        shares = _SHARES[1 - self._listed :]
        return sum(shares[:-1]) / sum(shares)

    def _stages(self, progress: Progress) -> Iterator[Progress]:
        """Yield a progress function for each stage, which reports a fraction of all nodes."""
        shares = 0, *_SHARES[1 - self._listed :]
        ends = np.cumsum(shares) / sum(shares) * (self.links.nodes - 1)
        for low, high in pairwise(ends.tolist()):

            def stage(done: int, total: int, low: float = low, high: float = high) -> None:
                progress(int(low + (high - low) * done / total), self.links.nodes)

            yield stage

    def _encoded(
        self, family: Family, only: Bools | None, progress: Progress, log: Path | None = None
    ) -> Generator[tuple[Ids, Codes]]:
        """Yield stored nodes, in order, and their rows, which are empty for nodes that are not in
        ``only`` (bool[nodes]).
        """
        nodes, wanted, step, at = self.links.nodes, self.plan.wanted, family.step, 0
        if self.elsewhere is not None and only is None:
            make: Making = partial(self._away, family.name)
            step *= _AWAY
        else:
            make = making(family.makers(), only)
        stored = None if wanted is None else wanted.ids()
        with closing(logged(make, step, nodes, log)) as rows:
            for made in rows:
                pages = np.arange(at, at + made[0].size, dtype=np.uint32)
                codes, at = encode(made, family.scale), at + made[0].size
                if stored is not None:
                    chosen = np.isin(pages, stored, assume_unique=True)
                    pages, codes = pages[chosen], _selected(codes, chosen)
                yield pages, codes
                progress(min(at, nodes - 1), nodes)

    def _away(self, kind: str, ranges: Sequence[range]) -> Iterator[Rows]:
        """Make rows of a ``kind`` on other machines."""
        assert self.elsewhere is not None
        return self.elsewhere((kind, nodes) for nodes in ranges)

    def piece(self, asked: tuple[str, range]) -> Rows:
        """Make the lists or the pushed rows of a node range."""
        kind, nodes = asked
        makers, step = self._making[kind]
        made = in_order(makers, [nodes[at : at + step] for at in range(0, len(nodes), step)])
        counts, ids, values = (np.concatenate(each) for each in zip(*made, strict=True))
        return counts, ids, values

    @cached_property
    def _making(self) -> dict[str, tuple[list[Any], int]]:
        return {each.name: (each.makers(), each.step) for each in self.families}

    def _pushers(self, count: int) -> list[Callable[[range], Rows]]:
        links, degrees = self._walked
        after = partial(self.give_back, links)
        keep, odd = self._sizes[1], self._odd
        return [Pusher(links, degrees, keep, odd, self.step, after) for _ in range(count)]

    @cached_property
    def _odd(self) -> float:
        """Return the weight of walks with an odd number of steps; a refresh retains the old one."""
        if self._old is not None:
            return float(self._old.part.array("odd")[0])
        links, degrees = self._walked
        return odd_weight(links, degrees, partial(self.give_back, links))

    @property
    def _chosen(self) -> Bools | None:
        """Return bool[nodes]: nodes whose rows are needed; None for all nodes, as on a cluster."""
        if self.plan.wanted is None or self.elsewhere is not None:
            return None
        found = np.zeros(self.links.nodes, bool)
        found[self.plan.wanted.ids()] = True
        return found

    @cached_property
    def _scales(self) -> list[float]:
        """Return each family's value of code 255; a local refresh retains the old values."""
        if self._old is not None:
            return self._old.scales
        return [1.0] * self._listed + [_scale(self._walked[1])]

    def _write_rows(
        self, files: ArrayFiles, stages: Iterator[Progress], only: Bools | None
    ) -> None:
        """Write rows in order, one family at a time."""
        old, norms = self._old, list[Ids]()
        with files.rows_writer(*_ROWS, np.uint8) as writer:
            for number, family in enumerate(self.families):
                place = files.directory / f"{self.plan.prefix}{family.name}.log"
                log, stage = place if old is None else None, next(stages)
                with closing(self._encoded(family, only, stage, log)) as rows:
                    for pages, made in rows:
                        codes = made if old is None else with_old(made, old, number, pages)
                        if old is not None and self.streaming:
                            old.evict()
                        writer.write(*codes[:3])
                        norms.append(codes[3])
        files.write("norms", np.uint32, np.concatenate(norms))
        files.write("scales", np.float64, np.array(self._scales))
        files.write("odd", np.float64, np.array([self._odd]))

    def _write_columns(self, files: ArrayFiles, families: int, progress: Progress) -> None:
        """Write the transpose of each family's rows."""
        rows, nodes = files.rows(*_ROWS), self.links.nodes
        pages = rows.nodes // families
        with files.rows_writer(*_COLUMNS, np.uint8) as writer:
            for number in range(families):
                own = replace(rows, offsets=rows.offsets[number * pages :][: pages + 1])
                writer.copy(columns_of(own, nodes, self.means.memory, files.directory))
                progress(number + 1, families)

    def _report(self, old: OldRows, files: ArrayFiles) -> None:
        """Measure the staleness of the retained rows, and write the result to a file."""
        pages, wanted = np.arange(self.links.nodes, dtype=np.uint32), self.plan.wanted
        pages = pages if wanted is None else wanted.ids()

        def make(places: NDArray[np.int64]) -> RowArrays:
            only = np.zeros(self.links.nodes, bool)
            only[pages[places]] = True
            made = [
                codes
                for family in self.families
                for _, codes in self._encoded(family, only, lambda done, total: None)
            ]
            counts, ids, codes, norms = (np.concatenate(each) for each in zip(*made, strict=True))
            offsets = np.concatenate((np.zeros(1, np.uint64), np.cumsum(counts)))
            return RowArrays((offsets, ids, codes), norms)

        rows, columns = (
            tuple(files.read(f"{kind}.{name}") for name in ("offsets", "ids", "codes"))
            for kind in ("rows", "columns")
        )
        stored, left = RowArrays(rows, files.read("norms")), np.flatnonzero(~old.made[pages])
        found = staleness(stored, columns, files.read("weights"), left, make)
        report = {"nodes": int(pages.size - left.size), **found}
        with staged_file(files.directory / report_file(self.plan.prefix)) as file:
            disk.write(file, json.dumps(report).encode())


def _selected(rows: Codes, chosen: Bools) -> Codes:
    counts, ids, codes, norms = rows
    entries = np.repeat(chosen, counts.astype(np.int64))
    return counts[chosen], ids[entries], codes[entries], norms[chosen]
