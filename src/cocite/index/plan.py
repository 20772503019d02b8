"""Build options: measure, direction, layout, and settings, checked once.

An index is a weighted sum of *parts*, one per direction. For ``both``, each part has weight 1/2,
which preserves the score range; measures that use both directions jointly (``Measure.joint``), such
as P-Rank, have a single part. A blend (``measures/blend.py``) consists of its components' parts,
whose weights are multiplied by the component weights.

An index may cover only selected pages (:class:`Keep`). It may also store query defaults, which
queries can override: ``meeting_weight`` and ``query_defaults``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cocite.constants import Ids
from cocite.errors import UsageError
from cocite.index.layouts.contract import PartPlan
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import format_of
from cocite.index.layouts.snapshots import MOST_NUMBERS
from cocite.measures import (
    DECAY,
    LENGTH,
    MEASURES,
    MEETING_WEIGHT,
    SAMPLES,
    Component,
    Measure,
    PartSettings,
    Value,
    WholeSettings,
    find_measure,
)
from cocite.measures.measure import PREFIX, overall_direction
from cocite.measures.meeting_weight import heeds_decay, numbers_in, sampled, weights_of
from cocite.options import DIRECTIONS, NO_LINKS, checked_direction
from cocite.storage import Facts

if TYPE_CHECKING:
    from cocite.graph import Graph
    from cocite.options.build import MeasureOptions

ASKS = "asks"
"""Manifest fact with the query defaults."""


def query_settings(
    measure: Measure,
    parts: Sequence[PartPlan | StoredPart],
    given: Mapping[str, object],
    default: str | None = None,
    query_defaults: Mapping[str, Value] | None = None,
) -> WholeSettings:
    """Return all settings of a query.

    ``default`` is the stored ``meeting_weight``; ``query_defaults`` contains the other stored
    defaults. Raises :class:`UsageError` for a setting that the measure does not have, and for a
    value that does not suit the walk lengths.
    """
    walking = [part for part in parts if MEETING_WEIGHT in part.measure.ask]
    longest = max((part.settings[LENGTH] for part in walking), default=0)
    asked: dict[str, Any] = {**(query_defaults or {}), **given}
    if MEETING_WEIGHT.name in given:
        asked[MEETING_WEIGHT.name] = MEETING_WEIGHT.checked(
            sampled(given[MEETING_WEIGHT.name], longest)
        )
        if DECAY.name not in given and not heeds_decay(asked[MEETING_WEIGHT.name]):
            asked.pop(DECAY.name, None)  # ignore the stored default
    elif default is not None and (DECAY.name not in given or heeds_decay(default)):
        asked[MEETING_WEIGHT.name] = default
    found = measure.ask_settings(asked)
    for part in walking:
        own = part.ask_settings(found)
        weights_of(own, part.settings)
        numbers = None if MEETING_WEIGHT in part.fixed else numbers_in(own[MEETING_WEIGHT])
        if numbers is not None and numbers != longest:
            raise UsageError(
                f"meeting_weight has {numbers} numbers; it must have {longest}, one for each step "
                "of the walks"
            )
    return found


def saved_settings(
    measure: Measure,
    parts: Sequence[PartPlan | StoredPart],
    query_defaults: Mapping[str, object],
    by: str | None = None,
) -> dict[str, Value]:
    """Check the query defaults to store in an index.

    Raises :class:`UsageError` for an unknown setting, and for ``meeting_weight``, which is stored
    separately.
    """
    if MEETING_WEIGHT.name in query_defaults:
        raise UsageError(
            "meeting_weight is a parameter of its own: pass meeting_weight=..., and omit it from "
            "query_defaults"
        )
    found = query_settings(measure, parts, query_defaults, by).to_json()
    return {name: found[name] for name in sorted(query_defaults) if name in found}


_log = logging.getLogger("cocite")
_SHOWN = 3
"""Maximum number of prefixes to list in a message."""


@dataclass(frozen=True)
class Keep:
    """A page selection: pages in ``names`` or with one of the ``prefixes``. Alternatively,
    ``piece`` = (i, count) selects the i-th of ``count`` equal node ranges, counted from 1.
    """

    prefixes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    piece: tuple[int, int] | None = None

    @classmethod
    def checked(
        cls, names: Iterable[object] | None, prefixes: str | Sequence[str] | None, piece: str | None
    ) -> Self | None:
        """Return the selection, or None if all arguments are None; raises :class:`UsageError`."""
        if piece is not None:
            match = re.fullmatch("([0-9]{1,9})/([0-9]{1,9})", str(piece))
            number, count = map(int, match.groups()) if match else (0, 0)
            if not 1 <= number <= count:
                raise UsageError(
                    f"only_range is {piece!r}; it must be I/COUNT, such as 2/8 for the second of "
                    "eight ranges"
                )
            if names is not None or prefixes is not None:
                raise UsageError(
                    "--only-range (only_range=...) already selects all pages of a range: omit "
                    "--only-nodes (only_nodes=...) and --only-prefix (only_prefix=...)"
                )
            return cls(piece=(number, count))
        if isinstance(names, str):
            raise UsageError("only_nodes is a single string; pass a list of names")
        if names is None and prefixes is None:
            return None
        given = (prefixes,) if isinstance(prefixes, str) else tuple(prefixes or ())
        if not all(isinstance(each, str) and each for each in given):
            raise UsageError(
                f"only_prefix is {prefixes!r}; it must be a non-empty prefix, or a list of "
                "non-empty prefixes"
            )
        return cls(given, tuple(dict.fromkeys(map(str, names or ()))))

    def ids(self, graph: Graph) -> Ids:
        """Return the selected pages' ids in ``graph``, as an ascending uint32[m].

        Logs unknown names; raises :class:`UsageError` if no page is selected.
        """
        if self.piece is not None:
            number, count = self.piece
            if count > graph.nodes:
                raise UsageError(
                    f"{graph.path} has {graph.nodes:,} nodes, too few for {count:,} ranges"
                )
            ends = (number - 1) * graph.nodes // count, number * graph.nodes // count
            return np.arange(*ends, dtype=np.uint32)
        found = [graph.names.with_prefix(prefix) for prefix in self.prefixes]
        named = [graph.names.find(name) for name in self.names]
        there = [node for node in named if node is not None]
        ids = np.unique(np.concatenate([*found, np.array(there, np.uint32)]).astype(np.uint32))
        if not ids.size:
            raise UsageError(
                f"no page of {graph.path} is selected: no name is in the list or begins with the "
                "prefix"
            )
        if len(there) < len(named):
            first = next(name for name, node in zip(self.names, named, strict=True) if node is None)
            _log.warning(
                f"{len(named) - len(there):,} of {len(named):,} selected names are not in "
                f"{graph.path}, for example {first!r}"
            )
        return ids


@dataclass(frozen=True)
class PageFilter:
    """The page selection in a manifest: the graph's node count, and the selected ``prefixes``."""

    nodes: int
    prefixes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the selection as stored in the manifest."""
        return {"nodes": self.nodes, "prefixes": list(self.prefixes)}

    def in_words(self, count: int) -> str:
        """Describe a selection of ``count`` pages."""
        shown = ", ".join(self.prefixes[:_SHOWN]) + ", ..." * (len(self.prefixes) > _SHOWN)
        by = f" (prefix {shown})" if shown else ""
        return f"{count:,} of the {self.nodes:,} pages of its graph{by}"


def page_filter(facts: Facts, nodes: int, most: int) -> PageFilter | None:
    """Read the selection of an index with ``nodes`` nodes, or None; raises :class:`Damaged`."""
    if "wanted" not in facts:
        return None
    group = facts.group("wanted")
    prefixes = group.values.get("prefixes")
    if not isinstance(prefixes, list) or not all(isinstance(p, str) and p for p in prefixes):
        raise group.refused("prefixes", "a list of strings")
    return PageFilter(group.whole("nodes", nodes, most), tuple(prefixes))


def links_in_words(measure: Measure, direction: str) -> str:
    """Describe the links that a measure uses: ``mixed directions`` if components differ."""
    if direction == NO_LINKS:
        return "no links"
    return DIRECTIONS.get(measure.looks_at(direction), "mixed directions")


@dataclass(frozen=True)
class BuildOptions:
    """Build options.

    ``direction`` is ``mixed`` if components differ. ``unweighted`` ignores link weights; ``refine``
    prepares refined answers (``index/manifest.py``); ``first`` is the first sample number;
    ``only_nodes`` selects pages. ``meeting_weight`` and ``query_defaults`` are query defaults to
    store. ``texts`` is the path of the page texts, or None if texts are not compared.
    """

    measure: Measure
    direction: str
    settings: WholeSettings
    parts: tuple[PartPlan, ...]
    unweighted: bool = False
    refine: bool = False
    first: int = 0
    only_nodes: Keep | None = None
    meeting_weight: str | None = None
    query_defaults: Mapping[str, Value] = field(default_factory=dict)
    texts: Path | None = None

    @classmethod
    def checked(
        cls,
        measure: str,
        direction: str | None = None,
        layout: str | None = None,
        settings: Mapping[str, object] | None = None,
        *,
        query_defaults: Mapping[str, object] | None = None,
        options: MeasureOptions | None = None,
        **given: Any,
    ) -> BuildOptions:
        """Return checked options, with defaults that depend on the measure.

        ``given`` contains fields of :class:`~cocite.options.build.IndexOptions`, as an alternative
        to ``options``. With ``texts``, the measure is blended with ``tfidf``. Raises
        :class:`UsageError` for an invalid value.
        """
        from cocite.options.build import IndexOptions  # slow to load; not needed by queries

        chosen = IndexOptions.of(None, given) if options is None else options
        whole = chosen if isinstance(chosen, IndexOptions) else IndexOptions()
        numbers, by = whole.numbers, whole.meeting_weight
        keep = Keep.checked(chosen.only_nodes, chosen.only_prefix, chosen.only_range)
        found = _with_texts(find_measure(measure), chosen.texts is not None, chosen.text_fraction)
        if numbers is not None:
            settings = _numbered(numbers, found, settings or {})
        if direction not in (None, *found.directions):
            checked_direction(str(direction))
        _see_who_takes(found, settings or {})
        _, filled = found.choose(layout, settings or {})
        ways, parts = set(), []
        for component in found.components:
            way = component.direction or direction or component.measure.direction
            component.measure.checked_way(way)
            ways.add(way)
            parts += component_parts(component, way, *component.choose(layout, settings or {}))
        _check_samples(parts, numbers)
        if keep is not None:
            _check_keeps(parts, whole.refine)
        way, first = overall_direction(ways), 0 if numbers is None else numbers.start
        asked = query_settings(found, parts, {} if by is None else {MEETING_WEIGHT.name: by})
        kept = None if by is None else asked.get(MEETING_WEIGHT, MEETING_WEIGHT.default)
        held = saved_settings(found, parts, query_defaults or {}, kept)
        place = None if chosen.texts is None else Path(chosen.texts)
        how = chosen.unweighted, whole.refine, first, keep, kept, held, place
        return cls(found, way, filled, tuple(parts), *how)

    @property
    def weighted(self) -> bool:
        """Return whether any part uses link weights."""
        return any(plan.weighted for plan in self.parts)

    @property
    def samples(self) -> int | None:
        """Return the number of samples, or None if no part has samples."""
        return next((p.settings[SAMPLES] for p in self.parts if SAMPLES in p.settings), None)

    @property
    def numbers(self) -> range:
        """Return the sample numbers."""
        return range(self.first, self.first + (self.samples or 0))

    def for_graph(self, graph: Graph) -> BuildOptions:
        """Return the options for a graph, using link weights unless ``unweighted``.

        Raises :class:`UsageError` if a measure does not support link weights, or if ``refine`` is
        set but refined answers use no stored data.
        """
        parts = tuple(
            replace(plan, settings=plan.settings.of_graph(plan.measure.build, graph.edges))
            for plan in self.parts
        )
        settings = self.settings.of_graph(self.measure.build, graph.edges)
        found = replace(self, settings=settings, parts=parts)
        if graph.in_weights is not None and not self.unweighted:
            found = found._weighted()
        if self.refine and not all(plan.linearized for plan in found.parts):
            raise UsageError(
                "--refine (refine=True) stores data for simrank without link weights or --hubs; "
                f"{self.measure.name} is refined without such data. Omit --refine here, and pass "
                "it to queries"
            )
        return found

    def _weighted(self) -> BuildOptions:
        measures = [plan.measure for plan in self.parts if not plan.measure.texts]
        deaf = [measure.name for measure in measures if not measure.weighted]
        if deaf and not self.measure.lenient:
            raise UsageError(
                f"the links of the graph have weights, which {deaf[0]} cannot use. Ignore the "
                "weights with --unweighted (unweighted=True), or ingest the links without "
                "--weight-column (weight_column=...)"
            )
        parts = (replace(plan, weighted=plan.measure.weighted) for plan in self.parts)
        return replace(self, parts=tuple(parts))


def _with_texts(measure: Measure, given: bool, share: float | None) -> Measure:
    """Return the measure, blended with ``tfidf`` if texts are given."""
    if share is not None and not (isinstance(share, int | float) and 0 < share < 1):
        raise UsageError(f"text_fraction is {share!r}; it must be a number above 0 and below 1")
    if measure.texts and not given:
        raise UsageError(
            f"{measure.name} compares the texts of pages: pass them with --texts (texts=...)"
        )
    if measure.texts and share is not None:
        raise UsageError(
            f"{measure.name} already sets the weight of texts: omit --text-fraction "
            "(text_fraction=...)"
        )
    if share is not None and not given:
        raise UsageError(
            "text_fraction is the weight of texts, but no texts are given: pass them with "
            "--texts (texts=...)"
        )
    if measure.texts or not given:
        return measure
    from cocite.measures.tfidf import SHARE, TFIDF

    if measure.name.startswith(PREFIX):
        raise UsageError(
            f"{measure.name} has no weight for texts: add a component, such as "
            f"{measure.name}+0.5*{TFIDF.name}"
        )
    part = SHARE if share is None else float(share)
    links = np.format_float_positional(round(1 - part, 12), trim="0")
    text = np.format_float_positional(part, trim="0")
    return find_measure(f"{PREFIX}{links}*{measure.name}+{text}*{TFIDF.name}")


def component_parts(
    component: Component, way: str, layout: str, settings: PartSettings
) -> list[PartPlan]:
    """Return a component's parts for direction ``way`` (``in``, ``out``, ``both``, ``any``)."""
    measure = component.measure
    ways = ("in", "out") if way == "both" and not measure.joint else (way,)
    weight, fixed = component.weight / len(ways), component.fixed.only(measure.ask)
    named = component.label, component.number
    return [PartPlan(measure, each, layout, settings, weight, *named, fixed) for each in ways]


