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
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cocite.engine.scan import Fold, Scan
from cocite.engine.scan_plan import ScanPlan, plan_scan
from cocite.errors import NotConverged, UsageError
from cocite.graph import Graph
from cocite.graph.links import links_of
from cocite.graph.names import Names
from cocite.graph.rows import Links
from cocite.graph.writable import Writable
from cocite.means import Means
from cocite.ranking.stopping import Residual, State, StoppingRule, Sweeps
from cocite.ranking.vectors import Vector, divide, order_of, pieces, total

if TYPE_CHECKING:
    from cocite.graph.writers import Target, Types

__all__ = ["Hits", "hits", "plan_hits"]

_PATIENCE = 10_000


@dataclass(frozen=True)
class Hits(Writable):
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
        from cocite.graph.writers import numbers_types

        return numbers_types("authority", "hub")

    def _write(self, target: Target) -> None:
        from cocite.graph.writers import write_numbers

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
) -> Hits:
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
    means = Means.checked(threads, memory, blocks=blocks)
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
        _normalise(authorities)
        back(authorities, Fold.SUM, out=hubs)
        _normalise(hubs)
        sweeps, change = sweeps + 1, _distance(authorities, before)
        order = order_of(authorities, rule.wants_order) if rule.wants_order else None
        progress(sweeps, change)
        reason = rule.reached(State(sweeps, change, order))
    return Hits(hubs, authorities, graph.names, sweeps, change, reason, rule.accurate)


def plan_hits(graph: Graph, means: Means) -> ScanPlan:
    """How :func:`hits` will scan, and the memory that it takes in all.

    Raises :class:`UsageError` for a graph without links, :class:`~cocite.errors.ResourceError` if
    the memory is not enough.
    """
    if graph.edges == 0:
        raise UsageError(f"{graph.path} has no links: hubs and authorities are made of them")
    links = links_of(graph, "in")
    plan = _plan(links, means)
    return replace(plan, memory=plan.memory + _beside(links, means))


def _plan(links: Links, means: Means) -> ScanPlan:
    return plan_scan(links, replace(means, memory=max(1, means.memory - _beside(links, means))))


def _beside(links: Links, means: Means) -> int:
    """What is in memory beside one scan: the other one's links, and a vector."""
    return min(links.nbytes, means.memory // 2) + 8 * links.nodes


def _normalise(values: Vector) -> None:
    whole = total(values)
    if not 0 < whole < math.inf:
        raise NotConverged(f"hubs or authorities sum to {whole}, which is not to be had of links")
    divide(values, whole)


def _distance(one: Vector, other: Vector) -> float:
    sums = (float(np.abs(one[p] - other[p]).sum()) for p in pieces(0, one.size, one, other))
    return math.fsum(sums)
