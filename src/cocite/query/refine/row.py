"""One row of SimRank, by its linearised form, between two bounds.

    s(u, v) = sum over l of c**l sum over w of (Q**l)(u, w) D(w) (Q**l)(v, w)

Two runs from u along the stored links (``kernels/linear.py``) leave a score out of which some is
missing, at most ``bound``; the diagonal is off by a factor between 1 + low and 1 + high
(``engine/diagonal.py``). So for v != u, all of it deterministic,

    found / (1 + high)  <=  s(u, v)  <=  (found + bound) / (1 + low)

Thresholds fall until the bound is what was asked for, or the next run would read more links than
allowed, or all that is missing lies behind the last level (where the decay is near 1); that is what
a bounded cost means here, and the bound says what came of it. A run depends
on the question alone, and not on the ones before.

Cost: the links read, some 4 ns each; a few hundred thousand a question on dense graphs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cocite.deadline import check
from cocite.engine.certificate import Diagonal
from cocite.engine.run_space import make_space
from cocite.graph.rows import Links
from cocite.layouts.scratch import QueryScratch

if TYPE_CHECKING:
    from cocite.kernels.linear import RunSpace

__all__ = ["Linear", "Row"]

_FIRST = 2e-5
"""The first threshold, as a part of the target: met by it on most graphs in one run or two."""
_LEFT_OUT = 1 / 40
"""What a step backward may leave out, as a part of the target."""
_SHARPER = 8.0
_ENTRIES = 1 << 16


@dataclass(frozen=True)
class Row:
    """What is known of a row of scores beside them: what may be missing, and the links read."""

    bound: float
    links: int


class Linear:
    """Rows of the SimRank scores of one graph, in one direction. Safe to share between threads."""

    def __init__(self, rows: Links, columns: Links, diagonal: Diagonal) -> None:
        """``rows`` are the ``in_links`` of a graph, ``columns`` its ``out_links``; or reversed."""
        from cocite.kernels.linear import Rows

        self._rows = Rows(rows.offsets, rows.neighbours)
        self._columns = Rows(columns.offsets, columns.neighbours)
        self.nodes, self.diagonal = rows.nodes, diagonal

    def add_row(
        self, node: int, target: float, most_links: int, weight: float, scratch: QueryScratch
    ) -> Row:
        """Add the scores with ``node``, times ``weight``, to the totals, off by ``target`` at most
        if some ``most_links`` links suffice.
        """
        from cocite.kernels import linear

        decay, table = self.diagonal.decay, self.diagonal.table
        threshold, links = target * _FIRST, 0
        with _borrowed(self.nodes) as lent:
            while True:
                check()
                level, bound, read = linear.forward(
                    self._rows, table, node, decay, threshold, lent.space
                )
                if level == linear.OVERFLOW:
                    lent.grow()
                    continue
                links += read
                if bound <= target or links * _SHARPER / 4 > most_links:
                    break
                if linear.in_vain(self._rows, threshold, target):
                    break
                threshold /= max(_SHARPER / 4, min(_SHARPER * 8, (bound / target) ** 2))
            here, size, more, read = linear.backward(
                self._rows, self._columns, table, level, decay, target * _LEFT_OUT, lent.space
            )
            scratch.have = int(
                linear.deposit(
                    lent.space,
                    here,
                    size,
                    weight * 1e12,
                    node,
                    scratch.totals,
                    scratch.touched,
                    scratch.have,
                )
            )
        return Row(bound + more, links + read)


class _Lent:
    """The space of one thread, for graphs of up to ``nodes`` nodes."""

    def __init__(self, nodes: int) -> None:
        self.nodes, self._entries = nodes, _ENTRIES
        self.space: RunSpace = make_space(nodes, _ENTRIES)

    def grow(self) -> None:
        """Twice the entries of a forward run."""
        self._entries *= 2
        more = make_space(0, self._entries)
        self.space = self.space._replace(nodes=more.nodes, amounts=more.amounts)


_local = threading.local()


@contextmanager
def _borrowed(nodes: int) -> Iterator[_Lent]:
    """The space of this thread, its values all zero; put back only if the question ends well."""
    found: _Lent | None = getattr(_local, "lent", None)
    if found is None or found.nodes < nodes:
        found = _Lent(nodes)
    _local.lent = None
    yield found
    _local.lent = found
