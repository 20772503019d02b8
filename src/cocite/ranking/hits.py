"""HITS: good hubs link to good authorities, and good authorities are linked from good hubs.

    authority = A' hub,    hub = A authority,    each divided by its sum

with A[u, v] = 1 if u links to v, over and over, from hubs that are all equal. What comes of it is
the part of A' 1 that lies among the vectors of the largest eigenvalue of A' A: one vector, if that
eigenvalue is simple, as it usually is.

Convention: hubs sum to 1, and so do authorities, as in NetworkX; in Kleinberg's paper their squares
do. All links count the same. A graph without links has neither.

Error: the change shrinks by the ratio of the two largest eigenvalues a sweep, which nobody knows
beforehand; so the change of the authorities in the last sweep (L1) is told, and no bound on the
error. It ends by count if it must, and then says that it has not converged.

Cost: two scans a sweep (``engine/scan.py``), one along in-links and one along out-links, which are
made first. Memory: the links twice and 24 bytes a node; with less, links and vectors are on disk,
and the scores are the same to the bit. Making out-links takes 8 bytes a node and 16 MB at least.
Source: Kleinberg 1999, *Authoritative sources in a hyperlinked environment*.

When to stop, as a value; and what came of it, as a value.

Rules are joined with ``|``: the first that holds stops the iteration. ``Residual`` is accuracy;
``Sweeps`` is patience, and stopping for it means *not converged*, which the result says;
``TopOrder`` is what a search engine needs, an order that no longer changes (Haveliwala, 5).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.engine.plan import ScanPlan, plan_scan
from cocite.engine.scan import Fold, Scan
from cocite.errors import NotConverged, UsageError
from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.graph.links import links_of
from cocite.graph.names import Names
from cocite.ranking.vectors import Vector, divide, order_of, pieces, total
from cocite.resources import Resources
from cocite.results import Writable

if TYPE_CHECKING:
    from cocite.io.writers import Target, Types


class HitsState(NamedTuple):
    """What a rule may look at: sweeps made, a bound on the L1 residual, and the top order."""

    sweeps: int
    residual: float
    order: NDArray[np.int64] | None


@dataclass(frozen=True)
class Convergence:
    """How an iteration ended.

    ``residual`` is ||G x - x||_1 of the vector returned, computed anew; ``error_bound`` bounds
    ||x - x*||_1 and is residual / (1 - damping). ``reason`` names the rule that stopped it.
    """

    sweeps: int
    residual: float
    error_bound: float
    reason: str
    converged: bool


class StoppingRule(ABC):
    """A rule; ``a | b`` stops when either does."""

    wants_order = 0
    """How many of the top nodes' order the rule looks at."""

    def begin(self) -> None:
        """Forget an earlier run: called before the first sweep."""
        return

    @abstractmethod
    def reached(self, state: HitsState) -> str | None:
        """The reason to stop now, or None."""

    @property
    def accurate(self) -> bool:
        """Whether stopping for this rule means that the result is converged."""
        return True

    def __or__(self, other: StoppingRule) -> StoppingRule:
        return _Either(self, other)


@dataclass(frozen=True)
class Residual(StoppingRule):
    """Stop when the L1 residual is at most ``tolerance``: absolute, never times the nodes."""

    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        if not (isinstance(self.tolerance, int | float) and 0 < self.tolerance < 1):
            raise UsageError(f"tolerance is {self.tolerance!r}; it is a number between 0 and 1")

    def reached(self, state: HitsState) -> str | None:
        """Whether the bound on the residual is small enough."""
        return f"residual <= {self.tolerance:g}" if state.residual <= self.tolerance else None


@dataclass(frozen=True)
class Sweeps(StoppingRule):
    """Stop after ``count`` sweeps, converged or not."""

    count: int

    def __post_init__(self) -> None:
        if type(self.count) is not int or self.count < 1:
            raise UsageError(f"sweeps is {self.count!r}; it is a whole number, 1 or more")

    def reached(self, state: HitsState) -> str | None:
        """Whether that many sweeps were made."""
        return f"{self.count} sweeps" if state.sweeps >= self.count else None

    @property
    def accurate(self) -> bool:
        """Patience is not accuracy."""
        return False


class TopOrder(StoppingRule):
    """Stop when the order of the top ``k`` nodes has not changed for ``sweeps`` sweeps."""

    def __init__(self, k: int, sweeps: int = 3) -> None:
        if k < 1 or sweeps < 1:
            raise UsageError(f"top order of {k} for {sweeps} sweeps; both are 1 or more")
        self.k, self.sweeps = k, sweeps
        self.wants_order = k
        self.begin()

    def __repr__(self) -> str:
        return f"TopOrder(k={self.k}, sweeps={self.sweeps})"

    def begin(self) -> None:
        """Forget the order seen last."""
        self._last: NDArray[np.int64] | None = None
        self._same = 0

    def reached(self, state: HitsState) -> str | None:
        """Whether the order stood still for long enough."""
        assert state.order is not None
        order = state.order[: self.k]
        same = self._last is not None and np.array_equal(order, self._last)
        self._same = self._same + 1 if same else 0
        self._last = order
        if self._same < self.sweeps:
            return None
        return f"top {self.k} in the same order for {self.sweeps} sweeps"


