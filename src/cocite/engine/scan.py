"""The scan: every node combines the values of its in-neighbours.

    y[v] = start[v] (+) x[u1] (+) x[u2] (+) ...      u1 < u2 < ... the in-neighbours of v

(+) is a :class:`Fold`: sum, min or max; without ``start`` it begins with its identity, which is
what a node without in-links gets. x holds one value a node, or a row of *lanes* of up to 64 bytes,
a cache line: 16 samples of 32 bits cost about three times as much as one. What is to be done
to values before they are combined, f(x[u]), the caller does to x: dividing by the
out-degrees, for PageRank.

Sums of floats are added up in float64 and rounded once; sums of uint32 are modulo 2**32. Min and
max pass over an x that is not a number.

In memory, ranges of destinations go to all cores. With less, the links are read from disk past x
and y; with less still, blocks of destinations are scanned one after another, with their links
arranged by source (``engine/arrangement.py``), and x and y are files themselves. Each y[v] is
combined in ascending order of source in all of them, so threads, blocks and budgets do not change
a bit of it.

Cost: O(links * lanes); 3 ns a link with 16 lanes of 32 bits in memory, 1.5 to 3.5 times that in
blocks. What is read from disk is in ``scan_plan.py``.
Source: 004, section 3; with min, 001, section 2.3.1.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cocite.engine.arrangement import Arrangement, Block
from cocite.engine.scan_plan import ROW_BYTES, ScanPlan, Way
from cocite.errors import UsageError
from cocite.graph.rows import Links
from cocite.runner import Pace, in_order
from cocite.store import Scratch, forget

__all__ = ["Fold", "Scan"]

Values = NDArray[Any]
Progress = Callable[[int, int], None]


class Fold(Enum):
    """How values are combined; with the identity element of each."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"

    def identity(self, dtype: DTypeLike) -> Any:
        """What changes nothing: 0, the largest value, the smallest value."""
        kind: np.dtype[Any] = np.dtype(dtype)
        if self is Fold.SUM:
            return kind.type(0)
        if kind.kind == "f":
            return kind.type(np.inf if self is Fold.MIN else -np.inf)
        limits = np.iinfo(kind)
        return kind.type(limits.max if self is Fold.MIN else limits.min)


