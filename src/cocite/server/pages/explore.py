"""Web pages: the list at ``/``, reasons, drafts, the map, ``/embed`` and ``/docs``.

Pages use the values and limits of the API. The list is a normal query, whose time counts toward the
load. The map takes a query per page shown, so it is a separate request; its lines are omitted while
answers use fewer samples. Rendering a page takes about 3 ms.

    <iframe src="https://SERVER/embed?node=NAME"></iframe>             needs --frame-ancestors
    <script src="https://SERVER/embed.js" data-node="NAME"></script>   needs --allow-origin
"""

from __future__ import annotations

import io
import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from cocite.errors import CociteError, UnknownNode
from cocite.options import Option
from cocite.options.query import DEFAULT_K, FilterOptions
from cocite.results import Document, write_csv
from cocite.search.batch.folder import script
from cocite.search.explainer import links_between
from cocite.search.results import RelatedDocument, WhyDocument
from cocite.server.openapi import DESCRIPTION, PROBES, SUMMARY, example_nodes
from cocite.server.pages import view
from cocite.server.pages.compare import compare
from cocite.server.pages.front import front_page, surprise
from cocite.server.pages.page import frame, refused_page, related, sent
from cocite.server.pages.reasons import reasons_of
from cocite.server.pages.view import PageState
from cocite.server.replies import Handler, coding, guarded, packed, reply
from cocite.server.requests import SETTINGS, Operation, Parameter, pairs_of, stored
from cocite.server.results import SEARCHED, DraftDocument
from cocite.server.service import KINDS, problem_of

if TYPE_CHECKING:
    from cocite.server.service import ServedQuery, Service


# -- explore -----------------------------------------------------------------------------


_UNCOUNTED = ("refine", "target_error", "min_confidence", "total")
"""With any of these options, the page does not request the total."""
_WHY = ("aggregate", "side", *SETTINGS)
_LIKE = 20
"""Number of similar names shown for an unknown one."""


def pages(service: Service) -> list[Route]:
    """Return the routes to pages and static files."""
    refuse = partial(refused_page, service)
    handlers: dict[str, Handler] = {
        "page": _page,
        "map": _map,
        "draft": _draft,
        "csv": _csv,
        "embed": _embed,
        "docs": _docs_of(service),
        "surprise": surprise,
        "compare": compare,
    }
    paths = {"page": "/", "csv": "/related.csv"}
    return [
        *(
            Route(paths.get(name, f"/{name}"), guarded(service, name, handler, refuse))
            for name, handler in handlers.items()
        ),
        Route("/embed.js", view.static_file("embed", script(), _SCRIPT)),
        *view.assets(),
    ]


async def _page(service: Service, request: Request) -> Response:
    pairs = pairs_of(request.scope["query_string"])
    state = PageState.of(pairs)
    if len(pairs) > len(state.question) + (state.why is not None) + len(state.trail):
        return RedirectResponse(state.href(), 303)  # drop a form's empty fields
    with service.serving("related", state.named) as asking:
        if not state.nodes:
            return await front_page(service, request, state, asking)
        left = view.foreign(asking.index, state)
        state = state.without(*left)
        values = service.operations["related"].from_query(state.question)
        values |= {"total": True} if values.keys().isdisjoint(_UNCOUNTED) else {}
        try:
            document = await related(service, values, asking)
        except UnknownNode as error:
            return await _like(service, request, state, asking, error)
        if document.nodes != tuple(dict.fromkeys(state.nodes)) and "side" not in values:
            return RedirectResponse(state.for_nodes(*document.nodes).href(), 303)  # to stored names
        reasons = await _reasons(service, state, values, asking)
        made = partial(_render, service, state, values, asking, document, reasons, left)
        body = await service.done(made, pushing=False, adapts=False)
        return sent(service, request, body, asking)


async def _reasons(
    service: Service, state: PageState, values: dict[str, Any], asking: ServedQuery
) -> dict[str, Any] | None:
    """Return the reasons for a hit, or what is wrong with the query."""
    if state.why is None:
        return None
    asked = {name: values[name] for name in _WHY if name in values}
    asked |= {"a": values["node"], "b": state.why}
    whole = replace(asking, samples=asking.held.index.samples, full=True)  # as in /v1/why

    def reasons_in(document: Document) -> dict[str, Any]:
        assert isinstance(document, WhyDocument)
        linked = links_between(asking.index.stored, asking.index.given)
        return reasons_of(document, state.onward(), linked)

    try:
        return await service.ask("why", asked, whole, reasons_in)
    except CociteError as error:
        return {"wrong": problem_of(error, service.scrub, [state.why, *state.nodes]).detail}


