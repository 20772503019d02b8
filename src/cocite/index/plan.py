"""What an index is to be made of, checked once: a measure, a direction, a layout, settings.

An index is a sum of *parts*: one for a single direction; for ``both`` one of each, with weight 1/2,
so that a score stays in the measure's range and a node and itself still score what they did. That
is the idea of P-Rank (Zhao, Han, Sun 2009), with the two directions added up outside instead of
inside the recursion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cocite.errors import UsageError
from cocite.measures import Measure, Settings, find_measure

__all__ = ["DIRECTIONS", "TURNS", "BuildOptions", "PartPlan"]

DIRECTIONS = {"in": "in-links", "out": "out-links", "both": "both directions"}
"""Which links a measure looks at, in words."""
TURNS = {"in": 0, "out": 16}
"""What is added to a walk's step for its draws: walks of both directions are independent."""


@dataclass(frozen=True)
class PartPlan:
    """One part: its measure in one direction (``in`` or ``out``), and its weight in the scores.

    Its files' names begin with ``prefix``.
    """

    measure: Measure
    direction: str
    layout: str
    settings: Settings
    weight: float

    @property
    def prefix(self) -> str:
        """What the names of its files begin with."""
        return f"{self.direction}."

    def to_json(self) -> dict[str, object]:
        """As plans and manifests hold it."""
        return {
            "measure": self.measure.name,
            "direction": self.direction,
            "layout": self.layout,
            "settings": self.settings,
            "weight": self.weight,
        }


@dataclass(frozen=True)
class BuildOptions:
    """What an index is made of."""

    measure: Measure
    direction: str
    settings: Settings
    parts: tuple[PartPlan, ...]

    @classmethod
    def checked(
        cls,
        measure: str,
        direction: str | None = None,
        layout: str | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> BuildOptions:
        """What is not given is the measure's to choose. Raises :class:`UsageError` for a value that
        is not allowed.
        """
        found = find_measure(measure)
        direction = found.direction if direction is None else direction
        if direction not in DIRECTIONS:
            raise UsageError(f"direction is {direction!r}; it is " + " or ".join(DIRECTIONS))
        layout, filled = found.choose(layout, settings or {})
        ways = ("in", "out") if direction == "both" else (direction,)
        parts = tuple(PartPlan(found, way, layout, filled, 1 / len(ways)) for way in ways)
        return cls(found, direction, filled, parts)
