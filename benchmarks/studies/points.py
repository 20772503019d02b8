"""Methods and sweeps of a suite, as points (``cocite/evaluation/points.py``).

If a measure does not support a setting, it is omitted from the setting's sweep. If it does not
support a value, this point is omitted, and a note says so. Sweeps vary one setting at a time around
its default. The candidates of a measure are, in every direction, the points of its sweeps and
methods, and one more point with the best value of every setting. On the queries that chose it, the
best of many candidates looks better than it is, so it is evaluated on other queries. Sweeps of the
seed are not a choice: they show the variation by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from cocite.errors import UsageError
from cocite.evaluation import points
from cocite.evaluation.points import Point, Settings, link_measures, point, settings_text, taken
from cocite.measures import MEASURES, Value, find_measure

_ALL, _LUCK = "*", "seed"


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
                chosen = taken(measure, self.settings, plan.settings, {"seed": seed})
                own = settings_text(taken(measure, plan.settings))
                found[f"{measure} {direction}{own}"] = point(measure, direction, chosen)
        return found


def combinations(plan: MethodPlan | SweepPlan) -> Iterator[tuple[str, str]]:
    """Measures and directions of a plan."""
    return points.combinations(chosen_measures(plan.measures, plan.without), plan.directions)


def chosen_measures(names: tuple[str, ...], without: tuple[str, ...] = ()) -> list[str]:
    """The measures named, ``*`` standing for all that look at links; raises :class:`UsageError`."""
    for name in (*names, *without):
        if name != _ALL:
            find_measure(name)
    found = dict.fromkeys([*link_measures(), *names] if _ALL in names else names)
    return [name for name in found if name != _ALL and name not in without]


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


Swept = tuple[SweepPlan, dict[str, dict[Value, Point]]]
"""A sweep and its points by method and value."""


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
