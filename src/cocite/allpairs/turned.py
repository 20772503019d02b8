"""What all-pairs scores are of: the links that they go along, those of a graph, turned round, or
taken either way; their weights; and the nodes that are compared.

    in    who links to a page: the graph as it is stored
    out   what a page links to
    any   both in one row; SimRank of a bipartite graph goes so from users to their other items

Taken either way a neighbour that is linked both ways stands in a row twice. SimRank draws it twice
as often: here it is one entry of the weights added up. PSimRank looks at sets: one entry.

Cost: that of ``graph/links.py``, and a pass over the links.
Source: either way on a bipartite graph it is the bipartite SimRank of Jeh and Widom 2002, 4.3, with
one decay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cocite.allpairs.options import Options
from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.graph.links import links_of
from cocite.graph.rows import Links

__all__ = ["LinkRows", "Turned", "checked_weights", "compared", "turned"]


class LinkRows(Protocol):
    """What is read of a graph: who links to each node, ascending within a node."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""

    @property
    def edges(self) -> int:
        """Number of links."""

    @property
    def in_offsets(self) -> NDArray[np.uint64]:
        """uint64[nodes + 1]: where each node's row begins."""

    @property
    def in_sources(self) -> NDArray[np.uint32]:
        """uint32[edges]: the rows."""

    @property
    def in_weights(self) -> NDArray[np.float32] | None:
        """float32[edges]: the weights of the same links, if they have any."""


@dataclass(frozen=True)
class Turned:
    """Links as if they were in-links; ``counted`` if weights tell how often a neighbour is there,
    though the graph has none.
    """

    in_offsets: NDArray[np.uint64]
    in_sources: NDArray[np.uint32]
    in_weights: NDArray[np.float32] | None
    counted: bool = False

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.in_offsets.size - 1

    @property
    def edges(self) -> int:
        """Number of links."""
        return self.in_sources.size


def turned(graph: Graph, direction: str, memory: int, *, weighted: bool, sets: bool) -> LinkRows:
    """The links of a direction, ``in``, ``out`` or ``any``; with ``weighted`` those of the graph
    that it may have. ``sets``: a neighbour that is there twice counts once.
    """
    if direction == "in":
        return graph
    links = links_of(graph, direction, memory, weighted=weighted)
    return _merged(links, sets) if direction == "any" else _plain(links)


def _plain(links: Links) -> Turned:
    return Turned(links.offsets, links.neighbours, links.weights)


def _merged(links: Links, sets: bool) -> Turned:
    """Neighbours once each in a row."""
    degrees = np.diff(links.offsets).astype(np.int64)
    row = np.repeat(np.arange(links.nodes), degrees)
    first = np.ones(links.edges, bool)
    first[1:] = (links.neighbours[1:] != links.neighbours[:-1]) | (row[1:] != row[:-1])
    if first.all():
        return _plain(links)
    places = np.flatnonzero(first)
    counts = np.bincount(row[places], minlength=links.nodes)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)
    neighbours = np.asarray(links.neighbours)[places]
    if sets:
        return Turned(offsets, neighbours, None)
    each = np.ones(links.edges) if links.weights is None else links.weights.astype(np.float64)
    weights = np.add.reduceat(each, places).astype(np.float32)
    return Turned(offsets, neighbours, weights, links.weights is None)


def compared(graph: Graph, options: Options, side: str | None) -> range:
    """The ids of the nodes whose pairs are told: all, or those of a side."""
    if graph.sides is None:
        if side is not None:
            raise UsageError(f"{graph.path} is not bipartite: leave side out")
        return range(graph.nodes)
    found = graph.sides.named(side)
    way = {"in": 0, "out": 1}.get(options.direction)
    if way is not None and graph.sides.titles[way] == graph.sides.title_of(found.start):
        title, other = graph.sides.titles[way], ("in", "out")[1 - way]
        raise UsageError(
            f"{title} nodes have no {options.direction}-links, so that all of them score 0: choose "
            f"--direction {other} (direction={other!r}), or any"
        )
    return found


def checked_weights(
    graph: LinkRows, options: Options, weights: NDArray[np.float32] | None, weighted: bool
) -> NDArray[np.float32] | None:
    """float32[edges]: those given, or the graph's own; None if all links count the same."""
    if weights is not None and options.direction != "in":
        raise UsageError("weights are those of the in-links: leave them out for other directions")
    if weights is None:
        counted = isinstance(graph, Turned) and graph.counted
        weights = graph.in_weights if weighted or counted else None
    if weights is None:
        return None
    found = np.asarray(weights, np.float32)
    if found.shape != (graph.edges,) or not np.isfinite(found).all() or (found <= 0).any():
        raise UsageError(f"weights are {graph.edges:,} positive, finite numbers, one a link")
    if options.measure == "psimrank" or options.method == "psum":
        raise UsageError(
            "weights are for simrank, and not for the psum baseline: pass --unweighted "
            "(weighted=False) to let all links count the same"
        )
    return found
