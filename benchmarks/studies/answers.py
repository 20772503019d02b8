"""Measure whether the lists of random linked nodes are full, and how long queries take.

    answered   fraction of the nodes whose list is not empty
    full       fraction of the nodes whose list is full: k hits, or all connected nodes

Costs one query per node.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.graph.links import links_of

_UNTIMED = 20
_PERCENTILES = 50, 99


@dataclass(frozen=True)
class JudgedAnswers:
    """Shares of the nodes asked, and milliseconds a question."""

    answered: float
    full: float
    median_ms: float
    slowest_ms: float
    """The 99th percentile."""


class JudgedQueries:
    """Some nodes of a graph, and how many hits each can have."""

    def __init__(self, graph: Graph, count: int, k: int, seed: int = 0) -> None:
        """``count`` random nodes that have a link, or all of them, to be asked for ``k`` hits."""
        links = links_of(graph, "any")
        linked: NDArray[np.int64] = np.flatnonzero(np.diff(links.offsets.astype(np.int64)))
        self.k = k
        self.nodes = np.random.default_rng(seed).permutation(linked)[:count].tolist()
        self.possible = np.array([connected(links, node, k) for node in self.nodes])

    def by(self, ask: Callable[[int], Sequence[object]]) -> JudgedAnswers:
        """What they get of ``ask``, a function from a node to its ``k`` best."""
        for node in self.nodes[:_UNTIMED]:
            ask(node)
        hits, times = np.zeros(len(self.nodes), np.int64), np.zeros(len(self.nodes))
        for at, node in enumerate(self.nodes):
            begin = time.perf_counter()
            hits[at] = len(ask(node))
            times[at] = 1000 * (time.perf_counter() - begin)
        if hits.size == 0:
            return JudgedAnswers(*[float("nan")] * 4)
        median, slowest = np.percentile(times, _PERCENTILES).tolist()
        full = (hits == self.possible) & (self.possible > 0)
        return JudgedAnswers(float((hits > 0).mean()), float(full.mean()), median, slowest)


def connected(links: Links, node: int, most: int) -> int:
    """How many other nodes are connected with one by ``links``, or ``most``."""
    seen, todo = {node}, [node]
    while todo and len(seen) <= most:
        at = todo.pop()
        begin, end = links.offsets[at : at + 2].tolist()
        fresh = set(links.neighbors[begin:end].tolist()) - seen
        seen |= fresh
        todo += fresh
    return min(len(seen) - 1, most)
