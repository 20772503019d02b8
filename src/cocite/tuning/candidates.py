"""What is tried: measures, directions and settings, as points of a suite (``evaluation/suite.py``).

First every measure in every direction that it takes, with its own settings. Then, of those that did
well, one setting at a time set otherwise; last, for each measure and direction, the best value of
every setting at once (``evaluation/best.py``). The values are few and far apart: what lies between
them makes less difference than the intervals that so many pages give.

``coupling`` is cocitation the other way round, and tried only if it is named; ``text`` needs texts,
and is not tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cocite.errors import ResourceError, UsageError
from cocite.evaluation.plans import MethodPlan, SweepPlan
from cocite.evaluation.suite import Point, Suite, sweep_points
from cocite.graph import Graph
from cocite.graph.links import DIRECTIONS
from cocite.index.plan import BuildOptions
from cocite.index.settings_file import IndexSettings
from cocite.measures import DEFAULT, MEASURES, find_measure

__all__ = [
    "TRIED",
    "default_point",
    "first_points",
    "settings_points",
    "suite_of",
    "whole_settings",
]

TRIED: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("hubs", ("plain", "idf")),
    ("decay", (0.3, 0.6, 0.8)),
    ("form", ("cosine", "jaccard", "count")),
    ("idf", (False, True)),
    ("mutual", (False, True)),
    ("nearest", (20, 50, 100)),
    ("damping", (0.5, 0.85, 0.95)),
    ("radius", (2, 3)),
)
"""The settings that are tried, and their values."""
_TWIN = "coupling"


def suite_of(measures: Sequence[str], directions: Sequence[str], samples: int, seed: int) -> Suite:
    """What is tried, as a suite; raises :class:`UsageError` for a name that is not known."""
    of_links = (name for name, measure in MEASURES.items() if not measure.texts)
    names = tuple(measures) or tuple(name for name in of_links if name != _TWIN)
    plan = MethodPlan(names, directions=tuple(directions) or tuple(DIRECTIONS))
    settings = {"samples": samples, "seed": seed}
    sweeps = tuple(
        SweepPlan(name, values, names, directions=plan.directions) for name, values in TRIED
    )
    return Suite("tune", settings=settings, method=(plan,), sweep=sweeps)


def first_points(
    suite: Suite, graph: Graph, seed: int, unweighted: bool
) -> tuple[list[Point], list[str]]:
    """Every measure in every direction, the default first, and notes on what is left out."""
    found, notes = [], []
    for each in suite.methods(seed).values():
        try:
            fitting(each, graph, unweighted)
        except (UsageError, ResourceError) as error:
            notes.append(f"{each.measure} is left out: {error}")
        else:
            found.append(each)
    usual = default_point(found)
    found.sort(key=lambda each: each != usual)
    return found, list(dict.fromkeys(notes))


def fitting(each: Point, graph: Graph, unweighted: bool) -> BuildOptions:
    """What its index is made of; raises :class:`UsageError` if the graph does not go with it."""
    options = BuildOptions.checked(
        each.measure, each.direction, None, dict(each.build), unweighted=unweighted
    )
    return options.for_graph(graph)


def default_point(points: Sequence[Point]) -> Point | None:
    """The one for which nothing is chosen, if it is among them."""
    usual = find_measure(DEFAULT).direction
    plain = (p for p in points if p.measure == DEFAULT and p.direction == usual)
    return next(plain, None)


def settings_points(suite: Suite, chosen: Sequence[Point], seed: int) -> list[Any]:
    """Sweeps around the chosen points, as ``evaluation/best.py`` takes them: (plan, points)."""
    ways = {(p.measure, p.direction) for p in chosen}
    found = []
    for plan in suite.sweep:
        swept, _ = sweep_points(suite, plan, seed)
        kept = {}
        for method, values in swept.items():
            near = {v: p for v, p in values.items() if (p.measure, p.direction) in ways}
            if near:
                kept[method] = near
        found.append((plan, kept))
    return found


def whole_settings(point: Point, unweighted: bool) -> IndexSettings:
    """What an index of the point is made of, without what the measure takes anyway."""
    measure = find_measure(point.measure)
    usual = {s.name: s.default for s in (*measure.build, *measure.ask)}
    chosen = {k: v for k, v in point.settings.items() if v != usual[k] or k == "samples"}
    return IndexSettings(point.measure, point.direction, None, unweighted, chosen)
