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

from cocite.graph.blocks import Links
from cocite.graph.graph import UnseenPage, with_page
from cocite.index.layouts.links.common import DEGREES, NORMS
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.snapshots import Freshness
from cocite.options import opposite
from cocite.resources import Resources
from cocite.storage.spool import Scratch

LinksOf = Callable[[str, bool], Links]
"""The links of a direction, with weights if they are used."""


def memoized_links(make: LinksOf) -> LinksOf:
    """Return ``make`` with a cache. Safe to share between threads."""
    made: dict[tuple[str, bool], Links] = {}
    lock = threading.Lock()

    def links(way: str, weighted: bool) -> Links:
        with lock:
            if (way, weighted) not in made:
                made[way, weighted] = make(way, weighted)
            return made[way, weighted]

    return links


class DraftEnds:
    """The links of a graph with an added page, made on request; ``before`` returns the links
    without it. Safe to share between threads.
    """

    def __init__(self, before: LinksOf, page: UnseenPage, means: Resources) -> None:
        self.before, self.page, self.means = before, page, means
        self.links = memoized_links(self._make)

    def _make(self, way: str, weighted: bool) -> Links:
        scratch = Scratch(Path(tempfile.gettempdir()))
        return with_page(self.before(way, weighted), self.page, way, self.means.memory, scratch)


@dataclass(frozen=True)
class DraftPart(StoredPart):
    """One part of an index with a draft added: ``built`` is the part without it."""

    ends: DraftEnds = field(kw_only=True)
    built: StoredPart = field(kw_only=True)

    @classmethod
    def extending(cls, part: StoredPart, ends: DraftEnds, freshness: Freshness) -> DraftPart:
        """Return the part with one node more."""
        facts = {name: getattr(part, name) for name in StoredPart.__dataclass_fields__}
        facts |= {"nodes": part.nodes + 1, "freshness": freshness}
        return cls(**facts, ends=ends, built=part)

    @property
    def on_the_fly(self) -> bool:
        """Return True: it uses the readers for drafts."""
        return True

    def links(self, way: str) -> Links:
        """Return the links of the graph: ``in``, ``out`` or ``any`` (``way``)."""
        return self.ends.links(way, self.weighted)

    def array(self, name: str) -> NDArray[Any]:
        """Return the arrays of the layout ``links`` other than links: norms, or degrees."""
        from cocite.index.layouts.links.build import link_degrees, link_norms

        if name == DEGREES:
            return np.concatenate([np.empty(0), *link_degrees(self.links(self.direction))])
        assert name == NORMS
        way = self.measure.looks_at(self.direction)
        pieces = link_norms(self.links(way), self.links(opposite(way)))
        return np.concatenate([np.empty((0, 2)), *pieces])
