"""The scores of all pairs, how the iteration ended, and bounds on the error.

The matrix is stored by classes (``allpairs/core.py``). The output is the full matrix by id
(``.npy``), or a table: the pairs with high scores, or each node's best hits.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cocite.constants import added
from cocite.errors import NotConverged, UsageError
from cocite.graph.names import Names
from cocite.io.writers import Columns, FileTarget, Target, check_output, target_of
from cocite.kernels.totals import order
from cocite.progress import shows

Progress = Callable[[int, float], None]
"""Called after every sweep with (sweeps, bound on the remaining iteration error)."""

# Bounds on the error in the largest entry. One step G of the plain iteration shrinks differences by
# c in the max norm, because rows of Q sum to at most 1. So with the fixed point S*, for any X,
#
#     |X - S*| <= |G(X) - X| / (1 - c)                                            (residual)
#     |S_k - S*| <= c^(k+1)      for k steps from the identity                     (steps)
#
# A relaxed sweep changes each entry in turn from x to x + omega (g - x), where g is the current
# value of G. If d is the largest change in a sweep, an entry differs from g by |1 - omega| d /
# omega just after its update, and later updates change g by at most c d. So at the end of a sweep,
# in any order and with any blocks,
#
#     |G(X) - X| <= (|1 - omega| / omega + c) d                                    (change)
#
# which is c d for omega = 1, as in the plain iteration. A sweep shrinks the error to at most
# |1 - omega| + omega c times its value, so omega < 2 / (1 + c) converges for every graph.
#
# Rounding: a computed g is off by at most r (``Bounds.rounding_of``), which adds at most
# r / (1 - c) to the error. Pruning (``allpairs/prune.py``): an entry set to 0 instead of g is
# off by |g|. If p is the largest |g| that a sweep dropped, and e_k = c e_(k-1) + p_k,
#
#     |S - S*| <= (|1 - omega| / omega + c) d / (1 - c) + p / (1 - c)             (change, pruned)
#     |S_k - S*| <= c^(k+1) + e_k                                                 (steps, pruned)
#
# The iteration stops when the sum of these bounds is at most the requested accuracy.
# Source: Lizorkin et al. 2008 for the second bound; the others are derived here.

_DIVERGED, _STANDSTILL = 1e6, 20


@dataclass(frozen=True)
class ExactConvergence:
    """How an iteration ended. All errors bound the largest entry of |S - S*|.

    ``change`` is the largest change of an entry in the final sweep. More sweeps reduce
    ``iteration_error``, double precision reduces ``rounding_error``, and a smaller threshold
    reduces ``pruning_error``. ``converged`` says whether their sum, ``error_bound``, is within the
    requested accuracy; ``reason`` is why the iteration ended.
    """

    sweeps: int
    change: float
    iteration_error: float
    rounding_error: float
    pruning_error: float
    reason: str
    converged: bool

    @property
    def error_bound(self) -> float:
        """Return the bound on the total error."""
        return self.iteration_error + self.rounding_error + self.pruning_error


@dataclass(frozen=True)
class ExactSweep:
    """A sweep's largest change, and the largest magnitude that it pruned."""

    change: float
    dropped: float = 0.0


@dataclass(frozen=True)
class Bounds:
    """Error bounds of a method; ``steps`` says whether it is the plain iteration."""

    decay: float
    omega: float
    steps: bool
    rounding: float = 0.0

    def left(self, sweeps: int, made: ExactSweep, pruned: float) -> tuple[float, float, str]:
        """Return (iteration error, pruning error, name of the bound) after ``sweeps`` sweeps.

        ``made`` is the latest of these sweeps; ``pruned`` is e_k.
        """
        factor = abs(1 - self.omega) / self.omega + self.decay
        change = made.change if math.isfinite(made.change) else math.inf
        by_change = factor * change / (1 - self.decay), made.dropped / (1 - self.decay)
        by_steps = self.decay ** (sweeps + 1), pruned
        if self.steps and added(by_steps) <= added(by_change):
            return *by_steps, f"{self.decay:g}^{sweeps + 1}"
        return *by_change, "the last change"

    def rounding_error(self) -> float:
        """Return the bound on the total rounding error."""
        return self.rounding / (1 - self.decay)

    @staticmethod
    def rounding_of(
        depth: float, dtype: np.dtype[np.floating], decay: float, omega: float
    ) -> float:
        """Return r for one update, including relaxation, which mixes old and new values."""
        unit = float(np.finfo(dtype).eps) / 2
        return unit * (decay * (depth + 2) + (0 if omega == 1 else 4 / omega))


