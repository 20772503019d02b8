"""Compare the orders of two personalizations of PageRank.

Both rankings are computed in the same way; if the stopping rule counts sweeps, both have the same
number. ``orders.py`` compares them for all nodes that have a rank in either, and for the results of
each query, in their order among each other.

Cost: two rankings, and a sort of all ranks for each. Memory: that of PageRank, and about 80 bytes
per node.
Source: Haveliwala, *Efficient computation of PageRank*, 5.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.convergence.orders import (
    Histogram,
    Ids,
    Reference,
    memory_beside,
    places_of,
    position_histogram,
    rounding_of,
    top_similarity,
)
from benchmarks.convergence.queries import Query
from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.ranking.pagerank import Personalization, Ranks, pagerank
from cocite.ranking.vectors import Vector, order_of


@dataclass(frozen=True)
class Difference:
    """How two orders of ``nodes`` nodes differ; ``query`` is None for all.

    ``similarity`` float64[top], for n = 1, 2, ...; ``same_order`` is how many of the first places
    are the same; ``positions`` the positions in the second order minus those in the first.
    """

    query: str | None
    nodes: int
    similarity: Vector
    same_order: int
    positions: Histogram


@dataclass(frozen=True)
class Comparison:
    """Two rankings, and how their orders differ: of all nodes, and of those of each query."""

    first: Ranks
    second: Ranks
    differences: tuple[Difference, ...]


def compare(
    graph: Graph,
    first: Personalization | None,
    second: Personalization | None,
    *,
    queries: Sequence[Query] = (),
    top: int = 10_000,
    bucket: int = 1,
    damping: float = 0.85,
    memory: str | int | None = None,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
    **options: Any,
) -> Comparison:
    """Rank by two personalizations and compare the orders.

    Parameters
    ----------
    graph
        The stored graph.
    first, second
        The personalizations, as :func:`~cocite.ranking.pagerank` has them.
    queries
        Sets of nodes to look at the order in, besides all nodes
        (:mod:`~benchmarks.convergence.queries` makes them).
    top
        How many of the highest nodes are looked at, or all if there are fewer.
    bucket
        How many positions share a bucket of the histogram.
    damping, memory, options
        As :func:`~cocite.ranking.pagerank` has them, for both.
    progress
        Called after every sweep with (``first`` or ``second``, sweeps made, 0).

    Raises
    ------
    UsageError, UnknownNode, InputError, ResourceError, Damaged
    """
    if top < 1 or bucket < 1:
        raise UsageError(f"top is {top}, bucket is {bucket}; both are 1 or more")
    options |= {"damping": damping, "memory": memory_beside(graph, queries, memory)}

    def ranked(stage: str, given: Personalization | None) -> Ranks:
        def told(done: int, residual: float) -> None:
            progress(stage, done, 0)

        return pagerank(graph, personalization=given, progress=told, **options)

    one, other = ranked("first", first), ranked("second", second)
    either = (one.values > 0) | (other.values > 0)
    sets: list[tuple[str | None, Ids]] = [(None, np.flatnonzero(either).astype(np.uint32))]
    for query in queries:
        sets.append((query.label, query.nodes[either[query.nodes]]))
        if sets[-1][1].size == 0:
            raise UsageError(
                f"no node of the query {query.label!r} has a rank by either personalization; take "
                "others, or another query"
            )
    rounding = rounding_of(graph, damping)
    differences = (
        _difference(label, Reference(nodes, one.values, top, rounding), other.values, bucket)
        for label, nodes in sets
    )
    return Comparison(one, other, tuple(differences))


def _difference(query: str | None, reference: Reference, ranks: Vector, bucket: int) -> Difference:
    values = ranks[reference.nodes]
    order = order_of(values, reference.top).astype(np.uint32)
    truth = reference.top_as(order)
    differ = np.flatnonzero(order != truth)
    places = places_of(np.argsort(-values, kind="stable"))
    return Difference(
        query,
        values.size,
        top_similarity(order, truth, values.size),
        int(differ[0]) if differ.size else order.size,
        position_histogram(places, reference.places_as(places), reference.top, bucket),
    )
