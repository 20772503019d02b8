"""What a run returns: the scores of all pairs, read by row, pair or node, in the stored order.

The matrix is kept by classes (``core.py``) and spread over the nodes when it is read.

As a file it is an array (``.npy``), the full matrix by id, written row after row; or a table, with
a row a pair: each pair once if its score is large enough, or the best of every node. A table may be
one of a database.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cocite.allpairs.stopping import ExactConvergence
from cocite.errors import UsageError
from cocite.graph.names import Names
from cocite.graph.writers import Columns, FileTarget, Target, check_output, target_of

__all__ = ["DEFAULT_LEAST", "PAIR_TYPES", "DenseMatrix", "MatrixByRow", "Pairs", "Scores"]

DEFAULT_LEAST = 0.01
"""The least score of a pair in a table."""
PAIR_TYPES = {"node": "VARCHAR", "other": "VARCHAR", "score": "DOUBLE"}
"""The columns of a table of pairs; scores of single precision are FLOAT."""

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
    between them were before and after ordering. ``within`` are the ids of the nodes whose pairs are
    told: all, or of a bipartite graph those of a side.
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
    within: range

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
        """All scores, [nodes, nodes], or those of a side, in order of id: 4 or 8 bytes a pair."""
        found = np.empty(self._shape, self.dtype)
        for at, row in enumerate(self._rows(lambda nodes: None)):
            found[at] = row
        return found

    def similarity(self, a: object, b: object) -> float:
        """The score of two nodes, by name; raises :class:`~cocite.errors.UnknownNode`."""
        pair = self.names.id(a), self.names.id(b)
        if self.names.sides is not None:
            self.names.sides.check_alike(pair, [a, b])
        return float(self.row(pair[0])[pair[1]])

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
        if self.names.sides is not None:
            beside = self.names.sides.beside(node)
            row[: beside.start] = row[beside.stop :] = 0
        if k < row.size:
            least = np.partition(row, row.size - k)[row.size - k]
            ids = np.flatnonzero((row >= least) & (row > 0))
        else:
            ids = np.flatnonzero(row > 0)
        ids = ids[np.lexsort((ids, -row[ids]))][:k]
        return ids, row[ids]

    def write(
        self,
        output: str | os.PathLike[str],
        *,
        least: float = DEFAULT_LEAST,
        top: int | None = None,
        kind: str | None = None,
        overwrite: bool = False,
        safe: bool = False,
    ) -> Path:
        """Write all scores to an array (``.npy``), or those of ``least`` or more, or the ``top`` of
        every node, to a table (``.parquet``, ``.csv``, ``.tsv``, ``.jsonl``, ``.arrow``); ``kind``
        says what it is where the name does not. It has its name when it is whole. ``safe``: in CSV
        and TSV, names that a spreadsheet would take for formulas have an apostrophe before them.

        Raises :class:`~cocite.errors.UsageError` or :class:`~cocite.errors.OutputExists`.
        """
        target = check_output(output, overwrite, kind=kind, safe=safe)
        self.write_target(target, least=least, top=top)
        return Path(output)

    def write_to(
        self,
        to: str,
        *,
        least: float = DEFAULT_LEAST,
        top: int | None = None,
        overwrite: bool = False,
        append: bool = False,
    ) -> None:
        """Write the same to a table of a database, such as ``"sqlite:///site.db#pairs"``.

        Raises as :func:`~cocite.graph.writers.databases.database_target` does.
        """
        target = target_of(None, to, overwrite=overwrite, append=append, types=self._types)
        assert target is not None
        self.write_target(target, least=least, top=top)

    def write_target(
        self,
        target: Target,
        *,
        least: float,
        top: int | None = None,
        progress: Callable[[int], None] = lambda nodes: None,
    ) -> None:
        """Write to ``target``, whose kind decides the form; ``progress`` is called with the number
        of nodes done.
        """
        if isinstance(target, FileTarget) and target.is_array:
            target.write_array(self._rows(progress), self.dtype, self._shape)
            return
        pairs = self.best(top) if top else self.pairs(least)
        target.write_table(self._named(pairs, progress), self._types)

    @property
    def _types(self) -> dict[str, str]:
        return PAIR_TYPES | ({"score": "FLOAT"} if self.dtype == np.float32 else {})

    def _named(self, pairs: Iterator[Pairs], progress: Callable[[int], None]) -> Iterator[Columns]:
        names = np.array(self.names.stored.names(np.arange(self.nodes)), dtype=object)
        for batch in pairs:
            yield {"node": names[batch.nodes], "other": names[batch.others], "score": batch.scores}
            if batch.nodes.size:
                progress(int(batch.nodes[-1]) + 1 - self.within.start)

    def _rows(self, progress: Callable[[int], None]) -> Iterator[NDArray[Any]]:
        """float32 or float64[nodes compared], for each of them in order of id."""
        for done, node in enumerate(self.within, 1):
            yield self.row(node)[self.within.start : self.within.stop]
            progress(done)

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.within), len(self.within)

    def pairs(self, least: float) -> Iterator[Pairs]:
        """All pairs u < v, by id, that score ``least`` or more and are not 0; in batches."""
        return self._batches(lambda node: self._beyond(node, least))

    def best(self, k: int) -> Iterator[Pairs]:
        """The k best of every node, as :meth:`top`; in batches."""
        return self._batches(lambda node: self._best(node, k))

    def _beyond(self, node: int, least: float) -> tuple[NDArray[np.int64], NDArray[Any]]:
        row = self.row(node)[node + 1 : self.within.stop]
        ids = np.flatnonzero((row >= least) & (row > 0))
        return ids + node + 1, row[ids]

    def _batches(self, of_node: Any) -> Iterator[Pairs]:
        found: list[Pairs] = []
        held = 0
        for node in self.within:
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
