"""PageRank: the share of time that a surfer spends on each page.

    x = damping * (sum over in-neighbors u of x[u] / out-degree(u)) + (1 - damping) * p
        + damping * (rank of dangling nodes) * q                                     sum of x = 1

On a weighted graph the share x[u] / out-degree(u) is x[u] w(u, v) / sum of w over u's out-links.

p is the personalization (uniform by default) and q where dangling nodes' rank goes: p (the
default, as in NetworkX), or uniform; or dangling nodes are removed first, as often as asked, as
the paper does.

Solved as a linear system, (I - damping P') y = p with x = y / sum(y), because with q = p the
dangling term only scales the solution; another q takes a second solution. Gauss-Seidel sweeps in
order of id on the core (``kernels/rank.py``): each sweep is followed by one scalar that
restores the balance of the total mass, which removes the slowest component of the error. On web
graphs in URL order that takes half as many passes over the links as power iteration. After every
eighth sweep the last six iterates are combined to what lies ahead of them (``ranking/solver.py``),
which saves a third to a half of the sweeps there.

Error: for x with sum 1, ||x - x*||_1 <= ||G x - x||_1 / (1 - damping), as G shrinks vectors of
sum 0 by the damping. A sweep solves rows exactly but for what later rows changed. So its residual
is at most what all changes pass on to other rows of the core, and what the balance moves: that
bound stops the iteration; the residual reported is computed from the result.

Cost: a pass over the links a sweep. Memory: the links twice and 166 bytes a node; or any amount,
from 8 MB on (``ranking/vectors.py``).
Source: Haveliwala, *Efficient computation of PageRank*, 2 and 5; Del Corso, Gulli, Romani 2005
(the linear system).

Where the surfer goes who does not follow a link: the personalization, as it is given and told.

Given are names with weights, names alone, or a vector; the weights of a node that is named twice
add up. Told is the teleport, float64[nodes] of sum 1. By default it is the same for all nodes.

A file of weights is read when the teleport is made, row by row, so it may be as large as the graph.
Source: Haveliwala, *Efficient computation of PageRank*, 2.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cocite.errors import InputError, UsageError
from cocite.graph import Graph
from cocite.graph.names import Names
from cocite.io.opening import open_graph
from cocite.io.readers import read_columns
from cocite.ranking.core import Lumped
from cocite.ranking.hits import Convergence, Residual, StoppingRule, Sweeps
from cocite.ranking.solver import System
from cocite.ranking.vectors import Vector, divide, order_of, pieces, plan_ranks, total
from cocite.resources import budget
from cocite.results import Writable

if TYPE_CHECKING:
    from cocite.io.writers import Target, Types


_LOOKED_UP = 1 << 14
"""Names looked up until their memory is given back."""


class Weighted(Protocol):
    """Names of nodes with weights; a mapping is one."""

    def items(self) -> Iterable[tuple[str, float]]:
        """Every name and its weight."""


Personalization = Mapping[str, float] | Weighted | Iterable[str] | Vector


class WeightsFile:
    """Rows of a node and its weight: text (tabs, or commas in ``.csv``) or Parquet, as ``rank -o``
    writes them. A first row whose weight is no number is a title.
    """

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self.path = Path(file)

    def __repr__(self) -> str:
        return f"WeightsFile({str(self.path)!r})"

    def items(self) -> Iterator[tuple[str, float]]:
        """Every name and its weight; raises :class:`InputError`."""
        for row, (name, text) in enumerate(read_columns(self.path)):
            weight = _weight(text)
            if weight is not None:
                yield name, weight
            elif row > 0:
                raise InputError(
                    f"{self.path}: the weight of {name!r} is {text!r}; it is a finite number, 0 or "
                    "more"
                )


class _Toward:
    """Pairs, and files of weights beside them."""

    def __init__(self, pairs: Sequence[tuple[str, float]], files: Sequence[WeightsFile]) -> None:
        self._pairs, self._files = pairs, files

    def items(self) -> Iterator[tuple[str, float]]:
        """Every name and its weight."""
        return chain(self._pairs, *(file.items() for file in self._files))


def toward_of(
    graph: Graph, texts: Sequence[str], files: Sequence[str | os.PathLike[str]] = ()
) -> Weighted | None:
    """The personalization of texts that each name a node, or a node and behind ``=`` its weight,
    and of files of weights. None if there are neither.

    A text that is a node's name is that node, whatever it ends in.
    """
    if not texts and not files:
        return None
    return _Toward([_pair(graph.names, text) for text in texts], [WeightsFile(f) for f in files])


def _weight(text: str) -> float | None:
    try:
        weight = float(text)
    except ValueError:
        return None
    return weight if 0 <= weight < math.inf else None


def _pair(names: Names, text: str) -> tuple[str, float]:
    name, equals, end = text.rpartition("=")
    weight = _weight(end)
    if equals and weight is not None and text not in names:
        return name, weight
    return text, 1.0


def teleport(lumped: Lumped, personalization: Personalization | None) -> Vector:
    """float64[nodes], sum 1, over the nodes that are not gone.

    Raises :class:`UsageError`, :class:`~cocite.errors.UnknownNode`, :class:`InputError`.
    """
    from cocite.kernels import rank

    where = lumped.vector()
    fine = True
    if isinstance(personalization, str):
        raise UsageError("personalization is one text; give a list of names, or a mapping")
    if isinstance(personalization, np.ndarray):
        fine = personalization.shape == where.shape
    elif personalization is not None:
        names = lumped.graph.names
        for number, (name, weight) in enumerate(_pairs(personalization), 1):
            where[names.id(name)] += weight
            if number % _LOOKED_UP == 0:
                names.evict()
                lumped.rest(where)
    for part in lumped.pieces(lumped.degrees, where) if fine else ():
        piece = where[part]
        if personalization is None:
            piece[:] = 1
        elif isinstance(personalization, np.ndarray):
            piece[:] = personalization[part]
        fine = fine and bool(np.isfinite(piece).all()) and bool((piece >= 0).all())
        piece[lumped.degrees[part] == rank.GONE] = 0
    whole = total(where) if fine else 0.0
    if not 0 < whole < np.inf:
        raise UsageError(
            f"personalization is a non-negative, finite weight for each of {lumped.nodes:,} nodes, "
            "not 0 for all that are ranked, and of a finite sum"
        )
    divide(where, whole)
    return where


def _pairs(personalization: Weighted | Iterable[str]) -> Iterable[tuple[str, float]]:
    if isinstance(personalization, Mapping) or hasattr(personalization, "items"):
        return personalization.items()
    return ((name, 1.0) for name in personalization)


# -- pagerank ----------------------------------------------------------------------------


_PATIENCE = 10_000
"""Sweeps after which the iteration ends, whatever else it is to stop for."""


class Dangling(Enum):
    """What happens to the rank of nodes without out-links."""

    SPREAD = "spread"
    """It is spread as the personalization is."""
    UNIFORM = "uniform"
    """It is spread over all nodes equally."""
    REMOVE = "remove"
    """Such nodes are removed first and have rank 0; what is dangling then is spread."""


@dataclass(frozen=True)
class Ranks(Writable):
    """``values`` float64[nodes], sum 1, by id; how the iteration ended; the names; how many nodes
    were removed, in how many blocks the graph was read, and whether its weights counted; bytes of
    values that blocks sent each other, where they live apart.

    If everything did not fit in memory, ``values`` is a file without a name, mapped: it goes with
    the last reference to it.
    """

    values: Vector
    convergence: Convergence
    names: Names
    removed: int = 0
    blocks: int = 1
    weighted: bool = False
    sent: int | None = None

    _arrays = True

    def _types(self) -> Types:
        from cocite.io.writers import numbers_types

        return numbers_types("rank")

    def _write(self, target: Target) -> None:
        from cocite.io.writers import write_numbers

        write_numbers(target, self.names, rank=self.values)

    def top(self, k: int = 20, side: str | None = None) -> list[tuple[str, float]]:
        """The k highest ranks with their names, highest first, ties by id; of a bipartite graph
        those of a ``side``, by its title, or of both.
        """
        within = range(self.values.size)
        if side is not None:
            if self.names.sides is None:
                raise UsageError("the graph is not bipartite: leave side out")
            within = self.names.sides.named(side)
        order = order_of(self.values[within.start : within.stop], k) + within.start
        return list(zip(self.names.names(order), self.values[order].tolist(), strict=True))


def pagerank(
    graph: Any,
    *,
    damping: float = 0.85,
    personalization: Personalization | None = None,
    dangling: Dangling | str = Dangling.SPREAD,
    removals: int = 2,
    tolerance: float | None = None,
    max_sweeps: int | None = None,
    stop: StoppingRule | None = None,
    start: Vector | None = None,
    precision: str = "double",
    weighted: bool = True,
    memory: str | int | None = None,
    blocks: int | None = None,
    progress: Callable[[int, float], None] = lambda sweeps, residual: None,
) -> Ranks:
    """Compute the PageRank of every node.

    Parameters
    ----------
    graph
        A stored graph, or anything else that holds links (:func:`cocite.open_graph`).
    damping
        The share of steps that follow a link, in (0, 1).
    personalization
        Where the other steps go: node names with weights (a mapping, or a
        :class:`~cocite.ranking.WeightsFile`), or names alone (equal weights), or float64[nodes] by
        id; non-negative, not all 0, of any sum. By default anywhere.
    dangling
        What happens to the rank of nodes without out-links: ``spread``, ``uniform``, ``remove``.
    removals
        How often dangling nodes are removed, for ``remove`` only.
    tolerance
        The L1 residual at which to stop, ||G x - x||_1, in (0, 1); by default 1e-8. The error of
        all ranks together is at most this over 1 - damping.
    max_sweeps
        How many sweeps to make at most; by default, and in any case, 10,000. Who stops for that has
        ``convergence.converged`` False.
    stop
        When to stop, as a rule, in place of the two before: ``Residual(1e-8)``, ``TopOrder(100)``,
        or rules joined with ``|``.
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
        half of what is available; at least 8 MB. What does not fit is on disk, and goes by block
        after block; the ranks are the same, to the bit.
    blocks
        Keep everything on disk but one of so many blocks, even if it fits.
    progress
        Called after every sweep with (sweeps, bound on the L1 residual).

    Raises
    ------
    UsageError, UnknownNode, ResourceError, Damaged
    """
    graph = open_graph(graph, memory=memory)
    system, where, mode = set_up(
        graph,
        damping=damping,
        personalization=personalization,
        dangling=dangling,
        removals=removals,
        precision=precision,
        memory=budget(memory),
        blocks=blocks,
        weighted=weighted,
    )
    guess = _checked_start(system, start)
    rule = _rule(tolerance, max_sweeps, stop) | Sweeps(_PATIENCE)
    values, sweeps, reason = system.solve(where, rule, guess, progress)
    share, converged = where, rule.accurate
    if mode is Dangling.UNIFORM and personalization is not None:
        share = teleport(system.lumped, None)
        other, more, _ = system.solve(share, rule, None, progress)
        _combine(system, damping, values, other)
        sweeps += more
        converged = converged and rule.accurate
    divide(values, total(values))
    residual = system.residual(values, where, share)
    return Ranks(
        values,
        Convergence(sweeps, residual, residual / (1 - damping), reason, converged),
        graph.names,
        system.lumped.removed(),
        system.links.blocks,
        system.lumped.weighted,
        system.links.sent,
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
    blocks: int | None = None,
    weighted: bool = False,
) -> tuple[System, Vector, Dangling]:
    """Check what :func:`pagerank` is given: the system, the teleport (sum 1), the way."""
    if not 0 < damping < 1:
        raise UsageError(f"damping is {damping!r}; it is a number between 0 and 1, both excluded")
    if precision not in ("single", "double"):
        raise UsageError(f"precision is {precision!r}; it is single or double")
    try:
        mode = Dangling(dangling)
    except ValueError:
        raise UsageError(
            f"dangling is {dangling!r}; it is " + ", ".join(m.value for m in Dangling)
        ) from None
    weighted = weighted and graph.in_weights is not None
    room = plan_ranks(graph, memory, weighted, blocks)
    graph.check()
    system = System(
        graph,
        damping,
        room=room,
        removals=removals if mode is Dangling.REMOVE else 0,
        precision=precision,
        weighted=weighted,
    )
    return system, teleport(system.lumped, personalization), mode


def _combine(system: System, d: float, solved: Vector, uniform: Vector) -> None:
    """Ranks whose dangling mass is spread uniformly, from the two solutions, into ``solved``.

    With m the dangling mass, x = (1 - d) y_p + d m y_q, and m on both sides.
    """
    here, there = system.dangling_sum(solved), system.dangling_sum(uniform)
    mass = (1 - d) * here / (1 - d * there)
    for part in pieces(0, solved.size, solved, uniform):
        solved[part] = (1 - d) * solved[part] + d * mass * uniform[part]


def _rule(
    tolerance: float | None, max_sweeps: int | None, stop: StoppingRule | None
) -> StoppingRule:
    """When to stop, by what the caller has given of it."""
    if stop is not None:
        if tolerance is not None or max_sweeps is not None:
            raise UsageError("stop takes the place of tolerance and max_sweeps: give it, or them")
        if not isinstance(stop, StoppingRule):
            raise UsageError(f"stop is {stop!r}; it is a rule, such as Residual(1e-8)")
        return stop
    rule: StoppingRule = Residual() if tolerance is None else Residual(tolerance)
    return rule if max_sweeps is None else rule | Sweeps(max_sweeps)


def _checked_start(system: System, start: Vector | None) -> Vector | None:
    if start is None:
        return None
    given, guess = np.asarray(start), system.vector()
    fine = given.shape == guess.shape
    for part in pieces(0, guess.size, guess) if fine else ():
        piece = guess[part]
        piece[:] = given[part]
        fine = fine and bool(np.isfinite(piece).all()) and bool((piece >= 0).all())
    if not fine or not np.isfinite(total(guess)):
        raise UsageError(
            f"start is a non-negative vector of {guess.size:,} values, of a finite sum"
        )
    return guess
