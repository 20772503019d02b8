"""The interface of readers: scores of a pair, of all nodes, and reasons; and the table of layouts.

An index is a sum of *parts*, each a measure in one direction with a weight; a reader answers for
one part. ``related`` equals ``similarity`` with every node, sorted, to the bit: scores are integer
grains (``kernels/totals.py``), added up in one way. Every measure is a sum over pages, and the
terms are its reasons (:class:`Reasons`): where walks meet, common neighbors or features, last
steps.

A query adds up in arrays over all nodes (:class:`QueryScratch`), of which only touched pages exist:
related nodes have nearby ids, so an array is ten times faster than a hash table. A new page takes 2
us, so the scratch is reused, all zero between queries, and released once too many pages exist.
"""

from __future__ import annotations

import mmap
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.constants import ONE, Floats, Ids, Ints
from cocite.errors import Damaged
from cocite.graph.names import Names
from cocite.index.layouts.contract import PartFormat, SampledFormat
from cocite.index.layouts.part import StoredPart
from cocite.measures import PartSettings
from cocite.resources import Resources, available, cores, resident
from cocite.storage import Store

if TYPE_CHECKING:
    from cocite.graph import Graph
    from cocite.index.layouts.batch_maker import SampledBuilder, WholeBuilder


Paths = tuple[list[int], list[int]]
"""Paths from both nodes to the page: ids, the page last; empty if unknown."""


@dataclass(frozen=True)
class Graphs:
    """Access to the graphs of an index. ``find`` returns the graph with a digest, None if it is
    missing, and raises an error if no graph is available at all. ``means`` are the resources for
    data derived from them.
    """

    find: Callable[[str], Graph | None]
    means: Resources


@dataclass(frozen=True)
class Reasons:
    """The reasons of one part for two different nodes, each page once, in no particular order.

    ``nodes`` uint32[r] are the pages and ``shares`` float64[r] what each adds to the part's score;
    ``path`` returns the paths to the page of a row; ``samples`` int64[r] counts the samples in
    which it was the reason, None without samples. Ids from the number of nodes on are words, or
    names of removed pages, in the order of ``gone``. ``unattributed`` is the share of unknown
    pages.
    """

    nodes: Ids
    shares: Floats
    path: Callable[[int], Paths]
    samples: Ints | None = None
    gone: tuple[str, ...] = ()
    unattributed: float = 0.0

    def named(self, ids: list[int], names: Names) -> tuple[str, ...]:
        """Return the names of some ids, including removed pages."""
        there = [node for node in ids if node < len(names)]
        known = iter(names.names(np.array(there, np.uint32)))
        return tuple(
            next(known) if node < len(names) else self.gone[node - len(names)] for node in ids
        )


NOTHING = Reasons(np.empty(0, np.uint32), np.empty(0), lambda row: ([], []))
"""The reasons of a score of 0."""


def apportioned(score: float, nodes: Ids, worths: Floats, path: Callable[[int], Paths]) -> Reasons:
    """Divide a score among ``nodes`` in proportion to their ``worths``, omitting those of 0.

    For measures whose sum has a divisor that does not depend on its terms. ``path`` is called with
    a node's id.
    """
    found = worths > 0
    if score <= 0 or not found.any():
        return NOTHING
    nodes, worths = nodes[found], worths[found]
    return Reasons(nodes, score * (worths / worths.sum()), lambda row: path(int(nodes[row])))


# -- scratch -----------------------------------------------------------------------------


_MOST_MEMORY, _MOST_SHARE = 1 << 28, 32
"""Bytes of scratch that a thread may keep between two queries; or, if that is more, this fraction
(1/n) of the memory that is free when the first scratch is made, and less where there are many
cores.
"""
_PAGE = 4096
NODE_SCRATCH = 44
"""Bytes of scratch per node and thread."""
_RUN, _RECORD = 4 << 16, 16
"""Bytes that a question maps a sample, about: some runs, and 64 kB around each; and bytes of a node
in a sample.
"""


