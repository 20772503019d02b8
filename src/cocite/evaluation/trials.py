"""What tuning came to: all that was tried, what is best, and the file that says so.

What was judged, kept as it comes: an interrupted run goes on behind it.

A record is a candidate in a round: a line of JSON (round, point, bytes, seconds, pairs, titles),
and behind it the judgment's parts and wholes, float64. Records are pieces of a journal
(``storage/atomic.py``), so that one which was cut while it was written is as if it had not been.

What is tried: measures, directions and settings, as points of a suite (``evaluation/points.py``).

First every measure in every direction that it takes, with its own settings. Then, of those that did
well, one setting at a time set otherwise; last, for each measure and direction, the best value of
every setting at once (``evaluation/points.py``). The values are few and far apart: what lies
between them makes less difference than the intervals that so many pages give.

``coupling`` is cocitation the other way round, and tried only if it is named; ``text`` needs texts,
and is not tried.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cocite.errors import ResourceError, UsageError
from cocite.evaluation.judge import Judgment
from cocite.evaluation.labels import Interval
from cocite.evaluation.points import MethodPlan, Point, Suite, SweepPlan, called, sweep_points
from cocite.graph import Graph
from cocite.graph.links import DIRECTIONS
from cocite.index.plan import BuildOptions
from cocite.index.settings import IndexSettings
from cocite.measures import DEFAULT, MEASURES, Value, find_measure
from cocite.results import Document, ResultRows
from cocite.storage import Journal, check_file, disk, staged_file


@dataclass(frozen=True)
class TrialRecord:
    """One candidate, judged: ``bytes`` of its index, ``seconds`` of its build, ``asking`` seconds
    for all its questions.
    """

    judgment: Judgment
    bytes: int
    seconds: float
    asking: float


class Records:
    """``records[round, point]``; ``add`` keeps one on disk."""

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path)
        self._found: dict[tuple[int, str], TrialRecord] = {}

    def __enter__(self) -> Records:
        self._journal.__enter__()
        data = self._journal.path.read_bytes()
        for begin, size in zip(self._journal.begins, self._journal.sizes, strict=True):
            key, record = _unpacked(data[begin : begin + size])
            self._found[key] = record
        return self

    def __exit__(self, *error: Any) -> None:
        self._journal.__exit__(*error)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def seconds(self) -> float:
        """What all of them took."""
        return sum(r.seconds + r.asking for r in self._found.values())

    def get(self, turn: int, point: Point) -> TrialRecord | None:
        """What is there of a candidate in a round."""
        return self._found.get((turn, _name(point)))

    def add(self, turn: int, point: Point, record: TrialRecord) -> TrialRecord:
        """Keep it, and give it back."""
        key = turn, _name(point)
        self._journal.append(_packed(key, record))
        self._found[key] = record
        return record


def _name(point: Point) -> str:
    return json.dumps([point.measure, point.direction, point.build, point.ask])


def _packed(key: tuple[int, str], record: TrialRecord) -> bytes:
    found = record.judgment
    head = {
        "key": list(key),
        "titles": found.titles,
        "queries": len(found.parts),
        "pairs": found.pairs,
        "bytes": record.bytes,
        "seconds": record.seconds,
        "asking": record.asking,
    }
    arrays = np.concatenate([found.parts.ravel(), found.wholes.ravel()]).astype("<f8")
    return json.dumps(head).encode() + b"\n" + arrays.tobytes()


def _unpacked(piece: bytes) -> tuple[tuple[int, str], TrialRecord]:
    line, _, rest = piece.partition(b"\n")
    head = json.loads(line)
    shape = head["queries"], len(head["titles"])
    parts, wholes = np.frombuffer(rest, "<f8").reshape(2, *shape)
    judgment = Judgment(tuple(head["titles"]), parts, wholes, head["pairs"])
    turn, name = head["key"]
    return (turn, name), TrialRecord(judgment, head["bytes"], head["seconds"], head["asking"])


# -- candidates --------------------------------------------------------------------------


TRIED: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("hubs", ("plain", "idf")),
    ("decay", (0.3, 0.6, 0.8)),
    ("form", ("cosine", "jaccard", "count")),
    ("idf", (False, True)),
    ("mutual", (False, True)),
    ("neighbors", (20, 50, 100)),
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
    return Suite(settings=settings, method=(plan,), sweep=sweeps)


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
    """Sweeps around the chosen points, as ``evaluation/points.py`` takes them: (plan, points)."""
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


# -- result ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """A candidate: ``round`` is the last one that it came to, 1 to 3, ``figure`` what it has there
    on the pages that choose; ``behind`` how far it is behind the first in the last round, and
    ``judged`` its figure on the pages that had no say, both None if it was left out before.
    ``seconds`` its build took in that round, with so many ``samples``, and ``bytes`` are its size;
    ``question`` is seconds a question.
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
    "name",
    "measure",
    "direction",
    "settings",
    "round",
    "figure",
    "low",
    "high",
    "judged",
    "judged_low",
    "judged_high",
    "samples",
    "build_seconds",
    "bytes",
    "question_seconds",
)