def iterate(
    sweep: Callable[[], ExactSweep], bounds: Bounds, epsilon: float, limit: int, progress: Progress
) -> ExactConvergence:
    """Sweep until the error bound is at most ``epsilon``, or at most ``limit`` times.

    Stops earlier if more sweeps do not help: pruning alone exceeds ``epsilon``, or the change has
    not fallen for 20 sweeps. Raises :class:`NotConverged` if the change diverges, or if an
    over-relaxed iteration stops while its change grows and its error bound is 1 or more.
    """
    rounding, summed = bounds.rounding_error(), 0.0
    least, least_at = math.inf, 0
    for sweeps in range(1, limit + 1):
        made = sweep()
        summed = bounds.decay * summed + made.dropped
        if made.change < least:
            least, least_at = made.change, sweeps
        left, pruned, how = bounds.left(sweeps, made, summed)
        progress(sweeps, left)
        stuck, last = sweeps - least_at == _STANDSTILL, sweeps == limit
        growing = bounds.omega > 1 and left >= 1 and sweeps > least_at
        if not made.change < _DIVERGED or ((stuck or last) and growing):
            raise NotConverged(
                f"sor diverges with omega {bounds.omega:g}: after {sweeps} sweeps, scores still "
                f"change by up to {made.change:.2g} per sweep. Use --omega 1 (omega=1), which is "
                f"gauss-seidel, or an omega below {2 / (1 + bounds.decay):.3g}: both always "
                "converge"
            )
        converged = left + rounding + pruned <= epsilon
        if converged:
            reason = f"error <= {epsilon:g} by {how}"
        elif left + rounding <= epsilon < rounding + pruned:
            reason = f"the error from pruning may exceed {epsilon:g}"
        elif stuck:
            reason = f"the change has not fallen for {_STANDSTILL} sweeps"
        elif last:
            reason = f"{limit} sweeps"
        else:
            continue
        break
    return ExactConvergence(sweeps, made.change, left, rounding, pruned, reason, converged)


DEFAULT_LEAST = 0.01
"""Default minimum score of pairs in a table."""
PAIR_TYPES = {"node": "VARCHAR", "other": "VARCHAR", "score": "DOUBLE"}
"""Column types of a table of pairs; single-precision scores are FLOAT."""

_BATCH = 1 << 20


class MatrixByRow(Protocol):
    """A square matrix, read as dense rows."""

    def block(self, first: int, end: int) -> NDArray[Any]:
        """Return the rows from ``first`` to ``end``."""


@dataclass(frozen=True)
class DenseMatrix:
    """A matrix in memory."""

    values: NDArray[Any]

    def block(self, first: int, end: int) -> NDArray[Any]:
        """Return a view of the rows from ``first`` to ``end``."""
        return self.values[first:end]


class ScoredPairs(NamedTuple):
    """Pairs of nodes, by id, with their scores."""

    nodes: NDArray[np.int64]
    others: NDArray[np.int64]
    scores: NDArray[np.floating]


