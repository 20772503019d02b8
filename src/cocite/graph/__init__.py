"""The stored graph: from files of links to compressed sparse rows of in-links.

``cocite.io.ingest`` is imported by those who ingest only: it brings its readers along. The graph is
imported when it is first used, as a question mostly does without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cocite.graph.graph import Graph

__all__ = ["Graph"]


def __getattr__(name: str) -> Any:
    if name != "Graph":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cocite.graph.graph import Graph

    globals()[name] = Graph
    return Graph
