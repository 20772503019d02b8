"""Candidates of a tuning run: their records on disk, the choice, and the settings file.

The first candidates are every measure in every direction with default settings. Then come variants
of the best with one setting changed, and finally, for each measure and direction, the combination
of the best values. Few values are tried per setting, because finer steps would differ by less
than the intervals. ``coupling``, which is cocitation in the other direction, is tried only on
request; text measures are not tried.

A record has the result of a candidate in a round: a line of JSON, then the judgment's parts and
wholes in float64. Records form a journal (``storage/atomic.py``), so an interrupted run resumes
after the last complete one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cocite.errors import ResourceError, UsageError
from cocite.evaluation.judge import Judgment
from cocite.evaluation.labels import Interval
from cocite.evaluation.points import (
    Point,
    Settings,
    called,
    combinations,
    link_measures,
    point,
    taken,
)
from cocite.graph import Graph
from cocite.index.plan import BuildOptions
from cocite.index.settings import IndexSettings
from cocite.measures import DEFAULT, Value, find_measure
from cocite.options import DIRECTIONS
from cocite.results import Document, ResultRows
from cocite.storage import Journal, check_file, disk, staged_file

TRIED: dict[str, tuple[Any, ...]] = {
    "hubs": ("plain", "idf"),
    "decay": (0.3, 0.6, 0.8),
    "form": ("cosine", "jaccard", "count"),
    "idf": (False, True),
    "mutual": (False, True),
    "neighbors": (20, 50, 100),
    "damping": (0.5, 0.85, 0.95),
    "radius": (2, 3),
    "size": ("small", "default", "large"),
}
"""Values to try, by setting."""
_TWIN = "coupling"


def first_points(
    graph: Graph,
    settings: Settings,
    measures: Sequence[str] = (),
    directions: Sequence[str] = (),
    unweighted: bool = False,
) -> tuple[list[Point], list[str]]:
    """Return every measure in every direction, or only the given ones, the default first; and notes
    on omitted measures. Each point has the ``settings`` that its measure supports. Raises
    :class:`UsageError` for unknown names.
    """
    names = dict.fromkeys(measures) or [name for name in link_measures() if name != _TWIN]
    found, notes = [], []
    for measure, direction in combinations(names, list(directions) or list(DIRECTIONS)):
        each = point(measure, direction, taken(measure, settings))
        try:
            BuildOptions.checked(
                measure, direction, None, dict(each.build), unweighted=unweighted
            ).for_graph(graph)
        except (UsageError, ResourceError) as error:
            notes.append(f"{measure} is left out: {error}")
        else:
            found.append(each)
    found.sort(key=lambda each: not is_default(each))
    return found, list(dict.fromkeys(notes))


def is_default(each: Point) -> bool:
    """Return whether ``each`` is the default measure in its default direction."""
    return (each.measure, each.direction) == (DEFAULT, find_measure(DEFAULT).direction)


class Variants:
    """Variants of the points' measures and directions, with one setting changed at a time."""

    def __init__(self, points: Sequence[Point], settings: Settings) -> None:
        self._settings = settings
        self._series: list[tuple[str, dict[Value, Point]]] = []
        ways = dict.fromkeys((each.measure, each.direction) for each in points)
        for name, values in TRIED.items():
            for measure, direction in ways:
                if not taken(measure, {name: values[0]}):
                    continue
                base, series = taken(measure, settings), dict[Value, Point]()
                for value in values:
                    with suppress(UsageError):  # some measures do not support all values
                        series[value] = point(measure, direction, base | {name: value})
                self._series.append((name, series))

    def points(self) -> list[Point]:
        """Return all variants."""
        return [each for _, series in self._series for each in series.values()]

    def combined(self, figure: Callable[[Point], float]) -> list[Point]:
        """Combine the best value of each setting, for each measure and direction."""
        chosen: dict[tuple[str, str], dict[str, Value]] = {}
        for name, series in self._series:
            if series:
                value, best = max(series.items(), key=lambda item: figure(item[1]))
                chosen.setdefault((best.measure, best.direction), {})[name] = value
        return [
            point(measure, direction, taken(measure, self._settings, settings))
            for (measure, direction), settings in chosen.items()
        ]


def decided(
    first: Point,
    level: Sequence[Point],
    usual: Point | None,
    sizes: dict[Point, int],
    held: Mapping[Point, Interval],
    margin: float = 0.0,
) -> tuple[Point, str]:
    """Return the chosen point and the reason for the choice.

    ``level`` are the points that do not differ significantly from the ``first`` on the selecting
    pages. ``usual`` is the default, ``sizes`` are index sizes, and ``held`` is each point's lead
    over the default on the held-out pages. Another point replaces the default only if it leads on
    both halves, and by more than ``margin`` on the held-out half.
    """
    if usual is not None and usual in level and len(level) > 1:
        ahead = "the best" if usual == first else f"as good as the best, {called(first)}"
        return usual, f"the default is {ahead}"
    least = min(level, key=lambda p: (sizes[p], p != first))
    if len(level) == 1:
        reason = "significantly better than all others"
    elif least == first:
        reason = "the best, and the smallest of the equally good candidates"
    else:
        reason = f"the smallest of the candidates that are as good as the best, {called(first)}"
    if usual is None or least == usual:
        return least, reason
    if least not in held:
        return usual, f"the default remains: no pages are held out to evaluate {called(least)}"
    ahead = "{:+.4f} [{:+.4f}, {:+.4f}]".format(*held[least])
    if not held[least].low > margin:
        lead = f" by a fifth, {margin:.4f}" if margin else ""
        return usual, (
            f"the default remains: on the held-out pages, {called(least)} is not significantly "
            f"better{lead} ({ahead} above it)"
        )
    return least, f"{reason}; {ahead} above the default on the held-out pages"


