"""Build reports: estimated and actual cost, and the graph's properties.

To reduce the weight of hubs (``graph/graph.py``), a report suggests settings of the measure, if
there are any, and excluding the hubs from the graph (``graph/exclude.py``).

A report counts the pages without links in the direction that the measure uses: these pages have no
answers. Only queries can show whether other pages have answers (``cocite related-all`` counts pages
without answers). A report costs one pass over the degrees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from cocite.constants import Ints
from cocite.engine.carriers import Traffic
from cocite.graph import Graph
from cocite.graph.graph import Hub, hubs_in_words
from cocite.index.plan import BuildOptions
from cocite.measures import DEFAULT, HUBS
from cocite.measures.cocitation import IDF
from cocite.measures.snn import MAX_DEGREE
from cocite.options import DIRECTIONS, opposite
from cocite.resources import format_size, format_time, format_total
from cocite.storage import evict


@dataclass(frozen=True)
class IndexEstimate:
    """A build's estimated cost: ``bytes`` on disk, each part's memory as text (``rooms``), and
    ``seconds``. ``refining`` is the memory in bytes for preparing refined answers, or 0; ``done``
    counts the ``units`` that earlier runs finished.
    """

    bytes: int
    rooms: tuple[str, ...]
    seconds: float
    done: int
    units: str
    refining: int

    def __str__(self) -> str:
        rooms = " then ".join(dict.fromkeys(self.rooms))
        text = f"{format_size(self.bytes)} on disk, {rooms}, about {format_time(self.seconds)}"
        if self.refining:
            memory = format_total(self.refining)
            text += f", plus more time and {memory} to prepare refined answers"
        if self.done:
            units = self.units if self.done > 1 else self.units.removesuffix("s")
            text += f"; continues after {self.done:,} {units} that an earlier run finished"
        return text


@dataclass(frozen=True)
class BuildReport:
    """A run's actual cost. ``units`` (samples, nodes or steps) and ``finished`` (in the unit of
    :attr:`IndexBuild.finished`) exclude earlier runs. ``traffic`` is the traffic between
    partitions.
    """

    units: int
    finished: int
    seconds: float
    live_steps: int
    bytes: int
    traffic: Traffic | None = None


_PIECE = 1 << 16


@dataclass(frozen=True)
class GraphReport:
    """A graph's properties: ``hubs``; ``pages``, the number of pages; ``without``, the number of
    pages that have no answers because they have no links in direction ``way`` (``in``, ``out``, or
    ``any``); and ``excluded``, the number of pages with more than ``max_degree`` links (None: no
    limit).
    """

    hubs: tuple[Hub, ...]
    pages: int
    without: int
    way: str
    excluded: int
    max_degree: int | None

    @classmethod
    def of(cls, graph: Graph, options: BuildOptions) -> Self:
        """Return the report on ``graph`` for an index with ``options``."""
        way = _way(options)
        without = 0
        if not any(part.measure.texts for part in options.parts):
            without = sum(int((each == 0).sum()) for each in _degrees(graph, way))
        return cls(graph.hubs, graph.nodes, without, way, *too_wide(graph, options))

    def lines(self, graph: Graph, options: BuildOptions) -> list[str]:
        """Describe each finding, with advice."""
        lines, name = self._of_hubs(graph, options), options.measure.name
        if self.excluded and self.max_degree is not None:
            count, has = self.excluded, "page has" if self.excluded == 1 else "pages have"
            lines.append(
                f"{count:,} of the {self.pages:,} {has} more than {self.max_degree:,} links and "
                f"{'is' if count == 1 else 'are'} ignored by {name}: --max-degree changes the limit"
            )
        if self.without:
            links = {"in": DIRECTIONS["in"], "out": DIRECTIONS["out"]}.get(self.way, "links")
            others = (
                f"; with --direction any or {DEFAULT}, only pages without any links have no answers"
            )
            lines.append(
                f"{self.without:,} of the {self.pages:,} pages have no {links}, so {name} finds no "
                "related pages for them" + others * (self.way != "any")
            )
        return lines

    def _of_hubs(self, graph: Graph, options: BuildOptions) -> list[str]:
        """Describe the hubs; return [] if all parts already reduce the weight of hubs."""
        parts = [part for part in options.parts if not part.measure.texts]
        if not self.hubs or not parts or all(part.by_page for part in parts):
            return []
        name, ways = options.measure.name, []
        if any(HUBS in part.measure.build for part in parts):
            ways.append("--hubs idf (hubs='idf') reduces their weight")
        if any(IDF in part.measure.ask for part in parts):
            ways.append("--idf (idf=True) reduces their weight in queries")
        if any(MAX_DEGREE in part.measure.build for part in parts):
            ways.append(f"{name} already reduces their weight")
        ways.append(
            f"cocite ingest {graph.path} -o DIR --exclude-nodes FILE (exclude_nodes=...) excludes "
            "the pages named in FILE, one per line"
        )
        return [
            f"{hubs_in_words(self.hubs, self.pages)}: a page linked with so many says little "
            f"about any of them. {'; '.join(ways)}"
        ]


def _way(options: BuildOptions) -> str:
    """Return the direction in which a page needs links to have answers, or ``any``."""
    ways = {
        part.measure.looks_at(part.direction)
        if part.measure.step is not None or part.measure.own_links
        else "any"
        for part in options.parts
    }
    way = next(iter(ways))
    return way if len(ways) == 1 and way in ("in", "out") else "any"


def too_wide(graph: Graph, options: BuildOptions) -> tuple[int, int | None]:
    """Return (number of pages with too many links, limit), or (0, None) without a limit.

    The limit is the smallest limit of any component. Parts that use in-links check out-degrees,
    and vice versa; a page counts as its own neighbor.
    """
    parts = [part for part in options.parts if MAX_DEGREE in part.settings]
    if not parts:
        return 0, None
    max_degree = min(part.settings[MAX_DEGREE] for part in parts)
    ways = {opposite(part.direction) for part in parts}
    pieces = _degrees(graph, ways.pop() if len(ways) == 1 else "any")
    return sum(int(np.count_nonzero(each + 1 > max_degree)) for each in pieces), max_degree


def _degrees(graph: Graph, way: str) -> Iterator[Ints]:
    """Yield the degrees in direction ``way`` (the larger of both for ``any``), piece by piece."""
    offsets, outs = graph.in_offsets, graph.out_degrees
    for low in range(0, graph.nodes, _PIECE):
        ins = np.diff(offsets[low : low + _PIECE + 1]).astype(np.int64)
        out = outs[low : low + _PIECE].astype(np.int64)
        yield {"in": ins, "out": out}.get(way, np.maximum(ins, out))
        evict(offsets, outs)
