"""Combine the values of every node's in-neighbors (a scan), and compute min-hashes.

    y[v] = start[v] (+) x[u1] (+) x[u2] (+) ...      u1 < u2 < ... the in-neighbors of v

(+) is a :class:`Fold`. x has one value per node, or a row of *lanes* of up to 64 bytes, a cache
line. Float sums are accumulated in float64 and rounded once; sums of uint32 are modulo 2**32. Min
and max ignore NaN in x. ``engine/plan.py`` decides where links, x and y are. Each y[v] is combined
in ascending order of source, so results are bit-identical for any number of threads, blocks and
memory budget.

A scan costs O(links * lanes): 3 ns per link for 16 lanes of 32 bits in memory, 1.5 to 3.5 times as
much in blocks. Source: Haveliwala, *Efficient computation of PageRank*, section 3; for min,
Fogaras, Racz, *Scaling link-based similarity search*, section 2.3.1.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cocite.cluster import Pace, in_order
from cocite.engine.arrangement import SourceWords, Strip, sorted_links, words_of
from cocite.engine.plan import ROW_BYTES, ScanPlan, Way, plan_scan
from cocite.errors import UsageError
from cocite.graph.blocks import Links
from cocite.kernels import minhash, random, scan
from cocite.resources import Resources
from cocite.storage import evict
from cocite.storage.spool import Scratch

Values = NDArray[Any]


class Fold(Enum):
    """The operation that combines values."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"

    def identity(self, dtype: DTypeLike) -> Any:
        """Return the identity: 0, or the largest or smallest value."""
        kind: np.dtype[Any] = np.dtype(dtype)
        if self is Fold.SUM:
            return kind.type(0)
        if kind.kind == "f":
            return kind.type(np.inf if self is Fold.MIN else -np.inf)
        limits = np.iinfo(kind)
        return kind.type(limits.max if self is Fold.MIN else limits.min)

    def combination(self, dtype: DTypeLike, lanes: int) -> tuple[Any, tuple[Any, ...]]:
        """Return the kernels' code for the operation, and the accumulator's identity per lane."""
        wide = self is Fold.SUM and np.dtype(dtype).kind == "f"
        return getattr(scan, self.name), (self.identity(np.float64 if wide else dtype),) * lanes


