"""Show two answers side by side, from two indexes or with different settings.

The first query takes the same fields as ``/``. Fields of the second query begin with ``with.``; the
second query uses the filters of the first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from cocite.search.results import RelatedDocument
from cocite.server.pages import view
from cocite.server.pages.page import frame, related, sent
from cocite.server.pages.view import PageState
from cocite.server.requests import SETTINGS, pairs_of

if TYPE_CHECKING:
    from cocite.server.service import ServedQuery, Service

WITH = "with."
ROW = 32
"""Row height in pixels, as in page.css."""
_BOLD = 8
"""Minimum change of rank for a bold line."""
_MOVES = 5
"""Maximum number of moves to list."""


_ORDERS = {
    "score": "By similarity",
    "score*pagerank": "By similarity × PageRank",
    "pagerank": "By PageRank",
}


@dataclass(frozen=True)
class Side:
    """One of the two answers, with its query."""

    state: PageState
    asking: ServedQuery
    document: RelatedDocument
    fields: list[dict[str, Any]]


async def compare(service: Service, request: Request) -> Response:
    """Create the page with two answers."""
    pairs = pairs_of(request.scope["query_string"])
    first = PageState.of(pair for pair in pairs if not pair[0].startswith(WITH))
    if not first.nodes:
        return RedirectResponse(first.href(), 303)
    names, own = list(service.holders), first.get("index")
    given = [(name.removeprefix(WITH), value) for name, value in pairs if name.startswith(WITH)]
    index = dict(given).get("index") or next((n for n in names if n != (own or names[0])), names[0])
    others = [pair for pair in first.others if pair[0] not in (*SETTINGS, "index")]
    asked = [pair for pair in given if pair[0] in (*SETTINGS, "order") and pair[1]]
    left = await _side(service, first)
    if not given and index == left.asking.name and first.get("order") is None:
        linked = view.about_of(left.asking.index, str(left.document.nodes[0]))["links"]
        asked = [("order", "score*pagerank")] if linked else []  # do not compare a list with itself
    second = replace(first, why=None, others=(("index", index), *others, *asked))
    right = await _side(service, second)
    body = await service.done(partial(_render, service, left, right), pushing=False, adapts=False)
    return sent(service, request, body, left.asking)


async def _side(service: Service, state: PageState) -> Side:
    takes = service.operations["related"]
    with service.serving("related", state.named) as asking:
        state = state.without(*view.foreign(asking.index, state))
        values = takes.from_query(state.question)
        document = await related(service, values, asking)
        known = view.fields_of(asking.index, takes.takes, state)
        fields = [field for field in known if field["name"] in (*SETTINGS, "order")]
        return Side(state, asking, document, fields)


def _render(service: Service, left: Side, right: Side) -> bytes:
    sides = [view.rows_of(each.document, each.state, 0) for each in (left, right)]
    ranks = [{row["node"]: place for place, row in enumerate(rows)} for rows in sides]
    for rows, other in zip(sides, ranks[::-1], strict=True):
        for row in rows:
            row["there"] = other.get(row["node"])
    shared = [(a, row, row["there"]) for a, row in enumerate(sides[0]) if row["there"] is not None]
    moves = [{"row": row, "from": row["rank"], "to": sides[1][b]["rank"]} for _, row, b in shared]
    moves.sort(key=lambda move: -abs(move["from"] - move["to"]))
    called = view.title_of(left.document)
    names = [each.asking.name for each in (left, right)]
    if names[0] == names[1] and left.document.order != right.document.order:
        names = [_ORDERS[each.document.order] for each in (left, right)]
    values = {
        "most": _MOVES,
        "called": called,
        "answers": [
            {"rows": rows, "name": name, "how": view.how(each.document, each.asking.samples)}
            for rows, each, name in zip(sides, (left, right), names, strict=True)
        ],
        "slopes": [{"from": a, "to": b, "bold": abs(a - b) >= _BOLD} for a, _, b in shared],
        "shared": len(shared),
        "alone": [
            (name, [row for row in rows if row["there"] is None])
            for name, rows in zip(("left", "right"), sides, strict=True)
        ],
        "moves": [move for move in moves if move["from"] != move["to"]][:_MOVES],
        "height": ROW * max(1, *map(len, sides)),
        "row": ROW,
        "list": left.state.href(),
        "here": left.state.href("/compare"),
        "kept_pairs": left.state.question,
        "with": WITH,
        "chosen": right.asking.name,
        "fields": right.fields,
    }
    return view.filled("compare.html", frame(service, left.state, f"Compare: {called}") | values)
