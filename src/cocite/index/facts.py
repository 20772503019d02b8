"""What a manifest says of an index, checked before anything is made of it.

The parts of an index follow from its measure and, for each component, a direction, a layout and
settings (``index/plan.py``). So a manifest is not believed: the parts that a build with the same
choices would have are made, and the manifest must say the same of them. What the names of files
begin with comes from the measure, never from the manifest.

Cost: none but the manifest; no file is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocite.errors import Damaged, UsageError
from cocite.graph.graph import MAX_NODES
from cocite.graph.names import NAME_KINDS, sides_told
from cocite.index.asked import ASKS, asked_settings, kept_settings
from cocite.index.keep import KeptPages, kept_of
from cocite.index.plan import BuildOptions, component_parts
from cocite.index.refined import DIAGONAL
from cocite.layouts.freshness import Generation, generations_of
from cocite.layouts.plan import PartPlan
from cocite.layouts.table import is_sampled, sampled_format
from cocite.measures import BY, SAMPLES, Component, Measure, Value, WholeSettings, find_measure
from cocite.measures.blend import overall_direction
from cocite.store import Facts

if TYPE_CHECKING:
    from cocite.graph.sides import Sides

__all__ = ["PASSED_OVER", "IndexFacts", "index_facts"]

PASSED_OVER = "passed_over"
"""The fact of an index that counts them, if there are any."""
_LARGEST_RESIDUAL = 1e9


@dataclass(frozen=True)
class IndexFacts:
    """The facts of an index: ``nodes``, the kind of their ``names``, ``measure``, ``direction``,
    ``settings``; what is told of its ``graph``; its ``parts``, their ``generations``; what is
    ``refined``, by the name of the file; of the pages that are ``kept``, if not all are; and what
    questions go ``by`` unless they say; and ``asks``, what else they take then; how many pages are
    ``passed_over``, as they have more links than tell something.
    """

    nodes: int
    names: str
    measure: Measure
    direction: str
    settings: WholeSettings
    graph: dict[str, Any]
    parts: tuple[PartPlan, ...]
    generations: tuple[Generation, ...]
    refined: dict[str, dict[str, float]]
    kept: KeptPages | None
    by: str | None
    asks: dict[str, Value]
    passed_over: int

    @classmethod
    def read(cls, path: Path, told: Mapping[str, Any]) -> IndexFacts:
        """Those of the index at ``path``; raises :class:`Damaged`."""
        try:
            return _read(Facts(told, f"{path}: the manifest"))
        except (UsageError, OverflowError) as error:
            raise Damaged(
                f"{path}: the manifest's facts are not of their kind ({error}). Copy the index "
                "again from where it was whole, or build it again"
            ) from error


def _read(facts: Facts) -> IndexFacts:
    measure = find_measure(facts.text("measure"))
    if measure.name != facts.text("measure"):
        raise facts.refused("measure", f"written {measure.name}")
    settings = measure.build_settings(facts.group("settings").values)
    facts.group("settings").same_as(settings.to_json())
    graph = _graph(facts.group("graph"))
    parts, direction = _parts(facts, measure, settings)
    counts = {plan.settings[SAMPLES] for plan in parts if SAMPLES in plan.settings}
    weighted = {plan.weighted for plan in parts if not plan.measure.texts}
    mixed = len(weighted) > 1 and not measure.lenient
    if len(counts) > 1 or mixed or (True in weighted and not graph["weighted"]):
        raise facts.refused("parts", "parts of equally many samples, all by the weights or none")
    nodes = facts.whole("nodes", 1, MAX_NODES)
    sides_told(facts, nodes)
    kept = kept_of(facts, nodes, MAX_NODES)
    selects = all(is_sampled(p.layout) and sampled_format(p.layout).selects for p in parts)
    if kept is not None and ("refined" in facts or not selects):
        raise facts.refused("wanted", "for indexes of layouts that can keep some pages alone")
    return IndexFacts(
        nodes,
        facts.text("names", NAME_KINDS),
        measure,
        facts.text("direction", (direction,)),
        settings,
        graph,
        parts,
        generations_of(facts, max(counts, default=0)),
        _refined(facts, parts),
        kept,
        _by(facts, measure, parts),
        _asks(facts, measure, parts),
        facts.whole(PASSED_OVER) if PASSED_OVER in facts else 0,
    )


def _by(facts: Facts, measure: Measure, parts: Sequence[PartPlan]) -> str | None:
    """What meetings are worth by default, as it is written when it is kept."""
    if BY.name not in facts:
        return None
    told = facts.text(BY.name)
    if told != BY.checked(told):
        raise facts.refused(BY.name, f"written {BY.checked(told)}")
    asked_settings(measure, parts, {BY.name: told})
    return told


def _asks(facts: Facts, measure: Measure, parts: Sequence[PartPlan]) -> dict[str, Value]:
    """What questions take unless they say otherwise, if any of that is kept."""
    if ASKS not in facts:
        return {}
    told = facts.group(ASKS)
    found = kept_settings(measure, parts, told.values, _by(facts, measure, parts))
    told.same_as(found)
    return found


def _graph(facts: Facts) -> dict[str, Any]:
    """Which graph it was built from."""
    return {
        "name": facts.text("name"),
        "digest": facts.digest("digest"),
        "edges": facts.whole("edges"),
        "weighted": facts.flag("weighted"),
        "path": facts.relative("path"),
    }


def _parts(
    facts: Facts, measure: Measure, settings: WholeSettings
) -> tuple[tuple[PartPlan, ...], str]:
    """The parts of all components, and their direction."""
    told = facts.groups("parts")
    found: list[PartPlan] = []
    ways = set()
    for component in measure.components:
        mine = told[len(found) : len(found) + 2]
        if not mine:
            raise facts.refused("parts", f"those of {measure.name}, which has more of them")
        ways.add(way := _way(component, mine))
        found += _component(component, way, settings, mine)
    if len(found) != len(told):
        raise facts.refused("parts", f"those of {measure.name}, which has {len(found)} of them")
    return tuple(found), overall_direction(ways)


def _way(component: Component, told: Sequence[Facts]) -> str:
    """The direction of a component whose parts are the first of those told: its own, if it has one,
    and else ``both`` if there are two of its number, in and out.
    """
    way = told[0].text("direction", component.measure.directions)
    if way == "in" and not component.measure.joint and len(told) == 2:
        number = told[1].whole("number") if component.label else component.number
        if number == component.number and told[1].text("direction") == "out":
            way = "both"
    if component.direction not in (None, way):
        raise told[0].refused("direction", f"that of a component with {component.direction}")
    return way


def _component(
    component: Component, way: str, settings: WholeSettings, told: Sequence[Facts]
) -> list[PartPlan]:
    """The parts of a component, which are the first of those told."""
    taken = component.measure.build
    given = {s.name: settings[s] for s in taken if settings.get(s, s.default) != s.default}
    layout = told[0].text("layout", component.measure.layouts)
    made = component_parts(component, way, *component.choose(layout, given))
    plans = []
    for plan, each in zip(made, told, strict=False):
        plans.append(replace(plan, weighted=each.flag("weighted")))
        if plans[-1].weighted and not plan.measure.weighted:
            raise each.refused("weighted", f"false for {plan.measure.name}")
        each.same_as(plans[-1].to_json())
    return plans


def _refined(facts: Facts, parts: Sequence[PartPlan]) -> dict[str, dict[str, float]]:
    """What is made ready for refined answers: of all parts, or of none."""
    told = facts.group("refined") if "refined" in facts else Facts({}, "")
    if told.values and set(told.values) != {plan.prefix + DIAGONAL for plan in parts}:
        raise facts.refused("refined", "of all parts")
    if told.values and not all(part.linearised for part in parts):
        raise facts.refused("refined", "nothing for this measure")
    found = {}
    for name in told.values:
        each = told.group(name)
        decay = each.number("decay", 0, 1)
        low, high = each.number("low", -1, 0), each.number("high", 0, _LARGEST_RESIDUAL)
        if not 0 < decay < 1 or low == -1:
            raise told.refused(name, "a decay between 0 and 1, and residuals above -1")
        found[name] = {"decay": decay, "low": low, "high": high}
    return found


def index_facts(
    nodes: int,
    names: str,
    options: BuildOptions,
    graph: Mapping[str, Any],
    kept: KeptPages | None,
    sides: Sides | None,
) -> dict[str, Any]:
    """What the manifest of an index says; ``names`` is the kind of names, ``kept`` what is said of
    the pages that are kept, if not all are, ``sides`` those of its nodes, if they have two.
    """
    facts: dict[str, Any] = {
        "nodes": nodes,
        "names": names,
        "measure": options.measure.name,
        "direction": options.direction,
        "settings": options.settings.to_json(),
        "parts": [plan.to_json() for plan in options.parts],
        "graph": dict(graph),
    }
    facts |= {"first": options.first} if options.first else {}
    facts |= {} if options.by is None else {BY.name: options.by}
    facts |= {ASKS: dict(options.asks)} if options.asks else {}
    facts |= {"sides": sides.to_json()} if sides else {}
    return facts | ({"wanted": kept.to_json()} if kept else {})
