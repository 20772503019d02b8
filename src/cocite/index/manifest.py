"""Reading and checking an index's manifest.

The manifest is not trusted. The measure and each component's direction, layout and settings
determine the parts (``index/plan.py``), so the check derives the parts again, and compares them
with the manifest. The listed files must match the layouts' declarations, and file names are derived
from the measure. Checking reads no file except the manifest.

A SimRank index may contain the diagonal for refined answers (``in.diagonal``), which depends only
on the graph and the decay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cocite.errors import Damaged, UsageError
from cocite.graph.name_files import NAME_KINDS, sides_text, take_text_files
from cocite.graph.names import MAX_NODES
from cocite.index.layouts.contract import (
    SHARD,
    SHARD_FORM,
    WANTED,
    PartPlan,
    WholeFormat,
    shard_number,
)
from cocite.index.layouts.reader import format_of, is_sampled, sampled_format
from cocite.index.layouts.snapshots import SINCE, LocalRefresh, Snapshot, snapshots_of
from cocite.index.plan import (
    ASKS,
    BuildOptions,
    PageFilter,
    component_parts,
    page_filter,
    query_settings,
    saved_settings,
)
from cocite.measures import (
    DECAY,
    MEETING_WEIGHT,
    SAMPLES,
    Component,
    Measure,
    Value,
    WholeSettings,
    find_measure,
)
from cocite.measures.measure import overall_direction
from cocite.resources import Resources
from cocite.storage import DeclaredFiles, Entry, Facts, Manifest, write_array

if TYPE_CHECKING:
    from cocite.engine.diagonal import Diagonal, SweepReport
    from cocite.graph.blocks import Links
    from cocite.graph.sides import Sides


DIAGONAL = "diagonal"


def diagonal_bytes(nodes: int) -> int:
    """Return the size in bytes of one part's diagonal."""
    from cocite.engine.diagonal import LIMITS

    return 4 * (1 + LIMITS) * nodes


def write_diagonal(
    directory: Path,
    plan: PartPlan,
    rows: Links,
    columns: Links,
    means: Resources,
    report: SweepReport,
) -> tuple[dict[str, Entry], dict[str, Any]]:
    """Write a part's diagonal, resuming an interrupted run; return entries and facts by file."""
    from cocite.engine.diagonal import LIMITS, diagonal_room, make_diagonal
    from cocite.storage import Journal

    threads, decay = diagonal_room(rows, columns, means), plan.fixed.get(DECAY, DECAY.default)
    name = plan.prefix + DIAGONAL
    with Journal(directory / (name + ".stages")) as journal:
        reached = None
        if journal.sizes:
            words, begin = rows.nodes * (1 + LIMITS), journal.begins[-1]
            table = np.fromfile(journal.path, np.float32, words, offset=begin)
            reached = len(journal.sizes), table.reshape(-1, 1 + LIMITS)
        how: dict[str, Any] = {"threads": threads, "progress": report, "reached": reached}
        how["keep"] = lambda table: journal.append(table.tobytes())
        made = make_diagonal(rows, columns, decay, **how)
    entry = write_array(directory / name, np.float32, [made.table], (1 + LIMITS,))
    facts = {"decay": made.decay, "low": made.low, "high": made.high}
    return {name: entry}, {name: facts}


def read_diagonal(table: Any, facts: dict[str, Any]) -> Diagonal:
    """Return the stored diagonal."""
    from cocite.engine.diagonal import Diagonal

    return Diagonal(float(facts["decay"]), table, float(facts["low"]), float(facts["high"]))


# -- facts -------------------------------------------------------------------------------


EXCLUDED, LOCAL = "excluded", "local"
"""Manifest facts: the number of excluded pages, and the last local refresh."""
_LARGEST_RESIDUAL = 1e9


@dataclass(frozen=True)
class IndexFacts:
    """The checked facts of a manifest.

    ``names`` is the format of node names. ``refined`` contains the diagonals' facts, by file name.
    ``kept`` is the page selection, or None for all pages. ``meeting_weight`` and ``query_defaults``
    are query defaults. ``excluded`` counts the pages with too many links. ``local`` is the last
    local refresh since the full build, or None.
    """

    nodes: int
    names: str
    measure: Measure
    direction: str
    settings: WholeSettings
    graph: dict[str, Any]
    parts: tuple[PartPlan, ...]
    snapshots: tuple[Snapshot, ...]
    refined: dict[str, dict[str, float]]
    kept: PageFilter | None
    meeting_weight: str | None
    query_defaults: dict[str, Value]
    excluded: int
    local: LocalRefresh | None

    @classmethod
    def read(cls, path: Path, values: Mapping[str, Any]) -> IndexFacts:
        """Check the facts of the index at ``path``; raises :class:`Damaged`."""
        try:
            return _read(Facts(values, f"{path}: the manifest"))
        except (UsageError, OverflowError) as error:
            raise Damaged(
                f"{path}: the manifest contains an invalid fact ({error}). Restore the index from "
                "an intact copy, or rebuild it"
            ) from error


