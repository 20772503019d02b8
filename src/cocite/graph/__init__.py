"""The stored graph: in-links in compressed sparse rows.

``Graph`` is imported on first use, because most queries do not need it.
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