@dataclass(frozen=True)
class TrialRecord:
    """An evaluated candidate: the ``bytes`` and build ``seconds`` of its index, and the seconds for
    all queries, ``asking``.
    """

    judgment: Judgment
    bytes: int
    seconds: float
    asking: float


class Records:
    """Records on disk, by round and candidate."""

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path)
        self._found: dict[tuple[int, str], TrialRecord] = {}

    def __enter__(self) -> Records:
        self._journal.__enter__()
        data = self._journal.path.read_bytes()
        for begin, size in zip(self._journal.begins, self._journal.sizes, strict=True):
            line, _, rest = data[begin : begin + size].partition(b"\n")
            head = json.loads(line)
            arrays = np.frombuffer(rest, "<f8").reshape(2, head["queries"], len(head["titles"]))
            judgment = Judgment(tuple(head["titles"]), *arrays)
            cost = head["bytes"], head["seconds"], head["asking"]
            self._found[tuple(head["key"])] = TrialRecord(judgment, *cost)
        return self

    def __exit__(self, *error: Any) -> None:
        self._journal.__exit__(*error)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def seconds(self) -> float:
        """Return the total time of all records."""
        return sum(r.seconds + r.asking for r in self._found.values())

    def get(self, turn: int, each: Point) -> TrialRecord | None:
        """Return the record of a candidate in a round, or None."""
        return self._found.get((turn, _name(each)))

    def add(self, turn: int, each: Point, record: TrialRecord) -> None:
        """Store the record of a candidate in a round."""
        found, key = record.judgment, (turn, _name(each))
        head = {
            "key": list(key),
            "titles": found.titles,
            "queries": len(found.parts),
            "bytes": record.bytes,
            "seconds": record.seconds,
            "asking": record.asking,
        }
        arrays = np.concatenate([found.parts.ravel(), found.wholes.ravel()]).astype("<f8")
        self._journal.append(json.dumps(head).encode() + b"\n" + arrays.tobytes())
        self._found[key] = record


def _name(each: Point) -> str:
    return json.dumps([each.measure, each.direction, each.build, each.ask])


@dataclass(frozen=True)
class Trial:
    """A candidate and its results in its last ``round``, 1 to 3.

    ``figure`` is its result in that round on the selecting pages. ``behind``, how far it
    is behind the best, and ``judged``, its figure on the held-out pages, are None if it was dropped
    before round 3. ``seconds`` is the build time of its index with ``samples`` samples and
    ``bytes`` bytes, and ``question`` the seconds per query.
    """

    name: str
    measure: str
    direction: str
    settings: dict[str, Value]
    round: int
    figure: Interval
    behind: Interval | None
    judged: Interval | None
    samples: int | None
    seconds: float
    bytes: int
    question: float


_TITLES = (
    *("name", "measure", "direction", "settings", "round"),
    *("figure", "low", "high", "judged", "judged_low", "judged_high"),
    *("samples", "build_seconds", "bytes", "question_seconds"),
)


@dataclass(frozen=True)
class TuningResult(Document):
    """The result of tuning: ``cocite.build(graph, output, settings=tuned.settings)`` uses it.

    ``best`` is the choice, and ``reason`` explains it. ``tried`` has all candidates: the choice,
    then the others by last round and by the figure ``by``. ``hidden`` counts hidden links, None
    with ``labels``. ``chosen_by`` and ``judged_by`` count the selecting and the held-out pages.
    """

    graph: str
    nodes: int
    links: int
    date: str
    by: str
    labels: str | None
    hidden: int | None
    chosen_by: int
    judged_by: int
    seed: int
    best: Trial
    reason: str
    settings: IndexSettings
    tried: Sequence[Trial]
    notes: Sequence[str] = field(default=())

    def facts(self) -> dict[str, Any]:
        """Return all fields, with ``best`` as a name."""
        return super().facts() | {"best": self.best.name}

    def rows(self) -> ResultRows:
        """Return one row per candidate."""
        rows = []
        for each in self.tried:
            judged = each.judged or (None, None, None)
            text = " ".join(f"{name}={value}" for name, value in each.settings.items())
            what = each.name, each.measure, each.direction, text, each.round
            cost = each.samples, each.seconds, each.bytes, each.question
            rows.append((*what, *each.figure, *judged, *cost))
        return ResultRows(_TITLES, rows)

    def text(self) -> str:
        """Return the text of the settings file, with the results as a comment at its top."""
        by = f"by the labels of {self.labels}" if self.labels else "without labels"
        remarks = [
            f"Chosen by cocite tune on {self.date}, {by}, for {self.graph}",
            f"({self.nodes:,} nodes, {self.links:,} links): {self.reason}.",
            f"{self.by} of {self.best.name} on {self.judged_by:,} held-out pages: "
            + _shown(self.best.judged or self.best.figure),
            "Others, on the selection pages:",
        ]
        last = [each for each in self.tried if each.behind is not None]
        remarks += [f"  {_shown(each.figure)}  {each.name}" for each in last]
        return self.settings.text(remarks)

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write the settings file. Raises :class:`~cocite.errors.OutputExists`."""
        found = check_file(Path(path), overwrite)
        with staged_file(found) as file:
            disk.write(file, self.text().encode())
        return found


def _shown(found: Interval) -> str:
    return f"{found.value:.4f} [{found.low:.4f}, {found.high:.4f}]"