class _Either(StoppingRule):
    def __init__(self, first: StoppingRule, second: StoppingRule) -> None:
        self._rules = (first, second)
        self._accurate = True
        self.wants_order = max(first.wants_order, second.wants_order)

    def __repr__(self) -> str:
        return " | ".join(map(repr, self._rules))

    def begin(self) -> None:
        for rule in self._rules:
            rule.begin()

    def reached(self, state: HitsState) -> str | None:
        # Every rule is asked at every sweep: some keep count.
        reasons = [(rule, rule.reached(state)) for rule in self._rules]
        for rule, reason in reasons:
            if reason is not None:
                self._accurate = rule.accurate
                return reason
        return None

    @property
    def accurate(self) -> bool:
        return self._accurate


# -- hits --------------------------------------------------------------------------------


_PATIENCE = 10_000


@dataclass(frozen=True)
class HubsAuthorities(Writable):
    """``hubs`` and ``authorities`` float64[nodes], each of sum 1, by id; the names; ``change``, the
    L1 change of the authorities in the last of ``sweeps`` sweeps; why it was the last.
    """

    hubs: Vector
    authorities: Vector
    names: Names
    sweeps: int
    change: float
    reason: str
    converged: bool

    _arrays = True

    def _types(self) -> Types:
        from cocite.io.writers import numbers_types

        return numbers_types("authority", "hub")

    def _write(self, target: Target) -> None:
        from cocite.io.writers import write_numbers

        write_numbers(target, self.names, authority=self.authorities, hub=self.hubs)

    def top(self, k: int = 20, by: str = "authorities") -> list[tuple[str, float, float]]:
        """The k highest ``authorities``, or ``hubs``: (name, authority, hub), highest first, ties
        by id.
        """
        if by not in ("authorities", "hubs"):
            raise UsageError(f"by is {by!r}; it is authorities or hubs")
        order = order_of(self.authorities if by == "authorities" else self.hubs, k)
        columns = self.authorities[order].tolist(), self.hubs[order].tolist()
        return list(zip(self.names.names(order), *columns, strict=True))


def hits(
    graph: Graph,
    *,
    stop: StoppingRule | None = None,
    weighted: bool = True,
    threads: int | None = None,
    memory: str | int | None = None,
    blocks: int | None = None,
    progress: Callable[[int, float], None] = lambda sweeps, change: None,
) -> HubsAuthorities:
    """Compute hubs and authorities.

    Parameters
    ----------
    graph
        The stored graph.
    stop
        When to stop; a residual is the change here. By default ``Residual(1e-8)``. After 10,000
        sweeps it ends in any case.
    weighted
        False leaves weights of links aside; without it a graph that has any is refused.
    threads
        At most so many; by default all cores.
    memory
        For the data, beside some 150 MB for Python: bytes, or text such as ``"600MB"``; by default
        half of what is available.
    blocks
        Scan in so many blocks from disk, whatever the memory.
    progress
        Called after every sweep with (sweeps, change).

    Raises
    ------
    UsageError, ResourceError, NotConverged, Damaged
    """
    if weighted and graph.in_weights is not None:
        raise UsageError(
            "hubs and authorities let all links count the same, and these have weights: pass "
            "--unweighted (weighted=False)"
        )
    means = Resources.checked(threads, memory, blocks=blocks)
    plan_hits(graph, means)
    graph.check()
    ins, outs = links_of(graph, "in"), links_of(graph, "out", means.memory // 2)
    along, back = (Scan(links, _plan(links, means), folder=graph.path) for links in (ins, outs))
    hubs, authorities, before = along.vector(), along.vector(), along.vector()
    for part in pieces(0, graph.nodes, hubs):
        hubs[part] = 1 / graph.nodes
    rule = (Residual() if stop is None else stop) | Sweeps(_PATIENCE)
    rule.begin()
    reason, sweeps, change = None, 0, math.inf
    while reason is None:
        authorities, before = before, authorities
        along(hubs, Fold.SUM, out=authorities)
        _normalize(authorities)
        back(authorities, Fold.SUM, out=hubs)
        _normalize(hubs)
        sweeps, change = sweeps + 1, _distance(authorities, before)
        order = order_of(authorities, rule.wants_order) if rule.wants_order else None
        progress(sweeps, change)
        reason = rule.reached(HitsState(sweeps, change, order))
    return HubsAuthorities(hubs, authorities, graph.names, sweeps, change, reason, rule.accurate)


def plan_hits(graph: Graph, means: Resources) -> ScanPlan:
    """How :func:`hits` will scan, and the memory that it takes in all.

    Raises :class:`UsageError` for a graph without links, :class:`~cocite.errors.ResourceError` if
    the memory is not enough.
    """
    if graph.edges == 0:
        raise UsageError(f"{graph.path} has no links: hubs and authorities are made of them")
    links = links_of(graph, "in")
    plan = _plan(links, means)
    return replace(plan, memory=plan.memory + _extra_memory(links, means))


def _plan(links: Links, means: Resources) -> ScanPlan:
    return plan_scan(
        links, replace(means, memory=max(1, means.memory - _extra_memory(links, means)))
    )


def _extra_memory(links: Links, means: Resources) -> int:
    """What is in memory beside one scan: the other one's links, and a vector."""
    return min(links.nbytes, means.memory // 2) + 8 * links.nodes


def _normalize(values: Vector) -> None:
    whole = total(values)
    if not 0 < whole < math.inf:
        raise NotConverged(f"hubs or authorities sum to {whole}, which is not to be had of links")
    divide(values, whole)


def _distance(one: Vector, other: Vector) -> float:
    sums = (float(np.abs(one[p] - other[p]).sum()) for p in pieces(0, one.size, one, other))
    return math.fsum(sums)
