"""Each measure at its best setting, out of what a suite's sweeps have seen.

Sweeps vary one setting at a time around a default. The candidates of a measure are, in every
direction, the points of its sweeps and methods, and one more that takes the best value of every
setting at once. The one whose figure is largest, of all directions, is the measure's best.

A best of many looks better than it is on the queries that chose it. So the queries of the sweeps
choose, and all others judge (``running.py``). Sweeps of the seed are no choice: they tell how much
is luck.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cocite.evaluation.plans import SweepPlan
from cocite.evaluation.suite import Point, Suite, point, taken
from cocite.measures import Value

__all__ = ["candidates", "combined"]

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
