"""``cocite why``: which pages make two nodes similar."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cocite.cli import flags, output
from cocite.cli.commands.completion import node_names
from cocite.cli.help import SectionedCommand
from cocite.cli.inputs import IndexSource, as_stored, asks, opened, query_nodes
from cocite.errors import UsageError
from cocite.options import EITHER, NO_LINKS
from cocite.options.query import DEFAULT_REASONS, QueryOptions, UnseenOptions

if TYPE_CHECKING:
    from cocite.measures import Measure
    from cocite.search import Index
    from cocite.search.explainer import PageWhy, Reason
    from cocite.search.results import WhyDocument


_GAP = 3
_LEAST = 10
"""Minimum width of a page or a path on any terminal."""
_LEGIBLE = 36
"""Path width below which other columns are dropped."""


@click.command(cls=SectionedCommand)
@click.argument("index", metavar="INDEX|GRAPH|LINKS")
@click.argument("nodes", metavar="A...", nargs=-1, shell_complete=node_names)
@click.argument("b", metavar="B", shell_complete=node_names)
@flags.takes(UnseenOptions, "unseen")
@flags.takes(
    QueryOptions,
    "query",
    only=("k", "aggregate"),
    k={"default": DEFAULT_REASONS, "text": "How many pages to show."},
)
@asks
@flags.memory
@flags.format
def why(
    index: str,
    nodes: tuple[str, ...],
    b: str,
    unseen: UnseenOptions,
    query: QueryOptions,
    source: IndexSource,
    memory: int | None,
    show: output.Show,
) -> None:
    """Show which pages (or which words) make the nodes A and B similar, and by which links.

    With several nodes before B, it shows the contribution of each to their combined score. With
    --draft, A is a page that is not in the graph yet.

    Each page contributes a share, and the shares add up to the score. Arrows show the direction
    of links on the paths from A and from B to the page. A line without a head is a link of unknown
    direction, or several links; dots are other pages on the path. Two pages with ~ between them are
    near, because both link to the same pages, or the same pages link to both. Long names are cut to
    fit the terminal, but are complete in JSON and CSV. In CSV, rows without a rank are the sums for
    pages not shown, and for samples whose graph was not found. Write -- before names that begin
    with -.
    """
    from cocite.search.results import WhyDocument

    if not nodes and unseen.draft is None:
        raise UsageError(
            f"why needs two nodes, but only {b!r} is given: run cocite why {index} A B, or use "
            "--draft instead of A"
        )
    opened_index, settings = opened(index, source, (*nodes, b), memory=memory)
    *called, b = as_stored(opened_index, index, (*nodes, b), source.where.side)
    opened_index, asked = query_nodes(opened_index, called, unseen)
    typed = _Request(opened_index, settings, source.where.graphs)
    how = {"aggregate": query.aggregate} | settings
    found = WhyDocument.of(opened_index, asked, b, query.k, **how)
    show(output.Reply(found, lambda: _text(found, typed)))


class _Request(NamedTuple):
    """The index, the measure's settings, and the locations of the index's graphs."""

    opened: Index
    settings: dict[str, Any]
    graphs: tuple[str, ...]


def _text(found: WhyDocument, asked: _Request) -> str:
    texts = [_page_text(found, page, asked) for page in found.pages]
    if found.aggregate is None:
        return texts[0]
    names = output.and_of([page.node for page in found.pages])
    how = {"mean": "the mean of these", "min": "the lowest of these"}[found.aggregate]
    if found.aggregate == "min" and found.score > 0:
        how += f", the score with {max(found.pages, key=lambda page: page.contribution).node}"
    score = _number(found.score, found.score) if found.score > 0 else "0"
    whole = f"the score of {found.b} with {names} together is {score}, {how}"
    return "\n\n".join([*texts, whole])


def _page_text(found: WhyDocument, page: PageWhy, asked: _Request) -> str:
    a, why = str(page.node), page.why
    score = f"the score of {a} and {found.b} is"
    if not why.reasons and not why.unattributed:
        from cocite.search.empty import why_zero

        return f"{score} 0: {why_zero(asked.opened, a, found.b, asked.settings)}"
    lines = [_table(found, page, asked)] if why.reasons else []
    if why.unattributed:
        lines.append(
            f"{_number(why.unattributed, why.score)} comes from unknown pages: pages of samples "
            "whose graph is not given (--graph), removed pages, or pages not in the index"
        )
    lines.append(f"{score} {_number(why.score, why.score)} by {found.measure}")
    return "\n".join(lines)


def _number(value: float, score: float) -> str:
    """Format part of a score, with more decimals for small scores, such as those of ``ppr``."""
    return f"{value:.{max(4, 2 - math.floor(math.log10(score)))}f}"


def _table(found: WhyDocument, page: PageWhy, asked: _Request) -> str:
    """Return a table of the nonempty columns; pages and paths share the remaining width."""
    why, index = page.why, asked.opened
    reasons, more = why.reasons, why.others > 0
    parts = [reason.contribution for reason in reasons] + [why.remaining] * more
    directed = index.direction == "both" and any(r.links not in EITHER for r in reasons)
    columns = {
        "share": [_number(part, why.score) for part in parts],
        "percent": [f"{part / why.score:.1%}" for part in parts],
        "links": [reason.links for reason in reasons] if directed else [],
        "samples": [f"{reason.samples:,}" for reason in reasons if reason.samples is not None],
        "steps": ["" if r.steps is None else str(r.steps) for r in reasons],
    }
    columns = {title: cells for title, cells in columns.items() if any(cells)}
    signs, measure = _signs(), index.stored.measure
    paths = [_path(reason, str(page.node), found.b, measure) for reason in reasons]
    if any(reason.links in EITHER for reason in reasons):
        arrow = _arrows(asked)
        paths = [
            (_as_they_go(path, arrow), at) if reason.links in EITHER else (path, at)
            for reason, (path, at) in zip(reasons, paths, strict=True)
        ]
    # Paths explain more than these columns, so drop these, in order, while paths lack space.
    longest = max((len(_joined(path, signs)) for path, _ in paths), default=0)
    for title in ("steps", "samples", "share"):
        left = _left(columns)
        if left - left // 3 < min(_LEGIBLE, longest):
            columns.pop(title, None)
    left = _left(columns)

    def page_width(names: list[str]) -> int:
        return max(_LEAST, min(max(map(output.width_of, ("page", *names))), left // 3))

    others = [f"{why.others:,} other" + "s" * (why.others > 1)] * more
    plain = [_page(reason) for reason in reasons] + others
    names = [_titled(reason, found) for reason in reasons] + others
    cut = _cut if found.titles is None else output.cut_to  # titles are cut at their ends
    if cut is output.cut_to and left - page_width(names) < longest:
        names, cut = plain, _cut  # show names instead of cutting titles
    width = page_width(names)
    columns["page"] = [output.padded(cut(name, width), width) for name in names]
    columns["path"] = [_fitted(*path, max(_LEAST, left - width), signs) for path in paths]
    columns["path"] += [signs["gap"]] * more
    titles = [title.ljust(width) if title == "page" else title for title in columns]
    cells = [(column + [""] * len(names))[: len(names)] for column in columns.values()]
    table = output.table_text(titles, list(zip(*cells, strict=True)))
    used = {sign for path, _ in paths for sign, _ in path[1:]}
    legend = [text.format(**signs) for sign, text in _LEGEND.items() if sign in used]
    return f"{table}\n{output.prose_text('; '.join(legend))}" if legend else table


def _page(reason: Reason) -> str:
    return f'"{reason.node}"' if reason.links == NO_LINKS else reason.node


def _titled(reason: Reason, found: WhyDocument) -> str:
    title = (found.titles or {}).get(reason.node, "") if reason.links != NO_LINKS else ""
    return f"{_page(reason)}  {title}" if title else _page(reason)


def _left(columns: dict[str, list[str]]) -> int:
    used = sum(max(map(len, (title, *cells))) + _GAP for title, cells in columns.items())
    return output.terminal_width() - used - _GAP


_LEGEND = {
    "near": "a{near}b: near, without a link",
    "line": "a{line}b: a link of unknown direction",
    "by": "a{by}b: several links lead from one to the other",
}
"""Meanings of signs other than arrows; none looks like an ellipsis."""


def _signs() -> dict[str, str]:
    utf = output.writes_unicode()
    arrows = ("→", "←", "↔", "–", "~", "┄") if utf else ("->", "<-", "<->", "-", "~", "--")
    names = ("to", "from", "both", "line", "near", "by")
    signs = dict(zip(names, (f" {arrow} " for arrow in arrows), strict=True))
    return signs | {"gap": "…" if utf else "..."}


_Path = list[tuple[str, str | None]]
"""Pairs of an arrow and the name to which it leads, None for omitted nodes."""


def _path(reason: Reason, a: str, b: str, measure: Measure) -> tuple[_Path, int]:
    """Return the path from a through the page to b, and the page's position in the path.

    If the measure is not symmetric, the links continue in the same direction after the page. For
    joint measures and for words, no links connect the three.
    """
    joint = measure.joint or reason.links == "both"
    if reason.links == NO_LINKS or (reason.steps is None and joint):
        between: _Path = [("near", _page(reason))] if reason.node not in (a, b) else []
        return [("near", a), *between, ("near", b)], len(between)
    there, back = ("from", "to") if reason.links == "in" else ("to", "from")
    back = back if measure.symmetric else there
    one = reason.path_a or (a, None, reason.node)
    other = reason.path_b or (b, None, reason.node)
    ahead: _Path = [(there, name) for name in one]
    if reason.links in EITHER and not reason.path_a and len(other) < 3 and None not in other:
        # No path is stored: mark a link to look up.
        ahead = [(there, a), ("by", reason.node)]
    return ahead + [(back, name) for name in reversed(other[:-1])], len(ahead) - 1


def _arrows(asked: _Request) -> Callable[[str, str], str]:
    """Return a function from two pages to the sign for their links: a line if none is known."""
    from cocite.search.explainer import links_between

    linked = links_between(asked.opened.stored, asked.graphs or None)
    signs = {(True, True): "both", (True, False): "to", (False, True): "from"}

    def arrow(one: str, other: str) -> str:
        return signs.get(linked(one, other), "line")

    return arrow


def _as_they_go(path: _Path, arrow: Callable[[str, str], str]) -> _Path:
    """Return the path with the directions of its links, for a measure that ignores them."""
    steps = [path[0]]
    for (_, before), (sign, name) in pairwise(path):
        if before is not None and name is not None:
            found = arrow(before, name)
            known = sign not in ("by", "near") or found in ("to", "from", "both")
            steps.append((found if known else sign, name))
        else:
            steps.append((sign, name))
    return steps


def _fitted(path: _Path, page: int, width: int, signs: dict[str, str]) -> str:
    """Shorten a path to ``width`` columns: omit nodes, then cut names."""
    text = _joined(path, signs)
    if len(text) > width:
        ends = {0, page, len(path) - 1}
        bare = [(arrow, name if i in ends else None) for i, (arrow, name) in enumerate(path)]
        for first, last in ((1, page + 1), (page + 1, len(path))):
            several = len({arrow for arrow, _ in path[first:last]}) > 1
            bare[first:last] = [("line" if several else arrow, n) for arrow, n in bare[first:last]]
        path = [step for i, step in enumerate(bare) if i == 0 or step[1] or step != bare[i - 1]]
        text = _joined(path, signs)
    if len(text) > width:
        fixed = len(_joined([(arrow, name and "") for arrow, name in path], signs))
        each = max(4, (width - fixed) // max(1, sum(name is not None for _, name in path)))
        text = _joined([(arrow, name and _cut(name, each)) for arrow, name in path], signs)
    return _cut(text, width)


def _joined(path: _Path, signs: dict[str, str]) -> str:
    names = [signs["gap"] if name is None else name for _, name in path]
    steps = zip(path[1:], names[1:], strict=True)
    return names[0] + "".join(signs[arrow] + name for (arrow, _), name in steps)


def _cut(name: str, width: int) -> str:
    """Cut a name to ``width`` columns in its middle, because the ends of URLs identify pages."""
    gap = _signs()["gap"]
    if len(name) <= width:
        return name
    tail = (width - len(gap)) // 2
    return name[: width - len(gap) - tail] + gap + name[len(name) - tail :]