@dataclass(frozen=True)
class TuningResult(Document):
    """What was tried on ``graph``, the best first, by ``by``; ``best`` is what was chosen and
    ``reason`` why; ``hidden`` how many links were hidden, None if ``labels`` decided. ``chosen_by``
    pages chose and ``judged_by`` others judge. ``settings`` are what an index takes:
    ``cocite.build(graph, output, settings=tuned.settings)``.
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
        """All of it, with the settings as a file has them."""
        return super().facts() | {"best": self.best.name}

    def rows(self) -> ResultRows:
        """A row a candidate."""
        rows = []
        for each in self.tried:
            judged = each.judged or (None, None, None)
            text = " ".join(f"{name}={value}" for name, value in each.settings.items())
            what = each.name, each.measure, each.direction, text, each.round
            cost = each.samples, each.seconds, each.bytes, each.question
            rows.append((*what, *each.figure, *judged, *cost))
        return ResultRows(_TITLES, rows)

    def text(self) -> str:
        """The file of settings, with what was found on top."""
        by = f"by the labels of {self.labels}" if self.labels else "without labels"
        remarks = [
            f"Chosen by cocite tune on {self.date}, {by}, for {self.graph}",
            f"({self.nodes:,} nodes, {self.links:,} links): {self.reason}.",
            f"{self.by} of {self.best.name} on {self.judged_by:,} pages that did not choose: "
            + _shown(self.best.judged or self.best.figure),
            "Others, by the pages that chose:",
        ]
        last = [each for each in self.tried if each.behind is not None]
        remarks += [f"  {_shown(each.figure)}  {each.name}" for each in last]
        return self.settings.text(remarks)

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write the file of settings; raises :class:`~cocite.errors.OutputExists`."""
        found = check_file(Path(path), overwrite)
        with staged_file(found) as file:
            disk.write(file, self.text().encode())
        return found


def _signed(found: Interval) -> str:
    return f"{found.value:+.4f} [{found.low:+.4f}, {found.high:+.4f}]"


def _shown(found: Interval) -> str:
    return f"{found.value:.4f} [{found.low:.4f}, {found.high:.4f}]"


def decided(
    first: Point,
    level: Sequence[Point],
    usual: Point | None,
    sizes: dict[Point, int],
    held: Mapping[Point, Interval],
) -> tuple[Point, str]:
    """What is chosen of those that are ``level`` with the ``first`` by the pages that choose, and
    why: ``usual`` is the default, ``sizes`` are those of indexes; ``held`` is how far each is ahead
    of the default by the pages that did not choose, where there are both. The default is left only
    for what is ahead of it by both.
    """
    if usual is not None and usual in level and len(level) > 1:
        ahead = "the best" if usual == first else f"not told apart from the best, {called(first)}"
        return usual, f"the default is {ahead}"
    least = min(level, key=lambda p: (sizes[p], p != first))
    if len(level) == 1:
        reason = "ahead of all others, by more than chance"
    elif least == first:
        reason = "the best, and the smallest of those that are not told apart from it"
    else:
        reason = f"the smallest of those not told apart from the best, {called(first)}"
    if usual is None or least == usual:
        return least, reason
    if least not in held:
        return usual, f"the default stays: no pages are left to judge {called(least)}"
    if not held[least].low > 0:
        return usual, (
            f"the default stays: by the pages that did not choose, {called(least)} is not told "
            f"apart from it ({_signed(held[least])} above it)"
        )
    return least, f"{reason}; {_signed(held[least])} above the default by other pages"
