"""PageRank, and studies of it, as documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from cocite.documents import Document, Rows
from cocite.graph import Graph
from cocite.ranking.convergence import Study
from cocite.ranking.figures import settled_rows, study_facts
from cocite.ranking.pagerank import Ranks
from cocite.ranking.stopping import Convergence

__all__ = ["ConvergenceDocument", "RankDocument"]


@dataclass(frozen=True)
class RankDocument(Document):
    """The highest ranks of a graph, and how the iteration ended (:class:`Convergence`)."""

    graph: str
    removed: int
    blocks: int
    weighted: bool
    ended: Convergence
    top: Sequence[tuple[str, float]]

    @classmethod
    def of(cls, graph: Graph, found: Ranks, k: int = 20) -> Self:
        """The highest ``k`` of ``found``."""
        how = found.removed, found.blocks, found.weighted, found.convergence
        return cls(str(graph.path), *how, found.top(k))

    def facts(self) -> dict[str, Any]:
        """The facts of the iteration stand beside the others."""
        facts = super().facts()
        ended, top = facts.pop("ended"), facts.pop("top")
        highest = [{"node": node, "rank": rank} for node, rank in top]
        return {**facts, **vars(ended), "top": highest}

    def rows(self) -> Rows:
        """A row a node."""
        return Rows(("place", "node", "rank"), [(i, *hit) for i, hit in enumerate(self.top, 1)])


@dataclass(frozen=True)
class ConvergenceDocument(Document):
    """How the ranks of a graph converge; the whole study is in the directory ``study``."""

    graph: str
    study: str
    found: Study

    def facts(self) -> dict[str, Any]:
        """What was asked, and what settled when."""
        return {"graph": self.graph, "study": self.study} | study_facts(self.found)

    def rows(self) -> Rows:
        """A row an iteration, a set of nodes and a size of the top."""
        rows = settled_rows(self.found)
        return Rows(list(rows[0]), [list(row.values()) for row in rows])
