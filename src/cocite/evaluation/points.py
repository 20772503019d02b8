"""Points of an evaluation, and plans for evaluating them.

A point is an index with query settings. Its name consists of measure, direction, and the settings
that differ from the defaults, such as ``psimrank both decay=0.1``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cocite.evaluation.judge import CUTOFFS, TOP
from cocite.io.readers.contract import split
from cocite.measures import MEASURES, Value, find_measure
from cocite.options import checked_direction
from cocite.options.evaluate import LabelOptions

Settings = Mapping[str, Value]
Column = int | str


@dataclass(frozen=True)
class DataPlan:
    """The labels and texts for an evaluation. If ``unlabeled``, there are none, and hits are only
    counted. ``delimiter``, ``header`` and ``bad_rows`` apply to the labels.
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

    @classmethod
    def of(cls, options: LabelOptions, *, depth: int | None = None, texts: Any = None) -> DataPlan:
        """Return the plan for these options, with absolute paths."""
        places = (options.labels, texts)
        labels, found = ("" if each is None else str(Path(each).absolute()) for each in places)
        how = options.delimiter, options.header, options.bad_rows, options.separator
        return cls(labels, split(options.label_columns), *how, depth or 0, found)


@dataclass(frozen=True)
class JudgePlan:
    """How to evaluate lists. Gamma uses nodes that score more than ``gamma_least``. ``queries`` is
    the number of queries, 0 for all possible nodes.
    """

    queries: int = 0
    top: int = TOP
    gamma_least: float = 0.0
    cutoffs: tuple[int, ...] = CUTOFFS
    content: int = 50
    resamples: int = 1000
    confidence: float = 0.95


@dataclass(frozen=True)
class Point:
    """An index with query settings. ``build`` and ``ask`` are sorted (name, value) pairs."""

    measure: str
    direction: str
    build: tuple[tuple[str, Any], ...]
    ask: tuple[tuple[str, Any], ...]

    @property
    def samples(self) -> int | None:
        """Return the number of samples, None for measures without samples."""
        found = dict(self.build).get("samples")
        return None if found is None else int(found)

    @property
    def index_key(self) -> tuple[Any, ...]:
        """Return the key of the index. Points with equal keys can share an index, using its first
        samples.
        """
        return self.measure, self.direction, tuple(p for p in self.build if p[0] != "samples")

    @property
    def settings(self) -> dict[str, Value]:
        """Return all settings."""
        return dict(self.build) | dict(self.ask)

    @property
    def chosen(self) -> dict[str, Value]:
        """Return the settings that differ from the measure's defaults."""
        measure = find_measure(self.measure)
        usual = {s.name: s.default for s in (*measure.build, *measure.ask)}
        return {k: v for k, v in self.settings.items() if v != usual[k]}


def called(found: Point) -> str:
    """Return the name of a point: measure, direction, and settings that are not defaults."""
    chosen = {key: value for key, value in found.chosen.items() if key != "seed"}
    return f"{found.measure} {found.direction}{settings_text(chosen)}"


def settings_text(settings: Settings) -> str:
    """Format settings to follow a name: `` decay=0.1 hubs=idf``."""
    return "".join(f" {key}={plain(value)}" for key, value in settings.items())


def plain(value: Value) -> str:
    """Format a value as text, with Booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def link_measures() -> list[str]:
    """Return the names of the measures that use links."""
    return [name for name, measure in MEASURES.items() if not measure.texts]


def combinations(names: Iterable[str], directions: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (measure, direction). A measure without any of ``directions`` gets its default."""
    for way in directions:
        checked_direction(way)
    for name in names:
        measure = find_measure(name)
        ways = [way for way in directions if way in measure.directions]
        for direction in ways or [measure.direction]:
            yield name, direction


def point(measure: str, direction: str, settings: Settings) -> Point:
    """Return a point with checked settings. Raises :class:`~cocite.errors.UsageError`."""
    found = find_measure(measure)
    asking = {s.name for s in found.ask} - {s.name for s in found.build}
    build = found.build_settings({k: v for k, v in settings.items() if k not in asking}).to_json()
    ask = found.ask_settings({k: v for k, v in settings.items() if k in asking}).to_json()
    return Point(measure, direction, tuple(sorted(build.items())), tuple(sorted(ask.items())))


def taken(measure: str, *given: Settings) -> dict[str, Value]:
    """Return the settings that the measure supports. Later ones override earlier ones."""
    found = find_measure(measure)
    names = {setting.name for setting in (*found.build, *found.ask)}
    return {k: v for settings in given for k, v in settings.items() if k in names}
