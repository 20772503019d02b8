"""Makers of samples of a graph in blocks that each live somewhere: what those of all layouts share.

    draw           the samples that are made together, by all blocks
    ask            one of them is laid out; asked for ahead of the one before it
    put_together   its blob, from what came of that, in a scratch file

If somebody is lost, the samples that are not laid out are drawn again; those that are finished
stay, and what a build has written stays (``index/sharded.py``).

Cost: that of the layout. Memory of the conductor: a piece of a blob.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from cocite.errors import LostWorker
from cocite.graph.in_blocks import BlockedGraph
from cocite.layouts.blobs import Blob, Maker
from cocite.layouts.memory_plan import MemoryPlan
from cocite.layouts.plan import PartPlan
from cocite.layouts.together import TogetherMaker
from cocite.runner.crew import Alone, Crew
from cocite.store import ScratchFile

__all__ = ["ApartMaker", "ApartWork"]

_LOSSES = 8
"""How often in a row somebody may be lost before a sample is finished."""


@dataclass(frozen=True)
class ApartWork:
    """What whoever holds a block is to do: the graph in blocks, its digest and cuts; the part."""

    folder: str
    digest: str
    cuts: tuple[int, ...]
    plan: PartPlan

    @property
    def nodes(self) -> int:
        """Of the whole graph."""
        return self.cuts[-1]


W = TypeVar("W", bound=ApartWork)


class ApartMaker(TogetherMaker, Generic[W]):
    """Makes blobs of a graph in blocks; each lasts until the next one is made."""

    ahead: ClassVar[int]
    """Samples that are laid out at a time."""

    def __init__(
        self,
        kind: Callable[[W, int], Any],
        work: W,
        graph: BlockedGraph,
        fit: MemoryPlan,
        folder: Path,
        numbers: range,
    ) -> None:
        """Hire one of a ``kind`` for each block."""
        super().__init__(numbers, fit.together)
        arguments = [(work, block) for block in range(graph.blocks)]
        self.work, self.blob = work, ScratchFile(folder)
        self.crew: Crew = (graph.crew or Alone)(kind, arguments, fit.memory)
        self._asked: dict[int, Any] = {}
        self._held = range(0)
        self._losses = 0

    @abstractmethod
    def draw(self, samples: range) -> None:
        """Have all blocks draw them; what there was of others is gone."""

    @abstractmethod
    def ask(self, sample: int) -> Any:
        """Have the blocks lay a sample out; returns handles of what comes of it."""

    @abstractmethod
    def put_together(self, sample: int, asked: Any) -> Blob:
        """The blob, from what was asked for."""

    def forget(self) -> None:
        """Let go of what somebody who was lost has sent."""

    def _make(self, samples: range) -> None:
        while True:
            self._asked = {}
            try:
                self.draw(samples)
                self._held = samples
                return
            except LostWorker as error:
                self._lost(error)

    def _layers(self) -> list[Maker]:
        return [self._lay_out]

    def _lay_out(self, sample: int) -> Blob:
        while True:
            try:
                for later in range(sample, min(sample + self.ahead, self._held.stop)):
                    if later not in self._asked:
                        self._asked[later] = self.ask(later)
                blob = self.put_together(sample, self._asked.pop(sample))
                self._losses = 0
                return blob
            except LostWorker as error:
                self._lost(error)
                self._make(range(sample, self._held.stop))

    def _lost(self, error: LostWorker) -> None:
        """Somebody was lost: those who are there anew know nothing of what was drawn."""
        self._losses += 1
        if self._losses > _LOSSES:
            raise error
        self._asked = {}
        self.forget()
        self.crew.again()
