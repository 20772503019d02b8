"""The contract of builders of layouts that are made in one go: arrays written as streams."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from cocite.graph import Graph
from cocite.graph.rows import Links
from cocite.layouts.format import WholeFormat
from cocite.layouts.part import PartEstimate, Progress
from cocite.layouts.plan import PartPlan
from cocite.means import Means
from cocite.store import Entry

__all__ = ["WholeBuilder"]


class WholeBuilder(WholeFormat):
    """Computes and writes the arrays of a part."""

    def __init__(self, graph: Graph, links: Links, plan: PartPlan, means: Means) -> None:
        """``links`` are those of the part's direction: in-links, or out-links for ``out``."""
        self.graph, self.links, self.plan, self.means = graph, links, plan, means

    @abstractmethod
    def estimate(self) -> PartEstimate:
        """Size, memory and time, from a pilot on this graph."""

    @abstractmethod
    def write(self, directory: Path, progress: Progress) -> dict[str, Entry]:
        """Write the arrays into ``directory``, their names behind the plan's prefix; returns their
        entries. ``progress`` gets nodes (done, total).
        """
