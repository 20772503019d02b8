"""Parts extended by a page that is not in the graph (``graph/graph.py``).

The extended links are computed on first use. Data that the page does not change is read from the
stored part.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.graph.blocks import Links
from cocite.graph.graph import UnseenPage, with_page
from cocite.index.layouts.links.build import degrees_of, link_norms
from cocite.index.layouts.links.common import DEGREES, NORMS
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.snapshots import Freshness
from cocite.options import opposite
from cocite.resources import Resources
from cocite.storage.spool import Scratch

LinksOf = Callable[[str, bool], Links]
"""(Direction, whether weighted) -> links."""


def memoized_links(make: LinksOf) -> LinksOf:
    """Return ``make`` with a thread-safe cache."""
    made, lock = cache(make), threading.Lock()

    def links(way: str, weighted: bool) -> Links:
        with lock:  # made once for all threads
            return made(way, weighted)

    return links


class DraftEnds:
    """The links of a graph with an added page, computed on request; ``before`` returns the links
    without the page. Thread-safe.
    """

    def __init__(self, before: LinksOf, page: UnseenPage, means: Resources) -> None:
        self.before, self.page, self.means = before, page, means
        self.links = memoized_links(self._make)

    def _make(self, way: str, weighted: bool) -> Links:
        scratch = Scratch(Path(tempfile.gettempdir()))
        return with_page(self.before(way, weighted), self.page, way, self.means.memory, scratch)


@dataclass(frozen=True)
class DraftPart(StoredPart):
    """A part with an added page; ``built`` is the part without the page, and ``made`` contains the
    arrays that differ.
    """

    ends: DraftEnds = field(kw_only=True)
    built: StoredPart = field(kw_only=True)
    made: Mapping[str, NDArray[Any]] = field(kw_only=True, default_factory=dict)

    @classmethod
    def extending(cls, part: StoredPart, ends: DraftEnds, freshness: Freshness) -> DraftPart:
        """Return ``part`` with one more node."""
        facts = {name: getattr(part, name) for name in StoredPart.__dataclass_fields__}
        facts |= {"nodes": part.nodes + 1, "freshness": freshness}
        return cls(**facts, ends=ends, built=part)

    @property
    def on_the_fly(self) -> bool:
        """Return True, which selects the readers for unseen pages."""
        return True

    def links(self, way: str) -> Links:
        """Return the extended links in direction ``way``: ``in``, ``out`` or ``any``."""
        return self.ends.links(way, self.weighted)

    def array(self, name: str) -> NDArray[Any]:
        """Return an array; arrays of the ``links`` layout are computed."""
        if name in self.made or self.layout != "links":
            return self.made[name] if name in self.made else self.built.array(name)
        if name == DEGREES:
            return degrees_of(self.links(self.direction))
        assert name == NORMS
        way = self.measure.looks_at(self.direction)
        pieces = link_norms(self.links(way), self.links(opposite(way)))
        return np.concatenate([np.empty((0, 2)), *pieces])
