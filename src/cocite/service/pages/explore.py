"""The page, at ``/``: a page's related pages as a table and a map, why they are, and how to ask
otherwise; without a page, what is served here, and some pages to begin with.

A page asks as the API does, with the same values and bounds. The list is a question like others,
whose time counts for the load; lines of the map are a question for each page on it, left out when
answers are of fewer samples already. A name that no page has is answered with those like it.

Cost: that of the answer and of the map, and some 3 ms for the page.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from cocite.deadline import check
from cocite.documents import Document, plain
from cocite.errors import CociteError, StoreError, UnknownNode
from cocite.graph.sides import Sides
from cocite.graph.writers.formulas import safe_cell
from cocite.query import Index
from cocite.query.documents import RelatedDocument
from cocite.query.opened import DEFAULT_K
from cocite.query.prominent import prominent
from cocite.query.why_documents import WhyDocument, WhyTogetherDocument
from cocite.service.answers import stored
from cocite.service.documents import SEARCHED
from cocite.service.pages.address import State, outward
from cocite.service.pages.made import HTML, filled, policy
from cocite.service.pages.reasons import reasons_of
from cocite.service.pages.shown import fields_of, foreign, how, map_of, rows_of
from cocite.service.parameters import SETTINGS, listed, pairs_of
from cocite.service.problems import KINDS, Problem, Refused, problem_of
from cocite.service.replies import coding, packed, reply_packed

if TYPE_CHECKING:
    from cocite.service.service import Asking, Service

__all__ = ["explore", "frame", "sent", "shown"]

_WHY = ("together", "side", *SETTINGS)
_EXAMPLES = 12
"""Pages to begin with."""
_LIKE = 20
"""Names like one that no page has."""
_WORDS = 8
"""Words of a text that are looked for, each by itself."""
_Handler = Callable[["Service", Request], Awaitable[Response]]


def explore(service: Service) -> list[Route]:
    """Its routes."""
    return [
        Route("/", shown(service, "page", _page), methods=["GET"]),
        Route("/related.csv", shown(service, "csv", _csv_of(service)), methods=["GET"]),
    ]


def shown(service: Service, verb: str, handler: _Handler) -> Callable[[Request], Awaitable[Any]]:
    """An endpoint that is counted as ``verb``, and says what is wrong on a page."""

    async def endpoint(request: Request) -> Response:
        request.scope["state"]["verb"] = verb
        try:
            return await handler(service, request)
        except Refused as refused:
            problem = refused.problem
        except CociteError as error:
            problem = problem_of(error, service.scrub, _said(request))
            if problem.status >= 500 or isinstance(error, StoreError):
                service.fault(error, verb)
        except Exception as error:
            service.fault(error, verb)
            problem = Problem("fault", "a fault of the server: its log says more")
        return _wrong(service, problem)

    return endpoint


def _said(request: Request) -> list[str]:
    """All texts in the query."""
    try:
        return [text for pair in pairs_of(request.scope["query_string"]) for text in pair]
    except CociteError:
        return []


def frame(service: Service, state: State, title: str) -> dict[str, Any]:
    """What all pages show: the title, the field to search with, its side, and what it keeps."""
    index = state.get("index") or next(iter(service.holders))
    sides = service.sides(index)
    sought = state.nodes[0] if len(state.nodes) == 1 else ""
    return {
        "title": title,
        "state": state,
        "sought": sought,
        "sides": () if sides is None else sides.titles[::-1],
        "side": None if sides is None else _side(sides, state, sought),
        "kept": state.without("offset", "side").others,
        "index": index,
        "outward": outward,
    }


def _side(sides: Sides, state: State, sought: str) -> str:
    """On which side is searched: the one that was, or that of the page that is shown."""
    if sought.startswith(sides.mark):
        return sides.titles[0]
    return state.get("side") or sides.titles[1]


def sent(
    service: Service,
    request: Request,
    body: bytes,
    asking: Asking | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A page as it goes out: without a tag, as it shows more than one answer."""
    told = {"Content-Security-Policy": policy(service), **(headers or {})}
    body, coded = packed(body, coding(request))
    found = reply_packed(service, body, coded, HTML, asking, told, status)
    if "etag" in found.headers:
        del found.headers["etag"]
    return found


