"""A study as files (``pages.py``): the tables of its methods, sweeps and checks, and all figures.

    report.csv     every figure in long form: table, method, measure, direction, setting, value,
                   figure, estimate, low, high

The HTML page has the pictures, too (``figures.py``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cocite.evaluation.figures import pictures
from cocite.evaluation.judge import Figures, headline
from cocite.evaluation.pages import (
    Page,
    Table,
    check_report,
    interval_text,
    signed_text,
    write_page,
)
from cocite.evaluation.plans import JudgePlan
from cocite.evaluation.study import Best, Result, Study
from cocite.evaluation.suite import plain
from cocite.memory import format_size

__all__ = ["explained", "facts_text", "long_rows", "summary", "write_report"]

LONG_TITLES = (
    *("table", "method", "measure", "direction", "setting", "value"),
    *("figure", "estimate", "low", "high"),
)

_EXPLAINED = """\
Every method lists the nodes related to each query, best first, the query itself left out; only
nodes with a label (or a text) are listed. Brackets hold the {confidence:.0%} interval of a figure:
how much it would vary with other queries (bootstrap, {resamples:,} resamples).

- **gamma**: sibling Γ, the agreement of a list with the categories: of the pairs of one node of the
  query's class and one of a sibling class, concordant less discordant over all that are ordered;
  the mean over queries, in the best {top} of each list{least}.
- **gamma_macro**: the same with the pairs of all queries added up, over whole lists, the query
  itself standing first; **pairs** is how many.
- **precision@k**, **recall@k**, **ndcg@k**: a hit is relevant if it shares a label with the query.
- **content@T**: Δ(·, T), the mean cosine TF-IDF of the texts of a page and its best T hits.
"""


def write_report(study: Study, output: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write the page and its companions.

    Raises :class:`~cocite.errors.OutputExists`, and :class:`~cocite.errors.UsageError` for another
    ending than ``.html`` or without matplotlib.
    """
    path = check_report(output, overwrite)
    page = Page(
        title=study.suite.about or study.suite.name,
        facts=facts_text(study.facts),
        explained=explained(study.suite.judge),
        tables=list(_tables(study)),
        notes=study.notes,
        images=pictures(study),
    )
    return write_page(path, page, LONG_TITLES, long_rows(study))


# -- tables ----------------------------------------------------------------------------------------


def summary(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """Titles and rows of the table of methods, as text."""
    shown = headline(list(results[0].figures)) if results else []
    counted = ["pairs"] if "gamma_macro" in shown else []
    titles = ["method", *shown, *counted, "hits", "index"]
    rows = []
    for result in results:
        row = [result.name, *(interval_text(result.figures[title]) for title in shown)]
        row += [f"{result.pairs:,}"] if counted else []
        row += [f"{result.figures['hits'].value:,.0f}"]
        rows.append([*row, "–" if result.bytes is None else format_size(result.bytes)])
    return titles, rows


def _best_table(best: Best) -> Table:
    """Each measure at its best, and how much that is above the baseline."""
    titles, rows = summary(best.results)
    if best.differences:
        titles.append(f"{best.by} above baseline")
        for row, result in zip(rows, best.results, strict=True):
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
    return Table(heading, titles, rows, (heading,), remark)


def _tables(study: Study) -> Iterator[Table]:
    """All of them."""
    pictures = ("Methods", "Content of the first T hits")
    yield Table("Methods", *summary(study.methods), pictures)
    if study.best is not None:
        yield _best_table(study.best)
    if study.differences:
        first = next(iter(study.differences.values()))
        shown = headline(list(first))
        rows = [
            [name, *(signed_text(found[title]) for title in shown)]
            for name, found in study.differences.items()
        ]
        heading = f"Difference from {study.suite.baseline}, same queries"
        yield Table(heading, ["method", *shown], rows)
    for setting, series in study.sweeps.items():
        rows = []
        titles: list[str] = []
        for each in series:
            for value, result in each.results.items():
                titles, (row,) = summary([result])
                rows.append([each.method, plain(value), *row[1:]])
        if rows:
            heading = f"Sweep of {setting}"
            drawn = heading, f"Content by {setting}"
            yield Table(heading, ["method", setting, *titles[1:]], rows, drawn)
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
        yield Table(heading, [*titles, *(f"precision@{k}" for k in ks)], rows, (name,))
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
        yield Table(f"{name} by length", titles, rows, (name,))


def facts_text(facts: Mapping[str, int]) -> str:
    """What a study is of, in a line."""
    names = {"rows_of_unknown_nodes": "label rows of nodes that are not in the graph"}
    return ", ".join(f"{names.get(title, title)}: {value:,}" for title, value in facts.items())


def explained(plan: JudgePlan) -> str:
    """What figures mean, in Markdown."""
    least = plan.gamma_least
    return _EXPLAINED.format(
        confidence=plan.confidence,
        resamples=plan.resamples,
        top=plan.top,
        least=f"; of both gammas, of nodes that score more than {least:g}" if least > 0 else "",
    )


def long_rows(study: Study) -> Iterator[list[Any]]:
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
