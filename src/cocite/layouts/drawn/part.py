"""A part of an index that nobody built: a stored graph in its place.

Its links are those of the graph, turned round and summed up when they are first needed.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.graph import Graph
from cocite.graph.links import links_of, opposite
from cocite.graph.rows import Links
from cocite.layouts.links.format import DEGREES, NORMS
from cocite.layouts.links.norms import link_degrees, link_norms
from cocite.layouts.stored import StoredPart
from cocite.means import Means

__all__ = ["Ends", "UnbuiltPart"]


class Ends:
    """The links of a graph by both ends, those that are asked for."""

    def __init__(self, graph: Graph, means: Means) -> None:
        self._graph, self.means, self._lock = graph, means, threading.Lock()
        self._made: dict[tuple[str, bool], Links] = {}

    def __call__(self, way: str, weighted: bool) -> Links:
        """Those of one direction; with their weights, if they count."""
        with self._lock:
            if (way, weighted) not in self._made:
                made = links_of(self._graph, way, self.means.memory, weighted=weighted)
                self._made[way, weighted] = made
            return self._made[way, weighted]


@dataclass(frozen=True)
class UnbuiltPart(StoredPart):
    """One part of it."""

    ends: Ends = field(kw_only=True)

    def links(self, way: str) -> Links:
        """The links of the graph: ``in``, ``out`` or ``any`` (``way``)."""
        return self.ends(way, self.weighted)

    def array(self, name: str) -> NDArray[Any]:
        """Those of the layout ``links`` that are not links: norms, or degrees."""
        if name == DEGREES:
            return np.concatenate([np.empty(0), *link_degrees(self.links(self.direction))])
        assert name == NORMS
        way = self.measure.looks_at(self.direction)
        pieces = link_norms(self.links(way), self.links(opposite(way)))
        return np.concatenate([np.empty((0, 2)), *pieces])