class Scan:
    """Scans a set of links repeatedly, for one dtype and number of lanes.

    The links must be the in-links or out-links of a checked graph (:meth:`Graph.check`). Arranging
    links in blocks updates ``plan`` with the bytes to read.
    """

    def __init__(
        self,
        links: Links,
        plan: ScanPlan,
        *,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """Prepare the scan according to ``plan``, from :func:`plan_scan`. For blocks, arrange the
        links in scratch files in ``folder`` (by default the system's temporary directory); raises
        ``ResourceError`` if the files exceed the disk space.
        """
        self._links, self._lanes, self._dtype = links, plan.lanes, np.dtype(plan.dtype)
        self.plan, self._pace = plan, Pace()
        self._scratch = Scratch(None)
        if self.plan.way is Way.BLOCKS:
            self._scratch = Scratch.near(folder or tempfile.gettempdir())
            end = self._arrange()
            again = self.plan.blocks * plan.lanes * self._dtype.itemsize * links.nodes
            self.plan = replace(self.plan, reads=again + 4 * end)

    def _arrange(self) -> int:
        """Arrange the links for the plan's blocks; return the number of words."""
        links, plan = self._links, self.plan
        self._words = SourceWords(self._scratch.zeros(2 * links.edges, np.uint32))
        words, bounds = self._words.words, list(pairwise((0, *plan.cuts, links.nodes)))
        blocks: list[list[Strip]] = [[] for _ in bounds]
        end = 0

        def arrange(part: _Part) -> tuple[_Part, NDArray[np.uint32]]:
            return part, _arranged(links, part)

        for part, found in in_order([arrange] * plan.threads, _parts(links, bounds, plan.strip)):
            begin, end = end, end + found.size
            words[begin:end] = found
            blocks[part.block].append((begin, end))
            evict(words[begin:end], links.neighbors[part.begin : part.end], links.offsets)
        self._blocks = list(zip(bounds, blocks, strict=True))
        return end

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of x and y: (nodes,) for one lane, otherwise (nodes, lanes)."""
        nodes = self._links.nodes
        return (nodes,) if self._lanes == 1 else (nodes, self._lanes)

    def vector(self) -> Values:
        """Allocate zeros for x or y, as planned: on disk, or in memory, aligned to cache lines."""
        if self._scratch.on_disk:
            return self._scratch.zeros(self.shape, self._dtype)
        size = self._links.nodes * self._lanes * self._dtype.itemsize
        room = np.zeros(size + ROW_BYTES, np.uint8)
        skip = -room.ctypes.data % ROW_BYTES
        found: Values = room[skip : skip + size].view(self._dtype).reshape(self.shape)
        return found

    def __call__(
        self,
        x: Values,
        fold: Fold,
        *,
        start: Values | None = None,
        out: Values | None = None,
    ) -> Values:
        """Scan once; return ``out``, by default a new :meth:`vector`.

        All arrays are contiguous, with :attr:`shape` and the scan's dtype. ``start`` has the
        initial values, by default the identity; pass x to count each node as its own in-neighbor.
        ``out`` may be ``start``, but not x. Raises ``UsageError`` for other arrays.
        """
        begin = np.empty(0, self._dtype) if start is None else self._flat("start", start)
        result = self.vector() if out is None else out
        values, written = self._flat("x", x), self._flat("out", result)
        if not written.flags.writeable or np.may_share_memory(values, written):
            raise UsageError("out must be a writable array that does not share memory with x")
        work = self._push if self.plan.way is Way.BLOCKS else self._pull
        for _ in work(values, fold, begin, written):
            pass
        return result

    def _flat(self, name: str, values: Values) -> Values:
        if (
            values.shape != self.shape
            or values.dtype != self._dtype
            or not values.flags.c_contiguous
        ):
            raise UsageError(
                f"{name} is {values.dtype}{list(values.shape)}; this scan requires contiguous "
                f"{self._dtype}{list(self.shape)}"
            )
        return values.reshape(-1)

    def _pull(self, x: Values, fold: Fold, start: Values, out: Values) -> Iterator[None]:
        links, lanes, plan = self._links, self._lanes, self.plan
        combination = fold.combination(self._dtype, lanes)

        def work(bounds: tuple[int, int]) -> None:
            first, last = bounds
            part = slice(first * lanes, last * lanes)
            offsets = links.offsets[first : last + 1]
            scan.pull(offsets, links.neighbors, x, start[part], *combination, out[part])
            if plan.way is Way.STREAMED:
                evict(offsets, links.neighbors[int(offsets[0]) : int(offsets[-1])])

        bounds = pairwise((0, *plan.cuts, links.nodes))
        return in_order([work] * plan.threads, bounds, self._pace)

    def _push(self, x: Values, fold: Fold, start: Values, out: Values) -> Iterator[None]:
        lanes, window, nodes = self._lanes, self.plan.window, self._links.nodes
        combination = fold.combination(self._dtype, lanes)

        def work(block: tuple[tuple[int, int], list[Strip]]) -> None:
            (first, last), strips = block
            part = slice(first * lanes, last * lanes)
            total = np.full(part.stop - part.start, combination[1][0])
            if start.size:
                _copy(start[part], total, window * lanes)
            self._words.push(strips, slice(0, nodes), window, x, total, combination)
            _copy(total, out[part], window * lanes)

        return in_order([work] * self.plan.threads, self._blocks, self._pace)


class _Part(NamedTuple):
    """Links [begin, end) of the graph, all into the block that begins at node ``first``."""

    block: int
    first: int
    begin: int
    end: int


def _parts(links: Links, bounds: list[tuple[int, int]], most: int) -> Iterator[_Part]:
    for block, (first, last) in enumerate(bounds):
        begin, end = int(links.offsets[first]), int(links.offsets[last])
        for low in range(begin, end, most):
            yield _Part(block, first, low, min(low + most, end))


def _arranged(links: Links, part: _Part) -> NDArray[np.uint32]:
    at, offsets = np.uint64(part.begin), links.offsets
    row = np.uint64(np.searchsorted(offsets, at, side="right") - 1)
    keys = np.empty(part.end - part.begin, np.uint64)
    scan.pair(offsets, links.neighbors, at, row, np.uint64(part.first), keys)
    return words_of(sorted_links(keys)[0])[0]


def _copy(source: Values, target: Values, piece: int) -> None:
    """Copy in chunks, so that only a small part of an array on disk is in memory."""
    for low in range(0, source.size, piece):
        part = slice(low, low + piece)
        target[part] = source[part]
        evict(source[part], target[part])


# Min-hashes: for each sample, the first node of each neighborhood in a random order of all nodes.
#
#     I_0(v) = {v},  I_k(v) = v and all nodes that reach v in at most k links
#     fp_k(v) = the smallest position of a node of I_k(v) in a random order
#             = min of fp_(k-1)(u) over u = v and the in-neighbors u of v
#
# The probability that two nodes have the same fp_k is their Jaccard coefficient, |I_k(u) n I_k(v)|
# / |I_k(u) u I_k(v)|. All rings of a sample (fp_1, fp_2, ...) use one order. It is drawn for (seed,
# sample, 0), which no walk uses: steps of walks count from 1. Samples are computed 16 at a time,
# one per lane of a scan with min; results do not depend on the grouping. Memory is two rows of 64
# bytes per node, or less with a smaller budget. Source: Fogaras, Racz, *Scaling link-based
# similarity search*, section 2.3 (Algorithm 3).

LANES = ROW_BYTES // 4
"""Samples computed together."""
_PIECE = 1 << 16
"""Nodes per chunk when converting nodes to positions, or positions to winners."""


def plan_ring_scan(links: Links, means: Resources) -> ScanPlan:
    """Plan the scans of :class:`HopNeighborhoods`; raises the errors of :func:`plan_scan`."""
    return plan_scan(links, means, lanes=LANES, dtype=np.uint32)


class Ring:
    """The min-hashes fp_k of some samples, with k = ``step``; valid until the next ring is
    computed.
    """

    def __init__(
        self, step: int, places: NDArray[np.uint32], orders: NDArray[np.uint32], threads: int
    ) -> None:
        self.step, self.places = step, places
        self._orders, self._threads = orders, threads

    def winners(self, out: NDArray[np.uint32] | None = None) -> NDArray[np.uint32]:
        """Return uint32[samples, nodes]: the first node of each neighborhood."""
        nodes = self.places.shape[0]
        found = np.empty((len(self._orders), nodes), np.uint32) if out is None else out

        def work(part: slice) -> None:
            minhash.winners(self._orders, self.places[part], np.uint64(part.start), found)
            evict(self.places[part], *found[:, part])

        for _ in in_order([work] * self._threads, _pieces(nodes)):
            pass
        return found


class HopNeighborhoods:
    """Computes the rings of up to 16 samples at a time."""

    def __init__(
        self,
        links: Links,
        plan: ScanPlan,
        length: int,
        seed: int,
        *,
        turn: int = 0,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """Prepare the scans according to ``plan``, from :func:`plan_ring_scan`; ``turn`` is added
        to the step number of draws.
        """
        self._length, self._seed, self._turn, self._nodes = length, seed, turn, links.nodes
        self._threads = plan.wanted
        self._scan = Scan(links, plan, folder=folder)
        self._now, self._next = self._scan.vector(), self._scan.vector()

    def __call__(self, samples: Sequence[int]) -> Iterator[Ring]:
        """Yield rings 1, 2, ..., length of 1 to 16 samples."""
        if not 1 <= len(samples) <= LANES:
            raise UsageError(f"samples has {len(samples)} samples; it must have 1 to {LANES}")
        orders = ring_orders(samples, self._nodes, self._seed, self._turn)

        def begin(part: slice) -> None:
            nodes = np.arange(part.start, part.stop, dtype=np.uint32)
            minhash.places(orders, nodes, self._now[part])
            evict(self._now[part])

        for _ in in_order([begin] * self._threads, _pieces(self._nodes)):
            pass
        for step in range(1, self._length + 1):
            self._scan(self._now, Fold.MIN, start=self._now, out=self._next)
            self._now, self._next = self._next, self._now
            yield Ring(step, self._now, orders[: len(samples)], self._threads)


def ring_orders(samples: Sequence[int], nodes: int, seed: int, turn: int) -> NDArray[np.uint32]:
    """Return uint32[LANES, ORDER_WORDS], an order per sample; unused lanes repeat the last."""
    orders = np.zeros((LANES, random.ORDER_WORDS), np.uint32)
    bits = np.uint64(random.order_bits(nodes))
    for lane in range(LANES):
        sample = samples[min(lane, len(samples) - 1)]
        key = random.draw_key(np.uint64(seed), np.uint64(sample), np.uint64(turn))
        random.make_order(np.uint64(key), bits, orders[lane])
    return orders


def _pieces(nodes: int) -> Iterator[slice]:
    bounds = [*range(0, nodes, _PIECE), nodes]
    return (slice(low, high) for low, high in pairwise(bounds))
