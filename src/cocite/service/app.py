"""The application of one process: routes, and what answers each.

    GET  /v1/related /v1/similarity /v1/why /v1/complete /v1/indexes      POST /v1/batch
    GET  /openapi.json /docs                                              what there is, to read
    GET  /healthz /readyz /metrics
    and the pages (``pages/``)

Cost: some 150 µs a request beside its question.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from cocite.documents import Document
from cocite.errors import CociteError, StoreError
from cocite.service.answers import Values
from cocite.service.front import Front, Guard, body_of
from cocite.service.metrics import CONTENT_TYPE
from cocite.service.openapi import described
from cocite.service.pages import routes as pages
from cocite.service.parameters import pairs_of
from cocite.service.problems import Problem, Refused, problem_of
from cocite.service.replies import (
    JSON,
    NDJSON,
    caching,
    coding,
    has_it,
    packed,
    problem_reply,
    reply,
    reply_packed,
    unchanged,
)
from cocite.service.service import Asking, Service, encoded

__all__ = ["Endpoint", "guarded", "make_app", "query_of"]

Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(service: Service) -> ASGIApp:
    """The application, of a service that is open."""
    document = msgspec.json.encode(described(service))
    straight = {f"/v1/{verb}": guarded(service, verb, _answered) for verb in _VERBS}
    routes: list[BaseRoute] = [
        *(Route(path, endpoint, methods=["GET"]) for path, endpoint in straight.items()),
        Route("/v1/batch", guarded(service, "batch", _batch), methods=["POST"]),
        _get("/v1/indexes", service, "indexes", _indexes),
        _get("/openapi.json", service, "openapi", partial(_openapi, document)),
        _get("/healthz", service, "healthz", _healthz),
        _get("/readyz", service, "readyz", _readyz),
        _get("/metrics", service, "metrics", _metrics),
        *pages(service),
    ]
    app: ASGIApp = Starlette(routes=routes, exception_handlers={HTTPException: _no_route})
    app = Guard(_Straight(app, straight), service)
    if service.config.origins:
        app = CORSMiddleware(
            app,
            allow_origins=list(service.config.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key"],
            expose_headers=["Cocite-Generation", "Cocite-Index", "Cocite-Samples", "ETag"],
        )
    return Front(app, service)


class _Straight:
    """Questions go to their endpoints by their path, past the router: that is a large part of what
    an answer takes beside its document.
    """

    def __init__(self, app: ASGIApp, endpoints: Mapping[str, Endpoint]) -> None:
        self.app, self.endpoints = app, endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI calls it."""
        straight = scope["type"] == "http" and scope["method"] == "GET"
        endpoint = self.endpoints.get(scope["path"]) if straight else None
        if endpoint is None:
            return await self.app(scope, receive, send)
        answer = await endpoint(Request(scope, receive))
        return await answer(scope, receive, send)


_VERBS = ("related", "similarity", "why", "complete")
_Handler = Callable[[Service, Request], Awaitable[Response]]


def _get(path: str, service: Service, verb: str, handler: _Handler) -> Route:
    return Route(path, guarded(service, verb, handler), methods=["GET"])


def guarded(service: Service, verb: str, handler: _Handler) -> Endpoint:
    """An endpoint that is counted as ``verb``, and answers what is wrong as a problem."""

    async def endpoint(request: Request) -> Response:
        request.scope["state"]["verb"] = verb
        try:
            return await handler(service, request)
        except Refused as refused:
            return problem_reply(refused.problem)
        except CociteError as error:
            problem = problem_of(error, service.scrub, request.scope["state"].get("said", ()))
            if problem.status >= 500 or isinstance(error, StoreError):
                service.fault(error, verb)
            return problem_reply(problem)
        except Exception as error:
            service.fault(error, verb)
            return problem_reply(Problem("fault", "a fault of the server: its log says more"))

    return endpoint


