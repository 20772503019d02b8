"""One part of an index as it is planned: its measure, in one direction, in one layout.

What it is to be made of was checked before (``index/plan.py``); builders and readers rely on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cocite.engine.step import Step
from cocite.errors import UsageError
from cocite.graph.links import DIRECTIONS, NO_LINKS
from cocite.layouts.wanted import Wanted
from cocite.measures import (
    HUBS,
    IN_SHARE,
    Component,
    Measure,
    PartSettings,
    WholeSettings,
)

if TYPE_CHECKING:
    from cocite.layouts.texts import Texts

__all__ = ["PartPlan", "part_prefix"]

_LABEL = re.compile("[a-z0-9-]*")
_TURNS = {"in": 0, "out": 16, "both": 0, "any": 0}
_COMPONENT = 32
"""What is added to a walk's step for its draws: walks of both directions are independent, and those
of different components are.
"""


def part_prefix(label: str, direction: str) -> str:
    """What the names of a part's files begin with. Raises :class:`UsageError` for what could name a
    file elsewhere.
    """
    if direction not in (*DIRECTIONS, NO_LINKS) or not _LABEL.fullmatch(label):
        raise UsageError(f"{label!r} and {direction!r} are no label and direction of a part")
    return f"{label}-{direction}." if label else f"{direction}."


@dataclass(frozen=True)
class PartPlan:
    """One part: its measure in one direction (``in``, ``out`` or ``any``, or ``both`` for a measure
    that looks at both at once), and its weight in the scores.

    ``label`` tells the components of a blend apart, ``number`` counts them; ``fixed`` are settings
    of questions that are not to be chosen. ``weighted`` says whether it follows the links' weights.
    ``wanted`` are the pages whose samples are stored, None for all, and ``texts`` what a measure of
    texts compares; both are known to builds alone.
    """

    measure: Measure
    direction: str
    layout: str
    settings: PartSettings
    weight: float
    label: str = ""
    number: int = 0
    fixed: PartSettings = field(default_factory=PartSettings)
    weighted: bool = False
    wanted: Wanted | None = None
    texts: Texts | None = None

    def stored_nodes(self, nodes: int) -> int:
        """Of how many pages samples are stored, of a graph of so many nodes."""
        return nodes if self.wanted is None else self.wanted.count

    @property
    def prefix(self) -> str:
        """What the names of its files begin with."""
        return part_prefix(self.label, self.direction)

    @property
    def turn(self) -> int:
        """What is added to the number of a step for its draws."""
        return _TURNS[self.direction] + _COMPONENT * self.number

    @property
    def by_page(self) -> bool:
        """Whether a link tells the less, the more links its page has."""
        return self.settings.get(HUBS, "plain") != "plain"

    def ask_settings(self, asked: WholeSettings) -> PartSettings:
        """Its own settings of a question, out of those of the whole."""
        return Component(self.measure, fixed=self.fixed).ask_settings(asked)

    @property
    def linearised(self) -> bool:
        """Whether its scores have a linearised form: walks that step to each in-neighbour alike."""
        return self.measure.name == "simrank" and not self.step.weighted

    @property
    def in_share(self) -> float:
        """How many of its walks' steps go along the links themselves, and not their ``back``."""
        return self.settings.get(IN_SHARE, 1.0)

    @property
    def step(self) -> Step:
        """The step that its walks take."""
        measure = self.measure
        step = measure.weighted_step if self.weighted or self.by_page else measure.step
        assert step is not None
        return step

    def to_json(self) -> dict[str, object]:
        """As plans and manifests hold it."""
        value: dict[str, object] = {
            "measure": self.measure.name,
            "direction": self.direction,
            "layout": self.layout,
            "settings": self.settings.to_json(),
            "weight": self.weight,
            "weighted": self.weighted,
        }
        if self.label:
            value |= {"label": self.label, "number": self.number, "fixed": self.fixed.to_json()}
        return value
