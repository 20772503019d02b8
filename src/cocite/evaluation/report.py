"""Studies of result quality: tables, example lists and output files.

Methods are sorted by the main figure, best first. For a few pages, the lists of the best methods
are shown. A report is an HTML page with its tables in .md and .csv files
(``evaluation/html_report.py``). Figures can also be written as a table with one row each
(``io/writers/``). Its columns are the same in every study, so tables can be concatenated.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import zip_longest
from pathlib import Path
from typing import Any

from cocite import __version__
from cocite.errors import UsageError
from cocite.evaluation.html_report import (
    ReportPage,
    ReportTable,
    check_report,
    interval_text,
    write_page,
)
from cocite.evaluation.judge import Figures, headline
from cocite.evaluation.points import JudgePlan, Point
from cocite.evaluation.truth import ExampleHit, ExamplePage, Truth
from cocite.io.writers import TABLES, Target, Types, check_output, kinds_of, target_of
from cocite.options.common import OutputOptions
from cocite.resources import format_size
from cocite.results import Document, ResultRows, Writable, columns_of
from cocite.storage import ending_of

TITLES = ("method", "measure", "direction", "figure", "estimate", "low", "high")

_SHOWN = 5
"""Number of methods whose lists are shown."""

_EXPLAINED = """\
Each method lists the nodes related to each query, best first, without the query itself. Only nodes
with a label (or a text) are listed. Brackets contain the {confidence:.0%} interval of a figure: how
much it would vary with other queries (bootstrap, {resamples:,} resamples).

- **gamma**: sibling Γ, the agreement of a list with the categories. A pair has a node of the
  query's class and a node of a sibling class. Γ is the number of concordant minus discordant pairs,
  divided by the number of ordered pairs; mean over queries, in the best {top} of each list{least}.
- **gamma_macro**: the same, with the pairs of all queries pooled, over whole lists, each led by its
  query; **pairs** is their number.
- **precision@k**, **recall@k**, **ndcg@k**: a hit is relevant if it shares a label with the query.
  Hits missing from a list shorter than k count as not relevant.
- **filled_precision@k**, **filled_recall@k**, **filled_ndcg@k**: the same, with short lists filled
  up with the other labeled nodes in random order (the mean over all orders).
