"""A part of an index that nobody built: a stored graph in its place, or one with a page more.

Its links are those of the graph, turned round and summed up when they are first needed. A *draft*
is a page that the graph does not have (``graph/page.py``): a part of an index as if the page had
been there takes the links with it, and whatever of the part as it was built still holds.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cocite.graph import Graph
from cocite.graph.links import links_of, opposite
from cocite.graph.page import Page, with_page
from cocite.graph.rows import Links
from cocite.layouts.links.format import DEGREES, NORMS
from cocite.layouts.links.norms import link_degrees, link_norms
from cocite.layouts.stored import StoredPart
from cocite.means import Means
from cocite.store import Scratch

__all__ = ["DraftEnds", "DraftPart", "Ends", "EndsLike", "UnbuiltPart"]


class EndsLike(Protocol):
    """Gives the links of a direction, with their weights if they count; ``means`` are for what is
    made of them.
    """

    @property
    def means(self) -> Means:
        """What that may take."""

    def __call__(self, way: str, weighted: bool) -> Links:
        """The links: ``in``, ``out``, ``both`` or ``any`` (``way``)."""


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


class DraftEnds:
    """The links of a graph with a page more, those that are asked for. Safe to share between
    threads.
    """

    def __init__(self, before: Callable[[str, bool], Links], page: Page, means: Means) -> None:
        """``before`` gives the links without it, as :class:`Ends` does."""
        self._before, self.page, self.means, self._lock = before, page, means, threading.Lock()
        self._made: dict[tuple[str, bool], Links] = {}

    def before(self, way: str, weighted: bool) -> Links:
        """The links without the page."""
        return self._before(way, weighted)

    def __call__(self, way: str, weighted: bool) -> Links:
        """Those of one direction; with their weights, if they count."""
        with self._lock:
            if (way, weighted) not in self._made:
                links, scratch = self._before(way, weighted), Scratch(Path(tempfile.gettempdir()))
                made = with_page(links, self.page, way, self.means.memory, scratch)
                self._made[way, weighted] = made
            return self._made[way, weighted]


@dataclass(frozen=True)
class UnbuiltPart(StoredPart):
    """One part of it."""

    ends: EndsLike = field(kw_only=True)

    @property
    def drawn(self) -> bool:
        """Nobody built it."""
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


@dataclass(frozen=True)
class DraftPart(UnbuiltPart):
    """One part of an index as if a draft had been there: ``built`` is the part without it, and
    ``kept`` what is made of that once for all drafts.
    """

    ends: DraftEnds = field(kw_only=True)
    built: StoredPart = field(kw_only=True)
    kept: dict[str, Any] = field(kw_only=True)
