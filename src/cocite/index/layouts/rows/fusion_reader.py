"""The layout ``rows``, and answers from it.

    rows.offsets, .ids, .codes        for each family and node, its row, ids ascending
    columns.offsets, .ids, .codes     for each family and id, the nodes whose rows contain the id
    norms    uint32[rows]             each row's sum of code**2
    weights  float64[families]        each family's weight in scores
    scales   float64[families]        the value of code 255
    odd      float64[1]               the weight of walks with an odd number of steps

A pair merges two rows of each family; a list follows every entry of the node's rows to all nodes
with the same entry. Both add up integers, so they are equal to the bit (``kernels/rows.py``). One
kernel call answers a query, or many nodes of a batch. ``measures/fusion.py`` describes the cost.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS, Ids
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
from cocite.index.layouts.rows.reader import own_reasons
from cocite.measures import PartSettings
from cocite.measures.snn import MAX_DEGREE

_AT_ONCE = 64
"""Maximum number of lists per kernel call."""

Row = tuple[Ids, NDArray[np.float64]]


class RowsFormat(WholeFormat):
    """The layout ``rows``."""

    selects = spreads = True

    @classmethod
    def sizes_of(cls, plan: PartPlan, nodes: int, graph_nodes: int) -> dict[str, int]:
        """Return the numbers of families, rows, and columns."""
        families = 1 + (MAX_DEGREE in plan.settings)
        return {"f": families, "r": families * nodes, "c": families * graph_nodes}

    files: ClassVar[dict[str, str]] = {
        "rows.offsets": "<u8[r + 1]",
        "rows.ids": "<u4[E]",
        "rows.codes": "|u1[E]",
        "columns.offsets": "<u8[c + 1]",
        "columns.ids": "<u4[E]",
        "columns.codes": "|u1[E]",
        "norms": "<u4[r]",
        "weights": "<f8[f]",
        "scales": "<f8[f]",
        "odd": "<f8[1]",
    }


def shared_nodes(
    families: Iterable[tuple[float, tuple[Row, Row]]],
) -> tuple[Ids, NDArray[np.float64]]:
    """Return the nodes that two rows share, ascending, and each node's contribution to the score,
    given each family's weight and rows.
    """
    shares: dict[int, float] = {}
    for weight, ((mine, codes), (theirs, others)) in families:
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
    """The layout ``rows``."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self._rows, self._columns = (
            tuple(part.array(f"{kind}.{name}") for name in ("offsets", "ids", "codes"))
            for kind in ("rows", "columns")
        )
        self._norms, self._weights = part.array("norms"), part.array("weights")
        families, columns = self._weights.size, self._columns[0].size - 1
        rows = part.nodes * families
        self._graph_nodes = columns // max(1, families)
        """Number of nodes that may occur in rows."""
        sound = {
            "rows.offsets": self._rows[0].size == rows + 1,
            "rows.codes": self._rows[1].size == self._rows[2].size,
            "columns.offsets": columns == families * self._graph_nodes,
            "columns.codes": self._columns[1].size == self._columns[2].size,
            "norms": self._norms.size == rows,
            "weights": bool(((self._weights > 0) & (self._weights <= 1)).all()),
        }
        for name, fine in sound.items():
            if not fine:
                raise part.damaged_file(name)

    def row(self, family: int, node: int) -> Row:
        """Return the node's row: ids, ascending, and codes."""
        offsets, ids, codes = self._rows
        at = family * self.part.nodes + node
        begin, end = int(offsets[at]), int(offsets[at + 1])
        if not begin <= end <= ids.size:
            raise self.part.damaged_file("rows.offsets")
        return ids[begin:end], codes[begin:end].astype(np.float64)

    def column(self, family: int, node: int) -> Row:
        """Return the nodes whose rows contain ``node``: ids, ascending, and codes."""
        offsets, ids, codes = self._columns
        at = family * self._graph_nodes + node
        begin, end = int(offsets[at]), int(offsets[at + 1])
        if not begin <= end <= ids.size:
            raise self.part.damaged_file("columns.offsets")
        return ids[begin:end], codes[begin:end].astype(np.float64)

    def norms(self, family: int) -> NDArray[np.float64]:
        """Return each row's sum of code**2 in a family."""
        nodes = self.part.nodes
        return self._norms[family * nodes : (family + 1) * nodes].astype(np.float64)

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of two nodes; a node scores 1 with itself."""
        from cocite.kernels import rows

        check()
        if first == second:
            return Estimate(GRAINS, 0.0)
        grains = rows.pair(self._rows, self._norms, self._weights, first, second)
        if grains < 0:
            raise self.part.damaged_file("rows.offsets")
        return Estimate(float(grains), 0.0)

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Add up the rows that contain each entry of the node's rows."""
        from cocite.kernels import rows

        check()
        stored = self._rows, self._columns, (self._norms, self._weights)
        own = self.part.weight, (scratch.totals, scratch.touched), scratch.have
        scratch.have = self._checked(rows.gather(*stored, node, _room(scratch), *own))

    def at_once(
        self, node: int, k: int, floor: float, bets: tuple[float, float], settings: PartSettings
    ) -> ListedHits | None:
        """Return the best hits from one kernel call; None if the index has other parts."""
        check()
        found = self.many_at_once(np.array([node], np.uint32), k, floor, bets, settings)
        return None if found is None else found[0]

    def many_at_once(
        self, nodes: Ids, k: int, floor: float, bets: tuple[float, float], settings: PartSettings
    ) -> list[ListedHits] | None:
        """Return the lists of the first nodes from one kernel call; None if the index has other
        parts.
        """
        from cocite.kernels import rows

        if self.part.weight != 1:
            return None
        nodes, k = nodes[:_AT_ONCE], min(k, self.part.nodes)
        counts, ids = np.zeros(nodes.size, np.uint32), np.empty((nodes.size, k), np.uint32)
        hits = np.empty((nodes.size, k, 4))
        stored = self._rows, self._columns, self._norms, self._weights
        with borrowed(self.part.nodes) as scratch:
            out = counts, ids, hits
            scratch.wear += self._checked(rows.answer(*stored, nodes, floor, _room(scratch), out))
        sizes = counts.tolist()
        return [ListedHits(ids[i, :size], hits[i, :size], None) for i, size in enumerate(sizes)]

    def _checked(self, count: int) -> int:
        if count < 0:
            raise self.part.damaged_file("columns.offsets")
        return count

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the nodes that two rows of any family share, with their total contributions."""
        families = range(len(self.weights))
        pairs = ((self.row(each, first), self.row(each, second)) for each in families)
        nodes, shares = shared_nodes(zip(self.weights, pairs, strict=True))
        return own_reasons(self.part, self._graph_nodes, (first, second), nodes, shares)

    @property
    def weights(self) -> list[float]:
        """Return the family weights."""
        found: list[float] = self._weights.tolist()
        return found
