"""How PageRank converges: the residual, and the order of the ranks, after each sweep.

Two iterations run from the same start, each for ``reference`` sweeps: power iteration, x <- G x,
and cocite's Gauss-Seidel sweeps (``ranking/pagerank.py``), without the extrapolation after every
eighth sweep. Both are compared with the same order: the order after ``reference`` Gauss-Seidel
sweeps. After each sweep, with x of sum 1:

* residual: ||G x - x||_1, computed from the vector and not estimated;
* similarity of the top n: |A & B| / |A | B|, where A are the n highest nodes after the sweep and
  B those of the reference;
* settled: the sweep from which on the top n have the same members, nearly the same members, or the
  same order.

After some of the sweeps, also the histogram of differences in position: the position after the
sweep minus the position in the reference, for every node in the top of at least one of them. All of
this is computed for all nodes, and for the results of each query, in their order among each other.

Nodes whose reference ranks are equal up to rounding have no order: they are sorted as in the order
that is compared. Sums of k values are rounded by at most k 2**-53 of themselves, and sweeps amplify
this by at most 1 / (1 - damping); k is the largest in-degree. The paper does not discuss ties, and
compares power iteration with itself.

Cost: three passes over the links per Gauss-Seidel sweep, and one per power iteration; a partial
sort per sweep, and a sort of all ranks for each sweep that is compared. Memory: that of PageRank,
and about 80 bytes per node.
Source: Haveliwala, *Efficient computation of PageRank*, 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from benchmarks.convergence.orders import (
    Histogram,
    Ids,
    Reference,
    memory_beside,
    places_of,
    position_histogram,
    rounding_of,
    sizes_to,
    top_similarity,
)
from benchmarks.convergence.queries import Query
from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.kernels.rank import GONE
from cocite.options.rank import RankOptions
from cocite.ranking.pagerank import Dangling, Personalization, set_up
from cocite.ranking.solver import System
from cocite.ranking.vectors import Vector, order_of


class Iteration(Enum):
    """What computes the ranks."""

    POWER = "power iteration"
    GAUSS_SEIDEL = "Gauss-Seidel"


@dataclass(frozen=True)
class Settled:
    """From which sweep on the top ``n`` are those of the reference: with a similarity of at least
    0.99 (``nearly``), with the same ``members``, in the same ``order``. None: not to the end.
    """

    n: int
    nearly: int | None
    members: int | None
    order: int | None


@dataclass(frozen=True)
class Agreement:
    """The orders of one iteration among one set of ``nodes`` nodes.

    ``similarity`` float64[top], for n = 1, 2, ..., and ``positions`` by number of sweeps; ``query``
    is None for the order of all nodes.
    """

    iteration: Iteration
    query: str | None
    nodes: int
    similarity: dict[int, Vector]
    positions: dict[int, Histogram]
    settled: tuple[Settled, ...]


@dataclass(frozen=True)
class ConvergenceStudy:
    """``residuals`` float64[reference], after sweep 1, 2, ...; how the orders agreed."""

    reference: int
    sweeps: tuple[int, ...]
    top: int
    bucket: int
    residuals: dict[Iteration, Vector]
    agreements: tuple[Agreement, ...]


def study(
    graph: Graph,
    *,
    queries: Sequence[Query] = (),
    sweeps: Sequence[int] = (5, 10, 25, 50),
    reference: int = 100,
    top: int = 10_000,
    bucket: int = 1,
    damping: float = 0.85,
    personalization: Personalization | None = None,
    dangling: Dangling | str = Dangling.SPREAD,
    removals: int = 2,
    memory: str | int | None = None,
    blocks: int | None = None,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> ConvergenceStudy:
    """Follow PageRank sweep by sweep.

    Parameters
    ----------
    graph
        The stored graph.
    queries
        Sets of nodes to look at the order in, besides all nodes
        (:mod:`~benchmarks.convergence.queries` makes them).
    sweeps
        After how many sweeps similarity and positions are kept, each less than ``reference``.
    reference
        How many sweeps are made; the order after the last of ours is what others are compared with.
    top
        How many of the highest nodes are looked at, or all if there are fewer.
    bucket
        How many positions share a bucket of the histogram.
    damping, personalization, dangling, removals, memory, blocks
        As :func:`~cocite.ranking.pagerank` has them. A personalization does not go with
        ``uniform``, which takes two solutions of the system.
    progress
        Called after every sweep with (``reference`` or iteration, sweeps made, sweeps in all).

    Raises
    ------
    UsageError, UnknownNode, ResourceError
    """
    compared = tuple(sorted(set(sweeps)))
    if reference < 2 or not compared or not 1 <= compared[0] <= compared[-1] < reference:
        raise UsageError(
            f"sweeps {', '.join(map(str, compared))} are compared with {reference}; give one or "
            "more, from 1 on, and fewer than they are compared with"
        )
    if top < 1 or bucket < 1:
        raise UsageError(f"top is {top}, bucket is {bucket}; both are 1 or more")
    system, where, mode = set_up(
        graph,
        RankOptions(damping=damping, dangling=dangling, removals=removals, blocks=blocks),
        personalization,
        memory_beside(graph, queries, memory),
    )
    if mode is Dangling.UNIFORM and personalization is not None:
        raise UsageError(
            "a study does not go with uniform dangling nodes and a personalization at once: choose "
            "another --dangling (dangling=), or leave out --toward (personalization=)"
        )
    sets = _sets(system, queries)
    x = _last(system, where, reference, progress)
    rounding = rounding_of(graph, damping)
    references = [Reference(nodes, x, top, rounding) for _, nodes in sets]
    residuals: dict[Iteration, Vector] = {}
    agreements: list[Agreement] = []
    for iteration, ranks in _ITERATIONS.items():
        residuals[iteration] = np.zeros(reference)
        watches = [_Watch(order, compared, reference, bucket) for order in references]
        for done, (x, residual) in enumerate(islice(ranks(system, where), reference), 1):
            residuals[iteration][done - 1] = residual
            for watch in watches:
                watch.see(done, x)
            progress(iteration.value, done, reference)
        agreements += [
            watch.agreement(iteration, query)
            for watch, (query, _) in zip(watches, sets, strict=True)
        ]
    return ConvergenceStudy(reference, compared, top, bucket, residuals, tuple(agreements))


def _sets(system: System, queries: Sequence[Query]) -> list[tuple[str | None, Ids]]:
    """The sets of nodes to look at, without those that were removed."""
    remaining = system.lumped.degrees != GONE
    found: list[tuple[str | None, Ids]] = [(None, np.flatnonzero(remaining).astype(np.uint32))]
    for query in queries:
        nodes = query.nodes[remaining[query.nodes]]
        if nodes.size == 0:
            raise UsageError(
                f"no node of the query {query.label!r} is left after the removals; take fewer, or "
                "another query"
            )
        found.append((query.label, nodes))
    return found


# -- the iterations: ranks with sum 1 and their L1 residual, sweep by sweep, without end ------


def _power(system: System, where: Vector) -> Iterator[tuple[Vector, float]]:
    following = _step(system, where, where)
    while True:
        x, following = following, _step(system, following, where)
        yield x, float(np.abs(following - x).sum())


def _step(system: System, x: Vector, where: Vector) -> Vector:
    """A step of power iteration; nodes that were removed stay at 0."""
    following = system.vector()
    for part, sums, elsewhere in system.passed_on(x, where, where):
        left = system.lumped.degrees[part] != GONE
        following[part] = np.where(left, elsewhere + sums, 0.0)
    return following


def _gauss_seidel(system: System, where: Vector) -> Iterator[tuple[Vector, float]]:
    for sweep in system.sweeps(where, None, alone=True):
        x = sweep.solution()
        x /= x.sum()
        residual = system.residual(x, where, where)
        yield x, residual
        while sweep.number == 0:  # solved without a sweep, and it stays so
            yield x, residual


_ITERATIONS: dict[Iteration, Callable[[System, Vector], Iterator[tuple[Vector, float]]]] = {
    Iteration.POWER: _power,
    Iteration.GAUSS_SEIDEL: _gauss_seidel,
}


def _last(
    system: System, where: Vector, reference: int, progress: Callable[[str, int, int], None]
) -> Vector:
    """The ranks after ``reference`` sweeps of ours."""
    for sweep in system.sweeps(where, None, alone=True):
        progress("reference", sweep.number, reference)
        if sweep.number in (0, reference):
            break
    return sweep.solution()


# -- the orders ---------------------------------------------------------------------------------


class _Watch:
    """One iteration, compared with one reference."""

    def __init__(
        self, reference: Reference, compared: Sequence[int], sweeps: int, bucket: int
    ) -> None:
        self._reference, self._compared, self._bucket = reference, compared, bucket
        top = reference.top
        self._sizes = sizes_to(top)
        self._similar = np.zeros((sweeps, self._sizes.size))
        self._ordered = np.zeros((sweeps, self._sizes.size), bool)
        self._similarity: dict[int, Vector] = {}
        self._positions: dict[int, Histogram] = {}

    def see(self, done: int, ranks: Vector) -> None:
        """The ranks after ``done`` sweeps."""
        reference = self._reference
        values = ranks[reference.nodes]
        order = order_of(values, reference.top).astype(np.uint32)
        truth = reference.top_as(order)
        similarity = top_similarity(order, truth, values.size)
        differ = np.flatnonzero(order != truth)
        self._similar[done - 1] = similarity[self._sizes - 1]
        self._ordered[done - 1] = self._sizes <= (differ[0] if differ.size else order.size)
        if done in self._compared:
            places = places_of(np.argsort(-values, kind="stable"))
            others = reference.places_as(places)
            self._similarity[done] = similarity
            self._positions[done] = position_histogram(places, others, reference.top, self._bucket)

    def agreement(self, iteration: Iteration, query: str | None) -> Agreement:
        """What was seen."""
        similar, ordered = self._similar, self._ordered
        settled = tuple(
            Settled(
                int(n),
                _since(similar[:, i] >= 0.99),
                _since(similar[:, i] == 1),
                _since(ordered[:, i]),
            )
            for i, n in enumerate(self._sizes)
        )
        nodes = self._reference.nodes.size
        return Agreement(iteration, query, nodes, self._similarity, self._positions, settled)


def _since(holds: NDArray[np.bool_]) -> int | None:
    """The first sweep, counted from 1, from which on it holds to the end."""
    fails = np.flatnonzero(~holds)
    since = int(fails[-1]) + 2 if fails.size else 1
    return since if since <= holds.size else None
