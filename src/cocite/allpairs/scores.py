"""What a run returns: the scores of all pairs, read by row, pair or node, in the stored order.

The matrix is kept by classes (``core.py``) and spread over the nodes when it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cocite.allpairs.stopping import ExactConvergence
from cocite.errors import UsageError
from cocite.graph.names import Names

__all__ = ["DenseMatrix", "MatrixByRow", "Pairs", "Scores"]

_BATCH = 1 << 20


class MatrixByRow(Protocol):
    """A square matrix that gives dense rows."""

    def block(self, first: int, end: int) -> NDArray[Any]:
        """The rows from ``first`` to ``end``."""


@dataclass(frozen=True)
class DenseMatrix:
    """A matrix in memory."""

    values: NDArray[Any]

    def block(self, first: int, end: int) -> NDArray[Any]:
        """The rows from ``first`` to ``end``: a view."""
        return self.values[first:end]


class Pairs(NamedTuple):
    """Some pairs of nodes, by id, and their scores."""

    nodes: NDArray[np.int64]
    others: NDArray[np.int64]
    scores: NDArray[np.floating]


@dataclass(frozen=True)
class Scores:
    """All scores of one graph.

    ``convergence`` tells how far they may be from the exact ones. ``method`` and ``products`` say
    how they were computed, ``rows`` how many rows the matrix had, ``bandwidth`` how wide the links
    between them were before and after ordering.
    """

    convergence: ExactConvergence
    names: Names
    method: str
    products: str
    precision: str
    bandwidth: tuple[int, int]
    matrix: MatrixByRow
    number: NDArray[np.int64]
    rows: int

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.number.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the scores: float32 or float64."""
        return np.dtype(np.float32 if self.precision == "single" else np.float64)

    def row(self, node: int) -> NDArray[Any]:
        """The scores of the node with this id and all nodes, by id.

        Raises :class:`~cocite.errors.UsageError` for an id that there is not.
        """
        if not 0 <= node < self.nodes:
            raise UsageError(f"node {node} is not there; ids are 0 to {self.nodes - 1}")
        found = np.zeros(self.nodes, self.dtype)
        own = int(self.number[node])
        if own >= 0:
            active = self.number >= 0
            found[active] = self.matrix.block(own, own + 1)[0][self.number[active]]
        found[node] = 1
        return found

    def array(self) -> NDArray[Any]:
        """All scores, [nodes, nodes]: 4 or 8 bytes a pair."""
        found = np.empty((self.nodes, self.nodes), self.dtype)
        for node in range(self.nodes):
            found[node] = self.row(node)
        return found

    def similarity(self, a: object, b: object) -> float:
        """The score of two nodes, by name; raises :class:`~cocite.errors.UnknownNode`."""
        return float(self.row(self.names.id(a))[self.names.id(b)])

    def top(self, node: object, k: int = 20) -> list[tuple[str, float]]:
        """The k nodes most similar to ``node`` with their scores, best first, ties by id.

        Nodes that score 0 are left out, and the node itself. Raises
        :class:`~cocite.errors.UnknownNode`.
        """
        ids, scores = self._best(self.names.id(node), k)
        return list(zip(self.names.names(ids), scores.tolist(), strict=True))

    def _best(self, node: int, k: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        if k < 1:
            raise UsageError(f"k is {k!r}; it is a whole number, 1 or more")
        row = self.row(node)
        row[node] = 0
        if k < row.size:
            least = np.partition(row, row.size - k)[row.size - k]
            ids = np.flatnonzero((row >= least) & (row > 0))
        else:
            ids = np.flatnonzero(row > 0)
        ids = ids[np.lexsort((ids, -row[ids]))][:k]
        return ids, row[ids]

    def pairs(self, least: float) -> Iterator[Pairs]:
        """All pairs u < v, by id, that score ``least`` or more and are not 0; in batches."""
        return self._batches(lambda node: self._beyond(node, least))

    def best(self, k: int) -> Iterator[Pairs]:
        """The k best of every node, as :meth:`top`; in batches."""
        return self._batches(lambda node: self._best(node, k))

    def _beyond(self, node: int, least: float) -> tuple[NDArray[np.int64], NDArray[Any]]:
        row = self.row(node)[node + 1 :]
        ids = np.flatnonzero((row >= least) & (row > 0))
        return ids + node + 1, row[ids]

    def _batches(self, of_node: Any) -> Iterator[Pairs]:
        found: list[Pairs] = []
        held = 0
        for node in range(self.nodes):
            ids, scores = of_node(node)
            found.append(Pairs(np.full(ids.size, node), ids, scores))
            held += ids.size
            if held >= _BATCH:
                yield _joined(found)
                found, held = [], 0
        if found:
            yield _joined(found)


def _joined(found: list[Pairs]) -> Pairs:
    return Pairs(*(np.concatenate(column) for column in zip(*found, strict=True)))
