"""All-pairs scores of one graph: what it will take, and then the run.

Everything is decided before it starts and said in :meth:`AllPairs.estimate`: the rows that are left
when equal ones are one (``allpairs/core.py``), the precision, the kind of products, whether the
matrix fits in memory or lies on disk, and how many bytes that takes.

SimRank from a low-rank factorisation of the links, without iterating on the matrix.

With Q ~ U E V' of rank r, X = c Q X Q' + D (D diagonal) has the solution

    X = D + c U M U'        M = K + c B M B'        K = E V' D V E        B = E V' U        (r x r)

and M, the sum of A^k K A'^k with A = sqrt(c) B, follows by doubling: M <- M + A M A', A <- A A.
There is such a sum only where A's spectral radius is below 1. Q's is at most 1, but that of its
low-rank factors may be above, whatever the rank: then there is no X, and an error says so.

As published the method takes D = (1 - c) I, whose X is another measure, with diagonals that differ.
SimRank has 1 on the diagonal: n linear equations for D, diag X(D) = 1, solved by GMRES, whose
residual never grows.

Nothing bounds the error in the largest entry by the singular values left out, as Q's norm may be
far above 1. It is measured instead: one plain step G from X gives |X - S*| <= |G(X) - X| / (1 - c).

The factors come from subspace iteration with a fixed start, or, for ranks from a quarter of n, from
NumPy. Every loop ends by count.
Cost: O(n r^2) a step for D, O(n^2 r) for X. Memory: ``low_rank_bytes``.
Source: Li et al. 2010, as Yu et al. 2011 describe it in 5.1.4 and 6; doubling: Smith 1968;
subspace iteration: Halko, Martinsson, Tropp 2011; GMRES: Saad, Schultz 1986.

A run over all pairs as a document: what was computed, how, and how exact it is.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cocite.allpairs.core import Core, CoreLinks, node_rows, reduce
from cocite.allpairs.links import Options, checked_weights, compared, turned
from cocite.allpairs.products import (
    DENSE_FROM,
    DenseProducts,
    PanelSweeps,
    PartialSums,
    Products,
    SparseProducts,
    block_width,
    depth_of,
    panel_width,
    sweeps_for,
)
from cocite.allpairs.prune import PrunedSweeps
from cocite.allpairs.scores import (
    Bounds,
    DenseMatrix,
    ExactConvergence,
    MatrixByRow,
    Progress,
    Scores,
    iterate,
)
from cocite.allpairs.sweeps import CoupledSweeps, PlainSweeps, RelaxedSweeps
from cocite.cluster import Team
from cocite.errors import NotConverged, ResourceError, UsageError
from cocite.graph import Graph
from cocite.io.opening import open_graph
from cocite.resources import budget, checked_threads, format_size
from cocite.results import Document
from cocite.storage import Scratch

Floats = NDArray[np.float64]
_OVERSAMPLED, _POWERS = 10, 6
_STEPS = 100
"""Of GMRES: at decay 0.99 some 70 take the diagonal to six digits."""
_DOUBLINGS = 64
"""Enough for a spectral radius of 1 - 2**-58: nearer to 1 nothing can be told apart from it."""
_NOTHING = 1e-9
"""A power this small adds its square, less than the rounding of what is there."""


def low_rank_bytes(nodes: int, rank: int, decay: float) -> int:
    """What the factors and the steps for D take, at most: bytes beside the matrix of scores."""
    rank = min(rank, nodes)
    factors = 72 * nodes * nodes if _is_large(rank, nodes) else 48 * nodes * (rank + _OVERSAMPLED)
    # A power below 1 in norm: from there its square is the next.
    doublings = math.ceil(math.log2(math.log(_NOTHING) / math.log(math.sqrt(decay)))) + 4
    return factors + 8 * rank * rank * (doublings + 4) + 8 * nodes * (_STEPS + 2 * rank)


def low_rank_scores(
    rows: CoreLinks, core: Core, rank: int, decay: float, accuracy: float
) -> Floats:
    """float64[classes, classes]: X between the classes of ``core``; ``rows`` are Q by nodes.

    Raises :class:`NotConverged` where the factors have no such X.
    """
    u, e, v = _factors(rows, rank)
    powers = _powers(e[:, None] * v.T @ u, decay)

    def middle(diagonal: Floats) -> Floats:
        return _stein(e[:, None] * ((v.T * diagonal) @ v) * e, powers)

    def on_diagonal(diagonal: Floats) -> Floats:
        found: Floats = diagonal + decay * np.einsum("ij,ij->i", u @ middle(diagonal), u)
        return found

    ones = np.ones(rows.rows)
    solved = middle(_gmres(on_diagonal, ones, accuracy * (1 - decay) / 10))
    of_class = u[core.firsts]
    scores: Floats = decay * (of_class @ solved) @ of_class.T
    at = np.flatnonzero(core.sizes == 1)
    scores[at, at] = 1
    return scores


def _powers(b: Floats, decay: float) -> list[Floats]:
    """A, A^2, A^4, ... of A = sqrt(decay) B, as long as they add anything to the sum."""
    power: Floats = math.sqrt(decay) * b
    found: list[Floats] = []
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(_DOUBLINGS):
            size = float(np.linalg.norm(power))
            if size <= _NOTHING:
                return found
            if not math.isfinite(size):
                break
            found.append(power)
            power = power @ power
    radius = float(np.abs(np.linalg.eigvals(b)).max())
    raise NotConverged(
        f"the links cut to rank {b.shape[0]} have a spectral radius of {radius:.6g}; at decay "
        f"{decay:g} there are scores only below {1 / math.sqrt(decay):.6g}. Take a greater --rank "
        "(that of all nodes always has scores), a smaller --decay, or another --method"
    )


def _stein(start: Floats, powers: list[Floats]) -> Floats:
    """M = start + A M A'; ``powers`` are those of A."""
    total = start
    for power in powers:
        total = total + power @ total @ power.T
    return total


