"""A study as files (``evaluation/html_report.py``): the tables of its methods, sweeps and checks,
and all figures.

    report.csv     every figure in long form: table, method, measure, direction, setting, value,
                   figure, estimate, low, high

Tables of methods are sorted by the figure that decides, the best first; a few pages are shown with
their lists by the best methods. The HTML page has the pictures, too (``evaluation/figures.py``);
they may be written as files by themselves.

Where the figures of a study go: a report, or a table of all of them.

    report.html                      a page, and its tables as .md and .csv beside it
    (``evaluation/html_report.py``) figures.parquet, .csv, ...       a row a figure
    (``io/writers/``), or a table of a database

Columns of a table are text, but for estimate, low and high, which are numbers; what does not exist
is null. They are the same for every study, so that tables can be put together.

A study of how good answers are as a document: all figures, a row each.
"""

from __future__ import annotations

import math
import os
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cocite import __version__
from cocite.errors import OutputExists, UsageError
from cocite.evaluation.figures import Picture, pictures
from cocite.evaluation.html_report import (
    Best,
    ReportPage,
    ReportTable,
    Result,
    Study,
    best_first,
    check_report,
    deciding,
    interval_text,
    signed_text,
    write_page,
)
from cocite.evaluation.judge import Figures, headline
from cocite.evaluation.points import JudgePlan, plain
from cocite.evaluation.studies import ExampleHit, ExamplePage
from cocite.io.writers import TABLES, Columns, Target, check_output, kinds_of, target_of
from cocite.resources import format_size
from cocite.results import Document, ResultRows
from cocite.storage import disk, staged_file

LONG_TITLES = (
    *("table", "method", "measure", "direction", "setting", "value"),
    *("figure", "estimate", "low", "high"),
)

_SHOWN = 5
"""Methods whose lists are shown."""

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


def write_report(
    study: Study,
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    command: str = "",
    drawn: Mapping[str, Picture] | None = None,
) -> Path:
    """Write the page and its companions; ``command`` is what it came of, and ``drawn`` are its
    pictures, if they are drawn.

    Raises :class:`~cocite.errors.OutputExists`, and :class:`~cocite.errors.UsageError` for another
    ending than ``.html`` or without matplotlib.
    """
    path = check_report(output, overwrite)
    page = ReportPage(
        title=study.suite.about or study.suite.name,
        facts=origin(study.graph, facts_text(study.facts), study.date, command)
        | ({"labels": "; ".join(study.sources)} if study.sources else {}),
        explained=explained(study.suite.judge),
        tables=list(_tables(study)),
        notes=study.notes,
        images={
            name: picture.svg
            for name, picture in (pictures(study) if drawn is None else drawn).items()
        },
    )
    return write_page(path, page, LONG_TITLES, long_rows(study))


def origin(graph: str, facts: str, day: str, command: str) -> dict[str, str]:
    """What a report says of where it comes from, by title."""
    found = {"graph": graph, "data": facts, "cocite": __version__, "date": day, "command": command}
    return {title: text for title, text in found.items() if text}


def check_pictures(folder: str | os.PathLike[str], overwrite: bool) -> Path:
    """The folder, if pictures may be written to it; before any work."""
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file; pictures are written to a folder")
    if not overwrite and path.exists() and any(path.iterdir()):
        raise OutputExists(
            f"{path} is there and not empty. Choose another folder for pictures, or pass "
            "--overwrite (overwrite=True)"
        )
    return path


def write_pictures(
    drawn: Mapping[str, Picture], folder: str | os.PathLike[str], *, overwrite: bool = False
) -> list[Path]:
    """Write every picture as SVG and PNG, called as its heading; returns the files.

    Raises :class:`~cocite.errors.OutputExists`.
    """
    path, written = check_pictures(folder, overwrite), []
    disk.make_own_folder(path)
    for name, picture in drawn.items():
        plainly = re.sub(r"\W+", "-", name.lower()).strip("-")
        for ending, content in ((".svg", picture.svg.encode()), (".png", picture.png)):
            file = path / (plainly + ending)
            with staged_file(file) as out:
                disk.write(out, content)
            written.append(file)
    return written


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
    return ReportTable(heading, titles, rows, (heading,), remark)


