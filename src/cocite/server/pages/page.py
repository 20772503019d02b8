"""The common parts of all pages: frame, response, and error pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import xxhash
from starlette.requests import Request
from starlette.responses import Response

from cocite.search.results import RelatedDocument
from cocite.server.pages.view import HTML, PageState, filled, outward, policy
from cocite.server.replies import caching, coding, packed, reply
from cocite.server.requests import Values
from cocite.server.service import KINDS, Problem

if TYPE_CHECKING:
    from cocite.server.service import ServedQuery, Service


def frame(service: Service, state: PageState, title: str) -> dict[str, Any]:
    """Return the template values of all pages: title, search field, side, and settings."""
    index = state.get("index") or next(iter(service.holders))
    sought = state.nodes[0] if len(state.nodes) == 1 else ""
    served = {name: each.now.index for name, each in service.holders.items()}
    sides = served[index].nodes.sides if index in served else None
    side = None  # to search: the side of the page shown, the last side used, or the second
    if sides is not None:
        own = sought.startswith(sides.mark)
        side = sides.titles[0] if own else state.get("side") or sides.titles[1]
    return {
        "title": title,
        "state": state,
        "begins": not state.nodes,
        "sought": "",
        "holdings": [(name, len(each.nodes)) for name, each in served.items()],
        "indexes": [(name, each.measure) for name, each in served.items()],
        "sides": () if sides is None else sides.titles[::-1],
        "side": side,
        "kept": state.without("offset", "side").others,
        "index": index,
        "outward": outward,
    }


async def related(service: Service, values: Values, asking: ServedQuery) -> RelatedDocument:
    """Return a list of related pages, computed in a thread."""
    document = await service.ask("related", values, asking, lambda document: document)
    assert isinstance(document, RelatedDocument)
    return document


def sent(
    service: Service,
    request: Request,
    body: bytes,
    asking: ServedQuery | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Create the response for a page. The ETag is a digest, because a page combines several
    answers.
    """
    tag = f'W/"{xxhash.xxh3_64_hexdigest(body)}"'
    extra = {"Content-Security-Policy": policy(service), "ETag": tag, **(headers or {})}
    if status == 200 and tag in request.headers.get("if-none-match", ""):
        return Response(b"", 304, caching(service, asking) | extra)
    return reply(service, packed(body, coding(request)), HTML, asking, extra, status)


def refused_page(service: Service, problem: Problem) -> Response:
    """Create the page for a refused query."""
    values = frame(service, PageState(), KINDS[problem.kind][1])
    body = filled("wrong.html", values | {"problem": problem})
    headers = {"Content-Type": HTML, "Cache-Control": "no-store", **problem.headers}
    headers["Content-Security-Policy"] = policy(service)
    return Response(body, problem.status, headers)