def _read(facts: Facts) -> IndexFacts:
    measure = find_measure(facts.text("measure"))
    if measure.name != facts.text("measure"):
        raise facts.refused("measure", f"written {measure.name}")
    settings = measure.build_settings(facts.group("settings").values)
    facts.group("settings").same_as(settings.to_json())
    described = facts.group("graph")
    graph = {
        "name": described.text("name"),
        "digest": described.digest("digest"),
        "edges": described.whole("edges"),
        "weighted": described.flag("weighted"),
        "path": described.relative("path"),
    }
    parts, direction = _parts(facts, measure, settings)
    counts = {plan.settings[SAMPLES] for plan in parts if SAMPLES in plan.settings}
    weighted = {plan.weighted for plan in parts if not plan.measure.texts}
    mixed = len(weighted) > 1 and not measure.lenient
    if len(counts) > 1 or mixed or (True in weighted and not graph["weighted"]):
        raise facts.refused("parts", "parts with equal sample counts and the same use of weights")
    nodes = facts.whole("nodes", 1, MAX_NODES)
    sides_text(facts, nodes)
    kept = page_filter(facts, nodes, MAX_NODES)
    selects = all(format_of(p.layout).selects for p in parts)
    by, asks = _by(facts, measure, parts), {}
    if ASKS in facts:
        asks = saved_settings(measure, parts, facts.group(ASKS).values, by)
        facts.group(ASKS).same_as(asks)
    if kept is not None and ("refined" in facts or not selects):
        raise facts.refused("wanted", "absent, because these layouts need all pages")
    return IndexFacts(
        nodes,
        facts.text("names", NAME_KINDS),
        measure,
        facts.text("direction", (direction,)),
        settings,
        graph,
        parts,
        snapshots_of(facts, max(counts, default=0)),
        _refined(facts, parts),
        kept,
        by,
        asks,
        facts.whole(EXCLUDED) if EXCLUDED in facts else 0,
        LocalRefresh.read(facts.group(LOCAL)) if LOCAL in facts else None,
    )


def _by(facts: Facts, measure: Measure, parts: Sequence[PartPlan]) -> str | None:
    """Return the stored default meeting weight, or None."""
    if MEETING_WEIGHT.name not in facts:
        return None
    weight = facts.text(MEETING_WEIGHT.name)
    if weight != MEETING_WEIGHT.checked(weight):
        raise facts.refused(MEETING_WEIGHT.name, f"written {MEETING_WEIGHT.checked(weight)}")
    query_settings(measure, parts, {MEETING_WEIGHT.name: weight})
    return weight


def _parts(
    facts: Facts, measure: Measure, settings: WholeSettings
) -> tuple[tuple[PartPlan, ...], str]:
    """Return the parts of all components, and the overall direction."""
    groups = facts.groups("parts")
    found: list[PartPlan] = []
    ways = set()
    for component in measure.components:
        mine = groups[len(found) : len(found) + 2]
        if not mine:
            raise facts.refused("parts", f"all parts of {measure.name}")
        ways.add(way := _way(component, mine))
        found += _component(component, way, settings, mine)
    if len(found) != len(groups):
        raise facts.refused("parts", f"the {len(found)} parts of {measure.name}")
    return tuple(found), overall_direction(ways)


def _way(component: Component, groups: Sequence[Facts]) -> str:
    """Return the direction of the component whose parts come first in ``groups``: the direction of
    the first part, or ``both`` for an in-part followed by an out-part.
    """
    way = groups[0].text("direction", component.measure.directions)
    if way == "in" and not component.measure.joint and len(groups) == 2:
        number = groups[1].whole("number") if component.label else component.number
        if number == component.number and groups[1].text("direction") == "out":
            way = "both"
    if component.direction not in (None, way):
        raise groups[0].refused("direction", f"{component.direction}, as the component requires")
    return way


