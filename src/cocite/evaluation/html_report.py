"""Evaluation reports as HTML, Markdown and CSV files.

    report.html    the tables, without external resources
    report.md      the same
    report.csv     every figure, one per row

Files are written atomically. ``evaluation/report.py`` provides the content.
"""

from __future__ import annotations

import html
import io
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cocite.errors import UsageError
from cocite.evaluation.labels import Interval
from cocite.results import ResultRows, write_csv
from cocite.storage import check_file, disk, ending_of, staged_file


class ReportTable(NamedTuple):
    """A text table, with a ``remark`` before it. ``words`` means that cells are not numbers."""

    heading: str
    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    remark: str = ""
    words: bool = False


@dataclass(frozen=True)
class ReportPage:
    """Content of a report. ``explained`` is Markdown: paragraphs followed by one list."""

    title: str
    facts: Mapping[str, str]
    explained: str
    tables: Sequence[ReportTable]
    notes: Sequence[str] = ()


def check_report(output: str | os.PathLike[str], overwrite: bool) -> Path:
    """Check that the report and its .md and .csv files can be written; return its path."""
    path = Path(output)
    if path.suffix != ".html":
        raise UsageError(f"{ending_of(path)}; a report must end in .html")
    for ending in (".html", ".md", ".csv"):
        check_file(path.with_suffix(ending), overwrite)
    return path


def write_page(path: Path, page: ReportPage, figures: ResultRows) -> Path:
    """Write the page as .html and .md files, and its ``figures`` as a .csv file."""
    rows = io.StringIO()
    write_csv(figures, rows)
    for ending, text in (
        (".csv", rows.getvalue()),
        (".md", _markdown(page)),
        (".html", _html(page)),
    ):
        with staged_file(path.with_suffix(ending)) as file:
            disk.write(file, text.encode("utf-8", errors="surrogateescape"))
    return path


def interval_text(found: Interval) -> str:
    """Format an interval, as in ``0.283 [0.271, 0.295]``; a dash if undefined."""
    if math.isnan(found.value):
        return "–"
    if math.isnan(found.low):
        return f"{found.value:.3f}"
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


# -- Markdown --------------------------------------------------------------------------------------


def markdown_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], words: bool = False
) -> str:
    """Return a Markdown table. All columns but the first are right-aligned unless ``words``."""
    side = " --- |" if words else " ---: |"
    lines = ["| " + " | ".join(titles) + " |", "| --- |" + side * (len(titles) - 1)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _markdown(page: ReportPage) -> str:
    facts = "\n".join(f"- {title}: {fact}" for title, fact in page.facts.items())
    pieces = [f"# {page.title}", facts, page.explained]
    for heading, titles, rows, remark, words in page.tables:
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


def _html(page: ReportPage) -> str:
    title = html.escape(page.title)
    pieces = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1>{_facts(page.facts)}{_explained(page.explained)}",
        *map(_table, page.tables),
    ]
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
    """Convert Markdown with paragraphs, one list and bold words to HTML."""
    text, _, points = html.escape(explained).partition("\n\n- ")
    items = "".join(f"<li>{point}</li>" for point in points.split("\n- "))
    marked = f"<p>{text}</p><ul>{items}</ul>"
    parts = marked.split("**")
    return "".join(f"<b>{part}</b>" if i % 2 else part for i, part in enumerate(parts))


def _cell(text: str) -> str:
    """Return a cell's HTML, with an interval at its end in small print."""
    interval = _INTERVAL.search(text)
    if interval is None:
        return html.escape(text)
    return f"{html.escape(text[: interval.start()])} <small>{html.escape(interval[1])}</small>"


def _table(shown: ReportTable) -> str:
    heading, titles, rows, remark, words = shown
    above = f"<h2>{html.escape(heading)}</h2>\n"
    above += f"<p>{html.escape(remark)}</p>\n" if remark else ""
    kind = ' class="words"' if words else ""
    head = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    table = f'<div class="scroll"><table{kind}><tr>{head}</tr>{body}</table></div>'
    if len(rows) > _FOLDED:
        table = f"<details><summary>{len(rows):,} rows</summary>{table}</details>"
    return above + table
