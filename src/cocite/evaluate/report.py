"""A study as files: one HTML page that needs nothing else, and beside it Markdown and CSV.

    report.html    tables and pictures; the pictures are inside, nothing is fetched from anywhere
    report.md      the tables
    report.csv     every figure in long form: table, method, measure, direction, setting, value,
                   figure, estimate, low, high

Each file appears under its name when it is whole.
"""

from __future__ import annotations

import base64
import csv
import html
import io
import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cocite.errors import UsageError
from cocite.evaluate.bootstrap import Interval
from cocite.evaluate.figures import pictures
from cocite.evaluate.judge import Figures, headline
from cocite.evaluate.study import Best, Result, Study
from cocite.evaluate.suite import plain
from cocite.memory import format_size
from cocite.store import check_file, disk, written_beside

__all__ = ["check_report", "long_rows", "summary", "write_report"]

_ENDINGS = (".html", ".md", ".csv")
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


def check_report(output: str | os.PathLike[str], overwrite: bool) -> Path:
    """The path of the page, if it and its companions may be written; before any work."""
    path = Path(output)
    if path.suffix != ".html":
        raise UsageError(f"{path} ends in {path.suffix!r}; a report ends in .html")
    for ending in _ENDINGS:
        check_file(path.with_suffix(ending), overwrite)
    return path


def write_report(study: Study, output: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write the page and its companions.

    Raises :class:`~cocite.errors.OutputExists`, and :class:`~cocite.errors.UsageError` for another
    ending than ``.html`` or without matplotlib.
    """
    path = check_report(output, overwrite)
    images = pictures(study)
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow(LONG_TITLES)
    writer.writerows(["" if _missing(cell) else cell for cell in row] for row in long_rows(study))
    _write(path.with_suffix(".csv"), rows.getvalue())
    _write(path.with_suffix(".md"), _markdown(study))
    _write(path, _page(study, images))
    return path


def _write(path: Path, text: str) -> None:
    with written_beside(path) as file:
        disk.write(file, text.encode("utf-8", errors="surrogateescape"))


# -- tables ----------------------------------------------------------------------------------------


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def interval_text(found: Interval) -> str:
    """``0.283 [0.271, 0.295]``; a dash where it is not defined."""
    if math.isnan(found.value):
        return "–"
    if math.isnan(found.low):
        return f"{found.value:.3f}"
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


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


class Table(NamedTuple):
    """A table as text, the pictures that belong to it, and what is to be said first."""

    heading: str
    titles: list[str]
    rows: list[list[str]]
    pictures: tuple[str, ...] = ()
    remark: str = ""


def _best_table(best: Best) -> Table:
    """Each measure at its best, and how much that is above the baseline."""
    titles, rows = summary(best.results)
    if best.differences:
        titles.append(f"{best.by} above baseline")
        for row, result in zip(rows, best.results, strict=True):
            found = best.differences.get(result.name)
            row.append("–" if found is None else _signed(found[best.by]))
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
            [name, *(_signed(found[title]) for title in shown)]
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


def _signed(found: Interval) -> str:
    if math.isnan(found.value):
        return "–"
    return f"{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def _facts(study: Study) -> str:
    names = {"rows_of_unknown_nodes": "label rows of nodes that are not in the graph"}
    return ", ".join(
        f"{names.get(title, title)}: {value:,}" for title, value in study.facts.items()
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


# -- pages -----------------------------------------------------------------------------------------


def _explained(study: Study) -> str:
    plan = study.suite.judge
    least = plan.gamma_least
    return _EXPLAINED.format(
        confidence=plan.confidence,
        resamples=plan.resamples,
        top=plan.top,
        least=f"; of both gammas, of nodes that score more than {least:g}" if least > 0 else "",
    )


def _markdown(study: Study) -> str:
    pieces = [f"# {study.suite.about or study.suite.name}", _facts(study), _explained(study)]
    for heading, titles, rows, _, remark in _tables(study):
        lines = ["| " + " | ".join(titles) + " |", "| --- |" + " ---: |" * (len(titles) - 1)]
        lines += [
            "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows
        ]
        pieces += [f"## {heading}", *([remark] if remark else []), "\n".join(lines)]
    if study.notes:
        pieces += ["## Left out", "\n".join(f"- {note}" for note in study.notes)]
    return "\n\n".join(piece.strip() for piece in pieces) + "\n"


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
small { color: #666; } summary { cursor: pointer; color: #555; margin: .5em 0; }
"""
_FOLDED = 40
_LEAST_PICTURE = 660


def _page(study: Study, images: dict[str, str]) -> str:
    title = html.escape(study.suite.about or study.suite.name)
    pieces = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1><p>{html.escape(_facts(study))}</p>{_explained_page(study)}",
    ]
    for table in _tables(study):
        pieces.append(f"<h2>{html.escape(table.heading)}</h2>")
        pieces += [f"<p>{html.escape(table.remark)}</p>"] if table.remark else []
        pieces += [_image(name, images[name]) for name in table.pictures if name in images]
        pieces.append(_table(table.titles, table.rows))
    if study.notes:
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in study.notes)
        pieces.append(f"<h2>Left out</h2><ul>{notes}</ul>")
    pieces.append("</body></html>")
    return "\n".join(pieces) + "\n"


def _explained_page(study: Study) -> str:
    """The explanation, whose Markdown has paragraphs, one list and bold words."""
    text, _, points = html.escape(_explained(study)).partition("\n\n- ")
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
    value, bracket, interval = text.partition(" [")
    small = f" <small>[{html.escape(interval)}</small>" if bracket else ""
    return html.escape(value) + small


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    table = f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'
    if len(rows) <= _FOLDED:
        return table
    return f"<details><summary>{len(rows):,} rows</summary>{table}</details>"
