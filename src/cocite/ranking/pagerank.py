"""PageRank: the share of time that a surfer spends on each page.

    x = damping * (sum over in-neighbours u of x[u] / out-degree(u)) + (1 - damping) * p
        + damping * (rank of dangling nodes) * q                                     sum of x = 1

p is the personalisation (uniform by default) and q where dangling nodes' rank goes: p (the
default, as in NetworkX), or uniform; or dangling nodes are removed first, as often as asked, as
the paper does.

Solved as a linear system, (I - damping P') y = p with x = y / sum(y), because with q = p the
dangling term only scales the solution; another q takes a second solution. Gauss-Seidel sweeps in
order of id on the core (``kernels/rank.py``): each sweep is followed by one scalar that
restores the balance of the total mass, which removes the slowest component of the error. On web
graphs in URL order that takes half as many passes over the links as power iteration.

Error: for x with sum 1, ||x - x*||_1 <= ||G x - x||_1 / (1 - damping), as G shrinks vectors of
sum 0 by the damping. A sweep with L1 change c leaves a residual of at most 2 damping c / sum(y):
rows are solved exactly but for what later rows changed, each passing on at most damping times its
change. That bound stops the iteration; the residual reported is computed from the result.

Cost: a pass over the links a sweep; memory 4 bytes a link and about 80 a node.
Source: Haveliwala, *Efficient computation of PageRank*, 2 and 5; Del Corso, Gulli, Romani 2005
(the linear system).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.graph.names import Names
from cocite.ranking.stopping import Convergence, Residual, State, StoppingRule, Sweeps

__all__ = ["Dangling", "Personalization", "Ranks", "pagerank"]

Vector = NDArray[np.float64]
Personalization = Mapping[str, float] | Iterable[str] | Vector
_PATIENCE = 10_000


class Dangling(Enum):
    """What happens to the rank of nodes without out-links."""

    SPREAD = "spread"
    """It is spread as the personalisation is."""
    UNIFORM = "uniform"
    """It is spread over all nodes equally."""
    REMOVE = "remove"
    """Such nodes are removed first and have rank 0; what is dangling then is spread."""


@dataclass(frozen=True)
class Ranks:
    """``values`` float64[nodes], sum 1, by id; how the iteration ended; the names."""

    values: Vector
    convergence: Convergence
    names: Names
    removed: int = 0

    def top(self, k: int = 20) -> list[tuple[str, float]]:
        """The k highest ranks with their names, highest first, ties by id."""
        order = _order(self.values, k)
        return list(zip(self.names.names(order), self.values[order].tolist(), strict=True))


def pagerank(
    graph: Graph,
    *,
    damping: float = 0.85,
    personalization: Personalization | None = None,
    dangling: Dangling | str = Dangling.SPREAD,
    removals: int = 2,
    stop: StoppingRule | None = None,
    start: Vector | None = None,
    precision: str = "double",
    progress: Callable[[int, float], None] = lambda sweeps, residual: None,
) -> Ranks:
    """Compute the PageRank of every node.

    Parameters
    ----------
    graph
        The stored graph.
    damping
        The share of steps that follow a link, in (0, 1).
    personalization
        Where the other steps go: node names with weights, or names alone (equal weights), or
        float64[nodes] by id; non-negative, not all 0, of any sum. By default anywhere.
    dangling
        What happens to the rank of nodes without out-links: ``spread``, ``uniform``, ``remove``.
    removals
        How often dangling nodes are removed, for ``remove`` only.
    stop
        When to stop; by default ``Residual(1e-8) | Sweeps(10_000)``.
    start
        A vector to start from, float64[nodes], such as an earlier result.
    precision
        Of the rank vector: ``double``, or ``single`` with half the memory traffic. Sums are
        always double.
    progress
        Called after every sweep with (sweeps, bound on the L1 residual).

    Raises
    ------
    UsageError, UnknownNode
    """
    if not 0 < damping < 1:
        raise UsageError(f"damping is {damping!r}; it is a number between 0 and 1, both excluded")
    if precision not in ("single", "double"):
        raise UsageError(f"precision is {precision!r}; it is single or double")
    graph.check()
    try:
        mode = Dangling(dangling)
    except ValueError:
        raise UsageError(
            f"dangling is {dangling!r}; it is " + ", ".join(m.value for m in Dangling)
        ) from None
    system = _System(graph, damping, removals if mode is Dangling.REMOVE else 0, precision)
    where = _teleport(graph, personalization, system.alive)
    rule = stop if stop is not None else Residual() | Sweeps(_PATIENCE)
    guess = _checked_start(graph, start)
    solved, sweeps, reason = system.solve(where, rule, guess, progress)
    share = where
    if mode is Dangling.UNIFORM and personalization is not None:
        share = np.full(graph.nodes, 1 / graph.nodes)
        other, more, _ = system.solve(share, rule, None, progress)
        solved, sweeps = system.combine(solved, other), sweeps + more
    values = solved / solved.sum()
    residual = system.residual(values, where, share)
    return Ranks(
        values,
        Convergence(sweeps, residual, residual / (1 - damping), reason, rule.accurate),
        graph.names,
        int(graph.nodes - system.alive.sum()),
    )


class _System:
    """(I - damping P') y = p on one graph, minus the nodes that were removed."""

    def __init__(self, graph: Graph, damping: float, removals: int, precision: str) -> None:
        from cocite.kernels import rank

        if removals < 0:
            raise UsageError(f"removals is {removals}; it is 0 or more")
        self._offsets, self._sources = graph.in_offsets, graph.in_sources
        self._damping = damping
        self._dtype = np.float32 if precision == "single" else np.float64
        nodes = graph.nodes
        self.alive = np.ones(nodes, bool)
        degrees = graph.out_degrees.copy()
        for _ in range(removals):
            gone = self.alive & (degrees == 0)
            lost = np.zeros(nodes, np.uint32)
            rank.lose_links(self._offsets, self._sources, gone.view(np.uint8), lost)
            self.alive &= ~gone
            degrees -= lost
            if not gone.any():
                break
        if not self.alive.any():
            raise UsageError(
                f"{removals} removals of dangling nodes leave nothing of {graph.path}; take fewer, "
                "or another way with dangling nodes"
            )
        self.degrees = np.where(self.alive, degrees, 0).astype(np.float64)
        self.core = np.flatnonzero(self.degrees)
        self.dangling = self.alive & (self.degrees == 0)
        number = np.full(nodes, rank.NO_NODE, np.uint32)
        number[self.core] = np.arange(self.core.size, dtype=np.uint32)
        self._rows = np.empty(self.core.size + 1, np.uint64)
        self._links = np.empty(graph.edges, np.uint32)
        loops = np.empty(self.core.size, np.uint8)
        size = int(
            rank.compact(self._offsets, self._sources, number, self._rows, self._links, loops)
        )
        self._links = self._links[:size]
        out = self.degrees[self.core]
        self._scale = 1 / (out - damping * loops)
        # Adding up all rows: what stays in the core and what leaves it for dangling nodes balance
        # the teleport: sum of z * ((1 - damping) * out-degree + damping * links to dangling).
        leaving = np.zeros(nodes, np.uint32)
        rank.lose_links(self._offsets, self._sources, self.dangling.view(np.uint8), leaving)
        self._mass = (1 - damping) * out + damping * leaving[self.core]
        self._reach = out + damping * leaving[self.core]

    def solve(
        self,
        where: Vector,
        rule: StoppingRule,
        guess: Vector | None,
        progress: Callable[[int, float], None],
    ) -> tuple[Vector, int, str]:
        """The solution for teleport ``where`` (sum 1), sweeps made, reason for stopping."""
        from cocite.kernels import rank

        base = np.ascontiguousarray(where[self.core])
        first = where if guess is None else guess
        z: NDArray[Any] = (first[self.core] * self._scale).astype(self._dtype)
        owed, at_dangling = float(base.sum()), float(where[self.dangling].sum())
        if owed == 0:  # nobody starts in the core, and dangling nodes lead nowhere
            z[:] = 0
            return self._whole(z, where), 0, "nothing to iterate"
        if (before := float(z @ self._mass)) > 0:
            z *= owed / before  # ranks sum to 1, y to more
        rule.begin()
        sweeps, reason = 0, None
        while reason is None:
            change, total = rank.sweep(
                self._rows, self._links, z, base, self._scale, self._mass, self._damping
            )
            sweeps += 1
            balance = owed / total
            z *= balance
            size = float(z @ self._reach) + at_dangling  # the sum of y, dangling nodes included
            residual = 2 * self._damping * change * balance / size
            order = None
            if rule.wants_order:
                order = _order(self._whole(z, where), rule.wants_order)
            progress(sweeps, residual)
            reason = rule.reached(State(sweeps, residual, order))
        return self._whole(z, where), sweeps, reason

    def _whole(self, z: NDArray[Any], where: Vector) -> Vector:
        """All of y from the core's z: dangling nodes are computed here, once."""
        y = np.zeros(self.alive.size)
        spread = np.zeros(self.alive.size)
        spread[self.core] = z
        self._pull(spread, self.dangling, y)
        y *= self._damping
        y[self.dangling] += where[self.dangling]
        y[self.core] = z * self.degrees[self.core]
        return y

    def _pull(self, z: Vector, wanted: NDArray[np.bool_], out: Vector) -> None:
        from cocite.kernels import rank

        rank.pull(self._offsets, self._sources, z, wanted.view(np.uint8), out)

    def combine(self, solved: Vector, uniform: Vector) -> Vector:
        """Ranks whose dangling mass is spread uniformly, from the two solutions.

        With m the dangling mass, x = (1 - d) y_p + d m y_q, and m on both sides.
        """
        d = self._damping
        here, there = solved[self.dangling].sum(), uniform[self.dangling].sum()
        mass = (1 - d) * here / (1 - d * there)
        combined: Vector = (1 - d) * solved + d * mass * uniform
        return combined

    def residual(self, x: Vector, where: Vector, share: Vector) -> float:
        """||G x - x||_1 for x with sum 1: one pass over all links."""
        d = self._damping
        z = np.zeros(x.size)
        z[self.core] = x[self.core] / self.degrees[self.core]
        after = np.zeros(x.size)
        self._pull(z, self.alive, after)
        after = d * after + (1 - d) * where + d * x[self.dangling].sum() * share
        return float(np.abs(after - x)[self.alive].sum())


def _order(values: Vector, k: int) -> NDArray[np.int64]:
    """The ids of the k largest values, largest first, ties by id."""
    k = min(k, values.size)
    least = np.partition(values, values.size - k)[values.size - k]
    ids = np.flatnonzero(values >= least)
    return ids[np.lexsort((ids, -values[ids]))][:k]


def _teleport(
    graph: Graph, personalization: Personalization | None, alive: NDArray[np.bool_]
) -> Vector:
    """float64[nodes], sum 1, over the nodes that are alive."""
    if personalization is None:
        weights = np.ones(graph.nodes)
    elif isinstance(personalization, np.ndarray):
        weights = personalization.astype(np.float64)
    elif isinstance(personalization, str):
        raise UsageError("personalization is one text; give a list of names, or a mapping")
    else:
        pairs = (
            personalization.items()
            if isinstance(personalization, Mapping)
            else ((name, 1.0) for name in personalization)
        )
        weights = np.zeros(graph.nodes)
        for name, weight in pairs:
            weights[graph.names.id(name)] += weight
    fine = weights.shape == (graph.nodes,) and np.isfinite(weights).all() and (weights >= 0).all()
    weights = np.where(alive, weights, 0) if fine else weights
    if not fine or weights.sum() == 0:
        raise UsageError(
            f"personalization is a non-negative, finite weight for each of {graph.nodes:,} nodes, "
            "not 0 for all that are ranked"
        )
    normalized: Vector = weights / weights.sum()
    return normalized


def _checked_start(graph: Graph, start: Vector | None) -> Vector | None:
    if start is None:
        return None
    guess = np.asarray(start, np.float64)
    if guess.shape != (graph.nodes,) or not np.isfinite(guess).all() or (guess < 0).any():
        raise UsageError(f"start is a non-negative, finite vector of {graph.nodes:,} values")
    return guess
