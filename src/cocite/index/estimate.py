"""What a build will take, in words; and what it took."""

from __future__ import annotations

from dataclasses import dataclass

from cocite.engine.blocks_walk import Traffic
from cocite.memory import format_size, format_time, own_memory

__all__ = ["BuildReport", "IndexEstimate"]


@dataclass(frozen=True)
class IndexEstimate:
    """What a build will take: ``bytes`` on disk, the ``rooms`` of its parts, ``seconds``; and how
    much memory making refined answers ready takes, 0 if it is not to be done.
    """

    bytes: int
    rooms: tuple[str, ...]
    seconds: float
    done: int
    units: str
    refining: int

    def __str__(self) -> str:
        rooms = " then ".join(dict.fromkeys(self.rooms))
        text = f"{format_size(self.bytes)} on disk, {rooms}, about {format_time(self.seconds)}"
        if self.refining:
            memory = format_size(self.refining + own_memory())
            text += f", and longer, with {memory}, to make refined answers ready"
        if self.done:
            units = self.units if self.done > 1 else self.units.removesuffix("s")
            text += f"; goes on after {self.done:,} {units} that an earlier run finished"
        return text


@dataclass(frozen=True)
class BuildReport:
    """What a build took: of the units (samples, or nodes) it made itself, if it resumed, and how
    many it ``finished`` (samples, or parts; :attr:`IndexBuild.finished`). ``traffic`` is what
    blocks that live apart have sent each other.
    """

    units: int
    finished: int
    seconds: float
    live_steps: int
    bytes: int
    traffic: Traffic | None = None
