"""A run over all pairs as a document: what was computed, how, and how exact it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from cocite.allpairs.scores import Scores
from cocite.allpairs.stopping import ExactConvergence
from cocite.documents import Document

__all__ = ["ExactDocument"]


@dataclass(frozen=True)
class ExactDocument(Document):
    """A run that is done, its scores in the file ``output``. ``bandwidth`` is that of the rows as
    stored and as ordered; ``ended`` how it ended (:class:`ExactConvergence`).
    """

    graph: str
    output: str
    measure: str
    direction: str
    method: str
    products: str
    precision: str
    nodes: int
    rows_computed: int
    bandwidth: tuple[int, int]
    ended: ExactConvergence

    @classmethod
    def of(cls, graph: str, output: str, measure: str, direction: str, found: Scores) -> Self:
        """What ``found`` says of itself."""
        how = found.method, found.products, found.precision, found.nodes, found.rows
        return cls(graph, output, measure, direction, *how, found.bandwidth, found.convergence)

    def facts(self) -> dict[str, Any]:
        """The facts of the iteration stand beside the others."""
        facts = super().facts()
        _, rows = facts.pop("nodes"), facts.pop("rows_computed")
        ended, bandwidth = vars(facts.pop("ended")), facts.pop("bandwidth")
        facts |= {"rows": rows, "bandwidth": bandwidth, "error_bound": self.ended.error_bound}
        return {**facts, **ended}