def _tables(study: Study) -> Iterator[ReportTable]:
    """All of them."""
    pictures = ("Methods", "Content of the first T hits")
    by = deciding(study)
    results = best_first(study.methods, by)
    remark = f"Sorted by {by}, the best first." if by and len(results) > 1 else ""
    yield ReportTable("Methods", *summary(results), pictures, remark)
    yield from _examples(study, [result.name for result in results[:_SHOWN]])
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
            heading = f"Sweep of {setting}"
            drawn = heading, f"Content by {setting}"
            yield ReportTable(heading, ["method", setting, *titles[1:]], rows, drawn)
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
        yield ReportTable(heading, [*titles, *(f"precision@{k}" for k in ks)], rows, (name,))
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
        yield ReportTable(f"{name} by length", titles, rows, (name,))


def _falling(found: Figures, by: str) -> float:
    """What sorts figures by one of them, the largest first."""
    value = found[by].value if by in found else float("nan")
    return float("inf") if math.isnan(value) else -value


def _examples(study: Study, methods: Sequence[str]) -> Iterator[ReportTable]:
    """A table a page: its hits by the best methods, a column each."""
    for page in study.examples:
        lists = {name: page.hits[name] for name in methods if name in page.hits}
        longest = max(map(len, lists.values()), default=0)
        if not longest:
            continue
        rows = [
            [f"{place + 1}", *(_hit(hits[place : place + 1]) for hits in lists.values())]
            for place in range(longest)
        ]
        marked = any(hit.alike is not None for hits in lists.values() for hit in hits)
        remark = f"Labeled {', '.join(page.labels)}. " if page.labels else ""
        remark += "✓ behind what shares a label with it." if marked else ""
        if len(study.methods) > len(lists):
            remark += f" The {len(lists)} best methods."
        yield ReportTable(
            f"Example: {_titled(page)}", ["rank", *lists], rows, (), remark.strip(), True
        )


def _hit(hits: Sequence[ExampleHit]) -> str:
    return "".join(f"{_titled(hit)}{' ✓' if hit.alike else ''}" for hit in hits) or "–"


def _titled(node: ExampleHit | ExamplePage) -> str:
    """Its title, with its name beside it; or the name alone."""
    return f"{node.title} ({node.name})" if node.title not in ("", node.name) else node.name


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


# -- written -----------------------------------------------------------------------------


REPORT = "html"
KINDS = (REPORT, *kinds_of(TABLES))
"""What figures may become."""

_NUMBERS = ("estimate", "low", "high")


def figures_target(
    output: str | os.PathLike[str] | None,
    *,
    to: str | None = None,
    kind: str | None = None,
    overwrite: bool = False,
    append: bool = False,
    safe: bool = False,
) -> Path | Target | None:
    """The path of a report, or where a table goes, by the ``kind`` or the ending of the name, or
    the table ``to`` of a database; None if nothing is named; ``safe`` for spreadsheets or not
    (:func:`~cocite.io.writers.check_output`). Before any work is done.

    Raises :class:`~cocite.errors.UsageError` or :class:`~cocite.errors.OutputExists`.
    """
    if output is None or to is not None or append:
        return target_of(output, to, kind=kind, overwrite=overwrite, append=append, safe=safe)
    path = Path(output)
    if kind is None and path.suffix not in (f".{REPORT}", *TABLES):
        raise UsageError(
            f"{path} ends in {path.suffix!r}; a report ends in .{REPORT}, a table of all figures "
            f"in one of {', '.join(TABLES)}"
        )
    if (kind or path.suffix.removeprefix(".")).lower() == REPORT:
        return check_report(path, overwrite)
    return check_output(path, overwrite, TABLES, kind, safe=safe)


