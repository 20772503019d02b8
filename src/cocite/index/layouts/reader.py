"""The interface of readers, and the table of layouts.

A reader answers for one part of an index. Scores are whole grains (``kernels/totals.py``), so the
order of summation cannot change them, and ``related`` is bit-identical to sorting ``similarity``
over all nodes. Every score is a sum over pages; its terms are the reasons (:class:`Reasons`):
meeting points, common neighbors or features, or last steps.

Queries add up scores in arrays over all nodes (:class:`QueryScratch`); only memory pages that were
touched exist. Related nodes have nearby ids, so arrays are ten times faster than hash tables. A new
memory page takes 2 us, so the scratch is reused, all zero between queries, and freed once too many
pages exist.
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

from cocite.constants import GRAINS, ONE, Floats, Ids, Ints
from cocite.graph.names import Names
from cocite.index.layouts.contract import PartFormat, SampledFormat
from cocite.index.layouts.part import StoredPart
from cocite.kernels import totals
from cocite.measures import PartSettings
from cocite.resources import Resources, available, cores, resident
from cocite.storage import Store

if TYPE_CHECKING:
    from cocite.graph import Graph
    from cocite.index.layouts.batch_maker import SampledBuilder, WholeBuilder


Paths = tuple[list[int], list[int]]
"""Paths from both nodes to a page, as ids that end with the page; empty if unknown."""


@dataclass(frozen=True)
class Graphs:
    """Access to an index's graphs. ``find`` returns the graph with a given digest, or None; it
    raises an error if no graph is available. ``means`` are the resources for data derived from the
    graphs.
    """

    find: Callable[[str], Graph | None]
    means: Resources


@dataclass(frozen=True)
class Reasons:
    """The reasons for one part's score of two different nodes, each page once, unordered.

    ``nodes`` uint32[r] contains the pages, and ``shares`` float64[r] each page's contribution to
    the score. ``path(i)`` returns the paths to the page ``nodes[i]``. ``samples`` int64[r] counts
    the samples that contribute to a page, or is None. The i-th id after all node ids is the word or
    removed page named ``gone[i]``. ``unattributed`` is the contribution of unknown pages.
    """

    nodes: Ids
    shares: Floats
    path: Callable[[int], Paths]
    samples: Ints | None = None
    gone: tuple[str, ...] = ()
    unattributed: float = 0.0

    def named(self, ids: list[int], names: Names) -> tuple[str, ...]:
        """Return the names of ``ids``, which may include entries of ``gone``."""
        there = [node for node in ids if node < len(names)]
        known = iter(names.names(np.array(there, np.uint32)))
        return tuple(
            next(known) if node < len(names) else self.gone[node - len(names)] for node in ids
        )


NOTHING = Reasons(np.empty(0, np.uint32), np.empty(0), lambda row: ([], []))
"""The reasons of a score of 0."""


def apportioned(score: float, nodes: Ids, worths: Floats, path: Callable[[int], Paths]) -> Reasons:
    """Divide a score among ``nodes`` in proportion to ``worths``, omitting nodes with worth 0.

    Suits measures that divide a sum by a value independent of the terms. ``path`` is called with a
    node's id.
    """
    found = worths > 0
    if score <= 0 or not found.any():
        return NOTHING
    nodes, worths = nodes[found], worths[found]
    return Reasons(nodes, score * (worths / worths.sum()), lambda row: path(int(nodes[row])))


# -- scratch -----------------------------------------------------------------------------


_MOST_MEMORY, _MOST_SHARE = 1 << 28, 32
"""Maximum scratch that a thread keeps between queries: this many bytes or, if larger, the fraction
1/n of the memory that was free at first use, where n is at least 4 per core.
"""
_PAGE = 4096
NODE_SCRATCH = 44
"""Bytes of scratch per node per thread."""
_RUN, _RECORD = 4 << 16, 16
"""Approximate bytes mapped per query per sample (some runs, and 64 kB around each), and bytes per
node per sample.
"""


class QueryScratch:
    """One thread's sums, for indexes of at most ``nodes`` nodes.

    ``totals`` float64[nodes, 2] contains (grains, variance) for the nodes ``touched[:have]``. Each
    part uses ``sums`` uint64[nodes, 2], ``marks`` uint32[nodes] and ``used``, and resets them to
    zero. ``touched`` and ``used`` uint32[2 nodes + 1] have capacity for twice the nodes, so that
    kernels can check for damaged files less often. Packed trees use the sums with one more row
    (``changes``), and the marks as ``bytes`` uint8 and ``eights`` uint64. If ``below`` is true,
    negative scores are retained, because other parts will be added.
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
        """Limit the arrays to ``nodes`` nodes, so that larger ids are detected."""
        if nodes == self._lent:
            return
        self._lent = nodes
        totals, sums, marks, touched, used = self._whole
        self.totals, self.sums, self.marks = totals[:nodes], sums[:nodes], marks[:nodes]
        self.changes = sums[: nodes + 1]
        self.bytes, self.eights = marks.view(np.uint8), marks.view(np.uint64)
        self.touched, self.used = touched[: 2 * nodes + 1], used[: 2 * nodes + 1]

    @property
    def scores(self) -> Floats:
        """Return the sums as float64[nodes, 2]: exact scores, and a push's residuals."""
        return self.sums.view(np.float64)

    def list_once(self) -> None:
        """Remove duplicates, which arise when a node is listed again after its total was 0."""
        nodes = np.unique(self.touched[: self.have])
        self.have = nodes.size
        self.touched[: nodes.size] = nodes

    def note_sums(self, count: int) -> None:
        """Record that an answer touched the nodes ``used[:count]`` of sums uint64[nodes]. Does
        nothing for small graphs, whose scratch is always within the limit.
        """
        if 2 * _PAGE * self._pages.size > self._most:
            self._pages[self.used[:count] // (_PAGE // 8)] = True
            self._longest = max(self._longest, count)

    @property
    def worn(self) -> bool:
        """Return whether the scratch may occupy too many memory pages to be reused."""
        most = min(NODE_SCRATCH * self.nodes, 2 * _PAGE * self.wear)
        return most + _PAGE * int(np.count_nonzero(self._pages)) + 4 * self._longest > self._most


def pages_memory(nodes: int, samples: int) -> int:
    """Return the bytes of an index that the system maps for a query, including readahead."""
    return (samples + 1) * min(_RUN, _RECORD * nodes)


def release_pages(store: Store, memory: int, since: int = 0) -> None:
    """Release the index's mapped pages if the process uses more than ``memory + since`` bytes."""
    if resident() > memory + since:
        store.evict()


_free = cache(available)
"""Returns the free memory in bytes, cached because the lookup takes longer than a query."""


def _mapped(size: int) -> NDArray[np.uint8]:
    """Return a zeroed array whose pages are allocated on first touch, without huge pages, so that
    scattered cells take little memory. The mapping is private: a forked child gets a copy.
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
    """Yield this thread's scratch, all zero, which is reused only if the query succeeds."""
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
    """A score in grains, and its variance: 0 if the score is exact, NaN if unknown."""

    grains: float
    variance: float


class Span(NamedTuple):
    """The range of sample values: the smallest value, the smallest exact value that a sample may
    represent, and the largest value.
    """

    least: float
    beyond: float
    most: float

    def plus(self, other: Span, weight: float) -> Span:
        """Return the span of the values plus ``weight`` times values in ``other``."""
        return Span(*(a + weight * b for a, b in zip(self, other, strict=True)))

    @property
    def width(self) -> float:
        """Return the largest minus the smallest value."""
        return self.most - self.least


class ListedHits(NamedTuple):
    """Hits: ``ids`` uint32[h]; ``rows`` float64[h, 4] (score, standard error, interval ends); and
    the number of ``certain`` ranks, or None if the intervals determine it.
    """

    ids: Ids
    rows: Floats
    certain: int | None


class PairEvidence(NamedTuple):
    """One part's scores of many pairs of different nodes. ``estimates`` float64[pairs, 2] contains
    grains and variances; ``values`` returns a slice's values like :meth:`SampledReader.values`.
    """

    estimates: Floats
    values: Callable[[slice], Values]


class Reader(ABC):
    """Answers queries from one part of an index. Thread-safe."""

    signed = False
    """Whether scores, and therefore sums over parts, may be negative."""

    def __init__(self, part: StoredPart) -> None:
        self.part = part

    @property
    def unit(self) -> bool:
        """Return whether all scores are at most 1."""
        return self.part.measure.unit

    @abstractmethod
    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of two nodes, which may be equal."""

    def score(self, first: int, second: int, settings: PartSettings) -> float:
        """Return the score of two nodes."""
        return self.pair(first, second, settings).grains / GRAINS

    @property
    def pairs_from(self) -> int | None:
        """Return the number of pairs from which :meth:`pairs` is faster than :meth:`pair`; None if
        :meth:`pairs` is unsupported.
        """
        return None

    def pairs(self, first: Ids, second: Ids, settings: PartSettings) -> PairEvidence:
        """Score many pairs of different nodes, bit-identical to :meth:`pair`."""
        raise NotImplementedError

    @abstractmethod
    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Add the scores of all nodes except ``node``, times the part's weight, to the totals."""

    def at_once(
        self, nodes: Ids, k: int, floor: float, bets: tuple[float, float], settings: PartSettings
    ) -> list[ListedHits] | None:
        """Return the ``k`` best hits with at least ``floor`` grains, and their betting intervals,
        for one or more of ``nodes``, in order from the first; None if unsupported, or if the index
        has other parts.

        Results are bit-identical to those of the separate methods. ``bets`` contains the wealth at
        which a mean is rejected, and the rounding error of sums; intervals are omitted if no wealth
        rejects a mean. Only batches without deadlines pass several nodes; they are fastest if
        adjacent nodes are similar.
        """
        return None

    def variances(self, node: int, others: Ids, settings: PartSettings) -> Floats:
        """Return float64[h]: the hits' variances (default: 0), for readers whose ``gather`` omits
        variances because they need more data than scores.
        """
        return np.zeros(others.size)

    def settle_exact(self, scratch: QueryScratch, count: int) -> None:
        """Add the exact scores of ``scratch.used[:count]``, which are whole grains in
        ``scratch.scores``, times the part's weight, to the totals.
        """
        found, own = (scratch.scores, scratch.used, count), (scratch.totals, scratch.touched)
        scratch.have = int(totals.settle_exact(*found, self.part.weight, *own, scratch.have))

    @abstractmethod
    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the pages behind the score of two different nodes; the shares add up to the score.

        ``graphs`` provides the samples' graphs, for parts that do not store enough.
        """

    def certified(self, node: int, others: Ids, settings: PartSettings) -> Floats:
        """Return float64[h, 2]: how far exact scores may be below and above the computed scores
        (default: 0), apart from sampling errors.
        """
        return np.zeros((others.size, 2))


class SampledReader(Reader):
    """A part whose scores are means over samples."""

    def known(self, first: int, second: int) -> int:
        """Return the number of samples that contain both nodes; these samples are the newest."""
        return int(self.part.freshness.knowing(first, np.array([second]))[0])

    @abstractmethod
    def values(self, node: int, others: Ids, settings: PartSettings) -> tuple[Floats, Floats]:
        """Return two float64[samples, h]: the sample values (which truncation may lower) for
        ``node`` and each of ``others``, and upper bounds on the exact values.

        ``others`` must not contain ``node``. Values of samples without both nodes are undefined.
        """

    @abstractmethod
    def span(self, settings: PartSettings) -> Span:
        """Return the range of values for two different nodes."""


class SummingReader(SampledReader):
    """A part whose sample values are added up as fixed-point sums per node."""

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Gather the sums, then average each over the samples that contain both nodes."""
        used = scratch.used[: self.gather_sums(node, settings, scratch)]
        freshness = self.part.freshness
        if freshness.since is None:
            self._settle(node, scratch, used, self.part.samples)
            return
        known = freshness.knowing(node, used)
        for samples in np.unique(known).tolist():
            self._settle(node, scratch, used[known == samples], samples)

    def _settle(self, node: int, scratch: QueryScratch, used: Ids, samples: int) -> None:
        """Convert the sums of ``used`` over ``samples`` samples to totals."""
        given = scratch.sums, used, np.empty(0), float(samples), self.part.weight
        own = scratch.totals, scratch.touched, scratch.have
        scratch.have = int(totals.settle(*given, *own))

    @abstractmethod
    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """For each other node, sum the values with ``node`` in ``scratch.sums``. List the nodes
        with sums in ``scratch.used``; return their number.
        """

    def estimated(self, values: NDArray[np.uint64], samples: int) -> Estimate:
        """Return the estimate from ``values`` uint64[2], fixed-point sums of values and squares."""
        grains, variance = totals.estimate(values[0], values[1], float(samples))
        return Estimate(float(grains), float(variance))


@lru_cache(maxsize=64)
def weights_of(values: tuple[float, ...]) -> NDArray[np.uint64]:
    """Return uint64[16, 2]: the weights of meetings after 0..15 steps, and the squared weights, in
    fixed point.

    Rounding errors are below 2**-49. No weight is 0, because kernels treat nodes with a sum of 0 as
    not meeting.
    """
    table = np.array([[max(1, round(w * ONE)), round(w * w * ONE)] for w in values], np.uint64)
    table.flags.writeable = False
    return table


# -- table -------------------------------------------------------------------------------


LAYOUTS = {
    "compact": ("trees", "format:COMPACT", "build:CompactBuilder", "reader:CompactReader"),
    "features": ("rows", "reader:FEATURES", "pagesim:FeaturesBuilder", "reader:FeatureReader"),
    "links": ("links", "common:LINKS", "build:LinksBuilder", ""),
    "minhash": ("minhash", "reader:MINHASH", "build:MinhashBuilder", "reader:MinhashReader"),
    "nearest": ("rows", "reader:NEAREST", "neighbors:NearestBuilder", "reader:NearestReader"),
    "packed": ("trees", "format:PACKED", "build:PackedBuilder", "reader:TreeReader"),
    "paths": ("trees", "format:PATHS", "build:PathsBuilder", "reader:PathReader"),
    "rows": ("rows", "fusion_reader:ROWS", "fusion:RowsBuilder", "fusion_reader:RowsReader"),
    "sketch": ("minhash", "reader:MINHASH", "build:MinhashBuilder", "reader:SketchReader"),
    "text": ("rows", "reader:TEXT", "words:TextBuilder", "reader:WordsReader"),
    "trees": ("trees", "format:TREES", "build:TreesBuilder", "reader:TreeReader"),
}
"""The folder of each layout, and its format, builder and reader as ``module:class``. For a layout
without a reader, each measure specifies one.
"""
_DRAWN = {
    "features": "on_the_fly:OnTheFlyPageSimReader",
    "minhash": "reader:OnTheFlyMinhashReader",
    "nearest": "on_the_fly:OnTheFlyNeighborReader",
    "rows": "on_the_fly:UnseenRowsReader",
    "text": "on_the_fly:OnTheFlyWordsReader",
    "trees": "on_the_fly:OnTheFlyReader",
}
"""Readers for indexes with an unseen page, by layout or folder; ``links`` needs no special reader.
"""


def format_of(layout: str) -> PartFormat:
    """Return a layout's format."""
    found: PartFormat = _found(layout, LAYOUTS[layout][1])
    return found


def is_sampled(layout: str) -> bool:
    """Return whether the layout stores samples."""
    return isinstance(format_of(layout), SampledFormat)


def sampled_format(layout: str) -> SampledFormat:
    """Return the format of a layout with samples."""
    found = format_of(layout)
    assert isinstance(found, SampledFormat)
    return found


def sampled_builder(layout: str) -> SampledBuilder:
    """Return a layout's sample builder."""
    found: SampledBuilder = _found(layout, LAYOUTS[layout][2])()
    return found


def whole_builder(layout: str) -> type[WholeBuilder]:
    """Return the builder class of a layout without samples."""
    found: type[WholeBuilder] = _found(layout, LAYOUTS[layout][2])
    return found


def reader_of(part: StoredPart) -> Reader:
    """Return a part's reader."""
    folder, _, _, own = LAYOUTS[part.layout]
    drawn = _DRAWN.get(part.layout, _DRAWN.get(folder)) if part.on_the_fly else None
    found: Reader = _found(part.layout, drawn or own or part.measure.reader)(part)
    return found


def _found(layout: str, place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"cocite.index.layouts.{LAYOUTS[layout][0]}.{module}"), name)
