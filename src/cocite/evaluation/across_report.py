"""Several suites as tables: a row a method, a column a suite, beside the default.

    table             cell
    a figure          the figure, and how much it is above the default's on the same queries:
                      precision and both gammas
    best settings     direction and settings that were chosen
    lists             answered / full, shares of the nodes asked (``answers.py``)
    cost              seconds of the build, size, milliseconds a question: median / 99th percentile

As files (``pages.py``) and as a document; every figure by itself is in the CSV and the JSON.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from cocite.documents import Rows
from cocite.evaluation.across import Across, Judged
from cocite.evaluation.judge import Figures, headline
from cocite.evaluation.pages import (
    Page,
    Table,
    check_report,
    interval_text,
    signed_text,
    write_page,
)
from cocite.evaluation.report import explained, facts_text, origin
from cocite.evaluation.written import Written
from cocite.memory import format_size

__all__ = ["AcrossDocument", "across_tables", "write_across"]

_TITLES = ("table", "suite", "method", "measure", "direction", "figure", "estimate", "low", "high")
_NONE = "–"
_SHOWN = ("precision", "gamma")


def _label(across: Across, row: Judged) -> str:
    """The row of a table that a method stands in: measures at their best share theirs."""
    if row.method == across.plan.baseline:
        return f"the default, {row.point.measure}" if row.point else row.method
    return row.point.measure if row.point else row.method


def _table(across: Across, heading: str, cell: Callable[[Judged], str], remark: str = "") -> Table:
    """One column a suite; suites in which no method has anything to tell are left out."""
    suites = list(across.facts)
    labels = dict.fromkeys(_label(across, row) for row in across.rows)
    cells: dict[str, dict[str, str]] = {label: {} for label in labels}
    for row in across.rows:
        cells[_label(across, row)][row.suite] = cell(row)
    suites = [s for s in suites if any(told.get(s, _NONE) != _NONE for told in cells.values())]
    rows = [[name, *(told.get(s, _NONE) for s in suites)] for name, told in cells.items()]
    rows = [row for row in rows if set(row[1:]) != {_NONE}]
    return Table(heading, ["", *suites], rows, (), remark)


def across_tables(across: Across) -> list[Table]:
    """All tables, those of figures first."""
    judged = next((row.figures for row in across.rows if row.figures), {})
    tables: list[Table] = []
    titles = [title for title in headline(list(judged)) if title.startswith(_SHOWN)]
    for title in sorted(titles, key=lambda title: not title.startswith(_SHOWN[0])):

        def figure(row: Judged, title: str = title) -> str:
            if title not in row.figures:
                return _NONE
            if title not in row.differences:
                return interval_text(row.figures[title])
            return f"{row.figures[title].value:.3f}, {signed_text(row.differences[title])}"

        remark = (
            f"The default with its interval; others and how much they are above it. {_by(across)}"
        )
        tables.append(_table(across, title, figure, remark if not tables else ""))

    def settings(row: Judged) -> str:
        known = row.point is not None and bool(row.figures)
        return (row.method.partition(" ")[2] or _NONE) if known else _NONE

    def lists(row: Judged) -> str:
        return f"{row.answers.answered:.1%} / {row.answers.full:.1%}"

    def cost(row: Judged) -> str:
        answers = row.answers
        times = f"{answers.median_ms:.2f} / {answers.slowest_ms:.2f} ms"
        return f"{row.build_seconds:.2f} s, {format_size(row.bytes)}, {times}"

    nodes = "Of random pages that have a link."
    return [
        *tables,
        _table(across, "best settings", settings),
        _table(across, "answered / full lists of 20", lists, nodes),
        _table(across, "build, size, a question: median / 99th percentile", cost),
    ]


def _by(across: Across) -> str:
    chosen = [f"{s}: {some:,} chose, {others:,} judge" for s, (some, others) in _chosen(across)]
    return f"Queries: {'; '.join(chosen)}." if chosen else ""


def _chosen(across: Across) -> list[tuple[str, tuple[int, int]]]:
    return list(across.chosen.items())


def _figures(across: Across) -> Iterator[list[Any]]:
    """Every figure, a row each."""
    for row in across.rows:
        who = [row.suite, row.method]
        who += [row.point.measure, row.point.direction] if row.point else ["", ""]
        kinds: tuple[tuple[str, Figures], ...]
        kinds = ("figures", row.figures), ("differences", row.differences)
        for kind, figures in kinds:
            for title, found in figures.items():
                yield [kind, *who, title, *found]
        costs = {"bytes": row.bytes, "build_seconds": row.build_seconds} | asdict(row.answers)
        for title, value in costs.items():
            yield ["answers", *who, title, value, None, None]


def write_across(
    across: Across, output: str | os.PathLike[str], *, overwrite: bool = False, command: str = ""
) -> Path:
    """Write the page and its companions; ``command`` is what it came of.

    Raises :class:`~cocite.errors.OutputExists`, and :class:`~cocite.errors.UsageError` for another
    ending than ``.html``.
    """
    path = check_report(output, overwrite)
    page = Page(
        title=across.plan.about or across.plan.name,
        facts={name: facts_text(facts) for name, facts in across.facts.items()}
        | origin("", "", date.today().isoformat(), command),
        explained=explained(across.plan.judge),
        tables=across_tables(across),
        notes=across.notes,
    )
    return write_page(path, page, _TITLES, _figures(across))


@dataclass(frozen=True)
class AcrossDocument(Written):
    """What several suites came to."""

    across: Across
    command: str = ""
    """The call that it came of."""

    def facts(self) -> dict[str, Any]:
        """What they are of, how many queries chose and judged, and all figures."""
        across = self.across
        chosen = {s: {"chosen_by": a, "judged_by": b} for s, (a, b) in across.chosen.items()}
        figures = [dict(zip(_TITLES, row, strict=True)) for row in _figures(across)]
        facts = {name: found | chosen.get(name, {}) for name, found in across.facts.items()}
        return {"suites": facts, "figures": figures, "notes": across.notes}

    def rows(self) -> Rows:
        """The same rows, without the facts."""
        return Rows(_TITLES, _figures(self.across))

    def _write_report(self, path: Path, overwrite: bool, command: str) -> Path:
        command = command or self.command
        return write_across(self.across, path, overwrite=overwrite, command=command)
