"""What a layout answers: a pair, all scores of a node, reasons; and the table of layouts.

An index is a sum of *parts*, each a measure in one direction with a weight; a reader answers for
one part. ``related`` is ``similarity`` with every node, sorted, to the bit: scores are whole grains
(``kernels/totals.py``), added up in one way. Every measure is a sum over pages, and the terms are
its reasons (:class:`Reasons`): where walks meet, neighbors or features in common, last steps.

A query adds up in arrays over all nodes (:class:`QueryScratch`), of which only the touched pages
exist: related nodes have neighboring ids, so an array beats a hash table by ten times. To have a
page anew takes 2 us, so the scratch is all zero between queries, and given back when it is worn.
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

from cocite.constants import ONE
from cocite.errors import Damaged
from cocite.graph.names import Names
from cocite.index.layouts.contract import PartFormat, SampledFormat
from cocite.index.layouts.part import StoredPart
from cocite.measures import PartSettings
from cocite.resources import Resources, available, cores

if TYPE_CHECKING:
    from cocite.graph import Graph
    from cocite.index.layouts.batch_maker import SampledBuilder, WholeBuilder


Paths = tuple[list[int], list[int]]
"""From the first node, and from the second, to the page: ids, the page last; empty if not known."""


@dataclass(frozen=True)
class Graphs:
    """Where the graphs behind an index come from: ``find`` gives that of a digest, None if it is
    not at hand, and raises what there is to say where no graph is given at all. ``means`` are for
    what is made of them.
    """

    find: Callable[[str], Graph | None]
    means: Resources


@dataclass(frozen=True)
class Reasons:
    """The reasons of one part for two different nodes, each page once, in no special order.

    ``nodes`` uint32[r] are the pages and ``shares`` float64[r] what each adds to the part's score;
    ``path`` gives the paths to the page of a row; ``samples`` int64[r] is in how many samples it
    was the reason, None where there are no samples. Ids from the number of nodes on are of what is
    no page, or ``gone``: words, or names, in order. ``unattributed`` is what pages add that are not
    known.
    """

    nodes: NDArray[np.uint32]
    shares: NDArray[np.float64]
    path: Callable[[int], Paths]
    samples: NDArray[np.int64] | None = None
    gone: tuple[str, ...] = ()
    unattributed: float = 0.0

    def named(self, ids: list[int], names: Names) -> tuple[str, ...]:
        """The names of some ids, those of pages that are gone among them."""
        there = [node for node in ids if node < len(names)]
        known = iter(names.names(np.array(there, np.uint32)))
        return tuple(
            next(known) if node < len(names) else self.gone[node - len(names)] for node in ids
        )


NOTHING = Reasons(np.empty(0, np.uint32), np.empty(0), lambda row: ([], []))
"""The reasons of a score of 0."""


def apportioned(
    score: float,
    nodes: NDArray[np.uint32],
    worths: NDArray[np.float64],
    path: Callable[[int], Paths],
) -> Reasons:
    """A score shared out among ``nodes`` in proportion to their ``worths``, those of 0 left out.

    Measures that divide a sum by what does not depend on its terms share out their score so.
    ``path`` gets a node's id.
    """
    found = worths > 0
    if score <= 0 or not found.any():
        return NOTHING
    nodes, worths = nodes[found], worths[found]
    return Reasons(nodes, score * (worths / worths.sum()), lambda row: path(int(nodes[row])))


# -- scratch -----------------------------------------------------------------------------


_MOST_MEMORY, _MOST_SHARE = 1 << 28, 32
"""Bytes of scratch that a thread may keep between two queries; or such a part of the memory that is
free as the first one is made, less where there are many cores, if it is more.
"""
_PAGE = 4096
_NODE = 44


class QueryScratch:
    """Sums of one thread. ``nodes`` is the most nodes of an index that it serves.

    ``totals`` float64[nodes, 2] (grains, variance) with the nodes that have one in
    ``touched[:have]``; ``sums`` uint64[nodes, 2], ``marks`` uint32[nodes] and ``used`` for a part's
    own samples, zero again when the part is done. ``touched`` and ``used`` uint32[2 nodes + 1] have
    room for as many again as there are nodes: a kernel that finds too many, as files are damaged,
    need look only now and then. Packed trees take one row more of the sums, as ``changes``, and all
    marks as ``bytes`` uint8 and ``eights`` uint64. ``below`` is whether scores below 0 are wanted,
    as others are to be added to them.
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
        """Make the arrays those of so many nodes: what goes beyond is then no node of theirs."""
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
    def scores(self) -> NDArray[np.float64]:
        """The sums as float64[nodes, 2]: of exact scores, and beside them what a push has left."""
        return self.sums.view(np.float64)

    def list_once(self) -> None:
        """List every node touched once: one whose total was 0 in between is there again."""
        nodes = np.unique(self.touched[: self.have])
        self.have = nodes.size
        self.touched[: nodes.size] = nodes

    def note_sums(self, count: int) -> None:
        """Of an answer that touched the nodes ``used[:count]``, in sums that are uint64[nodes]. Of
        small graphs, all of these may stay.
        """
        if 2 * _PAGE * self._pages.size > self._most:
            self._pages[self.used[:count] // (_PAGE // 8)] = True
            self._longest = max(self._longest, count)

    @property
    def worn(self) -> bool:
        """Whether its pages may have become too many to keep."""
        most = min(_NODE * self.nodes, 2 * _PAGE * self.wear)
        return most + _PAGE * int(np.count_nonzero(self._pages)) + 4 * self._longest > self._most


@cache
def _free() -> int:
    """Bytes, looked up once: it takes longer than a question."""
    return available()


def _mapped(size: int) -> NDArray[np.uint8]:
    """Zeros that exist page by page when touched: no huge pages for a few scattered cells.

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
    """The scratch of this thread, all zero; put back only if the query ends well."""
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


Ids = NDArray[np.uint32]
Values = tuple[NDArray[np.float64], NDArray[np.float64]]


class Estimate(NamedTuple):
    """A score in grains and the variance of its estimate: 0 if exact, nan if not known."""

    grains: float
    variance: float


class Span(NamedTuple):
    """What values can be: the least of a sample, the least that it can stand for, the most."""

    least: float
    beyond: float
    most: float

    def plus(self, other: Span, weight: float) -> Span:
        """That of the values plus ``weight`` times some others."""
        return Span(*(a + weight * b for a, b in zip(self, other, strict=True)))

    @property
    def width(self) -> float:
        """R."""
        return self.most - self.least


class ListedHits(NamedTuple):
    """Hits as they are told: uint32[h], float64[h, 4] (score, standard error, ends of the
    interval), and how many of the first stand in their order for certain, None if intervals tell.
    """

    ids: Ids
    rows: NDArray[np.float64]
    certain: int | None


class PairEvidence(NamedTuple):
    """What a part says of many pairs of different nodes: ``estimates`` float64[pairs, 2], grains
    and variances; ``values(some)``, of a slice of them, as :meth:`SampledReader.values` has them.
    """

    estimates: NDArray[np.float64]
    values: Callable[[slice], Values]


class Reader(ABC):
    """Answers for one part of an index. Safe to share between threads."""

    signed = False
    """Whether scores may be below 0, so that those of several parts may add up to it."""

    def __init__(self, part: StoredPart) -> None:
        self.part = part

    @property
    def unit(self) -> bool:
        """Whether no score is above 1."""
        return self.part.measure.unit

    @abstractmethod
    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """The score of two nodes, which may be the same one."""

    @property
    def pairs_from(self) -> int | None:
        """How many pairs :meth:`pairs` is quicker for than one after another; None if it answers
        for none.
        """
        return None

    def pairs(self, first: Ids, second: Ids, settings: PartSettings) -> PairEvidence:
        """Many pairs of different nodes at once, as :meth:`pair` says of each, to the bit."""
        raise NotImplementedError

    @abstractmethod
    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Add the scores of all nodes but ``node``, times the part's weight, to the totals."""

    def at_once(
        self, node: int, k: int, floor: float, bets: tuple[float, float], settings: PartSettings
    ) -> ListedHits | None:
        """The best ``k`` of ``node``, of at least ``floor`` grains, with intervals by betting, if
        the part is all that answers and can tell it in one go: what all its methods together tell,
        to the bit. ``bets`` are the wealth that gives up a mean, and what sums may be off by.
        """
        return None

    def many_at_once(
        self, nodes: Ids, k: int, floor: float, bets: tuple[float, float], settings: PartSettings
    ) -> list[ListedHits] | None:
        """The same of the first of some nodes, at least one, if one kernel finds all of it: for
        batches, without deadlines. Fastest where nodes next to each other are alike. Intervals are
        left out where no wealth gives up a mean.
        """
        return None

    def variances(self, node: int, others: Ids, settings: PartSettings) -> NDArray[np.float64]:
        """float64[h]: what ``gather`` left out of the variances of the best hits.

        For readers that learn a variance from more than they need for a score. By default nothing.
        """
        return np.zeros(others.size)

    def settle_exact(self, scratch: QueryScratch, count: int) -> None:
        """Add the exact scores of ``scratch.used[:count]``, whole grains in ``scratch.scores``, to
        the totals, times the part's weight.
        """
        from cocite.kernels import totals

        found, own = (scratch.scores, scratch.used, count), (scratch.totals, scratch.touched)
        scratch.have = int(totals.settle_exact(*found, self.part.weight, *own, scratch.have))

    @abstractmethod
    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """The pages that make up the score of two different nodes; their shares add up to it.

        ``graphs`` is asked for those that samples were drawn from where the part itself does not
        hold enough.
        """

    def certified(self, node: int, others: Ids, settings: PartSettings) -> NDArray[np.float64]:
        """float64[h, 2]: how far the true scores may be below and above what is computed.

        For what is certain; the uncertainty of samples is another matter. By default nothing.
        """
        return np.zeros((others.size, 2))


class SampledReader(Reader):
    """A part whose scores are means over samples."""

    def known(self, first: int, second: int) -> int:
        """Return how many samples, the newest ones, know both nodes."""
        return int(self.part.freshness.knowing(first, np.array([second]))[0])

    @abstractmethod
    def values(
        self, node: int, others: Ids, settings: PartSettings
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """float64[samples, h] twice: the value of each sample for ``node`` and others, none of them
        itself, and the most that it may stand for, where a sample does not go to its end. What the
        samples say that do not know both nodes means nothing.
        """

    @abstractmethod
    def span(self, settings: PartSettings) -> Span:
        """What the values of two different nodes can be."""


class SummingReader(SampledReader):
    """A part whose samples are added up as fixed-point sums, for each node that has any."""

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
        """Turn the sums of ``used`` with ``node``, over so many samples, into totals."""
        from cocite.kernels import totals

        counts, own = (used.size, float(samples)), (scratch.totals, scratch.touched, scratch.have)
        scratch.have = int(totals.settle(scratch.sums, used, *counts, self.part.weight, *own))

    @abstractmethod
    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """Fill ``scratch.sums`` and ``scratch.used``; returns how many nodes have a sum."""

    def estimated(self, values: NDArray[np.uint64], samples: int) -> Estimate:
        """From uint64[2]: a sum of fixed-point values, and of their squares, over ``samples``."""
        from cocite.kernels import totals

        grains, variance = totals.estimate(values[0], values[1], float(samples))
        return Estimate(float(grains), float(variance))


@lru_cache(maxsize=64)
def weights_of(values: tuple[float, ...]) -> NDArray[np.uint64]:
    """uint64[16, 2]: what meetings after 0..15 steps are worth and its square, fixed-point.

    Their rounding is below 2**-49. None is 0: a sum of 0 tells a kernel that a node was not met.
    """
    table = np.array([[max(1, round(w * ONE)), round(w * w * ONE)] for w in values], np.uint64)
    table.flags.writeable = False
    return table


# -- table -------------------------------------------------------------------------------


class _Row(NamedTuple):
    """Where the classes of a layout are, as ``module:class`` below this package; without a
    ``reader`` of its own, each measure names one.
    """

    format: str
    builder: str
    reader: str = ""


LAYOUTS = {
    "compact": _Row(
        "cocite.index.layouts.trees.format:CompactFormat",
        "cocite.index.layouts.trees.build:CompactBuilder",
        "cocite.index.layouts.trees.reader:CompactReader",
    ),
    "features": _Row(
        "cocite.index.layouts.rows.reader:FeaturesFormat",
        "cocite.index.layouts.rows.pagesim:FeaturesBuilder",
        "cocite.index.layouts.rows.reader:FeatureReader",
    ),
    "links": _Row(
        "cocite.index.layouts.links.common:LinksFormat",
        "cocite.index.layouts.links.build:LinksBuilder",
    ),
    "minhash": _Row(
        "cocite.index.layouts.minhash.format:MinhashFormat",
        "cocite.index.layouts.minhash.build:MinhashBuilder",
        "cocite.index.layouts.minhash.reader:MinhashReader",
    ),
    "nearest": _Row(
        "cocite.index.layouts.rows.reader:NearestFormat",
        "cocite.index.layouts.rows.neighbors:NearestBuilder",
        "cocite.index.layouts.rows.reader:NearestReader",
    ),
    "packed": _Row(
        "cocite.index.layouts.trees.format:PackedFormat",
        "cocite.index.layouts.trees.build:PackedBuilder",
        "cocite.index.layouts.trees.reader:TreeReader",
    ),
    "paths": _Row(
        "cocite.index.layouts.trees.format:PathsFormat",
        "cocite.index.layouts.trees.build:PathsBuilder",
        "cocite.index.layouts.trees.reader:PathReader",
    ),
    "rows": _Row(
        "cocite.index.layouts.rows.fusion_reader:RowsFormat",
        "cocite.index.layouts.rows.fusion:RowsBuilder",
        "cocite.index.layouts.rows.fusion_reader:RowsReader",
    ),
    "sketch": _Row(
        "cocite.index.layouts.minhash.format:MinhashFormat",
        "cocite.index.layouts.minhash.build:MinhashBuilder",
        "cocite.index.layouts.minhash.reader:SketchReader",
    ),
    "text": _Row(
        "cocite.index.layouts.rows.reader:TextFormat",
        "cocite.index.layouts.rows.words:TextBuilder",
        "cocite.index.layouts.rows.reader:WordsReader",
    ),
    "trees": _Row(
        "cocite.index.layouts.trees.format:TreesFormat",
        "cocite.index.layouts.trees.build:TreesBuilder",
        "cocite.index.layouts.trees.reader:TreeReader",
    ),
}
_DRAWN = {
    "compact": "cocite.index.layouts.trees.on_the_fly:OnTheFlyReader",
    "features": "cocite.index.layouts.rows.on_the_fly:OnTheFlyPageSimReader",
    "minhash": "cocite.index.layouts.minhash.on_the_fly:OnTheFlyMinhashReader",
    "nearest": "cocite.index.layouts.rows.on_the_fly:OnTheFlyNeighborReader",
    "packed": "cocite.index.layouts.trees.on_the_fly:OnTheFlyReader",
    "paths": "cocite.index.layouts.trees.on_the_fly:OnTheFlyReader",
    "rows": "cocite.index.layouts.rows.fusion_draft:UnseenRowsReader",
    "sketch": "cocite.index.layouts.minhash.on_the_fly:OnTheFlyMinhashReader",
    "text": "cocite.index.layouts.rows.on_the_fly:OnTheFlyWordsReader",
    "trees": "cocite.index.layouts.trees.on_the_fly:OnTheFlyReader",
}
"""What answers in the place of a layout where nothing is stored; links are read alike."""


def format_of(layout: str) -> PartFormat:
    """What lies where; raises :class:`Damaged`, as names come from manifests."""
    if layout not in LAYOUTS:
        raise Damaged(f"an index names the layout {layout!r}, which this release does not know")
    found: PartFormat = _found(LAYOUTS[layout].format)()
    return found


def is_sampled(layout: str) -> bool:
    """Return whether the layout is one of samples."""
    return layout in LAYOUTS and isinstance(format_of(layout), SampledFormat)


def sampled_format(layout: str) -> SampledFormat:
    """Of a layout of samples; raises :class:`Damaged` for another."""
    found = format_of(layout)
    if not isinstance(found, SampledFormat):
        raise Damaged(f"an index names the layout {layout!r} for samples, which it does not hold")
    return found


def sampled_builder(layout: str) -> SampledBuilder:
    """What makes the samples of a layout that has them."""
    found: SampledBuilder = _found(LAYOUTS[layout].builder)()
    return found


def whole_builder(layout: str) -> type[WholeBuilder]:
    """What makes the arrays of a layout that is made in one go."""
    found: type[WholeBuilder] = _found(LAYOUTS[layout].builder)
    return found


def reader_of(part: StoredPart) -> Reader:
    """What answers for a part; raises :class:`Damaged` for a layout that its measure has not."""
    drawn = _DRAWN.get(part.layout) if part.on_the_fly else None
    place = drawn or LAYOUTS[part.layout].reader or part.measure.reader
    if part.layout not in part.measure.layouts:
        raise Damaged(
            f"{part.store.path}: the manifest names a layout {part.layout!r} that "
            f"{part.measure.name} does not have"
        )
    found: Reader = _found(place)(part)
    return found


def _found(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
