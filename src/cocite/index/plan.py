"""What an index is to be made of, checked once: a measure, a direction, a layout, settings.

An index is a sum of *parts*. A measure has one for a single direction; for ``both`` one of each,
with weight 1/2, so that a score stays in the measure's range and a node and itself still score what
they did. That is the idea of P-Rank (Zhao, Han, Sun 2009), with the two directions added up outside
instead of inside the recursion. A measure that looks at both at once (``Measure.joint``) has one
part all the same. A blend (``measures/blend.py``) has the parts of each of its
components, their weights multiplied by the component's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cocite.engine import Step
from cocite.errors import UsageError
from cocite.graph.links import DIRECTIONS, checked_direction
from cocite.measures import (
    HUBS,
    SAMPLES,
    Component,
    Measure,
    PartSettings,
    WholeSettings,
    find_measure,
)

__all__ = ["BuildOptions", "PartPlan", "component_parts", "links_in_words", "part_prefix"]

_LABEL = re.compile("[a-z0-9-]*")
_TURNS = {"in": 0, "out": 16}
_COMPONENT = 32
"""What is added to a walk's step for its draws: walks of both directions are independent, and those
of different components are.
"""


def part_prefix(label: str, direction: str) -> str:
    """What the names of a part's files begin with. Raises :class:`UsageError` for what could name a
    file elsewhere.
    """
    if direction not in DIRECTIONS or not _LABEL.fullmatch(label):
        raise UsageError(f"{label!r} and {direction!r} are no label and direction of a part")
    return f"{label}-{direction}." if label else f"{direction}."


def links_in_words(measure: Measure, direction: str) -> str:
    """Which links a measure looks at; ``mixed`` if the components of a blend differ in it."""
    return DIRECTIONS.get(measure.looks_at(direction), "mixed directions")


@dataclass(frozen=True)
class PartPlan:
    """One part: its measure in one direction (``in`` or ``out``, or ``both`` for a measure that
    looks at both at once), and its weight in the scores.

    ``label`` tells the components of a blend apart, ``number`` counts them; ``fixed`` are settings
    of questions that are not to be chosen. ``weighted`` says whether it follows the links' weights.
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


@dataclass(frozen=True)
class BuildOptions:
    """What an index is made of. ``direction`` is ``mixed`` if components differ in it."""

    measure: Measure
    direction: str
    settings: WholeSettings
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
        if direction is not None:
            checked_direction(direction)
        _, filled = found.choose(layout, settings or {})
        ways, parts = set(), []
        for component in found.components:
            way = component.direction or direction or component.measure.direction
            ways.add(way)
            parts += component_parts(component, way, *component.choose(layout, settings or {}))
        _check_samples(parts)
        return cls(found, ways.pop() if len(ways) == 1 else "mixed", filled, tuple(parts))

    @property
    def samples(self) -> int | None:
        """How many samples its parts have, those that have any; None if none has."""
        return next((p.settings[SAMPLES] for p in self.parts if SAMPLES in p.settings), None)

    def heeding_weights(self) -> BuildOptions:
        """The same for a graph whose links have weights that are to count.

        Raises :class:`UsageError` if a measure does not follow weights.
        """
        deaf = [plan.measure.name for plan in self.parts if not plan.measure.weighted]
        if deaf:
            raise UsageError(
                f"the links of the graph have weights, which {deaf[0]} does not follow. Leave them "
                "aside with --unweighted (unweighted=True), or ingest the links without "
                "--weight-column"
            )
        return replace(self, parts=tuple(replace(plan, weighted=True) for plan in self.parts))


def component_parts(
    component: Component, way: str, layout: str, settings: PartSettings
) -> list[PartPlan]:
    """The parts of a component in a direction: ``in``, ``out`` or ``both``."""
    measure = component.measure
    ways = ("in", "out") if way == "both" and not measure.joint else (way,)
    return [
        PartPlan(
            measure,
            each,
            layout,
            settings,
            component.weight / len(ways),
            component.label,
            component.number,
            component.fixed.only(measure.ask),
        )
        for each in ways
    ]


def _check_samples(parts: list[PartPlan]) -> None:
    """Sample i of a blend is the sum of theirs, so they have equally many."""
    counts = {plan.settings[SAMPLES] for plan in parts if SAMPLES in plan.settings}
    if len(counts) > 1:
        raise UsageError(
            "the components of a blend have "
            + " and ".join(f"{count:,}" for count in sorted(counts))
            + " samples; they all have the same number: give it for the blend"
        )