def _numbered(
    numbers: range, measure: Measure, settings: Mapping[str, object]
) -> dict[str, object]:
    """Set ``samples`` to the length of ``numbers``; raises :class:`UsageError`."""
    fine = isinstance(numbers, range) and numbers.step == 1 and 0 <= numbers.start < numbers.stop
    if not fine or numbers.stop > MOST_NUMBERS:
        raise UsageError(
            f"numbers is {numbers!r}; it must be a range of sample numbers, 0 or more, such as "
            "100..199 (range(100, 200))"
        )
    if all(SAMPLES not in component.measure.build for component in measure.components):
        raise UsageError(f"{measure.name} has no samples: omit --sample-range (numbers=...)")
    given = settings.get(SAMPLES.name, len(numbers))
    if given != len(numbers):
        raise UsageError(
            f"--sample-range (numbers=...) selects {len(numbers):,} samples, but samples is "
            f"{given!r}: omit samples"
        )
    return {**settings, SAMPLES.name: len(numbers)}


def _see_who_takes(measure: Measure, settings: Mapping[str, object]) -> None:
    """Raise :class:`UsageError` if only other measures have one of these build settings."""
    known = {setting.name for setting in (*measure.build, *measure.ask)}
    for name in settings:
        takers = [m.name for m in MEASURES.values() if any(s.name == name for s in m.build)]
        if name not in known and takers:
            raise UsageError(
                f"{measure.name} has no build setting {name!r}. Choose a measure that has it "
                f"with --measure (measure=...): {', '.join(takers)}"
            )


