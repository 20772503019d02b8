"""Points, each an index and how it is asked, and the plans that they are made of.

A method is called as its measure, its direction and the settings that were chosen for it, such as
``psimrank both decay=0.1``. A measure that does not take a setting is left out of its sweep, and
one that does not take a value is left out at that value, which is noted.

Sweeps vary one setting at a time around a default. The candidates of a measure are, in every
direction, the points of its sweeps and methods, and one more that takes the best value of every
setting at once. The one whose figure is largest, of all directions, is the measure's best. A best
of many looks better than it is on the queries that chose it, so others have to judge. Sweeps of the
seed are no choice: they tell how much is luck.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cocite.errors import UsageError
from cocite.evaluation.judge import CUTOFFS, TOP
from cocite.graph.links import checked_direction
from cocite.measures import MEASURES, Value, find_measure

Settings = Mapping[str, Value]
Column = int | str
_ALL = "*"


@dataclass(frozen=True)
class DataPlan:
    """The labels and texts that answers are judged by; ``unlabeled`` says that there are neither,
    and answers are only counted. ``delimiter``, ``header`` and ``bad_rows`` are for the
    labels.
    """

    labels: str = ""
    label_columns: tuple[Column, ...] = (1, 2)
    delimiter: str = "auto"
    header: str = "auto"
    bad_rows: str = "stop"
    separator: str = "."
    depth: int = 0
    texts: str = ""
    unlabeled: bool = False


@dataclass(frozen=True)
class JudgePlan:
    """How lists are judged; Gamma by nodes that score more than ``gamma_least``. ``queries`` 0
    stands for all nodes that can be.
    """

    queries: int = 0
    top: int = TOP
    gamma_least: float = 0.0
    cutoffs: tuple[int, ...] = CUTOFFS
    content: int = 50
    resamples: int = 1000
    confidence: float = 0.95


@dataclass(frozen=True)
class MethodPlan:
    """Measures and directions with some settings: every combination is a method."""

    measures: tuple[str, ...] = (_ALL,)
    without: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class SweepPlan:
    """One setting varied, the others as in [settings]."""

    setting: str
    values: tuple[Value, ...]
    measures: tuple[str, ...] = (_ALL,)
    without: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()
    settings: Settings = field(default_factory=dict)


# -- suite -------------------------------------------------------------------------------


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
    """Methods, and sweeps of single settings around them."""

    settings: Settings = field(default_factory=dict)
    method: tuple[MethodPlan, ...] = ()
    sweep: tuple[SweepPlan, ...] = ()

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


# -- best --------------------------------------------------------------------------------


Swept = tuple[SweepPlan, dict[str, dict[Value, Point]]]
"""A sweep and its points by method and value."""

_LUCK = "seed"


def _choices(sweeps: Sequence[Swept]) -> list[Swept]:
    return [(plan, found) for plan, found in sweeps if plan.setting != _LUCK]


def candidates(methods: Sequence[Point], sweeps: Sequence[Swept]) -> dict[str, list[Point]]:
    """The points of methods and sweeps by measure, each once."""
    swept = [
        p for _, found in _choices(sweeps) for values in found.values() for p in values.values()
    ]
    by_measure: dict[str, list[Point]] = {}
    for each in dict.fromkeys([*methods, *swept]):
        by_measure.setdefault(each.measure, []).append(each)
    return by_measure


def combined(
    suite: Suite, sweeps: Sequence[Swept], seed: int, worth: Callable[[Point], float]
) -> list[Point]:
    """For every measure and direction, the best value of each of its swept settings at once.

    Sweeps with settings of their own vary around another default and are left aside.
    """
    chosen: dict[tuple[str, str], dict[str, Value]] = {}
    for plan, found in _choices(sweeps):
        for values in found.values():
            if plan.settings or not values:
                continue
            value, best = max(values.items(), key=lambda item: worth(item[1]))
            chosen.setdefault((best.measure, best.direction), {})[plan.setting] = value
    return [
        point(measure, direction, taken(measure, suite.settings, {"seed": seed}, settings))
        for (measure, direction), settings in chosen.items()
    ]
