"""One part of an index in the making: what it will take, what is there already, the work.

Two kinds exist: parts of samples (``index/parts.py``), which are made and resumed shard by shard,
and parts that are made in one go (``index/layouts/batch_maker.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from cocite.engine.carriers import Traffic
from cocite.index.layouts.contract import PartPlan
from cocite.index.layouts.memory_plan import MemoryPlan
from cocite.storage import Entry

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class PartEstimate:
    """What making a part will take: ``bytes`` on disk, ``seconds``, and the ``fit`` it plans, None
    if it was made before.
    """

    bytes: int
    fit: MemoryPlan | None
    seconds: float


class PartBuild(ABC):
    """A part in the making, in the draft's directory."""

    plan: PartPlan
    units: int
    """What progress counts: samples, or nodes."""
    live_steps: int = 0
    """Steps that walks made, of the samples made in this run."""
    fit: MemoryPlan | None = None
    """How the work of samples fits its memory, once that is planned."""
    traffic: Traffic | None = None
    """What blocks that live apart have sent each other, in this run."""

    @abstractmethod
    def resume(self) -> None:
        """See what an earlier run of the same plan has finished."""

    @property
    @abstractmethod
    def done(self) -> int:
        """Units that are finished."""

    @abstractmethod
    def estimate(self) -> PartEstimate:
        """Size, memory and time of what is left to do, from a pilot on this very graph."""

    @abstractmethod
    def run(self, progress: Progress) -> None:
        """Make what is missing; ``progress`` gets units (done, total)."""

    def close(self) -> None:
        """Let go of memory and scratch files."""
        return

    @abstractmethod
    def publish(self) -> dict[str, Entry]:
        """Write what summarizes the part; returns the entries of all its files by name."""