def _check_keeps(parts: list[PartPlan], refine: bool) -> None:
    """Raise :class:`UsageError` if a layout cannot be limited to selected pages."""
    for plan in parts:
        if format_of(plan.layout).selects:
            continue
        other = [name for name in plan.measure.layouts if format_of(name).selects]
        if other:
            raise UsageError(
                f"the {plan.layout} layout stores walks through all pages. To select pages, choose "
                f"--layout {' or '.join(other)} (layout=...)"
            )
        raise UsageError(
            f"an index of {plan.measure.name} needs links or lists of all pages. To select pages, "
            "choose a measure with samples, or fusion"
        )
    if refine:
        raise UsageError(
            "--refine (refine=True) needs an index of all pages. Omit --refine: queries with "
            "refine=True also work without stored data"
        )


def _check_samples(parts: list[PartPlan], numbers: range | None) -> None:
    """Raise :class:`UsageError` unless all components have the same number of samples: sample i of
    a blend is the sum of the components' samples i.
    """
    counts = {plan.settings[SAMPLES] for plan in parts if SAMPLES in plan.settings}
    if numbers is not None and counts != {len(numbers)}:
        counts.add(len(numbers))
    if len(counts) > 1:
        raise UsageError(
            "the components of a blend have "
            + " and ".join(f"{count:,}" for count in sorted(counts))
            + " samples; all must have the same number: set samples for the blend"
        )
