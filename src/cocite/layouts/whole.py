"""The contract of layouts that are made in one go: arrays written as streams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from cocite.graph import Graph
from cocite.graph.rows import Links
from cocite.layouts.part import Estimate, Progress
from cocite.layouts.plan import PartPlan
from cocite.means import Means
from cocite.store import Entry

__all__ = ["WholeLayout"]


class WholeLayout(ABC):
    """Computes and writes the arrays of a part."""

    files: ClassVar[dict[str, str]]
    """Its files behind the part's prefix, of n nodes and m links, as ``FORMAT.md`` has them."""

    def __init__(self, graph: Graph, links: Links, plan: PartPlan, means: Means) -> None:
        """``links`` are those of the part's direction: in-links, or out-links for ``out``."""
        self.graph, self.links, self.plan, self.means = graph, links, plan, means

    @classmethod
    def files_of(cls, plan: PartPlan) -> dict[str, str]:
        """Those of its files that a part has."""
        return cls.files

    @abstractmethod
    def estimate(self) -> Estimate:
        """Size, memory and time, from a pilot on this graph."""

    @abstractmethod
    def write(self, directory: Path, progress: Progress) -> dict[str, Entry]:
        """Write the arrays into ``directory``, their names behind the plan's prefix; returns their
        entries. ``progress`` gets nodes (done, total).
        """
