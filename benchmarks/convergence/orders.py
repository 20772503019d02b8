"""Compare two orders of nodes by rank: the similarity of their tops, and differences in position.

* similarity of the top n: |A & B| / |A | B|, where A are the n highest nodes of one order and B
  those of the other, for n = 1, 2, ...;
* difference in position: the position in one order minus the position in the other, for every node
  in the top of at least one of them.

Nodes whose ranks in the first order are equal up to rounding have no order there: they are sorted
as in the other order. Nodes with equal ranks in the other order are sorted by id.

Cost: a sort of all ranks; O(nodes) for the rest.
Source: Haveliwala, *Efficient computation of PageRank*, 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.convergence.queries import Query
from cocite.errors import ResourceError
from cocite.graph import Graph
from cocite.ranking.vectors import Vector
from cocite.resources import budget, format_size

Ids = NDArray[np.uint32]
_NODE = 80
"""Bytes a node of a set while its ranks are computed, sorted and compared."""


@dataclass(frozen=True)
class Histogram:
    """Of differences in position: ``middle`` int64[buckets] ascending, ``nodes`` int64[buckets].

    A bucket holds the differences that are nearer to its middle than to the next, the middle
    between two going away from 0; empty ones are left out.
    """

    middle: NDArray[np.int64]
    nodes: NDArray[np.int64]


def memory_beside(graph: Graph, queries: Sequence[Query], memory: str | int | None) -> int:
    """What of the memory is left for PageRank; raises :class:`ResourceError` if nothing is."""
    own = _NODE * (graph.nodes + sum(query.nodes.size for query in queries))
    limit = budget(memory)
    if own >= limit:
        raise ResourceError(
            f"comparing orders of {graph.nodes:,} nodes needs {format_size(own)} of memory besides "
            f"PageRank's; {format_size(limit)} may be used. Give more with --memory"
        )
    return limit - own


def rounding_of(graph: Graph, damping: float) -> float:
    """How far ranks that should be equal may be apart, relatively: sums of k values are rounded by
    at most k 2**-53 of themselves, and sweeps amplify that by 1 / (1 - damping) at most.
    """
    largest = float(np.diff(graph.in_offsets).max())
    return largest * float(np.finfo(float).eps) / (1 - damping)


def sizes_to(top: int) -> NDArray[np.int64]:
    """10, 100, ... and ``top``."""
    return np.array([n for n in (10**i for i in range(1, 10)) if n < top] + [top])


class Reference:
    """The order that others are compared with, of some ``nodes``; within it, they go by number."""

    def __init__(self, nodes: Ids, ranks: Vector, top: int, rounding: float) -> None:
        self.nodes, self.top = nodes, min(top, nodes.size)
        values = ranks[nodes]
        order = np.argsort(-values, kind="stable")
        values = values[order]
        apart = values[:-1] - values[1:] > rounding * values[:-1]
        ties = np.concatenate([[0], np.cumsum(apart)]).astype(np.uint32)
        self._tie = np.empty(nodes.size, np.uint32)
        self._tie[order] = ties
        end = np.searchsorted(ties, ties[self.top - 1], side="right")
        self._candidates = order[:end].astype(np.uint32)

    def top_as(self, order: Ids) -> Ids:
        """Its top, what is tied in the order of ``order``, another top."""
        seen = np.full(self.nodes.size, self.top, np.uint32)
        seen[order] = np.arange(order.size, dtype=np.uint32)
        among = self._candidates
        return among[np.lexsort((seen[among], self._tie[among]))][: self.top]

    def places_as(self, places: Ids) -> Ids:
        """The place of every node, what is tied in the order of ``places``."""
        return places_of(np.lexsort((places, self._tie)))


def places_of(order: NDArray[np.int64]) -> Ids:
    """The place of every node in an order of all of them."""
    places = np.empty(order.size, np.uint32)
    places[order] = np.arange(order.size, dtype=np.uint32)
    return places


def top_similarity(order: Ids, other: Ids, nodes: int) -> Vector:
    """|A & B| / |A | B| of the first n of two orders, float64[their size] for n = 1, 2, ...

    O(nodes): a node is in common from the later of its two places on.
    """
    top = order.size
    places = np.full(nodes, top, np.int64)
    places[other] = np.arange(top)
    common_from = np.maximum(np.arange(top), places[order])
    common = np.cumsum(np.bincount(common_from[common_from < top], minlength=top))
    similarity: Vector = common / (2 * np.arange(1, top + 1) - common)
    return similarity


def position_histogram(places: Ids, others: Ids, top: int, bucket: int) -> Histogram:
    """The differences ``places - others`` of all nodes that one of them has among its ``top``."""
    among = (places < top) | (others < top)
    difference = places[among].astype(np.int64) - others[among].astype(np.int64)
    steps = np.sign(difference) * ((np.abs(difference) + bucket // 2) // bucket)
    middle, nodes = np.unique(bucket * steps, return_counts=True)
    return Histogram(middle, nodes)