def _component(
    component: Component, way: str, settings: WholeSettings, groups: Sequence[Facts]
) -> list[PartPlan]:
    """Return the plans of the parts of ``component``; ``groups`` begins with these parts."""
    taken = component.measure.build
    given = {s.name: settings[s] for s in taken if settings.get(s, s.default) != s.default}
    layout = groups[0].text("layout", component.measure.layouts)
    made = component_parts(component, way, *component.choose(layout, given))
    plans = []
    for plan, each in zip(made, groups, strict=False):
        plans.append(replace(plan, weighted=each.flag("weighted")))
        if plans[-1].weighted and not plan.measure.weighted:
            raise each.refused("weighted", f"false for {plan.measure.name}")
        each.same_as(plans[-1].to_json())
    return plans


def _refined(facts: Facts, parts: Sequence[PartPlan]) -> dict[str, dict[str, float]]:
    """Return the diagonals' facts, which must cover all parts or none."""
    refined = facts.group("refined") if "refined" in facts else Facts({}, "")
    if refined.values and set(refined.values) != {plan.prefix + DIAGONAL for plan in parts}:
        raise facts.refused("refined", "present for all parts or none")
    if refined.values and not all(part.linearized for part in parts):
        raise facts.refused("refined", "absent for this measure")
    found = {}
    for name in refined.values:
        each = refined.group(name)
        decay = each.number("decay", 0, 1)
        low, high = each.number("low", -1, 0), each.number("high", 0, _LARGEST_RESIDUAL)
        if not 0 < decay < 1 or low == -1:
            raise refined.refused(name, "a decay between 0 and 1, and residuals above -1")
        found[name] = {"decay": decay, "low": low, "high": high}
    return found


def index_facts(
    nodes: int,
    names: str,
    options: BuildOptions,
    graph: Mapping[str, Any],
    kept: PageFilter | None,
    sides: Sides | None,
) -> dict[str, Any]:
    """Return the facts to store in the manifest. ``names`` is the format of names; ``kept`` is the
    page selection, or None for all pages; ``sides`` is None unless the graph is bipartite.
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
    facts |= {} if options.meeting_weight is None else {MEETING_WEIGHT.name: options.meeting_weight}
    facts |= {ASKS: dict(options.query_defaults)} if options.query_defaults else {}
    facts |= {"sides": sides.to_json()} if sides else {}
    return facts | ({"wanted": kept.to_json()} if kept else {})


# -- files -------------------------------------------------------------------------------


def check_files(path: Path, manifest: Manifest, facts: IndexFacts) -> None:
    """Raise :class:`Damaged` if a file is missing or undeclared, or contradicts its declaration."""
    files = DeclaredFiles(path, manifest.files)
    sizes = {"n": facts.nodes, "m": int(facts.graph["edges"])}
    take_text_files(files, facts.names, facts.nodes)
    if len(facts.snapshots) > 1:
        files.take({SINCE: "<u4[n]"}, sizes, optional=(SINCE,))
    if facts.kept is not None:
        files.take({WANTED: "<u4[n]"}, sizes)
    for plan in facts.parts:
        if is_sampled(plan.layout):
            _take_samples(files, path, facts, plan)
        else:
            layout = format_of(plan.layout)
            assert isinstance(layout, WholeFormat)
            whole = facts.nodes if facts.kept is None else facts.kept.nodes
            own = sizes | layout.sizes(plan, facts.nodes, whole)
            files.take(layout.files_of(plan), own, plan.prefix)
        if facts.refined:
            from cocite.engine.diagonal import LIMITS

            files.take({DIAGONAL: f"<f4[n, {1 + LIMITS}]"}, sizes, plan.prefix)
    files.no_more()


def _take_samples(files: DeclaredFiles, path: Path, facts: IndexFacts, plan: PartPlan) -> None:
    """Claim a sampled part's files; each shard's name contains its first sample number."""
    layout = sampled_format(plan.layout)
    files.take(layout.files, {"n": facts.nodes, "N": plan.settings[SAMPLES]}, plan.prefix)
    names = files.starting(plan.prefix + SHARD)
    for name in names:
        files.take({name: SHARD_FORM}, {})
    firsts = [shard_number(name.removeprefix(plan.prefix)) for name in names]
    numbers = range(facts.snapshots[0].first, facts.snapshots[-1].numbers.stop)
    if not all(first in numbers for first in firsts) or numbers.start not in firsts:
        raise Damaged(
            f"{path}: the shards do not match samples {numbers.start} to {numbers.stop - 1}. "
            "Restore the index from an intact copy, or rebuild it"
        )