class QueryScratch:
    """Sums of one thread, for indexes of at most ``nodes`` nodes.

    ``totals`` float64[nodes, 2] (grains, variance) of the nodes ``touched[:have]``; ``sums``
    uint64[nodes, 2], ``marks`` uint32[nodes] and ``used`` for a part's own samples, reset to zero
    after the part. ``touched`` and ``used`` uint32[2 nodes + 1] have space for twice the nodes, so
    that kernels need to check for damaged files only now and then. Packed trees use one more row of
    the sums, as ``changes``, and all marks as ``bytes`` uint8 and ``eights`` uint64. ``below``
    keeps scores below 0, as others will be added to them.
    """

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self._lent = -1
        self.have = 0
        self.wear = 0
        self.below = False
        self._most = max(_MOST_MEMORY, _free() // max(_MOST_SHARE, 4 * cores()))
        self._longest = 0
        self._pages = np.zeros(8 * nodes // _PAGE + 1, np.bool_)
        self._whole = (
            _mapped(16 * nodes).view(np.float64).reshape(-1, 2),
            _mapped(16 * (nodes + 1)).view(np.uint64).reshape(-1, 2),
            _mapped(8 * (nodes // 2 + 1)).view(np.uint32),
            _mapped(4 * (2 * nodes + 1)).view(np.uint32),
            _mapped(4 * (2 * nodes + 1)).view(np.uint32),
        )
        self.lend(nodes)

    def lend(self, nodes: int) -> None:
        """Size the arrays for this many nodes, so that larger ids are detected."""
        if nodes == self._lent:
            return
        self._lent = nodes
        totals, sums, marks, touched, used = self._whole
        self.totals, self.sums, self.marks = totals[:nodes], sums[:nodes], marks[:nodes]
        self.changes, self.bytes, self.eights = (
            sums[: nodes + 1],
            marks.view(np.uint8),
            marks.view(np.uint64),
        )
        self.touched, self.used = touched[: 2 * nodes + 1], used[: 2 * nodes + 1]

    @property
    def scores(self) -> Floats:
        """Return the sums as float64[nodes, 2]: exact scores, and the residuals of a push."""
        return self.sums.view(np.float64)

    def list_once(self) -> None:
        """Remove duplicate nodes, listed again after their total was 0."""
        nodes = np.unique(self.touched[: self.have])
        self.have = nodes.size
        self.touched[: nodes.size] = nodes

    def note_sums(self, count: int) -> None:
        """Record an answer that touched the nodes ``used[:count]``, in sums that are uint64[nodes].
        For small graphs, all pages of these may stay.
        """
        if 2 * _PAGE * self._pages.size > self._most:
            self._pages[self.used[:count] // (_PAGE // 8)] = True
            self._longest = max(self._longest, count)

    @property
    def worn(self) -> bool:
        """Return whether it may use too many pages to be reused."""
        most = min(NODE_SCRATCH * self.nodes, 2 * _PAGE * self.wear)
        return most + _PAGE * int(np.count_nonzero(self._pages)) + 4 * self._longest > self._most


def pages_memory(nodes: int, samples: int) -> int:
    """Return the bytes of an index that the system maps for a question: some runs a sample, and
    what is around them.
    """
    return (samples + 1) * min(_RUN, _RECORD * nodes)


def release_pages(store: Store, memory: int, since: int = 0) -> None:
    """Release the pages of an index if the process takes more than ``memory`` bytes beyond
    ``since``.
    """
    if resident() > memory + since:
        store.evict()


@cache
def _free() -> int:
    """Return the free memory in bytes, cached: the look-up takes longer than a query."""
    return available()


def _mapped(size: int) -> NDArray[np.uint8]:
    """Return a zeroed array whose pages are allocated on first touch, so a few scattered cells take
    no huge pages.

    Private to this process: a forked child has its own.
    """
    if not hasattr(mmap, "MAP_PRIVATE"):  # Windows
        return np.zeros(size, np.uint8)
    area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        area.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(area, np.uint8)


_local = threading.local()


@contextmanager
def borrowed(nodes: int) -> Iterator[QueryScratch]:
    """Lend this thread's scratch, all zero; it is reused only if the query succeeds."""
    found: QueryScratch | None = getattr(_local, "scratch", None)
    if found is None or found.nodes < nodes or found.worn:
        found = QueryScratch(nodes)
    found.lend(nodes)
    found.below = False
    _local.scratch = None
    yield found
    found.wear += found.have
    found.have = 0
    _local.scratch = found


Values = tuple[Floats, Floats]


class Estimate(NamedTuple):
    """A score in grains and the variance of its estimate: 0 if exact, NaN if unknown."""

    grains: float
    variance: float


class Span(NamedTuple):
    """Range of sample values: the least value, the least exact value that a sample may represent,
    the largest value.
    """

    least: float
    beyond: float
    most: float

    def plus(self, other: Span, weight: float) -> Span:
        """Return the span of the values plus ``weight`` times some others."""
        return Span(*(a + weight * b for a, b in zip(self, other, strict=True)))

    @property
    def width(self) -> float:
        """Return R."""
        return self.most - self.least


class ListedHits(NamedTuple):
    """Hits as returned: uint32[h]; float64[h, 4] (score, standard error, ends of the interval); and
    the number of certain ranks, None if they follow from the intervals.
    """

    ids: Ids
    rows: Floats
    certain: int | None


class PairEvidence(NamedTuple):
    """Result of a part for many pairs of different nodes: ``estimates`` float64[pairs, 2], grains
    and variances; ``values(some)`` for a slice of them, like :meth:`SampledReader.values`.
    """

    estimates: Floats
    values: Callable[[slice], Values]


class Reader(ABC):
    """Answers queries from one part of an index. Threads may share it."""

    signed = False
    """Whether scores, and so sums over parts, may be below 0."""

    def __init__(self, part: StoredPart) -> None:
        self.part = part

    @property
    def unit(self) -> bool:
        """Return whether all scores are at most 1."""
        return self.part.measure.unit

    @abstractmethod
    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of two nodes, which may be equal."""

    @property
    def pairs_from(self) -> int | None:
        """Return the number of pairs from which :meth:`pairs` is faster than single pairs; None if
        it is not supported.
        """
        return None

    def pairs(self, first: Ids, second: Ids, settings: PartSettings) -> PairEvidence:
        """Score many pairs of different nodes, bit-identical to :meth:`pair`."""
        raise NotImplementedError

    @abstractmethod
    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Add the scores of all nodes but ``node``, times the part's weight, to the totals."""

    def at_once(
        self, node: int, k: int, floor: float, bets: tuple[float, float], settings: PartSettings
    ) -> ListedHits | None:
        """Return the best ``k`` of ``node`` with at least ``floor`` grains, with intervals by
        betting, in one call, or None if this is not the only part or does not support it.
        Bit-identical to the separate methods. ``bets`` are the wealth at which a mean is rejected,
        and the rounding error of sums.
        """
        return None

    def many_at_once(
        self, nodes: Ids, k: int, floor: float, bets: tuple[float, float], settings: PartSettings
    ) -> list[ListedHits] | None:
        """Return the same for the first of some nodes, at least one, if one kernel can compute it;
        for batches without deadlines. Fastest if adjacent nodes are similar. Omits intervals if no
        wealth rejects a mean.
        """
        return None

    def variances(self, node: int, others: Ids, settings: PartSettings) -> Floats:
        """Return float64[h]: the variances of the best hits that ``gather`` omitted; by default 0.

        For readers that need more data for a variance than for a score.
        """
        return np.zeros(others.size)

    def settle_exact(self, scratch: QueryScratch, count: int) -> None:
        """Add the exact scores of ``scratch.used[:count]``, whole grains in ``scratch.scores``,
        times the part's weight, to the totals.
        """
        from cocite.kernels import totals

        found, own = (scratch.scores, scratch.used, count), (scratch.totals, scratch.touched)
        scratch.have = int(totals.settle_exact(*found, self.part.weight, *own, scratch.have))

    @abstractmethod
    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the pages behind the score of two different nodes; their shares add up to it.

        ``graphs`` provides the graphs of samples if the part does not store enough.
        """

    def certified(self, node: int, others: Ids, settings: PartSettings) -> Floats:
        """Return float64[h, 2]: how far the exact scores may be below and above the computed ones;
        by default 0.

        Covers only certain bounds, not the uncertainty of samples.
        """
        return np.zeros((others.size, 2))


class SampledReader(Reader):
    """A part whose scores are means over samples."""

    def known(self, first: int, second: int) -> int:
        """Return how many samples know both nodes; they are the newest ones."""
        return int(self.part.freshness.knowing(first, np.array([second]))[0])

    @abstractmethod
    def values(self, node: int, others: Ids, settings: PartSettings) -> tuple[Floats, Floats]:
        """Return two float64[samples, h]: the value of each sample for ``node`` and others, which
        must differ from it, and an upper bound on the exact value if a sample is truncated. Values
        of samples that do not know both nodes are undefined.
        """

    @abstractmethod
    def span(self, settings: PartSettings) -> Span:
        """Return the range of values for two different nodes."""


class SummingReader(SampledReader):
    """A part whose samples are added up as fixed-point sums, for each node that has one."""

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Gather the sums, then settle them, each over the samples that know both nodes."""
        used = scratch.used[: self.gather_sums(node, settings, scratch)]
        freshness = self.part.freshness
        if freshness.since is None:
            self._settle(node, scratch, used, self.part.samples)
            return
        known = freshness.knowing(node, used)
        for samples in np.unique(known).tolist():
            self._settle(node, scratch, used[known == samples], samples)

    def _settle(self, node: int, scratch: QueryScratch, used: Ids, samples: int) -> None:
        """Turn the sums of ``used`` with ``node``, over this many samples, into totals."""
        from cocite.kernels import totals

        given = scratch.sums, used, np.empty(0), float(samples), self.part.weight
        own = scratch.totals, scratch.touched, scratch.have
        scratch.have = int(totals.settle(*given, *own))

    @abstractmethod
    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """Fill ``scratch.sums`` and ``scratch.used``; return how many nodes have a sum."""

    def estimated(self, values: NDArray[np.uint64], samples: int) -> Estimate:
        """Return the estimate from uint64[2], fixed-point sums of values and squares."""
        from cocite.kernels import totals

        grains, variance = totals.estimate(values[0], values[1], float(samples))
        return Estimate(float(grains), float(variance))


@lru_cache(maxsize=64)
def weights_of(values: tuple[float, ...]) -> NDArray[np.uint64]:
    """Return uint64[16, 2]: the weights of meetings after 0..15 steps and their squares,
    fixed-point.

    Rounding errors are below 2**-49. No weight is 0, because kernels take a sum of 0 for a node
    that was not met.
    """
    table = np.array([[max(1, round(w * ONE)), round(w * w * ONE)] for w in values], np.uint64)
    table.flags.writeable = False
    return table


# -- table -------------------------------------------------------------------------------


LAYOUTS = {
    "compact": ("trees", "format:CompactFormat", "build:CompactBuilder", "reader:CompactReader"),
    "features": (
        "rows",
        "reader:FeaturesFormat",
        "pagesim:FeaturesBuilder",
        "reader:FeatureReader",
    ),
    "links": ("links", "common:LinksFormat", "build:LinksBuilder", ""),
    "minhash": ("minhash", "format:MinhashFormat", "build:MinhashBuilder", "reader:MinhashReader"),
    "nearest": ("rows", "reader:NearestFormat", "neighbors:NearestBuilder", "reader:NearestReader"),
    "packed": ("trees", "format:PackedFormat", "build:PackedBuilder", "reader:TreeReader"),
    "paths": ("trees", "format:PathsFormat", "build:PathsBuilder", "reader:PathReader"),
    "rows": ("rows", "fusion_reader:RowsFormat", "fusion:RowsBuilder", "fusion_reader:RowsReader"),
    "sketch": ("minhash", "format:MinhashFormat", "build:MinhashBuilder", "reader:SketchReader"),
    "text": ("rows", "reader:TextFormat", "words:TextBuilder", "reader:WordsReader"),
    "trees": ("trees", "format:TreesFormat", "build:TreesBuilder", "reader:TreeReader"),
}
"""Of each layout its folder here, and its classes as ``module:class``; without a reader, each
measure names one.
"""
_DRAWN = {
    "features": "on_the_fly:OnTheFlyPageSimReader",
    "minhash": "reader:OnTheFlyMinhashReader",
    "nearest": "on_the_fly:OnTheFlyNeighborReader",
    "rows": "fusion_draft:UnseenRowsReader",
    "text": "on_the_fly:OnTheFlyWordsReader",
    "trees": "replay:OnTheFlyReader",
}
"""Readers for drafts, by layout or its folder; the layout ``links`` is read as usual."""


def format_of(layout: str) -> PartFormat:
    """Return the files of a layout; raises :class:`Damaged`, as names come from manifests."""
    if layout not in LAYOUTS:
        raise Damaged(f"an index names the layout {layout!r}, which this release does not know")
    found: PartFormat = _found(layout, LAYOUTS[layout][1])()
    return found


def is_sampled(layout: str) -> bool:
    """Return whether the layout stores samples."""
    return layout in LAYOUTS and isinstance(format_of(layout), SampledFormat)


def sampled_format(layout: str) -> SampledFormat:
    """Return the format of a layout with samples; raises :class:`Damaged` for others."""
    found = format_of(layout)
    if not isinstance(found, SampledFormat):
        raise Damaged(f"an index names the layout {layout!r} for samples, which it does not hold")
    return found


def sampled_builder(layout: str) -> SampledBuilder:
    """Return the builder of samples of a layout."""
    found: SampledBuilder = _found(layout, LAYOUTS[layout][2])()
    return found


def whole_builder(layout: str) -> type[WholeBuilder]:
    """Return the builder of a layout without samples."""
    found: type[WholeBuilder] = _found(layout, LAYOUTS[layout][2])
    return found


def reader_of(part: StoredPart) -> Reader:
    """Return the reader of a part; raises :class:`Damaged` for a wrong layout."""
    if part.layout not in part.measure.layouts:
        raise Damaged(
            f"{part.store.path}: the manifest names a layout {part.layout!r} that "
            f"{part.measure.name} does not have"
        )
    folder, _, _, own = LAYOUTS[part.layout]
    drawn = _DRAWN.get(part.layout, _DRAWN.get(folder)) if part.on_the_fly else None
    found: Reader = _found(part.layout, drawn or own or part.measure.reader)(part)
    return found


def _found(layout: str, place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"cocite.index.layouts.{LAYOUTS[layout][0]}.{module}"), name)