def _gmres(times: Callable[[Floats], Floats], right: Floats, enough: float) -> Floats:
    """x with |times(x) - right| <= ``enough`` in the largest entry, or as near as some steps lead.

    ``times`` is linear; the start is ``right``.
    """
    rest = right - times(right)
    size = float(np.linalg.norm(rest))
    if float(np.abs(rest).max(initial=0)) <= enough:
        return right
    basis, steps = [rest / size], np.zeros((_STEPS + 1, _STEPS))
    for k in range(_STEPS):
        following = times(basis[k])
        whole = float(np.linalg.norm(following))
        for _ in range(2):  # once more, for what rounding left
            for i, direction in enumerate(basis):
                share = float(direction @ following)
                steps[i, k] += share
                following -= share * direction
        steps[k + 1, k] = float(np.linalg.norm(following))
        first = np.zeros(k + 2)
        first[0] = size
        best = np.linalg.lstsq(steps[: k + 2, : k + 1], first, rcond=None)[0]
        left = float(np.linalg.norm(first - steps[: k + 2, : k + 1] @ best))
        if left <= enough or steps[k + 1, k] <= 1e-14 * whole:
            break
        basis.append(following / steps[k + 1, k])
    return right + np.column_stack(basis[: k + 1]) @ best


def _factors(rows: CoreLinks, rank: int) -> tuple[Floats, Floats, Floats]:
    """(U, E, V) of Q to ``rank``, or to as many singular values as are not 0."""
    n = rows.rows
    if _is_large(rank, n):
        full = np.zeros((n, n))
        full[np.repeat(np.arange(n), np.diff(rows.offsets)), rows.columns] = rows.weights
        u, e, vt = np.linalg.svd(full)
    else:
        start = np.random.default_rng(0).standard_normal((n, rank + _OVERSAMPLED))
        columns = rows.transposed(n)
        basis = np.linalg.qr(_times(rows, start))[0]
        for _ in range(_POWERS):
            basis = np.linalg.qr(_times(rows, np.linalg.qr(_times(columns, basis))[0]))[0]
        inner, e, vt = np.linalg.svd(_times(columns, basis).T, full_matrices=False)
        u = basis @ inner
    kept = min(rank, int((e > 1e-13 * max(e[0], 1e-300)).sum()) if e.size else 0)
    return u[:, :kept], e[:kept], vt[:kept].T