@dataclass(frozen=True)
class Scores:
    """All scores of a graph; ``convergence`` bounds their error.

    ``rows`` is the matrix's number of rows, and ``bandwidth`` the links' bandwidth before and after
    ordering. ``within`` are the ids of the compared nodes: all, or one side of a bipartite graph.
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

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_")]

    @property
    def nodes(self) -> int:
        """Return the number of nodes."""
        return int(self.number.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the scores, float32 or float64."""
        return np.dtype(np.float32 if self.precision == "single" else np.float64)

    def row(self, node: int) -> NDArray[Any]:
        """Return the scores of the node with id ``node`` with every node, in id order.

        Raises :class:`~cocite.errors.UsageError` for an unknown id.
        """
        if not 0 <= node < self.nodes:
            raise UsageError(f"node {node} does not exist; ids are 0 to {self.nodes - 1}")
        found = np.zeros(self.nodes, self.dtype)
        own = int(self.number[node])
        if own >= 0:
            active = self.number >= 0
            found[active] = self.matrix.block(own, own + 1)[0][self.number[active]]
        found[node] = 1
        return found

    def array(self) -> NDArray[Any]:
        """Return all scores, [nodes, nodes], or the scores of one side, in 4 or 8 bytes per
        pair.
        """
        found = np.empty(self._shape, self.dtype)
        for at, row in enumerate(self._rows(lambda nodes: None)):
            found[at] = row
        return found

    def similarity(self, a: object, b: object) -> float:
        """Return the score of two nodes by name; raises :class:`~cocite.errors.UnknownNode`."""
        pair = self.names.id(a), self.names.id(b)
        if self.names.sides is not None:
            self.names.sides.check_alike(pair, [a, b])
        return float(self.row(pair[0])[pair[1]])

    def top(self, node: object, k: int = 20) -> list[tuple[str, float]]:
        """Return up to k nodes most similar to ``node``, best first, with their scores (above 0).

        Ties are ordered by hash. Raises :class:`~cocite.errors.UnknownNode`.
        """
        ids, scores = self._best(self.names.id(node), k)
        return list(zip(self.names.names(ids), scores.tolist(), strict=True))

    def _best(self, node: int, k: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        if k < 1:
            raise UsageError(f"k is {k!r}; it must be a whole number, 1 or more")
        row = self.row(node)
        row[node] = 0
        if self.names.sides is not None:
            beside = self.names.sides.side_of(node)
            row[: beside.start] = row[beside.stop :] = 0
        if k < row.size:
            least = np.partition(row, row.size - k)[row.size - k]
            ids = np.flatnonzero((row >= least) & (row > 0))
        else:
            ids = np.flatnonzero(row > 0)
        ids = ids[order(ids, row[ids])][:k]
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
        """Write all scores to an array (``.npy``), or the highest to a table.

        A table (``.parquet``, ``.csv``, ``.tsv``, ``.jsonl`` or ``.arrow``) has the pairs that
        score ``least`` or more, or the ``top`` best hits of every node. ``kind`` overrides the file
        extension. The file appears only when complete. In CSV and TSV, ``safe`` puts an apostrophe
        before names that a spreadsheet would evaluate as formulas.

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
        """Write the pairs of :meth:`write` to a database table: ``"sqlite:///site.db#pairs"``.

        Raises the errors of :func:`~cocite.io.writers.databases.database_target`.
        """
        target = target_of(None, to, overwrite=overwrite, append=append, types=self._types)
        assert target is not None
        self.write_target(target, least=least, top=top)

    @shows("writing scores", "{:,} nodes")
    def write_target(
        self,
        target: Target,
        *,
        least: float,
        top: int | None = None,
        progress: Callable[[int], None] = lambda nodes: None,
    ) -> None:
        """Write an array or a table, depending on the kind of ``target``."""
        if isinstance(target, FileTarget) and target.is_array:
            target.write_array(self._rows(progress), self.dtype, self._shape)
            return
        pairs = self.best(top) if top else self.pairs(least)
        target.write_table(self._named(pairs, progress), self._types)

    @property
    def _types(self) -> dict[str, str]:
        return PAIR_TYPES | ({"score": "FLOAT"} if self.dtype == np.float32 else {})

    def _named(
        self, pairs: Iterator[ScoredPairs], progress: Callable[[int], None]
    ) -> Iterator[Columns]:
        names = np.array(self.names.stored.names(np.arange(self.nodes)), dtype=object)
        for batch in pairs:
            yield {"node": names[batch.nodes], "other": names[batch.others], "score": batch.scores}
            if batch.nodes.size:
                progress(int(batch.nodes[-1]) + 1 - self.within.start)

    def _rows(self, progress: Callable[[int], None]) -> Iterator[NDArray[Any]]:
        """Yield float32 or float64[compared nodes] for each compared node, in id order."""
        for done, node in enumerate(self.within, 1):
            yield self.row(node)[self.within.start : self.within.stop]
            progress(done)

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.within), len(self.within)

    def pairs(self, least: float) -> Iterator[ScoredPairs]:
        """Yield, in batches, the pairs u < v whose scores are at least ``least`` and not 0."""
        return self._batches(lambda node: self._beyond(node, least))

    def best(self, k: int) -> Iterator[ScoredPairs]:
        """Yield the k best hits of every node, in batches; see :meth:`top`."""
        return self._batches(lambda node: self._best(node, k))

    def _beyond(self, node: int, least: float) -> tuple[NDArray[np.int64], NDArray[Any]]:
        row = self.row(node)[node + 1 : self.within.stop]
        ids = np.flatnonzero((row >= least) & (row > 0))
        return ids + node + 1, row[ids]

    def _batches(self, of_node: Any) -> Iterator[ScoredPairs]:
        found: list[ScoredPairs] = []
        held = 0
        for node in self.within:
            ids, scores = of_node(node)
            found.append(ScoredPairs(np.full(ids.size, node), ids, scores))
            held += ids.size
            if held >= _BATCH:
                yield _joined(found)
                found, held = [], 0
        if found:
            yield _joined(found)


def _joined(found: list[ScoredPairs]) -> ScoredPairs:
    return ScoredPairs(*(np.concatenate(column) for column in zip(*found, strict=True)))