def _render(
    service: Service,
    state: PageState,
    values: dict[str, Any],
    asking: ServedQuery,
    document: RelatedDocument,
    reasons: dict[str, Any] | None,
    left: list[str],
) -> bytes:
    index, limits = asking.index, service.config.limits
    index_name = state.get("index") or next(iter(service.holders))
    titles = document.titles or [""] * len(document.nodes)
    named = [
        {
            "name": node,
            "title": title or None,
            "without": state.for_nodes(*(n for n in document.nodes if n != node)).href(),
        }
        for node, title in zip(document.nodes, titles, strict=True)
    ]
    k, first = values.get("k", DEFAULT_K), document.offset
    following = first + k <= limits.offset and len(document.hits) == k
    following &= document.total is None or document.total > first + k
    fields = view.fields_of(index, service.operations["related"].takes, state)
    linked = bool(view.about_of(index, document.nodes[0])["links"])
    about = reasons["other"]["name"] if reasons and "other" in reasons else document.nodes[0]
    inside = {field["name"] for field in fields} | {"index", "offset", "side"}
    return view.filled(
        "page.html",
        frame(service, state, view.title_of(document))
        | {
            "named": named,
            "how": view.how(document, asking.samples),
            "fewer": not asking.full,
            "rows": view.rows_of(document, state, limits.together),
            "about": view.about_of(index, about),
            "add": state.for_nodes(*state.nodes, about).href(),
            "trail": [(name, state.back(place).href()) for place, name in enumerate(state.trail)],
            "calls": view.calls_of(index_name, document, state),
            "certain": document.certain_ranks,
            "complete": document.complete and len(document.hits) < k,
            "places": (first + 1, first + len(document.hits)),
            "total": document.total,
            "surely": document.surely,
            "sharpen": view.sharpen_of(index, document, state),
            "confidence": f"{100 * document.confidence:g}%",
            "map_href": state.reasons(None).href("/map"),
            "reasons": reasons,
            "left": left,
            "fields": fields,
            "given": [field for field in fields if field["value"]],
            "hidden": [pair for pair in state.others if pair[0] not in inside],
            "json": state.href("/v1/related", reasons=False),
            "csv": state.plus("safe", "true").href("/related.csv", reasons=False),
            "presets": view.presets_of(state, linked),
            "compare": state.reasons(None).href("/compare"),
            "here": state.reasons(None).href(),
            "next": state.at(first + k).href() if following else None,
            "previous": state.at(max(0, first - k)).href() if first else None,
            "filtered": any(state.get(name) for name in FilterOptions.declared()),
        },
    )


async def _map(service: Service, request: Request) -> Response:
    query = request.scope["query_string"]
    state, how = PageState.of(pairs_of(query)), coding(request)
    with service.serving("related", dict(state.others)) as asking:
        state = state.without(*view.foreign(asking.index, state))
        values = service.operations["related"].from_query(state.question)
        key = asking.key("map", query, how)
        found = service.cache.find(key) if asking.fixed else None
        if found is None:
            document = await related(service, values, asking)
            made = partial(_draw, service, state, values, asking, document)
            body = await service.done(made, pushing=False, adapts=False)
            found = *packed(body, how), False
            if asking.fixed:
                service.cache.add(key, found)
        headers = {"Content-Security-Policy": view.policy(service)}
        return reply(service, found[:2], view.HTML, asking, headers)


def _draw(
    service: Service,
    state: PageState,
    values: dict[str, Any],
    asking: ServedQuery,
    document: RelatedDocument,
) -> bytes:
    settings = {name: values[name] for name in SETTINGS if name in values}
    most, lines = service.config.limits.map_time, asking.full
    drawn = view.map_of(asking.index, document, state.onward(), settings, lines, most)
    called = view.title_of(document)
    more = {"map": drawn, "called": called, "list": state.href()}
    return view.filled("around.html", frame(service, state, f"Map of {called}") | more)


async def _like(
    service: Service, request: Request, state: PageState, asking: ServedQuery, error: UnknownNode
) -> Response:
    names, given = asking.index.nodes, {name: v for name, v in state.others if name == "side"}
    called = zip(state.nodes, stored(asking.index, given, state.nodes), strict=True)
    matches = {typed: name for typed, name in called if names.find(name) is not None}
    sought = next(node for node in state.nodes if node not in matches)
    asked = {"text": sought, "k": _LIKE, "matches": len(names) <= SEARCHED, **given}
    found = (await service.ask("complete", asked, asking, Document.to_json))["nodes"]
    known = {each["node"] for each in found}
    among = names.sides.named(given["side"]) if names.sides and given else range(len(names))
    near = [n for n in error.suggestions if n not in known and names.find(n) in among]
    titles = asking.index.titles_of(near) or [""] * len(near)
    found += [{"node": n, "title": title} for n, title in zip(near, titles, strict=True)]
    rest = tuple(matches.get(node, node) for node in state.nodes if node != sought)
    hits = [
        {"name": each["node"], "title": each.get("title")}
        | {"href": state.for_nodes(*rest, each["node"]).href()}
        for each in found
    ]
    values = frame(service, state, f"Pages like {sought}") | {"sought": sought, "hits": hits}
    return sent(service, request, view.filled("like.html", values), asking, 404)


