"""HITS: good hubs link to good authorities, and good authorities are linked from good hubs.

    authority = A' hub,    hub = A authority,    each divided by its sum

with A[u, v] = 1 if u links to v, starting with equal hub scores. Hubs and authorities each sum to
1, as in NetworkX; in Kleinberg's paper, their squares do. Link weights are ignored. Each sweep
shrinks the change by the unknown ratio of the two largest eigenvalues of A' A, so the result
reports the last L1 change of the authorities, not an error bound.

Memory holds the links twice and 24 bytes per node. With less memory, links and vectors are on disk,
and scores are bit-identical. Source: Kleinberg 1999, *Authoritative sources in a hyperlinked
environment*.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.engine.plan import LEAST_SHARE, ScanPlan, plan_scan
from cocite.engine.scan import Fold, Scan
from cocite.errors import NotConverged, ResourceError, UsageError
from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.graph.links import links_of
from cocite.graph.names import Names
from cocite.options.rank import RankOptions
from cocite.progress import shows
from cocite.ranking.numbers import NodeNumbers
from cocite.ranking.stopping import SweepState, stopping_rule
from cocite.ranking.vectors import Vector, divide, order_of, pieces, total
from cocite.resources import Resources, format_least, short_of

_OF_HITS = ("tolerance", "max_sweeps", "until_top_stable", "weighted", "blocks")


@dataclass(frozen=True)
class HubsAuthorities(NodeNumbers):
    """Result of HITS: ``hubs`` and ``authorities`` float64[nodes], by id, each with sum 1.

    ``change`` is the L1 change of the authorities in the last of ``sweeps`` sweeps. ``reason`` is
    the condition that ended the iteration.
    """

    hubs: Vector
    authorities: Vector
    names: Names
    sweeps: int
    change: float
    reason: str
    converged: bool

    def _numbers(self) -> dict[str, Any]:
        return {"authority": self.authorities, "hub": self.hubs}

    def top(self, k: int = 20, by: str = "authorities") -> list[tuple[str, float, float]]:
        """Return (name, authority, hub) of the nodes with the k highest ``authorities`` or
        ``hubs``, highest first, ties by id.
        """
        if by not in ("authorities", "hubs"):
            raise UsageError(f"by is {by!r}; it must be authorities or hubs")
        order = order_of(self.authorities if by == "authorities" else self.hubs, k)
        columns = self.authorities[order].tolist(), self.hubs[order].tolist()
        return list(zip(self.names.names(order), *columns, strict=True))


@shows("computing hubs and authorities", "sweep {:,}, change {:.1e}")
def hits(
    graph: Graph,
    *,
    threads: int | None = None,
    memory: str | int | None = None,
    progress: Callable[[int, float], None] = lambda sweeps, change: None,
    options: RankOptions | None = None,
    **given: Any,
) -> HubsAuthorities:
    """Compute hubs and authorities.

    Parameters
    ----------
    graph
        The stored graph.
    threads
        Number of threads, by default all cores.
    memory
        Memory of the whole process, in bytes or as text such as ``"600MB"``; by default half of the
        available memory.
    progress
        Called after every sweep with (sweeps, change).
    options, given
        ``tolerance`` (of the change), ``max_sweeps``, ``until_top_stable``, ``weighted`` and
        ``blocks`` of :class:`~cocite.options.rank.RankOptions`, as one object or by name. Weighted
        graphs require ``weighted=False``, which ignores weights.

    Raises
    ------
    UsageError, ResourceError, NotConverged, Damaged
    """
    options = RankOptions.of(options, given)
    others = [name for name in options.changed() if name not in _OF_HITS]
    if others:
        raise UsageError(
            f"HITS does not support {', '.join(others)}; its options are {', '.join(_OF_HITS)}"
        )
    if options.weighted and graph.in_weights is not None:
        raise UsageError(
            "HITS ignores link weights, and this graph is weighted. To confirm, pass --unweighted "
            "(weighted=False)"
        )
    means = Resources.checked(threads, memory, blocks=options.blocks)
    plan_hits(graph, means)
    graph.check()
    ins, outs = links_of(graph, "in"), links_of(graph, "out", means.memory // 2)
    along, back = (Scan(links, _plan(links, means), folder=graph.path) for links in (ins, outs))
    hubs, authorities, before = along.vector(), along.vector(), along.vector()
    for part in pieces(0, graph.nodes, hubs):
        hubs[part] = 1 / graph.nodes
    rule = stopping_rule(options)
    rule.begin()
    reason, sweeps, change = None, 0, math.inf
    while reason is None:
        authorities, before = before, authorities
        along(hubs, Fold.SUM, out=authorities)
        _normalize(authorities)
        back(authorities, Fold.SUM, out=hubs)
        _normalize(hubs)
        sweeps, change = sweeps + 1, _distance(authorities, before)
        order = order_of(authorities, rule.top) if rule.top else None
        progress(sweeps, change)
        reason = rule.reached(SweepState(sweeps, change, order))
    return HubsAuthorities(hubs, authorities, graph.names, sweeps, change, reason, rule.accurate)


def plan_hits(graph: Graph, means: Resources) -> ScanPlan:
    """Plan the scans of :func:`hits`; the plan's memory covers the whole computation.

    Raises :class:`UsageError` for a graph without links, and
    :class:`~cocite.errors.ResourceError` if the memory is too small.
    """
    if graph.edges == 0:
        raise UsageError(f"{graph.path} has no links, so it has no hubs or authorities")
    links = links_of(graph, "in")
    vector = 8 * links.nodes + LEAST_SHARE
    least = vector + min(links.nbytes, vector)
    if means.memory < least:
        raise ResourceError(
            f"HITS needs at least {format_least(least)} of memory; {short_of(means.memory)}"
        )
    plan = _plan(links, means)
    return replace(plan, memory=plan.memory + _extra_memory(links, means))


def _plan(links: Links, means: Resources) -> ScanPlan:
    return plan_scan(
        links, replace(means, memory=max(1, means.memory - _extra_memory(links, means)))
    )


def _extra_memory(links: Links, means: Resources) -> int:
    """Return the memory that :func:`hits` takes beyond one scan: the other links and a vector."""
    return min(links.nbytes, means.memory // 2) + 8 * links.nodes


def _normalize(values: Vector) -> None:
    whole = total(values)
    if not 0 < whole < math.inf:
        raise NotConverged(
            f"hubs or authorities sum to {whole}; the sum must be positive and finite"
        )
    divide(values, whole)


def _distance(one: Vector, other: Vector) -> float:
    sums = (float(np.abs(one[p] - other[p]).sum()) for p in pieces(0, one.size, one, other))
    return math.fsum(sums)


# -- PageRank by power iteration, for measures that use its scores -------------------------

#     x = damping * (sum over in-neighbors u of x[u] / out-degree(u))
#         + (1 - damping) + damping * (rank of dangling nodes) / nodes            sum of x = nodes
#
# The rank of dangling nodes is distributed evenly over all nodes. Scores have mean 1, so they do
# not shrink as the graph grows. The map contracts vectors of sum 0 by the damping d. By Banach's
# theorem, the vector is within c d / (1 - d) of the solution after a step with L1 change c, and
# within 2 * nodes * d**k after k steps. The iteration ends when either bound is at most 1e-12 *
# nodes, so that the mean error of a score is at most 1e-12. Takes at most log(5e-13) / log(damping)
# scans, 175 for 0.85, and 32 bytes per node.

_ACCURACY = 1e-12


def power_scores(scan: Scan, degrees: NDArray[np.uint32], damping: float) -> NDArray[np.float64]:
    """Return PageRank scores with mean 1, float64[nodes].

    ``scan`` has one float64 lane over the links that pass rank to each node; ``degrees``
    uint32[nodes] are the numbers of nodes to which each node passes rank; ``damping``, in (0, 1),
    is the probability of following a link.
    """
    nodes, dangling = degrees.size, degrees == 0
    scores, after, shares = np.ones(nodes), np.empty(nodes), np.empty(nodes)
    enough = _ACCURACY * nodes
    for _ in range(math.ceil(math.log(_ACCURACY / 2) / math.log(damping))):
        np.divide(scores, degrees, out=shares, where=~dangling)
        shares[dangling] = 0
        scan(shares, Fold.SUM, out=after)
        after *= damping
        after += 1 - damping + damping * float(scores[dangling].sum()) / nodes
        np.subtract(after, scores, out=shares)
        change = float(np.abs(shares, out=shares).sum())
        scores, after = after, scores
        if change * damping / (1 - damping) <= enough:
            break
    return scores
