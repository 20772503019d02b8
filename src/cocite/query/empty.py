"""Why nothing is related to a node: what its links are, beside those that the index looks at.

Reads the degrees of the node in the graph of the index; says nothing where the graph is not to be
had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cocite.errors import StoreError, UsageError
from cocite.graph.links import DIRECTIONS
from cocite.measures import DEFAULT
from cocite.query.source import Given, find_graph

if TYPE_CHECKING:
    from cocite.index import StoredIndex

__all__ = ["why_empty"]


def why_empty(stored: StoredIndex, node: str, given: Given = None) -> str:
    """Why nobody is related to ``node``, and what to do: sentences, or nothing."""
    try:
        graph = find_graph(stored, given)
    except (StoreError, UsageError):
        return ""
    place = graph.names.find(node)
    if place is None:
        return ""
    has = {"in": graph.in_neighbours(place).size, "out": int(graph.out_degrees[place])}
    if not any(has.values()):
        return "It has no links at all"
    ways = {
        part.measure.looks_at(part.direction) for part in stored.parts if not part.measure.texts
    }
    if len(ways) == 1 and (way := next(iter(ways))) in has and not has[way]:
        other = "out" if way == "in" else "in"
        return (
            f"It has no {DIRECTIONS[way]}, which the index looks at, but "
            f"{_counted(has[other], other)}: build the index by {DEFAULT}, or with --direction any"
        )
    found = " and ".join(_counted(count, way) for way, count in has.items())
    if stored.measure.name == DEFAULT:
        return f"It has {found}"
    return f"It has {found}; by {DEFAULT} every page that it is connected with is related"


def _counted(count: int, way: str) -> str:
    words = DIRECTIONS[way]
    return f"{count:,} {words[:-1] if count == 1 else words}" if count else f"no {words}"
