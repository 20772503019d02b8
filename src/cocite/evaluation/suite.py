"""A suite, what to evaluate: its methods and sweeps as points, each an index and how it is asked.

A method is called as its measure, its direction and the settings that were chosen for it, such as
``psimrank both decay=0.1``. A measure that does not take a setting is left out of its sweep, and
one that does not take a value is left out at that value, which is noted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cocite.errors import UsageError
from cocite.evaluation.plans import (
    AccuracyPlan,
    BestPlan,
    BlendPlan,
    DataPlan,
    EmbeddingPlan,
    JudgePlan,
    MethodPlan,
    Settings,
    StructurePlan,
    SweepPlan,
)
from cocite.graph.links import checked_direction
from cocite.measures import MEASURES, Value, find_measure

__all__ = [
    "Point",
    "Suite",
    "called",
    "chosen_measures",
    "combinations",
    "plain",
    "point",
    "sweep_points",
    "taken",
]

_ALL = "*"


@dataclass(frozen=True)
class Point:
    """An index and how it is asked; ``build`` and ``ask`` are sorted pairs of all settings."""

    measure: str
    direction: str
    build: tuple[tuple[str, Any], ...]
    ask: tuple[tuple[str, Any], ...]

    @property
    def samples(self) -> int | None:
        """How many samples, if the measure has them."""
        found = dict(self.build).get("samples")
        return None if found is None else int(found)

    @property
    def index_key(self) -> tuple[Any, ...]:
        """What points have in common that the first samples of one index can answer."""
        return self.measure, self.direction, tuple(p for p in self.build if p[0] != "samples")

    @property
    def settings(self) -> dict[str, Value]:
        """All of them."""
        return dict(self.build) | dict(self.ask)


@dataclass(frozen=True)
class Suite:
    """A whole study."""

    name: str
    about: str = ""
    baseline: str = ""
    data: DataPlan = field(default_factory=DataPlan)
    judge: JudgePlan = field(default_factory=JudgePlan)
    settings: Settings = field(default_factory=dict)
    method: tuple[MethodPlan, ...] = ()
    embedding: tuple[EmbeddingPlan, ...] = ()
    blend: tuple[BlendPlan, ...] = ()
    sweep: tuple[SweepPlan, ...] = ()
    accuracy: AccuracyPlan | None = None
    structure: StructurePlan | None = None
    best: BestPlan | None = None

    def methods(self, seed: int = 0) -> dict[str, Point]:
        """All methods that are indexes, by name. Raises :class:`UsageError`."""
        found: dict[str, Point] = {}
        for plan in self.method:
            for measure, direction in combinations(plan):
                chosen = taken(measure, dict(self.settings) | dict(plan.settings), {"seed": seed})
                own = taken(measure, plan.settings)
                text = "".join(f" {key}={plain(value)}" for key, value in own.items())
                found[f"{measure} {direction}{text}"] = point(measure, direction, chosen)
        return found


def called(found: Point) -> str:
    """Measure, direction, and the settings that are not the measure's own choice."""
    measure = find_measure(found.measure)
    usual = {s.name: s.default for s in (*measure.build, *measure.ask)}
    chosen = {k: v for k, v in found.settings.items() if k != "seed" and v != usual[k]}
    text = "".join(f" {key}={plain(value)}" for key, value in chosen.items())
    return f"{found.measure} {found.direction}{text}"


def plain(value: Value) -> str:
    """A value as it is written in a suite."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def combinations(plan: MethodPlan | SweepPlan) -> Iterator[tuple[str, str]]:
    """Measures and directions of a plan, those that the measure takes; without any of them, each
    measure's own.
    """
    for way in plan.directions:
        checked_direction(way)
    for name in chosen_measures(plan.measures, plan.without):
        measure = find_measure(name)
        ways = [way for way in plan.directions if way in measure.directions]
        for direction in ways or [measure.direction]:
            yield name, direction


def chosen_measures(names: tuple[str, ...], without: tuple[str, ...] = ()) -> list[str]:
    """The measures named, ``*`` standing for all that look at links; raises :class:`UsageError`."""
    for name in (*names, *without):
        if name != _ALL:
            find_measure(name)
    of_links = [name for name, measure in MEASURES.items() if not measure.texts]
    found = list(dict.fromkeys([*of_links, *names])) if _ALL in names else list(names)
    found = list(dict.fromkeys(name for name in found if name != _ALL))
    return [name for name in found if name not in without]


def point(measure: str, direction: str, settings: Settings) -> Point:
    """A point from settings that the measure takes; raises :class:`UsageError`."""
    found = find_measure(measure)
    asking = {s.name for s in found.ask} - {s.name for s in found.build}
    build = found.build_settings({k: v for k, v in settings.items() if k not in asking}).to_json()
    ask = found.ask_settings({k: v for k, v in settings.items() if k in asking}).to_json()
    return Point(measure, direction, tuple(sorted(build.items())), tuple(sorted(ask.items())))


def taken(measure: str, *given: Settings) -> dict[str, Value]:
    """Of the settings, later ones before earlier ones, those that the measure has."""
    found = find_measure(measure)
    names = {setting.name for setting in (*found.build, *found.ask)}
    return {k: v for settings in given for k, v in settings.items() if k in names}


def sweep_points(
    suite: Suite, plan: SweepPlan, seed: int
) -> tuple[dict[str, dict[Value, Point]], list[str]]:
    """The points of a sweep by method and value, and notes on what was left out."""
    found: dict[str, dict[Value, Point]] = {}
    notes: list[str] = []
    for measure, direction in combinations(plan):
        known = {s.name: s for s in (*MEASURES[measure].build, *MEASURES[measure].ask)}
        if plan.setting not in known:
            continue
        base = taken(measure, suite.settings, {"seed": seed}, plan.settings)
        series: dict[Value, Point] = {}
        for value in plan.values:
            try:
                series[value] = point(measure, direction, base | {plan.setting: value})
            except UsageError:
                allowed = known[plan.setting].allowed
                notes.append(f"{measure} at {plan.setting} {value} is left out: it takes {allowed}")
        found[f"{measure} {direction}"] = series
    if not found:
        notes.append(f"no measure takes {plan.setting}: its sweep is left out")
    return found, list(dict.fromkeys(notes))