def query_of(service: Service, verb: str, request: Request) -> Values:
    """The question in the query of a request; raises :class:`UsageError`."""
    pairs = pairs_of(request.scope["query_string"])
    request.scope["state"]["said"] = [text for pair in pairs for text in pair]
    return service.verbs[verb].from_query(pairs)


async def _answered(service: Service, request: Request) -> Response:
    verb = request.scope["state"]["verb"]
    values = query_of(service, verb, request)
    how = coding(request)
    with service.asking(verb, values) as asking:
        if has_it(request, asking):
            return unchanged(service, asking)

        def made(document: Document) -> tuple[bytes, str | None]:
            return packed(encoded(document), how)

        body, how = await service.ask(verb, values, asking, made)
        return reply_packed(service, body, how, JSON, asking)


async def _batch(service: Service, request: Request) -> Response:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise Refused(Problem("no-json", f"the body is {kind or 'nothing said'}; send {JSON}"))
    body = await body_of(service, request.headers, request.receive)
    try:
        told = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Refused(Problem("bad-json", f"the body is no JSON: {error}")) from None
    request.scope["state"]["said"] = texts_in(told)
    values = service.verbs["batch"].from_body(told)
    with service.asking("batch", values) as asking:
        if NDJSON in request.headers.get("accept", ""):
            return await _streamed(service, values, asking)
        pieces: list[bytes] = []
        async for lines in service.ask_each(values, asking):
            pieces += lines
        body = b'{"answers":[' + b",".join(pieces) + b"]}"
        return reply(service, request, body, JSON, asking)


def texts_in(value: Any) -> list[str]:
    """All texts in a value of JSON, names of fields included."""
    found, left = [], [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            found.append(each)
        elif isinstance(each, list):
            left += each
        elif isinstance(each, dict):
            left += [*each, *each.values()]
    return found


async def _streamed(service: Service, values: Values, asking: Asking) -> Response:
    """A line an answer, as soon as some are there; the first are made before anything is sent, so
    that what is wrong with the question is told as such.
    """
    asking.held.users += 1
    lines = service.ask_each(values, asking)
    try:
        first = await anext(lines)
    except BaseException:
        asking.held.users -= 1
        raise

    async def stream() -> AsyncIterator[bytes]:
        try:
            yield b"".join(line + b"\n" for line in first)
            async for more in lines:
                yield b"".join(line + b"\n" for line in more)
        finally:
            asking.held.users -= 1

    headers = caching(service, asking) | {"Content-Type": NDJSON}
    return StreamingResponse(stream(), headers=headers)


async def _indexes(service: Service, request: Request) -> Response:
    service.verbs["indexes"].from_query(request.query_params.multi_items())
    body = msgspec.json.encode({"indexes": service.indexes()})
    return reply(service, request, body)


async def _openapi(document: bytes, service: Service, request: Request) -> Response:
    return reply(service, request, document, headers={"Cache-Control": "no-cache"})


async def _healthz(service: Service, request: Request) -> Response:
    return _plain_json({"status": "ok"})


async def _readyz(service: Service, request: Request) -> Response:
    """Ready is who has an index open; a server that is about to end is not."""
    if not service.ready:
        return _plain_json({"status": "ending"}, 503)
    return _plain_json({"status": "ready"})


async def _metrics(service: Service, request: Request) -> Response:
    service.gauge()
    return reply(service, request, service.metrics.text(), CONTENT_TYPE)


def _plain_json(value: dict[str, Any], status: int = 200) -> Response:
    headers = {"Content-Type": JSON, "Cache-Control": "no-store"}
    return Response(msgspec.json.encode(value), status, headers)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path[:100]
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        problem = Problem(
            "no-such-method",
            f"{path} takes {allowed}, and not {request.method}",
            {},
            dict(error.headers or {}),
        )
        return problem_reply(problem)
    return problem_reply(Problem("not-found", f"nothing is at {path!r}; /docs lists what there is"))
