"""All-pairs scores of a graph: the plan, the run, and its document."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cocite.allpairs.core import node_rows, reduce
from cocite.allpairs.links import checked_weights, compared, directed
from cocite.allpairs.products import DENSE_FROM, Products, block_width, depth_of
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
from cocite.allpairs.svd import low_rank_bytes, low_rank_scores
from cocite.allpairs.sweeps import CoupledSweeps, Sweeps, panel_width
from cocite.cluster import Team
from cocite.errors import NotConverged, ResourceError, UsageError
from cocite.graph import Graph
from cocite.io.opening import open_graph
from cocite.options import accepts
from cocite.options.all_pairs import AllPairsOptions
from cocite.progress import shows
from cocite.resources import (
    budget,
    checked_threads,
    format_least,
    format_size,
    format_total,
    short_of,
)
from cocite.results import Document
from cocite.storage.spool import Scratch


@shows("computing similarities of all pairs", "sweep {:,}, error {:.1e}")
@accepts(AllPairsOptions)
def exact_simrank(
    graph: Any,
    *,
    weights: NDArray[np.float32] | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    progress: Progress = lambda sweeps, error: None,
    options: AllPairsOptions | None = None,
    **given: Any,
) -> Scores:
    """Compute the SimRank (or PSimRank) of all pairs of nodes, to a stated accuracy.

    Parameters
    ----------
    graph
        A stored graph, or any other source of links (:func:`cocite.open_graph`).
    weights
        Positive link weights, float32[edges], aligned with ``graph.in_sources``; by default those
        of the graph. Only for SimRank.
    threads
        Number of cores, by default all. Only the last bits of dense products depend on it.
    memory
        Memory of the whole process, in bytes or as text such as ``"8GB"``, including 52 MB for
        Python; by default half of the available memory. A matrix that does not fit is stored on
        disk.
    progress
        Called after every sweep with (sweeps, bound on the remaining iteration error).
    options, given
        The options below, as one object or by name.
    {options}

    Returns
    -------
    Scores
        With ``row(id)``, ``top(name, k)``, ``similarity(a, b)``, ``array()`` and ``convergence``.

    Raises
    ------
    UsageError, ResourceError
    NotConverged
        If the iteration diverges, or if no scores exist at the ``rank`` of method ``svd``.
    """
    options = AllPairsOptions.of(options, given)
    graph = open_graph(graph, memory=memory, threads=threads)
    return AllPairs(graph, options, weights=weights, threads=threads, memory=memory).run(progress)


class AllPairs:
    """A planned run: :meth:`estimate` reports its cost, :meth:`run` computes the scores."""

    def __init__(
        self,
        graph: Graph,
        options: AllPairsOptions,
        *,
        threads: int | None = None,
        memory: str | int | None = None,
        weights: NDArray[np.float32] | None = None,
    ) -> None:
        graph.check()
        weighted, options = options.weighted, options.resolved()
        self.graph, self.options = graph, options
        self.within = compared(graph, options, options.side)
        self.threads, self._budget = checked_threads(threads), budget(memory)
        self._links = directed(
            graph,
            options.direction,
            self._budget,
            weighted=weighted,
            sets=options.measure == "psimrank",
        )
        self._weights = checked_weights(self._links, options, weights)
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
        self.width = block_width(size, dense=self._dense)
        self.panel_width = 0
        self.bytes = self._plan_memory()

    def _precision(self) -> np.dtype[Any]:
        """Return the smallest sufficiently accurate type; raises :class:`UsageError`."""
        wanted, options = self.options.precision, self.options
        if options.method == "svd":
            if wanted == "single":
                raise UsageError(
                    "--method svd (method='svd') requires double precision: omit --precision "
                    "single (precision='single')"
                )
            return np.dtype(np.float64)
        types = {"single": ["float32"], "double": ["float64"]}.get(wanted, ["float32", "float64"])
        share = 0.25 if wanted == "auto" else 1.0
        for name in types:
            error = self._bounds(np.dtype(name)).rounding_error()
            if error <= share * options.epsilon:
                return np.dtype(name)
        less = (
            "Increase epsilon" if name == "float64" else "Use double precision, or increase epsilon"
        )
        raise UsageError(
            f"epsilon is {options.epsilon:g}, but rounding errors in {name} may reach "
            f"{error:.1e}. {less}"
        )

    def _bounds(self, dtype: np.dtype[Any]) -> Bounds:
        options = self.options
        depth = depth_of(self.core, self._dense)
        if options.measure == "psimrank":
            depth *= 2  # a difference of two such sums
        rounding = Bounds.rounding_of(depth, dtype, options.decay, options.omega)
        return Bounds(options.decay, options.omega, options.method == "plain", rounding)

    def _plan_memory(self) -> int:
        """Return the bytes that the run needs; decide whether the matrix is stored on disk."""
        options, size, item = self.options, self.core.size, self.dtype.itemsize
        fixed = self.core.nbytes
        if options.prune is not None:
            # Links are stored by row and by column, with weights in both precisions.
            return fixed + 2 * self.width * size * item + 28 * self.core.links.columns.size
        if options.method == "svd":
            scratch = Products.scratch(size, self.width, item)
            needed = 2 * size * size * item + scratch
            needed += low_rank_bytes(self.graph.nodes, options.rank, options.decay)
        else:
            matrices = 2 if options.method == "plain" else 1
            fixed += Products.scratch(size, self.width, item, dense=self._dense)
            needed = matrices * size * size * item
        if fixed + needed <= self._budget:
            return fixed + needed
        if options.method != "svd" and options.measure == "simrank" and not self._dense:
            width = panel_width(size, item, self._budget - fixed, self.width)
            self.panel_width = max(width, 0)
            needed = 3 * size * abs(width) * item
            if fixed + needed <= self._budget:
                return fixed + needed
        sparse = ", use --products sparse (products='sparse'), which can store the matrix on disk,"
        raise ResourceError(
            f"the matrix of {size:,} rows needs {format_least(fixed + needed)} of memory; "
            f"{short_of(self._budget)}{sparse * self._dense} or store fewer scores with --prune "
            "(prune=...)"
        )

    @property
    def products(self) -> str:
        """Return the kind of products, ``dense`` or ``sparse``."""
        return "dense" if self._dense else "sparse"

    @property
    def precision(self) -> str:
        """Return ``single`` or ``double``."""
        return "single" if self.dtype == np.float32 else "double"

    def estimate(self) -> str:
        """Describe the expected cost in one line."""
        size, options = self.core.size, self.options
        where = f"{format_total(self.bytes)} of memory"
        if self.panel_width:
            disk = -(-size // self.panel_width) * size * self.panel_width * self.dtype.itemsize
            disk *= 2 if options.method == "plain" else 1
            where += f" and {format_size(disk)} on disk, in panels of {self.panel_width:,} columns"
        elif options.prune is not None:
            where += f" and twice {4 + self.dtype.itemsize} bytes per stored score"
        share = 100 * self.core.links.columns.size / max(size * size, 1)
        return (
            f"{size:,} rows for {self.graph.nodes:,} nodes, {share:.2g}% full, {self.products} "
            f"products, {self.precision} precision: {where} on {self.threads} threads"
        )

    def run(self, progress: Progress = lambda sweeps, error: None) -> Scores:
        """Compute the scores; ``progress`` as in :func:`exact_simrank`."""
        core, low_rank = self.core, self.options.method == "svd"
        with Team(self.threads) as team:
            ended, matrix = self._low_rank(team) if low_rank else self._iterated(team, progress)
        how = self.options.title, self.products, self.precision, core.bandwidth
        return Scores(ended, self.graph.names, *how, matrix, core.number, core.size, self.within)

    def _iterated(self, team: Team, progress: Progress) -> tuple[ExactConvergence, MatrixByRow]:
        options, sweeps = self.options, self._sweeps(team)
        bounds = self._bounds(self.dtype)
        found = iterate(sweeps, bounds, options.epsilon, options.max_sweeps, progress)
        matrix = sweeps.matrix
        return found, DenseMatrix(matrix) if isinstance(matrix, np.ndarray) else matrix

    def _sweeps(self, team: Team) -> Any:
        options, core, plain = self.options, self.core, self.options.method == "plain"
        if options.prune is not None:
            factors = options.decay, options.omega, options.prune
            memory = self.bytes, self._budget
            return PrunedSweeps(core, self.dtype, team, factors, not plain, memory)
        products = Products(core, self.dtype, team, self.width, dense=self._dense)
        if options.measure == "psimrank":
            return CoupledSweeps(products, options.decay)
        omega = None if plain else options.omega
        width, scratch = self.panel_width, self._scratch() if self.panel_width else None
        return Sweeps(products, options.decay, omega, width=width, scratch=scratch)

    def _scratch(self) -> Scratch:
        path = Path(self.graph.path)
        return Scratch(path if os.access(path, os.W_OK) else Path(tempfile.gettempdir()))

    def _low_rank(self, team: Team) -> tuple[ExactConvergence, MatrixByRow]:
        """Compute the closed form, and one plain step to bound its error."""
        options, core = self.options, self.core
        rows = node_rows(self._links, self._weights, None)
        scores = low_rank_scores(rows, core, options.rank, options.decay, options.epsilon)
        products = Products(core, self.dtype, team, self.width)
        change = Sweeps(products, options.decay, start=scores)().change
        rounding = self._bounds(self.dtype).rounding_error()
        error = change / (1 - options.decay)
        if not error < 1:
            raise NotConverged(
                f"with links truncated to rank {options.rank}, scores between 0 and 1 may be off "
                f"by {error:.2g}. Use a larger --rank (rank=...), a smaller --decay (decay=...), "
                "or another --method (method=...)"
            )
        converged = error + rounding <= options.epsilon
        reason = f"rank {options.rank}, checked by one plain step"
        ended = ExactConvergence(0, change, error, rounding, 0.0, reason, converged)
        return ended, DenseMatrix(scores)


@dataclass(frozen=True)
class ExactDocument(Document):
    """A completed run, with its scores in the file ``output``.

    ``bandwidth`` is the bandwidth of the links before and after ordering.
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
        """Return the document for the scores ``found``."""
        how = found.method, found.products, found.precision, found.nodes, found.rows
        return cls(graph, output, measure, direction, *how, found.bandwidth, found.convergence)

    def facts(self) -> dict[str, Any]:
        """Return the fields, including those of the convergence, as JSON values."""
        facts = super().facts()
        _, rows = facts.pop("nodes"), facts.pop("rows_computed")
        ended, bandwidth = vars(facts.pop("ended")), facts.pop("bandwidth")
        facts |= {"rows": rows, "bandwidth": bandwidth, "error_bound": self.ended.error_bound}
        return {**facts, **ended}