def _wrong(service: Service, problem: Problem) -> Response:
    values = frame(service, State(), KINDS[problem.kind][1])
    body = filled("wrong.html", values | {"problem": problem})
    headers = {"Content-Type": HTML, "Cache-Control": "no-store", **problem.headers}
    headers["Content-Security-Policy"] = policy(service)
    return Response(body, problem.status, headers)


async def _page(service: Service, request: Request) -> Response:
    pairs = pairs_of(request.scope["query_string"])
    state = State.of(pairs)
    if len(pairs) > len(state.question) + (state.why is not None):
        return RedirectResponse(state.href(), 303)  # a form's empty fields
    index = state.get("index")
    named = {} if index is None else {"index": index}
    with service.asking("related", named) as asking:
        if not state.nodes:
            return await _front(service, request, state, asking)
        left = foreign(asking.index, state)
        state = state.without(*left)
        values = service.verbs["related"].from_query(state.question)
        try:
            document = await service.ask("related", values, asking, _itself)
        except UnknownNode as error:
            return await _like(service, request, state, asking, error)
        assert isinstance(document, RelatedDocument)
        reasons = await _reasons(service, state, values, asking)
        made = partial(_made, service, state, values, asking, document, reasons, left)
        body = await service.done(made, pushing=False, told=False)
        return sent(service, request, body, asking)


def _itself(document: Document) -> Document:
    return document


async def _reasons(
    service: Service, state: State, values: dict[str, Any], asking: Asking
) -> dict[str, Any] | None:
    """Why one of the hits is there, or what is wrong with the question."""
    if state.why is None:
        return None
    asked = {name: values[name] for name in _WHY if name in values}
    asked |= {"a": values["node"], "b": state.why}
    if len(set(values["node"])) == 1:
        asked.pop("together", None)
    whole = replace(asking, samples=asking.held.index.samples, full=True)  # as /v1/why has it

    def made(document: Document) -> dict[str, Any]:
        assert isinstance(document, WhyDocument | WhyTogetherDocument)
        return reasons_of(document, state)

    try:
        return await service.ask("why", asked, whole, made)
    except CociteError as error:
        return {"wrong": problem_of(error, service.scrub, [state.why, *state.nodes]).detail}


def _made(
    service: Service,
    state: State,
    values: dict[str, Any],
    asking: Asking,
    document: RelatedDocument,
    reasons: dict[str, Any] | None,
    left: list[str],
) -> bytes:
    """The page; a thread makes it."""
    index, limits = asking.index, service.config.limits
    titles = document.titles or [""] * len(document.nodes)
    settings = {name: values[name] for name in SETTINGS if name in values}
    named = [
        {
            "name": node,
            "title": title or None,
            "without": state.asking(*(other for other in document.nodes if other != node)).href(),
        }
        for node, title in zip(document.nodes, titles, strict=True)
    ]
    k, first = values.get("k", DEFAULT_K), document.offset
    further = first + k <= limits.offset and len(document.hits) == k
    fields = fields_of(index, service.verbs["related"].takes, state)
    inside = {field.name for field in fields} | {"index", "offset", "side"}
    return filled(
        "page.html",
        frame(
            service,
            state,
            " + ".join(title or node for node, title in zip(document.nodes, titles, strict=True)),
        )
        | {
            "named": named,
            "how": how(document, asking.samples),
            "fewer": not asking.full,
            "rows": rows_of(document, state, limits.together),
            "certain": document.certain,
            "surely": document.surely,
            "confidence": f"{100 * document.confidence:g} %",
            "map": map_of(index, document, state, settings, asking.full, limits.map_time),
            "reasons": reasons,
            "left": left,
            "fields": fields,
            "given": [field for field in fields if field.value],
            "hidden": [pair for pair in state.others if pair[0] not in inside],
            "indexes": [(name, each.now.index.measure) for name, each in service.holders.items()],
            "json": state.href("/v1/related", reasons=False),
            "csv": state.safely().href("/related.csv", reasons=False),
            "further": state.at(first + k).href() if further else None,
            "before": state.at(max(0, first - k)).href() if first else None,
            "filtered": any(state.get(name) for name in ("prefix", "exclude_prefix", "min_score")),
        },
    )


