"""A part of an index with one page more, a *draft*, that the graph lacks (``graph/graph.py``).

Its links are those of the graph and of the draft, turned round and summed up when they are first
needed. Whatever of the part as it was built still holds is read from that.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.graph.graph import UnseenPage, with_page
from cocite.graph.links import links_of, opposite
from cocite.index.layouts.links.common import DEGREES, NORMS
from cocite.index.layouts.links.norms import link_degrees, link_norms
from cocite.index.layouts.part import StoredPart
from cocite.resources import Resources
from cocite.storage import Scratch

# -- part --------------------------------------------------------------------------------


class Ends:
    """The links of a graph by both ends, those that are asked for."""

    def __init__(self, graph: Graph, means: Resources) -> None:
        self._graph, self.means, self._lock = graph, means, threading.Lock()
        self._built: dict[tuple[str, bool], Links] = {}

    def __call__(self, way: str, weighted: bool) -> Links:
        """Those of one direction; with their weights, if they count."""
        with self._lock:
            if (way, weighted) not in self._built:
                made = links_of(self._graph, way, self.means.memory, weighted=weighted)
                self._built[way, weighted] = made
            return self._built[way, weighted]


class DraftEnds:
    """The links of a graph with a page more, those that are asked for. Safe to share between
    threads.
    """

    def __init__(
        self, before: Callable[[str, bool], Links], page: UnseenPage, means: Resources
    ) -> None:
        """``before`` gives the links without it, as :class:`Ends` does."""
        self._before, self.page, self.means, self._lock = before, page, means, threading.Lock()
        self._built: dict[tuple[str, bool], Links] = {}

    def before(self, way: str, weighted: bool) -> Links:
        """The links without the page."""
        return self._before(way, weighted)

    def __call__(self, way: str, weighted: bool) -> Links:
        """Those of one direction; with their weights, if they count."""
        with self._lock:
            if (way, weighted) not in self._built:
                links, scratch = self._before(way, weighted), Scratch(Path(tempfile.gettempdir()))
                made = with_page(links, self.page, way, self.means.memory, scratch)
                self._built[way, weighted] = made
            return self._built[way, weighted]


@dataclass(frozen=True)
class DraftPart(StoredPart):
    """One part of an index as if a draft had been there: ``built`` is the part without it, and
    ``kept`` what is made of that once for all drafts.
    """

    ends: DraftEnds = field(kw_only=True)
    built: StoredPart = field(kw_only=True)
    kept: dict[str, Any] = field(kw_only=True)

    @property
    def on_the_fly(self) -> bool:
        """Its readers are those of drafts."""
        return True

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
