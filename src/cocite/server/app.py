"""The ASGI application of a process, and its middleware.

Requests pass ``Front``, CORS if enabled, and ``Guard``; this takes about 150 µs. ``Front`` counts,
logs, adds headers and limits URL lengths. ``Guard`` checks keys and, before reading queries,
rejects those that could not be answered in time.

If only this machine can reach a server, and the server has no keys, it accepts only host names of
this machine. Otherwise a web page could resolve its own name to 127.0.0.1 and have the browser
query the server (DNS rebinding), in which case ``Host`` has the page's name.
Source: Jackson, Barth, Boneh et al., *Protecting browsers from DNS rebinding attacks*, 2007.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Mapping
from functools import lru_cache, partial
from ipaddress import ip_address

import msgspec
import xxhash
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cocite.options.query import DEFAULT_K
from cocite.results import Document
from cocite.search.results import RelatedDocument
from cocite.server.fresh import links_in
from cocite.server.keys import shown_key
from cocite.server.metrics import CONTENT_TYPE
from cocite.server.openapi import described
from cocite.server.pages.explore import pages
from cocite.server.pages.page import refused_page
from cocite.server.replies import (
    JSON,
    NDJSON,
    Endpoint,
    Handler,
    caching,
    coding,
    guarded,
    has_it,
    packed,
    problem_reply,
    reply,
)
from cocite.server.requests import Values, pairs_of, texts_in
from cocite.server.service import Packed, Problem, ServedQuery, Service, encoded

_HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(?::\d*)?")


@lru_cache(256)
def is_known(host: str, names: frozenset[str]) -> bool:
    """Return whether a ``Host`` header names this server or is empty."""
    match = _HOST.fullmatch(host.strip())
    if match is None:
        return False
    name = match[1].lower().rstrip(".")
    if name in ("", "localhost") or name.endswith(".localhost") or name in names:
        return True
    try:
        return ip_address(name.strip("[]")) is not None
    except ValueError:
        return False


# -- front -------------------------------------------------------------------------------


_HELD_BACK = 0.05, 0.15
"""Range in seconds of the random delay before a refusal, to spread retries."""
OPEN = ("/healthz", "/readyz")
"""Endpoints that need no key."""
_CHALLENGE = 'Basic realm="cocite", charset="UTF-8", Bearer realm="cocite"'


class Front:
    """The outermost middleware."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service
        ancestors = " ".join(service.config.options.frame_ancestors) or "'none'"
        self._policy = f"default-src 'none'; frame-ancestors {ancestors}".encode()
        self._headers = [
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-opener-policy", b"same-origin"),
        ]
        if not service.config.options.frame_ancestors:
            self._headers.append((b"x-frame-options", b"DENY"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; called by ASGI."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        began, status = time.perf_counter(), 500
        scope["state"] = {}

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = message["headers"]
                headers.extend(self._headers)
                if not any(name == b"content-security-policy" for name, _ in headers):
                    headers.append((b"content-security-policy", self._policy))
            if message.get("more_body"):
                async with asyncio.timeout(self.service.config.limits.send_time):
                    await send(message)
            else:
                await send(message)

        raw, query = scope.get("raw_path") or scope["path"].encode(), scope["query_string"]
        app, most = self.app, self.service.config.limits.url
        if len(raw) + len(query) > most:
            detail = (
                f"path and query have more than {most:,} bytes; use POST /v1/batch for many "
                "nodes, and POST /v1/related for many links"
            )
            accept = Headers(scope=scope).get("accept", "")
            app = _refusal(self.service, Problem("url-too-long", detail), accept)
        try:
            await app(scope, receive, sending)
        except TimeoutError:  # the client does not read, so it gets no error either
            self.service.log.say("dropped a client that reads nothing", "warning")
        finally:
            seconds = time.perf_counter() - began
            operation = scope["state"].get("operation", "other")
            self.service.metrics.requested(operation, status, seconds)
            if self.service.log.requests:
                self.service.log.say(
                    "request",
                    method=scope["method"],
                    path=(raw + b"?" * bool(query) + query).decode("latin-1")[:1024],
                    status=status,
                    milliseconds=round(1000 * seconds, 2),
                    client=(scope.get("client") or [""])[0],
                )
        return None


def _refusal(service: Service, problem: Problem, accept: str) -> Response:
    """Return a page for a browser, and problem details for other clients."""
    return refused_page(service, problem) if "text/html" in accept else problem_reply(problem)


class Guard:
    """The middleware that checks the host name, the key, and the load."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service
        self.asked = service.config.local and service.keys is None
        """Whether to check the host name."""
        self.names = frozenset(name.lower() for name in service.config.options.allow_host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; called by ASGI."""
        if scope["type"] != "http" or scope["path"] in OPEN:
            return await self.app(scope, receive, send)
        keys, head, problem = self.service.keys, Headers(scope=scope), None
        holder = None if keys is None else keys.holder(shown_key(head))
        scope["state"]["holder"] = holder
        if self.asked and not is_known(head.get("host", ""), self.names):
            problem = Problem(
                "unknown-host",
                f"the request is for the host {head['host'][:100]!r}; this server accepts only "
                "localhost, its own address, and names given with --allow-host",
            )
        elif keys is not None and holder is None:
            detail = "send a key: Authorization: Bearer KEY, X-API-Key: KEY, or KEY as the password"
            problem = Problem("no-key", detail, {}, {"WWW-Authenticate": _CHALLENGE})
        elif (problem := self.service.overloaded(scope["path"])) is not None:
            scope["state"]["operation"] = "refused"
            await asyncio.sleep(random.uniform(*_HELD_BACK))
        app = self.app if problem is None else problem_reply(problem)
        return await app(scope, receive, send)


# -- app ---------------------------------------------------------------------------------


def make_app(service: Service) -> ASGIApp:
    """Create the application for an open service."""
    document = msgspec.json.encode(described(service))
    straight = {
        f"/v1/{operation}": guarded(service, operation, _answered)
        for operation in ("related", "similarity", "why", "complete")
    }
    endpoints: list[tuple[str, str, str, Handler]] = [
        ("POST", "/v1/batch", "batch", _batch),
        ("POST", "/v1/related", "draft", _draft),
        ("GET", "/v1/indexes", "indexes", _indexes),
        ("GET", "/openapi.json", "openapi", partial(_openapi, document)),
        ("GET", "/healthz", "healthz", _probe),
        ("GET", "/readyz", "readyz", _probe),
        ("GET", "/metrics", "metrics", _metrics),
    ]
    if service.config.options.accept_links:
        endpoints.append(("POST", "/v1/links", "links", _links))
    routes: list[BaseRoute] = [
        *(Route(path, endpoint, methods=["GET"]) for path, endpoint in straight.items()),
        *(
            Route(path, guarded(service, operation, handler), methods=[method])
            for method, path, operation, handler in endpoints
        ),
        *pages(service),
    ]
    app: ASGIApp = Starlette(
        routes=routes, exception_handlers={HTTPException: partial(_no_route, service)}
    )
    app = Guard(_fast_path(app, straight), service)
    if service.config.options.allow_origin:
        app = CORSMiddleware(
            app,
            allow_origins=list(service.config.options.allow_origin),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key"],
            expose_headers=["Cocite-Generation", "Cocite-Index", "Cocite-Samples", "ETag", "Link"],
        )
    return Front(app, service)


def _fast_path(app: ASGIApp, endpoints: Mapping[str, Endpoint]) -> ASGIApp:
    """Dispatch queries by path; the router would take a large part of an answer's time."""

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        straight = scope["type"] == "http" and scope["method"] == "GET"
        endpoint = endpoints.get(scope["path"]) if straight else None
        if endpoint is None:
            return await app(scope, receive, send)
        answer = await endpoint(Request(scope, receive))
        return await answer(scope, receive, send)

    return dispatch


async def _answered(service: Service, request: Request) -> Response:
    operation = request.scope["state"]["operation"]
    values = service.operations[operation].from_query(pairs_of(request.scope["query_string"]))
    how = coding(request)
    with service.serving(operation, values) as asking:
        if has_it(request, asking):
            return Response(b"", 304, caching(service, asking))

        def packed_answer(document: Document) -> Packed:
            more = isinstance(document, RelatedDocument) and not document.complete
            return *packed(encoded(document), how), more

        fixed, query = asking.fixed, request.scope["query_string"]
        key = asking.key(operation, query, how)
        found = service.cache.find(key) if fixed else None
        if found is None:
            found = await service.ask(operation, values, asking, packed_answer)
            if fixed and asking.fixed:
                service.cache.add(key, found)
        else:
            service.count_samples(operation, asking)
        body, how, more = found
        following = _next(service, query, values) if more else None
        headers = {} if following is None else {"Link": following}
        return reply(service, (body, how), JSON, asking, headers)


def _next(service: Service, query: bytes, values: Values) -> str | None:
    """Return a ``Link`` header to the next hits; None beyond the server's limit."""
    offset = values.get("offset", 0) + values.get("k", DEFAULT_K)
    if offset > service.config.limits.offset:
        return None
    fields = [each for each in query.decode("latin-1").split("&") if not each.startswith("offset=")]
    following = "&".join([*fields, f"offset={offset}"]).replace(">", "%3E")
    return f'</v1/related?{following}>; rel="next"'


async def _json_body(service: Service, request: Request, *kinds: str) -> tuple[str, bytes]:
    """Return a body's media type, one of ``kinds``, and content; raises :class:`Problem`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in kinds:
        detail = f"the Content-Type is {kind or 'missing'}; send {' or '.join(kinds)}"
        raise Problem("no-json", detail)
    limits, pieces, size = service.config.limits, list[bytes](), 0
    too_large = Problem(
        "body-too-large", f"the body has more than {limits.body:,} bytes; send less at once"
    )
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > limits.body:
        raise too_large
    try:
        async with asyncio.timeout(limits.body_time):
            async for piece in request.stream():
                pieces.append(piece)
                size += len(piece)
                if size > limits.body:
                    raise too_large
    except ClientDisconnect:
        raise Problem("slow-body", "the connection was closed") from None
    except TimeoutError:
        detail = f"the body took longer than {limits.body_time:g} s"
        raise Problem("slow-body", detail) from None
    return kind, b"".join(pieces)


async def _posted(service: Service, request: Request) -> Values:
    _, body = await _json_body(service, request, JSON)
    try:
        content = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Problem("bad-json", f"the body is not JSON: {error}") from None
    state = request.scope["state"]
    state["said"] = texts_in(content)
    return service.operations[state["operation"]].from_body(content)


async def _draft(service: Service, request: Request) -> Response:
    values = await _posted(service, request)
    with service.serving("draft", values) as asking:
        body = await service.ask("draft", values, asking, encoded)
        return reply(service, packed(body, coding(request)), headers={"Cocite-Index": asking.name})


async def _batch(service: Service, request: Request) -> Response:
    values = await _posted(service, request)
    with service.serving("batch", values) as asking:
        if NDJSON in request.headers.get("accept", ""):
            return await _streamed(service, values, asking)
        pieces: list[bytes] = []
        async for lines in service.ask_each(values, asking):
            pieces += lines
        body = b'{"answers":[' + b",".join(pieces) + b"]}"
        return reply(service, packed(body, coding(request)), JSON, asking)


async def _links(service: Service, request: Request) -> Response:
    holder, limits = request.scope["state"].get("holder"), service.config.limits
    if service.keys is None or holder not in service.keys.writers:
        detail = "only keys with write access can add links: those marked write in the key file"
        raise Problem("read-only", detail)
    kind, body = await _json_body(service, request, JSON, NDJSON)
    try:
        name, links = links_in(body, kind == NDJSON, limits)
    except msgspec.DecodeError as error:
        raise Problem("bad-json", f"the body is not JSON: {error}") from None
    name = name or request.query_params.get("index")
    with service.serving("links", {} if name is None else {"index": name}) as asking:
        assert asking.held.fresh is not None
        work = partial(asking.held.fresh.take, links, limits)
        took = await service.done(work, adapts=False)
        service.metrics.links.labels(asking.name).inc(took.links)
        body = msgspec.json.encode({"index": asking.name, **took._asdict()})
        return reply(service, packed(body, coding(request)), headers={"Cocite-Index": asking.name})


async def _streamed(service: Service, values: Values, asking: ServedQuery) -> Response:
    """Stream answers line by line. The first answers are computed beforehand, so that errors
    set the status.
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
    service.operations["indexes"].from_query(request.query_params.multi_items())
    body = msgspec.json.encode({"indexes": service.indexes()})
    return reply(service, packed(body, coding(request)))


async def _openapi(document: bytes, service: Service, request: Request) -> Response:
    tag = f'W/"{xxhash.xxh3_64_hexdigest(document)}"'
    headers = {"Cache-Control": "no-cache", "ETag": tag}
    if tag in request.headers.get("if-none-match", ""):
        return Response(b"", 304, caching(service, None) | headers)
    return reply(service, packed(document, coding(request)), headers=headers)


async def _metrics(service: Service, request: Request) -> Response:
    service.gauge()
    return reply(service, packed(service.metrics.text(), coding(request)), CONTENT_TYPE)


async def _probe(service: Service, request: Request) -> Response:
    """Answer /healthz while the process runs, and /readyz until it is about to stop."""
    ready = "ready" if service.ready else "ending"
    status = "ok" if request.scope["path"] == "/healthz" else ready
    headers = {"Content-Type": JSON, "Cache-Control": "no-store"}
    body = msgspec.json.encode({"status": status})
    return Response(body, 503 if status == "ending" else 200, headers)


async def _no_route(service: Service, request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path[:100]
    if error.status_code == 405:
        headers = dict(error.headers or {})
        detail = f"{path} accepts {headers.get('Allow', '')}, not {request.method}"
        return problem_reply(Problem("no-such-method", detail, {}, headers))
    vary = {"Vary": "Accept"}  # the answer is a page or a document
    problem = Problem("not-found", f"{path!r} does not exist; /docs lists all endpoints", {}, vary)
    return _refusal(service, problem, request.headers.get("accept", ""))