async def _draft(service: Service, request: Request) -> Response:
    """Create the page for an unseen node: a form for links, and related pages."""
    state = PageState.of(pairs_of(request.scope["query_string"]))
    text, named = state.get("links"), state.named
    values = frame(service, PageState(others=tuple(named.items())), "A page of your own")
    values |= {"text": text or "", "note": state.get("format") == "note", "found": None}
    with service.serving("draft", named) as asking:
        if text is not None:
            asked = named | {"text": text, "format": state.get("format") or "names"}
            question = service.operations["draft"].from_body(asked | {"skip_unknown": True})
            try:
                found = await service.ask("draft", question, asking, lambda document: document)
            except CociteError as error:
                values["wrong"] = problem_of(error, service.scrub, [text]).detail
            else:
                assert isinstance(found, DraftDocument)
                onward = PageState(others=tuple(named.items()))
                rows = view.rows_of(found.related, onward, service.config.limits.together)
                values |= {"found": rows, "unknown": found.unknown}
        body = view.filled("draft.html", values | {"asked": text is not None})
        return sent(service, request, body, asking)


async def _csv(service: Service, request: Request) -> Response:
    """Return the list as CSV, as on the command line; the page's link adds ``safe``."""
    text = "Put an apostrophe before cells that a spreadsheet would take for formulas"
    safely = Parameter(Option("safe", False, text), 0)
    listing = service.operations["related"]
    operation = replace(listing, name="csv", takes=(*listing.takes, safely))
    values = operation.from_query(pairs_of(request.scope["query_string"]))
    safe = bool(values.pop("safe", False))

    def table(document: Document) -> bytes:
        text = io.StringIO()
        write_csv(document.rows(), text, safe)
        return text.getvalue().encode("utf-8", "surrogateescape")

    with service.serving("related", values) as asking:
        body = await service.ask("related", values, asking, table)
        named = {"Content-Disposition": 'attachment; filename="related.csv"'}
        content = packed(body, coding(request))
        return reply(service, content, "text/csv; charset=utf-8", asking, named)


# -- embed -------------------------------------------------------------------------------


_SCRIPT = {
    "Content-Type": "text/javascript; charset=utf-8",
    "Cache-Control": "public, max-age=3600",
    "Cross-Origin-Resource-Policy": "cross-origin",
}


async def _embed(service: Service, request: Request) -> Response:
    state = PageState.of(pairs_of(request.scope["query_string"]))
    question = (state if state.get("k") else state.plus("k", "10")).question
    values = service.operations["related"].from_query(question)
    with service.serving("related", values) as asking:
        made = partial(_list, service, state)
        return sent(service, request, await service.ask("related", values, asking, made), asking)


def _list(service: Service, state: PageState, document: Document) -> bytes:
    assert isinstance(document, RelatedDocument)
    site = service.config.options.site
    hits: list[dict[str, Any]] = []
    for hit in document.hits:
        name = str(hit.node)
        outside = view.outward(name) or (site and site + quote(name, errors="surrogateescape"))
        href = outside or state.for_nodes(name).href()
        hits.append({"name": name, "title": hit.title, "href": href, "outside": bool(outside)})
    return view.filled("embed.html", frame(service, state, "Related pages") | {"hits": hits})


# -- reference ---------------------------------------------------------------------------


def _docs_of(service: Service) -> Handler:
    nodes = example_nodes(service)
    operations = [(each, each.path) for each in service.operations.values()]
    operations += [(Operation(path[1:], text, "", ()), path) for path, text in PROBES.items()]
    described = [(each, path, _example(each, path, nodes)) for each, path in operations]
    values = {"about": f"{SUMMARY} {DESCRIPTION}", "operations": described, "kinds": KINDS}
    page = view.filled("reference.html", frame(service, PageState(), "API") | values)

    async def docs(service: Service, request: Request) -> Response:
        return sent(service, request, page, headers={"Cache-Control": "no-cache"})

    return docs


def _example(operation: Operation, path: str, nodes: list[str]) -> str | None:
    needed = [each.name for each in operation.takes if each.required]
    if not (needed or operation.posted):
        return path
    if not nodes:
        return None
    if operation.posted:
        example = {"nodes": nodes} if operation.name == "batch" else {"out": nodes}
        return json.dumps(example, ensure_ascii=False)
    pairs = [(name, nodes[name == "b"]) for name in needed]
    return f"{path}?{urlencode(pairs, quote_via=quote)}"
