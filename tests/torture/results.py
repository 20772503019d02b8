"""What came of faults, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Row"]

_MOST = 20


@dataclass
class Row:
    """Of one kind of fault, and one thing that is done meanwhile: how many were ``injected``, how
    many it ``survived``, and what was ``lost``; ``seen`` is what was there afterwards.
    """

    injected: int = 0
    survived: int = 0
    lost: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def add(self, fault: str, wrong: str) -> None:
        """Count a fault, and what is wrong after it, if anything is."""
        self.injected += 1
        self.survived += not wrong
        if wrong:
            self.lost.append(f"{fault}: {wrong}")

    def to_json(self) -> dict[str, Any]:
        """As a report takes it; of many losses the first ones are told."""
        told: dict[str, Any] = {"injected": self.injected, "survived": self.survived}
        told |= {"lost": len(self.lost), "seen": dict(sorted(self.seen.items()))}
        return told | ({"first": self.lost[:_MOST]} if self.lost else {})