class Scan:
    """Scans one set of links, as often as needed, for rows of one dtype and number of lanes.

    They must be those of a checked graph (:meth:`Graph.check`), in-links or out-links. ``plan``
    says how it goes, and when the links are arranged also what is read.
    """

    def __init__(
        self,
        links: Links,
        plan: ScanPlan,
        *,
        progress: Progress = lambda done, total: None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """Make ready; out of core, arrange the links.

        Parameters
        ----------
        links, plan
            What :func:`plan_scan` made of these very links.
        progress
            Called with (links arranged, links) while they are arranged.
        folder
            Where scratch files lie, such as a store; by default among temporary files.

        Raises
        ------
        ResourceError
            If the disk has no room for what is arranged.
        """
        self._links, self._lanes, self._dtype = links, plan.lanes, np.dtype(plan.dtype)
        self.plan, self._pace = plan, Pace()
        self._scratch, self._arranged = Scratch(None), Arrangement(np.empty(0, np.uint32), ())
        if self.plan.way is Way.BLOCKS:
            self._scratch = Scratch.beside(folder or tempfile.gettempdir())
            self._arranged = Arrangement.of(links, self.plan, self._scratch, progress)
            again = self.plan.blocks * plan.lanes * self._dtype.itemsize * links.nodes
            self.plan = replace(self.plan, reads=again + self._arranged.nbytes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of x and y: (nodes,) for one lane, else (nodes, lanes)."""
        nodes = self._links.nodes
        return (nodes,) if self._lanes == 1 else (nodes, self._lanes)

    def vector(self) -> Values:
        """Zeros for an x or y: in memory, each row in one cache line, or on disk, as planned."""
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
        progress: Progress = lambda done, total: None,
    ) -> Values:
        """Scan once.

        Parameters
        ----------
        x
            The values, f applied: of ``shape`` and the scan's dtype, contiguous.
        fold
            How they are combined.
        start
            What every node begins with, like x: x itself, to count a node among its in-neighbours.
            By default the identity.
        out
            Where the result goes, like x; it may be ``start``, but not x. By default a new
            :meth:`vector`.
        progress
            Called with (ranges or blocks done, their number).

        Returns
        -------
        out

        Raises
        ------
        UsageError
        """
        begin = np.empty(0, self._dtype) if start is None else self._flat("start", start)
        result = self.vector() if out is None else out
        values, written = self._flat("x", x), self._flat("out", result)
        if not written.flags.writeable or np.may_share_memory(values, written):
            raise UsageError("out is x, or read-only; give another array")
        work = self._push if self.plan.way is Way.BLOCKS else self._pull
        for done, _ in enumerate(work(values, fold, begin, written), 1):
            progress(done, self.plan.blocks)
        return result

    def _flat(self, name: str, values: Values) -> Values:
        if (
            values.shape != self.shape
            or values.dtype != self._dtype
            or not values.flags.c_contiguous
        ):
            raise UsageError(
                f"{name} is {values.dtype}{list(values.shape)}; this scan takes contiguous "
                f"{self._dtype}{list(self.shape)}"
            )
        return values.reshape(-1)

    def _identity(self, fold: Fold) -> tuple[Any, ...]:
        """Once for every lane, in the accumulator's dtype."""
        wide = fold is Fold.SUM and self._dtype.kind == "f"
        return (fold.identity(np.float64 if wide else self._dtype),) * self._lanes

    def _pull(self, x: Values, fold: Fold, start: Values, out: Values) -> Iterator[None]:
        """Ranges of destinations, from the stored links."""
        from cocite.kernels import scan

        links, lanes, plan = self._links, self._lanes, self.plan
        code, identity = getattr(scan, fold.name), self._identity(fold)

        def work(bounds: tuple[int, int]) -> None:
            first, last = bounds
            part = slice(first * lanes, last * lanes)
            offsets = links.offsets[first : last + 1]
            scan.pull(offsets, links.neighbours, x, start[part], code, identity, out[part])
            if plan.way is Way.STREAMED:
                forget(offsets, links.neighbours[int(offsets[0]) : int(offsets[-1])])

        bounds = pairwise((0, *plan.cuts, links.nodes))
        return in_order([work] * plan.threads, bounds, self._pace)

    def _push(self, x: Values, fold: Fold, start: Values, out: Values) -> Iterator[None]:
        """Blocks of destinations, from the arranged links."""
        from cocite.kernels import scan

        lanes, window = self._lanes, self.plan.window
        words, nodes = self._arranged.words, self._links.nodes
        code, identity = getattr(scan, fold.name), self._identity(fold)

        def work(block: Block) -> None:
            part = slice(block.first * lanes, block.last * lanes)
            total = np.full(part.stop - part.start, identity[0])
            if start.size:
                _copy(start[part], total, window * lanes)
            at = [np.uint64(begin) for begin, _ in block.strips]
            for low in range(0, nodes, window):
                stop = np.uint64(low + window)
                for i, (_, end) in enumerate(block.strips):
                    here = at[i]
                    at[i] = np.uint64(scan.push(words[:end], here, x, stop, code, identity, total))
                    forget(words[here : at[i]])
                forget(x[low * lanes : (low + window) * lanes])
            for begin, end in block.strips:  # where a strip was looked at, but not read, too
                forget(words[begin:end])
            _copy(total, out[part], window * lanes)

        return in_order([work] * self.plan.threads, self._arranged.blocks, self._pace)


def _copy(source: Values, target: Values, piece: int) -> None:
    """Copy piece by piece, so that of arrays on disk no more is in memory at a time."""
    for low in range(0, source.size, piece):
        part = slice(low, low + piece)
        target[part] = source[part]
        forget(source[part], target[part])
