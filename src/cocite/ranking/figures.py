"""PageRank and HITS as documents."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from cocite.graph import Graph
from cocite.ranking.hits import HubsAuthorities
from cocite.ranking.pagerank import Ranks, rank_columns
from cocite.ranking.stopping import Convergence
from cocite.results import Document, ResultRows


@dataclass(frozen=True)
class TopNodes(Document):
    """The highest-ranked nodes with their values; ``titles`` is None if the graph has none."""

    graph: str
    top: Sequence[tuple[Any, ...]]
    titles: Sequence[str] | None

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns of ``top``."""

    def facts(self) -> dict[str, Any]:
        """Return all fields. The last one, ``top``, has one object per node."""
        columns, *rows = self._table()
        facts = {name: value for name, value in super().facts().items() if name != "titles"}
        facts["top"] = [dict(zip(columns, row, strict=True)) for row in rows]
        return facts | {"top": facts.pop("top")}

    def rows(self) -> ResultRows:
        """Return one row per node."""
        columns, *rows = self._table()
        return ResultRows(("place", *columns), [(i, *row) for i, row in enumerate(rows, 1)])

    def _table(self) -> list[tuple[Any, ...]]:
        if self.titles is None:
            return [self.columns, *self.top]
        pairs = zip(self.top, self.titles, strict=True)
        return [(*self.columns, "title"), *((*row, title or None) for row, title in pairs)]


@dataclass(frozen=True)
class RankDocument(TopNodes):
    """The highest ranks of a graph, with trust and spam mass if ``trust``, and the convergence."""

    removed: int
    blocks: int
    weighted: bool
    ended: Convergence
    sent: int | None = None
    trust: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns of ``top``."""
        return ("node", *rank_columns(self.trust))

    @classmethod
    def of(cls, graph: Graph, found: Ranks, k: int = 20, side: str | None = None) -> Self:
        """Return the ``k`` highest ranks in ``found``, of all nodes or those on ``side``."""
        how = found.removed, found.blocks, found.weighted, found.convergence, found.sent
        top: list[tuple[Any, ...]] = list(found.top(k, side))
        if found.trust is not None and found.spam_mass is not None:
            ids = found.names.ids([name for name, _ in top])
            more = zip(found.trust[ids].tolist(), found.spam_mass[ids].tolist(), strict=True)
            top = [(*row, *each) for row, each in zip(top, more, strict=True)]
        return cls(str(graph.path), top, _titles(graph, top), *how, found.trust is not None)

    def facts(self) -> dict[str, Any]:
        """Return all fields, with the fields of :class:`Convergence` at the top level."""
        facts = super().facts()
        ended, sent, top, _ = (facts.pop(name) for name in ("ended", "sent", "top", "trust"))
        facts |= {} if sent is None else {"bytes_of_values": sent}
        return {**facts, **vars(ended), "top": top}


@dataclass(frozen=True)
class HitsDocument(TopNodes):
    """The highest authorities or hubs of a graph, and how the iteration ended."""

    by: str
    sweeps: int
    change: float
    reason: str
    converged: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns of ``top``."""
        return "node", "authority", "hub"

    @classmethod
    def of(cls, graph: Graph, found: HubsAuthorities, by: str, k: int = 20) -> Self:
        """Return the ``k`` highest ``authorities`` or ``hubs`` in ``found``, with both scores."""
        how = found.sweeps, found.change, found.reason, found.converged
        top = found.top(k, by)
        return cls(str(graph.path), top, _titles(graph, top), by, *how)


def _titles(graph: Graph, top: Sequence[tuple[Any, ...]]) -> Sequence[str] | None:
    """Return the titles of the nodes in ``top``, "" for none; None for a graph without titles."""
    names = [row[0] for row in top]
    return None if graph.titles is None else graph.titles.of(graph.names.ids(names))