def _is_large(rank: int, nodes: int) -> bool:
    """Whether NumPy's decomposition of the whole matrix is no more work."""
    return rank + _OVERSAMPLED >= nodes / 4


def _times(rows: CoreLinks, matrix: Floats) -> Floats:
    from cocite.kernels import allpairs

    dense = np.ascontiguousarray(matrix)
    out: Floats = np.empty_like(dense)
    columns = rows.columns
    allpairs.multiply(rows.offsets, columns, rows.weights, dense, 0, dense.shape[1], out)
    return out


# -- run ---------------------------------------------------------------------------------


_DENSE_WIDTH = 256


def exact_simrank(
    graph: Any,
    *,
    decay: float = 0.6,
    measure: str = "simrank",
    method: str | None = None,
    omega: float | None = None,
    rank: int | None = None,
    epsilon: float = 1e-3,
    sweeps: int = 1000,
    prune: float | None = None,
    teleport: float | None = None,
    weights: NDArray[np.float32] | None = None,
    weighted: bool = True,
    order: str = "stored",
    precision: str = "auto",
    products: str = "auto",
    direction: str = "in",
    side: str | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    progress: Progress = lambda sweeps, error: None,
) -> Scores:
    """Compute the SimRank (or PSimRank) of all pairs of nodes, to a stated accuracy.

    Parameters
    ----------
    graph
        A stored graph, or anything else that holds links (:func:`cocite.open_graph`).
    decay
        What a meeting is worth for every step it takes, in (0, 1); by default 0.6.
    measure
        ``simrank`` or ``psimrank``.
    method
        ``gauss-seidel`` (the default for SimRank: one matrix), ``plain`` (two matrices; the paper's
        eq. 6), ``sor`` (over-relaxation), ``psum`` (the partial-sums baseline) or ``svd`` (a
        low-rank closed form, checked by one plain step).
    omega
        Of ``sor``, in (0, 2); by default 1.3, the paper's choice. Above 2 / (1 + decay) it diverges
        on some graphs: an error.
    rank
        Of ``svd``; by default 100. A rank that tells nothing of the scores is an error.
    epsilon
        The largest error that any score may have; by default 1e-3.
    sweeps
        Sweeps at most; by default 1000. Stopping for it means *not converged*.
    prune
        Drop scores below this after every sweep and keep the matrix sparse; the error it adds is
        bounded in the result.
    teleport
        The lambda of the paper's eq. 7, in (0, 1]: rows of Q are multiplied by it, and nodes
        without in-links get a row of (1 - lambda) / nodes. It changes what is computed: off by
        default.
    weights
        float32[edges], positive: how much each link counts, aligned with ``graph.in_sources``. By
        default the weights that the graph was ingested with, if any. For SimRank only.
    weighted
        Whether to use the graph's own weights.
    order
        ``stored``, or ``rcm``: number the rows by reverse Cuthill-McKee meanwhile. Results are in
        the stored order either way. What it does to the time is in ``docs/exact.md``.
    precision
        ``single`` or ``double``; ``auto`` takes single where its rounding is bounded by a quarter
        of ``epsilon``.
    products
        ``sparse``, ``dense``, or ``auto``: dense from a quarter of all possible links.
    direction
        Which links are looked at: ``in``, ``out``, or ``any``, links taken either way.
    side
        Of a bipartite graph the side whose nodes are compared, by its title, such as ``"user"``; by
        default the right one, the items.
    threads
        How many cores to use, by default all. The scores do not depend on it, but for the last
        bits of dense products.
    memory
        For the data, beside some 170 MB for Python: bytes, or text such as ``"8GB"``; by default
        half of what is available. With ``method="plain"`` a matrix that does not fit lies on disk.
    progress
        Called after every sweep with (sweeps, bound on the error still to be iterated away).

    Returns
    -------
    Scores
        With ``row(id)``, ``top(name, k)``, ``similarity(a, b)``, ``array()`` and ``convergence``.

    Raises
    ------
    UsageError, ResourceError
    NotConverged
        Where the iteration diverges, or the low rank leaves no scores.
    """
    graph = open_graph(graph, memory=memory, threads=threads)
    options = Options.checked(
        decay=decay,
        measure=measure,
        method=method,
        omega=omega,
        epsilon=epsilon,
        sweeps=sweeps,
        prune=prune,
        teleport=teleport,
        order=order,
        precision=precision,
        products=products,
        rank=rank,
        direction=direction,
    )
    means: dict[str, Any] = {"threads": threads, "memory": memory}
    run = AllPairs(graph, options, weights=weights, weighted=weighted, side=side, **means)
    return run.run(progress)


