"""Asking for common neighbours: cocitation and coupling, exact.

A pair merges two rows of neighbours; related nodes are a row of the sparse product of the links
with their transpose, the neighbours taken in ascending order by both, so that both find the same
sum to the bit (``kernels/neighbours.py``).

Cost: related nodes one addition for each link of each neighbour, 1 to 3 ns each; a pair reads two
rows.
Source: Small 1973; Kessler 1963 (``measures/cocitation.py``).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cocite.codes import GRAINS
from cocite.graph.links import opposite
from cocite.layouts.links.format import NORMS
from cocite.layouts.reader import Estimate, Reader
from cocite.layouts.reasons import Graphs, Reasons, apportioned
from cocite.layouts.scratch import QueryScratch
from cocite.layouts.stored import StoredPart
from cocite.measures import PartSettings
from cocite.measures.cocitation import FORM, IDF

__all__ = ["CommonReader"]

_NO_NORMS = np.empty((0, 2))


class CommonReader(Reader):
    """The layout ``links`` for ``cocitation`` and ``coupling``."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self._way = part.measure.looks_at(part.direction)
        self._rows = part.links(self._way)
        self._columns = part.links(opposite(self._way))

    @cached_property
    def _sums(self) -> NDArray[np.float64]:
        return self.part.array(NORMS)

    def _norms(self, power: int) -> NDArray[np.float64]:
        """float64[nodes, 2], which kernels read where links are weighed only."""
        return self._sums if power else _NO_NORMS

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """The score of two nodes; a node is wholly similar to itself."""
        from cocite.kernels import neighbours

        power, form = _chosen(settings)
        if first == second and settings[FORM] != "count":
            return Estimate(float(GRAINS), 0.0)
        grains = float(
            neighbours.pair(
                self._rows.offsets,
                self._rows.neighbours,
                self._columns.offsets,
                self._norms(power),
                np.int64(first),
                np.int64(second),
                power,
                form,
            )
        )
        if grains == neighbours.DAMAGED:
            raise self.part.damaged_file(f"{self._way}_neighbours")
        return Estimate(grains, 0.0)

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """The common neighbours, by what each is worth."""
        score = self.pair(first, second, settings).grains / GRAINS
        rows, members = self._rows, self._columns.offsets
        cuts = (rows.offsets[node : node + 2].tolist() for node in (first, second))
        mine, theirs = (rows.neighbours[begin:end] for begin, end in cuts)
        common = np.intersect1d(mine, theirs, assume_unique=True)
        if common.size and int(common.max()) >= self.part.nodes:
            raise self.part.damaged_file(f"{self._way}_neighbours")
        power, _ = _chosen(settings)
        sizes = members[common + np.int64(1)] - members[common]
        worths = np.log(self.part.nodes / sizes) ** power
        return apportioned(score, common, worths, lambda node: ([first, node], [second, node]))

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Add up the common neighbours with everybody, divide, settle."""
        from cocite.kernels import neighbours, totals

        power, form = _chosen(settings)
        rows, columns, me = self._rows, self._columns, np.int64(node)
        values, used = scratch.sums.view(np.float64), scratch.used
        count = int(
            neighbours.gather(
                rows.offsets,
                rows.neighbours,
                columns.offsets,
                columns.neighbours,
                me,
                power,
                values,
                used,
            )
        )
        if count == neighbours.DAMAGED:
            raise self.part.damaged_file(f"{self._way}_neighbours")
        neighbours.normalise(values, used, count, me, rows.offsets, self._norms(power), power, form)
        scratch.have = int(
            totals.settle_exact(
                values,
                used,
                count,
                self.part.weight,
                scratch.totals,
                scratch.touched,
                scratch.have,
            )
        )


def _chosen(settings: PartSettings) -> tuple[int, int]:
    """(the power of the weights, the form) as kernels take them."""
    from cocite.kernels.neighbours import FORMS

    form = settings[FORM]
    power = 0 if not settings[IDF] else 2 if form == "cosine" else 1
    return power, FORMS.index(form)
