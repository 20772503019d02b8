"""The results of a suite: its methods, their sweeps and best settings, its tables and figures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks.studies.checks import Accuracy, TreeSizes
from benchmarks.studies.plans import StudySuite
from cocite.evaluation.html_report import ReportTable
from cocite.evaluation.judge import Figures, headline
from cocite.evaluation.labels import Interval
from cocite.evaluation.points import plain
from cocite.evaluation.report import (
    Result,
    Study,
    best_first,
    deciding,
    method_tables,
    summary,
)
from cocite.measures import Value

LONG_TITLES = (
    *("table", "method", "measure", "direction", "setting", "value"),
    *("figure", "estimate", "low", "high"),
)


def signed_text(found: Interval) -> str:
    """Return a difference, such as ``+0.012 [−0.003, +0.027]``; a dash where it is undefined."""
    if math.isnan(found.value):
        return "–"
    return f"{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


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
class SuiteStudy(Study):
    """Everything that a suite came to."""

    suite: StudySuite = field(default_factory=StudySuite)
    differences: dict[str, Figures] = field(default_factory=dict)
    sweeps: dict[str, list[Series]] = field(default_factory=dict)
    best: Best | None = None
    accuracy: list[Precise] = field(default_factory=list)
    trees: list[Trees] = field(default_factory=list)


def decides(study: SuiteStudy) -> str:
    """The figure by which tables are sorted: that which chooses the best, or else that of methods
    alone.
    """
    titles = list(study.methods[0].figures) if study.methods else []
    if study.best is not None and study.best.by in titles:
        return study.best.by
    return deciding(study.methods)


def _best_table(best: Best) -> ReportTable:
    """Each measure at its best, and how much that is above the baseline."""
    results = best_first(best.results, best.by)
    titles, rows = summary(results)
    if best.differences:
        titles.append(f"{best.by} above baseline")
        for row, result in zip(rows, results, strict=True):
            found = best.differences.get(result.name)
            row.append("–" if found is None else signed_text(found[best.by]))
    remark = f"Out of all directions and swept settings, the largest {best.by}"
    if best.judged_by:
        remark += (
            f" on {best.chosen_by:,} queries; the figures are those of the {best.judged_by:,} "
            "other queries."
        )
    else:
        remark += "; chosen and judged by the same queries, so that it looks a little too good."
    heading = "Each measure at its best setting"
    remark += f" Sorted by {best.by}."
    return ReportTable(heading, titles, rows, remark)


def tables_of(study: SuiteStudy) -> Iterator[ReportTable]:
    """All of them."""
    by = decides(study)
    yield from method_tables(study, by)
    if study.best is not None:
        yield _best_table(study.best)
    if study.differences:
        first = next(iter(study.differences.values()))
        shown = headline(list(first))
        rows = [
            [name, *(signed_text(found[title]) for title in shown)]
            for name, found in sorted(
                study.differences.items(), key=lambda item: _falling(item[1], by)
            )
        ]
        heading = f"Difference from {study.suite.baseline}, same queries"
        yield ReportTable(heading, ["method", *shown], rows)
    for setting, series in study.sweeps.items():
        rows = []
        titles: list[str] = []
        for each in series:
            for value, result in each.results.items():
                titles, (row,) = summary([result])
                rows.append([each.method, plain(value), *row[1:]])
        if rows:
            yield ReportTable(f"Sweep of {setting}", ["method", setting, *titles[1:]], rows)
    if study.accuracy:
        ks = list(study.accuracy[0].found.precision)
        titles = ["measure", "samples", "mean error", "largest error", "ave_err"]
        rows = [
            [
                each.measure,
                f"{each.samples:,}",
                f"{each.found.mean_error:.2e}",
                f"{each.found.largest_error:.4f}",
                f"{each.found.ave_err:.2e}",
                *(f"{each.found.precision[k]:.3f}" for k in ks),
            ]
            for each in study.accuracy
        ]
        name = "Estimates against exact scores"
        heading = f"{name}, {study.accuracy[0].found.queries:,} queries"
        yield ReportTable(heading, [*titles, *(f"precision@{k}" for k in ks)], rows)
    if study.trees:
        titles = ["measure", "direction", "length", "mean tree", "largest tree", "alone", "live"]
        rows = [
            [
                each.measure,
                each.direction,
                f"{size.length}",
                f"{size.mean:,.1f}",
                f"{size.largest:,}",
                f"{size.alone:.1%}",
                f"{each.live[size.length - 1]:.3f}" if each.live else "–",
            ]
            for each in study.trees
            for size in each.sizes
        ]
        name = "Fingerprint trees and walks"
        yield ReportTable(f"{name} by length", titles, rows)


def _falling(found: Figures, by: str) -> float:
    """What sorts figures by one of them, the largest first."""
    value = found[by].value if by in found else float("nan")
    return float("inf") if math.isnan(value) else -value


def long_rows(study: SuiteStudy) -> Iterator[list[Any]]:
    """Every figure, a row each, in the order of ``LONG_TITLES``."""
    for result in study.methods:
        yield from _figure_rows("methods", result, result.figures)
        yield ["methods", *_who(result), "", "", "pairs", result.pairs, None, None]
        for title in ("bytes", "build_seconds"):
            value = getattr(result, title)
            if value is not None:
                yield ["methods", *_who(result), "", "", title, value, None, None]
    named = {result.name: result for result in study.methods}
    for name, found in study.differences.items():
        yield from _figure_rows("differences", named[name], found)
    if study.best is not None:
        for result in study.best.results:
            yield from _figure_rows("best", result, result.figures)
            yield ["best", *_who(result), "", "", "pairs", result.pairs, None, None]
            difference = study.best.differences.get(result.name, {})
            yield from _figure_rows("best differences", result, difference)
    for setting, series in study.sweeps.items():
        for each in series:
            for value, result in each.results.items():
                yield from _figure_rows("sweeps", result, result.figures, setting, value)
                yield ["sweeps", *_who(result), setting, value, "pairs", result.pairs, None, None]
    for precise in study.accuracy:
        key = ["accuracy", precise.measure, precise.measure, "in", "samples", precise.samples]
        accuracy = precise.found
        yield [*key, "mean_error", accuracy.mean_error, None, None]
        yield [*key, "largest_error", accuracy.largest_error, None, None]
        yield [*key, "ave_err", accuracy.ave_err, None, None]
        for k, value in accuracy.precision.items():
            yield [*key, f"precision@{k}", value, None, None]
    for trees in study.trees:
        for size in trees.sizes:
            name = f"{trees.measure} {trees.direction}"
            key = ["trees", name, trees.measure, trees.direction, "length", size.length]
            yield [*key, "mean_tree", size.mean, None, None]
            yield [*key, "largest_tree", size.largest, None, None]
            yield [*key, "alone", size.alone, None, None]
            if trees.live:
                yield [*key, "live_tokens", trees.live[size.length - 1], None, None]


def _who(result: Result) -> list[str]:
    point = result.point
    return [result.name, point.measure if point else "", point.direction if point else ""]


def _figure_rows(
    table: str, result: Result, figures: Figures, setting: str = "", value: Any = ""
) -> Iterator[list[Any]]:
    for title, found in figures.items():
        yield [table, *_who(result), setting, value, title, *found]