async def _like(
    service: Service, request: Request, state: State, asking: Asking, error: UnknownNode
) -> Response:
    """Names like one that no page has."""
    side, names = state.get("side"), asking.index.nodes
    given = {} if side is None else {"side": side}
    called = zip(state.nodes, stored(asking.index, given, state.nodes), strict=True)
    there = {typed: name for typed, name in called if names.find(name) is not None}
    sought = next(node for node in state.nodes if node not in there)
    asked = {"text": sought, "k": _LIKE, "within": len(names) <= SEARCHED, **given}
    found = (await service.ask("complete", asked, asking, Document.to_json))["nodes"]
    if not found and asked["within"] and len(sought.split()) > 1:
        found = await service.done(partial(_with_words, asking.index, sought.split()), told=False)
    if not found and not error.nearest and asked["within"]:
        found = await service.done(partial(_close, asking.index, sought, side), told=False)
    known = {each["node"] for each in found}
    if side is None:  # or else also those of the other side
        found += [{"node": node} for node in error.nearest if node not in known]
    rest = tuple(there.get(node, node) for node in state.nodes if node != sought)
    hits = [
        {"name": each["node"], "title": each.get("title")}
        | {"href": state.asking(*rest, each["node"]).href()}
        for each in found
    ]
    values = frame(service, state, f"Pages like {sought}") | {"sought": sought, "hits": hits}
    return sent(service, request, filled("like.html", values), asking, 404)


def _close(index: Index, name: str, side: str | None) -> list[dict[str, Any]]:
    """Pages whose names are nearly spelt so, on a side if one is said."""
    names = index.nodes
    (asked,) = stored(index, {} if side is None else {"side": side}, [name])
    among = range(len(names)) if side is None or names.sides is None else names.sides.named(side)
    found = [each for each in names.nearest(asked) if names.find(each) in among]
    called = index.titles_of(found) or [""] * len(found)
    return [{"node": each, "title": title} for each, title in zip(found, called, strict=True)]


def _with_words(index: Index, words: list[str]) -> list[dict[str, Any]]:
    """Pages that have all of the words in their names or titles."""
    names, titles = index.nodes, index.titles
    ids = np.arange(len(names))
    for word in words[:_WORDS]:
        check()
        these = names.containing(word)
        if titles is not None:
            these = np.union1d(these, titles.containing(word))
        ids = np.intersect1d(ids, these)
    shown = [str(name) for name in names.names(ids[:_LIKE])]
    called = index.titles_of(shown) or [""] * len(shown)
    return [{"node": n, "title": title} for n, title in zip(shown, called, strict=True)]


async def _front(service: Service, request: Request, state: State, asking: Asking) -> Response:
    """What is served, and pages to begin with."""
    begin = _KNOWN.get(asking.held.generation)
    if begin is None:
        begin = await service.done(partial(prominent, asking.held.index, _EXAMPLES), told=False)
        _KNOWN[asking.held.generation] = begin
        for gone in _KNOWN.keys() - {each.now.generation for each in service.holders.values()}:
            del _KNOWN[gone]
    hits = [
        {"name": name, "title": title, "href": state.asking(name).href()} for name, title in begin
    ]
    served = service.indexes()
    values = frame(service, state, "Related pages") | {"hits": hits, "served": served}
    return sent(service, request, filled("front.html", values), asking)


_KNOWN: dict[str, list[tuple[str, str | None]]] = {}
"""Pages to begin with, by the generation of an index."""


def _csv_of(service: Service) -> _Handler:
    """The list as CSV, as the command line has it, ``safe`` for spreadsheets if that is asked for:
    the page asks for it, as whoever follows a link opens what comes.
    """
    verb = listed(service.verbs["related"])

    async def endpoint(service: Service, request: Request) -> Response:
        values = verb.from_query(pairs_of(request.scope["query_string"]))
        made = partial(_table, bool(values.pop("safe", False)))
        with service.asking("related", values) as asking:
            body = await service.ask("related", values, asking, made)
            body, coded = packed(body, coding(request))
            named = {"Content-Disposition": 'attachment; filename="related.csv"'}
            return reply_packed(service, body, coded, "text/csv; charset=utf-8", asking, named)

    return endpoint


def _table(safe: bool, document: Document) -> bytes:
    text = io.StringIO()
    titles, rows = document.rows()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(titles)
    for row in rows:
        cells = ["" if (cell := plain(value)) is None else cell for value in row]
        table.writerow(map(safe_cell, cells) if safe else cells)
    return text.getvalue().encode("utf-8", "surrogateescape")
