"""Explain empty lists and scores of 0, with advice.

A list is empty because of the query's filters, because the node has no links in the measure's
direction, or because these links reach no other node. Links are read from the graph, if available,
in at most three passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cocite.errors import StoreError, UsageError
from cocite.graph import Graph
from cocite.index import StoredIndex
from cocite.measures import DEFAULT
from cocite.options import DIRECTIONS
from cocite.search.index import Index
from cocite.search.resolver import linked_with
from cocite.search.source import GivenGraph, find_graph

_STEPS, _FEW, _MOST_LINKS = 3, 3, 100_000_000
"""Limits of the search for connected pages: steps, pages named, and links in the graph."""


def why_empty(
    stored: StoredIndex, node: str, given: GivenGraph = None, *, links: bool = False
) -> str:
    """Explain why no node is related to ``node``, with advice; "" if unknown.

    ``links`` says whether the query was given links or a graph instead of an index.
    """
    try:
        graph = find_graph(stored, given)
    except (StoreError, UsageError):
        return ""
    place = graph.names.find(node)
    if place is None:
        return ""
    has = {"in": graph.in_neighbors(place).size, "out": int(graph.out_degrees[place])}
    if not any(has.values()):
        return "It has no links at all" + _left_out(graph)
    ways = {
        part.measure.looks_at(part.direction) for part in stored.parts if not part.measure.texts
    }
    if len(ways) == 1 and (way := next(iter(ways))) in has and not has[way]:
        other = "out" if way == "in" else "in"
        looks = f"which {stored.measure.name if links else 'the index'} uses"
        lacks = f"It has no {DIRECTIONS[way]}, {looks}, but {_counted(has[other], other)}"
        return f"{lacks}{_left_out(graph)}: {_advice(stored, links)}"
    found = "It has " + " and ".join(_counted(count, way) for way, count in has.items())
    if stored.kept is not None:
        return f"{found}; the index contains only {stored.nodes:,} of {graph.nodes:,} pages"
    alone = _alone(graph, place)
    if alone:
        found += f", and is connected only to {alone}"
    if stored.samples is not None:
        found += f"; its walks meet no other walks in {stored.samples:,} samples"
    if stored.measure.name == DEFAULT:
        return found
    return f"{found}; {DEFAULT} would list the pages linked with it"


def _advice(stored: StoredIndex, links: bool) -> str:
    measures = [part.measure for part in stored.parts]
    ways = [way for way in ("any", "both") if all(way in each.directions for each in measures)]
    way = f", or use --direction {ways[0]}" if ways else ""
    if links:
        return f"omit --measure{way}"
    return f"build the index with --measure {DEFAULT}{way}"


def _left_out(graph: Graph) -> str:
    excluded = graph.store.facts.get("excluded")
    if not excluded or not excluded["nodes"]:
        return ""
    count = excluded["nodes"]
    return f" ({count:,} page{'s were' if count > 1 else ' was'} excluded from the graph)"


def _alone(graph: Graph, node: int) -> str:
    if graph.edges > _MOST_LINKS:
        return ""
    known = np.array([node], np.int64)
    for _ in range(_STEPS):
        more = np.union1d(known, linked_with(graph, known))
        if more.size > _FEW + 1:
            return ""
        if more.size == known.size:
            names = graph.names.names(np.setdiff1d(known, [node]))
            return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        known = more
    return ""


def _counted(count: int, way: str) -> str:
    words = DIRECTIONS[way]
    return f"{count:,} {words[:-1] if count == 1 else words}" if count else f"no {words}"


def why_filtered(index: Index, node: str, settings: Mapping[str, Any]) -> str:
    """Describe the unfiltered answer; ``settings`` are those of the query."""
    best = index.related(node, 1, **settings)
    if not best:
        return f"Without filters, there would be no hits by {index.measure} either"
    return f"Without filters, the best hit is {best[0].node}, with a score of {best[0].score:.4g}"


# -- two nodes -------------------------------------------------------------------------


def why_zero(index: Index, a: str, b: str, settings: Mapping[str, Any]) -> str:
    """Explain a score of 0, part by part."""
    reasons: dict[str, str] = {}
    for part in index.stored.parts:
        name = part.measure.name
        if part.measure.step is not None:
            ids = index.nodes.ids([a, b])
            known = int(index.stored.freshness.knowing(int(ids[0]), ids[1:])[0])
            reasons[name] = f"their walks do not meet in any of {known:,} samples of {name}"
        elif name in ("ppr", "ppr-symmetric"):
            reasons[name] = _unreached(a, b, name, index.similarity(a, b, **settings).high)
        elif name == "companion":
            reasons[name] = f"{b} is not among the pages around {a}"
        elif part.measure.joint:
            reasons[name] = "no page is near both"
        elif part.measure.texts:
            reasons[name] = "no word is in both texts"
        else:
            reasons[name] = f"they have nothing in common according to {name}"
    return ", and ".join(reasons.values())


def _unreached(a: str, b: str, name: str, high: float) -> str:
    """Explain that no links were found, or that some were not read and the score may exceed 0."""
    if high > 0:
        return (
            f"{b} was not reached from {a} along the links that {name} read; the score is at most "
            f"{high:.4g}"
        )
    return f"no links lead from {a} to {b}" if name == "ppr" else "no links connect them"
