"""Related pages for other sites: a list in a frame, or put in by a script.

    <iframe src="https://SERVER/embed?node=NAME"></iframe>             needs --frame-ancestors
    <script src="https://SERVER/embed.js" data-node="NAME"></script>   needs --allow-origin

The script is the one that ``related-all --kind site`` puts beside its files, and says itself what
it takes (``query/batch/outputs/related.js``).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cocite.documents import Document
from cocite.query.batch.outputs.folder import script
from cocite.query.documents import RelatedDocument
from cocite.service.pages.address import State
from cocite.service.pages.explore import frame, sent, shown
from cocite.service.pages.made import filled
from cocite.service.parameters import pairs_of

if TYPE_CHECKING:
    from cocite.service.service import Service

__all__ = ["embedded"]

_K = "10"


def embedded(service: Service) -> list[Route]:
    """Its routes."""
    return [
        Route("/embed", shown(service, "embed", _embed), methods=["GET"]),
        Route("/embed.js", _script, methods=["GET"]),
    ]


async def _embed(service: Service, request: Request) -> Response:
    state = State.of(pairs_of(request.scope["query_string"]))
    question = state.question if state.get("k") else [*state.question, ("k", _K)]
    values = service.verbs["related"].from_query(question)
    with service.asking("related", values) as asking:
        made = partial(_list, service, state)
        return sent(service, request, await service.ask("related", values, asking, made), asking)


def _list(service: Service, state: State, document: Document) -> bytes:
    assert isinstance(document, RelatedDocument)
    hits: list[dict[str, Any]] = [
        {"name": str(hit.node), "title": hit.title, "href": state.asking(str(hit.node)).href()}
        for hit in document.hits
    ]
    return filled("embed.html", frame(service, state, "Related pages") | {"hits": hits})


async def _script(request: Request) -> Response:
    request.scope["state"]["verb"] = "embed"
    headers = {
        "Content-Type": "text/javascript; charset=utf-8",
        "Cache-Control": "public, max-age=3600",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
    return Response(script(), headers=headers)