- **content@T**: Δ(·, T), the mean TF-IDF cosine of a page's text and those of its best T hits.
"""


@dataclass(frozen=True)
class Result:
    """The result of one method; ``point`` is None for blends and embeddings."""

    name: str
    point: Point | None
    figures: Figures
    pairs: int
    bytes: int | None = None
    build_seconds: float | None = None


@dataclass
class Study:
    """The results of several methods, with the title ``about`` and the ``facts`` of the study."""

    about: str
    judge: JudgePlan
    facts: dict[str, Any]
    methods: list[Result] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    """How the labels were read."""
    graph: str = ""
    """Name of the graph."""
    date: str = field(default_factory=lambda: date.today().isoformat())
    examples: list[ExamplePage] = field(default_factory=list)


def facts_of(nodes: int, links: int, truth: Truth, seed: int) -> dict[str, int]:
    """Return the counts and the seed that describe a study."""
    candidates = nodes if truth.candidates is None else int(truth.candidates.size)
    found = {"nodes": nodes, "links": links, "queries": int(truth.queries.size)}
    found["candidates"] = candidates
    if truth.labels is not None:
        found["labels"] = len(truth.labels.paths)
        found["depth"] = truth.depth
        found["classes"] = len(truth.labels.collapsed(truth.depth).classes)
        found["rows_of_unknown_nodes"] = truth.labels.unknown
    return found | {"seed": seed}


def deciding(results: Sequence[Result]) -> str:
    """Return the figure to sort by: precision if available, or the first main figure, or ""."""
    shown = headline(list(results[0].figures) if results else [])
    return next((title for title in shown if title.startswith("precision")), *shown[:1] or [""])


def best_first(results: Sequence[Result], figure: str) -> list[Result]:
    """Return the results sorted by ``figure``, largest first, those without the figure last."""

    def place(result: Result) -> float:
        value = result.figures[figure].value if figure in result.figures else float("nan")
        return float("inf") if math.isnan(value) else -value

    return sorted(results, key=place)


def summary(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """Return the titles and rows of the table of methods, as text."""
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


def method_tables(study: Study, by: str) -> Iterator[ReportTable]:
    """Yield the table of methods, sorted by the figure ``by``, and a few example lists."""
    results = best_first(study.methods, by)
    remark = f"Sorted by {by}, best first." if by and len(results) > 1 else ""
    yield ReportTable("Methods", *summary(results), remark)
    yield from _examples(study, [result.name for result in results[:_SHOWN]])


def _examples(study: Study, methods: Sequence[str]) -> Iterator[ReportTable]:
    """Yield a table per example page, with one column of hits per method."""
    for page in study.examples:
        lists = {name: page.hits[name] for name in methods if name in page.hits}
        if not any(lists.values()):
            continue
        ranks = enumerate(zip_longest(*lists.values()), 1)
        rows = [[f"{rank}", *map(_hit, hits)] for rank, hits in ranks]
        marked = any(hit.alike is not None for hits in lists.values() for hit in hits)
        remark = f"Labeled {', '.join(page.labels)}. " if page.labels else ""
        remark += "✓ marks nodes that share a label with the query." if marked else ""
        if len(study.methods) > len(lists):
            remark += f" Only the {len(lists)} best methods are shown."
        yield ReportTable(f"Example: {_titled(page)}", ["rank", *lists], rows, remark.strip(), True)


def _hit(hit: ExampleHit | None) -> str:
    return "–" if hit is None else f"{_titled(hit)}{' ✓' if hit.alike else ''}"


def _titled(node: ExampleHit | ExamplePage) -> str:
    """Return ``title (name)``, or the name alone."""
    return f"{node.title} ({node.name})" if node.title not in ("", node.name) else node.name


def facts_text(facts: Mapping[str, int]) -> str:
    """Format the facts of a study in one line."""
    names = {"rows_of_unknown_nodes": "label rows with names that are not in the graph"}
    return ", ".join(f"{names.get(title, title)}: {value:,}" for title, value in facts.items())


def explained(plan: JudgePlan) -> str:
    """Explain the figures, in Markdown."""
    least = plan.gamma_least
    return _EXPLAINED.format(
        confidence=plan.confidence,
        resamples=plan.resamples,
        top=plan.top,
        least=f"; both gammas only use nodes with a score above {least:g}" if least > 0 else "",
    )


def long_rows(results: Iterable[Result]) -> Iterator[list[Any]]:
    """Yield a row per figure, with columns ``TITLES``."""
    for result in results:
        point = result.point
        who = [result.name, point.measure if point else "", point.direction if point else ""]
        for title, found in result.figures.items():
            yield [*who, title, *found]
        for title in ("pairs", "bytes", "build_seconds"):
            value = getattr(result, title)
            if value is not None:
                yield [*who, title, value, None, None]


REPORT = "html"
KINDS = (REPORT, *kinds_of(TABLES))
"""Output formats of figures."""

_NUMBERS = ("estimate", "low", "high")


def figures_target(output: OutputOptions, *, safe: bool = False) -> Path | Target | None:
    """Return the checked path of a report, or target of a table; None without an output.
    ``safe`` is as for :func:`~cocite.io.writers.check_output`.

    Raises :class:`~cocite.errors.UsageError` or :class:`~cocite.errors.OutputExists`.
    """
    kind, overwrite, append = output.output_format, output.overwrite, output.append
    if output.output is None or output.to is not None or append:
        how: dict[str, Any] = {"overwrite": overwrite, "append": append, "safe": safe}
        return target_of(output.output, output.to, kind=kind, **how)
    path = Path(output.output)
    if kind is None and path.suffix not in (f".{REPORT}", *TABLES):
        raise UsageError(
            f"{ending_of(path)}; a report must end in .{REPORT}, and a table of all "
            f"figures in one of {', '.join(TABLES)}"
        )
    if (kind or path.suffix.removeprefix(".")).lower() == REPORT:
        return check_report(path, overwrite)
    return check_output(path, overwrite, TABLES, kind, safe=safe)


@dataclass(frozen=True)
class StudyDocument(Document, Writable):
    """The results of a study."""

    study: Study
    command: str = ""
    """The command or call that produced the study."""

    def facts(self) -> dict[str, Any]:
        """Return the study's facts and figures."""
        study = self.study
        figures = [dict(zip(TITLES, row, strict=True)) for row in long_rows(study.methods)]
        about = {"about": study.about, "graph": study.graph, "facts": study.facts}
        about |= {"cocite": __version__, "date": study.date, "read": study.sources}
        return about | {"figures": figures, "examples": study.examples, "notes": study.notes}

    def rows(self) -> ResultRows:
        """Return one row per figure."""
        return ResultRows(TITLES, long_rows(self.study.methods))

    def write(
        self,
        output: str | os.PathLike[str],
        *,
        kind: str | None = None,
        overwrite: bool = False,
        command: str = "",
        safe: bool = False,
    ) -> Path:
        """Write a self-contained report (``.html``), with its tables in .md and .csv files next to
        it, or a table with one row per figure (``.parquet``, ``.csv``, ``.tsv``, ``.jsonl``,
        ``.arrow``).

        ``kind`` overrides the file extension. A report shows ``command`` as its origin. In CSV and
        TSV, ``safe`` puts an apostrophe before text that spreadsheets would read as a formula.
        Raises :class:`~cocite.errors.OutputExists`, and :class:`~cocite.errors.UsageError` for
        other extensions.
        """
        place = OutputOptions(output=os.fspath(output), output_format=kind, overwrite=overwrite)
        target = figures_target(place, safe=safe)
        if isinstance(target, Path):
            return self._write_report(target, command)
        assert target is not None
        self.write_table(target)
        return Path(output)

    def write_table(self, target: Target) -> None:
        """Write all figures as a table."""
        types = self._types()
        cells = [[None if cell == "" else cell for cell in row] for row in self.rows().rows]
        lists = {title: [row[at] for row in cells] for at, title in enumerate(types)}
        target.write_table([columns_of(lists, types)], types)

    _write = write_table

    def _types(self) -> Types:
        return {title: "DOUBLE" if title in _NUMBERS else "VARCHAR" for title in TITLES}

    def _write_report(self, path: Path, command: str) -> Path:
        study = self.study
        origin = {
            "graph": study.graph,
            "data": facts_text(study.facts),
            "cocite": __version__,
            "date": study.date,
            "command": command or self.command,
            "labels": "; ".join(study.sources),
        }
        page = ReportPage(
            title=study.about,
            facts={title: text for title, text in origin.items() if text},
            explained=explained(study.judge),
            tables=list(method_tables(study, deciding(study.methods))),
            notes=study.notes,
        )
        return write_page(path, page, self.rows())
