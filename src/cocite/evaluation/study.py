"""What a study comes to: the results of its methods, by themselves, swept and at their best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from cocite.evaluation.accuracy import Accuracy
from cocite.evaluation.data import Truth
from cocite.evaluation.examples import ExamplePage
from cocite.evaluation.judge import Figures, headline
from cocite.evaluation.structure import TreeSizes
from cocite.evaluation.suite import Point, Suite
from cocite.measures import Value

__all__ = [
    "Best",
    "Precise",
    "Result",
    "Series",
    "Study",
    "Trees",
    "best_first",
    "deciding",
    "facts_of",
]


@dataclass(frozen=True)
class Result:
    """What one method came to. ``point`` is None for a blend or an embedding."""

    name: str
    point: Point | None
    figures: Figures
    pairs: int
    bytes: int | None = None
    build_seconds: float | None = None

    def called(self, name: str) -> Result:
        """The same by another name."""
        return self if name == self.name else replace(self, name=name)


@dataclass(frozen=True)
class Series:
    """One method of a sweep: its results by value."""

    setting: str
    method: str
    measure: str
    direction: str
    results: dict[Value, Result]


@dataclass(frozen=True)
class Trees:
    """The structure of one measure in one direction; ``live`` is a share of nodes by step."""

    measure: str
    direction: str
    sizes: list[TreeSizes]
    live: list[float]


@dataclass(frozen=True)
class Precise:
    """How far the estimates of a measure from so many samples are from its exact scores."""

    measure: str
    samples: int
    found: Accuracy


@dataclass(frozen=True)
class Best:
    """Every measure at its best setting, and what has no settings beside it.

    ``by`` is the figure that decided, ``chosen_by`` how many queries, and ``judged_by`` how many
    others all figures are of; 0 if there were no others, and they are of the same queries.
    """

    by: str
    chosen_by: int
    judged_by: int
    results: list[Result]
    differences: dict[str, Figures]


@dataclass
class Study:
    """Everything that a suite came to."""

    suite: Suite
    facts: dict[str, Any]
    methods: list[Result] = field(default_factory=list)
    differences: dict[str, Figures] = field(default_factory=dict)
    sweeps: dict[str, list[Series]] = field(default_factory=dict)
    best: Best | None = None
    accuracy: list[Precise] = field(default_factory=list)
    trees: list[Trees] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    """How the labels were read, in words."""
    graph: str = ""
    """What the graph is called."""
    date: str = field(default_factory=lambda: date.today().isoformat())
    examples: list[ExamplePage] = field(default_factory=list)


def facts_of(nodes: int, links: int, truth: Truth, seed: int) -> dict[str, int]:
    """What a study is of, in numbers."""
    candidates = nodes if truth.candidates is None else int(truth.candidates.size)
    found = {"nodes": nodes, "links": links, "queries": int(truth.queries.size)}
    found["candidates"] = candidates
    if truth.labels is not None:
        found["labels"] = len(truth.labels.paths)
        found["depth"] = truth.depth
        found["classes"] = len(truth.labels.collapsed(truth.depth).classes)
        found["rows_of_unknown_nodes"] = truth.labels.unknown
    return found | {"seed": seed}


def deciding(study: Study) -> str:
    """The figure by which tables are sorted: that which chooses the best, or precision if it is
    there, or else the first of those that tell most; "" if nothing was judged.
    """
    titles = list(study.methods[0].figures) if study.methods else []
    if study.best is not None and study.best.by in titles:
        return study.best.by
    shown = headline(titles)
    return next((title for title in shown if title.startswith("precision")), *shown[:1] or [""])


def best_first(results: Sequence[Result], figure: str) -> list[Result]:
    """Results by a figure, the largest first; those without it last."""

    def place(result: Result) -> float:
        value = result.figures[figure].value if figure in result.figures else float("nan")
        return float("inf") if math.isnan(value) else -value

    return sorted(results, key=place)
