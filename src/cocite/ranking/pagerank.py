"""PageRank: the share of time that a surfer spends on each page.

    x = damping * (sum over in-neighbours u of x[u] / out-degree(u)) + (1 - damping) * p
        + damping * (rank of dangling nodes) * q                                     sum of x = 1

On a weighted graph the share x[u] / out-degree(u) is x[u] w(u, v) / sum of w over u's out-links.

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

Cost: a pass over the links a sweep. Memory: the links twice and about 120 bytes a node, or 26 bytes
a node and a block (``system.py``).
Source: Haveliwala, *Efficient computation of PageRank*, 2 and 5; Del Corso, Gulli, Romani 2005
(the linear system).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.graph.names import Names
from cocite.memory import budget
from cocite.ranking.stopping import Convergence, Residual, StoppingRule, Sweeps
from cocite.ranking.system import System, order_of
from cocite.ranking.weighted import WeightedSystem

__all__ = ["Dangling", "Personalization", "Ranks", "pagerank", "set_up"]

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
    """``values`` float64[nodes], sum 1, by id; how the iteration ended; the names; how many nodes
    were removed, in how many blocks the graph was read, and whether its weights counted.
    """

    values: Vector
    convergence: Convergence
    names: Names
    removed: int = 0
    blocks: int = 1
    weighted: bool = False

    def top(self, k: int = 20) -> list[tuple[str, float]]:
        """The k highest ranks with their names, highest first, ties by id."""
        order = order_of(self.values, k)
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
    weighted: bool = True,
    memory: str | int | None = None,
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
    weighted
        Share a node's rank by the weights of its links, if the graph has weights; False leaves them
        aside.
    memory
        For the data, beside some 170 MB for Python: bytes, or text such as ``"600MB"``; by default
        half of what is available. What does not fit is streamed from disk, block after block;
        the ranks are the same, to the bit.
    progress
        Called after every sweep with (sweeps, bound on the L1 residual).

    Raises
    ------
    UsageError, UnknownNode
    """
    system, where, mode = set_up(
        graph,
        damping=damping,
        personalization=personalization,
        dangling=dangling,
        removals=removals,
        precision=precision,
        memory=budget(memory),
        weighted=weighted,
    )
    guess = _checked_start(graph, start)
    rule = stop if stop is not None else Residual() | Sweeps(_PATIENCE)
    values, sweeps, reason = system.solve(where, rule, guess, progress)
    share, converged = where, rule.accurate
    if mode is Dangling.UNIFORM and personalization is not None:
        share = system.kept(np.full(graph.nodes, 1 / graph.nodes))
        other, more, _ = system.solve(share, rule, None, progress)
        values, sweeps = _combine(system, damping, values, other), sweeps + more
        converged = converged and rule.accurate
    values /= values.sum()
    residual = system.residual(values, where, share)
    return Ranks(
        values,
        Convergence(sweeps, residual, residual / (1 - damping), reason, converged),
        graph.names,
        int(system.gone().sum()),
        len(system.cuts) + 1,
        system.weighted,
    )


def set_up(
    graph: Graph,
    *,
    damping: float,
    personalization: Personalization | None,
    dangling: Dangling | str,
    removals: int,
    precision: str = "double",
    memory: int,
    weighted: bool = False,
) -> tuple[System, Vector, Dangling]:
    """Check what :func:`pagerank` is given: the system, the teleport (sum 1), the way."""
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
    kind = WeightedSystem if weighted and graph.in_weights is not None else System
    system = kind(graph, damping, removals if mode is Dangling.REMOVE else 0, precision, memory)
    return system, system.kept(_teleport(graph, personalization, system.gone())), mode


def _combine(system: System, d: float, solved: Vector, uniform: Vector) -> Vector:
    """Ranks whose dangling mass is spread uniformly, from the two solutions.

    With m the dangling mass, x = (1 - d) y_p + d m y_q, and m on both sides.
    """
    here, there = system.dangling_sum(solved), system.dangling_sum(uniform)
    mass = (1 - d) * here / (1 - d * there)
    combined: Vector = (1 - d) * solved + d * mass * uniform
    return combined


def _teleport(
    graph: Graph, personalization: Personalization | None, gone: NDArray[np.bool_]
) -> Vector:
    """float64[nodes], sum 1, over the nodes that are not gone."""
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
    if fine:
        weights[gone] = 0
    if not fine or weights.sum() == 0:
        raise UsageError(
            f"personalization is a non-negative, finite weight for each of {graph.nodes:,} nodes, "
            "not 0 for all that are ranked"
        )
    weights /= weights.sum()
    return weights


def _checked_start(graph: Graph, start: Vector | None) -> Vector | None:
    if start is None:
        return None
    guess = np.asarray(start, np.float64)
    if guess.shape != (graph.nodes,) or not np.isfinite(guess).all() or (guess < 0).any():
        raise UsageError(f"start is a non-negative, finite vector of {graph.nodes:,} values")
    return guess
