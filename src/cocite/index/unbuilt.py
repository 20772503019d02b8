"""A stored graph in the place of an index: what an index would say of itself, without its files.

Parts of walks have the layout ``drawn``, whose reader draws samples when it is asked. Parts that
read links take them from the graph, turned round and summed up when they are first needed. Both
answer as the index would that nobody built. It is never written, so no file and no manifest names
that layout.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.graph.links import Links, links_of, opposite
from cocite.index.freshness import Freshness, Generation
from cocite.index.links import NORMS, link_norms
from cocite.index.plan import BuildOptions, PartPlan
from cocite.index.stored import StoredIndex, StoredPart

__all__ = ["UnbuiltIndex", "UnbuiltPart"]


class _Ends:
    """The links of a graph by both ends, those that are asked for."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self._lock = graph, threading.Lock()
        self._made: dict[tuple[str, bool], Links] = {}

    def __call__(self, way: str, weighted: bool) -> Links:
        with self._lock:
            if (way, weighted) not in self._made:
                self._made[way, weighted] = links_of(self._graph, way, weighted=weighted)
            return self._made[way, weighted]


@dataclass(frozen=True)
class UnbuiltPart(StoredPart):
    """One part of it."""

    ends: _Ends = field(kw_only=True)

    def links(self, way: str) -> Links:
        """The in-links or out-links (``way``) of the graph."""
        return self.ends(way, self.weighted)

    def array(self, name: str) -> NDArray[Any]:
        """The only one that is not links: the norms of the layout ``links``."""
        assert name == NORMS
        way = self.measure.looks_at(self.direction)
        pieces = link_norms(self.links(way), self.links(opposite(way)))
        return np.concatenate([np.empty((0, 2)), *pieces])


class UnbuiltIndex(StoredIndex):
    """The index of ``options`` that nobody built."""

    def __init__(self, graph: Graph, options: BuildOptions) -> None:
        """Raises :class:`UsageError` for a measure whose answers need an index."""
        self.store, self.nodes = graph.store, graph.nodes
        self.measure, self.direction = options.measure, options.direction
        self.settings = options.settings
        self.graph = {"name": graph.path.name, "digest": graph.digest, "path": "."}
        self.refined: dict[str, Any] = {}
        ends, samples = _Ends(graph), options.samples or 0
        told = graph.path.name, graph.digest, None, "."
        self.freshness = Freshness((Generation(0, 0, samples, *told),))
        self.parts = tuple(
            UnbuiltPart(
                graph.store,
                graph.nodes,
                plan.measure,
                plan.direction,
                _layout(graph, plan),
                plan.settings,
                plan.weight,
                self.freshness,
                plan.weighted,
                plan.label,
                plan.number,
                plan.fixed,
                ends=ends,
            )
            for plan in options.parts
        )


def _layout(graph: Graph, plan: PartPlan) -> str:
    """How a part is read."""
    if plan.measure.step is not None and "trees" in plan.measure.layouts:
        return "drawn"
    if plan.layout == "links":
        return plan.layout
    name = plan.measure.name
    raise UsageError(
        f"{name} needs an index: cocite index {graph.path} --measure {name} -o DIR; then ask that"
    )
