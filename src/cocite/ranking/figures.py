"""PageRank and HITS as documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from cocite.graph import Graph
from cocite.ranking.hits import Convergence, HubsAuthorities
from cocite.ranking.pagerank import Ranks
from cocite.results import Document, ResultRows


@dataclass(frozen=True)
class RankDocument(Document):
    """The highest ranks of a graph, and how the iteration ended (:class:`Convergence`)."""

    graph: str
    removed: int
    blocks: int
    weighted: bool
    ended: Convergence
    top: Sequence[tuple[str, float]]
    titles: Sequence[str] | None
    sent: int | None = None

    @classmethod
    def of(cls, graph: Graph, found: Ranks, k: int = 20, side: str | None = None) -> Self:
        """The highest ``k`` of ``found``, of a ``side``; with titles, if the graph has any."""
        how = found.removed, found.blocks, found.weighted, found.convergence
        top = found.top(k, side)
        return cls(
            str(graph.path), *how, top, _titles(graph, [node for node, _ in top]), found.sent
        )

    def facts(self) -> dict[str, Any]:
        """The facts of the iteration stand beside the others."""
        facts = super().facts()
        names = "ended", "top", "titles", "sent"
        ended, top, titles, sent = (facts.pop(name) for name in names)
        facts |= {} if sent is None else {"bytes_of_values": sent}
        highest = [{"node": node, "rank": rank} for node, rank in top]
        if titles is not None:
            pairs = zip(highest, titles, strict=True)
            highest = [each | {"title": title or None} for each, title in pairs]
        return {**facts, **vars(ended), "top": highest}

    def rows(self) -> ResultRows:
        """A row a node."""
        rows: list[tuple[Any, ...]] = [(i, *hit) for i, hit in enumerate(self.top, 1)]
        if self.titles is None:
            return ResultRows(("place", "node", "rank"), rows)
        named = [(*row, title or None) for row, title in zip(rows, self.titles, strict=True)]
        return ResultRows(("place", "node", "rank", "title"), named)


def _titles(graph: Graph, nodes: Sequence[str]) -> Sequence[str] | None:
    """The titles of some nodes, "" for none; None if the graph has none at all."""
    return None if graph.titles is None else graph.titles.of(graph.names.ids(nodes))


@dataclass(frozen=True)
class HitsDocument(Document):
    """The highest authorities or hubs of a graph, and how the iteration ended."""

    graph: str
    by: str
    sweeps: int
    change: float
    reason: str
    converged: bool
    top: Sequence[tuple[str, float, float]]
    titles: Sequence[str] | None

    @classmethod
    def of(cls, graph: Graph, found: HubsAuthorities, by: str, k: int = 20) -> Self:
        """The highest ``k`` of ``found`` by ``authorities`` or ``hubs``."""
        how = found.sweeps, found.change, found.reason, found.converged
        top = found.top(k, by)
        return cls(str(graph.path), by, *how, top, _titles(graph, [each[0] for each in top]))

    def facts(self) -> dict[str, Any]:
        """A node is named with both of its scores."""
        titles = ("node", "authority", "hub", *(["title"] if self.titles is not None else []))
        facts = {name: value for name, value in super().facts().items() if name != "titles"}
        return facts | {"top": [dict(zip(titles, hit, strict=True)) for hit in self._top]}

    def rows(self) -> ResultRows:
        """A row a node."""
        more = ["title"] if self.titles is not None else []
        rows = [(i, *hit) for i, hit in enumerate(self._top, 1)]
        return ResultRows(("place", "node", "authority", "hub", *more), rows)

    @property
    def _top(self) -> Sequence[tuple[Any, ...]]:
        if self.titles is None:
            return self.top
        pairs = zip(self.top, self.titles, strict=True)
        return [(*hit, title or None) for hit, title in pairs]
