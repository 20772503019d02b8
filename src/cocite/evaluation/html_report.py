"""Tables as pages: Markdown, and one HTML page that needs nothing else.

    report.html    tables and pictures; the pictures are inside, nothing is fetched from anywhere
    report.md      the tables
    report.csv     every figure in long form

A cell that ends in brackets has its interval there, in small letters on the page. Each file appears
under its name when it is whole. What stands on a page: ``evaluation/report.py``,
``evaluation/across.py``.

What a study comes to: the results of its methods, by themselves, swept and at their best.
"""

from __future__ import annotations

import base64
import csv
import html
import io
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from cocite.errors import UsageError
from cocite.evaluation.judge import Figures, headline
from cocite.evaluation.labels import Interval
from cocite.evaluation.points import Point, Suite
from cocite.evaluation.studies import Accuracy, ExamplePage, TreeSizes, Truth
from cocite.measures import Value
from cocite.storage import check_file, disk, staged_file

_ENDINGS = (".html", ".md", ".csv")


class ReportTable(NamedTuple):
    """A table as text, the pictures that belong to it, and what is to be said first; ``words`` if
    it holds words and no numbers.
    """

    heading: str
    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    pictures: tuple[str, ...] = ()
    remark: str = ""
    words: bool = False


@dataclass(frozen=True)
class ReportPage:
    """What is on a page: ``explained`` is Markdown, paragraphs and one list behind them;
    ``images`` SVG by title.
    """

    title: str
    facts: Mapping[str, str]
    explained: str
    tables: Sequence[ReportTable]
    notes: Sequence[str] = ()
    images: Mapping[str, str] = field(default_factory=dict)


def check_report(output: str | os.PathLike[str], overwrite: bool) -> Path:
    """The path of the page, if it and its companions may be written; before any work."""
    path = Path(output)
    if path.suffix != ".html":
        raise UsageError(f"{path} ends in {path.suffix!r}; a report ends in .html")
    for ending in _ENDINGS:
        check_file(path.with_suffix(ending), overwrite)
    return path


def write_page(
    path: Path, page: ReportPage, titles: Sequence[str], figures: Iterable[Sequence[Any]]
) -> Path:
    """Write the page and its companions, ``figures`` as CSV."""
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow(titles)
    writer.writerows(["" if _missing(cell) else cell for cell in row] for row in figures)
    _write(path.with_suffix(".csv"), rows.getvalue())
    _write(path.with_suffix(".md"), _markdown(page))
    _write(path, _html(page))
    return path


def _write(path: Path, text: str) -> None:
    with staged_file(path) as file:
        disk.write(file, text.encode("utf-8", errors="surrogateescape"))


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


# -- cells -----------------------------------------------------------------------------------------


def interval_text(found: Interval) -> str:
    """``0.283 [0.271, 0.295]``; a dash where it is not defined."""
    if math.isnan(found.value):
        return "–"
    if math.isnan(found.low):
        return f"{found.value:.3f}"
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def signed_text(found: Interval) -> str:
    """``+0.012 [−0.003, +0.027]``, a difference; a dash where it is not defined."""
    if math.isnan(found.value):
        return "–"
    return f"{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


# -- Markdown --------------------------------------------------------------------------------------


def markdown_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], words: bool = False
) -> str:
    """A table, all columns but the first to the right, unless they hold ``words``."""
    side = " --- |" if words else " ---: |"
    lines = ["| " + " | ".join(titles) + " |", "| --- |" + side * (len(titles) - 1)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _markdown(page: ReportPage) -> str:
    facts = "\n".join(f"- {title}: {fact}" for title, fact in page.facts.items())
    pieces = [f"# {page.title}", facts, page.explained]
    for heading, titles, rows, _, remark, words in page.tables:
        table = markdown_table(titles, rows, words)
        pieces += [f"## {heading}", *([remark] if remark else []), table]
    if page.notes:
        pieces += ["## Left out", "\n".join(f"- {note}" for note in page.notes)]
    return "\n\n".join(piece.strip() for piece in pieces) + "\n"


# -- HTML ------------------------------------------------------------------------------------------


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; margin: 2em auto;
       max-width: 76em; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
.scroll { overflow-x: auto; margin: 1em 0; }
img { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: .2em .7em; text-align: right; white-space: nowrap;
         border-bottom: 1px solid #e4e4e4; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0;
                                 background: #fff; }
.words th, .words td { text-align: left; }
.facts th, .facts td { text-align: left; white-space: normal; border: 0;
                       position: static; padding: 0 1em 0 0; vertical-align: top; }
.facts th { font-weight: normal; color: #666; white-space: nowrap; }
.facts { margin-bottom: 1em; }
small { color: #666; } summary { cursor: pointer; color: #555; margin: .5em 0; }
"""
_FOLDED = 40
_INTERVAL = re.compile(r" (\[[-+]?[\d.]+, [-+]?[\d.]+\])$")
_LEAST_PICTURE = 660


def _html(page: ReportPage) -> str:
    title, images = html.escape(page.title), page.images
    pieces = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1>{_facts(page.facts)}{_explained(page.explained)}",
    ]
    for table in page.tables:
        pieces.append(f"<h2>{html.escape(table.heading)}</h2>")
        pieces += [f"<p>{html.escape(table.remark)}</p>"] if table.remark else []
        pieces += [_image(name, images[name]) for name in table.pictures if name in images]
        pieces.append(_table(table.titles, table.rows, table.words))
    if page.notes:
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in page.notes)
        pieces.append(f"<h2>Left out</h2><ul>{notes}</ul>")
    pieces.append("</body></html>")
    return "\n".join(pieces) + "\n"


def _facts(facts: Mapping[str, str]) -> str:
    rows = "".join(
        f"<tr><th>{html.escape(title)}</th><td>{html.escape(fact)}</td></tr>"
        for title, fact in facts.items()
    )
    return f'<table class="facts">{rows}</table>'


def _explained(explained: str) -> str:
    """The explanation, whose Markdown has paragraphs, one list and bold words."""
    text, _, points = html.escape(explained).partition("\n\n- ")
    items = "".join(f"<li>{point}</li>" for point in points.split("\n- "))
    marked = f"<p>{text}</p><ul>{items}</ul>"
    parts = marked.split("**")
    return "".join(f"<b>{part}</b>" if i % 2 else part for i, part in enumerate(parts))


def _image(name: str, svg: str) -> str:
    data = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    wide = re.search(r'<svg[^>]* width="([0-9.]+)pt"', svg)
    least = min(_LEAST_PICTURE, round(float(wide[1]) * 4 / 3)) if wide else _LEAST_PICTURE
    style = f"min-width: {least}px"  # a narrow screen scrolls, as smaller text is not readable
    image = (
        f'<img alt="{html.escape(name)}" style="{style}" src="data:image/svg+xml;base64,{data}">'
    )
    return f'<div class="scroll">{image}</div>'


def _cell(text: str) -> str:
    """A cell, its interval in small letters."""
    interval = _INTERVAL.search(text)
    if interval is None:
        return html.escape(text)
    return f"{html.escape(text[: interval.start()])} <small>{html.escape(interval[1])}</small>"


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]], words: bool) -> str:
    kind = ' class="words"' if words else ""
    head = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    table = f'<div class="scroll"><table{kind}><tr>{head}</tr>{body}</table></div>'
    if len(rows) <= _FOLDED:
        return table
    return f"<details><summary>{len(rows):,} rows</summary>{table}</details>"


# -- study -------------------------------------------------------------------------------


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
