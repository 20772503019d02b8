"""What a stored graph holds, as a document.

Cost: one pass over the degrees.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

from cocite.documents import Document
from cocite.graph.graph import Graph, GraphInfo

__all__ = ["GraphDocument"]


@dataclass(frozen=True)
class GraphDocument(Document):
    """The facts of a graph, its digest, how each of its ``sources`` was read, and what came of
    ``titles``, None if it has none.
    """

    path: str
    info: GraphInfo
    weighted: bool
    digest: str
    sources: list[dict[str, Any]]
    titles: dict[str, Any] | None

    @classmethod
    def of(cls, graph: Graph) -> Self:
        """Count what there is to count."""
        weighted = graph.in_weights is not None
        sources = graph.store.facts["sources"]
        titles = None if graph.titles is None else graph.store.facts["titles"]
        return cls(str(graph.path), graph.info(), weighted, graph.digest, sources, titles)

    def facts(self) -> dict[str, Any]:
        """All facts side by side."""
        begin = {"kind": "graph", "path": self.path}
        end: dict[str, Any] = {"digest": self.digest}
        if self.titles is not None:
            end["titles"] = self.titles
        return begin | asdict(self.info) | end | {"sources": self.sources}
