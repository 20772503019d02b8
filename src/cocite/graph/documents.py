"""What a stored graph holds, as a document.

Cost: one pass over the degrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from cocite.documents import Document
from cocite.graph.graph import Graph, GraphInfo
from cocite.graph.hubs import Hub
from cocite.graph.in_blocks import BlockedGraph
from cocite.graph.sides import Sides

__all__ = ["GraphDocument"]


@dataclass(frozen=True)
class GraphDocument(Document):
    """The facts of a graph, its digest, its hubs, and how each of its ``sources`` was read;
    ``excluded`` counts the pages that were left out, their links, and names of no page, if any were
    to be; ``titles`` is what came of titles, None if it has none; ``sides`` are the two of a
    bipartite graph. ``blocks`` is None unless the graph is stored in such: how many there are, how
    many of them are here, and the links of the largest.
    """

    path: str
    info: GraphInfo
    weighted: bool
    digest: str
    hubs: Sequence[Hub]
    sources: list[dict[str, Any]]
    excluded: dict[str, int] | None
    titles: dict[str, Any] | None
    sides: Sides | None
    blocks: dict[str, int] | None = None

    @classmethod
    def of(cls, graph: Graph) -> Self:
        """Count what there is to count."""
        weighted = graph.in_weights is not None
        sources, left_out = graph.store.facts["sources"], graph.store.facts.get("excluded")
        titles = None if graph.titles is None else graph.store.facts["titles"]
        path, info = str(graph.path), graph.info()
        told = graph.digest, graph.hubs, sources, left_out, titles, graph.sides
        return cls(path, info, weighted, *told, _blocks(graph))

    def facts(self) -> dict[str, Any]:
        """All facts side by side."""
        begin: dict[str, Any] = {"kind": "graph", "path": self.path}
        end: dict[str, Any] = {"digest": self.digest}
        end["hubs"] = [hub._asdict() for hub in self.hubs]
        end |= {"excluded": self.excluded} if self.excluded else {}
        end |= {"titles": self.titles} if self.titles else {}
        end |= {"sides": self.sides.to_json()} if self.sides else {}
        end |= {"blocks": self.blocks} if self.blocks else {}
        return begin | asdict(self.info) | end | {"sources": self.sources}


def _blocks(graph: Graph) -> dict[str, int] | None:
    if not isinstance(graph, BlockedGraph):
        return None
    largest = int(np.diff(graph.in_offsets[graph.cuts].astype(np.int64)).max())
    return {"count": graph.blocks, "here": len(graph.here), "largest": largest}
