"""``cocite why``: which pages make two nodes similar."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cocite.cli.called import as_stored
from cocite.cli.completion import node_names
from cocite.cli.help import SectionedCommand
from cocite.cli.inputs import IndexSource, asks, opened, query_nodes
from cocite.cli.options import format_option, memory_option, takes
from cocite.cli.output import Reply, Show, and_of, cut_to, padded, prose_text, table_text, width_of
from cocite.errors import StoreError, UsageError
from cocite.graph.links import EITHER, NO_LINKS
from cocite.options.query import DEFAULT_REASONS, QueryOptions, UnseenOptions

if TYPE_CHECKING:
    from cocite.measures import Measure
    from cocite.search import Index
    from cocite.search.explainer import Reason
    from cocite.search.results import WhyDocument, WhyTogetherDocument


_GAP = 3
"""Columns between two of a table."""
_LEAST = 10
"""Columns that a page or a path gets, however narrow the terminal."""
_LEGIBLE = 36
"""Columns that a path gets before other columns give way to it, if it is as long."""


@click.command(cls=SectionedCommand)
@click.argument("index", metavar="INDEX|GRAPH|LINKS")
@click.argument("nodes", metavar="A...", nargs=-1, shell_complete=node_names)
@click.argument("b", metavar="B", shell_complete=node_names)
@takes(UnseenOptions, "unseen")
@takes(
    QueryOptions,
    "query",
    only=("k", "aggregate"),
    k={"default": DEFAULT_REASONS, "text": "How many pages to show."},
)
@asks
@memory_option
@format_option
def why(
    index: str,
    nodes: tuple[str, ...],
    b: str,
    unseen: UnseenOptions,
    query: QueryOptions,
    source: IndexSource,
    memory: int | None,
    show: Show,
) -> None:
    """Show which pages make the nodes A and B similar, and by which links; or which words.

    With several nodes before B, as several were asked together, show what each of them adds. With
    --draft a page that is not in the graph yet stands for A.

    Each page has its share of the score, and the shares add up to the score. Arrows are links, as
    they go: the ways from A and from B to the page. A line without a head is a link of which that
    is not known, or several; dots stand for other pages on the way; a page behind ~ is near by what
    both are linked with. Long names are
    cut to fit the terminal, but not in JSON and CSV. In CSV, a row without a rank sums up the pages
    that are not shown, and another one what comes from samples whose graph was not found. Write --
    before names that begin with -.
    """
    from cocite.search.results import WhyDocument, WhyTogetherDocument

    if not nodes and unseen.draft is None:
        raise UsageError(
            f"why takes two nodes, and only {b!r} is named: cocite why {index} A B, or a page of "
            "your own with --draft in the place of A"
        )
    opened_index, settings = opened(index, source, (*nodes, b), memory=memory)
    typed = _WhyQuery(settings, source.where.graphs)
    *called, b = as_stored(opened_index, index, (*nodes, b), source.where.side)
    opened_index, asked = query_nodes(opened_index, called, unseen)
    if len(set(asked)) > 1:
        how = {"aggregate": query.aggregate} | settings
        parts = WhyTogetherDocument.of(opened_index, asked, b, query.k, **how)
        show(Reply(parts, lambda: _text_together(opened_index, parts, typed)))
        return
    found = WhyDocument.of(opened_index, asked[0], b, query.k, **settings)
    show(Reply(found, lambda: _text(opened_index, found, typed)))


class _WhyQuery(NamedTuple):
    """What was typed: settings of the measure, graphs."""

    settings: dict[str, Any]
    graphs: tuple[str, ...]


def _text_together(opened_index: Index, found: WhyTogetherDocument, asked: _WhyQuery) -> str:
    texts = [_text(opened_index, found.of_page(page), asked) for page in found.pages]
    names = and_of([page.node for page in found.pages])
    whole = f"the score of {found.b} with {names} together is"
    how = {"mean": "the mean of these", "min": "the least of these"}[found.aggregate]
    score = _number(found.score, found.score) if found.score > 0 else "0"
    if found.aggregate == "min":
        deciding = max(found.pages, key=lambda page: page.contribution).node
        how += f", which is that with {deciding}" * (found.score > 0)
    return "\n\n".join([*texts, f"{whole} {score}, {how}"])


def _text(opened_index: Index, found: WhyDocument, asked: _WhyQuery) -> str:
    score = f"the score of {found.a} and {found.b} is"
    if not found.reasons and not found.unattributed:
        from cocite.search.empty import why_zero

        return f"{score} 0: {why_zero(opened_index, found.a, found.b, asked.settings)}"
    lines = [_table(opened_index, found, asked)] if found.reasons else []
    if found.unattributed:
        lines.append(
            f"{_number(found.unattributed, found.score)} comes of pages that are not known: of "
            "samples whose graph is not given (--graph), gone since, or not kept by the index"
        )
    lines.append(f"{score} {_number(found.score, found.score)} by {found.measure}")
    return "\n".join(lines)


def _number(share: float, score: float) -> str:
    """A share with as many decimals as its score needs: scores of ``ppr`` are small."""
    return f"{share:.{max(4, 2 - math.floor(math.log10(score)))}f}"


# -- the table -------------------------------------------------------------------------


def _table(opened_index: Index, found: WhyDocument, asked: _WhyQuery) -> str:
    """The columns that there is something for; pages and paths share what is left of the line."""
    reasons = found.reasons
    shares = [reason.contribution for reason in reasons] + [found.remaining] * (found.others > 0)
    directed = opened_index.direction == "both" and any(r.links not in EITHER for r in reasons)
    columns = {
        "share": [_number(share, found.score) for share in shares],
        "percent": [f"{share / found.score:.1%}" for share in shares],
        "links": [reason.links for reason in reasons] if directed else [],
        "samples": [f"{reason.samples:,}" for reason in reasons if reason.samples is not None],
        "steps": ["" if r.steps is None else str(r.steps) for r in reasons],
    }
    columns = {title: cells for title, cells in columns.items() if any(cells)}
    names = [_titled(reason, found) for reason in reasons]
    signs, measure = _signs(), opened_index.stored.measure
    ways = [_way(reason, found.a, found.b, measure) for reason in reasons]
    if any(reason.links in EITHER for reason in reasons):
        arrow = _arrows(opened_index, asked)
        ways = [
            (_as_they_go(way, arrow), at) if reason.links in EITHER else (way, at)
            for reason, (way, at) in zip(reasons, ways, strict=True)
        ]
    # Paths tell more than what counts them: where they would be cut to pieces, that gives way.
    longest = max((len(_joined(way, signs)) for way, _ in ways), default=0)
    wanted = min(_LEGIBLE, longest)
    for title in ("steps", "samples", "share"):
        left = _left(columns)
        if left - left // 3 < wanted:
            columns.pop(title, None)
    left = _left(columns)
    names += [f"{found.others:,} other" + "s" * (found.others > 1)] * (found.others > 0)
    widest = max(_LEAST, min(max(map(width_of, ("page", *names))), left // 3))
    titled = found.titles is not None
    if titled and left - widest < longest:  # rather names that are whole than titles that are cut
        names[: len(reasons)] = map(_page, reasons)
        widest, titled = max(_LEAST, min(max(map(width_of, ("page", *names))), left // 3)), False
    ends = cut_to if titled else _cut  # of a title the end says least
    columns["page"] = [padded(ends(name, widest), widest) for name in names]
    columns["path"] = [_fitted(*way, max(_LEAST, left - widest), signs) for way in ways] + [
        signs["gap"]
    ] * (found.others > 0)
    titles = [title.ljust(widest) if title == "page" else title for title in columns]
    cells = [(column + [""] * len(names))[: len(names)] for column in columns.values()]
    table = table_text(titles, list(zip(*cells, strict=True)))
    used = {sign for way, _ in ways for sign, _ in way[1:]}
    legend = [text for sign, text in _LEGEND.items() if sign in used]
    if not legend:
        return table
    return f"{table}\n{prose_text('; '.join(text.format(**signs) for text in legend))}"


def _page(reason: Reason) -> str:
    """The page, or the word in quotation marks, as there may be a page that is called so."""
    return f'"{reason.node}"' if reason.links == NO_LINKS else reason.node


def _titled(reason: Reason, found: WhyDocument) -> str:
    """The page, and its title if it has one."""
    title = (found.titles or {}).get(reason.node, "") if reason.links != NO_LINKS else ""
    return f"{_page(reason)}  {title}" if title else _page(reason)


def _left(columns: dict[str, list[str]]) -> int:
    """What is left of the line beside columns, for the page and the path."""
    used = sum(max(map(len, (title, *cells))) + _GAP for title, cells in columns.items())
    return shutil.get_terminal_size().columns - used - _GAP


_SIGNS = ("to", "from", "both", "line", "near", "by")
_LEGEND = {
    "near": "a{near}b: both are linked with the same pages",
    "line": "a{line}b: a link of which it is not known which way it goes",
    "by": "a{by}b: several links lead from one to the other",
}
"""What signs mean that are no arrows. None is like that of what is left out."""


def _signs() -> dict[str, str]:
    """Arrows and dots, for terminals that have them and for those that do not."""
    utf = (sys.stdout.encoding or "").lower().startswith("utf")
    arrows = ("→", "←", "↔", "–", "~", "┄") if utf else ("->", "<-", "<->", "-", "~", "--")
    signs = dict(zip(_SIGNS, (f" {arrow} " for arrow in arrows), strict=True))
    return signs | {"gap": "…" if utf else "..."}


_Way = list[tuple[str, str | None]]
"""Names, None for nodes between, each behind the arrow that leads to it."""


def _way(reason: Reason, a: str, b: str, measure: Measure) -> tuple[_Way, int]:
    """From a to the page and on to b, and where in it the page is. Where a measure is not
    symmetric, the same links lead on from there. Of a joint measure, in a blend too, no links lead
    anywhere, but the page is near to both; nor do they to a word, which is in both texts.
    """
    if reason.links == NO_LINKS or (
        reason.steps is None and (measure.joint or reason.links == "both")
    ):
        between: _Way = [("near", _page(reason))] if reason.node not in (a, b) else []
        return [("near", a), *between, ("near", b)], len(between)
    there, back = ("from", "to") if reason.links == "in" else ("to", "from")
    back = back if measure.symmetric else there
    one = reason.path_a or (a, None, reason.node)
    other = reason.path_b or (b, None, reason.node)
    if reason.links in EITHER and not reason.path_a and len(other) < 3 and None not in other:
        # A link between the two is looked up, if there is one.
        ahead: _Way = [(there, a), ("by", reason.node)]
        return ahead + [(back, name) for name in reversed(other[:-1])], 1
    ahead = [(there, name) for name in one]
    return ahead + [(back, name) for name in reversed(other[:-1])], len(one) - 1


def _arrows(index: Index, asked: _WhyQuery) -> Callable[[str, str], str]:
    """Which way the links of two pages go: the sign from one to the other; a line where the graph
    of the index is not there, or not the page, or not the link.
    """
    from cocite.search.source import find_graph

    try:
        graph = find_graph(index.stored, asked.graphs or None)
    except (StoreError, UsageError):
        return lambda one, other: "line"

    def arrow(one: str, other: str) -> str:
        ends = graph.names.find(one), graph.names.find(other)
        if ends[0] is None or ends[1] is None:
            return "line"
        there = ends[0] in graph.in_neighbors(ends[1])
        back = ends[1] in graph.in_neighbors(ends[0])
        return {(True, True): "both", (True, False): "to", (False, True): "from"}.get(
            (there, back), "line"
        )

    return arrow


def _as_they_go(way: _Way, arrow: Callable[[str, str], str]) -> _Way:
    """The same with the links as they go, for a measure that takes them either way: what leads to
    a page on ways that are not known is its link, if there is one.
    """
    steps = [way[0]]
    for (_, before), (sign, name) in pairwise(way):
        if sign != "near" and before is not None and name is not None:
            found = arrow(before, name)
            known = sign != "by" or found in ("to", "from", "both")
            steps.append((found if known else sign, name))
        else:
            steps.append((sign, name))
    return steps


def _fitted(way: _Way, page: int, width: int, signs: dict[str, str]) -> str:
    """The way in ``width`` columns if that can be: first without what is between, then cut."""
    text = _joined(way, signs)
    if len(text) > width:
        kept = {0, page, len(way) - 1}
        bare = [(arrow, name if i in kept else None) for i, (arrow, name) in enumerate(way)]
        for first, last in ((1, page + 1), (page + 1, len(way))):
            several = len({arrow for arrow, _ in way[first:last]}) > 1
            bare[first:last] = [("line" if several else arrow, n) for arrow, n in bare[first:last]]
        way = [step for i, step in enumerate(bare) if i == 0 or step[1] or step != bare[i - 1]]
        text = _joined(way, signs)
    if len(text) > width:
        fixed = len(_joined([(arrow, name and "") for arrow, name in way], signs))
        each = max(4, (width - fixed) // max(1, sum(name is not None for _, name in way)))
        text = _joined([(arrow, name and _cut(name, each)) for arrow, name in way], signs)
    return _cut(text, width)


def _joined(way: _Way, signs: dict[str, str]) -> str:
    names = [signs["gap"] if name is None else name for _, name in way]
    return names[0] + "".join(
        signs[arrow] + name for (arrow, _), name in zip(way[1:], names[1:], strict=True)
    )


def _cut(name: str, width: int) -> str:
    """A name in ``width`` columns, its middle left out if need be: ends tell URLs apart."""
    gap = _signs()["gap"]
    if len(name) <= width:
        return name
    tail = (width - len(gap)) // 2
    return name[: width - len(gap) - tail] + gap + name[len(name) - tail :]
