"""PageRank and HITS as documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from cocite.graph import Graph
from cocite.ranking.hits import HubsAuthorities
from cocite.ranking.pagerank import Ranks
from cocite.ranking.stopping import Convergence
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
        return cls(str(graph.path), *how, top, _titles(graph, top), found.sent)

    def facts(self) -> dict[str, Any]:
        """The facts of the iteration stand beside the others."""
        facts = super().facts()
        ended, _, _, sent = (facts.pop(name) for name in ("ended", "top", "titles", "sent"))
        facts |= {} if sent is None else {"bytes_of_values": sent}
        return {**facts, **vars(ended), "top": self._nodes.facts()}

    def rows(self) -> ResultRows:
        """A row a node."""
        return self._nodes.rows()

    @property
    def _nodes(self) -> _Nodes:
        return _Nodes(("node", "rank"), self.top, self.titles)


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
        return cls(str(graph.path), by, *how, top, _titles(graph, top))

    def facts(self) -> dict[str, Any]:
        """A node is named with both of its scores."""
        facts = {name: value for name, value in super().facts().items() if name != "titles"}
        return facts | {"top": self._nodes.facts()}

    def rows(self) -> ResultRows:
        """A row a node."""
        return self._nodes.rows()

    @property
    def _nodes(self) -> _Nodes:
        return _Nodes(("node", "authority", "hub"), self.top, self.titles)


@dataclass(frozen=True)
class _Nodes:
    """The highest nodes, with values in ``columns``, and their titles, "" for none."""

    columns: tuple[str, ...]
    top: Sequence[tuple[Any, ...]]
    titles: Sequence[str] | None

    def facts(self) -> list[dict[str, Any]]:
        columns, *rows = self._table()
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def rows(self) -> ResultRows:
        columns, *rows = self._table()
        return ResultRows(("place", *columns), [(i, *row) for i, row in enumerate(rows, 1)])

    def _table(self) -> list[tuple[Any, ...]]:
        if self.titles is None:
            return [self.columns, *self.top]
        pairs = zip(self.top, self.titles, strict=True)
        return [(*self.columns, "title"), *((*row, title or None) for row, title in pairs)]


def _titles(graph: Graph, top: Sequence[tuple[Any, ...]]) -> Sequence[str] | None:
    """The titles of some nodes, "" for none; None if the graph has none at all."""
    names = [row[0] for row in top]
    return None if graph.titles is None else graph.titles.of(graph.names.ids(names))
