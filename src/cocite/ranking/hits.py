"""HITS: good hubs link to good authorities, and good authorities are linked from good hubs.

    authority = A' hub,    hub = A authority,    each divided by its sum

with A[u, v] = 1 if u links to v, repeated from equal hubs. The limit is the part of A' 1 in the
space of the largest eigenvalue of A' A.

Convention: hubs sum to 1, and so do authorities, as in NetworkX; in Kleinberg's paper, their
squares do. Weights of links are ignored. Error: each sweep shrinks the change by the unknown ratio
of the two largest eigenvalues; the result has the last L1 change of the authorities, but no bound.

Cost: two scans per sweep (``engine/scan.py``), along in-links and out-links, after out-links are
computed. Memory: the links twice and 24 bytes per node; with less, links and vectors are on disk,
and scores are equal to the bit. Source: Kleinberg 1999, *Authoritative sources in a hyperlinked
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
    """Result of HITS: ``hubs`` and ``authorities`` float64[nodes], by id, each with sum 1; the
    names; ``change``, the L1 change of the authorities in the last of ``sweeps`` sweeps; the reason
    for stopping.
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
        """Return (name, authority, hub) of the k highest ``authorities`` or ``hubs``, highest
        first, ties by id.
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
        How many threads to use; by default all cores.
    memory
        Memory of the whole process, in bytes or as text such as ``"600MB"``; by default
        half of what is available.
    progress
        Called after every sweep with (sweeps, change).
    options, given
        ``tolerance`` (here of the change), ``max_sweeps``, ``until_top_stable``, ``weighted`` and
        ``blocks`` of :class:`~cocite.options.rank.RankOptions`, as one value or by name. A weighted
        graph needs ``weighted=False``, which ignores weights.

    Raises
    ------
    UsageError, ResourceError, NotConverged, Damaged
    """
    options = RankOptions.of(options, given)
    others = [name for name in options.changed() if name not in _OF_HITS]
    if others:
        raise UsageError(
            f"hubs and authorities have no {', '.join(others)}; they take {', '.join(_OF_HITS)}"
        )
    if options.weighted and graph.in_weights is not None:
        raise UsageError(
            "hubs and authorities let all links count the same, and these have weights: pass "
            "--unweighted (weighted=False)"
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
    """Plan the scans of :func:`hits`; return the plan and the total memory.

    Raises :class:`UsageError` for a graph without links, :class:`~cocite.errors.ResourceError` if
    the memory is not enough.
    """
    if graph.edges == 0:
        raise UsageError(f"{graph.path} has no links: hubs and authorities are made of them")
    links = links_of(graph, "in")
    vector = 8 * links.nodes + LEAST_SHARE
    least = vector + min(links.nbytes, vector)
    if means.memory < least:
        raise ResourceError(
            f"hubs and authorities need {format_least(least)} of memory; {short_of(means.memory)}"
        )
    plan = _plan(links, means)
    return replace(plan, memory=plan.memory + _extra_memory(links, means))


def _plan(links: Links, means: Resources) -> ScanPlan:
    return plan_scan(
        links, replace(means, memory=max(1, means.memory - _extra_memory(links, means)))
    )


def _extra_memory(links: Links, means: Resources) -> int:
    """Return the memory in addition to one scan: the links of the other scan, and a vector."""
    return min(links.nbytes, means.memory // 2) + 8 * links.nodes


def _normalize(values: Vector) -> None:
    whole = total(values)
    if not 0 < whole < math.inf:
        raise NotConverged(f"hubs or authorities sum to {whole}, which is not to be had of links")
    divide(values, whole)


def _distance(one: Vector, other: Vector) -> float:
    sums = (float(np.abs(one[p] - other[p]).sum()) for p in pieces(0, one.size, one, other))
    return math.fsum(sums)


# -- PageRank by power iteration, for measures that are built on its scores ----------------

#     x = damping * (sum over in-neighbors u of x[u] / out-degree(u))
#         + (1 - damping) + damping * (rank of dangling nodes) / nodes            sum of x = nodes
#
# The rank of dangling nodes is distributed evenly over all nodes. The mean score is 1, so that
# scores do not shrink as the graph grows. The map shrinks vectors of sum 0 by the damping d, so
# after a step with L1 change c the vector is within c d / (1 - d) of the solution, and within
# 2 nodes d**k after k steps (Banach). It ends when either is at most 1e-12 * nodes: the mean error
# of a score is then at most 1e-12. Cost: at most log(5e-13) / log(damping) scans, 175 for 0.85;
# 32 bytes per node.

_ACCURACY = 1e-12


def power_scores(scan: Scan, degrees: NDArray[np.uint32], damping: float) -> NDArray[np.float64]:
    """Return PageRank scores of mean 1, float64[nodes].

    Parameters
    ----------
    scan
        A scan with one lane of float64 over the links that pass rank to each node.
    degrees
        uint32[nodes]: the number of nodes to which each node passes rank.
    damping
        The share of steps that follow a link, in (0, 1).
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
