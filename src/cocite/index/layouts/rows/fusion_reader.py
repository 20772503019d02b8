"""The ``rows`` layout, and answers from it.

    rows.offsets, .ids, .codes        for each family and node, its row, in ascending id order
    columns.offsets, .ids, .codes     for each family and id, the nodes whose rows contain the id
    norms    uint32[rows]             each row's sum of code**2
    weights  float64[families]        each family's weight in scores
    scales   float64[families]        the value of code 255
    odd      float64[1]               the weight of walks with an odd number of steps

A pair merges two rows of each family; a list follows every entry of the node's rows to all nodes
with the same entry. Both add up integers, so their scores are bit-identical (``kernels/rows.py``).
One kernel call answers a query, or many nodes of a batch. ``measures/fusion.py`` describes the
cost.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS, Floats, Ids
from cocite.deadline import check
from cocite.index.layouts.contract import PartPlan, WholeFormat
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import (
    Estimate,
    Graphs,
    ListedHits,
    QueryScratch,
    Reader,
    Reasons,
    borrowed,
)
from cocite.index.layouts.rows.reader import StoredRows, declared, own_reasons
from cocite.kernels import rows as row_kernels
from cocite.measures import PartSettings
from cocite.measures.snn import MAX_DEGREE

_AT_ONCE = 64
"""Maximum number of lists per kernel call."""

Row = tuple[Ids, Floats]
_ENTRY = "ids", "codes", "|u1"


def _sizes(plan: PartPlan, nodes: int, graph_nodes: int) -> dict[str, int]:
    families = 1 + (MAX_DEGREE in plan.settings)
    return {"f": families, "r": families * nodes, "c": families * graph_nodes}


ROWS = WholeFormat(
    files=declared("rows", "r", *_ENTRY)
    | declared("columns", "c", *_ENTRY)
    | {"norms": "<u4[r]", "weights": "<f8[f]", "scales": "<f8[f]", "odd": "<f8[1]"},
    selects=True,
    sizes=_sizes,
)
"""The ``rows`` layout."""


def shared_nodes(
    weights: list[float], row: Callable[[int, int], Row], first: int, second: int
) -> tuple[Ids, Floats]:
    """Return the nodes shared by both rows in any family, ascending, and their contributions to the
    score. ``row`` returns the row of a family and node.
    """
    shares: dict[int, float] = {}
    for family, weight in enumerate(weights):
        (mine, codes), (theirs, others) = row(family, first), row(family, second)
        common, here, there = np.intersect1d(mine, theirs, return_indices=True)
        terms = np.minimum(codes[here], others[there]) ** 2
        whole = (codes**2).sum() + (others**2).sum() - terms.sum()
        for node, term in zip(common.tolist(), terms.tolist(), strict=True):
            shares[node] = shares.get(node, 0.0) + weight * term / whole
    order = sorted(shares)
    return np.array(order, np.uint32), np.array([shares[node] for node in order])


def _room(scratch: QueryScratch) -> tuple[NDArray[np.uint64], Ids]:
    """Return the scratch arrays for a kernel's sums, with one sum per node."""
    return scratch.sums.reshape(-1)[: len(scratch.sums)], scratch.used


class RowsReader(Reader):
    """The ``rows`` layout."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self._norms, self._weights = part.array("norms"), part.array("weights")
        self._rows = StoredRows(part, "rows", "ids", "codes")
        self._columns = StoredRows(part, "columns", "ids", "codes")
        self._graph_nodes = self._columns.count // self._weights.size
        """Number of nodes that may occur in rows."""
        if not ((self._weights > 0) & (self._weights <= 1)).all():
            raise part.damaged_file("weights")

    def row(self, family: int, node: int) -> Row:
        """Return the node's row: ids, ascending, and codes."""
        ids, codes = self._rows(family * self.part.nodes + node)
        return ids, codes.astype(np.float64)

    def column(self, family: int, node: int) -> Row:
        """Return the nodes whose rows contain ``node``: ids, ascending, and codes."""
        ids, codes = self._columns(family * self._graph_nodes + node)
        return ids, codes.astype(np.float64)

    def norms(self, family: int) -> Floats:
        """Return each row's sum of code**2 in a family."""
        nodes = self.part.nodes
        return self._norms[family * nodes : (family + 1) * nodes].astype(np.float64)

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of two nodes; a node scores 1 with itself."""
        check()
        if first == second:
            return Estimate(GRAINS, 0.0)
        grains = row_kernels.pair(self._rows.arrays, self._norms, self._weights, first, second)
        if grains < 0:
            raise self.part.damaged_file("rows.offsets")
        return Estimate(float(grains), 0.0)

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Add the contribution of each entry in the node's rows to all nodes that share it."""
        check()
        stored = self._rows.arrays, self._columns.arrays, (self._norms, self._weights)
        own = self.part.weight, (scratch.totals, scratch.touched), scratch.have
        scratch.have = self._checked(row_kernels.gather(*stored, node, _room(scratch), *own))

    def at_once(
        self, nodes: Ids, k: int, floor: float, bets: tuple[float, float], settings: PartSettings
    ) -> list[ListedHits] | None:
        """Return the first nodes' lists from one kernel call; None if the index has other parts."""
        check()
        if self.part.weight != 1:
            return None
        nodes, k = nodes[:_AT_ONCE], min(k, self.part.nodes)
        counts, ids = np.zeros(nodes.size, np.uint32), np.empty((nodes.size, k), np.uint32)
        hits = np.empty((nodes.size, k, 4))
        stored = self._rows.arrays, self._columns.arrays, self._norms, self._weights
        with borrowed(self.part.nodes) as scratch:
            given = *stored, nodes, floor, _room(scratch), (counts, ids, hits)
            scratch.wear += self._checked(row_kernels.answer(*given))
        sizes = counts.tolist()
        return [ListedHits(ids[i, :size], hits[i, :size], None) for i, size in enumerate(sizes)]

    def _checked(self, count: int) -> int:
        if count < 0:
            raise self.part.damaged_file("columns.offsets")
        return count

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the nodes shared by both rows in any family, with their total contributions."""
        nodes, shares = shared_nodes(self.weights, self.row, first, second)
        return own_reasons(self.part, self._graph_nodes, (first, second), nodes, shares)

    @property
    def weights(self) -> list[float]:
        """Return the family weights."""
        found: list[float] = self._weights.tolist()
        return found