class AllPairs:
    """One run, planned; :meth:`estimate` tells what it takes and :meth:`run` does it."""

    def __init__(
        self,
        graph: Graph,
        options: Options,
        *,
        threads: int | None = None,
        memory: str | int | None = None,
        weights: NDArray[np.float32] | None = None,
        weighted: bool = True,
        side: str | None = None,
    ) -> None:
        graph.check()
        self.graph, self.options = graph, options
        self.within = compared(graph, options, side)
        self.threads, self._budget = checked_threads(threads), budget(memory)
        self._links = turned(
            graph,
            options.direction,
            self._budget,
            weighted=weighted,
            sets=options.measure == "psimrank",
        )
        self._weights = checked_weights(self._links, options, weights, weighted)
        self.core = reduce(
            self._links,
            weights=self._weights,
            teleport=options.teleport,
            order=options.order == "rcm",
            all_loose=options.measure == "psimrank",
        )
        size = self.core.size
        self._dense = options.products == "dense" or (
            options.products == "auto"
            and options.prune is None
            and options.method in ("plain", "gauss-seidel", "sor")
            and options.measure == "simrank"
            and self.core.links.columns.size >= DENSE_FROM * size * size > 0
        )
        self.dtype = self._precision()
        self.width = self._block_width()
        self.panel_width = 0
        self.bytes = self._plan_memory()

    def _precision(self) -> np.dtype[Any]:
        """Return the first type that is accurate enough."""
        wanted, options = self.options.precision, self.options
        if options.method in ("psum", "svd"):
            if wanted == "single":
                raise UsageError(f"{options.method} computes in double precision")
            return np.dtype(np.float64)
        types = {"single": ["float32"], "double": ["float64"]}.get(wanted, ["float32", "float64"])
        share = 0.25 if wanted == "auto" else 1.0
        for name in types:
            error = self._bounds(np.dtype(name)).rounding_error()
            if error <= share * options.epsilon:
                return np.dtype(name)
        raise UsageError(
            f"epsilon is {options.epsilon:g}; rounding in {types[-1]} may add up to {error:.1e}. "
            + (
                "Ask for less"
                if types[-1] == "float64"
                else "Take precision double, or ask for less"
            )
        )

    def _bounds(self, dtype: np.dtype[Any]) -> Bounds:
        options = self.options
        depth = depth_of(self.core, self._dense)
        if options.measure == "psimrank":
            depth *= 2  # a difference of two such sums
        rounding = Bounds.rounding_of(depth, dtype, options.decay, options.omega)
        steps = options.method in ("plain", "psum")
        return Bounds(options.decay, options.omega, steps, rounding)

    def _block_width(self) -> int:
        size = self.core.size
        if self._dense:
            return max(1, min(_DENSE_WIDTH, size))
        return block_width(size)

    def _plan_memory(self) -> int:
        """The bytes that the run takes; decides whether the matrix lies on disk."""
        options, size, item = self.options, self.core.size, self.dtype.itemsize
        fixed = self.core.nbytes
        if options.prune is not None:
            return fixed + 2 * self.width * size * item
        if options.method == "psum":
            needed = 2 * self.graph.nodes**2 * 8
        elif options.method == "svd":
            scratch = SparseProducts.scratch(size, self.width, item)
            needed = 2 * size * size * item + scratch
            needed += low_rank_bytes(self.graph.nodes, options.rank, options.decay)
        else:
            products = DenseProducts if self._dense else SparseProducts
            matrices = 2 if options.method == "plain" else 1
            fixed += products.scratch(size, self.width, item)
            needed = matrices * size * size * item
        if fixed + needed <= self._budget:
            return fixed + needed
        if options.method == "plain" and options.measure == "simrank" and not self._dense:
            self.panel_width = panel_width(size, item, self._budget - fixed)
            if self.panel_width:
                return fixed + 3 * size * self.panel_width * item
        raise ResourceError(
            f"the matrix of {size:,} rows needs {format_size(fixed + needed)} of memory; "
            f"{format_size(self._budget)} may be used. Give more with --memory, take --method "
            "plain, which can go through panels on disk, or keep few scores with --prune"
        )

    @property
    def products(self) -> str:
        """The kind of products, in words."""
        return "dense" if self._dense else "sparse"

    @property
    def precision(self) -> str:
        """``single`` or ``double``."""
        return "single" if self.dtype == np.float32 else "double"

    def estimate(self) -> str:
        """What it will take, in a line."""
        size, options = self.core.size, self.options
        where = f"{format_size(self.bytes)} of memory"
        if self.panel_width:
            disk = 2 * -(-size // self.panel_width) * size * self.panel_width * self.dtype.itemsize
            where += f" and {format_size(disk)} on disk, in panels of {self.panel_width:,} columns"
        elif options.prune is not None:
            where += f" and {4 + self.dtype.itemsize} bytes a score kept, twice"
        share = 100 * self.core.links.columns.size / max(size * size, 1)
        return (
            f"{size:,} rows for {self.graph.nodes:,} nodes, {share:.2g} % full, {self.products} "
            f"products, {self.precision} precision: {where} on {self.threads} threads"
        )

    def run(self, progress: Progress = lambda sweeps, error: None) -> Scores:
        """Compute; ``progress`` as in :func:`exact_simrank`."""
        number, core = self.core.number, self.core
        with Team(self.threads) as team:
            if self.options.method == "psum":
                found, matrix = self._partial_sums(team, progress)
                number = np.arange(self.graph.nodes)
            elif self.options.method == "svd":
                found, matrix = self._low_rank(team)
            else:
                found, matrix = self._iterated(team, progress)
        return Scores(
            found,
            self.graph.names,
            self.options.title,
            self.products,
            self.precision,
            core.bandwidth,
            matrix,
            number,
            core.size,
            self.within,
        )

    def _iterated(self, team: Team, progress: Progress) -> tuple[ExactConvergence, MatrixByRow]:
        sweeps = self._sweeps(team)
        found = self._stop(sweeps, progress)
        matrix = sweeps.matrix
        return found, DenseMatrix(matrix) if isinstance(matrix, np.ndarray) else matrix

    def _stop(self, sweeps: Any, progress: Progress, limit: int | None = None) -> ExactConvergence:
        options = self.options
        bounds = self._bounds(self.dtype)
        return iterate(sweeps, bounds, options.epsilon, limit or options.sweeps, progress)

    def _sweeps(self, team: Team) -> Any:
        """The sweeps of the method asked for."""
        options, core, plain = self.options, self.core, self.options.method == "plain"
        if options.prune is not None:
            factors = options.decay, options.omega, options.prune
            return PrunedSweeps(core, self.dtype, team, factors, not plain, self._budget)
        products: Products
        if self._dense:
            products = DenseProducts(core, self.dtype, team, self.width)
        else:
            products = SparseProducts(core, self.dtype, team, self.width)
            if options.measure == "psimrank":
                return CoupledSweeps(products, options.decay)
            if self.panel_width:
                return PanelSweeps(products, options.decay, self.panel_width, self._scratch())
        if plain:
            return PlainSweeps(products, options.decay)
        return RelaxedSweeps(products, options.decay, options.omega)

    def _scratch(self) -> Scratch:
        path = Path(self.graph.path)
        return Scratch(path if os.access(path, os.W_OK) else Path(tempfile.gettempdir()))

    def _partial_sums(self, team: Team, progress: Progress) -> tuple[ExactConvergence, MatrixByRow]:
        """As published: as many sweeps as the accuracy asks for, whatever they change."""
        options = self.options
        sweeps = PartialSums(self._links, options.decay, team)
        limit = min(options.sweeps, sweeps_for(options.epsilon, options.decay))
        made = [sweeps() for _ in _counted(limit, progress, options.decay)]
        rounding = self._bounds(self.dtype).rounding_error()
        left = options.decay ** (limit + 1)
        reason = f"{options.decay:g}^{limit + 1}"
        converged = left + rounding <= options.epsilon * (1 + 1e-9)
        found = ExactConvergence(limit, made[-1].change, left, rounding, 0.0, reason, converged)
        return found, DenseMatrix(sweeps.matrix)

    def _low_rank(self, team: Team) -> tuple[ExactConvergence, MatrixByRow]:
        """The closed form, and one plain step to tell how far it is off."""
        options, core = self.options, self.core
        rows = node_rows(self._links, self._weights, None)
        scores = low_rank_scores(rows, core, options.rank, options.decay, options.epsilon)
        products = SparseProducts(core, self.dtype, team, self.width)
        change = PlainSweeps(products, options.decay, scores)().change
        rounding = self._bounds(self.dtype).rounding_error()
        error = change / (1 - options.decay)
        if not error < 1:
            raise NotConverged(
                f"scores of the links cut to rank {options.rank} may be off by {error:.2g}, and "
                "all scores are between 0 and 1. Take a greater --rank, a smaller --decay, or "
                "another --method"
            )
        converged = error + rounding <= options.epsilon
        reason = f"rank {options.rank}, checked by one plain step"
        return ExactConvergence(0, change, error, rounding, 0.0, reason, converged), DenseMatrix(
            scores
        )


def _counted(limit: int, progress: Progress, decay: float) -> Any:
    for sweeps in range(1, limit + 1):
        yield sweeps
        progress(sweeps, decay ** (sweeps + 1))


# -- documents ---------------------------------------------------------------------------


@dataclass(frozen=True)
class ExactDocument(Document):
    """A run that is done, its scores in the file ``output``. ``bandwidth`` is that of the rows as
    stored and as ordered; ``ended`` how it ended (:class:`ExactConvergence`).
    """

    graph: str
    output: str
    measure: str
    direction: str
    method: str
    products: str
    precision: str
    nodes: int
    rows_computed: int
    bandwidth: tuple[int, int]
    ended: ExactConvergence

    @classmethod
    def of(cls, graph: str, output: str, measure: str, direction: str, found: Scores) -> Self:
        """What ``found`` says of itself."""
        how = found.method, found.products, found.precision, found.nodes, found.rows
        return cls(graph, output, measure, direction, *how, found.bandwidth, found.convergence)

    def facts(self) -> dict[str, Any]:
        """The facts of the iteration stand beside the others."""
        facts = super().facts()
        _, rows = facts.pop("nodes"), facts.pop("rows_computed")
        ended, bandwidth = vars(facts.pop("ended")), facts.pop("bandwidth")
        facts |= {"rows": rows, "bandwidth": bandwidth, "error_bound": self.ended.error_bound}
        return {**facts, **ended}