@dataclass(frozen=True)
class Written(Document):
    """A document that can be written as a report or as a table."""

    def write(
        self,
        output: str | os.PathLike[str],
        *,
        kind: str | None = None,
        overwrite: bool = False,
        command: str = "",
        safe: bool = False,
    ) -> Path:
        """Write a report (``.html``), a page that needs nothing else, and its tables as .md and
        .csv beside it; or a table with a row a figure (``.parquet``, ``.csv``, ``.tsv``,
        ``.jsonl``, ``.arrow``). ``kind`` says what it is where the name does not; ``command`` is
        what a report says to have come of; ``safe``: texts that a spreadsheet would take for
        formulas have an apostrophe before them, in a table of CSV or TSV.

        Raises :class:`~cocite.errors.OutputExists`, and :class:`~cocite.errors.UsageError` for
        another ending, or for a report without matplotlib.
        """
        target = figures_target(output, kind=kind, overwrite=overwrite, safe=safe)
        if isinstance(target, Path):
            return self._write_report(target, overwrite, command)
        assert target is not None
        self.write_table(target)
        return Path(output)

    def write_to(self, to: str, *, overwrite: bool = False, append: bool = False) -> None:
        """Write all figures to a table of a database, such as ``"sqlite:///site.db#figures"``.

        Raises as :func:`~cocite.io.writers.databases.database_target` does.
        """
        target = figures_target(None, to=to, overwrite=overwrite, append=append)
        assert isinstance(target, Target)
        self.write_table(target)

    def write_table(self, target: Target) -> None:
        """Write all figures as a table."""
        titles, rows = self.rows()
        types = {title: "DOUBLE" if title in _NUMBERS else "VARCHAR" for title in titles}
        target.write_table([_columns(types, rows)], types)

    @abstractmethod
    def _write_report(self, path: Path, overwrite: bool, command: str) -> Path:
        """Write the page and its companions."""


def _columns(types: dict[str, str], rows: Iterable[Iterable[Any]]) -> Columns:
    columns: list[list[Any]] = [[] for _ in types]
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    found: dict[str, Any] = {}
    for (title, kind), column in zip(types.items(), columns, strict=True):
        if kind == "DOUBLE":
            found[title] = np.array([np.nan if v is None else v for v in column], np.float64)
        else:
            found[title] = np.array([None if v in (None, "") else str(v) for v in column], object)
    return found


# -- documents ---------------------------------------------------------------------------


@dataclass(frozen=True)
class StudyDocument(Written):
    """What a study came to."""

    study: Study
    command: str = ""
    """The call that it came of."""

    def facts(self) -> dict[str, Any]:
        """What it is of, and its figures."""
        figures = [dict(zip(LONG_TITLES, row, strict=True)) for row in long_rows(self.study)]
        study = self.study
        about = {"suite": study.suite.name, "graph": study.graph, "facts": study.facts}
        about |= {"cocite": __version__, "date": study.date, "read": study.sources}
        return about | {"figures": figures, "examples": study.examples, "notes": study.notes}

    def rows(self) -> ResultRows:
        """The same rows, without the facts."""
        return ResultRows(LONG_TITLES, long_rows(self.study))

    @cached_property
    def pictures(self) -> dict[str, Picture]:
        """Its pictures by title; raises :class:`~cocite.errors.UsageError` without matplotlib."""
        return pictures(self.study)

    def _write_report(self, path: Path, overwrite: bool, command: str) -> Path:
        command, drawn = command or self.command, self.pictures
        return write_report(self.study, path, overwrite=overwrite, command=command, drawn=drawn)

    def write_pictures(
        self, folder: str | os.PathLike[str], *, overwrite: bool = False
    ) -> list[Path]:
        """Write every picture as SVG and PNG into a folder; returns the files."""
        return write_pictures(self.pictures, folder, overwrite=overwrite)
